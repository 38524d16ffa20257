// Lemma 6 of svm: a concave head keeps at least 2 and at most tau tokens. The proof compares any
// mixture with a better one, so the mixture is the reader's. Twins: theory.svm.water_filling,
// theory.svm.thresholds, models.ConcaveHead; tests/browser/test_derivations.py.

import { waterFilling } from "../kit/core.js";
import { derivation } from "../kit/derive.js";
import { fixed, python } from "../kit/kit.js";
import { dot } from "../kit/vectors.js";
import { circle, html, line, rect, text } from "../kit/view.js";
import { plane } from "../kit/views.js";

const squares = (s) => dot(s, s);
const sum = (values) => values.reduce((a, b) => a + b, 0);

// By score, best first.
const order = (gamma) => gamma.map((_, t) => t).sort((a, b) => gamma[b] - gamma[a]);

function situation({ gamma, s: given, lambda: chosen, tau, dropped }) {
  const T = gamma.length;
  const by = order(gamma);
  const g = by.map((t) => gamma[t]);
  const gap = (t) => g[t - 1] - g[t];
  const sharp = [gap(1) / 2, sum(g.slice(0, tau).map((x) => x - g[tau])) / 2];
  const printed = [gap(1), (tau * gap(tau)) / 2];
  let lambda = chosen;
  if (dropped.has("lower")) lambda = 0.4 * gap(1);
  if (dropped.has("upper")) lambda = 1.5 * sharp[1];
  const mine = dropped.has("upper") ? waterFilling(gamma, lambda) : given;
  // tokens e_1, e_2, ...; dropped: the best two lean towards each other
  const X = by.map((_, t) => by.map((__, k) => (t === k ? 1 : 0)));
  if (dropped.has("orthonormal")) [X[1][0], X[1][1]] = [0.8, 0.6];
  const s = by.map((t) => mine[t]); // by score
  const mixed = X[0].map((_, k) => sum(s.map((share, t) => share * X[t][k])));
  const sorted = s.slice().sort((a, b) => b - a);
  const S1 = sum(sorted.slice(0, tau));
  const even = !dropped.has("even");
  const bar = sorted.map((share, t) => (t >= tau ? 0 : even ? share + (1 - S1) / tau : share / S1));
  const loss = (shares) => lambda * squares(shares) - dot(g, shares);
  const head = squares(sorted.slice(0, tau));
  const best = waterFilling(g, lambda);
  return {
    T, tau, g, by, lambda, mine, s, sorted, S1, bar, best, loss, sharp, printed, even, gap1: gap(1), gapTau: gap(tau),
    length: squares(mixed), squares: squares(s), head, lost: dot(g, bar) - dot(g, sorted),
    gain: loss(sorted) - loss(bar), bracket: gap(tau) - (lambda * (1 + S1)) / tau,
    kept: best.filter((x) => x > 0).length, one: lambda - g[0], pair: lambda / 2 - (g[0] + g[1]) / 2,
  };
}

