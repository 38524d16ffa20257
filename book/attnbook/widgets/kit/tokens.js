// Sequences in the plane in training: what the board, the dissector and the gradient's derivation
// share. Problems and matrices as in core.js; frames are kept, so that a scrubber is free.

import { attention, attentionSVM, factorStep, logits, nuclearSVM, scores, step } from "./core.js";
import { softmax } from "./softmax.js";
import { cosine, norm, times, transpose, zeros } from "./vectors.js";

// Searched for: the best token of sequence 1 falls to 0.7 % of the attention before it takes all.
export const BOARD = {
  X: [[[-1.5, 0.8], [1.5, 0], [0.2, -1], [-0.7, -1]], [[-1.1, -1.1], [1.4, 0.2], [0.7, -0.8], [-0.4, -0.4]]],
  z: [[0.1, -0.9], [-0.1, -1.1]],
  y: [1, 1],
  v: [0.2, 1],
};
export const FACTORS = [[[0.1, 0.02], [-0.03, 0.1]], [[0.1, -0.02], [0.03, 0.1]]]; // K and Q at step 0
export const ETA = { W: 0.1, KQ: 0.05 };

export const problemOf = ({ X, z, y, v }) => ({ X, z, y, v });

export const angle = (A, B) =>
  (norm(A) > 0 && norm(B) > 0 ? (Math.acos(Math.max(-1, Math.min(1, cosine(A, B)))) * 180) / Math.PI : null);

// The logistic loss above that of the best scores, formed from the other tokens: nothing cancels.
export function aboveFloor(problem, W, weights = attention(problem, W), gamma = scores(problem)) {
  return weights.reduce((sum, s, i) => {
    const top = Math.max(...gamma[i]);
    const behind = s.reduce((rest, p, t) => rest + p * (top - gamma[i][t]), 0);
    const e = Math.exp(-top);
    return sum + Math.log1p((e * Math.expm1(behind)) / (1 + e));
  }, 0) / gamma.length;
}

// Per sequence: attention s, logits a, the best token b, the leading one, the mean score, and the
// pull c_t = s_t (gamma_t - mean) of each token; scores may be given.
export function pulls(problem, W, gamma = scores(problem)) {
  return logits(problem, W).map((a, i) => {
    const s = softmax(a);
    const b = gamma[i].indexOf(Math.max(...gamma[i]));
    const lead = a.indexOf(Math.max(...a));
    const D = gamma[i].map((g) => g - gamma[i][lead]); // the leading one's is 0, exactly
    const behind = D.reduce((sum, x, t) => sum + s[t] * x, 0);
    const c = D.map((x, t) => s[t] * (x - behind));
    c[lead] = -c.reduce((sum, x, t) => (t === lead ? sum : sum + x), 0);
    return { s, a, b, lead, c, gamma: gamma[i], mean: behind + gamma[i][lead] };
  });
}

// Steps 0 to `steps` of normalized descent from W = 0, or of K and Q from FACTORS.
const kept = new Map();
export function train(problem, steps, form = "W") {
  const key = JSON.stringify([problem, form]);
  if (!kept.has(key)) {
    if (kept.size > 3) kept.delete(kept.keys().next().value); // the oldest
    const [K, Q] = FACTORS;
    const d = problem.v.length;
    kept.set(key, { frames: [], K, Q, W: form === "KQ" ? times(K, transpose(Q)) : zeros(d, d) });
  }
  const run = kept.get(key);
  const gamma = scores(problem);
  while (run.frames.length <= steps) {
    const { W } = run;
    const s = attention(problem, W);
    run.frames.push({ W, s, gap: aboveFloor(problem, W, s, gamma), length: norm(W) });
    if (form === "KQ") {
      [run.K, run.Q] = factorStep(problem, run.K, run.Q, ETA.KQ);
      run.W = times(run.K, transpose(run.Q));
    } else run.W = step(problem, W, ETA.W);
  }
  return run.frames;
}

// The max-margin answer in the norm that belongs to a form, kept for the last problem.
let last = { key: "" };
export function answer(problem, form = "W") {
  const key = JSON.stringify(problem);
  if (last.key !== key) last = { key };
  if (!last[form]) last[form] = form === "KQ" ? nuclearSVM(problem) : attentionSVM(problem);
  return last[form];
}
