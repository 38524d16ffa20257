// From the loss to the max-margin direction: the gradient of one attention layer, in six steps.
// Every number has its twin in attnlab: tests/browser/test_svm_tokens.py.

import { attention } from "../kit/core.js";
import { derivation } from "../kit/derive.js";
import { python } from "../kit/kit.js";
import { BOARD, aboveFloor, angle, answer, pulls, train } from "../kit/tokens.js";
import { apply, combine, norm, unit, zeros } from "../kit/vectors.js";
import { arrow, html, percent, power } from "../kit/view.js";
import { axes, plane, tokens } from "../kit/views.js";

const TIMES = [0, 10, 20, 46, 60, 70, 80, 100, 150, 200, 300, 400];
const EARLY = 46; // the runner-up leads
const RANGE = { x: [-2, 2], y: [-1.5, 1.5] };
const ENTRIES = ["$W_{11}$", "$W_{12}$", "$W_{21}$", "$W_{22}$"];
const minus = (x, y) => x.map((u, k) => u - y[k]);
const outer = (x, z) => x.map((u) => z.map((w) => u * w));
const add = (A, B, c) => combine(1, A, c, B);
const inner = (A, B) => A.flat().reduce((sum, x, k) => sum + x * B.flat()[k], 0);

// Central differences of f at W, entry by entry.
const measured = (f, W, h = 1e-4) => W.flatMap((row, a) => row.map((_, b) => {
  const at = (by) => f(W.map((entries, i) => entries.map((w, j) => (i === a && j === b ? w + by : w))));
  return (at(h) - at(-h)) / (2 * h);
}));

// What is missing of a sequence's best score: the margin, up to a constant and its sign.
const behind = (problem, W, gamma, i) => {
  const top = Math.max(...gamma);
  return attention(problem, W)[i].reduce((sum, s, t) => sum + s * (top - gamma[t]), 0);
};

function situation({ X, k, dropped }) {
  const data = { ...BOARD, X };
  const W = train(data, dropped.has("first") ? EARLY : k)[dropped.has("first") ? EARLY : k].W;
  const best = pulls(data, W).map(({ b }) => b);
  const problem = dropped.has("scores") ? { ...data, v: [0, 0] } : data; // nobody scores more than another
  const parts = pulls(problem, W).map((one, i) => ({ ...one, b: best[i] }));
  const weight = parts.map(({ mean }) => 1 / (1 + Math.exp(mean)) / X.length); // |loss'| / n
  // sum over rivals of weight * coefficient(t) * (x_b - x_t) z'
  const sum = (coefficient) => parts.reduce((G, one, i) => X[i].reduce((H, x, t) =>
    (t === one.b ? H : add(H, outer(minus(X[i][one.b], x), data.z[i]), weight[i] * coefficient(one, t))), G), zeros(2, 2));
  return { problem, W, k, parts, weight, sum, goal: answer(data), equal: dropped.has("scores") };
}

// All tokens of a sequence, each with its pull; and rivals only, against the best one.
const fromAll = ({ problem, parts }, i) => parts[i].c.reduce((G, c, t) => add(G, outer(problem.X[i][t], problem.z[i]), c), zeros(2, 2));
const fromRivals = ({ problem, parts }, i) => parts[i].c.reduce((G, c, t) =>
  (t === parts[i].b ? G : add(G, outer(minus(problem.X[i][parts[i].b], problem.X[i][t]), problem.z[i]), -c)), zeros(2, 2));
const long = (one, t) => one.s[t] * (one.gamma[one.b] - one.gamma[t]);
const nearest = ({ a, b }) => a.reduce((found, x, t) => (t !== b && (found < 0 || x > a[found]) ? t : found), -1);
const entries = (left, right, relation) => {
  const size = Math.hypot(...right);
  return ENTRIES.map((name, k) => [name, left[k], Math.abs(left[k] - right[k]) < 1e-12 * size ? left[k] : right[k], relation, "trained"]);
};
const near = (rows, within) => {
  const size = Math.hypot(...rows.map((row) => row[2]));
  return rows.every((row) => Math.abs(row[1] - row[2]) <= within * size);
};

