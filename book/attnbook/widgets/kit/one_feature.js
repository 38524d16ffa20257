// An encoder with one feature a token is three numbers: attention kappa, and p and q on the
// positive and the negative parts. NumPy twins: theory.encoder.effective_features, effective_floor.
// X is [n][T] numbers, y is [n].

// Sums over a sample's tokens of the positive and the negative parts of m_i = beta_i x.
export function oneFeatureSums(kappa, X) {
  return X.map((x) => {
    let [positive, negative] = [0, 0];
    for (const own of x) {
      const top = Math.max(...x.map((other) => kappa * own * other));
      let [total, mean] = [0, 0];
      for (const other of x) {
        const weight = Math.exp(kappa * own * other - top);
        total += weight;
        mean += weight * other;
      }
      if (mean > 0) positive += mean / total;
      else negative -= mean / total;
    }
    return [positive, negative];
  });
}

// The best p and q at this attention for f = (p a + q b) / T, and the mean loss they leave.
export function oneFeatureFit(kappa, X, y) {
  const sums = oneFeatureSums(kappa, X);
  const T = X[0].length;
  const columns = [0, 1].map((k) => sums.map((pair) => pair[k] / T));
  const product = (a, b) => a.reduce((total, value, k) => total + value * b[k], 0);
  const first = product(columns[0], columns[0]) >= product(columns[1], columns[1]) ? 0 : 1;
  const [u, v] = [columns[first], columns[1 - first]];
  const size = Math.sqrt(product(u, u));
  const best = [0, 0];
  let rest = y.slice();
  if (size > 0) {
    const e = u.map((value) => value / size);
    const overlap = product(e, v);
    const w = v.map((value, k) => value - overlap * e[k]);
    const other = Math.sqrt(product(w, w));
    const along = product(e, rest);
    rest = rest.map((value, k) => value - along * e[k]);
    let second = 0;
    if (other > 1e-12 * size) {
      const g = w.map((value) => value / other);
      const more = product(g, rest);
      rest = rest.map((value, k) => value - more * g[k]);
      second = more / other;
    }
    best[1 - first] = second;
    best[first] = (along - overlap * second) / size;
  }
  return { p: best[0], q: best[1], floor: product(rest, rest) / y.length };
}

// Outputs of the network with these three numbers.
export const oneFeatureOutputs = (kappa, p, q, X) =>
  oneFeatureSums(kappa, X).map(([a, b]) => (p * a + q * b) / X[0].length);
