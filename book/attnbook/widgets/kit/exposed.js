// Corners of a set of tokens in the plane: what a single query can be made to select.

import { leastNorm, nnls } from "./core.js";

export const gaps = (tokens, pick) => tokens.flatMap((x, t) => (t === pick ? [] : [tokens[pick].map((value, a) => value - x[a])]));

// The shortest u with gaps u >= 1; where there is none, weights that balance the unit gaps.
export function exposed(tokens, pick) {
  const rows = gaps(tokens, pick);
  const found = leastNorm(rows);
  if (found) return { u: found.w, weights: found.multipliers };
  const units = rows.map((row) => { const size = Math.hypot(...row) || 1; return row.map((x) => x / size); });
  const { x } = nnls([units.map((row) => row[0]), units.map((row) => row[1]), units.map(() => 1)], [0, 0, 1]);
  const sum = x.reduce((a, b) => a + b, 0) || 1;
  return { u: null, weights: x.map((value) => value / sum) };
}

// Directions of u in which all gaps are positive: [from, to], in radians around u.
export function wedge(tokens, pick, u) {
  const middle = Math.atan2(u[1], u[0]);
  const turns = gaps(tokens, pick).map(([x, y]) => Math.atan2(Math.sin(Math.atan2(y, x) - middle), Math.cos(Math.atan2(y, x) - middle)));
  return [middle + Math.max(...turns) - Math.PI / 2, middle + Math.min(...turns) + Math.PI / 2];
}

// Of so many Gaussian draws of T tokens in the plane, the share in which the first is a corner.
export function shareOfCorners(T, draws) {
  let seed = 1;
  const uniform = () => { // mulberry32
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const gauss = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  let corners = 0;
  for (let k = 0; k < draws; k++) {
    const tokens = Array.from({ length: T }, () => [gauss(), gauss()]);
    const angles = gaps(tokens, 0).map(([x, y]) => Math.atan2(y, x)).sort((a, b) => a - b);
    const widest = Math.max(angles[0] + 2 * Math.PI - angles[angles.length - 1], ...angles.slice(1).map((a, j) => a - angles[j]));
    if (widest > Math.PI) corners += 1;
  }
  return corners / draws;
}
