// Margins of the tokenized mixture in closed form; the NumPy twins are in theory.multihead.

import { bisect } from "./search.js";

// The linear oracle, the tangent features after one step, and saturated attention. `Z` bounds the
// noise's scores on all patterns; the first step is taken as exact (P = 0).
export function marginsAt({ T = 10, zeta = 0.1, S = 2, M = 2, Z = 0 }) {
  const root = Math.sqrt(T / 2);
  const lin = S * root * (zeta - (2 * (1 - zeta) * Z) / S ** 2);
  const inner = zeta * S ** 4 - 7 * Z * S ** 2 - 12 * Z ** 2 - (16 * Z ** 3) / S ** 2;
  const star = lin + (T * (1 - zeta) * zeta * inner) / (4 * Math.sqrt(2 * (M + 1)));
  return { lin, star, attn: S * root };
}

// The signal S at which the bound on tangent features passes attention; noise is kept.
export function crossing({ T = 10, zeta = 0.1, M = 2, Z = 0 }) {
  const ahead = (S) => {
    const { star, attn } = marginsAt({ T, zeta, S, M, Z });
    return star > attn;
  };
  let [low, high] = [1e-3, 1];
  while (!ahead(high)) [low, high] = [high, 2 * high];
  [low, high] = bisect(low, high, ahead, 80);
  return (low + high) / 2;
}

// The share of relevant tokens that noise r = Z / S^2 asks for, so that the bound on tangent
// features is no worse than the linear oracle.
export const shareNeeded = (r) => 7 * r + 12 * r ** 2 + 16 * r ** 3;

// Where the linear bound itself is still positive.
export const shareLinear = (r) => (2 * r) / (1 + 2 * r);
