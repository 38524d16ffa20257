// The best W of a given length: the regularization path, live. The loss above its floor is kept as
// a logarithm, so that nothing underflows or cancels. NumPy twins: attnlab.svm.regularization_path,
// and the log_excess of attnlab.models.Attention.evaluate.

import { attentionSVM, gradient, logits, optimal, scores } from "./core.js";
import { logSigmoid } from "./losses.js";
import { dot, norm, unit, zeros } from "./vectors.js";

export const logSum = (values) => {
  const top = Math.max(...values);
  return top === -Infinity ? top : top + Math.log(values.reduce((sum, x) => sum + Math.exp(x - top), 0));
};
const logExpm1 = (ln) => (ln < -37 ? ln : Math.log(Math.expm1(Math.exp(ln)))); // of log x: log(e^x - 1)
const logLog1p = (ln) => (ln < -30 ? ln : Math.log(Math.log1p(Math.exp(ln)))); // of log x: log log(1 + x)

// What each sequence misses: log of the best score minus its mean under attention, log of the
// attention of each token, and log of the loss that this adds to the sequence's floor.
export function missed(problem, W) {
  const gamma = scores(problem);
  const b = optimal(problem);
  return logits(problem, W).map((a, i) => {
    const whole = logSum(a);
    const logS = a.map((x) => x - whole);
    const D = gamma[i].map((g) => gamma[i][b[i]] - g);
    const parts = logS.map((l, t) => (D[t] > 0 ? l + Math.log(D[t]) : -Infinity));
    const lost = logSum(parts);
    const q = logSigmoid(-gamma[i][b[i]]) + logExpm1(lost);
    return { b: b[i], gamma: gamma[i], logS, parts, lost, excess: logLog1p(q), q };
  });
}

// log of the (logistic) loss above its floor, and its gradient in W.
export function logExcess(problem, W) {
  const found = missed(problem, W);
  const value = logSum(found.map((one) => one.excess)) - Math.log(found.length);
  const G = zeros(W.length, W.length);
  found.forEach(({ b, gamma, logS, parts, lost, excess }, i) => {
    if (excess === -Infinity) return;
    const slope = logSigmoid(-(gamma[b] - Math.exp(lost))); // log |l'| at the mean score
    const c = Math.exp(slope + lost - value - Math.log(found.length));
    logS.forEach((l, t) => {
      const weight = c * (Math.exp(parts[t] - lost) - Math.exp(l));
      problem.X[i][t].forEach((x, row) => problem.z[i].forEach((q, column) => {
        G[row][column] += weight * x * q;
      }));
    });
  });
  return { value, G };
}

// Descent on the sphere of radius R from a direction: BFGS in the direction's entries.
function descend(problem, R, from) {
  const d = from.length;
  const matrix = (p) => Array.from({ length: d }, (_, a) => p.slice(a * d, (a + 1) * d));
  const at = (p) => {
    const size = Math.hypot(...p);
    const V = p.map((x) => x / size);
    const { value, G } = logExcess(problem, matrix(V.map((x) => R * x)));
    const g = G.flat();
    const along = dot(g, V);
    const flat = g.map((x, k) => (R * (x - along * V[k])) / size);
    return { value, g: flat, sine: Math.hypot(...flat) / (R * Math.hypot(...g) || 1) };
  };
  let p = unit(from).flat();
  let here = at(p);
  const m = p.length;
  const fresh = () => Array.from({ length: m }, (_, a) => Array.from({ length: m }, (_, b) => (a === b ? 1 / (1 + R) ** 2 : 0)));
  let H = fresh();
  for (let round = 0; round < 300 && here.sine > 1e-12; round++) {
    let step = H.map((row) => -dot(row, here.g));
    let fall = dot(step, here.g);
    if (!(fall < 0)) {
      H = fresh();
      step = here.g.map((x) => -x / (1 + R) ** 2);
      fall = dot(step, here.g);
    }
    const longest = 0.5 / Math.max(0.5, Math.hypot(...step));
    let t = longest;
    let next = null;
    for (let k = 0; k < 40; k++, t /= 2) {
      const q = p.map((x, j) => x + t * step[j]);
      const there = at(q);
      // near the end the value is level to rounding: then the slope decides
      if (there.value <= here.value + 1e-4 * t * fall || (there.sine < here.sine && there.value < here.value + 1e-11 * Math.abs(here.value))) {
        next = [q, there];
        break;
      }
    }
    if (!next) break;
    const [q, there] = next;
    const s = q.map((x, j) => x - p[j]);
    const y = there.g.map((x, j) => x - here.g[j]);
    const sy = dot(s, y);
    if (sy > 1e-14 * Math.hypot(...s) * Math.hypot(...y)) {
      const Hy = H.map((row) => dot(row, y));
      const c = (1 + dot(y, Hy) / sy) / sy;
      H = H.map((row, a) => row.map((x, b) => x + c * s[a] * s[b] - (Hy[a] * s[b] + s[a] * Hy[b]) / sy));
    }
    const size = Math.hypot(...q);
    [p, here] = [q, there];
    if (size > 2 || size < 0.5) {
      p = q.map((x) => x / size);
      here = at(p);
      H = fresh();
    }
  }
  const size = Math.hypot(...p);
  return { W: matrix(p.map((x) => (R * x) / size)), value: here.value, sine: here.sine };
}

// Best of every radius, in rising order: the better of what continues the radius before (the first
// one: the slope at zero) and what lies below the max-margin direction.
export function regularizationPath(problem, radii, goal = attentionSVM(problem)) {
  let before = gradient(problem, zeros(problem.v.length, problem.v.length)).G.map((row) => row.map((x) => -x));
  return radii.map((R) => {
    const found = [before, goal.W].filter((V) => V && norm(V) > 0).map((V) => descend(problem, R, V));
    const chosen = found.reduce((a, b) => (b.value < a.value - 1e-9 ? b : a));
    before = chosen.W;
    return chosen;
  });
}

// One radius alone, continued over a grid of its own as attnlab does.
export function pathPoint(problem, R, goal = attentionSVM(problem)) {
  const longest = Math.max(...problem.X.flatMap((X, i) => X.map((x) =>
    Math.hypot(...x.map((value, k) => value - X[optimal(problem)[i]][k])) * Math.hypot(...problem.z[i]))));
  const radii = [];
  for (let r = 0.25 / (longest || 1); r < R; r *= 3) radii.push(r);
  const path = regularizationPath(problem, [...radii, R], goal);
  return path[path.length - 1];
}
