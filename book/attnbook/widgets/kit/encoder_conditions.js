// Conditions (2) and (3) of the encoder paper's Proposition 1, as in attnbook.theory.encoder.

import { bisect } from "./search.js";

// rho and z of the proposition, and the four factors of which condition (2) takes the largest.
export function sizes({ n, T, Cx, tau0, pool, Q, K, V, O }) {
  const rho = Math.sqrt(n) * T ** 1.5 * pool * Cx;
  const z = O ** 2 * (1 + 4 * tau0 ** 2 * Cx ** 4 * T ** 2 * V ** 2 * (Q ** 2 + K ** 2));
  const inner = 2 * tau0 * V * O * T * Cx ** 2;
  return { rho, z, factors: [inner * K, inner * Q, O, V].map((size) => rho * size) };
}

// `bars`: {n, T, Cx, tau0, pool, Q, K, V, O}; alpha, the start's loss, and C for all parameters.
export function conditions(bars, alpha, loss, radius) {
  const { rho, z, factors } = sizes(bars);
  const start = Math.sqrt(2 * loss);
  const largest = Math.max(...factors) / radius;
  return [alpha ** 2 / (8 * largest * start), (alpha ** 3 * bars.O) / (32 * rho ** 2 * z * start)];
}

// The same in the orders of magnitude of Theorem 2's proof: NTK start, tau_0 = 1/width, T = 2,
// C_x = 1, lambda_0 = 1/T, a loss of N/2, constants C = width^power. In print alpha is larger.
export function marginsAt(width, n, power, printed) {
  const [T, radius] = [2, width ** power];
  const size = Math.sqrt(width) + radius;
  const bars = { n, T, Cx: 1, tau0: 1 / width, pool: width ** -0.5, Q: size, K: size, V: size, O: size };
  const alpha = Math.sqrt((printed ? width : 1) / T / 4);
  return conditions(bars, alpha, n / 2, radius);
}

// The least width at which both are 1, by bisection in the logarithm; Infinity beyond 1e40.
export function leastWidth(n, power, printed) {
  const most = 40 * Math.LN10;
  const met = (log) => Math.min(...marginsAt(Math.exp(log), n, power, printed)) >= 1;
  return met(most) ? Math.exp(bisect(0, most, met, 60)[1]) : Infinity;
}
