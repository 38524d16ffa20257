// A mask under the hand: the triangle of attention, one inequality for every other cell that is
// seen, and the margin, which does not do what a count of inequalities suggests.

import { explorable, python } from "./kit/kit.js";
import { EXAMPLE, ahead, angle, attentionMapOf, bestVisible, inequalities, opened, run } from "./kit/masks.js";
import { attentionMap, axes, plane, tokens } from "./kit/views.js";
import { arrow, circle, group, label, line, percent, rect, text } from "./kit/view.js";

const [ETA, STEPS] = [0.5, 120];
const RX = [-2.4, 1];
const RY = [-1.4, 1.6];
const T = EXAMPLE.X.length;
const CELLS = ahead(T).length;

const sequenceOf = (state) => ({ ...EXAMPLE, X: state.X });
// pressed cells count until the slider moves on
const maskOf = (state) => (state.own && state.own.at === state.cells
  ? state.own.mask.map((row) => row.map(Boolean)) : opened(T, state.cells));

const kept = new Map();
const cached = (key, make) => {
  if (!kept.has(key)) {
    if (kept.size > 60) kept.clear();
    kept.set(key, make());
  }
  return kept.get(key);
};
const asked = (state, mask = maskOf(state)) =>
  cached(`svm${JSON.stringify([state.X, mask])}`, () => inequalities(sequenceOf(state), mask));
const trained = (state) =>
  cached(`run${JSON.stringify([state.X, maskOf(state)])}`, () => run(sequenceOf(state), maskOf(state), ETA, STEPS));
const margins = (state) => cached(`all${JSON.stringify(state.X)}`, () =>
  Array.from({ length: CELLS + 1 }, (_, cells) => inequalities(sequenceOf(state), opened(T, cells)).margin));

const shown = (margin) => (margin === Infinity ? "without limit" : margin > 0 ? margin.toFixed(2) : "none");

function answer(mine, state) {
  const truth = margins(state);
  const [from, to] = [truth[0], truth[CELLS]];
  const low = truth.indexOf(Math.min(...truth));
  const story = `It falls to ${shown(truth[low])} at ${low} open cells and ends at ${shown(to)}, ${to > from ? "above" : "below"} the ${shown(from)} of the causal mask, with twice as many inequalities.`;
  if (!mine) return story;
  const end = mine[CELLS];
  const rises = mine.slice(1).some((value, j) => value > mine[j] + 0.03);
  if (!rises && end < from - 0.05) {
    return `More inequalities, a smaller margin: that is right as long as every position wants the same token as before. Here they do not. ${story} A newly seen token that scores higher becomes the goal, and its inequalities are others.`;
  }
  if (Math.abs(end - from) <= 0.05 && !rises) return `You let nothing happen. ${story}`;
  if (end > from + 0.05) return `You let it grow, and at the end it has grown. ${story} It falls where a cell only adds an inequality, and leaps where it shows a position a better token.`;
  return `Up and down is right. ${story} Every change of direction is a position that finds a better token.`;
}

