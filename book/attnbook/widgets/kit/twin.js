// Logistic regression and attention with one query, on vectors f_i in the plane: the same linear
// classifier w, two losses. Attention between the tokens f_i and 0 has the logit h = w.f_i, the
// score of f_i is its second coordinate, that of 0 is 0; its loss is exponential.

import { logSigmoid } from "./losses.js";
import { dot } from "./vectors.js";

// What each sample pulls, as a logarithm and free of cancellation; the gradient in w is
// -(1/n) sum exp(pull_i) f_i.
export function logPulls(f, w, model) {
  return f.map((token) => {
    const h = dot(w, token);
    const miss = logSigmoid(-h); // log of 1 - s
    if (model === "logistic") return miss;
    const hit = logSigmoid(h);
    return Math.log(token[1]) - token[1] * Math.exp(hit) + hit + miss;
  });
}

// The path of w under plain ("gd") or normalized ("ngd") steps, at the given times.
export function trainPath(f, start, model, rule, eta, times) {
  let w = start.slice();
  const path = [];
  let next = 0;
  for (let k = 0; k <= times[times.length - 1]; k++) {
    if (k === times[next]) {
      path.push(w.slice());
      next += 1;
    }
    const pulls = logPulls(f, w, model);
    const top = Math.max(...pulls);
    const G = [0, 0];
    f.forEach((x, i) => {
      const c = Math.exp(pulls[i] - top) / f.length;
      G[0] += c * x[0];
      G[1] += c * x[1];
    });
    const size = rule === "gd" ? Math.exp(top) : 1 / Math.hypot(...G);
    w = [w[0] + eta * size * G[0], w[1] + eta * size * G[1]];
  }
  return path;
}
