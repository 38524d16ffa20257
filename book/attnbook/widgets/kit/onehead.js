// One attention row as a distribution, and the loss of many heads at a point of parameter space.
// Twins: theory.multihead.model_gradient, .second_derivative, .beta3; models.MultiHead.

import { dot, softmax } from "./core.js";

const oneheadMean = (p, values) => dot(p, values);

// Weights p = softmax(g); mean of A, its covariance with B, the third central moment of A, B, B:
// value, slope and curvature of the output along logits g + theta B, at theta = 0.
export function rowMoments(A, B, g) {
  const p = softmax(g);
  const a = oneheadMean(p, A);
  const b = oneheadMean(p, B);
  return {
    p,
    mean: a,
    meanB: b,
    variance: oneheadMean(p, B.map((x) => (x - b) ** 2)),
    covariance: oneheadMean(p, A.map((x, s) => (x - a) * (B[s] - b))),
    third: oneheadMean(p, A.map((x, s) => (x - a) * (B[s] - b) ** 2)),
  };
}

// beta_3 of Corollary 1 (3): printed, or this book's without d.
export const curvatureBound = (norm, T, d, R, sharp = false) => (sharp
  ? Math.sqrt(T) * R ** 3 * (2 * R * R * norm + 1)
  : 2 * Math.sqrt(T * d) * R ** 3 * (3 * Math.sqrt(d) * R * R * norm + 1));

// Mean logistic loss of H heads; X is [n][T][d], U a flat H T d, W a flat H d d.
export function manyHeadsLoss(X, y, U, W) {
  const [n, T, d] = [X.length, X[0].length, X[0][0].length];
  const H = W.length / (d * d);
  const moved = new Array(d);
  const weights = new Array(T);
  let total = 0;
  for (let i = 0; i < n; i++) {
    const x = X[i];
    let output = 0;
    for (let h = 0; h < H; h++) {
      for (let t = 0; t < T; t++) {
        for (let a = 0; a < d; a++) {
          moved[a] = 0;
          for (let b = 0; b < d; b++) moved[a] += W[(h * d + a) * d + b] * x[t][b];
        }
        let top = -Infinity;
        for (let s = 0; s < T; s++) {
          weights[s] = 0;
          for (let a = 0; a < d; a++) weights[s] += x[s][a] * moved[a];
          top = Math.max(top, weights[s]);
        }
        let sum = 0;
        let held = 0;
        for (let s = 0; s < T; s++) {
          const e = Math.exp(weights[s] - top);
          let score = 0;
          for (let a = 0; a < d; a++) score += U[(h * T + t) * d + a] * x[s][a];
          sum += e;
          held += e * score;
        }
        output += held / sum;
      }
    }
    const m = (y[i] * output) / Math.sqrt(H);
    total += m > 0 ? Math.log1p(Math.exp(-m)) : -m + Math.log1p(Math.exp(m));
  }
  return total / n;
}
