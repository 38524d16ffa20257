// Assumption 3 under the hand: the tail of the similarity of two samples against exp(-t^c).

import { explorable, fixed } from "./kit/kit.js";

const KINDS = ["paper", "unit", "number", "onehot"];
const WORDS = {
  paper: "10 raw Gaussian tokens of 100 features",
  unit: "10 tokens of 100 features, each of length 1",
  number: "One Gaussian number",
  onehot: "One of 20 one-hot tokens",
};
const PYTHON = {
  paper: "problems.gaussian_regression(n=100, T=10, d=100, rng=rng).X",
  unit: "problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, rng=rng).X",
  number: "rng.standard_normal((400, 1, 1))",
  onehot: "np.eye(20)[rng.integers(20, size=400)][:, None]",
};
const TOKENS = 10; // of a sample of the paper's data
const HOT = 20; // one-hot tokens

// Does P(similarity >= t) <= exp(-t^c) hold for every t? From the law of the data, not from a sample:
// at the least similarity drawn the frequency is 1, so that no sample is ever below exp(-t^c).
function verdict(kind, c, times) {
  const four = times ** 4;
  if (kind === "onehot") {
    const inside = Math.log(HOT) >= four ** c;
    return { inside, why: `two of ${HOT} one-hot tokens are the same with chance ${1 / HOT}, and exp(-t^c) at the largest t, ${fixed(four)}, is ${fixed(Math.exp(-(four ** c)), 3)}` };
  }
  if (kind === "number") {
    const half = Math.abs(c - 0.5) < 1e-6;
    const why = half
      ? times <= 1 ? "c = 1/2 is the only exponent that it has" : "at large t the tail is that of exp(-sqrt(t)/s^2) for numbers times s"
      : c < 0.5 ? "a similarity below t has a chance of order sqrt(t) log(1/t), and t^c is asked for as t goes to 0" : "for large t its tail falls like exp(-sqrt(t)/s^2) for numbers times s";
    return { inside: half && times <= 1, why };
  }
  return { inside: c >= TOKENS ** 2 / 2 && times ** 4 * TOKENS ** 2 <= 1, why: `a similarity below t has a chance of order t^${TOKENS ** 2 / 2} as t goes to 0, and about t^c is asked for` };
}

export default explorable({
  name: "tail_meter",
  title: "Assumption 3 meets data: how alike are two samples?",
  defaults: { kind: "unit", c: 1, scale: 0, bet: null },
  build(kit) {
    const alike = Object.fromEntries(KINDS.map((kind) => [kind, Array.from(kit.data(kind).values)]));
    const scaled = (state) => alike[state.kind].map((value) => value * 10 ** (4 * state.scale));
    // worst excess of P(similarity >= t) over exp(-t^c); both tails fall, so look at the samples
    const worst = (sorted, c) => sorted.reduce((most, value, k) => {
      const excess = (k === 0 || sorted[k - 1] < value ? 1 - k / sorted.length : 0) - Math.exp(-(value ** c));
      return Math.max(most, excess);
    }, 0);
    const cs = Array.from({ length: 60 }, (_, k) => (k + 1) / 20);
    kit.bet({
      question: "The paper's own synthetic data, tokens of length 1. For which c does Assumption 3 hold?",
      options: ["for small c", "for large c", "for none"],
      outcome: (state) => {
        const least = Math.min(...cs.map((c) => worst(alike.unit, c)));
        return `${state.bet === 2 ? "Yes." : "Look again."} At t = 1 every tail is 1/e = 0.368, whatever c, and a share of ${fixed(alike.unit.filter((value) => value >= 1).length / alike.unit.length, 3)} of the pairs is that similar. The worst excess for c up to 3 is never below ${fixed(least, 3)}. Your data and c: ${fixed(worst(scaled(state), state.c), 3)}.`;
      },
    });
    const row = kit.row();
    const tail = kit.chart({
      label: "chance that two samples are at least this similar", title: "chance of a similarity of at least t",
      x: { range: [1e-4, 1e5], log: true, label: "similarity t" }, y: { range: [0, 1.05] },
    }, row);
    const gap = kit.chart({
      label: "worst excess by c", title: "worst excess over exp(-t^c), by c",
      x: { range: [0, 3], label: "c" }, y: { range: [0, 1] },
    }, row);
    kit.legend([[0, "data"], [1, "allowed, exp(-t^c)", true], [2, "worst excess"]]);
    kit.slider({ key: "c", label: "exponent c", min: 0.05, max: 3, step: 0.05 });
    kit.slider({ key: "scale", label: "data times", min: -1, max: 0.5, step: 0.05, show: (s) => fixed(10 ** s) });
    kit.choice({ key: "kind", label: "data", options: [["paper", "raw tokens"], ["unit", "length 1"], ["number", "one number"], ["onehot", "one-hot"]] });
    const grid = Array.from({ length: 181 }, (_, k) => 10 ** (-4 + k / 20));
    return (state) => {
      const sorted = scaled(state);
      const M = sorted.length;
      tail.begin();
      const [xs, ys] = [[1e-4], [sorted.filter((value) => value >= 1e-4).length / M]];
      const stride = Math.ceil(M / 500); // a line of ten thousand corners would be slow to drag
      sorted.forEach((value, k) => {
        if (value < 1e-4 || (k % stride && k < M - 1)) return;
        const next = Math.min(M, k + stride);
        xs.push(value, value);
        ys.push((M - k) / M, (M - next) / M);
      });
      xs.push(1e5);
      ys.push(0);
      tail.line("data", xs, ys, { series: 0, width: 2.5 });
      tail.line("allowed", grid, grid.map((t) => Math.exp(-(t ** state.c))), { series: 1, dash: "6 4", width: 2.5 });
      tail.mark("e", 1, Math.exp(-1), { series: 1, shape: "square", size: 4.5 });
      tail.text("et", 1, Math.exp(-1), "1/e at t = 1", { series: 1, dx: 8, dy: -6 });
      tail.end();
      const excess = worst(sorted, state.c);
      gap.begin();
      gap.line("worst", cs, cs.map((c) => worst(sorted, c)), { series: 2, width: 2.5 });
      gap.mark("here", state.c, excess, { series: 2, size: 6 });
      gap.end();
      const { inside, why } = verdict(state.kind, state.c, 10 ** state.scale);
      kit.say(`${WORDS[state.kind]}, times ${fixed(10 ** state.scale)}: similarities from ${fixed(sorted[0])} to ${fixed(sorted[M - 1])}, middle ${fixed(sorted[M >> 1])}. With c = ${fixed(state.c)} the sample's tail is above exp(-t^c) by ${excess < 1e-3 ? excess.toExponential(1) : fixed(excess, 3)} at most. The assumption ${inside ? "holds" : "fails"}: ${why}.`);
      kit.el.dataset.excess = String(excess);
      kit.el.dataset.inside = String(inside);
      kit.el.dataset.middle = String(sorted[M >> 1]);
    };
  },
  code: (state) => `import numpy as np
from attnlab import problems
from attnbook import theory

rng = np.random.default_rng(0)
X = ${Number((10 ** state.scale).toPrecision(6))} * ${PYTHON[state.kind]}
alike = theory.encoder.similarity(X)[np.triu_indices(len(X), 1)]
for t in np.quantile(alike, [0.0, 0.1, 0.5, 0.9]):
    allowed = float(theory.encoder.dissimilarity(t, ${state.c}))
    print(f"t = {t:.4g}: frequency {(alike >= t).mean():.3f}, allowed {allowed:.3f}")`,
});
