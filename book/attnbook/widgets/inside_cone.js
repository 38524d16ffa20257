// Inside the cone where all best tokens lead: which way a gradient step goes, and what it does to
// each lead. Inequality (63a) says that all of them rise.

import { explorable, python } from "./kit/kit.js";
import { angle2, attentionAt, dot2, maxMargin, push, size2, unit2 } from "./kit/prompt.js";
import { arrow, group, label, line, percent, power, rect, signed, tag, text } from "./kit/view.js";
import { attentionBars, axes, plane } from "./kit/views.js";

const TRAP = {
  X: [[[0.3, 0.2], [-0.2, 0]], [[-2.1, -2.2], [0.1, -3]], [[-1.2, -1.5], [-0.6, -2.8]]],
  z: [[1, 0], [1, 0], [1, 0]], y: [1, -1, 1], v: [0.4, 1],
};
const RX = [-5.2, 7.4];
const RY = [-0.8, 8.6];
const GOAL = maxMargin(TRAP);
const FEATURES = TRAP.X.map(([best, other]) => [best[0] - other[0], best[1] - other[1]]);
const inside = (u) => FEATURES.every((f) => dot2(f, u) > 0);
const rises = (u) => { const way = unit2(push(TRAP, u).sum); return FEATURES.map((f) => dot2(f, way)); };

const grounds = new Map();
function ground(at, w, opened) {
  const key = `${w},${opened}`;
  if (grounds.has(key)) return grounds.get(key);
  const edge = (f, s) => [-s * f[1], s * f[0]].map((x) => (30 * x) / size2(f));
  const [a, b] = [edge(FEATURES[1], -1), edge(FEATURES[0], 1)];
  const d = [[0, 0], a, [a[0] + b[0], 30], b].map((p, i) => `${i ? "L" : "M"}${at(p).map((x) => x.toFixed(1)).join(",")}`).join("");
  let inner = group({ "data-mark": "cone" }, tag("path", { d: `${d}z`, class: "al-fill-fro", "fill-opacity": 0.12 }));
  if (opened) {
    let cells = "";
    const by = 0.12;
    for (let y = 0; y < RY[1]; y += by) {
      let from = null;
      for (let x = RX[0]; x <= RX[1]; x += by) {
        const u = [x + by / 2, y + by / 2];
        const bad = inside(u) && Math.min(...rises(u)) < 0;
        if (bad && from === null) from = x;
        if (!bad && from !== null) {
          const [x0, y0] = at([from, y + by]);
          const [x1, y1] = at([x, y]);
          cells += rect(x0, y0, x1 - x0, y1 - y0);
          from = null;
        }
      }
    }
    inner += group({ "data-mark": "violation", class: "al-fill-violation", "fill-opacity": 0.22 }, cells);
  }
  grounds.set(key, inner);
  return inner;
}

const OPTIONS = [
  ["all", "All three rise: each sequence is pulled towards its own best token."],
  ["near", "All rise far out; near zero one may fall."],
  ["one", "Nearly everywhere in the cone one falls, however far out."],
];

