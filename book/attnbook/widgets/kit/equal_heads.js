// Multi-head attention with every token a query, its gradient, and three step rules, on flat
// arrays. The NumPy twin is models.MultiHead with optim.train.

const equalDot = (a, i, b, j, d) => {
  let sum = 0;
  for (let k = 0; k < d; k++) sum += a[i + k] * b[j + k];
  return sum;
};

// Loss and gradients of H heads (logistic loss). X is [n][T][d] flat, U [H][T][d], W [H][d][d].
export function headGradients({ X, y, T, d }, U, W, H) {
  const n = y.length;
  const share = 1 / Math.sqrt(H);
  const gU = new Float64Array(U.length);
  const gW = new Float64Array(W.length);
  const q = new Float64Array(d);
  const P = new Float64Array(T);
  const mean = new Float64Array(d);
  const moved = new Float64Array(d);
  const attended = new Float64Array(H * T * d);
  const pulls = new Float64Array(H * d * d);
  let loss = 0;
  for (let i = 0; i < n; i++) {
    pulls.fill(0);
    let f = 0;
    for (let h = 0; h < H; h++) {
      for (let t = 0; t < T; t++) {
        const query = (i * T + t) * d;
        const row = (h * T + t) * d;
        for (let a = 0; a < d; a++) q[a] = equalDot(W, (h * d + a) * d, X, query, d);
        let top = -Infinity;
        for (let s = 0; s < T; s++) {
          P[s] = equalDot(X, (i * T + s) * d, q, 0, d);
          if (P[s] > top) top = P[s];
        }
        let sum = 0;
        for (let s = 0; s < T; s++) { P[s] = Math.exp(P[s] - top); sum += P[s]; }
        mean.fill(0);
        moved.fill(0);
        let score = 0;
        for (let s = 0; s < T; s++) {
          const key = (i * T + s) * d;
          const p = P[s] / sum;
          const A = equalDot(U, row, X, key, d);
          score += p * A;
          for (let a = 0; a < d; a++) { mean[a] += p * X[key + a]; moved[a] += p * A * X[key + a]; }
        }
        f += share * score;
        for (let a = 0; a < d; a++) {
          attended[row + a] = mean[a];
          const pull = moved[a] - score * mean[a]; // the covariance of x with its score
          for (let b = 0; b < d; b++) pulls[(h * d + a) * d + b] += pull * X[query + b];
        }
      }
    }
    const m = y[i] * f;
    loss += (m > 0 ? Math.log1p(Math.exp(-m)) : -m + Math.log1p(Math.exp(m))) / n;
    const slope = m > 0 ? -Math.exp(-m) / (1 + Math.exp(-m)) : -1 / (1 + Math.exp(m));
    const c = (slope * y[i] * share) / n;
    for (let k = 0; k < gU.length; k++) gU[k] += c * attended[k];
    for (let k = 0; k < gW.length; k++) gW[k] += c * pulls[k];
  }
  return { loss, gU, gW };
}

// The same as plain lists.
export function headGradientLists(problem, U, W, H) {
  const { loss, gU, gW } = headGradients(problem, U, W, H);
  return { loss, gU: Array.from(gU), gW: Array.from(gW) };
}

// A step rule for one parameter: its own step size and, for Adam, its own eps.
function equalRule(rule, size, eta, eps) {
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

const equalNorm = (a, from, to) => {
  let sum = 0;
  for (let k = from; k < to; k++) sum += a[k] * a[k];
  return Math.sqrt(sum);
};

// Train H heads for some steps with separate rates for U and W. Returns the loss at each step from
// the start on, the norm of each W_h, the norm of all U together, and the last parameters.
export function trainHeads(problem, { H, rule, etaU, etaW, epsU = 1e-8, epsW = 1e-8, steps, U0 = null, W0 = null }) {
  const { T, d } = problem;
  const U = U0 ? Float64Array.from(U0) : new Float64Array(H * T * d);
  const W = W0 ? Float64Array.from(W0) : new Float64Array(H * d * d);
  const moveU = equalRule(rule, U.length, etaU, epsU);
  const moveW = equalRule(rule, W.length, etaW, epsW);
  const [losses, normU, normW] = [[], [], Array.from({ length: H }, () => [])];
  for (let k = 0; k <= steps; k++) {
    const { loss, gU, gW } = headGradients(problem, U, W, H);
    losses.push(loss);
    normU.push(equalNorm(U, 0, U.length));
    normW.forEach((line, h) => line.push(equalNorm(W, h * d * d, (h + 1) * d * d)));
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