export default derivation({
  id: "svm-lemma-6",
  beside: true,
  defaults: { gamma: [1, 0.9, 0.8, 0.2, 0.1], s: [0.2, 0.35, 0.15, 0.1, 0.2], lambda: 0.5, tau: 3 },
  hypotheses: {
    orthonormal: { dropped: "The best two tokens now lean towards each other: their inner product is 0.8." },
    lower: { dropped: "$\\lambda$ is now 0.4 times the first gap." },
    upper: { dropped: "$\\lambda$ is now 1.5 times what at most $\\tau$ tokens allow, and $s$ is the best mixture." },
    even: { dropped: "The lost share is now given out in proportion, $s/S_1$, as the paper prints it." },
  },
  situation,
  steps: {
    square(s) {
      return { names: ["$\\|X^\\top s\\|^2$", "$\\sum s_t^2$"], rows: [["your mixture $s$", s.length, s.squares, "=", "you"]],
        say: Math.abs(s.length - s.squares) < 1e-12 ? "Orthonormal tokens: only the shares count." : "Tokens that lean towards each other do not shorten a mixture as much: the objective is another one." };
    },
    sorted(s) {
      const before = s.loss(s.s);
      const after = s.loss(s.sorted);
      return { names: ["largest shares to the best scores", "your mixture $s$"], rows: [["objective $L$", after, before, "≤", "you"]],
        say: before - after > 1e-12 ? `Your shares are not in the order of the scores: putting them in order gains ${fixed(before - after, 3)}.` : "Your shares are in the order of the scores already." };
    },
    even(s) {
      return { names: ["$\\|\\bar s\\|^2-\\|s^{(1)}\\|^2$", "$(1-S_1^2)/\\tau$"], rows: [["what evening out costs in squares", squares(s.bar) - s.head, (1 - s.S1 ** 2) / s.tau, "≤", "bound"]],
        say: s.even ? `$S_1=$ ${fixed(s.S1)}: each of the best ${s.tau} tokens gets ${fixed((1 - s.S1) / s.tau, 3)} more. Both sides are equal.`
          : "The squares of numbers with a given sum are least when they are equal (Cauchy-Schwarz), so in proportion they grow by more." };
    },
    scores(s) {
      return { names: ["$\\gamma^\\top\\bar s-\\gamma^\\top s$", "$(1-S_1)\\,\\gamma^{gap}_\\tau$"], rows: [["what it gains in score", s.lost, (1 - s.S1) * s.gapTau, "≥", "bound"]],
        say: `A share of ${fixed(1 - s.S1)} moves across the gap $\\gamma_\\tau-\\gamma_{\\tau+1}=$ ${fixed(s.gapTau)}, or farther.` };
    },
    most(s) {
      return { names: ["left side", "right side"], rows: [
        ["$L(s)-L(\\bar s)$, against the bound", s.gain, (1 - s.S1) * s.bracket, "≥", "bound"],
        ["$\\gamma^{gap}_\\tau-\\lambda(1+S_1)/\\tau$, positive", s.bracket, 0, ">"]],
      say: s.bracket > 0 ? (s.S1 < 1 - 1e-12 ? `The mixture $\\bar s$ of ${s.tau} tokens is better than yours by ${fixed(s.gain, 3)}. So yours was not the best.` : `Nothing lies beyond the best ${s.tau} tokens: give another one a share.`)
        : `$\\lambda=$ ${fixed(s.lambda)} is too large for the gap: the penalty on squares outweighs the scores, and ${s.kept} tokens are kept.` };
    },
    pair(s) {
      return { names: ["half and half", "one token"], rows: [["objective $L$", s.pair, s.one, "<", "best"]],
        say: s.pair < s.one ? `$\\lambda=$ ${fixed(s.lambda)} is above the first gap, ${fixed(s.gap1)}.` : `$\\lambda=$ ${fixed(s.lambda)} is not above the first gap, ${fixed(s.gap1)}: half a share for the second token costs more than it saves.` };
    },
    count(s) {
      return { names: ["smaller", "larger"], rows: [["at least 2", 2, s.kept, "≤", "best"], [`at most $\\tau=$ ${s.tau}`, s.kept, s.tau, "≤", "best"]], scale: "linear", range: [0, s.T],
        say: `The best mixture keeps ${s.kept} tokens: ${s.best.filter((x) => x > 0).map((x) => fixed(x, 3)).join(", ")}. Proven for $\\lambda$ from ${fixed(s.printed[0], 3)} to ${fixed(s.printed[1], 3)}; true exactly from ${fixed(s.sharp[0], 3)} to ${fixed(s.sharp[1], 3)}.` };
    },
  },
  waterfall(s) {
    if (s.S1 > 1 - 1e-9) return { levels: [{ name: "the best mixture", value: 0 }], say: `Your mixture has nothing beyond the best ${s.tau} tokens, so there is nothing to compare. Give another token a share.` };
    const level = [
      { name: "what the best mixture gains on yours", value: s.loss(s.s) - s.loss(s.best) },
      { step: "sorted", name: "order not used", value: s.loss(s.sorted) - s.loss(s.best) },
      { step: "even", name: "shared evenly, not best", value: s.gain },
      { step: "most", name: "squares beyond $\\tau$ forgotten", value: s.lost - s.lambda * (squares(s.bar) - s.head) },
      { step: "scores", name: "all moved across one gap", value: (1 - s.S1) * s.bracket },
      { step: "most", name: "$1+S_1$ rounded up to 2", value: (1 - s.S1) * (s.gapTau - (2 * s.lambda) / s.tau), proven: "proven gain" },
    ];
    return { levels: level, say: `The gain that is proven, ${fixed(level[5].value, 3)} of ${fixed(level[0].value, 3)}, is what keeps $\\lambda$ below ${fixed(s.printed[1], 2)}. Nothing given away, at most ${s.tau} tokens are kept up to ${fixed(s.sharp[1], 2)}.` };
  },
  data(kit, parent) {
    const T = kit.state.gamma.length;
    const range = [0.4, T + 0.6];
    const names = (at, y) => Array.from({ length: T }, (_, t) => text(at([t + 1, 0])[0], y, t + 1, { class: "al-small", "text-anchor": "middle" })).join("");
    const told = (key, words) => () => `${words}: ${(key === "s" ? kit.situation.mine : kit.state.gamma).map((x, t) => `token ${t + 1} ${fixed(x)}`).join(", ")}`;
    kit.caption("Scores $\\gamma$", parent);
    plane(kit, {
      parent, x: range, y: [-0.2, 1.15], equal: false, height: 130, told: told("gamma", "Scores"),
      points: (state) => state.gamma.map((y, t) => ({ key: `g${t}`, x: t + 1, y, label: `score of token ${t + 1}` })),
      move: (key, _, y) => {
        const gamma = kit.state.gamma.slice();
        gamma[Number(key.slice(1))] = Math.max(0, Math.min(1.1, y));
        kit.set({ gamma });
      },
      draw: (state, at, { h }) => {
        const within = new Set(kit.situation.by.slice(0, state.tau));
        return state.gamma.map((y, t) => {
          const [px, py] = at([t + 1, y]);
          const is = within.has(t) ? "best" : "other";
          return line(px, at([0, 0])[1], px, py, { class: `al-stroke-${is}`, "stroke-width": 2, "data-mark": is }) + circle(px, py, 6, { class: `al-fill-${is}`, "data-mark": is });
        }).join("") + names(at, h - 5);
      },
    });
    kit.caption("Your mixture $s$", parent);
    plane(kit, {
      parent, x: range, y: [-0.13, 0.85], equal: false, height: 160, told: told("s", "Your mixture"),
      points: () => kit.situation.mine.map((y, t) => ({ key: `s${t}`, x: t + 1, y: Math.min(y, 0.85), label: `share of token ${t + 1}` })),
      can: (state) => !state.drop.includes("upper"),
      move: (key, _, y) => {
        const t = Number(key.slice(1));
        const share = Math.max(0, Math.min(1, y));
        const rest = sum(kit.state.s) - kit.state.s[t];
        kit.set({ s: kit.state.s.map((x, j) => (j === t ? share : rest > 1e-9 ? (x * (1 - share)) / rest : (1 - share) / (T - 1))) });
      },
      draw: (state, at, { h, w }) => {
        const s = kit.situation;
        const k = Object.keys(kit.spec.steps).indexOf(state.step);
        const cell = 0.3 * (w / T);
        const over = k >= 6 ? s.best : k >= 2 ? s.bar : k === 1 ? s.sorted : null;
        const colour = k >= 6 ? "best" : "bound";
        return s.mine.map((y, t) => {
          const [px, py] = at([t + 1, y]);
          return rect(px - cell, py, 2 * cell, at([0, 0])[1] - py, { class: "al-fill-you", "fill-opacity": 0.75, "data-mark": "you" });
        }).join("") + (over ? over.map((y, rank) => {
          const [px, py] = at([s.by[rank] + 1, y]);
          return rect(px - cell - 3, py, 2 * cell + 6, at([0, 0])[1] - py, { class: `al-stroke-${colour}`, fill: "none", "stroke-width": 2.5, "data-mark": colour });
        }).join("") : "") + names(at, h - 5);
      },
    });
    const key = kit.row("al-keys");
    parent.append(key);
    const controls = kit.row("al-controls");
    parent.append(controls);
    const lambda = kit.slider({ key: "lambda", label: "penalty λ", min: 0.02, max: 1.5, step: 0.02, parent: controls });
    kit.slider({ key: "tau", label: "at most τ", min: 2, max: T - 1, step: 1, show: String, parent: controls });
    return (state) => {
      const k = Object.keys(kit.spec.steps).indexOf(state.step);
      const words = k >= 6 ? ["best", "the best mixture"] : k >= 2 ? ["bound", "$\\bar s$"] : k === 1 ? ["bound", "in order"] : null;
      key.innerHTML = `<span class="al-text-you" data-mark="you">■ your $s$</span>`.replace("$s$", html("$s$")) + (words ? `<span class="al-text-${words[0]}" data-mark="${words[0]}">□ ${html(words[1])}</span>` : "");
      lambda.disabled = state.drop.includes("lower") || state.drop.includes("upper");
    };
  },
  code: (state) => `from attnbook import theory

scores = ${python(state.gamma)}
print(theory.svm.water_filling(scores, ${state.lambda}))
print(theory.svm.thresholds(scores, tokens=${state.tau}, printed=True))
print(theory.svm.thresholds(scores, tokens=${state.tau}))`,
});
