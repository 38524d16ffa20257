// Why Theorem 4 of svm fails for two sequences: which of two opposed features wins the race.
// Twins: theory.svm.opposing_threshold, features, score_gaps; tests/browser/test_svm_global.py.

import { gradient } from "../kit/core.js";
import { derivation } from "../kit/derive.js";
import { fixed, python } from "../kit/kit.js";
import { follow, gram, logWeights, loosened, maxMargin, separatrix, share, threshold } from "../kit/two_features.js";
import { dot } from "../kit/vectors.js";
import { arrow, circle, label, line, path, percent, power, text } from "../kit/view.js";
import { plane } from "../kit/views.js";

const FIRST = [1, 0];
const BOX = { x: [-3, 11], y: [-11, 3] };
const STEPS = [0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 200, 400, 1000];

// The 2 x 2 problem with these features and score gaps; W's first column meets the query.
export function problemOf(f, gaps) {
  const [[a, b], [c, d]] = f;
  const det = a * d - b * c;
  const v = [(d * gaps[0] - b * gaps[1]) / det, (a * gaps[1] - c * gaps[0]) / det];
  return { X: f.map((x) => [x.map((u) => u / 2), x.map((u) => -u / 2)]), z: [[1, 0], [1, 0]], y: [1, 1], v };
}
const solve = ([[a, b], [c, d]], [x, y]) => [(d * x - b * y) / (a * d - b * c), (a * y - c * x) / (a * d - b * c)];

function situation(state) {
  const opposed = !state.dropped.has("opposing");
  const f = [FIRST, opposed ? state.f : [-0.8, state.f[1]]];
  const gaps = [state.dropped.has("shared") ? 0 : 1, 0.12];
  const G = gram(f);
  const start = state.m.map((x) => (state.dropped.has("far") ? 2 * x : x));
  const m = follow(start, G, gaps, state.k).pop();
  const logs = logWeights(m, gaps);
  const alone = state.dropped.has("shared");
  const w = [alone ? 0 : Math.exp(logs[0]), Math.exp(logs[1])];
  const p = solve(f, m);
  const found = gradient(problemOf(f, gaps), [[p[0], 0], [p[1], 0]]);
  const down = found.G.map((row) => -Math.exp(found.logScale) * row[0]);
  const along = solve(f, maxMargin(G));
  const cos = (a, b) => dot(a, b) / Math.hypot(...a) / Math.hypot(...b);
  return { f, gaps, G, start, m, w, ratio: alone ? Infinity : w[1] / w[0], theta: threshold(G), p, down, k: state.k, alone,
    ...loosened(m, gaps), wrong: cos(p, FIRST), right: cos(p, along), between: cos(FIRST, along) };
}

const line2 = (s) => Math.log((4 * s.rho) / s.theta);

