// A small encoder: outputs, Jacobian, tangent kernel, and the constants of Proposition 1.
// A net is {N, T, d, m, tau0, pool}; X and theta are flat, theta = [W_Q | W_K | W_V | w_O] by
// rows. Each function has a NumPy twin (models.Encoder, ntk.empirical, theory.encoder).

import { conditions, sizes } from "./encoder_conditions.js";
import { squares } from "./losses.js";
import { meanSlope, weigh } from "./softmax.js";
import { dotAt } from "./vectors.js";

const partsOf = ({ m, d }, theta) => {
  const at = [0, m * d, 2 * m * d, 3 * m * d, 3 * m * d + m];
  return [0, 1, 2, 3].map((k) => theta.slice(at[k], at[k + 1]));
};

// What the Jacobian needs of one sample: attention B, attended tokens U, pre-activations Z.
function sampleOf(net, X, n, M, V) {
  const { T, d, m, tau0 } = net;
  const x = X.slice(n * T * d, (n + 1) * T * d);
  const B = new Float64Array(T * T);
  const U = new Float64Array(T * d);
  const Z = new Float64Array(T * m);
  const q = new Float64Array(d);
  for (let i = 0; i < T; i++) {
    for (let b = 0; b < d; b++) {
      q[b] = 0;
      for (let a = 0; a < d; a++) q[b] += x[i * d + a] * M[a * d + b];
    }
    const row = B.subarray(i * T, (i + 1) * T);
    for (let j = 0; j < T; j++) row[j] = tau0 * dotAt(q, 0, x, j * d, d);
    weigh(row);
    for (let j = 0; j < T; j++) for (let a = 0; a < d; a++) U[i * d + a] += row[j] * x[j * d + a];
    for (let k = 0; k < m; k++) Z[i * m + k] = dotAt(U, i * d, V, k * d, d);
  }
  return { x, B, U, Z };
}

const logitMatrix = (Q, K, m, d) => {
  const M = new Float64Array(d * d);
  for (let k = 0; k < m; k++) {
    for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) M[a * d + b] += Q[k * d + a] * K[k * d + b];
  }
  return M;
};

// Outputs f, hidden layer A (N x m) and pre-activations Z (N x T x m).
export function forward(net, X, theta) {
  const { N, T, d, m, pool } = net;
  const [Q, K, V, O] = partsOf(net, theta);
  const M = logitMatrix(Q, K, m, d);
  const f = new Float64Array(N);
  const A = new Float64Array(N * m);
  const Z = new Float64Array(N * T * m);
  for (let n = 0; n < N; n++) {
    const own = sampleOf(net, X, n, M, V).Z;
    Z.set(own, n * T * m);
    for (let k = 0; k < m; k++) {
      let sum = 0;
      for (let i = 0; i < T; i++) sum += Math.max(own[i * m + k], 0);
      A[n * m + k] = pool * sum;
      f[n] += pool * sum * O[k];
    }
  }
  return { f: Array.from(f), A: Array.from(A), Z: Array.from(Z) };
}

// Outputs and their gradients in all parameters, one row of J a sample.
export function jacobian(net, X, theta) {
  const { N, T, d, m, tau0, pool } = net;
  const [Q, K, V, O] = partsOf(net, theta);
  const M = logitMatrix(Q, K, m, d);
  const p = 3 * m * d + m;
  const f = new Float64Array(N);
  const J = new Float64Array(N * p);
  for (let n = 0; n < N; n++) {
    const { x, B, U, Z } = sampleOf(net, X, n, M, V);
    const row = J.subarray(n * p, (n + 1) * p);
    const G = new Float64Array(d * d);
    for (let i = 0; i < T; i++) {
      const h = new Float64Array(d);
      for (let k = 0; k < m; k++) {
        const z = Z[i * m + k];
        if (z <= 0) continue; // the derivative of relu at 0 is 0
        row[3 * m * d + k] += pool * z;
        for (let a = 0; a < d; a++) {
          row[2 * m * d + k * d + a] += pool * O[k] * U[i * d + a];
          h[a] += O[k] * V[k * d + a];
        }
      }
      const D = new Float64Array(T);
      for (let j = 0; j < T; j++) D[j] = dotAt(h, 0, x, j * d, d);
      meanSlope(B.subarray(i * T, (i + 1) * T), D, D);
      for (let j = 0; j < T; j++) {
        const c = pool * tau0 * D[j];
        for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) G[a * d + b] += c * x[i * d + a] * x[j * d + b];
      }
    }
    for (let k = 0; k < m; k++) {
      f[n] += row[3 * m * d + k] * O[k];
      for (let a = 0; a < d; a++) {
        for (let b = 0; b < d; b++) {
          row[k * d + a] += K[k * d + b] * G[a * d + b];
          row[m * d + k * d + b] += Q[k * d + a] * G[a * d + b];
        }
      }
    }
  }
  return { f: Array.from(f), J };
}

