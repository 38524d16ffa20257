// Selections of tokens that hold training: the constants of Theorem 7, and where starts end.
// One query, as in prompt.js. Twins in attnbook.theory.svm: local_constants, lemma_13_bounds,
// lemma_14_radius.

import { facts, maxMargin, size2 } from "./prompt.js";

// Searched for: the second best token does not hold training, the second worst does.
export const FIVE = {
  X: [[[1.4, -1], [1.9, -0.3], [1.9, 0.5], [-1.6, -0.4], [-0.3, -1.4]]],
  z: [[1, 0]], y: [1], v: [0.2, 0.8],
};

const kept = new Map();
const keep = (key, make) => {
  if (!kept.has(key)) {
    if (kept.size > 40) kept.delete(kept.keys().next().value);
    kept.set(key, make());
  }
  return kept.get(key);
};
// A problem of one sequence, the same object for the same places.
export const problemOf = (X) => keep(`p${JSON.stringify(X)}`, () => ({ ...FIVE, X: [X] }));

// Margin, support, whether the selection outscores its support tokens; null where none separates.
export function selected(problem, tokens) {
  return keep(`s${JSON.stringify([problem.X, tokens])}`, () => {
    const goal = maxMargin(problem, tokens);
    if (!goal) return null;
    const { gamma } = facts(problem);
    const local = gamma.every((row, i) => row.every((g, t) => !goal.support[i][t] || g < row[tokens[i]]));
    return { ...goal, local };
  });
}

// delta, A, mu, Gamma, gap and R of (67) and (74); `printed` forgets sequences without support.
export function localConstants(problem, tokens, goal, printed = false) {
  const { gamma } = facts(problem);
  const T = problem.X[0].length;
  let [delta, gap, span, reach] = [Infinity, Infinity, 0, 0];
  problem.X.forEach((X, i) => {
    const far = X.map((_, t) => t !== tokens[i] && !goal.support[i][t]);
    const bare = !goal.support[i].some(Boolean);
    const least = Math.min(...goal.margins[i].filter((_, t) => far[t]), Infinity);
    let beyond = (least - 1) / 2;
    if (bare) beyond = printed ? Infinity : beyond / 2;
    delta = Math.min(delta, beyond);
    gamma[i].forEach((g, t) => { if (goal.support[i][t]) gap = Math.min(gap, gamma[i][tokens[i]] - g); });
    span = Math.max(span, Math.max(...gamma[i]) - Math.min(...gamma[i]));
    X.forEach((x) => { reach = Math.max(reach, size2(x) * size2(problem.z[i]) * goal.size); });
  });
  const mu = (Math.min(0.5, delta) / reach) ** 2 / 8;
  const radius = goal.size * Math.max(2, 1 / delta) * Math.log((64 * T * span * reach) / gap);
  return { delta, reach, mu, span, gap, norm: goal.size, radius };
}

// From this length on Theorem 7 promises that training stays in the cone: R of (80), with R of
// Lemma 14 for `epsilon` and 1 / (1 + pi) = 1 - epsilon. For one sequence, from its constants.
export function stayRadius(problem, { delta, reach, span, gap, norm, radius }, epsilon) {
  const pi = epsilon / (1 - epsilon);
  const share = (problem.X[0].length * span * reach) / (pi * gap);
  const overtaking = ((norm * 64 * reach ** 2) / pi ** 2) * Math.log(8 * share);
  return Math.max(radius, norm * Math.max(2, 1 / delta) * Math.log(96 * share), overtaking, 0.5);
}

// Both bounds of Lemma 13 on the push along V, from attention and slopes at W.
export function pushBounds(problem, tokens, goal, s, slopes) {
  const { gamma } = facts(problem);
  const n = problem.X.length;
  let [low, high] = [0, 0];
  gamma.forEach((row, i) => {
    const leads = row.map((g) => row[tokens[i]] - g).filter((_, t) => goal.support[i][t]);
    const missing = s[i].reduce((sum, p, t) => (t === tokens[i] ? sum : sum + p), 0);
    low += (slopes[i] * missing * Math.min(...leads)) / (8 * n);
    high += (2 * slopes[i] * missing * Math.max(...leads)) / n;
  });
  return [low, high];
}

// Where a start ends, for one sequence: the token with most attention after steps that grow with
// the length. A plain loop, as maps ask for thousands.
export function endsAt(problem, x, y, steps = 260) {
  const X = problem.X[0];
  const gamma = facts(problem).gamma[0];
  const T = X.length;
  const a = new Float64Array(T);
  let r = 0;
  for (let k = 0; ; k++) {
    r = 0;
    for (let t = 0; t < T; t++) { a[t] = X[t][0] * x + X[t][1] * y; if (a[t] > a[r]) r = t; }
    if (k === steps) return r;
    let [second, sum, mean] = [-Infinity, 0, 0];
    for (let t = 0; t < T; t++) if (t !== r) { if (a[t] > second) second = a[t]; const e = Math.exp(a[t] - a[r]); sum += e; mean += e * (gamma[t] - gamma[r]); }
    mean /= 1 + sum;
    let [gx, gy] = [0, 0];
    for (let t = 0; t < T; t++) if (t !== r) { const c = Math.exp(a[t] - second) * (gamma[t] - gamma[r] - mean); gx += c * (X[t][0] - X[r][0]); gy += c * (X[t][1] - X[r][1]); }
    const size = Math.hypot(gx, gy);
    if (!(size > 0)) return r;
    const eta = (0.06 + 0.025 * Math.hypot(x, y)) / size;
    x += eta * gx;
    y += eta * gy;
  }
}

