// Theorem 2 of svm: the best W of length R turns to the max-margin direction as R grows.
// Every number has its twin in attnlab or attnbook.theory.svm; tests/browser/test_derivations.py.

import { attention, attentionSVM, optimal, scores } from "../kit/core.js";
import { derivation } from "../kit/derive.js";
import { fixed, python } from "../kit/kit.js";
import { sigmoid } from "../kit/losses.js";
import { logExcess, logSum, missed, pathPoint, regularizationPath } from "../kit/sphere.js";
import { apply, combine, cosine, norm, zeros } from "../kit/vectors.js";
import { arrow, html, percent } from "../kit/view.js";
import { axes, plane, tokens } from "../kit/views.js";

const RADII = Array.from({ length: 41 }, (_, k) => Number((2 * 50 ** (k / 40)).toPrecision(3))); // 2 to 100
const COARSE = RADII.filter((_, k) => k % 4 === 0);
const LEAST = Math.log10(1e-36);
const PLANE = { x: [-1.6, 1.6], y: [-1.15, 1.35] };
const exp10 = (e) => 10 ** e;
const times = (c, W) => combine(c, W, 0, W);

// The data as they are, or with a hypothesis violated.
function instance({ X, z, dropped }) {
  const problem = { X: X.map((rows) => rows.map((x) => x.slice())), z, y: X.map(() => 1), v: [0, 1] };
  if (dropped.has("unique")) { // the token of sequence 1 that is farthest beside the best comes level
    const top = problem.X[0][optimal(problem)[0]];
    const aside = problem.X[0].map((x) => Math.abs(x[0] - top[0]));
    problem.X[0][aside.indexOf(Math.max(...aside))][1] = top[1];
  }
  if (dropped.has("feasible")) { // the same tokens and query, and the opposite label
    return { ...problem, X: [problem.X[0], problem.X[0]], z: [z[0], z[0]], y: [1, -1] };
  }
  return problem;
}

// Margins of W over every rival, [sequence][token]; the best token's own entry is null.
export const margins = (problem, W) => problem.X.map((X, i) => {
  const b = optimal(problem)[i];
  const a = apply(X, apply(W, problem.z[i]));
  return a.map((x, t) => (t === b ? null : a[b] - x));
});

// B and c of a linear head, and how steep and how flat the loss is between the scores.
// Twins: theory.svm.score_constants, curvature.loss_constants.
export function constants(problem, flat = false) {
  const gamma = scores(problem);
  const widest = Math.max(...problem.X.flatMap((X) => X.flatMap((x) => X.map((w) => Math.hypot(...x.map((u, k) => u - w[k]))))));
  const c = Math.min(...gamma.map((row) => {
    const top = Math.max(...row);
    return Math.min(...row.filter((g) => g < top).map((g) => top - g));
  }));
  const [low, high] = [Math.min(...gamma.flat()), Math.max(...gamma.flat())];
  return { B: widest * Math.hypot(...problem.v), c, steepest: flat ? 1 : sigmoid(-low), flattest: flat ? 0 : sigmoid(-high) };
}

// By how much the best token leads, over all rivals: 0 where two are best.
const leadOf = (problem) => Math.min(...scores(problem).map((row, i) =>
  Math.min(...row.map((g, t) => (t === optimal(problem)[i] ? Infinity : row[optimal(problem)[i]] - g)))));

const logSizes = ({ B, c, steepest, flattest }, n, T) => Math.log((8 * steepest * T * n * B) / (flattest * c));

