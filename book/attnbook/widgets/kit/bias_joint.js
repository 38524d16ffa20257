// Head and attention trained together, the basin of a bad direction, and the textbook gradient.
// Twins: attnlab.optim's DecayedNormalizedGD, NormalizedGD and JointNormalizedGD on two tokens a
// sample, NormalizedGD on attnlab.problems.bad_direction(), and Attention.value_and_grad; tests
// compare them in the browser.

import { LOSSES, logSigmoid } from "./losses.js";
import { apply, applyFlat, dot, zeros } from "./vectors.js";

// Joint training from zero, in coordinates of the tokens: v = sum b_k x_k, W = sum w_i F_i with
// F_i = (x_opt - x_rest) z_i'. Tokens 2i and 2i + 1 are sample i's deciding and other token, K is
// their Gram matrix, G that of the F_i (both flat). `head` holds <x_k, u> and `goal` <F_i, V> for
// the unit vectors u and V whose cosines are asked for. A rule is {kind: "each" | "whole", eta,
// head, attention}, the last two being powers of 1 / (t + 1). One row a time:
// [log loss, |v|, |W|, cosine of v, cosine of W, mean attention, length of the head's path].
export function jointTraining({ K, G, y, head, goal }, rule, times) {
  const n = y.length;
  const b = new Float64Array(2 * n);
  const w = new Float64Array(n);
  const [Kb, Kp, p] = [0, 1, 2].map(() => new Float64Array(2 * n));
  const [Gw, Gq, q] = [0, 1, 2].map(() => new Float64Array(n));
  const [margin, share, rest] = [0, 1, 2].map(() => new Float64Array(n)); // attention: logs
  let path = 0;
  const look = () => {
    for (let i = 0; i < n; i++) {
      [share[i], rest[i]] = [logSigmoid(Gw[i]), logSigmoid(-Gw[i])];
      margin[i] = y[i] * (Math.exp(share[i]) * Kb[2 * i] + Math.exp(rest[i]) * Kb[2 * i + 1]);
    }
  };
  const step = (t) => {
    look();
    const least = Math.min(...margin); // losses are divided by the largest
    let top = -Infinity;
    for (let i = 0; i < n; i++) {
      const size = Math.exp(least - margin[i]) * y[i];
      p[2 * i] = size * Math.exp(share[i]);
      p[2 * i + 1] = size * Math.exp(rest[i]);
      const gap = y[i] * (Kb[2 * i] - Kb[2 * i + 1]);
      q[i] = gap === 0 ? -Infinity : least - margin[i] + share[i] + rest[i] + Math.log(Math.abs(gap));
      top = Math.max(top, q[i]);
    }
    const still = top === -Infinity; // at zero the gradient in W is exactly zero
    for (let i = 0; i < n; i++) {
      q[i] = still ? 0 : Math.sign(y[i] * (Kb[2 * i] - Kb[2 * i + 1])) * Math.exp(q[i] - top);
    }
    const size = Math.sqrt(dot(p, applyFlat(K, p, Kp)));
    const other = still ? 0 : Math.sqrt(dot(q, applyFlat(G, q, Gq)));
    let forHead = (rule.eta * (t + 1) ** -rule.head) / size;
    let forW = still ? 0 : (rule.eta * (t + 1) ** -rule.attention) / other;
    if (rule.kind === "whole") {
      const ratio = still ? 0 : Math.exp(top) * other;
      forHead = rule.eta / Math.hypot(size, ratio);
      forW = still ? 0 : forHead * Math.exp(top);
    }
    path += forHead * size;
    for (let k = 0; k < 2 * n; k++) { b[k] += forHead * p[k]; Kb[k] += forHead * Kp[k]; }
    for (let i = 0; i < n && !still; i++) { w[i] += forW * q[i]; Gw[i] += forW * Gq[i]; }
  };
  const rows = [];
  let done = 0;
  for (const t of times) {
    for (; done < t; done++) step(done);
    look();
    const least = Math.min(...margin);
    let sum = 0;
    let attended = 0;
    for (let i = 0; i < n; i++) { sum += Math.exp(least - margin[i]); attended += Math.exp(share[i]); }
    const [size, other] = [Math.sqrt(dot(b, Kb)), Math.sqrt(dot(w, Gw))];
    rows.push([
      Math.log(sum / n) - least, size, other,
      size > 0 ? dot(b, head) / size : 0, other > 0 ? dot(w, goal) / other : 0, attended / n, path,
    ]);
  }
  return rows;
}

