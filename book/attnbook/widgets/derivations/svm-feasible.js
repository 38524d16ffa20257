// Why the best tokens can be put first, and how much room a simple W leaves (Theorem 1's case of
// independent queries). Twins: attnlab.svm.attention_svm, theory.svm.token_margins, score_gaps.

import { attentionSVM, optimal, scores } from "../kit/core.js";
import { derivation } from "../kit/derive.js";
import { fixed, python } from "../kit/kit.js";
import { apply, dot, norm } from "../kit/vectors.js";
import { arrow, html } from "../kit/view.js";
import { axes, plane, tokens } from "../kit/views.js";

const PLANE = { x: [-2.3, 2.3], y: [-1.5, 1.9] };
const queries = (angle) => [[1, 0], [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)]];

// W with W z_i = y_i v where the two queries allow it, else as nearly as possible: v times w,
// with w the least solution of z_i . w = y_i.
export function simple(z, v) {
  const c = dot(z[0], z[1]);
  const spread = 1 - c * c;
  const w = spread > 1e-12 ? [0, 1].map((k) => ((1 - c) * (z[0][k] + z[1][k])) / spread) : c > 0 ? z[0] : [0, 0];
  return v.map((a) => w.map((b) => a * b));
}

function situation(state) {
  const angle = state.dropped.has("independent") ? 180 : state.angle;
  const problem = { X: state.X.map((rows) => rows.map((x) => x.slice())), z: queries(angle), y: [1, 1], v: state.v };
  if (state.dropped.has("unique")) { // the second best token of sequence 2 comes level
    const [gamma, b] = [scores(problem)[1], optimal(problem)[1]];
    const rest = gamma.map((g, t) => (t === b ? -Infinity : g));
    const t = rest.indexOf(Math.max(...rest));
    const more = (gamma[b] - gamma[t]) / dot(state.v, state.v);
    problem.X[1][t] = problem.X[1][t].map((x, k) => x + more * state.v[k]);
  }
  const W = simple(problem.z, problem.v);
  const reached = problem.z.map((z) => dot(apply(W, z), problem.v) / dot(problem.v, problem.v));
  const tops = optimal(problem);
  const all = problem.X.flatMap((X, i) => X.flatMap((x, t) => {
    if (t === tops[i]) return [];
    const gap = X[tops[i]].map((value, k) => value - x[k]);
    return [{ i, t, margin: dot(gap, apply(W, problem.z[i])), lead: dot(gap, problem.v) }];
  }));
  const c = Math.min(...all.map((one) => one.lead));
  const goal = attentionSVM(problem);
  const least = Math.sqrt(1 - Math.abs(dot(...problem.z)));
  return {
    problem, angle, W, reached, all, c: c < 1e-12 ? 0 : c, goal, least, length: norm(W) / c, size: Math.hypot(...problem.v),
    best: goal.status === "optimal" ? norm(goal.W) : Infinity,
  };
}

