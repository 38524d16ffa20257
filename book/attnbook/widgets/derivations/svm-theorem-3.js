// Theorem 3 of svm: the gradient vanishes along descent and nowhere else, so W grows for ever.
// Twins in attnbook.theory.svm and attnlab.curvature; tests/browser/test_svm_descent.py.

import { derivation } from "../kit/derive.js";
import { python } from "../kit/kit.js";
import { above, attentionAt, dot2, facts, leadsOf, maxMargin, push, size2, unit2 } from "../kit/prompt.js";
import { arrow, circle, group, label, line, power, text } from "../kit/view.js";
import { axes, plane } from "../kit/views.js";

const TRAP = {
  X: [[[0.3, 0.2], [-0.2, 0]], [[-2.1, -2.2], [0.1, -3]], [[-1.2, -1.5], [-0.6, -2.8]]],
  z: [[1, 0], [1, 0], [1, 0]], y: [1, -1, 1], v: [0.4, 1],
};
// Sequence 2 is sequence 1 with the opposite label.
const TORN = { ...TRAP, X: [TRAP.X[0], [...TRAP.X[0]].reverse(), TRAP.X[2]], y: [1, -1, 1] };
// Three tokens with three scores: B.2 fails, and far along the second token's direction B matters.
const UNLIKE = { X: [[[0, 1.5], [-1, -1], [-0.4, -0.5]]], z: [[1, 0]], y: [1], v: [-1, 0.7] };
const AWAY = [-6, -5];
const STEPS = 300;
const RX = [-6.5, 8.5];
const RY = [-5.6, 8.2];
const SIZES = [0.25, 0.5, 0.75, 1];

// The largest singular value of a matrix with two columns.
function spectral(X) {
  let [a, b, c] = [0, 0, 0];
  X.forEach(([x, y]) => { a += x * x; b += x * y; c += y * y; });
  return Math.sqrt((a + c) / 2 + Math.hypot((a - c) / 2, b));
}
// L_W of Lemma 4, for the logistic loss.
export const smoothness = (problem) => problem.X.reduce((sum, X, i) => {
  const [size, v, z] = [spectral(X), size2(problem.v), size2(problem.z[i])];
  return sum + v * z * z * size ** 3 * (v * size / 4 + 3);
}, 0) / problem.X.length;

const gradient = (problem, u) => { const { sum, logScale } = push(problem, u); return sum.map((x) => -x * Math.exp(logScale)); };

function situation(state) {
  const { dropped } = state;
  const problem = dropped.has("alike") ? UNLIKE : dropped.has("feasible") ? TORN : TRAP;
  const u = dropped.has("alike") ? AWAY : state.u;
  const L = smoothness(problem);
  const eta = (dropped.has("step") ? 3 : state.eta) / L;
  const G = gradient(problem, u);
  const square = dot2(G, G);
  const next = [u[0] - eta * G[0], u[1] - eta * G[1]];
  const [here, after] = [above(problem, u), above(problem, next)];
  let at = u;
  let sum = 0;
  for (let k = 0; k < STEPS; k++) {
    const g = gradient(problem, at);
    sum += dot2(g, g);
    at = [at[0] - eta * g[0], at[1] - eta * g[1]];
  }
  const goal = maxMargin(problem);
  const s = attentionAt(problem, u);
  const { slopes, parts, logScale } = push(problem, u);
  let bound = 0;
  if (goal) {
    const { gamma, top } = facts(problem);
    const leads = leadsOf(problem, goal.u);
    gamma.forEach((row, i) => {
      const rest = row.map((_, t) => t).filter((t) => t !== top[i]);
      const missing = rest.reduce((total, t) => total + s[i][t], 0);
      bound += (slopes[i] * Math.min(...rest.map((t) => leads[i][t])) * Math.min(...rest.map((t) => row[top[i]] - row[t])) * s[i][top[i]] * missing) / gamma.length;
    });
  }
  const long = (steps) => { // normalized steps: the same curve, without the wait
    let v = u;
    for (let k = 0; k < steps; k++) { const w = unit2(push(problem, v).sum); v = [v[0] + 0.1 * w[0], v[1] + 0.1 * w[1]]; }
    return v;
  };
  return { problem, u, L, eta, G, square, here, after, fall: here - after, sum, last: above(problem, at), goal, bound, along: goal ? -dot2(G, goal.u) : 0, parts, scale: Math.exp(logScale), long };
}