export default explorable({
  name: "inside_cone",
  wide: true,
  title: "A step inside the cone",
  answers: ["bet"],
  defaults: { length: 4.6, turn: 11, open: 0, bet: null },
  build(kit) {
    let memo = {};
    const now = (state) => {
      const key = `${state.length},${state.turn}`;
      if (memo.key === key) return memo;
      const t = (state.turn * Math.PI) / 180;
      const [x, y] = unit2(GOAL.u).map((v) => state.length * v);
      const u = [x * Math.cos(t) - y * Math.sin(t), x * Math.sin(t) + y * Math.cos(t)];
      const { parts, sum, logScale } = push(TRAP, u);
      const way = unit2(sum);
      const largest = Math.max(...parts.map(size2));
      memo = { key, u, parts: parts.map((p) => p.map((x) => x / largest)), way, rise: FEATURES.map((f) => dot2(f, way)), s: attentionAt(TRAP, u), in: inside(u), along: dot2(way, unit2(u)), to: dot2(way, unit2(GOAL.u)), length: size2(sum) * Math.exp(logScale) };
      return memo;
    };
    const board = kit.row("al-lead");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    board.append(left, side);
    kit.caption("Drag $W$", left);
    plane(kit, {
      parent: left, x: RX, y: RY,
      told: (state) => { const here = now(state); return `W at ${here.u[0].toFixed(1)}, ${here.u[1].toFixed(1)}, ${here.in ? "inside" : "outside"} the cone where all best tokens lead.`; },
      points: (state) => { const [x, y] = now(state).u; return [{ key: "u", x, y, label: "$W$", link: "trained" }]; },
      move: (_, x, y) => {
        const turn = ((Math.atan2(y, x) - Math.atan2(GOAL.u[1], GOAL.u[0])) * 180) / Math.PI;
        kit.set({ length: Number(Math.max(0.1, size2([x, y])).toFixed(2)), turn: Number((((turn + 540) % 360) - 180).toFixed(1)) });
      },
      draw: (state, at, { w }) => {
        const here = now(state);
        const P = at(here.u);
        const small = w < 430;
        let inner = ground(at, w, kit.opened) + axes(at, RX, RY)
          + group({ "data-mark": "fro goal" }, line(...at([0, 0]), ...at(unit2(GOAL.u).map((x) => 30 * x)), { class: "al-stroke-fro", "stroke-width": 2.2, "stroke-dasharray": "8 6" })
            + text(...at([1.95, 7.8]), "max margin", { class: "al-label al-halo-text al-text-fro" }))
          + text(...at([-5, 8]), small ? "" : label("all lead in the cone"), { class: "al-small al-halo-text al-text-fro" });
        inner += group({ "data-mark": "trained" }, line(...at([0, 0]), ...P, { class: "al-stroke-trained", "stroke-width": 1.6, opacity: 0.6 })
          + tag("circle", { cx: P[0], cy: P[1], r: 7, class: "al-fill-trained" }) + text(P[0] + 11, P[1] + 16, label("$W$"), { class: "al-label al-halo-text al-text-trained" }));
        if (kit.opened) {
          here.parts.forEach((p, i) => {
            const end = at([here.u[0] + 1.7 * p[0], here.u[1] + 1.7 * p[1]]);
            inner += group({ "data-mark": `pull seq${i + 1}` }, arrow(...P, ...end, { colour: "best", width: 1.8 })
              + (Math.hypot(end[0] - P[0], end[1] - P[1]) > 14 ? text(end[0] + 5, end[1] - 4, i + 1, { class: "al-label al-halo-text al-text-best" }) : ""));
          });
          const end = at([here.u[0] + 2.1 * here.way[0], here.u[1] + 2.1 * here.way[1]]);
          inner += group({ "data-mark": "step" }, arrow(...P, ...end, { colour: "trained", width: 3 }));
        }
        return inner;
      },
    });
    TRAP.X.forEach((_, i) => {
      const place = document.createElement("div");
      side.append(place);
      kit.caption(`Sequence ${i + 1}`, place);
      attentionBars(kit, { parent: place, row: (state) => ({ s: now(state).s[i], kind: (t) => (t === 0 ? "best" : "other"), seq: i + 1 }) });
    });
    const under = document.createElement("div");
    side.append(under);
    kit.view({
      parent: under, name: "rises",
      told: (state) => (kit.opened ? now(state).rise.map((r, i) => `lead of sequence ${i + 1} ${r < 0 ? "falls" : "rises"} by ${Math.abs(r).toFixed(2)}`).join(", ") : "Both sides appear with the answer."),
      draw: (w, state) => {
        if (!kit.opened) return { height: 0, inner: "" };
        const { rise, along, to } = now(state);
        const mid = 92 + (w - 92 - 52) * 0.42;
        const scale = Math.min((w - 52 - mid) / 2.4, (mid - 92) / 1.8);
        let inner = text(0, 14, "what a step of length 1 does", { class: "al-label" });
        let y = 26;
        const row = (name, value, colour, mark) => {
          inner += group({ "data-mark": mark }, text(0, y + 12, label(name), { class: `al-small${value < 0 ? " al-text-violation" : ""}` })
            + rect(value < 0 ? mid + Math.max(-1.8, value) * scale : mid, y + 2, Math.min(Math.abs(value), value < 0 ? 1.8 : 2.4) * scale, 12, { class: `al-fill-${value < 0 ? "violation" : colour}` })
            + text(w, y + 13, signed(value), { class: "al-small al-value", "text-anchor": "end" }));
          y += 22;
        };
        rise.forEach((r, i) => row(`lead in ${i + 1}`, r, "best", `lead seq${i + 1}`));
        y += 8;
        row("along $W$", along, "trained", "trained");
        row("to max margin", to, "fro", "fro goal");
        inner += line(mid, 22, mid, y, { class: "al-axis" });
        return { height: y + 2, inner };
      },
    });
    kit.slider({ key: "length", label: "length of W", min: 0.2, max: 8.4, step: 0.1, show: (x) => x.toFixed(1) });
    kit.predict({
      heading: "Before you see the step",
      go: "Show the step",
      asks: [{
        kind: "choice", key: "bet", options: OPTIONS, right: () => "one",
        question: "Inside the shaded cone every best token leads. What does a gradient step do to the three leads?",
        say: (bet) => `${{ all: "So says inequality (63a) of the paper’s proof.", near: "Distance does not help: far out the weights differ even more.", one: "Yes." }[bet] || ""} In the red part a step lowers a lead. There one sequence is far ahead, so its own pull has died, and the pull of the others may go against it. Far out it can afford that: its lead is large, and it pulls again before the lead is gone. Near zero, as on the first screen, the lead may not last so long.`.trim(),
      }],
    });
    return (state) => {
      const here = now(state);
      if (!kit.opened) {
        kit.say(`W is ${here.in ? "inside" : "outside"} the cone, and the best tokens have ${here.s.map((row) => percent(row[0])).join(", ")} of the attention.`);
        return;
      }
      const falling = here.rise.map((r, i) => (r < 0 ? i + 1 : 0)).filter(Boolean);
      const turn = here.to - Math.cos((angle2(here.u, GOAL.u) * Math.PI) / 180) * here.along;
      kit.say(`${here.in ? "Inside" : "Outside"} the cone, ${angle2(here.u, GOAL.u).toFixed(0)}° from max margin. ${falling.length ? `A step lowers the lead in sequence ${falling.join(" and ")}.` : "A step raises all three leads."} It turns W ${turn > 0 ? "towards" : "away from"} max margin, and its push along max margin is positive. The gradient has length ${power(here.length)}.`);
      Object.assign(kit.el.dataset, { height: String(here.u[1]), rise: JSON.stringify(here.rise), inside: String(here.in), along: String(here.along), to: String(here.to) });
    };
  },
  code: (state) => `import numpy as np
from attnbook import theory
from attnlab import models, problems, svm

problem = problems.TokenProblem(
    X=${python(TRAP.X)},
    z=${python(TRAP.z)}, y=${python(TRAP.y)}, v=${python(TRAP.v)})
goal = svm.attention_svm(problem)
angle = np.radians(${state.turn}) + np.arctan2(goal.W[1, 0], goal.W[0, 0])
W = ${state.length} * np.array([[np.cos(angle), 0.0], [np.sin(angle), 0.0]])
step = -models.Attention().scaled_grad({"W": W}, problem)[1]["W"]
step /= np.linalg.norm(step)
print("changes of the leads", theory.svm.token_margins(problem, step)[:, 1])
print("along max margin", svm.correlation(step, goal.W))`,
});