// The data of Figure 8 with sample 2's tokens at (-a, .5) and (a, -.5); a = 2.5 is the paper's.
// W moves in the plane of two features g1, g2 only. Here it has coordinates: x along W_mm, y
// towards the wrong token of sample 2. Margins are h_i = <g_i, W> = lean x + side_i y.
export function basinFrame(a) {
  const gram = [4 * 1.0816, -4 * (0.1 - a) ** 2, 4 * (a * a + 0.25) ** 2];
  const width = Math.sqrt((gram[0] + gram[2] - 2 * gram[1]) / (gram[0] * gram[2] - gram[1] ** 2));
  const lean = 1 / width;
  const side = [Math.sqrt(Math.max(gram[0] - lean * lean, 0)), -Math.sqrt(Math.max(gram[2] - lean * lean, 0))];
  const spot = (h1, h2) => { // where the margins are these
    const y = (h1 - h2) / (side[0] - side[1]);
    return [(h1 - side[0] * y) / lean, y];
  };
  const pull = -gram[1] / gram[0]; // by how much training sample 1 alone hurts sample 2
  const wrong = pull >= 1 ? spot(1, -pull) : spot(1, -1); // max margin with sample 2's worse token
  return {
    gram, width, lean, side, wrong, pull,
    largest: Math.max(Math.sqrt(1.04), Math.hypot(a, 0.5)),
    figure: spot(Math.SQRT2 * 1.04, -Math.SQRT2 * (a * a + 0.25)), // -I / |I|, as far as it counts
  };
}

const GAP = [0.4, 1]; // of the scores
const LOW = [-0.2, -0.5];

// One normalized step of length eta, in place; the gradient's scale is divided out.
function basinStep({ lean, side }, W, eta) {
  const logs = [0, 1].map((i) => {
    const h = lean * W[0] + side[i] * W[1];
    const share = logSigmoid(h);
    return Math.log(GAP[i]) + share + logSigmoid(-h) - LOW[i] - GAP[i] * Math.exp(share);
  });
  const top = Math.max(logs[0], logs[1]);
  const [c0, c1] = [Math.exp(logs[0] - top), Math.exp(logs[1] - top)];
  const [dx, dy] = [(c0 + c1) * lean, c0 * side[0] + c1 * side[1]];
  const size = eta / Math.hypot(dx, dy);
  W[0] += size * dx;
  W[1] += size * dy;
}

// Where `steps` normalized steps lead, kept at every `every`-th.
export function basinPath(frame, start, eta, steps, every = 1) {
  const W = start.slice();
  const found = [W.slice()];
  for (let t = 1; t <= steps; t++) {
    basinStep(frame, W, eta);
    if (t % every === 0) found.push(W.slice());
  }
  return found;
}

// Whether sample 2 turns to its better token (h2 >= 0, which is never left again) on the way.
export function basinTurns(frame, start, eta, steps) {
  const W = start.slice();
  for (let t = 0; t <= steps; t++) {
    if (frame.lean * W[0] + frame.side[1] * W[1] >= 0) return true;
    basinStep(frame, W, eta);
  }
  return false;
}

// The longest start that Lemma 2 allows for this step, and the longest step of Theorem 1 (T = 2).
export const basinAllowed = ({ largest, width }, eta) => eta / (4 * largest ** 2 * width);
export const basinLongest = ({ largest }) => Math.log(3) / (2 * largest ** 2);

// The textbook gradient of the exponential loss, X' (diag(s) - s s') gamma z', with a plain
// softmax: it cancels once 1 - s is below rounding. core.js has the exact one. Its rounding error
// is what naive_exact.js shows, hence a softmax of its own, with its own order of operations.
export function textbookGradient({ X, z, y, v }, W) {
  const n = X.length;
  const { value, slope } = LOSSES.exponential;
  const G = zeros(W.length, W[0].length);
  let loss = 0;
  X.forEach((tokens, i) => {
    const gamma = tokens.map((x) => y[i] * dot(x, v));
    const a = apply(tokens, apply(W, z[i]));
    const e = a.map((logit) => Math.exp(logit - Math.max(...a)));
    const share = 1 / e.reduce((sum, weight) => sum + weight, 0);
    const margin = share * dot(e, gamma);
    loss += value(margin) / n;
    tokens.forEach((x, t) => {
      const c = ((gamma[t] - margin) * e[t] * slope(margin) * share) / n;
      x.forEach((left, r) => z[i].forEach((right, k) => { G[r][k] += c * left * right; }));
    });
  });
  return { loss, G };
}