export default derivation({
  id: "svm-theorem-3",
  defaults: { u: [1.5, 2.5], eta: 1 },
  hypotheses: {
    step: { dropped: "the step is now $3/L$." },
    feasible: { dropped: "sequence 2 is now sequence 1 with the opposite label." },
    alike: { dropped: "one sequence of three tokens with three different scores; $W$ is far out, on the second of them." },
  },
  situation,
  steps: {
    smooth(s) {
      return { names: ["fall of the loss", "guaranteed"], rows: [["one step", s.fall, s.eta * (1 - (s.eta * s.L) / 2) * s.square, "≥", "trained"]], scale: "linear",
        say: s.eta * s.L > 2 ? "Nothing is guaranteed: the right side is negative." : `$L=L_W=$ ${s.L.toFixed(0)} from Lemma 4, and $\\eta=$ ${power(s.eta)}.` };
    },
    half(s) {
      return { names: ["guaranteed", "half a step times the squared gradient"], rows: [["one step", s.eta * (1 - (s.eta * s.L) / 2) * s.square, (s.eta / 2) * s.square, "≥", "bound"]], scale: "linear",
        say: s.eta * s.L > 1 ? "Beyond $1/L$ the guarantee is less than half a step’s worth. (Here the loss may fall all the same, for $L_W$ is generous; the proof does not know.)" : "True exactly for $\\eta ≤ 1/L$." };
    },
    sum(s) {
      return { names: ["left side", "right side"], rows: [[`squared gradients of ${STEPS} steps`, s.sum, (2 * s.here) / s.eta, "≤", "trained"]], scale: "row",
        say: "The right side does not depend on how many steps there are. A sum that stays bounded has terms that vanish." };
    },
    part(s) {
      if (!s.goal) return { names: ["largest margin of a unit $W$", "needed"], rows: [["margin", 0, 0, ">"]], say: "No $W$ puts all best tokens first, so there is no $W^{mm}$. The pulls of sequences 1 and 2 point in opposite directions, and nothing forbids a place where they cancel." };
      return { names: ["push along $W^{mm}$", "bound"], rows: [["positive", s.along, 0, ">", "fro"], ["against Lemma 9’s bound at this $W$", s.along, s.bound, "≥", "fro"]], scale: "row",
        say: s.along <= 0 ? "Training here is busy with the second token and its neighbour, and that leads away from $W^{mm}$." : `Positive, wherever you drag $W$. The bound is ${power(s.bound)} here and has no smallest value.` };
    },
    away(s) {
      const end = s.long(STEPS);
      return { names: ["length later", "length now"], rows: [["length of $W$", size2(end), size2(s.u), ">", "trained"]], scale: "linear", say: "Measured along normalized steps, which follow the same curve without the wait." };
    },
  },
  waterfall(s) {
    return {
      levels: [
        { name: `squared gradients of ${STEPS} steps, measured`, value: s.sum },
        { step: "half", name: "half of each fall kept", value: (2 * (s.here - s.last)) / s.eta },
        { step: "sum", name: "the floor in place of the last loss", value: (2 * s.here) / s.eta, proven: "bound on the sum, proven" },
      ],
      say: "The bound is for infinitely many steps; after a few hundred most of the fall is still to come.",
    };
  },
  data(kit, parent) {
    plane(kit, {
      x: RX, y: RY, parent,
      told: () => { const s = kit.situation; return `W at ${s.u.map((x) => x.toFixed(1)).join(", ")}; the gradient has length ${power(Math.sqrt(s.square))}.`; },
      points: () => { const [x, y] = kit.situation.u; return [{ key: "u", x, y, label: "$W$" }]; },
      can: (state) => !state.drop.includes("alike"),
      move: (_, x, y) => kit.set({ u: [Math.round(100 * x) / 100, Math.round(100 * y) / 100] }),
      draw: (_, at) => {
        const s = kit.situation;
        const P = at(s.u);
        const big = Math.max(...s.parts.map(size2), 1e-300);
        let inner = axes(at, RX, RY);
        if (s.goal) inner += group({ "data-mark": "fro" }, line(...at([0, 0]), ...at(unit2(s.goal.u).map((x) => 30 * x)), { class: "al-stroke-fro", "stroke-width": 1.8, "stroke-dasharray": "8 6" }));
        s.parts.forEach((p, i) => {
          const tip = at([s.u[0] + (2.2 * p[0]) / big, s.u[1] + (2.2 * p[1]) / big]);
          inner += arrow(...P, ...tip, { colour: "best", width: 1.7 }) + (Math.hypot(tip[0] - P[0], tip[1] - P[1]) > 14 ? text(tip[0] + 5, tip[1] - 4, i + 1, { class: "al-label al-halo-text al-text-best" }) : "");
        });
        const way = unit2(s.G).map((x) => -2.6 * x);
        inner += group({ "data-mark": "trained" }, arrow(...P, ...at([s.u[0] + way[0], s.u[1] + way[1]]), { colour: "trained", width: 3 }), circle(P[0], P[1], 7, { class: "al-fill-trained" })
          + text(P[0] + 10, P[1] + 16, label("$W$"), { class: "al-label al-halo-text al-text-trained" }));
        return inner;
      },
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "eta", label: "step, in units of 1/L", values: SIZES, show: (x) => String(x), parent: controls });
  },
  code: (state) => `import numpy as np
from attnbook import theory
from attnlab import curvature, models, optim, problems, svm

problem = problems.TokenProblem(
    X=${python(TRAP.X)},
    z=${python(TRAP.z)}, y=${python(TRAP.y)}, v=${python(TRAP.v)})
model = models.Attention()
W = np.array([[${state.u[0]}, 0.0], [${state.u[1]}, 0.0]])
eta = ${state.eta} / float(curvature.smoothness(model, problem).W)
run = optim.train(model, problem, optim.GD(eta), ${STEPS}, params={"W": W},
                  record=["grad_norm", "excess"])
total = (run.history["grad_norm"][:-1] ** 2).sum()
print(total, "<=", 2 * run.history["excess"][0] / eta)`,
});
