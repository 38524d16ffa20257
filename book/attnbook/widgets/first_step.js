// Three sequences of two tokens, one query: the space of W is this plane. A first step from zero
// ranks all best tokens first; whether they stay first depends on how long it was.

import { explorable, python } from "./kit/kit.js";
import { above, angle2, attentionAt, follow, maxMargin, push, size2, unit2 } from "./kit/prompt.js";
import { arrow, group, label, line, path, percent, power, tag, text } from "./kit/view.js";
import { attentionBars, axes, plane, player, strips } from "./kit/views.js";

// Searched for: the best token of sequence 2 reaches 97 % of the attention, and loses it.
export const TRAP = {
  X: [[[0.3, 0.2], [-0.2, 0]], [[-2.1, -2.2], [0.1, -3]], [[-1.2, -1.5], [-0.6, -2.8]]],
  z: [[1, 0], [1, 0], [1, 0]], y: [1, -1, 1], v: [0.4, 1],
};
const STEPS = 150;
const ETA = 0.1;
const SHORT = 0.5;
const RX = [-5.5, 12.5];
const RY = [-0.9, 12];
const AT = [0, 1, ...Array.from({ length: 15 }, (_, j) => 10 * (j + 1))];
const FIRST = unit2(push(TRAP, [0, 0]).sum);
const GOAL = maxMargin(TRAP);
const FEATURES = TRAP.X.map(([best, other]) => [best[0] - other[0], best[1] - other[1]]);

const turned = ([x, y], degrees) => {
  const t = (degrees * Math.PI) / 180;
  return [x * Math.cos(t) - y * Math.sin(t), x * Math.sin(t) + y * Math.cos(t)];
};

// Places after 0, 1 (the long step), 2, ... steps; kept.
const kept = new Map();
function runOf(c, turn, steps) {
  const key = `${c},${turn}`;
  if (!kept.has(key)) {
    if (kept.size > 60) kept.delete(kept.keys().next().value);
    kept.set(key, [[0, 0], turned(FIRST, turn).map((x) => c * x)]);
  }
  const run = kept.get(key);
  if (run.length <= steps) run.push(...follow(TRAP, run[run.length - 1], ETA, steps + 1 - run.length).slice(1));
  return run;
}
const secondOf = (u) => attentionAt(TRAP, u)[1][0];
let asked = null;
const truth = () => (asked ||= runOf(SHORT, 0, STEPS).map(secondOf));

// The least first step after which sequence 2 is never lost for good, and its attention then.
let least = null;
function needed() {
  if (least) return least;
  let [low, high] = [2, 3.2];
  for (let k = 0; k < 14; k++) {
    const c = (low + high) / 2;
    const end = follow(TRAP, FIRST.map((x) => c * x), ETA, 260).pop();
    if (secondOf(end) > 0.5) high = c; else low = c;
  }
  least = { c: high, s: secondOf(FIRST.map((x) => high * x)) };
  return least;
}

const ENDS = [
  ["same", "In the same direction: a longer first step only saves time."],
  ["short", "The short one ends better: the long step overshoots."],
  ["long", "The long one ends better: it keeps a token that the short one loses."],
  ["both", "Differently, but neither keeps all three best tokens."],
];
const LONG = 6 * SHORT;

const ended = new Map();
const end = (length) => {
  if (!ended.has(length)) ended.set(length, angle2(runOf(length, 0, STEPS)[STEPS], GOAL.u).toFixed(0));
  return ended.get(length);
};

function sayEnds(need) {
  const { c, s } = needed();
  const facts = `At step ${STEPS} the short run has sequence 2 on its wrong token, is ${end(SHORT)}° from max margin and turns away; the long one keeps all three, at ${end(LONG)}°. With further steps of length ${ETA} the two fates part at a first step of length ${c.toFixed(1)}, where token 1 of sequence 2 starts with ${percent(Math.round(1000 * s) / 1000)}.`;
  return {
    same: `Far from it. ${facts}`,
    short: `The other way round. ${facts}`,
    long: `Yes. ${facts}`,
    both: `The long one does keep them. ${facts}`,
  }[need] || facts;
}

