// The same update computed in two ways, in the plane: by the textbook formula, which subtracts
// nearly equal numbers once softmax saturates, and from the tokens that are not in the lead.
// NumPy twins: attnlab.models (value_and_grad, scaled_grad), attnlab.optim (NormalizedGD).

import { LOSSES } from "./losses.js";

export const EPS = 2.220446049250313e-16;

// Two sequences of three tokens in the plane, scores their heights: searched for, so that the
// textbook's run comes within a third of a degree of its direction and then leaves it.
export const EXAMPLE = {
  X: [[[0, -0.4], [0.9, 0.4], [-0.6, -1.2]], [[-1.3, -0.3], [-1.6, 1.1], [-0.2, -0.4]]],
  z: [[-0.82, -0.58], [-0.29, 0.96]], y: [1, 1], v: [0, 1],
};

// Formats by the digits of their significand, and their smallest positive number.
export const FORMATS = { 53: 2 ** -1074, 24: 2 ** -149, 8: 2 ** -133 };

// The nearest number of a format, ties to even.
export function rounded(x, digits = 53) {
  if (digits === 53 || x === 0 || !Number.isFinite(x)) return x;
  const size = Math.abs(x);
  let e = Math.floor(Math.log2(size));
  if (2 ** e > size) e -= 1;
  if (2 ** (e + 1) <= size) e += 1;
  const unit = Math.max(2 ** (e - digits + 1), FORMATS[digits]);
  const m = x / unit;
  const low = Math.floor(m);
  const rest = m - low;
  return (rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low) * unit;
}

// What softmax of two tokens with scores 1 and 0 keeps at a gap of logits: both weights, and what
// the gradient makes of each, s (score - mean), by the textbook and exactly.
export function pair(gap, digits = 53) {
  const r = (x) => rounded(x, digits);
  const e = r(Math.exp(-gap));
  const sum = r(1 + e);
  const [winner, loser] = [r(1 / sum), r(e / sum)];
  const mean = winner; // its score is 1, the loser's 0
  const exact = Math.exp(-gap) / (1 + Math.exp(-gap)) ** 2;
  return {
    winner, loser, lost: r(1 - winner),
    textbook: [r(winner * r(1 - mean)), r(loser * r(0 - mean))],
    exact: [exact, -exact],
  };
}

// Sign, exponent and fraction of a number as it is stored.
export function bits(x) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  return Array.from({ length: 64 }, (_, k) => (view.getUint8(k >> 3) >> (7 - (k & 7))) & 1).join("");
}

// Direction of the gradient in W (four numbers) and the logarithm of its scale. `how`: "textbook" or "exact".
export function slopeOf(problem, w, how, loss = "logistic") {
  const { X, z, y, v } = problem;
  const n = X.length;
  const { slope } = LOSSES[loss];
  const g = [0, 0, 0, 0];
  let top = -Infinity;
  const rows = X.map((x, i) => {
    const [z0, z1] = z[i];
    const [u0, u1] = [w[0] * z0 + w[1] * z1, w[2] * z0 + w[3] * z1];
    const a = x.map(([p, q]) => p * u0 + q * u1);
    const gamma = x.map(([p, q]) => y[i] * (p * v[0] + q * v[1]));
    let r = 0;
    a.forEach((value, t) => { if (value > a[r]) r = t; });
    let sum = 0;
    a.forEach((value, t) => { if (t !== r) sum += Math.exp(value - a[r]); });
    return { x, z0, z1, a, gamma, r, sum };
  });
  if (how === "textbook") {
    for (const { x, z0, z1, a, gamma, r, sum } of rows) {
      const s = a.map((value) => Math.exp(value - a[r]) / (1 + sum));
      const mean = s.reduce((total, p, t) => total + p * gamma[t], 0);
      const c = slope(mean) / n;
      let [p0, p1] = [0, 0];
      s.forEach((p, t) => { const q = c * p * (gamma[t] - mean); p0 += q * x[t][0]; p1 += q * x[t][1]; });
      g[0] += p0 * z0; g[1] += p0 * z1; g[2] += p1 * z0; g[3] += p1 * z1;
    }
    return { g, log: 0 };
  }
  for (const row of rows) {
    const { a, r, sum, gamma } = row;
    const share = Math.log1p(sum);
    row.logs = a.map((value) => value - a[r] - share);
    row.mean = row.logs.reduce((total, l, t) => (t === r ? total : total + Math.exp(l) * (gamma[t] - gamma[r])), 0);
    row.logs.forEach((l, t) => { if (t !== r && l > top) top = l; });
  }
  for (const { x, z0, z1, gamma, r, logs, mean } of rows) {
    const c = slope(gamma[r] + mean) / n;
    let [p0, p1] = [0, 0];
    logs.forEach((l, t) => {
      if (t === r) return;
      const q = c * Math.exp(l - top) * (gamma[t] - gamma[r] - mean);
      p0 += q * (x[t][0] - x[r][0]);
      p1 += q * (x[t][1] - x[r][1]);
    });
    g[0] += p0 * z0; g[1] += p0 * z1; g[2] += p1 * z0; g[3] += p1 * z1;
  }
  return { g, log: top };
}

// Normalized steps from 0: W at each of `times` (ascending). `eps` stands beside the textbook's
// length, as in the published code; exact steps need none.
export function train(problem, { how, eps = EPS, eta, times }) {
  let w = [0, 0, 0, 0];
  const found = [];
  const last = times[times.length - 1];
  let next = 0;
  for (let k = 0; k <= last; k++) {
    if (k === times[next]) { found.push([[w[0], w[1]], [w[2], w[3]]]); next += 1; }
    const { g } = slopeOf(problem, w, how);
    const size = Math.sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2] + g[3] * g[3]);
    const by = eta / (size + (how === "textbook" ? eps : 0));
    if (Number.isFinite(by) && size > 0) w = w.map((value, j) => value - by * g[j]);
  }
  return found;
}
