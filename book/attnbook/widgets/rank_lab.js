// A lab for ranks: K and Q are trained; how many columns does their product use, and where does one
// draw the bar between a value and nothing?

import { explorable } from "./kit/kit.js";
import { Lab, Nuclear, cosineOf, draw, singular } from "./kit/lab.js";
import { group, label, line, power, rect, text } from "./kit/view.js";

const BUDGET = 7;
const STEPS = 2000;
const LOW = 1e-10;

export default explorable({
  name: "rank_lab",
  title: "A lab for ranks: where would you draw the bar?",
  defaults: { m: 6, n: 6, T: 4, d: 10, seed: 0, bar: 1e-4 },
  build(kit) {
    const shape = kit.data("X").shape;
    const stored = (seed) => ({
      X: Array.from({ length: shape[1] }, (_, i) => Array.from({ length: shape[2] }, (__, t) => kit.list("X", seed, i, t))),
      z: Array.from({ length: shape[1] }, (_, i) => kit.list("z", seed, i)), v: kit.list("v", seed),
    });
    const start = (state) => ["K", "Q"].map((name) => Array.from({ length: state.d }, (_, a) => kit.list(name, state.seed, a).slice(0, state.m)).flat());
    let run = null;
    let frame = null;
    const kept = new Map(); // runs that came to their end
    const begin = (state) => {
      const problem = draw(stored(state.seed), state.n, state.T, state.d);
      const lab = new Lab(problem, { m: state.m, start: start(state) });
      run = { lab, values: singular(lab.W, state.d), nuclear: null, done: false };
      const go = () => {
        const until = performance.now() + BUDGET;
        while (lab.steps < STEPS && performance.now() < until) lab.step();
        if (lab.steps >= STEPS) {
          run.solver ||= new Nuclear(problem, lab.tokens());
          while (run.solver.left > 0 && performance.now() < until) run.solver.step();
        }
        run.values = singular(lab.W, state.d);
        if (run.solver && run.solver.left <= 0) {
          const goal = run.solver.W;
          run.nuclear = goal && singular(goal, state.d);
          run.cosine = goal ? cosineOf(lab.W, goal) : null;
          run.done = true;
        } else frame = window.requestAnimationFrame(go);
        kit.schedule();
      };
      frame = window.requestAnimationFrame(go);
    };
    kit.stops.push(() => window.cancelAnimationFrame(frame));
    const above = (values, bar) => values.filter((x) => x > bar * values[0]).length;
    kit.view({
      name: "values",
      told: (state) => (run ? `Singular values of the trained product, relative: ${run.values.map((x) => power(x / run.values[0])).join(", ")}${run.nuclear ? `; of the nuclear margin: ${run.nuclear.map((x) => power(x / run.nuclear[0])).join(", ")}` : ""}; bar at ${power(state.bar)}` : ""),
      draw: (w, state) => {
        if (!run) return { height: 10, inner: "" };
        const [l, r, H] = [56, w - 8, 250];
        const bottom = H - 30;
        const Y = (x) => bottom - (Math.log10(Math.max(x, LOW) / LOW) / Math.log10(1 / LOW)) * (bottom - 26);
        const cell = (r - l) / state.d;
        const ticks = [1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10].map((v) => line(l, Y(v), r, Y(v), { class: "al-grid" }) + text(l - 7, Y(v) + 4, power(v).replace("1.0 · ", ""), { class: "al-small", "text-anchor": "end" })).join("");
        const bars = run.values.map((x, k) => {
          const top = Y(x / run.values[0]);
          const near = run.nuclear ? Y(run.nuclear[k] / run.nuclear[0]) : bottom;
          return group({ "data-mark": "trained" }, rect(l + k * cell + cell * 0.12, top, cell * 0.36, bottom - top, { class: "al-fill-trained", "fill-opacity": x > state.bar * run.values[0] ? 0.95 : 0.35 }))
            + group({ "data-mark": "nuc" }, rect(l + k * cell + cell * 0.52, near, cell * 0.36, bottom - near, { class: "al-fill-nuc", "fill-opacity": run.nuclear && run.nuclear[k] > state.bar * run.nuclear[0] ? 0.95 : 0.35 }))
            + text(l + k * cell + cell / 2, bottom + 16, k + 1, { class: "al-small", "text-anchor": "middle" });
        }).join("");
        const bar = line(l, Y(state.bar), r, Y(state.bar), { class: "al-stroke-bound", "stroke-width": 2, "stroke-dasharray": "6 4" }) + text(r, Y(state.bar) - 5, "your bar", { class: "al-label al-text-bound al-halo-text", "text-anchor": "end" });
        const key = rect(l, 4, 10, 10, { class: "al-fill-trained" }) + text(l + 15, 13, label("trained $KQ^\\top$"), { class: "al-small" })
          + rect(l + 120, 4, 10, 10, { class: "al-fill-nuc" }) + text(l + 135, 13, "nuclear margin", { class: "al-small" });
        return { height: H, inner: ticks + bars + bar + key };
      },
    });
    const bar = kit.controls();
    kit.slider({ key: "bar", label: "bar, relative to the largest value", values: Array.from({ length: 19 }, (_, j) => Number((10 ** (-j / 2)).toPrecision(2))), show: power, parent: bar });
    const sizes = kit.controls();
    kit.slider({ key: "m", label: "columns", min: 1, max: 12, step: 1, show: String, parent: sizes });
    kit.slider({ key: "n", label: "sequences", min: 1, max: 8, step: 1, show: String, parent: sizes });
    kit.slider({ key: "T", label: "tokens", min: 2, max: 8, step: 1, show: String, parent: sizes });
    kit.slider({ key: "d", label: "width", min: 2, max: 20, step: 1, show: String, parent: sizes });
    kit.button("Other data", () => kit.set({ seed: (kit.state.seed + 1) % shape[0] }), sizes);
    let key = "";
    return (state) => {
      const now = JSON.stringify([state.n, state.T, state.d, state.m, state.seed]);
      if (now !== key) {
        if (run && run.done) kept.set(key, run);
        key = now;
        window.cancelAnimationFrame(frame);
        if (kept.has(now)) run = kept.get(now);
        else begin(state);
      }
      kit.el.dataset.done = String(run.done);
      const rank = above(run.values, state.bar);
      const told = `m = ${state.m}, n = ${state.n}, T = ${state.T}, d = ${state.d}.`;
      if (!run.done) { kit.say(`${told} ${run.solver ? "The nuclear margin is being solved." : `Step ${run.lab.steps}.`}`); return; }
      if (!run.nuclear) { kit.say(`${told} No W separates the tokens in the lead: take a larger d.`); return; }
      const other = above(run.nuclear, state.bar);
      kit.say(`${told} Above the bar: ${rank} values of the run, ${other} of the nuclear margin. Cosine of the two ${run.cosine.toFixed(3)}.`);
      Object.assign(kit.el.dataset, { ranks: JSON.stringify([rank, other]), cosine: run.cosine.toFixed(6) });
    };
  },
  code: (state) => `import numpy as np
from attnbook import widgets
from attnlab import models, optim, svm

lab = widgets.RankLab()
problem = lab.drawn(n=${state.n}, T=${state.T}, d=${state.d}, seed=${state.seed})
model = models.Attention(factors=${state.m})
run = optim.train(model, problem, optim.NormalizedGD(0.1), ${STEPS}, every=${STEPS},
                  params=lab.start(d=${state.d}, m=${state.m}, seed=${state.seed}))
product = run.params["K"] @ run.params["Q"].T
tokens = model.attention(run.params, problem).argmax(axis=-1)
goal = svm.attention_svm(problem, tokens, norm="nuc")
for W in (product, goal.W):
    values = np.linalg.svd(W)[1]
    print((values > ${state.bar} * values[0]).sum())`,
});
