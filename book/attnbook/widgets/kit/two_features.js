// Two sequences of two tokens, one W: all that training does to attention happens in the plane of
// m_1 = <F_1, W> and m_2 = <F_2, W>, the leads of the best tokens. With the Gram matrix G of the two
// features and the score gaps, descent moves m along G w, w_i = |loss'(u_i)| gap_i s_i (1 - s_i) / 2.

import { dot } from "./vectors.js";

export const share = (m) => 1 / (1 + Math.exp(-m)); // attention on the best token
export const lead = (s) => Math.log(s / (1 - s));
export const gram = (f) => f.map((a) => f.map((b) => dot(a, b)));

const soft = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x))); // log(1 + e^x)

// Logarithms of the two weights. Scores are +gap/2 and -gap/2, so the mean score is gap (s - 1/2).
export const logWeights = (m, gaps) => m.map((x, i) =>
  Math.log(gaps[i] / 2) - soft(gaps[i] * (share(x) - 0.5)) - soft(x) - soft(-x));

export const ratio = (m, gaps) => {
  const [a, b] = logWeights(m, gaps);
  return Math.exp(b - a); // w_2 / w_1
};

export const loss = (m, gaps) => m.reduce((sum, x, i) => sum + soft(-gaps[i] * (share(x) - 0.5)), 0) / 2;
export const floor = (gaps) => gaps.reduce((sum, g) => sum + soft(-g / 2), 0) / 2;

// Where m goes, up to speed, and how long W's own step is for it.
export function push(m, G, gaps) {
  const logs = logWeights(m, gaps);
  const top = Math.max(...logs);
  const w = logs.map((x) => Math.exp(x - top));
  const d = G.map((row) => dot(row, w));
  return { d, size: Math.sqrt(Math.max(dot(w, d), 0)) };
}

// Normalized descent: every step moves W by `eta`.
export function follow(start, G, gaps, steps, eta = 0.1) {
  let m = start.slice();
  const found = [m];
  for (let k = 0; k < steps; k++) {
    const { d, size } = push(m, G, gaps);
    m = m.map((x, i) => x + (eta * d[i]) / size);
    found.push(m);
  }
  return found;
}

// Below which w_2 / w_1 the wrong lead of sequence 2 outruns the right one of sequence 1; 0: never.
export function threshold([[a, c], [, b]]) {
  const [against, rest] = [-c - a, b + c];
  return against > 0 && rest > 0 ? against / rest : 0;
}

const swap = ([[a, c], [, b]]) => [[b, c], [c, a]];

// Which sequence can be lost for ever: 2, 1, or 0 for neither.
export const atRisk = (G) => (threshold(G) > 0 ? 2 : threshold(swap(G)) > 0 ? 1 : 0);

// Far out the ratio is rho exp(-(|m_2| - m_1)); it meets the threshold where |m_2| - m_1 is this.
export function trap(G, gaps) {
  const slope = (g, way) => Math.exp(-soft(way * g / 2));
  const rho = (slope(gaps[1], -1) * gaps[1]) / (slope(gaps[0], 1) * gaps[0]);
  return Math.log(rho / threshold(G));
}

// The curve between the two fates, traced back from far out (backwards it attracts); points from
// far out to where it leaves [low, high] x [low, high], or nothing where no start is lost.
export function separatrix(G, gaps, [low, high]) {
  const risk = atRisk(G);
  if (!risk) return [];
  if (risk === 1) return separatrix(swap(G), [gaps[1], gaps[0]], [low, high]).map(([u, v]) => [v, u]);
  const far = 2 * (high - low);
  let m = [far, -far - trap(G, gaps)];
  const found = [];
  for (let k = 0; k < 4000; k++) {
    const inside = m.every((x) => x >= low - 0.3 && x <= high + 0.3);
    if (inside) found.push(m);
    else if (found.length) break;
    const { d } = push(m, G, gaps);
    const size = Math.hypot(...d);
    const h = inside ? 0.1 : 0.3;
    const half = m.map((x, i) => x - (h / 2) * (d[i] / size)); // midpoint rule
    const mid = push(half, G, gaps).d;
    const length = Math.hypot(...mid);
    m = m.map((x, i) => x - (h * mid[i]) / length);
  }
  return found;
}

// Leads of the max-margin matrix: both are 1 (B.1), unless one feature alone serves the other more.
export function maxMargin([[a, c], [, b]]) {
  if (c > a) return [1, c / a];
  if (c > b) return [c / b, 1];
  return [1, 1];
}

// Where a start ends: the sequences whose best token gets the attention in the limit.
export function fate(start, G, gaps) {
  let m = start.slice();
  for (let k = 0; k < 900; k++) {
    const { d } = push(m, G, gaps);
    const size = Math.hypot(...d);
    const h = 0.05 + 0.0004 * k;
    m = m.map((x, i) => x + (h * d[i]) / size);
  }
  return m.map((x) => x > 0);
}

// At most this is w_2 / w_1 where m_1 > 0 > m_2: the loss slopes at their worst, both softmax
// factors rounded; `loosened` has the bound after each rounding.
export function loosened(m, gaps) {
  const apart = Math.abs(m[1]) - m[0];
  const rho = Math.exp(soft(gaps[0] / 2) - soft(-gaps[1] / 2)) * gaps[1] / gaps[0];
  const [one, two] = m.map((x) => 1 + Math.exp(-Math.abs(x)));
  return { apart, rho, slopes: rho * Math.exp(-apart) * (one / two) ** 2, bound: 4 * rho * Math.exp(-apart) };
}