function situation(state) {
  const problem = instance(state);
  const flat = state.dropped.has("falling");
  const R = state.R;
  const n = problem.X.length;
  const T = problem.X[0].length;
  const goal = attentionSVM(problem);
  if (goal.status !== "optimal") return { problem, R, n, T, goal, W: zeros(2, 2), flat };
  const xi = 1 / norm(goal.W);
  const found = flat ? pathPoint(problem, RADII[0], goal) : state.dropped.has("minimal") ? elsewhere(problem, R) : pathPoint(problem, R, goal);
  const W = found.W;
  const k = constants(problem, flat);
  const gaps = margins(problem, W).map((row) => row.map((m) => (m === null ? null : m / (R * xi))));
  const delta = 1 - Math.min(...gaps.flat().filter((m) => m !== null));
  const along = times(R * xi, goal.W);
  const excess = flat ? { ln: -Infinity } : { ln: logExcess(problem, W).value };
  const excessAlong = flat ? { ln: -Infinity } : { ln: logExcess(problem, along).value };
  const above = { ln: Math.log(k.steepest * T * k.B) - R * xi };
  const below = { ln: Math.log((k.flattest * k.c) / (4 * n)) - softplus((1 - delta) * R * xi) };
  const size = logSizes(k, n, T);
  return { problem, R, n, T, goal, xi, W, sine: found.sine, flat, ...k, lead: leadOf(problem), gaps, delta, along, excess, excessAlong, above, below, size, reach: size / (R * xi) };
}

const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

// A W of length R that selects another token: not the best of its ball.
function elsewhere(problem, R) {
  const gamma = scores(problem);
  const tops = optimal(problem);
  for (let i = 0; i < tops.length; i++) {
    const order = gamma[i].map((_, t) => t).sort((a, b) => gamma[i][b] - gamma[i][a]);
    const other = attentionSVM(problem, tops.map((b, j) => (j === i ? order[1] : b)));
    if (other.status === "optimal") return { W: times(R / norm(other.W), other.W), sine: NaN };
  }
  return pathPoint(problem, R);
}

const LOSS = ["loss above its floor", "bound"];

const toldOf = (s, i) => `Sequence ${i + 1}: ${attention(s.problem, s.W)[i].map((p, t) => `token ${t + 1} ${percent(p)} of the attention`).join(", ")}`;

