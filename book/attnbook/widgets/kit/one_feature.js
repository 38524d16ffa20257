// An encoder with one feature a token is three numbers: attention kappa, and p and q on the
// positive and the negative parts. NumPy twins: theory.encoder.effective_features, effective_floor.
// X is [n][T] numbers, y is [n].

import { softmax } from "./softmax.js";
import { dot } from "./vectors.js";

// Sums over a sample's tokens of the positive and the negative parts of m_i = beta_i x.
export function partSums(kappa, X) {
  return X.map((x) => {
    let [positive, negative] = [0, 0];
    for (const own of x) {
      const mean = dot(softmax(x.map((other) => kappa * own * other)), x);
      if (mean > 0) positive += mean;
      else negative -= mean;
    }
    return [positive, negative];
  });
}

// The best p and q at this attention for f = (p a + q b) / T, and the mean loss they leave.
export function bestFit(kappa, X, y) {
  const sums = partSums(kappa, X);
  const T = X[0].length;
  const columns = [0, 1].map((k) => sums.map((pair) => pair[k] / T));
  const first = dot(columns[0], columns[0]) >= dot(columns[1], columns[1]) ? 0 : 1;
  const [u, v] = [columns[first], columns[1 - first]];
  const size = Math.sqrt(dot(u, u));
  const best = [0, 0];
  let rest = y.slice();
  if (size > 0) {
    const e = u.map((value) => value / size);
    const overlap = dot(e, v);
    const w = v.map((value, k) => value - overlap * e[k]);
    const other = Math.sqrt(dot(w, w));
    const along = dot(e, rest);
    rest = rest.map((value, k) => value - along * e[k]);
    let second = 0;
    if (other > 1e-12 * size) {
      const g = w.map((value) => value / other);
      const more = dot(g, rest);
      rest = rest.map((value, k) => value - more * g[k]);
      second = more / other;
    }
    best[1 - first] = second;
    best[first] = (along - overlap * second) / size;
  }
  return { p: best[0], q: best[1], floor: dot(rest, rest) / y.length };
}

// Outputs of the network with these three numbers.
export const outputsOf = (kappa, p, q, X) =>
  partSums(kappa, X).map(([a, b]) => (p * a + q * b) / X[0].length);
