// Cosines of the words of real texts, and how many pairs pass the line of Assumption 1, which
// bounds them in absolute value.

import { explorable, fixed } from "./kit/kit.js";
import { percent, power } from "./kit/view.js";

const SETS = ["film reviews", "tweets"];
const PAIRS = ["words of one text", "words of two texts"];
const SPREAD = Math.E; // Upsilon, which is at least e
const WORST = [0.6, 0.4, 0.1, 0.01];

// The largest cosine of nearly orthogonal tokens: 1 / (4 n Upsilon T).
export const lineOf = (n, T) => 1 / (4 * n * SPREAD * T);

// Share of cosines of at most this size, between the thresholds where it is known.
export function shareAt(size, thresholds, shares) {
  const x = Math.log(size);
  const xs = thresholds.map(Math.log);
  const ys = shares.map((v) => Math.log(Math.max(v, 1e-9)));
  if (x <= xs[0]) return Math.exp(ys[0]);
  const k = xs.findIndex((v) => v >= x);
  if (k < 0) return Math.exp(ys[ys.length - 1]);
  return Math.exp(ys[k - 1] + ((x - xs[k - 1]) / (xs[k] - xs[k - 1])) * (ys[k] - ys[k - 1]));
}

export default explorable({
  name: "word_angles",
  title: "How near to orthogonal are words?",
  answers: ["share"],
  defaults: { n: 20, T: 12, of: 0, pairs: 0, open: 0, share: null },
  build(kit) {
    const thresholds = kit.list("thresholds");
    const edges = kit.list("edges");
    const middle = edges.slice(1).map((v, k) => (v + edges[k]) / 2);
    const shares = (state) => kit.list("below", state.of, state.pairs);
    const at = (state, size) => shareAt(size, thresholds, shares(state));
    const row = kit.row();
    const density = kit.chart({ label: "histogram of cosines", title: "cosines of pairs, share of each bin", x: { range: [-0.4, 0.8], label: "cosine" }, y: { range: [0, 0.2] } }, row);
    const below = kit.chart({ label: "share of pairs with an absolute cosine below a line", title: "share of pairs with |cosine| below a line", x: { range: [1e-5, 1], log: true, label: "the line" }, y: { range: [0, 1] } }, row);
    kit.predict({
      heading: "Before you see the pairs", go: "Show them",
      asks: [{
        kind: "choice", key: "share",
        question: "Two words of one film review, each a vector of 384 numbers. For a training on twenty texts of twelve words each, Assumption 1 asks that the cosines of all pairs stay, in absolute value, below a line. What share of pairs does?",
        options: WORST.map((value, k) => [k, k < WORST.length - 1 ? `about ${Math.round(value * 100)} %` : "1 % or less"]),
        right: () => 3 - [...WORST].reverse().findIndex((value) => at({ of: 0, pairs: 0 }, lineOf(20, 12)) <= value * 1.5),
        say: () => {
          const one = { of: 0, pairs: 0 };
          return `${percent(at(one, 0.1))} of the cosines are below .1 in absolute value, which looks nearly orthogonal to the eye, and to the paper's Figure 10. The assumption's line for that training is ${power(lineOf(20, 12))}, and ${fixed(100 * at(one, lineOf(20, 12)), 2)} % of the pairs are below it.`;
        },
      }],
    });
    const controls = kit.controls();
    kit.slider({ key: "n", label: "texts n", values: [2, 5, 10, 20, 50, 100, 1000], show: String, parent: controls });
    kit.slider({ key: "T", label: "words T", values: [2, 3, 4, 6, 8, 12, 25, 50], show: String, parent: controls });
    kit.choice({ key: "of", label: "texts", options: SETS.map((name, k) => [k, name]), parent: controls });
    kit.choice({ key: "pairs", label: "pairs", options: PAIRS.map((name, k) => [k, name]), parent: controls });
    return (state) => {
      const size = lineOf(state.n, state.T);
      density.begin();
      below.begin();
      if (kit.opened) {
        const counts = kit.list("counts", state.of, state.pairs);
        const total = counts.reduce((sum, v) => sum + v, 0);
        middle.forEach((v, k) => {
          if (v > -0.4 && v < 0.8) density.rect(`b${k}`, [edges[k], 0], [edges[k + 1], counts[k] / total], { series: Math.abs(v) < 0.1 ? 2 : 6, strength: 0.55 });
        });
        below.line("all", thresholds, shares(state), { series: 0, width: 2.5 });
        below.mark("near", 0.1, at(state, 0.1), { series: 2, shape: "square", size: 5.5 });
        below.text("near told", 0.1, at(state, 0.1), `.1: ${percent(at(state, 0.1))}`, { series: 2, anchor: "end", dx: -9, dy: -4 });
        below.line("line", [size, size], [0, 1], { series: 1, dash: "6 4", width: 2 });
        below.mark("at", size, at(state, size), { series: 1, size: 6 });
        below.text("line told", size, 0.5, "Assumption 1", { series: 1, dx: 6 });
      }
      density.line("low", [-size, -size], [0, 0.2], { series: 1, dash: "6 4", width: 1.5 });
      density.line("high", [size, size], [0, 0.2], { series: 1, dash: "6 4", width: 1.5 });
      density.end();
      below.end();
      kit.say(kit.opened
        ? `${SETS[state.of]}, ${PAIRS[state.pairs]}: ${percent(at(state, 0.1))} of the cosines are below .1 in absolute value. For ${state.n} texts of ${state.T} words Assumption 1's line is ${power(size)}, and ${fixed(100 * at(state, size), 2)} % are below it.`
        : "Cosines of pairs of words; the line of the assumption is dashed.");
      kit.el.dataset.line = String(size);
      kit.el.dataset.share = kit.opened ? String(at(state, size)) : "";
    };
  },
  code: (state) => `from attnbook import figures, real

data = figures.kept("bias.10")
line = real.probe.line(${state.n}, ${state.T})
shares = data["below"][:, ${state.of}, ${state.pairs}].mean(axis=0)  # at 101 lines from 1e-5 to 1
print(line, shares[::20])`,
});
