// One sequence that answers at every position, under a mask: rows of an attention problem, their
// training and their max-margin problem, fast enough to be done anew in every frame. NumPy twins:
// attnlab.problems, attnlab.optim, attnlab.svm.

import { LOSSES } from "./losses.js";
import { weigh } from "./softmax.js";
import { cosine, dot } from "./vectors.js";

// Five tokens in the plane, all labels 1, scores their heights: searched for, so that opening the
// causal mask first costs margin and then gives more than it took.
export const EXAMPLE = {
  X: [[-1.6, -1], [-0.7, 0.3], [-0.1, 0.8], [-1.5, 1.2], [-1.1, -0.4]], y: [1, 1, 1, 1, 1], v: [0, 1],
};

// Hidden cells of the causal mask in the order in which they are opened: one token ahead, then two.
export const ahead = (T) => {
  const found = [];
  for (let by = 1; by < T; by++) for (let k = 0; k + by < T; k++) found.push([k, k + by]);
  return found;
};

// The causal mask of T positions with the first `cells` of the hidden ones opened.
export function opened(T, cells = 0) {
  const mask = Array.from({ length: T }, (_, k) => Array.from({ length: T }, (_, t) => t <= k));
  ahead(T).slice(0, cells).forEach(([k, t]) => { mask[k][t] = true; });
  return mask;
}

// Position k asks with its own token x_k and has the label y_k; the scores of what it sees.
export const visible = ({ X, y, v }, mask) =>
  X.map((_, k) => X.map((x, t) => (mask[k][t] ? y[k] * dot(x, v) : -Infinity)));

const first = (values) => values.indexOf(Math.max(...values));
export const bestVisible = (sequence, mask) => visible(sequence, mask).map(first);

// Attention of every position under a W of the plane.
export const attentionMapOf = ({ X }, mask, W) => X.map((z, k) => {
  const way = W.map((row) => dot(row, z));
  return weigh(X.map((x, t) => (mask[k][t] ? dot(x, way) : -Infinity)));
});

// Exact normalized steps from zero in the plane (logistic loss): W after 0, 1, ..., `steps` steps.
export function run(sequence, mask, eta, steps) {
  const { X } = sequence;
  const gamma = visible(sequence, mask);
  const { slope } = LOSSES.logistic;
  let [w0, w1, w2, w3] = [0, 0, 0, 0];
  const found = [[[0, 0], [0, 0]]];
  const rows = X.map(([z0, z1], k) => ({ z0, z1, g: gamma[k], see: X.map((_, t) => t).filter((t) => mask[k][t]) }))
    .filter(({ see }) => see.length > 1)
    .map((row) => ({ ...row, logs: new Float64Array(row.see.length), r: 0, mean: 0, c: 0 }));
  const [x0, x1] = [0, 1].map((d) => Float64Array.from(X, (x) => x[d]));
  for (let step = 0; step < steps; step++) {
    let top = -Infinity;
    for (const row of rows) {
      const { see, g, logs } = row;
      const [u, w] = [w0 * row.z0 + w1 * row.z1, w2 * row.z0 + w3 * row.z1];
      let j = 0;
      for (let s = 0; s < see.length; s++) {
        logs[s] = x0[see[s]] * u + x1[see[s]] * w;
        if (logs[s] > logs[j]) j = s;
      }
      const lead = logs[j];
      let sum = 0;
      let mean = 0; // of the scores, less the leader's
      for (let s = 0; s < see.length; s++) {
        if (s === j) continue;
        const weight = Math.exp(logs[s] - lead);
        sum += weight;
        mean += weight * (g[see[s]] - g[see[j]]);
      }
      mean /= 1 + sum;
      const share = Math.log1p(sum);
      for (let s = 0; s < see.length; s++) {
        logs[s] -= lead + share;
        if (s !== j && logs[s] > top) top = logs[s];
      }
      row.r = j;
      row.mean = mean;
      row.c = slope(g[see[j]] + mean);
    }
    let [g0, g1, g2, g3] = [0, 0, 0, 0];
    for (const { see, g, logs, r, mean, c, z0, z1 } of rows) {
      for (let s = 0; s < see.length; s++) {
        if (s === r) continue;
        const q = c * Math.exp(logs[s] - top) * (g[see[s]] - g[see[r]] - mean);
        const [p0, p1] = [q * (x0[see[s]] - x0[see[r]]), q * (x1[see[s]] - x1[see[r]])];
        g0 += p0 * z0; g1 += p0 * z1; g2 += p1 * z0; g3 += p1 * z1;
      }
    }
    const size = Math.sqrt(g0 * g0 + g1 * g1 + g2 * g2 + g3 * g3);
    if (size > 0) { w0 -= (eta * g0) / size; w1 -= (eta * g1) / size; w2 -= (eta * g2) / size; w3 -= (eta * g3) / size; }
    found.push([[w0, w1], [w2, w3]]);
  }
  return found;
}

