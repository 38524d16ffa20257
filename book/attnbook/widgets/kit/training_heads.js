// What Theorems 3 and 4 ask for, and the mixture without noise along Definition 1's direction.
// Every function has a NumPy twin in attnlab; tests compare the two in the browser.

const thBeta3 = (D, { T, d, R }) => 2 * Math.sqrt(T * d) * R ** 3 * (3 * Math.sqrt(d) * R ** 2 * D + 1);
const thBeta3Sharp = (D, { T, R }) => Math.sqrt(T) * R ** 3 * (2 * R ** 2 * D + 1);

// Least number of heads for a target at distance delta with a longest head of this norm.
export const thHeads = (delta, norm, sizes, constant = 36, sharp = false) => {
  const beta3 = (sharp ? thBeta3Sharp : thBeta3)(3 * delta + norm, sizes);
  return ((constant / 2) * beta3 * delta ** 2) ** 2;
};

// The same for a target that is spread evenly over its heads, from a zero start.
export const thSpread = (delta, sizes, constant = 36, sharp = false) => {
  const fewest = Math.max(1, thHeads(delta, 0, sizes, constant, sharp));
  return Math.max(1, thHeads(delta, delta / Math.sqrt(fewest), sizes, constant, sharp));
};

export const thRho = (delta, norm, { T, d, R }, H) => {
  const D = 3 * delta + norm;
  const alpha = 3 * Math.sqrt(d) * R ** 2 * (3 * Math.sqrt(T) * R ** 3 * D + 2 * Math.sqrt(T) * R);
  return ((2 * Math.sqrt(T * d) * R ** 3) / Math.sqrt(H) + (T * R ** 2) / 4) * alpha ** 2;
};

const thLoss = (margin) => (margin > 0 ? Math.log1p(Math.exp(-margin)) : -margin + Math.log1p(Math.exp(margin)));

// All that the theorems say of a target at distance delta whose margin is gamma * delta.
export function thBudget({ delta, gamma, T, d, R, K }) {
  const sizes = { T, d, R };
  const heads = thSpread(delta, sizes);
  const loss = thLoss(gamma * delta);
  const rho = thRho(delta, delta / Math.sqrt(heads), sizes, heads);
  const limits = [1, 1 / rho, delta ** 2 / (K * loss), delta ** 2 / Math.log(2)];
  const eta = Math.min(...limits);
  return {
    heads,
    generalization: thSpread(delta, sizes, 256),
    sharp: thSpread(delta, sizes, 36, true),
    loss, rho, eta,
    bound: 2 * loss + (5 * delta ** 2) / (4 * eta * K),
    full: (delta ** 2 / loss) * Math.max(1, rho, Math.log(2) / delta ** 2), // from here on the last limit rules
  };
}

// Random numbers in [0, 1) from a whole number: the same in every browser.
export function thUniform(seed, count) {
  let a = (seed * 2654435761 + 12345) >>> 0;
  return Array.from({ length: count }, () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  });
}

// Sums over the heads with a positive and with a negative sign: {plus, minus} of {count, sum}.
export function thSigns(seed, H, law) {
  const found = { plus: { count: 0, sum: 0 }, minus: { count: 0, sum: 0 } };
  thUniform(seed, H).forEach((u) => {
    const alpha = law === "uniform" ? 2 * u - 1 || 1e-9 : u < 0.5 ? 1 : -1;
    const group = alpha > 0 ? found.plus : found.minus;
    group.count += 1;
    group.sum += alpha;
  });
  return found;
}

// y times the output at theta_0 + c theta_star on the mixture without noise, for every sample:
// U_h = (alpha_h zeta / 4) 1 u_star' + (c / sqrt H) Ubar_star, W_h = (c / sqrt H) sign(alpha_h) Wbar_star.
export function thRay(groups, c, { T, zeta, S, M }) {
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
export function thMargin(groups, { T, zeta, S, M }) {
  const H = groups.plus.count + groups.minus.count;
  const linear = S * Math.sqrt(T / 2) * zeta;
  const most = (T * (1 - zeta) * zeta ** 2 * S ** 4) / (4 * Math.sqrt(2 * (M + 1)));
  return linear + (most * (groups.plus.sum - groups.minus.sum)) / H;
}

export const thLogistic = thLoss;