export default derivation({
  id: "svm-feasible",
  defaults: { angle: 60, X: [[[0, 0.1], [0.6, -0.2], [1.6, 0.9], [-1.4, 0.2]], [[-0.2, 0], [0.9, 0.9], [-1.5, 0.9], [1, -1]]], v: [-0.1, 1] },
  hypotheses: {
    independent: { dropped: "The second query is now the opposite of the first: what $W$ does to one it undoes to the other." },
    unique: { dropped: "Another token of sequence 2 has been raised until it scores the same as the best." },
  },
  situation,
  steps: {
    solve(s) {
      return {
        names: ["$Wz_i$, in units of $v$", "needed, $y_i$"],
        rows: s.reached.map((value, i) => [`sequence ${i + 1}`, value, 1, "=", "query"]),
        say: Math.abs(s.reached[1] - 1) > 1e-9
          ? `Both cannot be had: $z_2=-z_1$ asks $W$ for $v$ and for $-v$. The proof ends; the conclusion ${s.best < Infinity ? "need not, and here it stands" : "ends with it here"}.`
          : `The queries are ${fixed(s.angle, 0)}° apart, and that is all it takes. The tokens have not been asked yet.`,
      };
    },
    leads(s) {
      return {
        names: ["margin", "lead in score"],
        rows: s.all.filter((one) => one.i === 0 || one.t < 2).slice(0, 4).map((one) => [`sequence ${one.i + 1}, token ${one.t + 1}`, one.margin, one.lead, "=", `tok${one.i + 1}${one.t + 1}`]),
        say: "One matrix turns every query into the head, and then attention ranks tokens by their scores.",
      };
    },
    least(s) {
      return {
        names: ["least lead $c$", "needed"], rows: [["over all rivals", s.c, 0, ">", "best"]],
        say: s.c > 0 ? "The best token is strictly the best." : "Two tokens score the same: this $W$ gives one of them no lead over the other.",
      };
    },
    scale(s) {
      return {
        names: ["smallest margin of $W/c$", "needed"], rows: [["over all rivals", Math.min(...s.all.map((one) => one.margin)) / s.c, 1, "≥", "bound"]],
        say: "So there is a feasible matrix, whatever the number of tokens.",
      };
    },
    length(s) {
      return {
        names: ["length", "bound"], rows: [["$\\|W^{mm}\\|_F$ against $\\|W\\|_F/c$", s.best, s.length, "≤", "fro"]],
        say: "The shortest feasible matrix is no longer than any other.",
      };
    },
    room(s) {
      return {
        names: ["margin", "proven"], rows: [["$1/\\|W^{mm}\\|_F$ against the bound", 1 / s.best, (s.c * s.least) / (Math.SQRT2 * s.size), "≥", "fro"]],
        say: `Measured ${fixed(1 / s.best, 3)}, proven ${fixed((s.c * s.least) / (Math.SQRT2 * s.size), 3)}. The bound shrinks when two scores come close, and when two queries do.`,
      };
    },
  },
  waterfall(s) {
    return {
      levels: [
      { name: "margin, measured", value: 1 / s.best },
      { step: "length", name: "a simple $W$ for the shortest", value: 1 / s.length },
      { step: "room", name: "all queries as bad as the worst mixture", value: (s.c * s.least) / (Math.SQRT2 * s.size), proven: "proven" },
      ],
      say: "Most is given away by the simple $W$: it leads by scores, and scores are not what $W^{mm}$ looks at.",
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
        ...PLANE, parent: place,
        told: () => `Sequence ${i + 1}, best token ${optimal(kit.situation.problem)[i] + 1}`,
        points: () => kit.situation.problem.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}` })),
        move: (key, x, y) => {
          const X = kit.state.X.map((rows) => rows.map((row) => row.slice()));
          X[i][Number(key[2])] = [x, y];
          kit.set({ X });
        },
        draw: (_, at) => {
          const s = kit.situation;
          const b = optimal(s.problem)[i];
          const held = s.goal.status === "optimal" ? s.goal.support[i] : [];
          const way = (W, colour) => {
            const u = apply(W, s.problem.z[i]);
            const size = Math.hypot(...u);
            return size > 1e-9 ? arrow(...at([0, 0]), ...at(u.map((x) => x / size)), { colour, "data-mark": colour }) : "";
          };
          return axes(at, PLANE.x, PLANE.y) + (held.length ? way(s.goal.W, "fro") : "") + way(s.W, "bound")
            + tokens(s.problem.X[i], s.problem.X[i].map(() => 0.16), at, { kind: (t) => (t === b ? "best" : held[t] ? "rival" : "other"), seq: i + 1 });
        },
      });
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "angle", label: "angle between the queries", min: 5, max: 175, step: 1, show: (a) => `${a}°`, parent: controls });
    const key = kit.row("al-keys");
    key.innerHTML = [["bound", "the head $v$, where $W$ sends every query"], ["fro", "where $W^{mm}$ does"]].map(([colour, words]) =>
      `<span class="al-text-${colour}" data-mark="${colour}">→ ${html(words)}</span>`).join("");
    parent.append(key);
  },
  code: (state) => `import numpy as np
from attnbook import theory
from attnlab import problems, svm

angle = np.radians(${state.angle})
z = np.array([[1, 0], [np.cos(angle), np.sin(angle)]])
v = np.array(${python(state.v)})
problem = problems.TokenProblem(X=${python(state.X)}, z=z, y=[1, 1], v=v)
W = np.outer(v, np.linalg.pinv(z) @ problem.y)  # W z_i = y_i v
print(theory.svm.token_margins(problem, W))  # leads in score
print(svm.attention_svm(problem))`,
});