function saySketch(mine) {
  const s = truth();
  const peak = s.indexOf(Math.max(...s));
  const facts = `it climbs to ${percent(s[peak])} at step ${peak}, and has ${percent(s[STEPS])} at step ${STEPS}`;
  if (!mine) return `The best token of sequence 2: ${facts}.`;
  const end = mine[mine.length - 1];
  const high = Math.max(...mine);
  if (end > 0.6) return `You trusted the ranking and the falling loss. The loss does fall at every step. But the token: ${facts}.`;
  if (end > 0.2) return `You expected a draw. There is none: ${facts}.`;
  if (high > 0.8) return `You saw both halves: ${facts}.`;
  return `You saw the end, but not the climb before it: ${facts}.`;
}

// Short arrows of the flow, as one path.
function current(at, columns) {
  const rows = Math.round((columns * (RY[1] - RY[0])) / (RX[1] - RX[0]));
  let d = "";
  for (let a = 0; a < columns; a++) {
    for (let b = 0; b < rows; b++) {
      const p = [RX[0] + ((a + 0.5) / columns) * (RX[1] - RX[0]), RY[0] + ((b + 0.5) / rows) * (RY[1] - RY[0])];
      const [u, v] = unit2(push(TRAP, p).sum);
      const [x, y] = at(p);
      const tip = [x + 6 * u, y - 6 * v];
      const wing = (s) => `${(tip[0] - 4 * u + 2.4 * s * v).toFixed(1)},${(tip[1] + 4 * v + 2.4 * s * u).toFixed(1)}`;
      d += `M${(x - 6 * u).toFixed(1)},${(y + 6 * v).toFixed(1)}L${tip.map((z) => z.toFixed(1)).join(",")}M${wing(1)}L${tip.map((z) => z.toFixed(1)).join(",")}L${wing(-1)}`;
    }
  }
  return tag("path", { d, class: "al-stroke-other", fill: "none", "stroke-width": 1.1, opacity: 0.6, "data-mark": "flow" });
}

// The loss above its floor and the angle at each place of a run, kept with the run.
const measured = new WeakMap();
function measure(places, k) {
  if (!measured.has(places)) measured.set(places, { gap: [], angle: [] });
  const found = measured.get(places);
  for (let j = found.gap.length; j <= k; j++) {
    found.gap.push(above(TRAP, places[j]));
    found.angle.push(size2(places[j]) > 0 ? angle2(places[j], GOAL.u) : null);
  }
  return { gap: found.gap.slice(0, k + 1), angle: found.angle.slice(0, k + 1) };
}

// The ground of the plane, drawn once for each size: where all three best tokens lead, and the flow.
const grounds = new Map();
function ground(at, w, opened) {
  const key = `${w},${opened}`;
  if (!grounds.has(key)) {
    const far = 40;
    const edge = (f, s) => [-s * f[1], s * f[0]].map((x) => (far * x) / size2(f)); // along which this margin is 0
    const sector = [[0, 0], edge(FEATURES[1], -1), [edge(FEATURES[1], -1)[0] + edge(FEATURES[0], 1)[0], far], edge(FEATURES[0], 1)];
    const d = sector.map((p, i) => `${i ? "L" : "M"}${at(p).map((x) => x.toFixed(1)).join(",")}`).join("");
    let inner = group({ "data-mark": "cone" }, tag("path", { d: `${d}z`, class: "al-fill-fro", "fill-opacity": 0.12 }));
    if (opened) inner += current(at, w > 430 ? 18 : 12);
    grounds.set(key, inner);
  }
  return grounds.get(key);
}