// Weights of the point of a convex hull that is nearest to 0 (Wolfe), from the points' products;
// null where 0 itself is in the hull.
export function nearestWeights(G) {
  const m = G.length;
  const most = Math.max(...G.map((row, i) => row[i]));
  let start = 0;
  for (let i = 1; i < m; i++) if (G[i][i] < G[start][start]) start = i;
  let corner = [start];
  let weight = [1];
  for (let round = 0; round < 40 * m; round++) {
    const along = G.map((row) => corner.reduce((s, i, j) => s + weight[j] * row[i], 0));
    const xx = corner.reduce((s, i, j) => s + weight[j] * along[i], 0);
    if (xx < 1e-12 * most) return null;
    let next = -1;
    let least = xx - 1e-12 * most;
    along.forEach((here, i) => { if (here < least) { least = here; next = i; } });
    if (next < 0 || corner.includes(next)) break;
    corner.push(next);
    weight.push(0);
    for (;;) {
      const wish = affine(corner.map((i) => corner.map((j) => G[i][j])));
      if (wish.every((value) => value > 1e-14)) { weight = wish; break; }
      let share = 1;
      wish.forEach((value, j) => { if (value <= 1e-14) share = Math.min(share, weight[j] / (weight[j] - value || 1)); });
      weight = weight.map((value, j) => value + share * (wish[j] - value));
      const kept = weight.map((value) => value > 1e-14);
      if (kept.every(Boolean)) kept[weight.indexOf(Math.min(...weight))] = false;
      corner = corner.filter((_, j) => kept[j]);
      weight = weight.filter((_, j) => kept[j]);
      const total = weight.reduce((s, value) => s + value, 0);
      weight = weight.map((value) => value / total);
    }
  }
  const found = Array(m).fill(0);
  corner.forEach((i, j) => { found[i] = weight[j]; });
  return found;
}

// Weights, of sum 1, of the point nearest to 0 in the plane through some points.
function affine(G) {
  const m = G.length;
  if (m === 1) return [1];
  const scale = Math.max(...G.map((row, i) => row[i]));
  const A = G.map((row, i) => [...row.map((p, j) => p / scale + 1 + (i === j ? 1e-15 : 0)), 1]);
  for (let i = 0; i < m; i++) {
    let pivot = i;
    for (let r = i + 1; r < m; r++) if (Math.abs(A[r][i]) > Math.abs(A[pivot][i])) pivot = r;
    [A[i], A[pivot]] = [A[pivot], A[i]];
    for (let r = i + 1; r < m; r++) {
      const f = A[r][i] / A[i][i];
      for (let c = i; c <= m; c++) A[r][c] -= f * A[i][c];
    }
  }
  const found = Array(m).fill(0);
  for (let i = m - 1; i >= 0; i--) {
    let rest = A[i][m];
    for (let c = i + 1; c < m; c++) rest -= A[i][c] * found[c];
    found[i] = rest / A[i][i];
  }
  const total = found.reduce((s, value) => s + value, 0);
  return found.map((value) => value / total);
}

// Every inequality of the SVM of some selection (the best visible tokens unless told),
// (x_selected - x_t)' W x_k >= 1, with its value at the answer; the margin 1 / |W|, infinite where
// nothing is asked and 0 where there is no W.
export function inequalities(sequence, mask, best = bestVisible(sequence, mask)) {
  const { X } = sequence;
  const where = [];
  mask.forEach((row, k) => row.forEach((on, t) => { if (on && t !== best[k]) where.push([k, t]); }));
  if (!where.length) return { best, where, values: [], support: [], margin: Infinity, W: null };
  const F = where.map(([k, t]) => {
    const gap = X[best[k]].map((x, d) => x - X[t][d]);
    return gap.flatMap((g) => X[k].map((z) => g * z));
  });
  const none = { best, where, values: null, support: null, margin: 0, W: null };
  const weights = nearestWeights(F.map((f) => F.map((g) => dot(f, g))));
  if (!weights) return none;
  const x = F[0].map((_, c) => F.reduce((s, f, j) => s + weights[j] * f[c], 0));
  const xx = dot(x, x);
  const w = x.map((value) => value / xx);
  const values = F.map((f) => dot(f, w));
  if (!(Math.min(...values) > 1 - 1e-6)) return none;
  const d = X[0].length;
  return {
    best, where, values, margin: Math.sqrt(xx), support: values.map((value) => value < 1 + 1e-6),
    W: Array.from({ length: d }, (_, a) => w.slice(a * d, (a + 1) * d)),
  };
}

// Angle in degrees between two matrices.
export const angle = (A, B) => (180 / Math.PI) * Math.acos(Math.max(-1, Math.min(1, cosine(A, B))));
