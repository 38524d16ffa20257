// Two tokens x1 = e1, x2 = 0: the closed forms of the bias paper's Section 3.3 and its recursion.
// Only w = W11 moves. Twins: attnbook.theory.bias.two_token_gd, two_token_miss and gap_set, and
// attnlab.optim on problems.two_token(); tests compare them in the browser.

import { sigmoid, softplus } from "./losses.js";

// What gradient descent's W11 tends to: log(e^w0 + step t / e).
export function twoTokenGd(t, start, step) {
  const late = Math.log(Math.max(t, 1e-300) * step) - 1;
  return Math.max(start, late) + softplus(-Math.abs(start - late));
}

// 1 - w / sqrt(w^2 + c) without cancellation where w > 0; c is what does not move, squared.
export function twoTokenMiss(along, off) {
  const length = Math.sqrt(along * along + off);
  return along > 0 ? off / (length * (length + along)) : 1 - along / length;
}

// -dL/dw for the exponential loss: e^-s s (1 - s) with s the attention on token 1.
export function twoTokenPull(w) {
  const s = sigmoid(w);
  return Math.exp(-s) * s * sigmoid(-w);
}

// W11 after each of the increasing `times`, by gradient descent step after step.
export function twoTokenRun(start, step, times) {
  const found = [];
  let w = start;
  let done = 0;
  for (const t of times) {
    for (; done < t; done++) w += step * twoTokenPull(w);
    found.push(w);
  }
  return found;
}

// 1, 2 or 3: the set of a sample with gap delta in the proof of Lemma 7.
export function gapSet(delta, eps) {
  const nu = eps / (1 - eps);
  return 1 + (delta > 0.3 * nu) + (delta > 0.8 * nu);
}

// The smallest norm from which on Lemma 7 speaks, in its corrected form.
export function normThreshold(eps, [B, width, n, T, conditioning]) {
  const size = B * B * width;
  const first = Math.log((64 * n * size * conditioning * T ** 3) / eps);
  const second = 5 * Math.log((20 * T * size) / eps);
  return ((2 * width) / eps) * Math.max(first, second);
}
