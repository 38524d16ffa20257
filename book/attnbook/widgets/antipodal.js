// Figure 2 against Figure 5: turn the class means from close to orthogonal to opposite.

import { explorable, fixed } from "./kit/kit.js";
import { nearest } from "./kit/search.js";

const RULES = ["normalized descent", "gradient descent"];
const QUERIES = ["first", "optimal"];

export default explorable({
  name: "antipodal",
  title: "Orthogonal, close or opposite: turn the class means",
  defaults: { angle: 135, query: "first", bet: null },
  build(kit) {
    const angles = kit.list("angle");
    const steps = kit.list("step");
    const last = steps.length - 1;
    const near = (degrees) => angles[nearest(angles, degrees)];
    const one = (name, query, angle) => kit.list(name, QUERIES.indexOf(query), angles.indexOf(angle))[0];
    const curve = (name, query, rule, angle) => kit.list(name, QUERIES.indexOf(query), rule, angles.indexOf(angle));
    kit.bet({
      question: "Opposite means break Assumption 1 by themselves: their product is as large as their squares. What does training make of it?",
      options: ["it ends elsewhere", "it gets much slower", "next to nothing changes"],
      outcome: (state) => {
        const cosine = (angle) => fixed(curve("cosine", state.query, 0, near(angle))[last], 3);
        return `${state.bet === 2 ? "Yes." : "Look again."} Normalized descent ends at a cosine of ${cosine(state.angle)} at this angle and of ${cosine(90)} at 90 degrees.`;
      },
    });
    const row = kit.row();
    const plane = kit.chart({
      square: true, label: "class means", title: "class means (drag the square one)",
      x: { range: [-1.4, 1.4] }, y: { range: [-1.4, 1.4] }, bare: true,
    }, row);
    const race = kit.chart({
      label: "1 - cosine during training", title: "1 - cosine of W with max margin", height: 330,
      x: { range: [1, steps[last]], log: true, label: "step" }, y: { range: [1e-4, 1.2], log: true },
    }, row);
    const other = kit.row();
    const sizes = kit.chart({
      label: "length of the max-margin W by angle", title: "Lambda, relative to 90 degrees",
      x: { range: [10, 185], label: "angle", ticks: [30, 60, 90, 120, 150, 180] }, y: { range: [0.6, 1.25] },
    }, other);
    const asked = kit.chart({
      label: "factor of Assumption 1 by angle", title: "factor of Assumption 1 (asked: 1305)",
      x: { range: [10, 185], label: "angle", ticks: [30, 60, 90, 120, 150, 180] }, y: { range: [0, 2.7] },
    }, other);
    const minus = plane.handle("minus", {
      series: 1, shape: "square", label: "mean of class -1",
      move: (x, y) => kit.set({ angle: turn(kit.state.angle, x, y) }),
      tell: () => `${kit.state.angle} degrees`,
    });
    // Stops of 15 degrees on the circle; an arrow key, a straight step in the plane, moves one stop.
    function turn(from, x, y) {
      const degrees = near((Math.atan2(Math.abs(y), x) * 180) / Math.PI);
      if (degrees !== from) return degrees;
      const [a, b] = [Math.cos((from * Math.PI) / 180), Math.sin((from * Math.PI) / 180)];
      const straight = Math.min(Math.abs(x - a), Math.abs(y - b)) < 1e-9;
      const way = (y - b) * a - (x - a) * b;
      if (!straight || Math.abs(way) < 0.005 || Math.hypot(x - a, y - b) < 0.05) return from;
      return near(from + (way > 0 ? 15 : -15));
    }
    kit.legend([[0, "normalized steps; mean of class +1"], [1, "plain steps; mean of class -1", true], [6, "the same at 90 degrees"], [2, "this setting"]]);
    const controls = kit.controls();
    kit.slider({ key: "angle", label: "angle", values: angles, show: (x) => `${x} degrees`, parent: controls });
    kit.choice({ key: "query", label: "query", options: [["first", "first token (paper)"], ["optimal", "the optimal token"]], parent: controls });
    return (state) => {
      const angle = near(state.angle);
      const turned = (angle * Math.PI) / 180;
      const end = [Math.cos(turned), Math.sin(turned)];
      plane.begin();
      plane.arrow("plus", [0, 0], [1, 0], { series: 0 });
      plane.arrow("minus", [0, 0], end, { series: 1, dash: "6 4" });
      plane.text("p", 1, 0, "mean of +1", { anchor: "end", dy: 22 });
      plane.text("m", ...end, `${angle} degrees`, { anchor: end[0] > 0.3 ? "end" : end[0] < -0.3 ? "start" : "middle", dy: -20 });
      minus.put(...end);
      plane.end();
      race.begin();
      RULES.forEach((_, rule) => {
        const values = (at) => curve("cosine", state.query, rule, at).map((x) => Math.max(1 - x, 1e-7)).slice(1);
        const dash = rule ? "7 4" : "";
        race.line(`r${rule}`, steps.slice(1), values(90), { series: 6, width: 4, faint: true, dash });
        race.line(`n${rule}`, steps.slice(1), values(angle), { series: rule, width: 2.5, dash });
      });
      race.end();
      const margin = (at) => one("margin", state.query, at);
      sizes.begin();
      sizes.line("all", angles, angles.map((at) => margin(at) / margin(90)), { series: 2, width: 2.5 });
      sizes.mark("here", angle, margin(angle) / margin(90), { series: 2, size: 6 });
      sizes.end();
      asked.begin();
      asked.line("all", angles, angles.map((at) => one("factor", state.query, at)), { series: 2, width: 2.5 });
      asked.mark("here", angle, one("factor", state.query, angle), { series: 2, size: 6 });
      asked.end();
      const ends = [0, 1].map((rule) => curve("cosine", state.query, rule, angle)[last]);
      kit.say(`Means at ${angle} degrees: factor of Assumption 1 ${fixed(one("factor", state.query, angle))}, Lambda ${fixed(margin(angle))} (${fixed(margin(90))} at 90). After ${steps[last]} steps the cosine is ${fixed(ends[0], 4)} with normalized steps, ${fixed(ends[1], 4)} with plain ones.`);
      kit.el.dataset.margin = String(margin(angle));
      kit.el.dataset.factor = String(one("factor", state.query, angle));
      kit.el.dataset.cosines = JSON.stringify(ends);
    };
  },
  code: (state) => `from attnlab import models, optim, problems, svm
from attnbook import theory
from attnbook.widgets.bias_setting import asked, turned

drawn = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
problem = turned(drawn, ${state.angle})
${state.query === "optimal" ? "problem = asked(problem, problem.optimal)\n" : ""}margin = svm.attention_svm(problem)
print("Lambda", margin.norm, "factor", theory.bias.orthogonality(problem))
for rule in (optim.NormalizedGD(0.025), optim.GD(0.25)):
    run = optim.train(models.Attention(loss="exponential", start="zero"), problem, rule, 2000)
    print("cosine", svm.correlation(run.params["W"], margin.W))`,
});
