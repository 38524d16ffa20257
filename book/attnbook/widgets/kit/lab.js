// Attention of any size, trained while one looks on: flat arrays, exact or textbook gradients, W or
// K and Q; the max-margin problems of what it settles on. NumPy twins: attnlab.optim, attnlab.svm.

import { LOSSES } from "./losses.js";
import { nearestWeights } from "./masks.js";
import { dotAt } from "./vectors.js";

const EPS = 2.220446049250313e-16;

// A problem out of stored numbers: the first n sequences, T tokens, d coordinates, made unit.
export function draw({ X, z, v }, n, T, d) {
  const unit = (row) => { const size = Math.hypot(...row); return row.map((x) => x / size); };
  return {
    X: X.slice(0, n).map((rows) => rows.slice(0, T).map((x) => unit(x.slice(0, d)))),
    z: z.slice(0, n).map((x) => unit(x.slice(0, d))), v: unit(v.slice(0, d)),
    y: Array.from({ length: n }, (_, i) => (i % 2 ? -1 : 1)),
  };
}

export class Lab {
  // `m` columns of K and Q, or 0 for W itself, which starts from zero.
  constructor(problem, { loss = "logistic", how = "exact", eta = 0.1, m = 0, start = null }) {
    const { X, z, y, v } = problem;
    Object.assign(this, { problem, eta, how, m, n: X.length, T: X[0].length, d: v.length, steps: 0 });
    this.loss = LOSSES[loss];
    this.X = Float64Array.from(X.flat(2));
    this.z = Float64Array.from(z.flat());
    this.gamma = Float64Array.from(X.flatMap((rows, i) => rows.map((x) => y[i] * x.reduce((s, c, k) => s + c * v[k], 0))));
    this.W = new Float64Array(this.d * this.d);
    if (m) [this.K, this.Q] = start.map((one) => Float64Array.from(one));
    if (m) this.product();
    this.G = new Float64Array(this.d * this.d);
    this.logs = new Float64Array(this.n * this.T);
    this.lead = new Int32Array(this.n);
  }

  product() {
    const { d, m, K, Q, W } = this;
    for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) W[a * d + b] = dotAt(K, a * m, Q, b * m, m);
  }

  // Logarithms of the attention, and which token leads in each row.
  look() {
    const { n, T, d, X, z, W, logs, lead } = this;
    const u = new Float64Array(d);
    for (let i = 0; i < n; i++) {
      for (let a = 0; a < d; a++) u[a] = dotAt(W, a * d, z, i * d, d);
      let r = 0;
      for (let t = 0; t < T; t++) {
        logs[i * T + t] = dotAt(X, (i * T + t) * d, u, 0, d);
        if (logs[i * T + t] > logs[i * T + r]) r = t;
      }
      const top = logs[i * T + r];
      let sum = 0;
      for (let t = 0; t < T; t++) if (t !== r) sum += Math.exp(logs[i * T + t] - top);
      const share = Math.log1p(sum);
      for (let t = 0; t < T; t++) logs[i * T + t] -= top + share;
      lead[i] = r;
    }
  }

  gradient() {
    this.look();
    const { n, T, d, X, z, gamma, logs, lead, G } = this;
    G.fill(0);
    const textbook = this.how === "textbook";
    let top = textbook ? 0 : -Infinity;
    if (!textbook) for (let i = 0; i < n; i++) for (let t = 0; t < T; t++) if (t !== lead[i]) top = Math.max(top, logs[i * T + t]);
    const p = new Float64Array(d);
    for (let i = 0; i < n; i++) {
      const r = lead[i];
      const own = gamma[i * T + r];
      let mean = 0;
      for (let t = 0; t < T; t++) {
        if (textbook) mean += Math.exp(logs[i * T + t]) * gamma[i * T + t];
        else if (t !== r) mean += Math.exp(logs[i * T + t]) * (gamma[i * T + t] - own);
      }
      const c = this.loss.slope(textbook ? mean : own + mean) / n;
      p.fill(0);
      for (let t = 0; t < T; t++) {
        if (!textbook && t === r) continue;
        const from = textbook ? mean : own + mean;
        const q = c * Math.exp(logs[i * T + t] - top) * (textbook ? gamma[i * T + t] - from : gamma[i * T + t] - own - mean);
        for (let a = 0; a < d; a++) p[a] += q * (X[(i * T + t) * d + a] - (textbook ? 0 : X[(i * T + r) * d + a]));
      }
      for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) G[a * d + b] += p[a] * z[i * d + b];
    }
    return G;
  }

  step() {
    const { d, m, eta } = this;
    const G = this.gradient();
    const plus = this.how === "textbook" ? EPS : 0;
    const move = (A, slope) => {
      const by = eta / (Math.sqrt(dotAt(slope, 0, slope, 0, slope.length)) + plus);
      if (Number.isFinite(by)) for (let k = 0; k < A.length; k++) A[k] -= by * slope[k];
    };
    if (!m) move(this.W, G);
    else {
      const [left, right] = [new Float64Array(d * m), new Float64Array(d * m)];
      for (let a = 0; a < d; a++) {
        for (let b = 0; b < d; b++) {
          for (let c = 0; c < m; c++) {
            left[a * m + c] += G[a * d + b] * this.Q[b * m + c];
            right[b * m + c] += G[a * d + b] * this.K[a * m + c];
          }
        }
      }
      move(this.K, left);
      move(this.Q, right);
      this.product();
    }
    this.steps += 1;
  }

  // Attention [n][T], and the tokens in the lead.
  attention() {
    this.look();
    return Array.from({ length: this.n }, (_, i) => Array.from({ length: this.T }, (__, t) => Math.exp(this.logs[i * this.T + t])));
  }

  tokens() { this.look(); return Array.from(this.lead); }
}