export default derivation({
  id: "svm-gradient",
  defaults: { X: BOARD.X, k: 80 },
  hypotheses: {
    scores: { dropped: "the head is now 0, and all tokens score the same." },
    first: { dropped: `$W$ is now what it was after ${EARLY} steps: the runner-up of sequence 1 is ahead.` },
  },
  situation,
  steps: {
    chain(s) {
      const left = measured((V) => -aboveFloor(s.problem, V), s.W);
      const right = s.parts.reduce((G, _, i) => add(G, fromAll(s, i), s.weight[i]), zeros(2, 2)).flat();
      const rows = entries(left, right, "≈");
      return { names: ["measured: nudge $W$, read the loss", "formula"], rows, ok: near(rows, 1e-5) ? "yes" : "no",
        say: "Each entry of $W$ was moved by 0.0001 and the loss read off." };
    },
    covariance(s) {
      const rows = entries(measured((V) => -behind(s.problem, V, s.parts[0].gamma, 0), s.W), fromAll(s, 0).flat(), "≈");
      return { names: ["measured slope of $u$, sequence 1", "formula"], rows, ok: near(rows, 1e-5) ? "yes" : "no",
        say: "True for any $W$ and any scores." };
    },
    pairs(s) {
      return { names: ["all tokens", "rivals against the best"], rows: entries(fromAll(s, 0).flat(), fromRivals(s, 0).flat(), "="),
        say: "The same matrix, sorted by rival." };
    },
    long(s) {
      const off = (c, said) => norm(s.W) > 0 && !s.equal && !(Math.abs(c - said) < 0.5 * said); // red, where it fails
      const astray = s.parts.findIndex(({ lead, b }) => lead !== b);
      const rows = s.parts.flatMap((one, i) => one.c.map((c, t) => [`token ${i + 1}.${t + 1}`, -c, long(one, t), astray >= 0 && off(-c, long(one, t)) ? "=" : "≈", `pull tok${i + 1}${t + 1}`])
        .filter((_, t) => t !== one.b));
      const names = ["exact pull", "with the best score as the mean"];
      if (s.equal) return { names, rows, ok: "yes", say: "0 ≈ 0: true, and worth nothing." };
      const worst = Math.min(...rows.map((row) => row[1] / row[2]));
      if (astray >= 0 && norm(s.W) > 0) {
        return { names, rows, scale: "row", ok: "no", say: `Token ${s.parts[astray].lead + 1} of sequence ${astray + 1} is ahead, so the mean is near its score and not near the best: ${worst < 0 ? "a rival pulls the other way" : `one pull is ${percent(worst)} of what the line says`}.` };
      }
      return { names, rows, scale: "row", ok: worst > 0.9 ? "yes" : "soon", say: worst > 0.9 ? `The worst of the six ratios is ${worst.toFixed(worst > 0.999 ? 5 : 3)}.` : `$W$ is too short: the worst of the six ratios is ${worst.toFixed(2)}.` };
    },
    nearest(s) {
      const rows = s.parts.flatMap((one, i) => {
        const r = nearest(one);
        return one.c.map((c, t) => {
          const said = (long(one, t) / one.s[t] / (long(one, r) / one.s[r])) * Math.exp(one.a[t] - one.a[r]);
          return [`${i + 1}.${t + 1} against ${i + 1}.${r + 1}`, s.equal ? NaN : c / one.c[r], s.equal ? NaN : said, s.equal ? "=" : "≈", `pull tok${i + 1}${t + 1}`];
        }).filter((_, t) => t !== one.b && t !== r);
      });
      const names = ["exact ratio of pulls", "formula"];
      if (s.equal) return { names, rows, ok: "no", say: "0 / 0: where all score the same nobody pulls, and $W$ has no reason to move." };
      const fits = rows.every(([, a, b]) => Math.abs(a - b) <= 0.1 * Math.abs(b));
      return { names, rows, scale: "log", ok: fits ? "yes" : "soon", say: `The farther rivals pull at most ${power(Math.max(...rows.map((row) => Math.abs(row[1]))))} of what the nearest one of their sequence does.` };
    },
    direction(s) {
      const names = ["$W$, scaled to length 1", "max-margin $W$, scaled to length 1"];
      if (s.goal.status !== "optimal" || !(norm(s.W) > 0)) {
        const missing = s.goal.status !== "optimal";
        return { names, rows: [], ok: missing ? "no" : "soon", say: missing ? "No $W$ puts both best tokens first: there is no max-margin direction." : "$W$ is 0 and has no direction yet." };
      }
      const to = angle(s.W, s.goal.W);
      const count = s.goal.support.flat().filter(Boolean).length;
      return { names, rows: entries(unit(s.W).flat(), unit(s.goal.W).flat(), "→"), ok: to < 5 ? "yes" : "soon",
        say: `The angle is ${to.toFixed(1)}°. The max-margin matrix is a sum over ${count} support tokens; the multipliers of the other ${s.parts.reduce((sum, { c }) => sum + c.length - 1, 0) - count} rivals are 0.` };
    },
  },
  waterfall(s) {
    const G = s.sum((one, t) => -one.c[t]);
    if (s.goal.status !== "optimal" || !(norm(G) > 0)) return { levels: [{ name: "no gradient", value: 0 }], say: "" };
    const simple = s.sum(long);
    const close = s.sum((one, t) => (t === nearest(one) ? long(one, t) : 0));
    const along = Math.max(0, inner(close, unit(s.goal.W)));
    const share = along / norm(G);
    return {
      levels: [
        { name: "length of the gradient", value: norm(G) },
        { step: "long", name: "the best score for the mean", value: norm(simple) },
        { step: "nearest", name: "nearest rivals only", value: norm(close) },
        { step: "direction", name: "only what points along $W^{mm}$", value: along, proven: "what is left" },
      ],
      say: `After ${s.k} steps, ${percent(share)} of the gradient comes through these steps. What the last one leaves out is still turning $W$.`,
    };
  },
  data(kit, parent) {
    const pair = kit.row("al-pair");
    parent.append(pair);
    kit.state.X.forEach((_, i) => {
      const place = kit.row("al-column");
      pair.append(place);
      kit.caption(`Sequence ${i + 1}`, place);
      plane(kit, {
        ...RANGE, parent: place,
        told: () => `Sequence ${i + 1}: ${kit.situation.parts[i].s.map((s, t) => `token ${t + 1} has ${percent(s)} of the attention`).join(", ")}`,
        points: (state) => state.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}`, link: `tok${i + 1}${t + 1}` })),
        move: (key, x, y) => {
          const X = structuredClone(kit.state.X);
          X[Number(key[1])][Number(key[2])] = [x, y];
          kit.set({ X });
        },
        draw: (_, at) => {
          const { problem, W, parts, goal } = kit.situation;
          const way = apply(W, problem.z[i]);
          const size = Math.hypot(...way);
          return axes(at, RANGE.x, RANGE.y)
            + (size > 0 ? arrow(...at([0, 0]), ...at(way.map((u) => (0.9 * u) / size)), { colour: "trained", "data-mark": "trained" }) : "")
            + tokens(problem.X[i], parts[i].s, at, { kind: (t) => (t === parts[i].b ? "best" : goal.status === "optimal" && goal.support[i][t] ? "rival" : "other"), area: 22, seq: i + 1 });
        },
      });
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "k", label: "training steps", values: TIMES, show: (k) => String(k), parent: controls });
    const key = kit.row("al-keys");
    key.innerHTML = `<span class="al-text-trained" data-mark="trained">→ ${html("direction of $Wz$")}</span>`;
    parent.append(key);
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems

problem = problems.TokenProblem(X=np.array(${python(state.X)}, float), z=${python(BOARD.z)},
                                y=${python(BOARD.y)}, v=${python(BOARD.v)})
model = models.Attention(start="zero")
W = optim.train(model, problem, optim.NormalizedGD(0.1), steps=${state.k}).params["W"]
s, gamma = model.attention({"W": W}, problem), problem.scores
u = (s * gamma).sum(axis=-1)
weight = 1 / (1 + np.exp(u)) / len(u)
print(np.einsum("n,nt,ntd,nk->dk", weight, s * (gamma - u[:, None]), problem.X, problem.z))
print(-model.value_and_grad({"W": W}, problem)[1]["W"])`,
});
