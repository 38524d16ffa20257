// One step of random sign splits the heads into two groups; the target lies sqrt 2 times as far
// as Proposition 7 says.

import { explorable, fixed } from "./kit/kit.js";
import { LOSSES } from "./kit/losses.js";
import { drawSigns, outputAlong, tangentMargin } from "./kit/training_heads.js";

const MIXTURE = { T: 10, zeta: 0.1, S: 2, M: 2 };
const COUNTS = Array.from({ length: 17 }, (_, k) => 2 ** k);
const START = (MIXTURE.zeta / 4) * MIXTURE.S * Math.sqrt(2 * MIXTURE.T); // |U_h| after the first step
const EQUAL = (MIXTURE.T * (MIXTURE.S * MIXTURE.zeta) ** 2) / 4; // output of one head at the start
const DRAWS = 16;
const STARTS = { output: ["output at the start", [-1.1, 1.1]], margin: ["tangent margin", [0.42, 0.62]] };

const known = new Map(); // draws by seed, number and law
function drawn(seed, H, law) {
  const key = `${seed} ${H} ${law}`;
  if (known.size > 4000) known.clear();
  if (!known.has(key)) known.set(key, drawSigns(seed, H, law));
  return known.get(key);
}

const spot = (state) => {
  const groups = drawn(state.seed, state.H, state.law);
  const gamma = tangentMargin(groups, MIXTURE);
  const first = outputAlong(groups, 0, MIXTURE);
  const B = Math.max(1, Math.abs(first));
  const c = (2 * B - Math.log(state.eps)) / gamma;
  const loss = (far) => LOSSES.logistic.value(outputAlong(groups, far / Math.SQRT2, MIXTURE));
  return { groups, gamma, first, B, c, loss, far: state.share * Math.SQRT2 * c };
};

