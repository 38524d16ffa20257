// One sequence, one query. Choose the token where training starts, far out along its max-margin
// direction: does it stay there? The reader says first which wrong token can hold it.

import { explorable, python } from "./kit/kit.js";
import { FIVE, problemOf, selected } from "./kit/local.js";
import { above, angle2, attentionAt, facts, follow, size2, unit2 } from "./kit/prompt.js";
import { arrow, circle, group, label, line, percent, power, signed, text } from "./kit/view.js";
import { attentionBars, axes, plane, player, strips, tokens } from "./kit/views.js";

const STEPS = 240;
const ETA = 0.2;
const RX = [-2.6, 2.9];
const RY = [-1.95, 1.35];
const HOLDS = 3; // of FIVE, the only one
const FAR = 12;

const runs = new Map();
function runOf(problem, start, steps) {
  const key = JSON.stringify([problem.X, start]);
  if (!runs.has(key)) {
    if (runs.size > 40) runs.delete(runs.keys().next().value);
    runs.set(key, [start]);
  }
  const run = runs.get(key);
  if (run.length <= steps) run.push(...follow(problem, run[run.length - 1], ETA, steps + 1 - run.length).slice(1));
  return run;
}
const lead = (s) => s.indexOf(Math.max(...s));
const kept = new Map();
function startOf(problem, pick, c) {
  const goal = selected(problem, [pick]);
  if (!goal) return null;
  const key = JSON.stringify([problem.X, pick, c]);
  if (!kept.has(key)) {
    if (kept.size > 200) kept.clear();
    kept.set(key, unit2(goal.u).map((x) => x * c));
  }
  return kept.get(key);
}

// The shortest start from which token HOLDS keeps training, and its attention there.
let least = null;
function needed() {
  if (least) return least;
  const problem = problemOf(FIVE.X[0]);
  let [low, high] = [3, 8];
  for (let k = 0; k < 12; k++) {
    const c = (low + high) / 2;
    const end = follow(problem, startOf(problem, HOLDS, c), ETA, STEPS).pop();
    if (lead(attentionAt(problem, end)[0]) === HOLDS) high = c; else low = c;
  }
  least = { c: high, s: attentionAt(problem, startOf(problem, HOLDS, high))[0][HOLDS] };
  return least;
}

const OPTIONS = [
  ["second", "Token 2: second best, close behind the winner."],
  ["middle", "Token 1: in the middle of the ranking."],
  ["low", "Token 4: the second worst."],
  ["all", "Each of them: far out attention is frozen wherever it starts."],
  ["none", "None: the best token lowers the loss, and wins in the end."],
];

function sayHold(mine) {
  const facts_ = "Token 4 holds. Its one neighbour is token 5, which scores even less. Tokens 1, 2 and 5 each have a neighbour that scores more, and leave.";
  return {
    second: `That is the score’s answer. Token 2 scores well, but its neighbours are tokens 1 and 3, and token 3 scores more. ${facts_}`,
    middle: `Being in the middle of the ranking does not help: its neighbours are tokens 2 and 5. ${facts_}`,
    low: `Yes. ${facts_}`,
    all: `Pulls far out are tiny, but never zero, and they decide. ${facts_}`,
    none: `It would lower the loss, and never gets the chance. ${facts_}`,
  }[mine] || facts_;
}

function sayNeed(mine) {
  const { c, s } = needed();
  const truth = `From length ${c.toFixed(1)} on token 4 keeps training; there it has ${(100 * s).toFixed(2)} % of the attention to begin with`;
  if (mine === null) return `${truth}.`;
  if (Math.abs(mine - c) < 1) return `Very near. ${truth}, and a little less is not enough.`;
  return mine < c ? `Too short: from ${mine} it would be lost. ${truth}.` : `${truth}, so ${mine} is more than enough. The proof of Theorem 7 asks for more still.`;
}

