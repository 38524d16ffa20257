// Multi-head attention with every token a query, its gradient, and three step rules, on flat
// arrays: X is [n][T][d], U [H][T][d], W [H][d][d]; the loss is logistic. The NumPy twin is
// models.MultiHead with optim.train.

import { LOSSES } from "./losses.js";
import { meanSlope, weigh } from "./softmax.js";
import { dot, dotAt } from "./vectors.js";

const { value, slope } = LOSSES.logistic;

// Room for one row of attention: the query's image, and weights and scores of the tokens.
const rowOf = ({ T, d }) => ({ moved: new Float64Array(d), P: new Float64Array(T), A: new Float64Array(T) });

// Fills the row of head h for token t of sample i; returns the mean score, which it puts out.
function attend({ X, T, d }, U, W, i, h, t, { moved, P, A }) {
  for (let a = 0; a < d; a++) moved[a] = dotAt(W, (h * d + a) * d, X, (i * T + t) * d, d);
  for (let s = 0; s < T; s++) {
    const key = (i * T + s) * d;
    P[s] = dotAt(X, key, moved, 0, d);
    A[s] = dotAt(U, (h * T + t) * d, X, key, d);
  }
  weigh(P);
  return dot(P, A);
}

// Mean loss of H heads.
export function headsLoss(problem, U, W, H) {
  const n = problem.y.length;
  const row = rowOf(problem);
  let loss = 0;
  for (let i = 0; i < n; i++) {
    let f = 0;
    for (let h = 0; h < H; h++) for (let t = 0; t < problem.T; t++) f += attend(problem, U, W, i, h, t, row);
    loss += value((problem.y[i] * f) / Math.sqrt(H)) / n;
  }
  return loss;
}

// Loss and gradients of H heads.
export function headsGradient(problem, U, W, H) {
  const { X, y, T, d } = problem;
  const n = y.length;
  const share = 1 / Math.sqrt(H);
  const gU = new Float64Array(U.length);
  const gW = new Float64Array(W.length);
  const row = rowOf(problem);
  const pull = new Float64Array(d);
  const attended = new Float64Array(U.length);
  const pulls = new Float64Array(W.length);
  let loss = 0;
  for (let i = 0; i < n; i++) {
    pulls.fill(0);
    attended.fill(0);
    let f = 0;
    for (let h = 0; h < H; h++) {
      for (let t = 0; t < T; t++) {
        const query = (i * T + t) * d;
        const own = (h * T + t) * d;
        f += share * attend(problem, U, W, i, h, t, row);
        const change = meanSlope(row.P, row.A, row.A);
        pull.fill(0);
        for (let s = 0; s < T; s++) {
          const key = (i * T + s) * d;
          for (let a = 0; a < d; a++) {
            attended[own + a] += row.P[s] * X[key + a];
            pull[a] += change[s] * X[key + a];
          }
        }
        for (let a = 0; a < d; a++) {
          for (let b = 0; b < d; b++) pulls[(h * d + a) * d + b] += pull[a] * X[query + b];
        }
      }
    }
    const m = y[i] * f;
    loss += value(m) / n;
    const c = (slope(m) * y[i] * share) / n;
    for (let k = 0; k < gU.length; k++) gU[k] += c * attended[k];
    for (let k = 0; k < gW.length; k++) gW[k] += c * pulls[k];
  }
  return { loss, gU, gW };
}

// The same as plain lists.
export function headsGradientLists(problem, U, W, H) {
  const { loss, gU, gW } = headsGradient(problem, U, W, H);
  return { loss, gU: Array.from(gU), gW: Array.from(gW) };
}

// A step rule for one parameter: its own step size and, for Adam, its own eps.
function ruleOf(rule, size, eta, eps) {
  const first = new Float64Array(size);
  const second = new Float64Array(size);
  let count = 0;
  return (p, g) => {
    count += 1;
    for (let k = 0; k < size; k++) {
      if (rule === "gd") p[k] -= eta * g[k];
      else if (rule === "momentum") {
        first[k] = 0.9 * first[k] + g[k];
        p[k] -= eta * first[k];
      } else {
        first[k] = 0.9 * first[k] + (1 - 0.9) * g[k];
        second[k] = 0.999 * second[k] + (1 - 0.999) * g[k] * g[k];
        const root = Math.sqrt(second[k] / (1 - 0.999 ** count));
        p[k] -= (eta * (first[k] / (1 - 0.9 ** count))) / (root + eps);
      }
    }
  };
}

const lengthOf = (a, from, count) => Math.sqrt(dotAt(a, from, a, from, count));

// Train H heads for some steps with separate rates for U and W. Returns the loss at each step from
// the start on, the norm of each W_h, the norm of all U together, and the last parameters.
export function trainHeads(problem, { H, rule, etaU, etaW, epsU = 1e-8, epsW = 1e-8, steps, U0 = null, W0 = null }) {
  const { T, d } = problem;
  const U = U0 ? Float64Array.from(U0) : new Float64Array(H * T * d);
  const W = W0 ? Float64Array.from(W0) : new Float64Array(H * d * d);
  const moveU = ruleOf(rule, U.length, etaU, epsU);
  const moveW = ruleOf(rule, W.length, etaW, epsW);
  const [losses, normU, normW] = [[], [], Array.from({ length: H }, () => [])];
  for (let k = 0; k <= steps; k++) {
    const { loss, gU, gW } = headsGradient(problem, U, W, H);
    losses.push(loss);
    normU.push(lengthOf(U, 0, U.length));
    normW.forEach((line, h) => line.push(lengthOf(W, h * d * d, d * d)));
    if (k < steps) { moveU(U, gU); moveW(W, gW); }
  }
  return { losses, normU, normW, U: Array.from(U), W: Array.from(W) };
}

// The steps with which one head does what H equal heads do (theory.multihead.one_head_steps).
// The gradients of one head are sqrt(H) and H times as large as those of H heads. Adam's eps is
// added to their size, so the twin is exact only if its eps is as many times as large.
export function twinRates(rule, eta, H, eps = "scaled") {
  if (rule === "adam") {
    const [forU, forW] = eps === "scaled" ? [Math.sqrt(H), H] : [1, 1];
    return { etaU: eta * Math.sqrt(H), etaW: eta, epsU: 1e-8 * forU, epsW: 1e-8 * forW };
  }
  return { etaU: eta, etaW: eta / H };
}
