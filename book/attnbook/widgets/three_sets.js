// Lemma 7's proof as a strip: violated, barely kept or well kept, sample by sample and over time.

import { gapSet, normThreshold } from "./kit/bias_rates.js";
import { explorable, fixed } from "./kit/kit.js";

const DATA = ["paper", "pairs"];
const STRENGTH = { 1: 0.95, 2: 0.6, 3: 0.25 };
const SERIES = { 1: 1, 2: 4, 3: 0 };

let stepsSeen = []; // for the code to copy

export default explorable({
  name: "three_sets",
  title: "The three sets of the proof, as training runs",
  defaults: { k: 70, eps: 0.5, data: 1, bet: null },
  build(kit) {
    const steps = kit.list("step");
    stepsSeen = steps;
    const count = steps.length;
    const all = DATA.map((name) => ({
      n: kit.data(`gap_${name}`).shape[1],
      gap: kit.data(`gap_${name}`).values,
      weight: kit.data(`weight_${name}`).values,
      sides: kit.data(`sides_${name}`).values,
      facts: kit.list(`facts_${name}`),
    }));
    kit.bet({
      question: "Late in training, which samples hold the gradient?",
      options: ["those whose constraints are well kept", "those whose constraints are violated or barely kept", "all alike"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} The weight of a sample dies like e to the minus its margin; at the end of the scale less than a millionth is left outside the first set (epsilon 0.5, both data).`,
    });
    const row = kit.row();
    const strip = kit.chart({
      label: "set of each sample by step", title: "each sample (a row) in I1, I2 or I3",
      x: { range: [1, steps[count - 1]], log: true, label: "step" }, y: { range: [0, 1], ticks: [], label: "sample" },
    }, row);
    const dots = kit.chart({
      label: "gap and weight of each sample", title: "now: its gap, and its share of the gradient",
      x: { range: [-2, 4], label: "gap delta: margin above 1" }, y: { range: [1e-8, 2], log: true },
    }, row);
    kit.legend([[1, "I1: violated or barely kept"], [4, "I2: kept, small gap"], [0, "I3: well kept"], [3, "0.3 nu and 0.8 nu", true]]);
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.slider({ key: "eps", label: "epsilon", min: 0.05, max: 0.8, step: 0.05, parent: controls });
    kit.choice({ key: "data", label: "data", options: [[0, "Figure 2, 20 samples"], [1, "12 pairs of tokens"]], parent: controls });
    return (state) => {
      const k = Math.min(state.k, count - 1);
      const { n, gap, weight, sides, facts } = all[state.data];
      const nu = state.eps / (1 - state.eps);
      const set = (t, i) => gapSet(gap[t * n + i], state.eps);
      const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => gap[(count - 1) * n + a] - gap[(count - 1) * n + b]);
      strip.begin();
      order.forEach((i, place) => {
        const [low, high] = [1 - (place + 0.92) / n, 1 - (place + 0.08) / n];
        let from = 0;
        for (let t = 1; t <= count; t++) { // one bar for each stretch in one set
          if (t < count && set(t, i) === set(from, i)) continue;
          const left = from ? Math.sqrt(steps[from - 1] * steps[from]) : steps[0];
          const right = t < count ? Math.sqrt(steps[t - 1] * steps[t]) : steps[count - 1];
          strip.rect(`r${i}-${from}`, [left, low], [right, high], { series: SERIES[set(from, i)], strength: STRENGTH[set(from, i)] });
          from = t;
        }
      });
      strip.line("now", [steps[k], steps[k]], [0, 1], { series: 3, width: 2.5 });
      strip.end();
      const counts = { 1: 0, 2: 0, 3: 0 };
      const shares = { 1: 0, 2: 0, 3: 0 };
      dots.begin();
      [0.3, 0.8].forEach((c) => dots.line(`edge${c}`, [c * nu, c * nu], [1e-9, 3], { series: 3, dash: "5 4" }));
      for (let i = 0; i < n; i++) {
        const which = set(k, i);
        counts[which] += 1;
        shares[which] += weight[k * n + i];
        const x = Math.max(-1.95, Math.min(3.95, gap[k * n + i]));
        dots.mark(`d${i}`, x, Math.max(weight[k * n + i], 1.3e-8), { series: SERIES[which], shape: ["", "triangle", "square", "circle"][which], size: 5 });
      }
      dots.end();
      const [toward, along, size] = sides.slice(3 * k, 3 * k + 3);
      const R = normThreshold(state.eps, facts);
      const holds = toward >= (1 - state.eps) * along;
      kit.say(`Step ${steps[k]}, epsilon ${fixed(state.eps)}: ${counts[1]} samples in I1, ${counts[2]} in I2, ${counts[3]} in I3, with shares ${fixed(shares[1], 3)}, ${fixed(shares[2], 3)}, ${fixed(shares[3], 3)} of the gradient. Along W_mm the unit step has ${fixed(toward, 4)}, along W ${fixed(along, 4)}: ${holds ? "the inequality of Lemma 7 holds" : "the inequality of Lemma 7 fails"}. |W| = ${fixed(size, 1)}; the lemma speaks from ${fixed(R, 0)} on.`);
      Object.assign(kit.el.dataset, {
        step: String(steps[k]), counts: JSON.stringify([counts[1], counts[2], counts[3]]),
        shares: JSON.stringify([shares[1], shares[2], shares[3]]),
        holds: String(holds), toward: String(toward), along: String(along), threshold: String(R),
      });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm
from attnbook import theory

${state.data ? "problem, step = problems.sphere(n=12, T=2, d=4, min_gap=0.2, rng=2), 0.1" : "problem, step = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0), 0.025"}
goal = svm.attention_svm(problem)
model = models.Attention(loss="exponential", start="zero")
run = optim.train(model, problem, optim.NormalizedGD(step), steps=${stepsSeen[Math.min(state.k, stepsSeen.length - 1)]})
W = run.params["W"] * goal.norm / np.linalg.norm(run.params["W"])
margins = theory.svm.token_margins(problem, W)
others = np.arange(problem.T) != problem.optimal[:, None]
gap = np.where(others, margins, np.inf).min(axis=-1) - 1
print(theory.bias.gap_set(gap, eps=${state.eps}))`,
});
