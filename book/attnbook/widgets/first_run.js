// The book's opening: one sequence, one query, one matrix. The run settles, it seems; then it does not.

import { attentionSVM, gradient, attention, optimal, scores } from "./kit/core.js";
import { explorable, python } from "./kit/kit.js";
import { apply, combine, cosine, norm, unit, zeros } from "./kit/vectors.js";
import { arrow, circle, group, label, line, percent, power, rect, text } from "./kit/view.js";
import { axes, heat, plane, strips, tokens } from "./kit/views.js";

const PAUSE = 60; // where the visitor is asked
const STEPS = 200;
const ETA = 0.1;
const START = [[-1.3, 0.9], [-1.6, -0.8], [-0.9, -0.9], [-0.9, 0.2], [0.5, -0.5], [1.6, 0.7]];
const Z = [0, 1];
const X = [-2.2, 2.2];
const Y = [-1.25, 1.35];
const name = (t) => "ABCDEF"[t];
const problemOf = (state) => ({ X: [state.X], z: [Z], y: [1], v: [0, 1] });

// Loss above its floor, without cancellation.
const above = (gamma, s) => {
  const top = Math.max(...gamma);
  const behind = gamma.reduce((sum, g, t) => sum + s[t] * (top - g), 0);
  const e = Math.exp(-top);
  return Math.log1p((e * Math.expm1(behind)) / (1 + e));
};

let kept = { key: "" };
function run(problem, steps) {
  const key = JSON.stringify(problem.X);
  if (kept.key !== key) kept = { key, frames: [], W: zeros(2, 2), goal: null, gamma: scores(problem)[0] };
  const { frames, gamma } = kept;
  while (frames.length <= steps) {
    const [s] = attention(problem, kept.W);
    frames.push({ W: kept.W, s, gap: above(gamma, s), length: norm(kept.W) });
    const { G } = gradient(problem, kept.W);
    kept.W = norm(G) > 0 ? combine(1, kept.W, -ETA, unit(G)) : kept.W;
  }
  return frames;
}
const goalOf = (problem) => (kept.goal ||= attentionSVM(problem));
const angle = (W, goal) => (norm(W) && goal.status === "optimal" ? (Math.acos(Math.min(1, cosine(W, goal.W))) * 180) / Math.PI : null);

const SAY = {
  stays: "So it looks.",
  spreads: "Something does happen.",
  moves: "Right.",
  wanders: "It does move, once.",
};

