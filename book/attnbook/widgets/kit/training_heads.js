// What Theorems 3 and 4 ask for, and the mixture without noise along Definition 1's direction.
// Every function has a NumPy twin in attnlab; tests compare the two in the browser.

import { LOSSES } from "./losses.js";
import { beta3 } from "./onehead.js";

// Least number of heads for a target at distance delta with a longest head of this norm.
export const leastHeads = (delta, norm, sizes, constant = 36, sharp = false) => {
  const bend = beta3(3 * delta + norm, sizes, sharp);
  return ((constant / 2) * bend * delta ** 2) ** 2;
};

// The same for a target that is spread evenly over its heads, from a zero start.
export const leastSpread = (delta, sizes, constant = 36, sharp = false) => {
  const fewest = Math.max(1, leastHeads(delta, 0, sizes, constant, sharp));
  return Math.max(1, leastHeads(delta, delta / Math.sqrt(fewest), sizes, constant, sharp));
};

export const smoothness = (delta, norm, { T, d, R }, H) => {
  const D = 3 * delta + norm;
  const alpha = 3 * Math.sqrt(d) * R ** 2 * (3 * Math.sqrt(T) * R ** 3 * D + 2 * Math.sqrt(T) * R);
  return ((2 * Math.sqrt(T * d) * R ** 3) / Math.sqrt(H) + (T * R ** 2) / 4) * alpha ** 2;
};

// All that the theorems say of a target at distance delta whose margin is gamma * delta.
export function budget({ delta, gamma, T, d, R, K }) {
  const sizes = { T, d, R };
  const heads = leastSpread(delta, sizes);
  const loss = LOSSES.logistic.value(gamma * delta);
  const rho = smoothness(delta, delta / Math.sqrt(heads), sizes, heads);
  const limits = [1, 1 / rho, delta ** 2 / (K * loss), delta ** 2 / Math.log(2)];
  const eta = Math.min(...limits);
  return {
    heads,
    generalization: leastSpread(delta, sizes, 256),
    sharp: leastSpread(delta, sizes, 36, true),
    loss, rho, eta,
    bound: 2 * loss + (5 * delta ** 2) / (4 * eta * K),
    full: (delta ** 2 / loss) * Math.max(1, rho, Math.log(2) / delta ** 2), // from here on the last limit rules
  };
}

// Random numbers in [0, 1) from a whole number: the same in every browser.
export function uniform(seed, count) {
  let a = (seed * 2654435761 + 12345) >>> 0;
  return Array.from({ length: count }, () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  });
}

// Sums over the heads with a positive and with a negative sign: {plus, minus} of {count, sum}.
export function drawSigns(seed, H, law) {
  const found = { plus: { count: 0, sum: 0 }, minus: { count: 0, sum: 0 } };
  uniform(seed, H).forEach((u) => {
    const alpha = law === "uniform" ? 2 * u - 1 || 1e-9 : u < 0.5 ? 1 : -1;
    const group = alpha > 0 ? found.plus : found.minus;
    group.count += 1;
    group.sum += alpha;
  });
  return found;
}

// y times the output at theta_0 + c theta_star on the mixture without noise, for every sample:
// U_h = (alpha_h zeta / 4) 1 u_star' + (c / sqrt H) Ubar_star, W_h = (c / sqrt H) sign(alpha_h) Wbar_star.
export function outputAlong(groups, c, { T, zeta, S, M }) {
  const H = groups.plus.count + groups.minus.count;
  const moved = c / (Math.sqrt(H) * S * Math.sqrt(2 * T));
  const logit = (c * S ** 2) / Math.sqrt(2 * (M + 1) * H);
  const part = ({ count, sum }, sign) => {
    const mass = zeta / (zeta + (1 - zeta) * Math.exp(-sign * logit));
    return ((sum * zeta) / 4 + count * moved) * mass;
  };
  return (T * S ** 2 * (part(groups.plus, 1) + part(groups.minus, -1))) / Math.sqrt(H);
}

// Its slope at c = 0: the margin of P3, for |theta_star| of sqrt 2.
export function tangentMargin(groups, { T, zeta, S, M }) {
  const H = groups.plus.count + groups.minus.count;
  const linear = S * Math.sqrt(T / 2) * zeta;
  const most = (T * (1 - zeta) * zeta ** 2 * S ** 4) / (4 * Math.sqrt(2 * (M + 1)));
  return linear + (most * (groups.plus.sum - groups.minus.sum)) / H;
}
