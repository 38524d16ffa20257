// Assumption 3 on real data: how often two reviews, or two digits, are at least so alike.

import { explorable, fixed } from "./kit/kit.js";
import { plot } from "./kit/views.js";

const KINDS = ["texts", "images"];
const WORDS = { texts: "reviews", images: "digits" };

export default explorable({
  name: "real_tails",
  title: "How alike are two reviews, or two digits?",
  answers: ["texts", "images"],
  defaults: { data: "texts", c: 1, scale: 0, open: 0, texts: null, images: null },
  build(kit) {
    const kind = (state) => Math.max(0, KINDS.indexOf(state.data));
    const counts = KINDS.map((_, j) => kit.list("counts", j));
    const N = counts[0].length;
    const total = counts.map((row) => row.reduce((a, b) => a + b, 0));
    // share of pairs at least so alike, at the left edge of each bin
    const shares = counts.map((row, j) => {
      let above = total[j];
      return row.map((n) => { const share = above / total[j]; above -= n; return share; });
    });
    const edges = Array.from({ length: N }, (_, k) => k / N);
    const [least, middle, slope, start, tokens] = ["least", "middle", "slope", "start", "tokens"].map((name) => kit.list(name));
    const times = (state) => 10 ** (4 * state.scale); // X times s makes a similarity s^4 times as large
    // the worst excess over exp(-t^c) among thresholds that leave some pairs on either side
    const worst = (state) => shares[kind(state)].reduce((most, share, k) => {
      if (share <= 0 || share >= 1) return most;
      const t = edges[k] * times(state);
      const excess = share - Math.exp(-(t ** state.c));
      return excess > most.excess ? { excess, t } : most;
    }, { excess: -Infinity, t: 0 });

    kit.caption("Share of pairs at least so alike, against what Assumption 3 allows, $e^{-t^c}$");
    plot(kit, {
      height: 300, x: { range: [0.01, 1e5], log: true, label: "similarity $t$ of two samples" }, y: { range: [0, 1.05], ticks: [0, 0.25, 0.5, 0.75, 1] },
      told: (state) => (kit.opened ? `The share of pairs of ${WORDS[state.data]} by similarity, beside the bound for c = ${fixed(state.c)}.` : "An empty picture, until you answer."),
      lines: (state) => {
        if (!kit.opened) return [];
        const j = kind(state);
        const t = edges.map((v) => v * times(state));
        const grid = Array.from({ length: 141 }, (_, k) => 10 ** (-2 + k / 20));
        const fitted = edges.map((v) => (v >= middle[j] ? Math.exp(start[j] + slope[j] * v) : NaN));
        const over = shares[j].map((share, k) => (share > 0 && share < 1 && share > Math.exp(-(t[k] ** state.c)) ? share : NaN));
        return [
          { xs: grid, ys: grid.map((v) => Math.exp(-(v ** state.c))), colour: "bound", dash: "7 4", name: "allowed", at: 0.3 },
          { xs: t, ys: fitted, colour: "nuc", dash: "2 4", width: 1.6 },
          { xs: t, ys: shares[j], colour: "loss", name: WORDS[state.data], at: 0.15, width: 2.6 },
          { xs: t, ys: over, colour: "violation", width: 4.5 },
        ];
      },
    });
    const controls = kit.controls();
    kit.slider({ key: "c", label: "exponent c", min: 0.05, max: 4, step: 0.05, parent: controls });
    kit.slider({ key: "scale", label: "X times", min: 0, max: 1.1, step: 0.02, show: (s) => fixed(10 ** s), parent: controls });
    kit.choice({ key: "data", label: "data", options: [["texts", "IMDB reviews"], ["images", "MNIST digits"]], parent: controls });
    kit.draws.push(() => { controls.hidden = !kit.opened; });
    const ask = (key, j, words) => ({
      kind: "number", key, min: 0, max: 1, step: 0.01, show: (v) => fixed(v, 2), question: words,
      truth: () => middle[j],
      say: (mine) => {
        const fact = `Half of the pairs of ${WORDS[key]} are above ${fixed(middle[j], 3)}; the least alike pair has ${fixed(least[j], 3)}`;
        if (mine === null) return `${fact}.`;
        if (mine > 2 * middle[j]) return `They have less in common. ${fact}.`;
        if (mine < middle[j] / 2) return `They have more in common. ${fact}.`;
        return `Close. ${fact}.`;
      },
    });
    kit.predict({
      heading: "Two samples $X$ and $X'$, each of length 1 ($\\|X\\|_F=1$). A similarity of 1 means the same tokens, 0 nothing in common.",
      go: "Show the pairs",
      start: () => {},
      asks: [
        ask("texts", 0, "Two film reviews, as word vectors: how alike are they in the middle of all pairs?"),
        ask("images", 1, "Two digits, as the patches that a Vision Transformer sees before it has learned anything?"),
      ],
    });
    return (state) => {
      if (!kit.opened) {
        kit.say("The pairs are hidden until you answer.");
        return;
      }
      const j = kind(state);
      const { excess, t } = worst(state);
      const fails = excess > 0 ? `is broken by ${fixed(excess, 3)} at t = ${Number(t.toPrecision(3))}` : "is kept wherever some pairs are less alike and some more";
      kit.say(`${total[j].toLocaleString("en")} pairs of ${WORDS[state.data]}, X times ${fixed(10 ** state.scale)} (tokens of length 1 would be ${fixed(Math.sqrt(tokens[j]), 1)}). Half of them are above t = ${Number((middle[j] * times(state)).toPrecision(3))}. With c = ${fixed(state.c)} the bound ${fails}.`);
      kit.el.dataset.excess = String(excess);
      kit.el.dataset.kept = String(excess <= 0);
    };
  },
  code: (state) => `import numpy as np
from attnbook import figures

data = figures.kept("${state.data === "images" ? "encoder.6" : "encoder.1"}")
counts = data["counts"].sum(axis=0)
share = counts[::-1].cumsum()[::-1] / counts.sum()
t = ${Number((10 ** (4 * state.scale)).toPrecision(6))} * np.arange(len(counts)) / len(counts)
some = (share > 0) & (share < 1)
print((share - np.exp(-(t**${state.c})))[some].max())`,
});