export default explorable({
  name: "first_step",
  wide: true,
  title: "One good first step, then gradient descent",
  answers: ["sketch", "ends"],
  defaults: { c: SHORT, turn: 0, k: 1, open: 0, sketch: null, ends: null },
  build(kit) {
    const { state: given } = kit;
    given.k = Math.max(1, Math.min(STEPS, Math.round(given.k) || 1)); // any address
    const run = (state) => runOf(state.c, state.turn, kit.opened ? Math.max(state.k, 1) : 1);
    const kOf = (state) => (kit.opened ? Math.max(1, state.k) : 1);
    let memo = {};
    const now = (state) => {
      if (memo.state === state && memo.opened === kit.opened) return memo;
      const places = run(state);
      const k = kOf(state);
      const u = places[k];
      memo = { state, opened: kit.opened, places, k, u, s: attentionAt(TRAP, u) };
      return memo;
    };
    const board = kit.row("al-lead");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    board.append(left, side);
    kit.caption("Where all three sequences look: $Wz$", left);
    plane(kit, {
      parent: left, x: RX, y: RY, can: () => kit.opened,
      told: (state) => { const { u, k } = now(state); return `The plane of $Wz$. After ${k} steps it is at ${u[0].toFixed(1)}, ${u[1].toFixed(1)}; the shaded cone is where all three best tokens lead.`; },
      points: (state) => { const [x, y] = run(state)[1]; return [{ key: "start", x, y, label: "end of the first step" }]; },
      move: (_, x, y) => {
        const c = Math.max(0.1, Math.min(11, size2([x, y])));
        const turn = ((Math.atan2(y, x) - Math.atan2(FIRST[1], FIRST[0])) * 180) / Math.PI;
        kit.set({ c: Number(c.toFixed(2)), turn: Math.round(turn), k: STEPS });
      },
      draw: (state, at, { w }) => {
        const { places, u, k, opened } = now(state);
        const O = at([0, 0]);
        const small = w < 430;
        let inner = ground(at, w, opened) + axes(at, RX, RY);
        const end = unit2(GOAL.u).map((x) => 30 * x);
        inner += group({ "data-mark": "fro goal" }, line(...O, ...at(end), { class: "al-stroke-fro", "stroke-width": 2.2, "stroke-dasharray": "8 6" })
          + text(...at([2.75, 10.9]), label("max margin"), { class: "al-label al-halo-text al-text-fro", "text-anchor": "start" }));
        inner += text(...at([-0.6, 8.9]), small ? "all lead" : "all three best", { class: "al-small al-halo-text al-text-fro", "text-anchor": "middle" })
          + (small ? "" : text(at([-0.6, 8.9])[0], at([-0.6, 8.9])[1] + 16, "tokens lead", { class: "al-small al-halo-text al-text-fro", "text-anchor": "middle" }));
        inner += text(...at([8.2, 1.4]), small ? "2 is wrong" : "sequence 2 prefers its wrong token", { class: "al-small al-halo-text", "text-anchor": "middle" });
        const here = places.slice(1, k + 1);
        if (opened) inner += group({ "data-mark": "trained" }, path(here.map(at), { class: "al-curve al-stroke-trained" }));
        const start = at(places[1]);
        inner += group({ "data-mark": "trained first" }, arrow(...O, ...start, { colour: "trained", width: 3 })
          + text(start[0] - 8, start[1] - 4, small ? "first" : "first step", { class: "al-label al-halo-text al-text-trained", "text-anchor": "end" }));
        inner += tag("circle", { cx: start[0], cy: start[1], r: 6.5, class: "al-stroke-trained al-open-dot" });
        if (k > 1) {
          const p = at(u);
          inner += tag("circle", { cx: p[0], cy: p[1], r: 5, class: "al-fill-trained" });
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
    strips(kit, {
      parent: under, now: (state) => (kit.opened ? now(state).k : 0), steps: () => STEPS, height: 50,
      rows: (state) => {
        const { places, k, u } = now(state);
        const all = kit.opened ? measure(places, k) : { gap: [above(TRAP, u)] };
        const rows = [{ name: "loss above its floor", values: all.gap, log: true, colour: "loss", show: power(above(TRAP, u)), mark: "loss" }];
        if (kit.opened) rows.push({ name: "angle to max margin", values: all.angle, colour: "fro", show: `${angle2(u, GOAL.u).toFixed(0)}°`, range: [0, 60], mark: "goal fro trained" });
        return rows;
      },
    });
    const bar = kit.controls();
    const play = player(kit, { key: "k", last: () => STEPS, name: "Train", parent: bar });
    const more = kit.controls();
    kit.slider({ key: "c", label: "length of the first step", min: 0.1, max: 6, step: 0.1, show: (c) => c.toFixed(1), parent: more });
    kit.button("Back to the gradient’s direction", () => kit.set({ turn: 0 }), more);
    kit.draws.push(() => { bar.hidden = more.hidden = !kit.opened; });
    let seen = false;
    const moved = (state) => state.c !== SHORT || state.turn !== 0;
    kit.predict({
      heading: "Before it runs, two predictions",
      go: "Train",
      asks: [
        {
          kind: "choice", key: "ends", options: ENDS, right: () => "long", say: sayEnds,
          question: `A second run takes the same first step, but six times as long: token 1 of sequence 2 begins with ${percent(secondOf(FIRST.map((x) => LONG * x)))}. Where do the two runs end?`,
        },
        {
          kind: "sketch", key: "sketch", at: AT, known: [0.5, secondOf(FIRST.map((x) => SHORT * x))], mark: "best", say: saySketch,
          question: "After this first step all best tokens lead. Draw the attention on token 1, the best of sequence 2, as gradient descent goes on.",
          x: { range: [0, STEPS], label: "training step", ticks: [0, 50, 100, 150] },
          y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent },
          truth: () => ({ xs: Array.from({ length: STEPS + 1 }, (_, k) => k), ys: truth() }),
          upTo: (state) => (seen || moved(state) ? STEPS : state.k),
          notes: () => [[72, 0.9, "what happened"]],
        },
      ],
      start: () => { kit.set({ k: 1 }); play.play(); },
      over: (state) => { seen = seen || moved(state) || state.k >= STEPS; return seen; },
    });
    return (state) => {
      const { s, k, u } = now(state);
      if (!kit.opened) {
        kit.say(`One step of length ${SHORT} from W = 0, against the gradient: the best tokens now have ${s.map((row) => percent(row[0])).join(", ")} of the attention.`);
        return;
      }
      const lost = s.findIndex((row) => row[0] < 0.5);
      kit.say(`After a first step of length ${state.c.toFixed(1)} and ${k - 1} further ones the best tokens have ${s.map((row) => percent(row[0])).join(", ")} of the attention. ${lost < 0 ? "All lead." : `Sequence ${lost + 1} prefers its wrong token.`} The direction is ${angle2(u, GOAL.u).toFixed(0)}° from max margin.`);
      kit.el.dataset.second = String(s[1][0]);
      kit.el.dataset.angle = String(angle2(u, GOAL.u));
      kit.el.dataset.above = String(above(TRAP, u));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=${python(TRAP.X)},
    z=${python(TRAP.z)}, y=${python(TRAP.y)}, v=${python(TRAP.v)})
start = np.array([${runOf(state.c, state.turn, 1)[1].map((x) => `[${x.toFixed(6)}, 0.0]`).join(", ")}])
run = optim.train(models.Attention(), problem, optim.NormalizedGD(${ETA}),
                  steps=${state.k - 1}, params={"W": start})
print(models.Attention().attention(run.params, problem).round(3))
print(svm.correlation(run.params["W"], svm.attention_svm(problem).W))`,
});