export default derivation({
  id: "svm-theorem-2",
  defaults: {
    R: 16, X: [[[-0.9, 1], [-0.8, -0.7], [0.4, -0.9]], [[-0.2, 1.1], [1.2, 0.7], [-1.1, -0.7]]],
    z: [[-0.46, 0.89], [-0.83, -0.56]],
  },
  hypotheses: {
    feasible: { dropped: "Sequence 2 is now sequence 1 with the opposite label: no $W$ can rank its best token first in both." },
    unique: { dropped: "Another token of sequence 1 has been raised until it scores the same as the best." },
    falling: { dropped: "The loss is now flat once the mean score is good enough: $\\max(0,a-u)$." },
    minimal: { dropped: "$W$ now points where the second best token of a sequence wins: it is not the best of its ball." },
  },
  situation,
  steps: {
    rival(s) {
      if (s.goal.status !== "optimal") {
        return { names: ["largest margin of a unit $W$", "needed"], rows: [["margin $\\Xi$", 0, 0, ">"]], say: "No $W$ puts both best tokens first, so there is no $W^{mm}$: the proof has no direction to walk in." };
      }
      const far = missed(s.problem, s.along);
      const bound = { ln: Math.log(s.T - 1) - s.R * s.xi };
      const rows = far.map(({ b, logS }, i) => {
        const others = logSum(logS.filter((_, t) => t !== b));
        return [`sequence ${i + 1}`, { ln: others }, bound, "≤", "rival"];
      });
      return { names: ["attention on all rivals", "$(T-1)e^{-R\\,\\Xi}$"], rows, scale: "log", range: [exp10(LEAST), 1], say: `At length ${fixed(s.R, 0)} every margin is at least $R\\,\\Xi=$ ${fixed(s.R * s.xi, 1)}.` };
    },
    above(s) {
      const rows = [
        ["the best $W$ of length $R$, against $R\\,\\Xi\\,W^{mm}$", s.excess, s.excessAlong, "≤", "trained"],
        ["$R\\,\\Xi\\,W^{mm}$, against the bound", s.excessAlong, s.above, "≤", "fro"],
      ];
      const worse = !holdsLess(s.excess, s.excessAlong);
      return { names: ["smaller", "larger"], rows, scale: "log", range: [exp10(LEAST), 10],
        say: worse ? "Another $W$ may be far worse than the max-margin direction, and nothing bounds its loss." : "Being the minimiser is used once, here: it is no worse than the max-margin direction of the same length." };
    },
    below(s) {
      const rows = [
        ["least slope of the loss, $c_\\ell$", s.flattest, 0, ">"],
        ["least lead of a best token, $c$", s.lead, 0, ">", "best"],
        ["the best $W$, against the price of its smallest margin", s.excess, s.below, "≥", "trained"],
      ];
      return { names: LOSS, rows, scale: "log", range: [exp10(LEAST), 10],
        say: s.flattest === 0 ? "A flat loss charges nothing: a short $W$ is content, and its margins stay where they are."
          : s.lead === 0 ? `The smallest margin is over the token that scores the same. Missing it costs nothing, and the bound says it should.`
            : `The smallest margin is ${fixed(1 - s.delta, 3)} of what $W^{mm}$ has, so $\\delta=$ ${fixed(s.delta, 3)}, and some rival keeps that much attention.` };
    },
    squeeze(s) {
      const rows = [["lower against upper bound", s.below, s.above, "≤"], ["$\\delta$ against its bound", s.delta, s.reach, "≤", "rival"]];
      const early = s.R * s.xi <= s.size;
      return { names: ["left side", "right side"], rows, scale: "row",
        ok: early ? "soon" : undefined, curve: () => curveOf(s),
        say: early ? `$R\\,\\Xi=$ ${fixed(s.R * s.xi, 1)} is still below $\\log(8CTnB/c)=$ ${fixed(s.size, 1)}: the bound is above 1 and says nothing yet.`
          : `$\\delta=$ ${fixed(s.delta, 4)}, and no larger than ${fixed(s.reach, 4)}. Both fall like $1/R$.` };
    },
    angle(s) {
      const sum = s.goal.multipliers.reduce((a, b) => a + b, 0);
      const rows = [["sum of multipliers, $\\|W^{mm}\\|^2$", sum, norm(s.goal.W) ** 2, "=", "fro"], ["$1-\\cos$ of the angle, $\\delta$", 1 - cosine(s.W, s.goal.W), s.delta, "≤", "trained"]];
      return { names: ["left side", "right side"], rows, scale: "row", say: `The angle is ${fixed(angle(s), 2)}°; $\\delta$ alone would allow ${fixed(degrees(Math.acos(Math.max(-1, 1 - s.delta))), 1)}°.` };
    },
    limit(s) {
      const early = s.reach >= 1;
      const rows = [["$1-\\cos$ of the angle, against the bound", 1 - cosine(s.W, s.goal.W), s.reach, "≤", "trained"]];
      return { names: ["measured", "proven"], rows, ok: early ? "soon" : undefined, scale: "log", range: [1e-7, 10], curve: () => curveOf(s, true),
        say: early ? "A longer $W$ is needed before the bound is below 1." : `Proven: within ${fixed(degrees(Math.acos(1 - s.reach)), 0)}°. Measured: ${fixed(angle(s), 2)}°.` };
    },
  },
  waterfall(s) {
    if (s.reach >= 1) return { levels: [{ name: "bound", value: s.reach }], say: "The bound is above 1 at this length: make $R$ longer." };
    // the delta that each bound on the loss still allows, through the price of a missed margin
    const price = Math.log((s.flattest * s.c) / (4 * s.n));
    const allowed = (ln) => 1 - logExpm1(price - ln) / (s.R * s.xi);
    const away = 1 - cosine(s.W, s.goal.W);
    return {
      levels: [
        { name: "$1-\\cos$ of the angle, measured", value: away },
        { step: "angle", name: "all margins as bad as the worst", value: s.delta },
        { step: "below", name: "the price of a miss, rounded down", value: allowed(s.excess.ln) },
        { step: "above", name: "$W^{mm}$ in place of the best $W$", value: allowed(s.excessAlong.ln) },
        { step: "above", name: "its loss, rounded up", value: allowed(s.above.ln) },
        { step: "squeeze", name: "$1+e^x ≤ 2e^x$", value: s.reach, proven: "$\\log(8CTnB/c)/(R\\,\\Xi)$, proven" },
      ],
      say: `The proof promises $1-\\cos ≤$ ${fixed(s.reach, 3)}; measured is ${fixed(away, 7)}. Most is lost where one margin stands for all of them.`,
    };
  },
  data(kit, parent) {
    const pair = kit.row("al-pair");
    parent.append(pair);
    kit.state.X.forEach((_, i) => {
      const place = kit.row("al-column");
      pair.append(place);
      kit.caption(`Sequence ${i + 1}`, place);
      plane(kit, {
        ...PLANE, parent: place,
        told: () => toldOf(kit.situation, i),
        points: () => kit.situation.problem.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}` })),
        can: (state) => i === 0 || !state.drop.includes("feasible"),
        move: (key, x, y) => {
          const X = kit.state.X.map((rows) => rows.map((x0) => x0.slice()));
          X[i][Number(key[2])] = [x, y];
          kit.set({ X });
        },
        draw: (_, at, { w }) => {
          const s = kit.situation;
          const b = optimal(s.problem)[i];
          const support = s.goal.status === "optimal" ? s.goal.support[i] : [];
          const way = (W, colour) => {
            const u = apply(W, s.problem.z[i]);
            const size = Math.hypot(...u);
            return size > 0 ? arrow(...at([0, 0]), ...at(u.map((x) => x / size)), { colour, "data-mark": colour }) : "";
          };
          return axes(at, PLANE.x, PLANE.y) + (support.length ? way(s.goal.W, "fro") : "") + way(s.W, "trained")
            + tokens(s.problem.X[i], attention(s.problem, s.W)[i], at, { kind: (t) => (t === b ? "best" : support[t] ? "rival" : "other"), area: Math.min(22, w / 14), seq: i + 1 });
        },
      });
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "R", label: "length R", values: RADII, show: (x) => fixed(x, 1), parent: controls });
    const key = kit.row("al-keys");
    key.innerHTML = [["trained", "where $\\bar W_R$ sends the query"], ["fro", "where $W^{mm}$ does"]].map(([colour, words]) =>
      `<span class="al-text-${colour}" data-mark="${colour}">→ ${html(words)}</span>`).join("");
    parent.append(key);
  },
  code: (state) => `import numpy as np
from attnlab import models, problems, svm
from attnbook import theory

problem = problems.TokenProblem(X=${python(state.X)}, z=${python(state.z)},
                                y=${python(state.X.map(() => 1))}, v=[0, 1])
goal = svm.attention_svm(problem)
path = svm.regularization_path(models.Attention(), problem, radii=[${state.R}])
print("1 - cosine", 1 - svm.correlation(path.W[0], goal.W))`,
});

const logExpm1 = (x) => (x > 30 ? x : x > 0 ? Math.log(Math.expm1(x)) : -Infinity);
const degrees = (radians) => (180 * radians) / Math.PI;
const angle = (s) => degrees(Math.acos(Math.min(1, cosine(s.W, s.goal.W))));
const holdsLess = (a, b) => a.ln <= b.ln + 1e-9 * Math.max(1, Math.abs(b.ln) === Infinity ? 1 : Math.abs(b.ln));

// delta, or 1 - cos, over R, with its bound; kept while data and hypotheses stay.
let kept = {};
function curveOf(s, cosines = false) {
  const key = JSON.stringify([s.problem, s.flat]);
  if (kept.key !== key) kept = { key, path: regularizationPath(s.problem, COARSE, s.goal) };
  const measured = kept.path.map(({ W }, k) => {
    if (cosines) return Math.max(1 - cosine(W, s.goal.W), 1e-12);
    return 1 - Math.min(...margins(s.problem, W).flat().filter((m) => m !== null)) / (COARSE[k] * s.xi);
  });
  const now = cosines ? 1 - cosine(s.W, s.goal.W) : s.delta;
  return {
    x: COARSE, at: s.R, label: "length $R$", y: cosines ? [1e-6, 10] : [1e-3, 10],
    series: [[measured, "a"], [COARSE.map((R) => s.size / (R * s.xi)), "b"]], dots: [[now, "a"], [s.reach, "b"]],
    heard: `measured and proven over R; at R = ${fixed(s.R, 1)}: ${now.toPrecision(3)} and ${s.reach.toPrecision(3)}`,
  };
}
