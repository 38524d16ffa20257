// One formula, two programs: the published update turns away once softmax saturates.

import { attention, attentionSVM, optimal } from "./kit/core.js";
import { explorable } from "./kit/kit.js";
import { EPS, EXAMPLE, slopeOf, train } from "./kit/saturation.js";
import { axes, bothSides, plane, plot, tokens } from "./kit/views.js";
import { cosine, norm } from "./kit/vectors.js";
import { arrow, group, label, line, power, text } from "./kit/view.js";

const ETA = 0.1;
const LAST = 6000;
const SEEN = 300;
const TIMES = [...new Set([SEEN, ...Array.from({ length: 60 }, (_, j) => Math.round(10 * (LAST / 10) ** (j / 59)))])].sort((a, b) => a - b);
const KNOWN = [10, 20, 40, 80, 160, 300];
const AT = [...KNOWN, 550, 1000, 2000, 3500, LAST];
const EPSILONS = [0, 1e-30, 1e-20, EPS, 1e-12, 1e-8, 1e-4];
const RX = [-2, 1.5];
const RY = [-1.5, 1.5];

const goal = attentionSVM(EXAMPLE);
const away = (W) => (180 / Math.PI) * Math.acos(Math.min(1, cosine(W, goal.W)));
const kept = new Map();
const runOf = (how, eps, times = TIMES) => {
  const key = `${how}${eps}${times.length}`;
  if (!kept.has(key)) {
    const W = train(EXAMPLE, { how, eps, eta: ETA, times });
    kept.set(key, { W, angles: W.map(away), lengths: W.map(norm) });
  }
  return kept.get(key);
};
const degrees = (a) => `${a >= 10 ? a.toFixed(0) : a >= 1 ? a.toFixed(1) : a.toFixed(2)}°`;
const epsilon = (e) => (e === 0 ? "none" : e === EPS ? "2.2 · 10⁻¹⁶" : power(e).replace("1.0 · ", ""));

function answer(mine) {
  const { angles } = runOf("textbook", EPS);
  const low = angles.indexOf(Math.min(...angles));
  const end = angles[angles.length - 1];
  const exact = runOf("exact").angles[angles.length - 1];
  const story = `It comes within ${degrees(angles[low])} at step ${TIMES[low]}, turns round, and is ${degrees(end)} away at step ${LAST.toLocaleString("en")}. Computed exactly, the same steps end at ${degrees(exact)}.`;
  if (!mine) return story;
  const [last, before] = [mine[mine.length - 1], mine[KNOWN.length - 1]];
  if (last > before + 0.5) return `You saw it turn. ${story}`;
  if (last < before - 0.5) return `On paper you are right: the angle falls like 1/k. ${story}`;
  return `A standstill is what one would expect of a step that gets too small. ${story}`;
}

