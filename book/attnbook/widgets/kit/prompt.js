// One query for all sequences, z = (1, 0): then W acts through one column u of it, and the space of
// W is a plane that can be drawn whole. Twins: attnlab.models.Attention, svm.attention_svm.
// A problem is as in core.js; u is [x, y].

import { attentionSVM, optimal, scores } from "./core.js";

export const QUERY = [1, 0];
export const asMatrix = (u) => [[u[0], 0], [u[1], 0]];
export const column = (W) => [W[0][0], W[1][0]];
export const dot2 = (a, b) => a[0] * b[0] + a[1] * b[1];
export const size2 = (a) => Math.hypot(a[0], a[1]);
export const unit2 = (a) => { const n = size2(a); return n > 0 ? [a[0] / n, a[1] / n] : [0, 0]; };
export const angle2 = (a, b) => (180 / Math.PI) * Math.acos(Math.max(-1, Math.min(1, dot2(unit2(a), unit2(b)))));

// Scores, best tokens and features (best minus other), kept with the problem.
const known = new WeakMap();
export function facts(problem) {
  if (!known.has(problem)) known.set(problem, { gamma: scores(problem), top: optimal(problem) });
  return known.get(problem);
}

export function attentionAt(problem, u) {
  return problem.X.map((X) => {
    const a = X.map((x) => dot2(x, u));
    const top = Math.max(...a);
    const e = a.map((v) => Math.exp(v - top));
    const sum = e.reduce((s, v) => s + v, 0);
    return e.map((v) => v / sum);
  });
}

// Minus the gradient of the logistic loss, one part for each sequence: exp(logScale) times `parts`.
// Formed from the tokens behind the leading one, as in core.js, so that nothing cancels.
export function push(problem, u) {
  const { gamma } = facts(problem);
  const n = problem.X.length;
  let top = -Infinity;
  const seen = problem.X.map((X, i) => {
    const a = X.map((x) => dot2(x, u));
    let r = 0;
    for (let t = 1; t < a.length; t++) if (a[t] > a[r]) r = t;
    let sum = 0;
    for (let t = 0; t < a.length; t++) if (t !== r) sum += Math.exp(a[t] - a[r]);
    const logSum = Math.log1p(sum);
    let mean = 0;
    const logS = a.map((v) => v - a[r] - logSum);
    for (let t = 0; t < a.length; t++) if (t !== r) { mean += Math.exp(logS[t]) * (gamma[i][t] - gamma[i][r]); if (logS[t] > top) top = logS[t]; }
    const slope = 1 / (1 + Math.exp(gamma[i][r] + mean)) / n;
    return { r, logS, mean, slope };
  });
  const parts = seen.map(({ r, logS, mean, slope }, i) => {
    const part = [0, 0];
    problem.X[i].forEach((x, t) => {
      if (t === r) return;
      const c = slope * Math.exp(logS[t] - top) * (gamma[i][t] - gamma[i][r] - mean);
      part[0] += c * (x[0] - problem.X[i][r][0]);
      part[1] += c * (x[1] - problem.X[i][r][1]);
    });
    return part;
  });
  const sum = parts.reduce((s, part) => [s[0] + part[0], s[1] + part[1]], [0, 0]);
  return { parts, sum, logScale: top, slopes: seen.map((one) => one.slope * n) };
}

// The logistic loss above that of the best scores; nothing cancels.
export function above(problem, u) {
  const { gamma } = facts(problem);
  return attentionAt(problem, u).reduce((sum, s, i) => {
    const best = Math.max(...gamma[i]);
    const behind = s.reduce((rest, p, t) => rest + p * (best - gamma[i][t]), 0);
    const e = Math.exp(-best);
    return sum + Math.log1p((e * Math.expm1(behind)) / (1 + e));
  }, 0) / gamma.length;
}

// Normalized steps from u, as many as asked; a list of places.
export function follow(problem, start, eta, steps) {
  const found = [start];
  let u = start;
  for (let k = 0; k < steps; k++) {
    const way = unit2(push(problem, u).sum);
    u = [u[0] + eta * way[0], u[1] + eta * way[1]];
    found.push(u);
  }
  return found;
}

// The token with most attention in each sequence after normalized steps that grow with the length:
// where a start ends.
export function fate(problem, start, steps = 160) {
  let u = start;
  for (let k = 0; k < steps; k++) {
    const way = unit2(push(problem, u).sum);
    const eta = 0.08 + 0.03 * size2(u);
    u = [u[0] + eta * way[0], u[1] + eta * way[1]];
  }
  return problem.X.map((X) => { const a = X.map((x) => dot2(x, u)); return a.indexOf(Math.max(...a)); });
}

// Margins of u for a selection: by how much its logit leads each other one.
export const leadsOf = (problem, u, tokens = facts(problem).top) =>
  problem.X.map((X, i) => X.map((x, t) => (t === tokens[i] ? 0 : dot2(X[tokens[i]], u) - dot2(x, u))));

// The max-margin column of a selection, with margins and support; null where there is none.
export function maxMargin(problem, tokens = facts(problem).top) {
  const found = attentionSVM(problem, tokens);
  return found.status === "optimal" ? { ...found, u: column(found.W), size: size2(column(found.W)) } : null;
}