const differences = ({ X, z }, tokens) => {
  const found = [];
  X.forEach((rows, i) => rows.forEach((x, t) => { if (t !== tokens[i]) found.push({ i, gap: rows[tokens[i]].map((a, k) => a - x[k]), z: z[i] }); }));
  return found;
};
const inner = (a, b) => dotAt(a, 0, b, 0, a.length);
const assemble = (rows, weights, d) => {
  const W = new Float64Array(d * d);
  rows.forEach(({ gap, z }, k) => { if (weights[k]) for (let a = 0; a < d; a++) for (let b = 0; b < d; b++) W[a * d + b] += weights[k] * gap[a] * z[b]; });
  return W;
};

// The max-margin W (flat) of a selection in the Frobenius norm; null where there is none.
export function marginOf(problem, tokens) {
  const rows = differences(problem, tokens);
  const weights = nearestWeights(rows.map((p) => rows.map((q) => inner(p.gap, q.gap) * inner(p.z, q.z))));
  if (!weights) return null;
  const W = assemble(rows, weights, problem.v.length);
  const xx = inner(W, W);
  return W.map((x) => x / xx);
}

// The same in the nuclear norm, by reweighted least squares: |W|_* is the least of
// (tr(W' A^-1 W) + tr A) / 2 over A, at A = (W W')^(1/2); A gets a floor that shrinks. Good to a
// thousandth in `rounds` steps, which may be spread over frames; its zeros are as small as the floor.
export class Nuclear {
  constructor(problem, tokens, rounds = 300) {
    Object.assign(this, { problem, rows: differences(problem, tokens), d: problem.v.length, left: rounds });
    this.W = marginOf(problem, tokens);
    if (this.W) this.floor = 0.3 * Math.sqrt(inner(this.W, this.W));
    else this.left = 0;
  }

