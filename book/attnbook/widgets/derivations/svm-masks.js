// What a mask does to the margin of a selection: fewer inequalities, a larger margin. And what
// becomes of that once each mask selects its own best visible tokens.
// Twins: attnlab.svm.attention_svm on masked problems; tests/browser/test_svm_sequences.py.

import { derivation } from "../kit/derive.js";
import { fixed, python } from "../kit/kit.js";
import { EXAMPLE, ahead, bestVisible, inequalities, opened } from "../kit/masks.js";
import { attentionMap, axes, plane } from "../kit/views.js";
import { dot, norm } from "../kit/vectors.js";
import { circle, group, label, text } from "../kit/view.js";

const T = EXAMPLE.X.length;
const CELLS = ahead(T).length;
const PLANE = { x: [-2.4, 1], y: [-1.4, 1.6] };

function situation(state) {
  const sequence = { ...EXAMPLE, X: state.X };
  const [few, many] = [opened(T, 0), opened(T, state.cells)];
  const alpha = bestVisible(sequence, few);
  const chosen = state.dropped.has("same") ? bestVisible(sequence, many) : alpha;
  const less = inequalities(sequence, few, alpha);
  const more = inequalities(sequence, many, chosen);
  // what the smaller problem asks, at the answer of the larger one
  const there = more.W ? less.where.map(([k, t]) => {
    const way = more.W.map((row) => dot(row, state.X[k]));
    return dot(state.X[alpha[k]], way) - dot(state.X[t], way);
  }) : null;
  return { sequence, few, many, alpha, chosen, less, more, there, cells: state.cells };
}

const NONE = "No $W$ keeps this selection behind the larger mask: its margin is 0, and a margin of 0 is smaller than any.";

export default derivation({
  id: "svm-masks",
  defaults: { X: EXAMPLE.X, cells: 4 },
  hypotheses: {
    same: { dropped: "each mask now selects the best tokens that it lets each position see, as training does." },
  },
  situation,
  steps: {
    among(s) {
      const rows = s.there ? [["least inequality of the causal problem", Math.min(...s.there), 1, "≥", "rival"]] : [];
      return { names: ["at $W_{+}$", "asked"], rows, ok: s.there ? undefined : "yes",
        say: s.there ? `The larger problem asks ${s.more.where.length} inequalities, the causal one ${s.less.where.length}.${Math.min(...s.there) < 1 - 1e-9 ? " They are no longer among them: a position has found a better token, and its rows are others." : ""}` : NONE };
    },
    shorter(s) {
      const rows = s.more.W && s.less.W ? [["length", norm(s.less.W), norm(s.more.W), "≤", "fro"]] : [];
      return { names: ["$\\|W\\|$, causal", "$\\|W_{+}\\|$"], rows, ok: rows.length ? undefined : "yes", scale: "linear",
        say: rows.length ? "The causal answer is the shortest of a set that holds the other answer." : NONE };
    },
    margin(s) {
      return { names: ["causal margin", "margin of the larger mask"], rows: [["margin", s.less.margin, s.more.margin, "≥", "fro"]], scale: "linear",
        say: `${fixed(s.less.margin, 3)} against ${fixed(s.more.margin, 3)}, with ${s.cells} cells opened.` };
    },
  },
  data(kit, parent) {
    const pair = kit.row("al-pair");
    parent.append(pair);
    const [left, right] = [0, 1].map(() => { const place = kit.row("al-column"); pair.append(place); return place; });
    kit.caption("Larger mask, ringed the selection", left);
    attentionMap(kit, {
      parent: left, largest: 40, mask: () => kit.situation.many, chosen: () => kit.situation.chosen,
      map: () => kit.situation.many.map((row) => row.map((on) => (on ? 0.08 : 0))), blank: true,
    });
    kit.caption("The tokens; the higher, the better", right);
    plane(kit, {
      ...PLANE, parent: right,
      told: (state) => `Five tokens: ${state.X.map((x, t) => `token ${t + 1} at ${x.join(", ")}`).join("; ")}`,
      points: (state) => state.X.map(([x, y], t) => ({ key: String(t), x, y, label: `token ${t + 1}` })),
      move: (key, x, y) => {
        const X = kit.state.X.map((one) => one.slice());
        X[Number(key)] = [Math.round(x * 100) / 100, Math.round(y * 100) / 100];
        kit.set({ X });
      },
      draw: (state, at) => axes(at, PLANE.x, PLANE.y) + state.X.map((x, t) => group({ "data-mark": `tok1${t + 1}` },
        circle(...at(x), 12, { class: "al-disc al-fill-other al-stroke-other", "fill-opacity": 0.25 }),
        text(at(x)[0], at(x)[1] + 4.5, label(String(t + 1)), { class: "al-label", "text-anchor": "middle" }))).join(""),
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "cells", label: "hidden cells opened", min: 0, max: CELLS, step: 1, show: String, parent: controls });
  },
  code: (state) => `import numpy as np
from attnlab import problems, svm

X = np.array(${python(state.X)})
rows, v = np.repeat(X[None], ${T}, axis=0), np.array([0.0, 1.0])
masks = (np.array(${python(opened(T, 0).map((row) => row.map(Number)))}, bool),
         np.array(${python(opened(T, state.cells).map((row) => row.map(Number)))}, bool))
causal, larger = (problems.TokenProblem(rows, X, np.ones(${T}), v, mask=mask) for mask in masks)
same = causal.optimal  # or larger.optimal
print([1 / svm.attention_svm(each, same).norm for each in (causal, larger)])`,
});