export default explorable({
  name: "pick_token",
  wide: true,
  title: "Start at a token: does training stay?",
  answers: ["hold", "need"],
  defaults: { X: FIVE.X[0], pick: 1, c: FAR, k: 0, open: 0, hold: null, need: null },
  build(kit) {
    kit.state.k = Math.max(0, Math.min(STEPS, Math.round(kit.state.k) || 0)); // any address
    let memo = {};
    const now = (state) => {
      if (memo.state === state && memo.opened === kit.opened) return memo;
      const problem = problemOf(state.X);
      const goal = selected(problem, [state.pick]);
      const start = startOf(problem, state.pick, state.c);
      const k = kit.opened && start ? state.k : 0;
      const places = start ? runOf(problem, start, k) : [[0, 0]];
      const u = places[k];
      const { gamma, top } = facts(problem);
      memo = { state, opened: kit.opened, problem, goal, k, places, u, s: attentionAt(problem, u)[0], gamma: gamma[0], top: top[0] };
      return memo;
    };
    const kind = (here) => (t) => (t === here.top ? "best" : here.opened && here.goal?.support[0][t] ? "rival" : "other");
    const board = kit.row("al-lead");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    board.append(left, side);
    kit.caption("Press the token where training starts", left);
    const shown = plane(kit, {
      parent: left, x: RX, y: RY,
      told: (state) => { const here = now(state); return `Five tokens in the plane, step ${here.k}: ${here.s.map((p, t) => `token ${t + 1} scores ${signed(here.gamma[t])} and has ${percent(p)} of the attention`).join(", ")}.`; },
      points: (state) => state.X.map(([x, y], t) => ({ key: `x${t}`, x, y, label: `token ${t + 1}${state.pick === t ? ", where training starts" : ""}`, link: `tok1${t + 1}` })),
      move: (key, x, y) => {
        if (!kit.opened) return;
        const X = structuredClone(kit.state.X);
        X[Number(key[1])] = [Math.round(x * 100) / 100, Math.round(y * 100) / 100];
        kit.set({ X });
      },
      draw: (state, at, { w }) => {
        const here = now(state);
        const O = at([0, 0]);
        const small = w < 430;
        let inner = axes(at, RX, RY);
        if (here.goal) {
          const end = unit2(here.goal.u).map((x) => 6 * x);
          inner += group({ "data-mark": "fro goal" }, line(...O, ...at(end), { class: "al-stroke-fro", "stroke-width": 2.2, "stroke-dasharray": "8 6" }));
          if (here.opened) { // the line through the nearest tokens, at margin 1
            const g = here.goal.u;
            const foot = state.X[here.goal.support[0].findIndex(Boolean)];
            const across = unit2([-g[1], g[0]]);
            const ends = [-8, 8].map((r) => at([foot[0] + r * across[0], foot[1] + r * across[1]]));
            inner += group({ "data-mark": "rival edge" }, line(...ends[0], ...ends[1], { class: "al-stroke-rival", "stroke-width": 1.2, "stroke-dasharray": "2 4", opacity: 0.8 }));
          }
        }
        const P = at(state.X[state.pick]);
        const token = tokens(state.X, here.s, at, { kind: kind(here), scores: here.gamma, seq: 1, area: small ? 22 : 34 });
        const r = Math.max(3, (small ? 22 : 34) * Math.sqrt(here.s[state.pick]));
        inner += circle(P[0], P[1], r + 4, { class: "al-stroke-trained", fill: "none", "stroke-width": 3, "data-mark": "pick" }) + token;
        const size = size2(here.u);
        if (size > 1e-9) {
          const e = unit2(here.u).map((x) => x * (0.45 + 0.6 * (1 - Math.exp(-size / 8))));
          const tip = at(e);
          inner += group({ "data-mark": "trained" }, arrow(...O, ...tip, { colour: "trained", width: 3 })
            + text(tip[0] + (e[0] > 0 ? 7 : -7), tip[1] + (e[1] > 0 ? -4 : 14), label("$Wz$"), { class: "al-label al-halo-text al-text-trained", "text-anchor": e[0] > 0 ? "start" : "end" }));
        }
        return inner;
      },
    });
    // A press selects a token, with a finger or a key (whose click has detail 0); a drag does not.
    let pressed = [0, 0];
    shown.host.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; });
    shown.host.addEventListener("click", (event) => {
      const grip = event.target.closest?.("[data-handle]");
      const dragged = event.detail > 0 && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 4;
      if (grip && !dragged) kit.set({ pick: Number(grip.dataset.handle[1]) });
    });
    const bars = document.createElement("div");
    side.append(bars);
    kit.caption("Attention", bars);
    attentionBars(kit, { parent: bars, row: (state) => { const here = now(state); return { s: here.s, kind: kind(here), seq: 1 }; } });
    const under = document.createElement("div");
    side.append(under);
    strips(kit, {
      parent: under, now: (state) => now(state).k, steps: () => STEPS, height: 50,
      rows: (state) => {
        const here = now(state);
        const all = here.places.slice(0, here.k + 1);
        const seen = all.map((u) => attentionAt(here.problem, u)[0]);
        const rows = [{ name: `attention on token ${state.pick + 1}`, values: seen.map((s) => s[state.pick]), colour: "trained", show: percent(here.s[state.pick]), range: [0, 1], mark: "pick" }];
        if (state.pick !== here.top) rows.push({ name: "attention on the best token", values: seen.map((s) => s[here.top]), colour: "best", show: percent(here.s[here.top]), range: [0, 1], mark: "best" });
        rows.push({ name: "loss above its floor", values: all.map((u) => above(here.problem, u)), log: true, colour: "loss", show: power(above(here.problem, here.u)), mark: "loss" });
        return rows;
      },
    });
    const bar = kit.controls();
    const play = player(kit, { key: "k", last: () => STEPS, name: "Train", parent: bar });
    kit.draws.push(() => { bar.hidden = !kit.opened; });
    kit.slider({ key: "c", label: "length of the start", values: [0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8, 10, 12, 16, 20, 25, 30], show: String });
    kit.predict({
      heading: "Before it runs, two predictions",
      about: ["X"],
      go: "Train",
      asks: [
        {
          kind: "choice", key: "hold", options: OPTIONS, right: () => "low", say: sayHold,
          question: "Token 3 is the best. Start training far out along the direction of one of the others. Which one can hold it for ever?",
        },
        {
          kind: "number", key: "need", min: 0, max: 30, step: 0.5, show: (x) => (Number.isInteger(x * 2) ? String(x) : x.toFixed(1)), say: sayNeed,
          truth: () => needed().c,
          question: "Suppose that a worse token can hold. How long must $W$ be at the start, at least? (The slider above shows the attention at a given length.)",
        },
      ],
      start: () => { kit.set({ k: 0, pick: { second: 1, middle: 0 }[kit.state.hold] ?? HOLDS }); play.play(); },
    });
    return (state) => {
      const here = now(state);
      const name = `Token ${state.pick + 1}`;
      const nearest = here.goal ? here.goal.support[0].map((on, t) => (on ? t : -1)).filter((t) => t >= 0) : [];
      if (!here.goal) {
        kit.say(`No W puts token ${state.pick + 1} first: it has no max-margin direction.`);
        Object.assign(kit.el.dataset, { local: "none", stays: "none", pick: String(state.pick) });
        return;
      }
      if (!here.opened) {
        kit.say(`${name} scores ${signed(here.gamma[state.pick])}. A start of length ${state.c} along its max-margin direction gives it ${percent(here.s[state.pick])} of the attention.`);
        return;
      }
      const at = lead(here.s);
      const held = at === state.pick;
      const beats = here.goal.local;
      const words = nearest.map((t) => `token ${t + 1} (${signed(here.gamma[t])})`).join(" and ");
      kit.say(`${name} scores ${signed(here.gamma[state.pick])}; nearest to it: ${words}. It is ${beats ? "" : "not "}locally optimal. After ${here.k} steps from length ${state.c} attention is on token ${at + 1}; the direction is ${angle2(here.u, here.goal.u).toFixed(0)}° from that of token ${state.pick + 1}.${beats && !held ? " The start was too short." : ""}`);
      Object.assign(kit.el.dataset, { local: String(beats), stays: String(held), top: String(here.top), pick: String(state.pick), at: String(at), steps: String(here.k), attention: JSON.stringify(here.s) });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=[${python(state.X)}],
    z=${python(FIVE.z)}, y=${python(FIVE.y)}, v=${python(FIVE.v)})
found = svm.locally_optimal(problem, [${state.pick}])
start = ${state.c} * found.margin.W / found.margin.norm
run = optim.train(models.Attention(), problem, optim.NormalizedGD(${ETA}),
                  steps=${Math.max(1, state.k)}, params={"W": start})
print(found.as_printed, models.Attention().attention(run.params, problem).round(3))`,
});
