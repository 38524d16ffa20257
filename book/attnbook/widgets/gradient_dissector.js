// The gradient of one attention layer, token by token: who pulls on W, as W grows longer.

import { gradient, scores } from "./kit/core.js";
import { explorable, python } from "./kit/kit.js";
import { BOARD, answer, problemOf, pulls } from "./kit/tokens.js";
import { apply, norm, unit, zeros } from "./kit/vectors.js";
import { arrow, circle, group, label, line, percent, power, rect, text } from "./kit/view.js";
import { axes, plane, plot, tokens } from "./kit/views.js";

const LONGEST = 20;
const LENGTHS = Array.from({ length: 201 }, (_, k) => (k * LONGEST) / 200);
const LEAST = 1e-8;
const RANGE = { x: [-2.4, 2.4], y: [-1.7, 1.7] };
const scaled = (A, c) => A.map((row) => row.map((x) => c * x));

// Where W points: to the max-margin matrix, or where the first step from 0 went.
function direction(problem, way) {
  const goal = answer(problem);
  if (way === "margin" && goal.status === "optimal") return unit(goal.W);
  return unit(scaled(gradient(problem, zeros(2, 2)).G, -1));
}

export default explorable({
  name: "gradient_dissector",
  wide: true,
  title: "Who pulls on the matrix",
  defaults: { ...BOARD, length: 0, way: "margin" },
  build(kit) {
    let memo = {};
    const now = (state) => {
      if (memo.state === state) return memo;
      const problem = problemOf(state);
      const D = direction(problem, state.way);
      const W = scaled(D, state.length);
      const goal = answer(problem);
      const key = JSON.stringify([problem, state.way]);
      const along = memo.key === key ? memo.along : LENGTHS.map((R) => pulls(problem, scaled(D, R)).map((one) => one.c));
      memo = { state, key, along, problem, W, goal, parts: pulls(problem, W), gamma: scores(problem), step: unit(scaled(gradient(problem, W).G, -1)) };
      return memo;
    };
    const kind = (here, i) => (t) => (t === here.parts[i].b ? "best" : here.goal.status === "optimal" && here.goal.support[i][t] ? "rival" : "other");
    const rivals = (here) => here.parts.flatMap(({ c, b }, i) => c.map((pull, t) => ({ pull, i, t })).filter(({ t }) => t !== b));

    const top = kit.row("al-grid-3");
    const columns = kit.state.X.map((_, i) => {
      const column = document.createElement("div");
      top.append(column);
      kit.caption(`Sequence ${i + 1}`, column);
      return column;
    });
    const side = document.createElement("div");
    side.className = "al-side";
    top.append(side);
    columns.forEach((column, i) => plane(kit, {
      parent: column, ...RANGE,
      told: (state) => { const { c } = now(state).parts[i]; return `Sequence ${i + 1}: ${c.map((pull, t) => `token ${t + 1} pulls ${power(pull)}`).join(", ")}`; },
      points: (state) => state.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}`, link: `tok${i + 1}${t + 1}` })),
      move: (key, x, y) => {
        const X = structuredClone(kit.state.X);
        X[Number(key[1])][Number(key[2])] = [x, y];
        kit.set({ X });
      },
      draw: (state, at, { w }) => {
        const here = now(state);
        const { c, s, b } = here.parts[i];
        const most = Math.max(...rivals(here).map(({ pull }) => Math.abs(pull))) || 1;
        const goalTo = at(state.X[i][b]);
        const way = apply(here.step, state.z[i]);
        const size = Math.hypot(...way);
        let inner = axes(at, RANGE.x, RANGE.y);
        if (size > 0) {
          const e = at(way.map((u) => (0.75 * u) / size));
          inner += group({ "data-mark": "trained step" }, arrow(...at([0, 0]), ...e, { colour: "trained", width: 3 })
            + text(e[0] + (way[0] > 0 ? 7 : -7), e[1] - 5, label(`next step of $Wz_${i + 1}$`), { class: "al-small al-halo-text al-text-trained", "text-anchor": e[0] > 0.6 * w ? "end" : e[0] < 0.4 * w ? "start" : way[0] > 0 ? "start" : "end" }));
        }
        inner += tokens(state.X[i], s, at, { kind: kind(here, i), seq: i + 1, area: 24 });
        // a rival adds c_t (x_t - x_b): towards the best token where it scores below the mean
        state.X[i].forEach((x, t) => {
          if (t === b || !c[t]) return;
          const from = at(x);
          const d = [goalTo[0] - from[0], goalTo[1] - from[1]];
          const far = Math.hypot(...d) || 1;
          const r = Math.max(3, 24 * Math.sqrt(s[t])) + 5;
          const sign = c[t] < 0 ? 1 : -1;
          const long = (Math.abs(c[t]) / most) * Math.max(0, Math.min(0.19 * w, far - r - 10));
          if (long < 2) return;
          const [u, v] = [(sign * d[0]) / far, (sign * d[1]) / far];
          inner += group({ "data-mark": `pull ${kind(here, i)(t)} tok${i + 1}${t + 1}` },
            arrow(from[0] + u * r, from[1] + v * r, from[0] + u * (r + long), from[1] + v * (r + long), { colour: kind(here, i)(t), width: 2.5 }));
        });
        return inner;
      },
    }));

    kit.caption("Pull $s_t\\,(\\gamma_t-\\bar\\gamma)$ of each token", side);
    kit.view({
      parent: side, name: "pulls",
      told: (state) => now(state).parts.map(({ c }, i) => c.map((pull, t) => `token ${t + 1} of sequence ${i + 1}: ${power(pull)}`).join(", ")).join("; "),
      draw: (w, state) => {
        const here = now(state);
        const most = Math.max(...here.parts.flatMap(({ c }) => c.map(Math.abs))) || 1;
        const [left, right] = [52, 76];
        const middle = left + (w - left - right) / 2;
        const half = (w - left - right) / 2;
        let y = 0;
        const inner = here.parts.map(({ c }, i) => {
          const rows = c.map((pull, t) => {
            const is = kind(here, i)(t);
            const long = (pull / most) * half;
            const row = group({ "data-mark": `pull ${is} tok${i + 1}${t + 1}` },
              text(0, y + 14, `${i + 1}.${t + 1}${is === "best" ? " best" : ""}`, { class: `al-small al-text-${is}` }),
              rect(Math.min(middle, middle + long), y + 3, Math.abs(long), 14, { class: `al-fill-${is}` }),
              text(w, y + 15, power(pull), { class: "al-small al-value", "text-anchor": "end" }));
            y += 22;
            return row;
          }).join("");
          y += 8;
          return rows;
        }).join("");
        return { height: y, inner: inner + line(middle, 0, middle, y - 8, { class: "al-axis" }) };
      },
    });

    const bar = kit.controls();
    kit.slider({ key: "length", label: "length of W", min: 0, max: LONGEST, step: 0.1, show: (x) => x.toFixed(1), parent: bar });
    kit.choice({ key: "way", label: "pointing", options: [["margin", "to max margin"], ["first", "where the first step went"]], parent: bar });

    const below = kit.row("al-under");
    kit.caption("Size of each rival’s pull, as $W$ grows", below);
    plot(kit, {
      parent: below, height: 230,
      told: (state) => `Size of the pulls of all rivals over the length of W; at ${state.length.toFixed(1)}: ${rivals(now(state)).map(({ pull, i, t }) => `${i + 1}.${t + 1} ${power(Math.abs(pull))}`).join(", ")}`,
      x: { range: [0, LONGEST], label: "length of $W$" },
      y: { range: [LEAST, 1], log: true, ticks: [1e-8, 1e-6, 1e-4, 1e-2, 1], show: (v) => (v === 1 ? "1" : `$10^{${Math.round(Math.log10(v))}}$`) },
      lines: (state) => {
        const here = now(state);
        return rivals(here).map(({ i, t }) => {
          const ys = here.along.map((c) => Math.abs(c[i][t]));
          return { xs: LENGTHS, ys, colour: kind(here, i)(t), width: kind(here, i)(t) === "rival" ? 3 : 1.8, mark: `pull ${kind(here, i)(t)} tok${i + 1}${t + 1}` };
        });
      },
      inside: (state, at, { h }) => {
        const here = now(state);
        const [x] = at([state.length, 1]);
        const dots = rivals(here).map(({ pull, i, t }) => {
          const size = Math.abs(pull);
          return size > LEAST ? circle(...at([state.length, size]), 4, { class: `al-fill-${kind(here, i)(t)}` }) : "";
        }).join("");
        // names where lines leave the picture; those that would overlap stand together
        const places = rivals(here).map(({ i, t }) => {
          const k = here.along.findIndex((c) => Math.abs(c[i][t]) < 4 * LEAST);
          const [px, py] = at([k < 0 ? LONGEST : LENGTHS[k], k < 0 ? Math.abs(here.along[LENGTHS.length - 1][i][t]) : 4 * LEAST]);
          return { px, py, ends: k < 0, is: kind(here, i)(t), words: `${i + 1}.${t + 1}` };
        }).sort((p, q) => p.px - q.px || p.py - q.py);
        const together = [];
        for (const one of places) {
          const other = together[together.length - 1];
          if (other && other.is === one.is && other.ends === one.ends && (one.ends ? one.py - other.py < 13 : one.px - other.px < 30)) Object.assign(other, { words: `${other.words}, ${one.words}`, px: one.px });
          else together.push({ ...one });
        }
        const names = together.map(({ px, py, ends, is, words }) =>
          text(px + (ends ? -4 : 7), py - 7, words, { class: `al-small al-halo-text al-text-${is}`, "text-anchor": ends ? "end" : "start" })).join("");
        return line(x, 0, x, h, { class: "al-axis" }) + dots + names;
      },
    });

    return (state) => {
      const here = now(state);
      const all = rivals(here).map((one) => ({ ...one, size: Math.abs(one.pull), is: kind(here, one.i)(one.t) }));
      const total = all.reduce((sum, { size }) => sum + size, 0);
      const share = all.filter(({ is }) => is === "rival").reduce((sum, { size }) => sum + size, 0) / total;
      const loud = all.reduce((a, b) => (b.size > a.size ? b : a));
      const found = here.goal.status === "optimal";
      const astray = here.parts.findIndex(({ lead, b }) => state.length > 0 && lead !== b);
      kit.say([
        found ? `At length ${state.length.toFixed(1)} the support tokens have ${percent(share)} of the rivals’ pull.` : "No W ranks both best tokens first: there is no max-margin direction, and none is a support token.",
        `The strongest rival is token ${loud.t + 1} of sequence ${loud.i + 1}, with ${power(loud.size)}.`,
        astray >= 0 ? `Along this direction token ${here.parts[astray].lead + 1} of sequence ${astray + 1} is ahead, not the best one.` : "",
      ].join(" ").trim());
      Object.assign(kit.el.dataset, { share: found ? String(share) : "", pulls: JSON.stringify(here.parts.map(({ c }) => c)), lengthOfW: String(norm(here.W)) });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(state.X)}, float), z=np.array(${python(state.z)}, float),
    y=np.array(${python(state.y)}, float), v=np.array(${python(state.v)}, float))
model = models.Attention()
${state.way === "margin" ? "way = svm.attention_svm(problem).W" : `way = -model.value_and_grad({"W": np.zeros((2, 2))}, problem)[1]["W"]`}
W = ${state.length} * way / np.linalg.norm(way)
s, gamma = model.attention({"W": W}, problem), problem.scores
mean = (s * gamma).sum(axis=-1, keepdims=True)
print(s * (gamma - mean))  # the pulls`,
});