export default explorable({
  name: "first_run",
  title: "One query, six tokens, one matrix",
  wide: true,
  answers: ["then"],
  defaults: { t: 0, X: START, open: 0, then: null },
  build(kit) {
    const shown = (state) => Math.min(state.t, kit.opened ? STEPS : PAUSE);
    const frames = () => run(problemOf(kit.state), kit.opened ? STEPS : shown(kit.state));
    const now = (state) => { const f = frames(); return f[Math.min(shown(state), f.length - 1)]; };
    const kinds = (state) => {
      const best = optimal(problemOf(state))[0];
      if (!kit.opened) return () => "other";
      const goal = goalOf(problemOf(state));
      return (t) => (t === best ? "best" : goal.status === "optimal" && goal.support[0][t] ? "rival" : "other");
    };

    const grid = kit.row("al-hero");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    grid.append(left, side);
    kit.caption("Higher is better: a token’s height is its score. Its area is the attention it gets.", left);
    plane(kit, {
      parent: left, x: X, y: Y,
      told: (state) => `Step ${shown(state)}. ${state.X.map((x, t) => `Token ${name(t)}, score ${x[1].toFixed(1)}, attention ${percent(now(state).s[t])}`).join(". ")}`,
      can: () => kit.opened,
      points: (state) => state.X.map(([x, y], t) => ({ key: t, x, y, label: `token ${name(t)}` })),
      move: (t, x, y) => kit.set({ t: kit.state.t || STEPS, X: kit.state.X.map((p, k) => (k === t ? [x, y] : p)) }),
      draw: (state, at) => {
        const frame = now(state);
        const kind = kinds(state);
        let inner = axes(at, X, Y);
        if (kit.opened) {
          const goal = goalOf(problemOf(state));
          if (goal.status === "optimal") {
            const way = unit([apply(goal.W, Z)])[0].map((v) => 3 * v);
            inner += line(...at([0, 0]), ...at(way), { class: "al-stroke-fro", "stroke-width": 2.4, "stroke-dasharray": "8 6", "data-mark": "fro" });
          }
        }
        const way = apply(frame.W, Z);
        const size = Math.hypot(...way);
        inner += tokens(state.X, frame.s, at, { kind, area: 44, ring: kit.opened }).replace(/>(\d)<\/text>/g, (_, t) => `>${name(t - 1)}</text>`);
        if (size > 1e-9) {
          const reach = (0.35 + 0.75 * (1 - Math.exp(-size / 4))) / size;
          const end = at(way.map((v) => v * reach));
          inner += arrow(...at([0, 0]), ...end, { colour: "trained", "data-mark": "trained" })
            + text(end[0] + (way[0] > 0 ? 6 : -6), end[1] - 8, label("$Wz$"), { class: "al-label al-text-trained al-halo-text", "text-anchor": way[0] > 0 ? "start" : "end" });
        }
        return inner;
      },
    });
    kit.view({
      parent: side, name: "bars",
      told: (state) => `Attention: ${now(state).s.map((p, t) => `${name(t)} ${percent(p)}`).join(", ")}`,
      draw: (w, state) => {
        const { s } = now(state);
        const kind = kinds(state);
        const inner = s.map((p, t) => group({ "data-mark": `${kind(t)} tok1${t + 1}` },
          text(0, 15 + 21 * t, name(t), { class: "al-label" }),
          rect(22, 5 + 21 * t, w - 86, 11, { class: "al-track-bar" }),
          rect(22, 5 + 21 * t, (w - 86) * p, 11, { class: `al-fill-${kind(t)}` }),
          text(w, 15 + 21 * t, percent(p), { class: "al-small al-value", "text-anchor": "end" }))).join("");
        return { height: 21 * s.length + 4, inner };
      },
    });
    const pair = document.createElement("div");
    pair.className = "al-pair";
    side.append(pair);
    const matrix = document.createElement("div");
    pair.append(matrix);
    kit.caption("$W$", matrix);
    heat(kit, { parent: matrix, matrix: (state) => now(state).W, largest: 46, digits: 1 });
    const strip = document.createElement("div");
    pair.append(strip);
    strips(kit, {
      parent: strip, height: 44,
      now: (state) => shown(state), steps: () => (kit.opened ? STEPS : PAUSE),
      rows: (state) => {
        const all = frames();
        const frame = now(state);
        const rows = [
          { name: "loss above its floor", values: all.map((f) => f.gap), show: power(frame.gap), colour: "loss", log: kit.opened },
          { name: "length of $W$", values: all.map((f) => f.length), show: frame.length.toFixed(1), colour: "trained" },
        ];
        if (!kit.opened) return rows;
        const goal = goalOf(problemOf(state));
        const here = angle(frame.W, goal);
        return [...rows, { name: "angle to the end", values: all.map((f) => angle(f.W, goal)), show: here === null ? "none" : `${here.toFixed(1)}°`, colour: "fro", range: [0, 90] }];
      },
    });

    const controls = kit.controls();
    let timer = null;
    const stop = () => { window.clearInterval(timer); timer = null; };
    kit.stops.push(stop);
    const play = (from, to, seconds) => {
      stop();
      if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) { kit.set({ t: to }); return; }
      kit.set({ t: from });
      const began = performance.now();
      timer = window.setInterval(() => {
        const t = Math.min(to, from + Math.floor(((performance.now() - began) / 1000 / seconds) * (to - from)));
        kit.set({ t });
        if (t >= to) stop();
      }, 33);
    };
    const train = kit.button("Train", () => play(0, kit.opened ? STEPS : PAUSE, kit.opened ? 7 : 3), controls);
    train.className = "al-main-button";
    const slider = kit.slider({ key: "t", label: "step", min: 0, max: STEPS, step: 1, parent: controls });
    const track = slider.closest("label");
    const asked = document.createElement("div");
    kit.main.append(asked);
    kit.predict({
      parent: asked,
      heading: "",
      about: ["X"],
      go: "Let it run on",
      start: () => play(PAUSE, STEPS, 5),
      over: (state) => state.t >= STEPS,
      asks: [{
        kind: "choice", key: "then",
        question: "After 60 steps token F has nearly all the attention, and the loss hardly falls any more. Let it run 140 steps more: what happens?",
        options: [["stays", "Nothing. It has settled on F."], ["spreads", "Attention spreads out again."], ["moves", "It leaves F for another token, and stays there."], ["wanders", "It goes from token to token, and never settles."]],
        right: () => "moves",
        say: (mine, state) => {
          const all = run(problemOf(state), STEPS);
          const best = optimal(problemOf(state))[0];
          const low = Math.min(...all.map((f) => f.s[best]));
          const turn = all.findIndex((f, k) => k > PAUSE && f.s[best] > 0.5);
          return `${mine ? `${SAY[mine]} ` : ""}The best token, ${name(best)}, falls to ${(100 * low).toFixed(2)} % of the attention, overtakes at step ${turn}, and keeps it. What looked settled was a plateau: the direction of $W$ was still turning to the dashed line, which a small convex problem gives without any training. Drag the tokens: where must it go now?`;
        },
      }],
    });
    return (state) => {
      track.hidden = !kit.opened;
      train.textContent = state.t ? "Train again" : "Train";
      train.hidden = !kit.opened && state.t >= PAUSE;
      asked.hidden = !kit.opened && state.t < PAUSE;
      const frame = now(state);
      const lead = frame.s.indexOf(Math.max(...frame.s));
      kit.say(shown(state) ? `Step ${shown(state)}: token ${name(lead)} has ${percent(frame.s[lead])} of the attention.` : "Step 0: all tokens have the same attention. Press Train.");
      kit.el.dataset.attention = JSON.stringify(frame.s);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array([${python(state.X)}], float), z=np.array([[0.0, 1.0]]), y=np.ones(1), v=np.array([0.0, 1.0]))
run = optim.train(models.Attention(start="zero"), problem, optim.NormalizedGD(${ETA}), steps=${STEPS})
W, goal = run.params["W"], svm.attention_svm(problem).W
print(models.Attention().attention({"W": W}, problem).round(4), svm.correlation(W, goal))`,
});