export default derivation({
  id: "svm-theorem-4",
  beside: true,
  defaults: { f: [-1.6, 0.5], m: [0.405, 1.735], k: 80 },
  hypotheses: {
    opposing: { dropped: "$f_2$ now reaches back less far than $f_1$ is long." },
    shared: { dropped: "the two tokens of sequence 1 now score the same: it does not pull, and only one sequence is left." },
    far: { dropped: "$W$ now starts twice as far out, where both best tokens are well ahead." },
  },
  situation,
  steps: {
    weights(s) {
      const mine = s.f[0].map((_, a) => s.w[0] * s.f[0][a] + s.w[1] * s.f[1][a]);
      return { names: ["the gradient of the loss", "two features, weighted"], rows: [["entry $(1,1)$", s.down[0], mine[0], "=", "trained"], ["entry $(2,1)$", s.down[1], mine[1], "=", "trained"]], scale: "linear",
        say: `An identity. Now $w_1=$ ${power(s.w[0])} and $w_2=$ ${power(s.w[1])}.` };
    },
    leads(s) {
      const rates = s.f.map((x) => dot(x, s.down));
      const [[a, c], [, b]] = s.G;
      return { names: ["how fast the lead grows", "own push and the other's pull"], scale: "linear",
        rows: [["$m_1$", rates[0], s.w[0] * a + s.w[1] * c, "=", "first"], ["$m_2$", rates[1], s.w[0] * c + s.w[1] * b, "=", "feature"]],
        say: `An identity. Sequence 1 moves the lead of sequence 2 by ${power(s.w[0] * c)}, its own push moves it by ${power(s.w[1] * b)}.` };
    },
    race(s) {
      const [[a, c], [, b]] = s.G;
      const rates = s.f.map((x) => dot(x, s.down));
      if (s.alone) return { names: ["weight of sequence 1", "needed"], rows: [["$w_1$", 0, 0, ">"]], say: "Without sequence 1 there is nothing to pull sequence 2 back: its lead only grows. This is why the theorem is true for one sequence." };
      return { names: ["left side", "right side"], scale: "row",
        rows: [["how far $f_2$ reaches back, against $\\|F_1\\|^2$", -c, a, ">", "feature"], ["speed of the race, over $w_1$", (-rates[1] - rates[0]) / s.w[0], -c - a - s.ratio * (b + c), "=", "trained"]],
        say: -c > a ? `So the threshold is $\\theta=$ ${fixed(s.theta, 3)}; now $w_2/w_1=$ ${fixed(s.ratio, 3)}.` : "The first bracket is not positive: the wrong lead of sequence 2 never outruns the right one of sequence 1, whatever the weights are." };
    },
    fade(s) {
      return { names: ["$w_2/w_1$", "bound"], rows: [["ratio of the weights", s.ratio, s.bound, "≤", "trained"]], scale: "row",
        say: `The distance $|m_2|-m_1$ is ${fixed(s.apart, 2)}. Each unit of it divides the bound by $e$.` };
    },
    trap(s) {
      const inside = s.m[1] < 0 && s.m[0] > 0 && s.apart > line2(s);
      const heading = s.wrong > 0 && s.m[1] < 0 && s.ratio < s.theta;
      return { names: ["now", "needed"], scale: "row",
        rows: [...(s.m[1] < 0 ? [["$|m_2|-m_1$", s.apart, line2(s), ">", "trained"]] : []), ["$w_2/w_1$ against $\\theta$", s.ratio, s.theta, "<"]],
        ok: inside ? "yes" : heading ? "soon" : s.start[1] > 2.5 || s.k > 60 ? "no" : "soon",
        say: inside ? "Inside. From here on the race only speeds up, and nothing turns it." : s.m[1] > 0 ? (s.start[1] > 2.5 ? "Sequence 2 still leads rightly: it was so far ahead that sequence 1 was done before it could pull it over." : "Sequence 2 still leads rightly. More steps.") : "Not inside yet. More steps." };
    },
    limit(s) {
      return { names: ["cosine of $W$ now", "limit"], rows: [["with $F_1$", s.wrong, 1, "→", "violation"], ["with $W^{mm}$", s.right, s.between, "→", "fro"]], scale: "linear", range: [-1, 1],
        ok: s.wrong > 0.98 ? "yes" : "soon", say: `After ${s.k} steps the cosine with $F_1$ is ${fixed(s.wrong, 3)}, and with $W^{mm}$ it is ${fixed(s.right, 3)}. Theorem 4 says that the second tends to 1; it tends to ${fixed(s.between, 3)}.` };
    },
  },
  waterfall(s) {
    return {
      levels: [
        { name: "$w_2/w_1$, measured", value: s.ratio },
        { step: "fade", name: "loss slopes at their worst", value: s.slopes },
        { step: "fade", name: "softmax factors, rounded", value: s.bound, proven: `bound (θ is ${fixed(s.theta, 3)})` },
      ],
      say: s.bound < s.theta ? `The bound is below $\\theta=$ ${fixed(s.theta, 3)}: sequence 2 is lost, proven.` : `The bound is still above $\\theta=$ ${fixed(s.theta, 3)}. What is proven begins a little deeper than what is true.`,
    };
  },
  data(kit, parent) {
    plane(kit, {
      ...BOX, parent, name: "plane al-phase",
      told: () => { const s = kit.situation; return `Attention on the best tokens: ${s.m.map(share).map(percent).join(" and ")}; start at ${s.start.map(share).map(percent).join(" and ")}.`; },
      points: (state) => [{ key: "m", x: kit.situation.start[0], y: kit.situation.start[1], label: "start of training" }].filter(() => !state.drop.includes("far")),
      move: (_, x, y) => kit.set({ m: [x, y] }),
      draw: (state, at, { w, h }) => {
        const s = kit.situation;
        const O = at([0, 0]);
        let inner = line(0, O[1], w, O[1], { class: "al-axis" }) + line(O[0], 0, O[0], h, { class: "al-axis" })
          + text(w - 5, O[1] - 6, label("$m_1$"), { class: "al-label al-halo-text", "text-anchor": "end" }) + text(O[0] + 6, 14, label("$m_2$"), { class: "al-label al-halo-text" });
        if (s.theta > 0 && !s.alone) {
          const [low, high] = [Math.min(BOX.x[0], BOX.y[0]), Math.max(BOX.x[1], BOX.y[1])];
          inner += path(separatrix(s.G, s.gaps, [low, high]).map(at), { class: "al-curve al-stroke-violation", "stroke-width": 2 });
          const d = line2(s);
          const from = Math.max(0, -d);
          inner += line(...at([from, -from - d]), ...at([BOX.x[1] + 1, -BOX.x[1] - 1 - d]), { class: "al-stroke-bound", "stroke-width": 2, "stroke-dasharray": "6 5" })
            + text(...at([0.3, -10.4]), "below: proven", { class: "al-small al-halo-text al-text-bound" });
        }
        const far = at([4, 4].map((x, i) => maxMargin(s.G)[i] * x));
        inner += line(...O, ...far, { class: "al-stroke-fro", "stroke-dasharray": "8 6", "stroke-width": 2 });
        inner += path(follow(s.start, s.G, s.gaps, Math.min(state.k, 200)).map(at), { class: "al-curve al-stroke-trained" });
        const here = at(s.m);
        inner += circle(...at(s.start), 7, { class: "al-stroke-trained al-fill-on", "stroke-width": 2.5 });
        if (here[0] < w && here[1] < h && here[0] > 0 && here[1] > 0) inner += circle(...here, 5, { class: "al-fill-trained", "data-mark": "trained" });
        const way = s.f.map((x) => dot(x, s.down));
        const size = Math.hypot(...way) || 1;
        if (here[1] < h) inner += arrow(...here, here[0] + (34 * way[0]) / size, here[1] - (34 * way[1]) / size, { colour: "trained" });
        return inner;
      },
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "k", label: "training steps", values: STEPS, show: String, parent: controls });
  },
  code: (state) => `import numpy as np
from attnbook import theory

f = np.array([[1.0, 0.0], ${python(state.f)}])
print(theory.svm.opposing_threshold(f @ f.T))`,
});