export default explorable({
  name: "causal_mask",
  title: "Five positions, one matrix, and a mask",
  wide: true,
  answers: ["sketch"],
  defaults: { X: EXAMPLE.X, cells: 0, own: null, row: 3, k: STEPS, seen: 0, open: 0, sketch: null },
  build(kit) {
    const now = (state) => (kit.opened ? state.k : 0);
    const W = (state) => (kit.opened ? trained(state)[Math.min(now(state), STEPS)] : [[0, 0], [0, 0]]);
    const map = (state) => attentionMapOf(sequenceOf(state), maskOf(state), W(state));
    const grid = kit.row("al-grid-3");
    const cell = (name = "") => { const box = document.createElement("div"); box.className = name; grid.append(box); return box; };

    const left = cell();
    kit.caption("Attention: each row is a position, ringed its best visible token", left);
    attentionMap(kit, {
      parent: left, map, mask: maskOf, largest: 56,
      chosen: (state) => bestVisible(sequenceOf(state), maskOf(state)),
      row: (state) => state.row,
      can: () => kit.opened,
      fixed: (a, b) => a === b, // a position always sees itself
      press: (a, b) => {
        const mask = maskOf(kit.state).map((line) => line.map(Number));
        mask[a][b] = 1 - mask[a][b];
        kit.set({ own: { at: kit.state.cells, mask }, row: a });
      },
    });

    const middle = cell();
    kit.caption("The tokens; the higher, the better", middle);
    plane(kit, {
      x: RX, y: RY, parent: middle,
      told: (state) => `Five tokens in the plane. Position ${state.row + 1} asks; its attention: ${map(state)[state.row].map((s, t) => `token ${t + 1} ${maskOf(state)[state.row][t] ? percent(s) : "hidden"}`).join(", ")}`,
      can: () => kit.opened,
      points: (state) => state.X.map(([x, y], t) => ({ key: String(t), x, y, label: `token ${t + 1}`, link: `tok1${t + 1}` })),
      move: (key, x, y) => {
        const X = kit.state.X.map((one) => one.slice());
        X[Number(key)] = [Math.round(x * 100) / 100, Math.round(y * 100) / 100];
        kit.set({ X });
      },
      draw: (state, at) => {
        const row = state.row;
        const see = maskOf(state)[row];
        const s = map(state)[row];
        const best = bestVisible(sequenceOf(state), maskOf(state))[row];
        const z = state.X[row];
        const w = W(state).map((line_) => line_[0] * z[0] + line_[1] * z[1]);
        const size = Math.hypot(...w);
        const reach = 0.5 + 0.6 * (1 - Math.exp(-size / 6));
        const some = [];
        state.X.forEach((x, t) => { if (see[t]) some[t] = x; });
        const hidden = state.X.map((x, t) => (see[t] ? "" : group({ "data-mark": `hidden tok1${t + 1}` },
          circle(...at(x), 9, { class: "al-stroke-other", fill: "none", "stroke-dasharray": "2 3" }),
          text(at(x)[0], at(x)[1] + 4.5, t + 1, { class: "al-small", "text-anchor": "middle" })))).join("");
        const tip = at([(w[0] / (size || 1)) * reach, (w[1] / (size || 1)) * reach]);
        return axes(at, RX, RY) + hidden
          + tokens(some, s, at, { kind: (t) => (t === best ? "best" : "other"), ring: false })
          + group({ "data-mark": "query" }, arrow(...at([0, 0]), ...at([z[0] * 0.55, z[1] * 0.55]), { colour: "query" }),
            text(at([z[0] * 0.55, 0])[0] + (z[0] < 0 ? -4 : 4), at([0, z[1] * 0.55])[1] + (z[1] < 0 ? 18 : -6), label(`query $x_${row + 1}$`), { class: "al-label al-text-query al-halo-text", "text-anchor": z[0] < 0 ? "end" : "start" }))
          + (size > 1e-9 ? group({ "data-mark": "trained" }, arrow(...at([0, 0]), ...tip, { colour: "trained" }),
            text(tip[0] + 6, tip[1] - 5, label(`$W x_${row + 1}$`), { class: "al-label al-text-trained al-halo-text" })) : "");
      },
    });

    const side = cell("al-side");
    const head = kit.caption("", side);
    kit.view({
      parent: side, name: "asked",
      told: (state) => {
        const { values, where, best, margin } = asked(state);
        return kit.opened && values ? `Inequalities: ${where.map(([k, t], j) => `position ${k + 1}, ${best[k] + 1} over ${t + 1}: ${values[j].toFixed(2)}`).join("; ")}; margin ${shown(margin)}` : "The inequalities of the mask";
      },
      draw: (w, state) => {
        const { values, where, best, support } = asked(state);
        if (!kit.opened) return { height: 40, inner: text(0, 16, label("One for each token that a position sees"), { class: "al-small" }) + text(0, 33, label("and should not choose."), { class: "al-small" }) };
        if (!values) return { height: 60, inner: text(0, 18, "No W does what all positions ask.", { class: "al-small al-text-violation" }) + text(0, 36, "Move a token, or hide a cell.", { class: "al-small" }) };
        const [l, r] = [122, w - 42];
        const top = Math.max(2, Math.min(5, ...[Math.max(...values, 2)]));
        const X = (v) => l + (Math.min(v, top) / top) * (r - l);
        const high = where.length > 14 ? 14.5 : 18;
        const bars = where.map(([k, t], j) => {
          const y = 18 + j * high;
          const kind = support[j] ? "rival" : "other";
          return group({ "data-mark": `inequality cell${k + 1}${t + 1} row${k + 1}${support[j] ? " rival support" : ""}` },
            text(0, y + 9, label(`row ${k + 1}: ${best[k] + 1} over ${t + 1}`), { class: k === state.row ? "al-label" : "al-small" }),
            rect(l, y, X(values[j]) - l, high - 6, { class: `al-fill-${kind}`, "fill-opacity": support[j] ? 0.9 : 0.5 }),
            text(w, y + 9, values[j].toFixed(2), { class: "al-small al-value", "text-anchor": "end" }));
        }).join("");
        const bottom = 18 + where.length * high;
        return {
          height: bottom + 4,
          inner: bars + line(X(1), 12, X(1), bottom, { class: "al-stroke-bound", "stroke-width": 1.6 }) + text(X(1), 9, "1", { class: "al-small al-text-bound", "text-anchor": "middle" }),
        };
      },
    });

    const bar = kit.controls();
    kit.scrubber({ key: "cells", label: "hidden cells opened", times: Array.from({ length: CELLS + 1 }, (_, j) => j), seconds: 9, parent: bar });
    const more = kit.controls();
    kit.choice({ key: "row", label: "position", options: [0, 1, 2, 3, 4].map((k) => [k, String(k + 1)]), parent: more });
    kit.slider({ key: "k", label: "training step", min: 0, max: STEPS, step: 1, show: String, parent: more });

    kit.predict({
      heading: "Before you open it",
      go: "Open the cells",
      asks: [{
        kind: "sketch", key: "sketch", colour: "fro", mark: "fro",
        question: "The ten hidden cells are opened one by one: first each position sees one token ahead, then two. Draw the margin.",
        at: Array.from({ length: CELLS + 1 }, (_, j) => j),
        known: [margins(kit.state)[0]],
        x: { range: [0, CELLS], label: "hidden cells opened", ticks: [0, 2, 4, 6, 8, 10] },
        y: { range: [0, 0.8], label: "margin $1/\\|W^{mm}\\|$", show: (v) => v.toFixed(1) },
        height: 230,
        truth: (state) => ({ xs: Array.from({ length: CELLS + 1 }, (_, j) => j), ys: margins(state) }),
        here: (state) => (state.own && state.own.at === state.cells ? null : [state.cells, margins(state)[state.cells]]),
        upTo: (state) => (state.seen ? CELLS : state.cells),
        say: answer,
      }],
      start: () => {
        kit.set({ cells: 0, k: STEPS });
        kit.draw();
        kit.root.querySelector(".al-play").click();
      },
      over: (state) => Boolean(state.seen),
    });

    return (state) => {
      bar.hidden = more.hidden = !kit.opened;
      if (kit.opened && state.cells >= CELLS && !state.seen) kit.set({ seen: 1 });
      const mask = maskOf(state);
      const open = mask.flat().filter(Boolean).length;
      const { where, margin, W: goal } = asked(state);
      head.textContent = `${where.length} inequalities, margin ${shown(margin)}`;
      const words = `${open} of ${T * T} cells are seen: ${where.length} inequalities, margin ${shown(margin)}.`;
      if (!kit.opened) { kit.say(words); return; }
      const here = W(state);
      const off = goal && now(state) > 0 ? angle(here, goal) : null;
      kit.say(`${words}${off === null ? "" : ` After ${state.k} steps W is ${off.toFixed(1)}° from the max-margin direction of this mask.`}`);
      Object.assign(kit.el.dataset, {
        pressed: mask.flat().filter((on, j) => on !== (j % T <= Math.floor(j / T))).length, asked: where.length, margin: Number.isFinite(margin) ? margin.toFixed(6) : "", causal: margins(state)[0].toFixed(6), angle: off === null ? "" : off.toFixed(4), visible: open,
      });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

X = np.array(${python(state.X)})
mask = np.array(${python(maskOf(state).map((row) => row.map(Number)))}, bool)
rows = np.repeat(X[None], ${T}, axis=0)  # position k: all tokens, query x_k
problem = problems.TokenProblem(rows, X, np.ones(${T}), np.array([0.0, 1.0]), mask=mask)
margin = svm.attention_svm(problem)
print(mask.sum() - ${T}, "inequalities, margin", 1 / margin.norm)
run = optim.train(models.Attention(start="zero"), problem, optim.NormalizedGD(${ETA}), ${STEPS})
print("cosine", svm.correlation(run.params["W"], margin.W))`,
});