  step() {
    const { rows, d } = this;
    this.left -= 1;
    const A = root(this.W, d, this.floor);
    this.floor *= 0.95;
    const AF = rows.map(({ gap }) => A.map((row) => inner(row, gap)));
    const weights = nearestWeights(rows.map((p, a) => rows.map((q) => inner(AF[a], q.gap) * inner(p.z, q.z))));
    if (!weights) { this.left = 0; return; }
    const next = assemble(rows.map(({ z }, a) => ({ gap: AF[a], z })), weights, d);
    const least = Math.min(...rows.map(({ gap, z }) => gap.reduce((s, g, a) => s + g * dotAt(next, a * d, z, 0, d), 0)));
    if (least > 0) this.W = next.map((x) => x / least);
    else this.left = 0;
  }
}

export function nuclearOf(problem, tokens) {
  const found = new Nuclear(problem, tokens);
  while (found.left > 0) found.step();
  return found.W;
}

// (W W' + floor^2)^(1/2) as rows.
function root(W, d, floor) {
  const S = Array.from({ length: d }, (_, a) => Array.from({ length: d }, (__, b) => dotAt(W, a * d, W, b * d, d) + (a === b ? floor * floor : 0)));
  const { values, vectors } = eigen(S);
  const roots = values.map((x) => Math.sqrt(Math.max(x, 0)));
  return S.map((_, a) => S.map((__, b) => roots.reduce((s, r, k) => s + r * vectors[a][k] * vectors[b][k], 0)));
}

// Eigenvalues and vectors (columns) of a symmetric matrix, by Jacobi's rotations.
export function eigen(S) {
  const d = S.length;
  const A = S.map((row) => row.slice());
  const V = S.map((_, a) => S.map((__, b) => (a === b ? 1 : 0)));
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0;
    let all = 0;
    for (let p = 0; p < d; p++) for (let q = 0; q < d; q++) { all += A[p][q] ** 2; if (p !== q) off += A[p][q] ** 2; }
    if (off <= 1e-28 * all) break;
    for (let p = 0; p < d; p++) {
      for (let q = p + 1; q < d; q++) {
        if (A[p][q] === 0) continue;
        const theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
        const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1);
        const s = t * c;
        for (let k = 0; k < d; k++) { const [x, y] = [A[k][p], A[k][q]]; A[k][p] = c * x - s * y; A[k][q] = s * x + c * y; }
        for (let k = 0; k < d; k++) { const [x, y] = [A[p][k], A[q][k]]; A[p][k] = c * x - s * y; A[q][k] = s * x + c * y; }
        for (let k = 0; k < d; k++) { const [x, y] = [V[k][p], V[k][q]]; V[k][p] = c * x - s * y; V[k][q] = s * x + c * y; }
      }
    }
  }
  return { values: A.map((row, a) => row[a]), vectors: V };
}

// Singular values of a flat square matrix, largest first.
export function singular(W, d) {
  const scale = Math.max(...W.map(Math.abs)) || 1;
  const U = Float64Array.from(W, (x) => x / scale); // one-sided Jacobi keeps small ones
  for (let sweep = 0; sweep < 30; sweep++) {
    let turned = false;
    for (let p = 0; p < d; p++) {
      for (let q = p + 1; q < d; q++) {
        const [a, b, c] = [dotAt(U, p * d, U, p * d, d), dotAt(U, q * d, U, q * d, d), dotAt(U, p * d, U, q * d, d)];
        if (Math.abs(c) <= 1e-15 * Math.sqrt(a * b)) continue;
        turned = true;
        const theta = (b - a) / (2 * c);
        const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const [cos, sin] = [1 / Math.sqrt(t * t + 1), t / Math.sqrt(t * t + 1)];
        for (let k = 0; k < d; k++) {
          const [x, y] = [U[p * d + k], U[q * d + k]];
          U[p * d + k] = cos * x - sin * y;
          U[q * d + k] = sin * x + cos * y;
        }
      }
    }
    if (!turned) break;
  }
  return Array.from({ length: d }, (_, p) => scale * Math.sqrt(dotAt(U, p * d, U, p * d, d))).sort((a, b) => b - a);
}

export const cosineOf = (A, B) => inner(A, B) / Math.sqrt(inner(A, A) * inner(B, B));
