// A lab: choose a problem, a loss and an arithmetic; it trains while one looks on.

import { explorable } from "./kit/kit.js";
import { Lab, cosineOf, draw, marginOf } from "./kit/lab.js";
import { plot } from "./kit/views.js";
import { group, label, percent, power, rect, text } from "./kit/view.js";

const BUDGET = 7; // milliseconds of training a frame
const LOSSES = [["logistic", "logistic"], ["exponential", "exponential"], ["correlation", "correlation"]];
const HOW = [["exact", "exact"], ["textbook", "published"]];

export default explorable({
  name: "training_lab",
  title: "A lab: what does a run settle on?",
  defaults: { n: 4, T: 4, d: 8, loss: "logistic", how: "exact", seed: 0, steps: 3000 },
  build(kit) {
    const X = kit.data("X").shape;
    const stored = (seed) => ({
      X: Array.from({ length: X[1] }, (_, i) => Array.from({ length: X[2] }, (__, t) => kit.list("X", seed, i, t))),
      z: Array.from({ length: X[1] }, (_, i) => kit.list("z", seed, i)), v: kit.list("v", seed),
    });
    let run = null;
    let frame = null;
    const kept = new Map(); // runs that came to their end
    const begin = (state) => {
      const problem = draw(stored(state.seed), state.n, state.T, state.d);
      const lab = new Lab(problem, { loss: state.loss, how: state.how });
      const times = [...new Set(Array.from({ length: 40 }, (_, j) => Math.round(10 * (state.steps / 10) ** (j / 39))))];
      run = { lab, problem, times, W: [], sizes: [], away: [], goal: null, done: false, attention: lab.attention(), best: bestOf(problem) };
      const go = () => {
        const until = performance.now() + BUDGET;
        while (lab.steps < state.steps && performance.now() < until) {
          for (let k = 0; k < 5 && lab.steps < state.steps; k++) {
            lab.step();
            if (run.times.includes(lab.steps)) { run.W.push(lab.W.slice()); run.sizes.push(Math.hypot(...lab.W)); }
          }
        }
        run.attention = lab.attention();
        if (lab.steps >= state.steps) finish();
        else frame = window.requestAnimationFrame(go);
        kit.schedule();
      };
      const finish = () => {
        const tokens = lab.tokens();
        run.goal = marginOf(problem, tokens);
        run.away = run.goal ? run.W.map((W) => Math.max(1 - cosineOf(W, run.goal), 1e-16)) : [];
        const last = run.away[run.away.length - 1];
        run.kind = !run.goal || last > 0.01 ? "none" : tokens.every((t, i) => t === run.best[i]) ? "global" : "local";
        run.done = true;
      };
      frame = window.requestAnimationFrame(go);
    };
    kit.stops.push(() => window.cancelAnimationFrame(frame));
    const grid = kit.row("al-grid-2");
    const [left, right] = [0, 1].map(() => { const box = document.createElement("div"); grid.append(box); return box; });
    kit.caption("Attention: a row a sequence, ringed the best token", left);
    kit.view({
      parent: left, name: "attention",
      told: () => (run ? `Attention: ${run.attention.map((row, i) => `sequence ${i + 1}: ${row.map(percent).join(", ")}`).join("; ")}` : ""),
      draw: (w) => {
        if (!run) return { height: 10, inner: "" };
        const c = Math.min(44, w / run.lab.T - 3, 300 / run.lab.n - 3);
        return {
          height: run.lab.n * (c + 3) + 4,
          inner: run.attention.map((row, i) => row.map((p, t) => group({ "data-mark": "attention" },
            rect(2 + t * (c + 3), 2 + i * (c + 3), c, c, { class: "al-fill-best al-stroke-rule", "fill-opacity": 0.05 + 0.85 * p }),
            t === run.best[i] ? rect(4 + t * (c + 3), 4 + i * (c + 3), c - 4, c - 4, { class: "al-stroke-best", fill: "none", "stroke-width": 2.2, rx: 3 }) : "",
            c > 30 ? text(2 + t * (c + 3) + c / 2, 2 + i * (c + 3) + c / 2 + 4, percent(p).replace(/\s%/, ""), { class: `al-small${p > 0.55 ? " al-on" : ""}`, "text-anchor": "middle" }) : "")).join("")).join(""),
        };
      },
    });
    kit.caption("$1-\\cos$ with the max-margin direction of its tokens", right);
    plot(kit, {
      parent: right, height: 250, pad: { l: 56 },
      x: { range: (state) => [10, state.steps], log: true, label: "step" },
      y: { range: [1e-8, 2], log: true },
      told: () => (run && run.done && run.away.length ? `1 minus cosine by step, at the end ${power(run.away[run.away.length - 1])}` : "The run is not finished"),
      lines: () => (run && run.away.length ? [{ xs: run.times, ys: run.away, colour: "trained" }] : []),
      marks: () => (run && run.away.length ? [{ x: run.times[run.times.length - 1], y: run.away[run.away.length - 1], colour: "trained" }] : []),
    });
    const sizes = kit.controls();
    kit.slider({ key: "n", label: "sequences", min: 1, max: 8, step: 1, show: String, parent: sizes });
    kit.slider({ key: "T", label: "tokens", min: 2, max: 8, step: 1, show: String, parent: sizes });
    kit.slider({ key: "d", label: "width", min: 2, max: 20, step: 1, show: String, parent: sizes });
    kit.slider({ key: "steps", label: "steps", values: [100, 300, 1000, 3000, 10000], show: (v) => v.toLocaleString("en"), parent: sizes });
    const how = kit.controls();
    kit.choice({ key: "loss", label: "loss", options: LOSSES, parent: how });
    kit.choice({ key: "how", label: "arithmetic", options: HOW, parent: how });
    kit.button("Other data", () => kit.set({ seed: (kit.state.seed + 1) % X[0] }), how);
    let key = "";
    return (state) => {
      const now = JSON.stringify([state.n, state.T, state.d, state.loss, state.how, state.seed, state.steps]);
      if (now !== key) {
        if (run && run.done) kept.set(key, run);
        key = now;
        window.cancelAnimationFrame(frame);
        if (kept.has(now)) run = kept.get(now);
        else begin(state);
      }
      const { lab } = run;
      const told = `${state.n} sequences of ${state.T} tokens, width ${state.d}.`;
      kit.el.dataset.done = String(run.done);
      if (!run.done) { kit.say(`${told} Step ${lab.steps.toLocaleString("en")} of ${state.steps.toLocaleString("en")}.`); return; }
      const size = run.sizes[run.sizes.length - 1];
      const last = run.away[run.away.length - 1];
      const verdict = { global: "It settled on the best tokens", local: "It settled on a worse selection", none: run.goal ? "It has not settled" : "No W separates the tokens in the lead" }[run.kind];
      kit.say(`${told} ${verdict}${run.goal ? `: 1 − cosine ${power(last)}` : ""}; length of W ${size.toFixed(0)} after ${state.steps.toLocaleString("en")} steps.`);
      kit.el.dataset.kind = run.kind;
      kit.el.dataset.away = run.goal ? last.toExponential(6) : "";
    };
  },
  code: (state) => `import numpy as np
from attnbook import widgets
from attnlab import models, optim, svm

problem = widgets.TrainingLab().drawn(n=${state.n}, T=${state.T}, d=${state.d}, seed=${state.seed})
model = models.Attention(loss="${state.loss}", start="zero")
rule = optim.NormalizedGD(0.1, recipe="${state.how === "exact" ? "exact" : "paper"}")
run = optim.train(model, problem, rule, ${state.steps}, every=${state.steps})
print(svm.classify(run), "length", np.linalg.norm(run.params["W"]))`,
});

const bestOf = ({ X, y, v }) => X.map((rows, i) => {
  const scores = rows.map((x) => y[i] * x.reduce((s, a, k) => s + a * v[k], 0));
  return scores.indexOf(Math.max(...scores));
});