export default explorable({
  name: "two_groups",
  title: "Two groups from random signs, and the missing square root of 2",
  defaults: { share: 0.7, H: 16384, eps: 1e-4, law: "signs", start: "output", seed: 1, bet: null },
  build(kit) {
    kit.bet({
      question: "U moves by c, and W moves by c as well. Proposition 7 puts the target at distance c. Is the loss there at most epsilon?",
      options: ["yes", "no, one must go further"],
      outcome: (state) => {
        const { loss, c } = spot(state);
        const holds = loss(c) <= state.eps;
        return `${state.bet === (holds ? 0 : 1) ? "Yes." : "Look again."} With ${state.H} heads the loss at distance c is ${fixed(loss(c), 3)}, at sqrt(2) c it is ${fixed(loss(Math.SQRT2 * c), 3)}. ${holds ? "Attention has bent the output upwards here; the proof cannot count on that." : "The proof goes sqrt(2) c far: both legs have length c."}`;
      },
    });
    const row = kit.row();
    const plane = kit.chart({
      square: true, label: "heads in the plane of their readout and their attention", title: "all heads at once: drag the target (numbers times root H)",
      x: { range: [-20, 20], label: "along U*" }, y: { range: [-20, 20], label: "along W*" },
    }, row);
    const ray = kit.chart({
      label: "loss by distance from the start", title: "loss on the way to the target", height: 300,
      x: { range: [0, 40], label: "distance from the start" }, y: { range: [1e-6, 2], log: true, label: "loss" },
    }, row);
    const below = kit.row();
    below.style.marginTop = "0.6rem";
    const heads = { range: [0.7, 1e5], log: true, ticks: [1, 100, 1e4], label: "heads" };
    const draws = kit.chart({
      label: "output or tangent margin at the start of several draws, by number of heads", title: `at the start: ${DRAWS} draws each`,
      x: heads, y: { range: [-1.1, 1.1], label: STARTS.output[0] },
    }, below);
    const side = kit.row("al-column");
    below.append(side);
    side.style.flex = "1 1 280px";
    const place = () => {
      const controls = kit.controls();
      side.append(controls);
      return controls;
    };
    kit.legend([[0, "heads with sign +; this network"], [1, "heads with sign -; output if all signs were equal"], [5, "infinitely many heads", true], [3, "printed distance c", true], [2, "distance sqrt(2) c"], [4, "epsilon", true]], side);
    const end = plane.handle("end", {
      series: 0, shape: "circle", size: 9, label: "how far the heads have moved",
      move: (x, y) => {
        const { c } = spot(kit.state);
        const first = START * Math.sqrt(kit.state.H) * kit.mean;
        kit.set({ share: Math.max(0, Math.min(1.4, (x - first + y) / (2 * c))) });
      },
      tell: () => `${fixed(kit.state.share)} of the way`,
    });
    kit.slider({ key: "share", label: "part of the way", min: 0, max: 1.4, step: 0.02, parent: place() });
    kit.slider({ key: "H", label: "heads H", values: COUNTS, show: String, parent: place() });
    kit.slider({ key: "eps", label: "epsilon", values: Array.from({ length: 10 }, (_, k) => Number(`1e-${k + 1}`)), show: (x) => x.toExponential(0), parent: place() });
    kit.choice({ key: "start", label: "at the start", options: [["output", "P2: output"], ["margin", "P3: margin"]], parent: place() });
    const controls = place();
    kit.choice({ key: "law", label: "first step", options: [["signs", "random signs"], ["uniform", "uniform on [-1, 1]"]], parent: controls });
    kit.button("Draw again", () => kit.set({ seed: (kit.state.seed % 999) + 1 }), controls);
    return (state) => {
      const { groups, gamma, first, c, loss, far } = spot(state);
      const root = Math.sqrt(state.H);
      const begin = [["plus", 1], ["minus", -1]].map(([name, sign]) =>
        [(START * root * groups[name].sum) / Math.max(1, groups[name].count), sign, groups[name].count]);
      kit.mean = groups.plus.sum / Math.max(1, groups.plus.count);
      const moved = far / Math.SQRT2;
      const low = Math.min(-START * root, 0) - 0.1 * c;
      const width = Math.max(START * root + 1.5 * c - low, 3 * c);
      plane.range({ x: [low, low + width], y: [-width / 2, width / 2] });
      plane.begin();
      begin.forEach(([x, sign, count], k) => {
        if (count === 0) return;
        const to = [x + moved, sign * moved];
        plane.line(`leg${k}`, [x, to[0], to[0]], [0, 0, to[1]], { series: 6, dash: "3 3", width: 1.5 });
        if (moved > 0) plane.arrow(`way${k}`, [x, 0], to, { series: k });
        plane.mark(`from${k}`, x, 0, { series: k, shape: k ? "triangle" : "circle", size: 6, hollow: true });
        if (k) plane.mark("minus", ...to, { series: 1, shape: "triangle", size: 7 });
        plane.text(`n${k}`, x, 0, `${count}`, { dx: -4, dy: k ? 22 : -12, anchor: "middle", series: k });
      });
      const [x0] = begin[0];
      end.put(x0 + moved, moved);
      plane.text("leg", x0 + moved / 2, 0, fixed(moved, 1), { dy: 14, anchor: "middle" });
      plane.text("all", x0 + moved / 2, moved / 2, fixed(far, 1), { dx: -8, dy: -8, anchor: "end" });
      plane.end();
      const last = 1.45 * Math.SQRT2 * c;
      const bottom = 10 ** (Math.floor(Math.log10(state.eps)) - 2);
      ray.range({ x: [0, last], y: [bottom, 2] });
      ray.begin();
      const grid = Array.from({ length: 121 }, (_, k) => (last * k) / 120);
      const shown = (values) => values.map((value) => (value > bottom / 10 ? value : NaN));
      ray.line("eps", [0, last], [state.eps, state.eps], { series: 4, dash: "3 3" });
      ray.line("printed", [c, c], [bottom, 2], { series: 3, dash: "6 4" });
      ray.line("true", [Math.SQRT2 * c, Math.SQRT2 * c], [bottom, 2], { series: 2 });
      ray.line("limit", grid, shown(grid.map((x) => LOSSES.logistic.value(first + (x / Math.SQRT2) * gamma))), { series: 5, dash: "10 4", width: 1.5 });
      ray.line("loss", grid, shown(grid.map(loss)), { series: 0, width: 2.5 });
      if (loss(far) > bottom) ray.mark("here", far, loss(far), { series: 0, size: 6 });
      ray.end();
      const margin = state.start === "margin";
      const [label, extent] = STARTS[margin ? "margin" : "output"];
      draws.options.y = { label };
      draws.key = null;
      draws.range({ y: extent });
      draws.begin();
      if (margin) {
        const goal = tangentMargin({ plus: { count: 1, sum: state.law === "uniform" ? 0.5 : 1 }, minus: { count: 0, sum: 0 } }, MIXTURE);
        draws.line("goal", [0.7, 1e5], [goal, goal], { series: 5, dash: "10 4", width: 1.5 });
      } else draws.line("equal", COUNTS, COUNTS.map((H) => EQUAL * Math.sqrt(H)), { series: 1, width: 2 });
      COUNTS.filter((_, k) => k % 2 === 0 && k <= 12).forEach((H) => {
        for (let s = 0; s < DRAWS; s++) {
          const other = drawn(state.seed + 1000 * s + H, H, state.law);
          draws.mark(`d${H}-${s}`, H, margin ? tangentMargin(other, MIXTURE) : outputAlong(other, 0, MIXTURE), { series: 6, size: 2.5 });
        }
      });
      draws.mark("now", state.H, margin ? gamma : first, { series: 0, size: 6 });
      draws.end();
      kit.say(`${state.H} heads: ${groups.plus.count} with sign +, ${groups.minus.count} with sign -. Output at the start ${fixed(first, 3)}; with equal signs it would be ${fixed(EQUAL * root, 2)}. Tangent margin ${fixed(gamma, 3)}. Moved by ${fixed(moved, 1)} in U and ${fixed(moved, 1)} in W: distance ${fixed(far, 1)}, loss ${fixed(loss(far), 3)}. Printed distance ${fixed(c, 1)}: loss ${fixed(loss(c), 3)}; correct ${fixed(Math.SQRT2 * c, 1)}: loss ${fixed(loss(Math.SQRT2 * c), 3)}; epsilon ${fixed(state.eps, 1)}.`);
      kit.el.dataset.spot = JSON.stringify({ plus: groups.plus, minus: groups.minus, gamma, first, c, far, loss: loss(far) });
    };
  },
  code: (state) => {
    const { groups, far, c } = spot(state);
    const part = ({ count, sum }) => `np.full(${count}, ${count ? Number((sum / count).toPrecision(12)) : 0})`;
    return `import numpy as np
from attnlab import models, problems
from attnbook import theory

seq = problems.tokenized_mixture(n=20, sigma=0.0, rng=0)
alpha = np.concatenate([${part(groups.plus)}, ${part(groups.minus)}])
toward = theory.multihead.theta_star(seq.source, alpha)  # its length is the root of 2
start = alpha[:, None, None] * 0.1 / 4 * theory.multihead.U_star(seq.source)
c = ${Number((far / Math.SQRT2).toPrecision(10))}  # printed distance ${Number(c.toPrecision(6))}
params = {"U": start + c * toward["U"], "W": c * toward["W"]}
print(models.MultiHead(heads=${state.H}).value_and_grad(params, seq)[0])`;
  },
});
