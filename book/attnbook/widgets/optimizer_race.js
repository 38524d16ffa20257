// Five step rules on the data of Figures 2 and 5, with guides of the slope that theory speaks of.

import { explorable, fixed } from "./kit/kit.js";

const RULES = ["gradient descent", "normalized descent", "normalized, heavy ball", "Polyak, capped", "Adam"];
const SHAPES = ["circle", "square", "triangle", "diamond", "cross"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "4 2"];
const MEASURES = ["1 - cosine", "loss above its floor", "norm of W", "attention"];
const RANGES = [[1e-4, 1.5], [1e-5, 0.6], [0.01, 2000], [0, 1]];

let stepsSeen = []; // for the code to copy

export default explorable({
  name: "optimizer_race",
  title: "Five step rules, one direction (or not)",
  defaults: { k: 100, data: 0, measure: 2, guide: 1, bet: null },
  build(kit) {
    const steps = kit.list("step");
    stepsSeen = steps;
    const facts = kit.data("facts").values;
    const count = steps.length;
    const curve = (data, rule, measure) => kit.list("values", data * RULES.length + rule, measure);
    kit.bet({
      question: "Train to the end of the scale. Which of the five does not turn towards the max-margin W of the Frobenius norm?",
      options: ["gradient descent", "the Polyak step", "Adam"],
      outcome: (state) => `${state.bet === 2 ? "Yes." : "Look again."} Adam rescales every entry of the gradient on its own; its miss stays above a half, although its attention settles. The others share one direction, at different speeds.`,
    });
    const row = kit.row();
    const x = { range: [1, steps[count - 1]], log: true, label: "step" };
    const main = kit.chart({
      label: "one minus cosine by step", title: "1 - cosine with the max-margin W",
      x, y: { range: RANGES[0], log: true },
    }, row);
    const others = [1, 2, 3].map((m) => kit.chart({
      label: `${MEASURES[m]} by step`, title: m === 3 ? "mean attention on the best token" : MEASURES[m],
      x, y: { range: RANGES[m], log: m < 3 },
    }, row));
    kit.legend([...RULES.map((name, r) => [r, name, r > 0]), [5, "guide", true]]);
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.choice({ key: "measure", label: "second chart", options: [[1, "loss"], [2, "norm"], [3, "attention"]], parent: controls });
    kit.choice({ key: "data", label: "data", options: [[0, "orthogonal (Fig. 2)"], [1, "opposite (Fig. 5)"]], parent: controls });
    kit.choice({ key: "guide", label: "guide", options: [[0, "none"], [1, "(log t)^2/t"], [2, "1/t^2"], [3, "1/(log t)^2"]], parent: controls });
    const guides = [null, (t) => Math.log(t) ** 2 / t, (t) => 1 / t ** 2, (t) => 1 / Math.log(t) ** 2];
    return (state) => {
      const k = Math.min(state.k, count - 1);
      others.forEach((chart, m) => { chart.root.parentNode.style.display = m + 1 === state.measure ? "" : "none"; });
      [[main, 0], [others[state.measure - 1], state.measure]].forEach(([chart, measure]) => {
        chart.begin();
        RULES.forEach((_, rule) => {
          const line = curve(state.data, rule, measure);
          const look = { series: rule, dash: DASHES[rule], width: 2.2 };
          chart.line(`all${rule}`, steps, line, { ...look, faint: true });
          chart.line(`to${rule}`, steps.slice(0, k + 1), line.slice(0, k + 1), look);
          chart.mark(`at${rule}`, steps[k], line[k], { series: rule, shape: SHAPES[rule], size: 5 });
        });
        const guide = guides[state.guide];
        if (measure === 0 && guide) { // through the curve it is about, where the scrubber stands
          const anchor = curve(state.data, state.guide === 3 ? 0 : 1, 0)[k];
          const late = steps.map((t, j) => (t >= 8 && j >= 0 ? (anchor * guide(t)) / guide(Math.max(steps[k], 8)) : NaN));
          chart.line("guide", steps, late, { series: 5, dash: "2 5", width: 2 });
        }
        chart.end();
      });
      const misses = RULES.map((_, rule) => curve(state.data, rule, 0)[k]);
      const shown = RULES.map((_, rule) => curve(state.data, rule, state.measure)[k]);
      const lead = misses.indexOf(Math.min(...misses));
      const [width, B] = facts.slice(2 * state.data, 2 * state.data + 2);
      const begin = ((10 * B * width) / Math.sqrt(0.025)) ** 3;
      kit.say(`Step ${steps[k]}: 1 - cosine is ${misses.map((value, r) => `${fixed(value, 4)} (${RULES[r]})`).join(", ")}; ${RULES[lead]} leads. ${MEASURES[state.measure]}: ${shown.map((value) => fixed(value, 3)).join(", ")}. The theorem's own clock starts at t0 = ${begin.toExponential(1)}.`);
      kit.el.dataset.misses = JSON.stringify(misses);
      kit.el.dataset.shown = JSON.stringify(shown);
      kit.el.dataset.step = String(steps[k]);
      kit.el.dataset.begin = String(begin);
    };
  },
  code: (state) => `from attnlab import models, optim, problems, svm

problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, antipodal=${state.data ? "True" : "False"}, rng=0)
goal = svm.attention_svm(problem)
model = models.Attention(loss="exponential", start="zero")
rules = [
    optim.GD(0.25),
    optim.NormalizedGD(0.025),
    optim.NormalizedGD(0.025, momentum=0.9),
    optim.PolyakStep(max_step=${state.data ? "5.0" : "10.0"}),
    optim.Adam(0.001),
]
for rule in rules:
    run = optim.train(model, problem, rule, steps=${stepsSeen[Math.min(state.k, stepsSeen.length - 1)]})
    print(rule, 1 - svm.correlation(run.params["W"], goal.W))`,
});
