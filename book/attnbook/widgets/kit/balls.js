// Training of W, and of K and Q, on a sequence and its mirror image: W = diag(a, b). Both runs, and
// the points where a circle and a diamond touch the set of all (a, b) with margins of at least 1.

import { leastNorm } from "./core.js";
import { dot } from "./vectors.js";

const ETA = 0.1;
const START = [0.1, 0.05]; // of every diagonal entry of K and of Q

export const best = (X) => X.reduce((found, x, t) => (x[0] > X[found][0] ? t : found), 0);

// With query (1, 1): rows f with margin f.(a, b), and how much less each rival scores.
export function rivals(X) {
  const b = best(X);
  const others = X.map((_, t) => t).filter((t) => t !== b);
  return {
    others,
    rows: others.map((t) => X[b].map((value, k) => value - X[t][k])),
    gaps: others.map((t) => X[b][0] - X[t][0]),
  };
}

// Where descent pushes (a, b), up to a positive factor: without cancellation, however saturated.
export function pull({ rows, gaps }, w) {
  const lead = rows.map((f) => dot(f, w));
  const top = Math.max(0, ...lead.map((l) => -l));
  const e = lead.map((l) => Math.exp(-l - top));
  const own = Math.exp(-top);
  const sum = e.reduce((x, y) => x + y, own);
  const mean = e.reduce((total, x, t) => total + (x / sum) * gaps[t], 0); // best score minus mean score
  const loud = Math.max(...lead.map((l) => -l));
  const q = lead.map((l, t) => Math.exp(-l - loud) * (gaps[t] - mean));
  return [0, 1].map((k) => rows.reduce((total, f, t) => total + q[t] * f[k], 0));
}

// Both runs: normalised steps on W from 0, and on K and Q, each normalised, from a small start.
export function train(problem, steps) {
  const W = [[0, 0]];
  let k = [START[0], START[0]];
  let q = [START[1], START[1]];
  const KQ = [[k[0] * q[0], k[1] * q[1]]];
  const go = (x, g) => { const size = Math.hypot(...g) || 1; return x.map((value, j) => value + (ETA * g[j]) / size); };
  for (let n = 0; n < steps; n++) {
    const w = W[n];
    W.push(go(w, pull(problem, w)));
    const g = pull(problem, KQ[n]);
    const [gk, gq] = [g.map((value, j) => value * q[j]), g.map((value, j) => value * k[j])];
    [k, q] = [go(k, gk), go(q, gq)];
    KQ.push([k[0] * q[0], k[1] * q[1]]);
  }
  return { W, KQ };
}

// The nuclear answer: |a| + |b| least on the polygon, at one of its corners or on an axis.
export function nuclearPoint(rows) {
  const found = [];
  rows.forEach((f, i) => {
    if (f[0]) found.push([1 / f[0], 0]);
    if (f[1]) found.push([0, 1 / f[1]]);
    rows.slice(0, i).forEach((g) => {
      const det = f[0] * g[1] - f[1] * g[0];
      if (Math.abs(det) > 1e-12) found.push([(g[1] - f[1]) / det, (f[0] - g[0]) / det]);
    });
  });
  const inside = found.filter((p) => rows.every((f) => dot(f, p) > 1 - 1e-9));
  if (!inside.length) return null;
  return inside.reduce((x, y) => (Math.abs(y[0]) + Math.abs(y[1]) < Math.abs(x[0]) + Math.abs(x[1]) - 1e-12 ? y : x));
}

export function answers(rows) {
  const found = leastNorm(rows);
  return found ? { fro: found.w, nuc: nuclearPoint(rows) } : null;
}
