// Theorem 7 of svm: descent that starts in the cone of a locally optimal selection stays in it and
// turns to its middle. Twins in attnbook.theory.svm; tests/browser/test_svm_local.py.

import { derivation } from "../kit/derive.js";
import { python } from "../kit/kit.js";
import { FIVE, localConstants, problemOf, pushBounds, selected } from "../kit/local.js";
import { attentionAt, dot2, facts, follow, leadsOf, push, size2, unit2 } from "../kit/prompt.js";
import { arrow, circle, group, line, percent, power, tag } from "../kit/view.js";
import { axes, plane, tokens } from "../kit/views.js";

const RX = [-2.6, 2.9];
const RY = [-1.95, 1.35];
const LENGTHS = [0.08, 0.15, 0.25, 0.4, 0.6, 0.8, 1, 1.2, 1.5, 2, 3, 5, 8];
const WIDTHS = [-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8, 1];

// Two sequences; the selection (0, 0) leaves the second without a support token, at margin 1.02.
const BARE = {
  X: [[[0.25, 0], [-0.25, 0]], [[0.255, 0.25], [-0.255, -0.25]]],
  z: [[1, 0], [1, 0]], y: [1, -1], v: [1, 0],
};

const turn = ([x, y], t) => [x * Math.cos(t) - y * Math.sin(t), x * Math.sin(t) + y * Math.cos(t)];
const cos = (a, b) => dot2(unit2(a), unit2(b));
const fixed = (x, digits = 2) => (Number.isFinite(x) ? x.toFixed(digits).replace("-", "−") : "none");

export function situation(state) {
  const { dropped } = state;
  const bare = dropped.has("supported");
  const problem = bare ? BARE : problemOf(state.X);
  const tokens_ = bare ? [0, 0] : dropped.has("beats") ? [1] : [3];
  const goal = selected(problem, tokens_);
  if (!goal) return { problem, tokens: tokens_, goal: null };
  const c = localConstants(problem, tokens_, goal, bare);
  const margin = Math.min(0.5, c.delta);
  const R = c.gap > 0 ? c.radius : 12 * c.norm;
  const size = dropped.has("far") ? 0.08 * R : state.length * R;
  const edge = Math.acos(1 - c.mu);
  const angle = bare ? -Math.atan(0.3) : dropped.has("near") ? -Math.PI / 4 : state.off * edge;
  const u = turn(unit2(goal.u), angle).map((x) => size * x);
  const V = unit2(u).map((x) => c.norm * x);
  const s = attentionAt(problem, u);
  const { sum, logScale, slopes } = push(problem, u);
  const along = (way) => dot2(sum, way) * Math.exp(logScale);
  const parts = problem.X.map((_, i) => {
    let [S, Q] = [0, 0];
    s[i].forEach((p, t) => { if (t !== tokens_[i]) { if (goal.support[i][t]) S += p; else Q += p; } });
    return { S, Q };
  });
  const T = problem.X[0].length;
  const reach = size / c.norm; // |W| Theta
  const epsilon = c.mu / 2;
  const pi = epsilon / (1 - epsilon);
  const way = unit2(sum);
  const step = ((c.mu - epsilon) / (1 - c.mu)) * (dot2(way, unit2(goal.u)) / (1 - epsilon)); // zeta(mu) |grad|
  const after = [u[0] + step * way[0], u[1] + step * way[1]];
  return { problem, tokens: tokens_, goal, ...c, margin, R, u, V, s, slopes, parts, T, reach, epsilon, pi, step, after, way, angle, edge, along, bounds: pushBounds(problem, tokens_, goal, s, slopes), vMargins: leadsOf(problem, V, tokens_) };
}

const none = (s) => !s.goal && { rows: [["margin of a unit $W$", 0, 0, ">"]], names: ["largest", "needed"], say: "No $W$ puts the selected token first, so there is no direction." };
const nameOf = (s, i, t) => (s.problem.X.length > 1 ? `sequence ${i + 1}, token ${t + 1}` : `token ${t + 1}`);