// Eigenvalues of a symmetric matrix, in rising order, by Jacobi's rotations.
export function eigenvalues(A, n) {
  const S = Float64Array.from(A);
  for (let sweep = 0; sweep < 60; sweep++) {
    let off = 0;
    let all = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) { all += S[i * n + j] ** 2; if (i !== j) off += S[i * n + j] ** 2; }
    if (off <= 1e-32 * all) break;
    for (let i = 0; i < n; i++) {
      for (let j = i + 1; j < n; j++) {
        if (S[i * n + j] === 0) continue;
        const t0 = (S[j * n + j] - S[i * n + i]) / (2 * S[i * n + j]);
        const t = (t0 >= 0 ? 1 : -1) / (Math.abs(t0) + Math.hypot(t0, 1));
        const c = 1 / Math.hypot(t, 1);
        const s = t * c;
        for (let k = 0; k < n; k++) {
          const [u, v] = [S[k * n + i], S[k * n + j]];
          S[k * n + i] = c * u - s * v;
          S[k * n + j] = s * u + c * v;
        }
        for (let k = 0; k < n; k++) {
          const [u, v] = [S[i * n + k], S[j * n + k]];
          S[i * n + k] = c * u - s * v;
          S[j * n + k] = s * u + c * v;
        }
      }
    }
  }
  return Array.from({ length: n }, (_, i) => S[i * n + i]).sort((a, b) => a - b);
}

// Rows times rows: the tangent kernel, if the rows are those of the Jacobian.
export function gram(rows, n) {
  const p = rows.length / n;
  const K = Array(n * n).fill(0);
  for (let a = 0; a < n; a++) {
    for (let b = 0; b <= a; b++) {
      K[a * n + b] = dotAt(rows, a * p, rows, b * p, p);
      K[b * n + a] = K[a * n + b];
    }
  }
  return K;
}

// Gradient descent on factor * sum (f - y)^2; loss and lambda_max(K) at each step, until it ends.
export function train(net, X, y, theta, step, steps, factor) {
  const { N } = net;
  const now = Float64Array.from(theta);
  const loss = [];
  const top = [];
  for (let t = 0; t <= steps; t++) {
    const { f, J } = jacobian(net, X, now);
    const value = factor * squares(f, y);
    if (!(value < 1e6 * (loss[0] ?? Infinity))) break; // it diverges
    loss.push(value);
    const values = eigenvalues(gram(J, N), N);
    top.push(values[N - 1]);
    if (t === steps) break;
    const p = J.length / N;
    for (let n = 0; n < N; n++) {
      const c = -2 * factor * step * (f[n] - y[n]);
      for (let k = 0; k < p; k++) now[k] += c * J[n * p + k];
    }
  }
  return { loss, top };
}

