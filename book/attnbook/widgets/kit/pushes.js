// Two sequences whose queries are turned against each other, and what adds up to each W z.

import { optimal } from "./core.js";

const FIRST = [1, 0];

export const queries = (angle) => [FIRST, [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)]];
export const problemAt = (state, angle = state.angle) => ({ X: state.X, z: queries(angle), y: [1, 1], v: state.v });

// What sequence j sends to W z_i: the sum of its lambda (x_best - x_t), times <z_j, z_i>.
export function parts(problem, margin, i) {
  const { multipliers } = margin;
  const best = optimal(problem);
  const sums = problem.X.map(() => [0, 0]);
  const single = [];
  let k = 0;
  problem.X.forEach((rows, j) => rows.forEach((x, t) => {
    if (t === best[j]) return;
    const weight = multipliers[k] * (problem.z[j][0] * problem.z[i][0] + problem.z[j][1] * problem.z[i][1]);
    const push = rows[best[j]].map((value, a) => weight * (value - x[a]));
    sums[j] = sums[j].map((value, a) => value + push[a]);
    if (j === i && multipliers[k] > 1e-9) single.push({ t, push });
    k += 1;
  }));
  return { own: sums[i], other: sums[1 - i], single };
}
