// Several tokens at once: W is a finite part plus R times a direction. The finite part decides how
// the selected tokens share, the direction how the others die.

import { logits } from "./kit/core.js";
import { explorable, fixed, make } from "./kit/kit.js";
import { softmax } from "./kit/softmax.js";
import { combine } from "./kit/vectors.js";
import { attentionBars, heat, plot } from "./kit/views.js";
import { percent, power } from "./kit/view.js";

const RANGE = [0, 40];
const AT = [0, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 35, 40];
const GRID = Array.from({ length: 81 }, (_, k) => k / 2);

export default explorable({
  name: "finite_part",
  title: "A finite part and an infinite one",
  defaults: { R: 4, part: "general", open: 0, sketch: null },
  answers: ["sketch"],
  build(kit) {
    const read = (name) => {
      const { shape, values } = kit.data(name);
      const fold = (sizes, at) => (sizes.length === 1
        ? Array.from(values.slice(at, at + sizes[0]))
        : Array.from({ length: sizes[0] }, (_, k) => fold(sizes.slice(1), at + k * sizes.slice(1).reduce((a, b) => a * b, 1))));
      return fold(shape, 0);
    };
    const problem = { X: read("X"), z: read("z") };
    const finite = read("finite");
    const ways = { general: read("direction"), single: read("single") };
    const selected = read("selected");
    const matrix = (R, part) => combine(1, finite, R, ways[part]);
    const shares = (R, part) => logits(problem, matrix(R, part)).map(softmax);
    const R = (state) => (kit.opened ? state.R : 0);
    const part = (state) => (kit.opened ? state.part : "general");
    const memo = {};
    const curve = (which) => (memo[which] ||= GRID.map((r) => shares(r, which)));
    const masked = (s) => Math.max(...s.flatMap((row, i) => row.filter((_, t) => !selected[i][t])));

    const grid = make("div", { class: "al-grid-2" });
    kit.main.append(grid);
    const [one, two] = [make("div"), make("div")];
    grid.append(one, two);
    selected.forEach((row, i) => {
      const names = row.map((on, t) => (on ? t + 1 : 0)).filter(Boolean).join(" and ");
      kit.caption(`Attention of sequence ${i + 1}; selected: ${names}`, one);
      attentionBars(kit, { parent: one, row: (state) => ({ s: shares(R(state), part(state))[i], kind: (t) => (row[t] ? "best" : "other"), seq: i + 1 }) });
    });
    kit.caption("The matrix $W=W^{fin}+R\\,W^{mm}/\\|W^{mm}\\|$", one);
    heat(kit, { parent: one, matrix: (state) => matrix(R(state), part(state)), digits: null, largest: 26, title: "W" });
    kit.caption("Attention of sequence 1 as $R$ grows", two);
    plot(kit, {
      parent: two, height: 300, x: { range: RANGE, label: "$R$" }, y: { range: [0, 1.02], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent },
      told: (state) => `Attention of sequence 1 at R = ${R(state)}: ${shares(R(state), part(state))[0].map(percent).join(", ")}.`,
      lines: (state) => (kit.opened ? selected[0].map((on, t) => ({ xs: GRID, ys: curve(part(state)).map((s) => s[0][t]), colour: on ? "best" : "other", name: on ? `token ${t + 1}` : "", mark: `tok1${t + 1}`, width: on ? 3 : 1.8 })) : []),
      marks: (state) => shares(R(state), part(state))[0].map((s, t) => ({ x: R(state), y: s, colour: selected[0][t] ? "best" : "other", name: kit.opened || !selected[0][t] ? "" : `token ${t + 1}` })),
    });
    const row = kit.controls();
    kit.slider({ key: "R", label: "R", min: 0, max: 40, step: 0.5, show: (x) => fixed(x, 1), parent: row });
    kit.choice({ key: "part", label: "direction for", options: [["general", "both selected tokens"], ["single", "one of them"]], parent: row });
    kit.draws.push(() => { row.hidden = !kit.opened; });
    kit.predict({
      heading: "$W$ grows along its direction. What do the selected tokens get?",
      go: "Let it grow",
      start: () => kit.set({ R: 40 }),
      asks: [{
        kind: "sketch", key: "sketch", question: "Tokens 1 and 2 of sequence 1 are selected. Draw the attention on token 1 as $R$ grows without end.",
        at: AT, known: [Number(shares(0, "general")[0][0].toPrecision(3))], x: { range: RANGE, label: "$R$", name: "R" }, y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent }, colour: "best", mark: "tok11",
        truth: () => ({ xs: GRID, ys: curve("general").map((s) => s[0][0]) }),
        say: (mine) => {
          const at = curve("general")[GRID.length - 1][0];
          const fact = `Token 1 levels off at ${percent(at[0])}: the direction gives both tokens the same logit, so their ratio stays what the finite part made it`;
          if (!mine) return `${fact}.`;
          const end = mine[mine.length - 1];
          if (end > 0.85) return `One token wins: so it was on all pages before. Not here. ${fact}.`;
          if (Math.abs(end - at[0]) < 0.07) return `Right. ${fact}.`;
          if (Math.abs(end - 0.5) < 0.06) return `Equal logits in the direction, yes, but the finite part stays in the sum. ${fact}.`;
          return `${fact}.`;
        },
      }],
    });
    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const s = shares(state.R, state.part);
      const told = s.map((line, i) => {
        const kept = line.filter((_, t) => selected[i][t]);
        const sum = kept.reduce((a, b) => a + b, 0);
        return kept.map((x) => fixed(x / sum, 3)).join(" : ");
      });
      kit.say(`R = ${fixed(state.R, 1)}. Among themselves the selected tokens share ${told.join(" in sequence 1, and ")} in sequence 2. The largest other weight is ${power(masked(s))}.`);
      kit.el.dataset.shares = told.join(";");
      kit.el.dataset.masked = String(masked(s));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, problems, svm

problem = problems.sphere(n=2, T=4, d=8, rng=0)
selected = np.array([[True, True, False, False], [False, True, True, False]])
shares = np.where(selected, [[0.7, 0.3, 0, 0], [0, 0.4, 0.6, 0]], 0.0)
finite = svm.finite_component(problem, shares, selected=selected)
${state.part === "single" ? "way = svm.attention_svm(problem, shares.argmax(axis=1))" : "way = svm.general_svm(problem, selected=selected)"}
W = finite + ${state.R} * way.W / way.norm
print(models.Attention().attention({"W": W}, problem).round(4))`,
});
