// One attention row as a distribution, and how much a head bends.
// Twins: theory.multihead.model_gradient, .second_derivative, .beta3.

import { softmax } from "./softmax.js";
import { dot } from "./vectors.js";

// Weights p = softmax(g); mean of A, its covariance with B, the third central moment of A, B, B:
// value, slope and curvature of the output along logits g + theta B, at theta = 0.
export function rowMoments(A, B, g) {
  const p = softmax(g);
  const a = dot(p, A);
  const b = dot(p, B);
  return {
    p,
    mean: a,
    meanB: b,
    variance: dot(p, B.map((x) => (x - b) ** 2)),
    covariance: dot(p, A.map((x, s) => (x - a) * (B[s] - b))),
    third: dot(p, A.map((x, s) => (x - a) * (B[s] - b) ** 2)),
  };
}

// beta_3 of Corollary 1 (3) for a longest head of this norm: printed, or this book's without d.
export const beta3 = (norm, { T, d, R }, sharp = false) => (sharp
  ? Math.sqrt(T) * R ** 3 * (2 * R * R * norm + 1)
  : 2 * Math.sqrt(T * d) * R ** 3 * (3 * Math.sqrt(d) * R * R * norm + 1));