export default derivation({
  id: "svm-theorem-7",
  defaults: { X: FIVE.X[0], length: 1.2, off: 0.8 },
  hypotheses: {
    beats: { dropped: "token 2 is selected now: its neighbour, token 3, scores more." },
    supported: { dropped: "two sequences; the rival of the second has margin 1.02, so it is no support token, and the printed $\\delta$ does not see it." },
    near: { dropped: "$W$ has been turned by 45°." },
    far: { dropped: "$W$ is now at a twelfth of $R$." },
  },
  situation,
  steps: {
    cone(s) {
      if (none(s)) return none(s);
      const rows = [];
      s.problem.X.forEach((X, i) => X.forEach((_, t) => {
        if (t === s.tokens[i]) return;
        const m = s.vMargins[i][t];
        if (s.goal.support[i][t]) {
          rows.push([`${nameOf(s, i, t)}, support`, m, 0.5, "≥", "rival"], [`${nameOf(s, i, t)}, support`, m, 1.5, "≤", "rival"]);
        } else rows.push([nameOf(s, i, t), m, 1 + s.margin, "≥", "other"]);
      }));
      const broken = rows.some(([, a, b, sign]) => (sign === "≥" ? a < b - 1e-9 : a > b + 1e-9));
      return { names: ["margin under $V$", "limit"], rows, scale: "linear", range: [0, 3],
        say: !broken ? `The cone is so narrow (${fixed((180 * s.edge) / Math.PI, 1)}° to each side) that no margin moves by more than ${fixed(s.margin, 3)}.`
          : s.problem.X.length > 1 ? "Inside the printed cone the rival of sequence 2 comes nearer than any support token."
            : "Outside the cone another token has come nearer than the support token." };
    },
    weights(s) {
      const rows = s.parts.flatMap(({ S, Q }, i) => [
        [`other tokens, $Q${s.parts.length > 1 ? `_${i + 1}` : ""}$`, Q, { ln: Math.log(s.T) - s.reach * s.margin + Math.log(S) }, "≤", "other"],
        [`support tokens, $S${s.parts.length > 1 ? `_${i + 1}` : ""}$`, S, { ln: Math.log(s.T) - s.reach / 2 }, "≤", "rival"],
      ]);
      return { names: ["attention", "bound"], rows, scale: "log", say: `What is missing on the selected token, ${power(s.parts[0].S + s.parts[0].Q)}, lies on its support tokens: the others have a share of ${power(s.parts[0].Q / (s.parts[0].S + s.parts[0].Q))} in it.` };
    },
    push(s) {
      const p = s.along(s.V);
      const [low, high] = s.bounds;
      const rows = [["push along $V$, from below", p, low, "≥", "trained"], ["push along $V$, from above", p, high, "≤", "trained"], ["push along $V$ is positive", p, 0, ">", "trained"]];
      return { names: ["measured", "bound"], rows, scale: "row", ok: p > 0 && p >= low * (1 - 1e-9) && p <= high * (1 + 1e-9) ? "yes" : "no",
        say: p <= 0 ? (s.gap <= 0 ? "The support token that scores more pulls the other way: the push along $V$ is negative. Training leaves." : "Too short: tokens beyond the support token still have weight, and they pull the other way.")
          : p < low * (1 - 1e-9) ? "The push is positive, but smaller than the bound says: too many other tokens pull." : "Positive everywhere in the cone: no stationary point. That is T1." };
    },
    compare(s) {
      const [w, g] = [s.along(unit2(s.u)), s.along(unit2(s.goal.u))];
      return { names: ["push along $W$", "$(1+\\pi)$ times push along $W^{mm}_\\alpha$"], rows: [["unit directions", w, (1 + s.pi) * g, "≤", "fro"]], scale: "row",
        say: `The ratio is ${fixed(w / g, 5)}, allowed is $1+\\pi=$ ${fixed(1 + s.pi, 5)}.` };
    },
    stay(s) {
      const rows = [["$1-\\cos$ before, against $\\mu$", 1 - cos(s.u, s.goal.u), s.mu, "≤", "fro"], ["$1-\\cos$ after, against $\\mu$", 1 - cos(s.after, s.goal.u), s.mu, "≤", "fro"], ["length after, against before", size2(s.after), size2(s.u), "≥", "trained"]];
      return { names: ["left side", "right side"], rows, scale: "row", say: `A step of length ${power(s.step)} in $W$, the largest one that $\\zeta(\\mu)$ allows.` };
    },
    limit(s) {
      const by = size2(s.u) / 20;
      const run = follow(s.problem, s.u, by, 400);
      const end = run[400];
      const [first, last] = [1 - cos(s.u, s.goal.u), 1 - cos(end, s.goal.u)];
      const rows = [["$1-\\cos$ after a long run, against $\\epsilon$", last, s.epsilon, "≤", "fro"], ["length after, against before", size2(end), size2(s.u), "≥", "trained"]];
      return { names: ["left side", "right side"], rows, scale: "row", say: `From ${fixed(first, 5)} to ${fixed(last, 7)}, while $W$ became ${fixed(size2(end) / size2(s.u), 0)} times as long.` };
    },
  },
  waterfall(s) {
    const p = s.along(s.V);
    const { gamma } = facts(s.problem);
    const n = s.problem.X.length;
    let [sum, half, quarter] = [0, 0, 0];
    gamma.forEach((row, i) => {
      const leads = row.map((g) => row[s.tokens[i]] - g);
      const least = Math.min(...leads.filter((_, t) => s.goal.support[i][t]));
      row.forEach((_, t) => { if (s.goal.support[i][t]) sum += (s.slopes[i] / n) * s.vMargins[i][t] * s.s[i][t] * leads[t]; });
      half += (s.slopes[i] / n) * 0.5 * s.parts[i].S * least;
      quarter += (s.slopes[i] / n) * 0.25 * s.parts[i].S * least;
    });
    return {
      levels: [
        { name: "push along $V$, measured", value: p },
        { step: "weights", name: "support tokens only", value: sum },
        { step: "cone", name: "margins down to ½, the least lead", value: half },
        { step: "push", name: "half of it kept for the errors", value: quarter },
        { step: "push", name: "$S$ down to half of $1-s_\\alpha$", value: s.bounds[0], proven: "Lemma 13, proven" },
      ],
      say: `The bound is ${fixed(p / s.bounds[0], 1)} times too small, and the radius is where most is given away: $R=$ ${fixed(s.R, 1)}.`,
    };
  },
  data(kit, parent) {
    const place = kit.row("al-column");
    parent.append(place);
    plane(kit, {
      x: RX, y: RY, parent: place,
      told: () => { const s = kit.situation; return s.goal ? `Attention: ${s.s[0].map((p, t) => `token ${t + 1} ${percent(p)}`).join(", ")}` : "No direction."; },
      points: (state) => state.X.map(([x, y], t) => ({ key: `x${t}`, x, y, label: `token ${t + 1}` })),
      can: (state) => !state.drop.includes("supported"),
      move: (key, x, y) => {
        const X = kit.state.X.map((row) => row.slice());
        X[Number(key[1])] = [Math.round(100 * x) / 100, Math.round(100 * y) / 100];
        kit.set({ X });
      },
      draw: (_, at) => {
        const s = kit.situation;
        if (!s.goal) return axes(at, RX, RY);
        const wide = [s.edge, -s.edge].map((t) => at(turn(unit2(s.goal.u), t).map((x) => 5 * x)));
        const O = at([0, 0]);
        let inner = axes(at, RX, RY) + group({ "data-mark": "bound" }, tag("path", { d: `M${[O, ...wide].map((p) => p.map((x) => x.toFixed(1)).join(",")).join("L")}z`, class: "al-fill-bound", "fill-opacity": 0.35 }))
          + group({ "data-mark": "fro" }, line(...O, ...at(unit2(s.goal.u).map((x) => 5 * x)), { class: "al-stroke-fro", "stroke-width": 1.6, "stroke-dasharray": "8 6" }));
        s.problem.X.forEach((X, i) => {
          inner += tokens(X, s.s[i], at, { kind: (t) => (s.goal.support[i][t] ? "rival" : "other"), area: 18, seq: i + 1 });
          const [x, y] = at(X[s.tokens[i]]);
          inner += circle(x, y, 22, { class: "al-stroke-trained", fill: "none", "stroke-width": 2.4 });
        });
        return inner + arrow(...O, ...at(unit2(s.u)), { colour: "trained", width: 3, "data-mark": "trained" });
      },
    });
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "length", label: "length of W (times R)", values: LENGTHS, show: (x) => fixed(x, 2), parent: controls });
    kit.slider({ key: "off", label: "place in the cone, 1 is its edge", values: WIDTHS, show: (x) => fixed(x, 1), parent: controls });
  },
  code: (state) => `import numpy as np
from attnbook import theory
from attnlab import models, problems, svm

problem = problems.TokenProblem(
    X=[${python(state.X)}], z=${python(FIVE.z)}, y=${python(FIVE.y)}, v=${python(FIVE.v)})
margin = svm.attention_svm(problem, [3])
c = theory.svm.local_constants(problem, margin.W, [3])
W = ${state.length} * c.radius * margin.W / margin.norm
s = models.Attention().attention({"W": W}, problem)
slopes = 1 / (1 + np.exp((s * problem.scores).sum(axis=-1)))
print(c, theory.svm.lemma_13_bounds(problem, margin.W, s, slopes, [3]))`,
});