export default explorable({
  name: "arithmetic",
  title: "Two programs for one formula",
  wide: true,
  answers: ["sketch"],
  defaults: { k: TIMES.length - 1, eps: EPS, open: 0, sketch: null },
  build(kit) {
    const at300 = TIMES.indexOf(SEEN);
    const index = (state) => (kit.opened ? state.k : at300);
    const here = (state) => {
      const times = kit.opened ? TIMES : TIMES.slice(0, at300 + 1);
      return { text: runOf("textbook", kit.opened ? state.eps : EPS, times), exact: runOf("exact", 0, times), k: index(state), times };
    };
    const grid = kit.row();
    const part = (parent, style) => { const box = document.createElement("div"); box.style.cssText = style; parent.append(box); return box; };
    const pair = part(grid, "flex: 2 1 420px; min-width: 0; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 12px");
    EXAMPLE.X.forEach((X, i) => {
      const place = part(pair, "min-width: 0");
      kit.caption(`Sequence ${i + 1}`, place);
      plane(kit, {
        x: RX, y: RY, parent: place,
        told: (state) => { const { text: run, k, times } = here(state); const s = attention(EXAMPLE, run.W[k])[i]; return `Sequence ${i + 1} at step ${times[k]}, textbook: attention ${s.map((p, t) => `token ${t + 1} ${power(p)}`).join(", ")}`; },
        draw: (state, to, { w }) => {
          const { text: run, k } = here(state);
          const s = attention(EXAMPLE, run.W[k])[i];
          const best = optimal(EXAMPLE)[i];
          const way = (W, reach) => { const u = W.map((row) => row[0] * EXAMPLE.z[i][0] + row[1] * EXAMPLE.z[i][1]); const size = Math.hypot(...u); return u.map((x) => (x / size) * reach); };
          const [ends, tip] = [way(goal.W, 1.35), way(run.W[k], 1)];
          return axes(to, RX, RY)
            + group({ "data-mark": "fro" }, line(...to([0, 0]), ...to(ends), { class: "al-stroke-fro", "stroke-width": 2, "stroke-dasharray": "7 5" }))
            + tokens(X, s, to, { kind: (t) => (t === best ? "best" : goal.support[i][t] ? "rival" : "other"), seq: i + 1, area: Math.min(18, 0.075 * w) })
            + group({ "data-mark": "trained" }, arrow(...to([0, 0]), ...to(tip), { colour: "trained" }),
              text(to(tip)[0] + (tip[0] < 0 ? -4 : 4), to(tip)[1] - 6, label(`$W z_${i + 1}$`), { class: "al-label al-text-trained al-halo-text", "text-anchor": tip[0] < 0 ? "end" : "start" }));
        },
      });
      kit.view({
        parent: place, name: "missing",
        told: (state) => { const { text: run, k } = here(state); const s = attention(EXAMPLE, run.W[k])[i]; const b = s.indexOf(Math.max(...s)); const rest = s.reduce((sum, p, t) => (t === b ? sum : sum + p), 0); return `Losers together ${power(rest)}; 1 minus the winner, as stored, ${power(1 - s[b])}`; },
        draw: (w, state) => {
          const { text: run, k } = here(state);
          const s = attention(EXAMPLE, run.W[k])[i];
          const b = s.indexOf(Math.max(...s));
          const rest = s.reduce((sum, p, t) => (t === b ? sum : sum + p), 0);
          const lost = 1 - s[b];
          return { height: 40, inner: text(0, 14, label(w < 220 ? "losers" : "the losers, together"), { class: "al-small" }) + text(w, 14, power(rest), { class: "al-small al-value", "text-anchor": "end" })
            + group({ "data-mark": "winner" }, text(0, 33, label(w < 220 ? "1 − winner" : "1 − winner, as stored"), { class: `al-small${lost === 0 ? " al-text-violation" : ""}` }), text(w, 33, lost === 0 ? "0" : power(lost), { class: `al-small${lost === 0 ? " al-text-violation" : " al-value"}`, "text-anchor": "end" })) };
        },
      });
    });
    const side = part(grid, "flex: 1 1 250px; min-width: 0");
    plot(kit, {
      parent: side, height: 230, pad: { l: 44, r: 10 },
      x: { range: [10, LAST], log: true, label: `step, to ${LAST.toLocaleString("en")}`, ticks: [10, 100, 1000], show: (v) => v.toLocaleString("en") },
      y: { range: [1, 1000], log: true, label: "length of $W$", ticks: [1, 10, 100, 1000], show: (v) => v.toLocaleString("en") },
      told: (state) => { const { text: run, k, times } = here(state); return `Length of W by step; at step ${times[k]} it is ${run.lengths[k].toFixed(0)}`; },
      lines: (state) => {
        const { text: run, exact, times } = here(state);
        return [
          ...(kit.opened ? [{ xs: times, ys: exact.lengths, colour: "yes", dash: "7 5", name: "exact", at: 0.8 }] : []),
          { xs: times, ys: run.lengths, colour: "trained", name: "published", at: 0.45, dy: 22 },
        ];
      },
      marks: (state) => { const { text: run, k, times } = here(state); return [{ x: times[k], y: run.lengths[k], colour: "trained" }]; },
    });
    const both = kit.row();
    const gap = document.createElement("div");
    gap.style.flex = "1 1 100%";
    both.append(gap);
    const names = kit.caption("Length of the gradient that each program sees where A stands", gap);
    const bars = bothSides(kit, {
      parent: gap, log: true, names: ["computed", "exact"], show: (v) => power(v),
      rows: (state) => {
        if (!kit.opened) return [];
        const { text: run, k } = here(state);
        const flat = run.W[k].flat();
        const size = (how) => { const { g, log } = slopeOf(EXAMPLE, flat, how); return { g, size: Math.hypot(...g) * Math.exp(log) }; };
        const [a, b] = [size("textbook"), size("exact")];
        const c = a.size > 0 ? a.g.reduce((s, v, j) => s + v * b.g[j], 0) / (Math.hypot(...a.g) * Math.hypot(...b.g)) : 0;
        kit.el.dataset.gradients = JSON.stringify([a.size, b.size, c]);
        return [{ name: `${Math.round((180 / Math.PI) * Math.acos(Math.min(1, c)))}° apart`, left: a.size, right: b.size, ok: c > 0.99 }];
      },
    });
    const bar = kit.controls();
    kit.scrubber({ key: "k", times: TIMES, seconds: 8, parent: bar });
    const more = kit.controls();
    kit.slider({ key: "eps", label: "ε beside the length of the gradient", values: EPSILONS, show: epsilon, parent: more });
    kit.predict({
      heading: "Before it goes on",
      go: "Let A run on",
      asks: [{
        kind: "sketch", key: "sketch", colour: "fro", mark: "fro", name: "angle",
        question: "Program A, the published update, has done 300 steps; so far exact arithmetic would have done the same. Draw the angle between $W$ and the max-margin direction from here on.",
        at: AT,
        known: KNOWN.map((step, j) => Math.log10(runOf("textbook", EPS, KNOWN).angles[j])),
        x: { range: [10, LAST], log: true, label: `step, to ${LAST.toLocaleString("en")}`, name: "step", ticks: [10, 100, 1000], show: (v) => v.toLocaleString("en") },
        y: { range: [-1.5, 2], label: "angle", ticks: [-1, 0, 1, 2], show: (v) => degrees(10 ** v) },
        height: 240,
        truth: (state) => ({ xs: TIMES, ys: runOf("textbook", state.eps).angles.map((a) => Math.log10(Math.max(a, 1e-3))) }),
        here: (state) => [TIMES[state.k], Math.log10(runOf("textbook", state.eps).angles[state.k])],
        also: () => ({ xs: TIMES, ys: runOf("exact", 0).angles.map((a) => Math.log10(Math.max(a, 1e-3))), colour: "yes", name: "exact steps", at: 0.8 }),
        say: answer,
      }],
      start: () => kit.set({ k: TIMES.length - 1, eps: EPS }),
    });
    return (state) => {
      bar.hidden = more.hidden = names.hidden = bars.host.hidden = !kit.opened;
      const { text: run, exact, k, times } = here(state);
      kit.say(`Step ${times[k].toLocaleString("en")}: by the published update W has length ${run.lengths[k].toFixed(0)} and is ${degrees(run.angles[k])} from the max-margin direction${kit.opened ? `; by exact steps ${exact.lengths[k].toFixed(0)} and ${degrees(exact.angles[k])}` : ""}.`);
      kit.el.dataset.angles = JSON.stringify([run.angles[k], exact.angles[k]]);
      kit.el.dataset.step = times[k];
      kit.el.dataset.lengths = JSON.stringify([run.lengths[k], exact.lengths[k]]);
    };
  },
  code: (state) => `import numpy as np
from attnbook import widgets
from attnlab import models, optim, svm

problem = widgets.Arithmetic().problem
goal = svm.attention_svm(problem)
for recipe in ("paper", "exact"):
    how = {"eps": ${state.eps}} if recipe == "paper" else {}
    rule = optim.NormalizedGD(${ETA}, recipe=recipe, **how)
    run = optim.train(models.Attention(start="zero"), problem, rule, ${TIMES[state.k]})
    W = run.params["W"]
    print(recipe, np.linalg.norm(W), np.degrees(np.arccos(svm.correlation(W, goal.W))))`,
});