// Every quantity of Proposition 1 at a start, for 1/2 sum (f - y)^2 = loss and C_Q = ... = radius.
export function constantsOf(net, X, theta, loss, radius) {
  const { N, T, d, m, tau0, pool } = net;
  const parts = partsOf(net, theta);
  const size = (W) => Math.sqrt(Math.max(0, eigenvalues(gram(turned(W, m, d), d), d)[d - 1]));
  const [Q, K, V] = parts.slice(0, 3).map((W) => size(W) + radius);
  const O = Math.hypot(...parts[3]) + radius;
  let Cx = 0;
  for (let n = 0; n < N; n++) Cx = Math.max(Cx, Math.hypot(...X.slice(n * T * d, (n + 1) * T * d)) / Math.sqrt(T));
  const { A } = forward(net, X, theta);
  const alpha = m < N ? 0 : Math.sqrt(Math.max(0, eigenvalues(gram(A, N), N)[0]));
  const bars = { n: N, T, Cx, tau0, pool, Q, K, V, O };
  const { rho, z, factors } = sizes(bars);
  const [two, three] = conditions(bars, alpha, loss, radius);
  const c1 = rho * (V + O + 2 * tau0 * Cx * Cx * T * O * V * (Q + K));
  const c2 = Math.hypot(...factors);
  const zeta = 2 * tau0 * Cx * Cx * T * (Q + K);
  const big = O * Cx * Math.sqrt(T) * (1 + V * zeta) + 1;
  const head = pool * Cx * T ** 1.5;
  const bent = (L) => tau0 * head * (2 * L * T * Cx * Cx * (V * big + O) + V * O * Cx * Cx * T * (1 + 3 * L * zeta));
  const c3 = Math.sqrt(N) * Math.hypot(head * (1 + V * zeta), head * (O * zeta + big), bent(K), bent(Q));
  return { alpha, rho, z, c1, c2, c3, C: c1 * c2 + c3 * Math.sqrt(2 * loss), two, three };
}

const turned = (W, m, d) => {
  const rows = new Float64Array(d * m);
  for (let k = 0; k < m; k++) for (let a = 0; a < d; a++) rows[a * m + k] = W[k * d + a];
  return rows;
};

// One step for two samples of one token: neuron 0 may sit at its kink for the first sample.
// x2 = (cos, sin) is the second token; u = (p, q) the neuron's weights, w its output weight; e the
// errors f - y. Returns the errors after the step, as start plus change, and pre-activations.
export function kinkStep({ cos, p, q, w, e }, gamma) {
  const sin = Math.sqrt(1 - cos * cos);
  const tokens = [[1, 0], [cos, sin]];
  const dual = [[1, -cos / sin], [0, 1 / sin]];
  const own = [0, 1].map((k) => dual[k].map((value, a) => value - 0.1 * dual[1 - k][a]));
  const rows = [[p, q], ...own];
  const weights = [w, 0, 0];
  const z = tokens.map((x) => rows.map((row) => row[0] * x[0] + row[1] * x[1]));
  const change = [0, 0];
  const after = [0, 0];
  let slope = 0;
  rows.forEach((row, k) => {
    const gate = [0, 1].map((n) => (z[n][k] > 0 ? e[n] * weights[k] : 0));
    const grad = [0, 1].map((a) => gate[0] * tokens[0][a] + gate[1] * tokens[1][a]);
    const value = e[0] * Math.max(z[0][k], 0) + e[1] * Math.max(z[1][k], 0); // d loss / d w_k
    slope += grad[0] ** 2 + grad[1] ** 2 + value * value;
    const next = weights[k] - gamma * value;
    tokens.forEach((x, n) => {
      const moved = -gamma * (grad[0] * x[0] + grad[1] * x[1]);
      const there = z[n][k] + moved;
      // relu(there) - relu(z), without cancellation
      const jump = z[n][k] > 0 ? (there > 0 ? moved : -z[n][k]) : Math.max(there, 0);
      change[n] += next * jump - gamma * value * Math.max(z[n][k], 0);
      if (k === 0) after[n] = there;
    });
  });
  const before = e[0] ** 2 + e[1] ** 2;
  const growth = (2 * (e[0] * change[0] + e[1] * change[1]) + change[0] ** 2 + change[1] ** 2) / before;
  return { change, growth, slope: (2 * slope) / before, before: z.map((row) => row[0]), after };
}
