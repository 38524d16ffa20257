// Short sequences in the plane, a query each, one W for all. The reader says first what training
// will do; then it runs, and tokens and queries may be dragged.

import { nuclear, optimal, scores } from "./kit/core.js";
import { explorable, python } from "./kit/kit.js";
import { BOARD, ETA, FACTORS, aboveFloor, angle, answer, problemOf, train } from "./kit/tokens.js";
import { apply, norm } from "./kit/vectors.js";
import { arrow, group, label, line, percent, power, text } from "./kit/view.js";
import { attentionBars, axes, heat, plane, player, strips, tokens } from "./kit/views.js";

const STEPS = 200;
const LONGEST = 25600;
const ALIGNED = 1; // degrees
const BY = 10;
const AT = Array.from({ length: STEPS / BY + 1 }, (_, j) => j * BY);
const COLOUR = { W: "fro", KQ: "nuc" };
const NORM = { W: "Frobenius", KQ: "nuclear" };

// The run that was asked about: attention on token 1 of sequence 1, and where it is lowest.
function asked() {
  const frames = train(BOARD, STEPS);
  const best = frames.map((one) => one.s[0][0]);
  const low = best.indexOf(Math.min(...best));
  return { best, low, lowest: best[low], angle: (k) => angle(train(BOARD, k)[k].W, answer(BOARD).W), length: (k) => train(BOARD, k)[k].length };
}

const CHOICES = [
  ["settle", "They settle: once attention is good enough, nothing pulls any more."],
  ["wander", "They grow without end, and their pattern keeps changing."],
  ["ray", "They grow without end, but their pattern settles."],
  ["cycle", "They rise and fall in a cycle, as the two sequences pull in turn."],
];

function sayChoice(bet) {
  const { length, angle: to } = asked();
  const facts = `The length of $W$ is ${length(200).toFixed(1)} after 200 steps and ${length(2000).toFixed(0)} after 2,000; its angle to one fixed direction goes from ${to(40).toFixed(0)}° at step 40 to ${to(200).toFixed(1)}° and ${to(2000).toFixed(1)}°.`;
  return {
    ray: `Right: longer for ever, and ever less turning. ${facts}`,
    settle: `Only the pattern settles. Attention is never exactly 1, so a longer $W$ is always a little better. ${facts}`,
    wander: `The first half is right: there is no end. But the direction has one. ${facts}`,
    cycle: `They do pull in turn, once: $W$ turns around step 60. After that it is over. ${facts}`,
  }[bet] || facts;
}

function saySketch(mine) {
  const { best, low, lowest } = asked();
  const truth = `at step ${low} the best token of sequence 1 has ${percent(lowest)} of the attention`;
  if (!mine) return `It falls first: ${truth}. Then it takes everything.`;
  const off = AT.reduce((sum, k, j) => sum + Math.abs(mine[j] - best[k]), 0) / AT.length;
  const early = Math.min(...mine.filter((_, j) => AT[j] > 0 && AT[j] <= 80));
  const end = mine[mine.length - 1];
  let told;
  if (early < 0.17 && end > 0.85) told = `You saw the fall coming, and the return: ${truth}.`;
  else if (early < 0.17) told = `You saw the fall: ${truth}. But it comes back and takes everything, where your line ends at ${percent(end)}.`;
  else if (end > 0.85) told = `Your end is right. You drew a rise from the start. Yet ${truth}: it loses before it wins.`;
  else told = `Your line ends at ${percent(end)}. The token ends with everything, and before that it nearly vanishes: ${truth}.`;
  return `${told} On average your line is ${Math.round(100 * off)} points from what happened.`;
}

export default explorable({
  name: "token_board",
  wide: true,
  title: "One matrix, every sequence",
  answers: ["bet", "sketch"],
  defaults: { ...BOARD, form: "W", k: 0, K: STEPS, open: 0, asks: true, bet: null, sketch: null },
  build(kit) {
    const n = kit.state.X.length;
    const reach = (axis, least) => Math.max(least, 1.25 * Math.max(...kit.initial.X.flat().concat(kit.initial.z).map((x) => Math.abs(x[axis]))));
    const RX = reach(0, 2);
    const RY = reach(1, 1.5);
    const { initial } = kit;
    const open = () => kit.opened || !initial.asks;
    kit.state.K = Math.max(1, Math.min(LONGEST, Math.round(kit.state.K) || STEPS)); // any address
    kit.state.k = Math.max(0, Math.min(kit.state.K, Math.round(kit.state.k) || 0));

    // Everything a drawing needs; before the answer step 0 is all there is.
    let memo = {};
    const now = (state) => {
      if (memo.state === state && memo.opened === open()) return memo;
      const problem = problemOf(state);
      const opened = open();
      const frames = train(problem, opened ? Math.max(state.k, Math.min(state.K, STEPS)) : 0, state.form);
      const k = Math.min(state.k, frames.length - 1);
      const goal = opened ? answer(problem, state.form) : null;
      const found = goal?.status === "optimal";
      memo = { state, opened, problem, frames, k, frame: frames[k], goal, found, gamma: scores(problem), top: optimal(problem) };
      return memo;
    };
    const kind = (here, i) => (t) => (t === here.top[i] ? "best" : here.found && here.goal.support[i][t] ? "rival" : "other");

    const picture = kit.row("al-board");
    const planes = document.createElement("div");
    planes.className = "al-grid-2";
    const side = document.createElement("div");
    side.className = "al-side";
    picture.append(planes, side);

    const move = (key, x, y) => {
      const [group_, i, t] = [key[0] === "x" ? "X" : "z", Number(key[1]), Number(key[2])];
      const value = structuredClone(kit.state[group_]);
      if (group_ === "X") value[i][t] = [x, y];
      else value[i] = [x, y];
      kit.set({ [group_]: value, K: STEPS, k: kit.state.k ? Math.min(kit.state.k, STEPS) : STEPS });
    };

    kit.state.X.forEach((_, i) => {
      const column = document.createElement("div");
      planes.append(column);
      kit.caption(`Sequence ${i + 1}`, column);
      plane(kit, {
        parent: column, x: [-RX, RX], y: [-RY, RY], can: open, move,
        told: (state) => { const here = now(state); return `Sequence ${i + 1}, step ${here.k}: ${here.frame.s[i].map((s, t) => `token ${t + 1} has ${percent(s)} of the attention`).join(", ")}`; },
        points: (state) => [
          ...state.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}`, link: `tok${i + 1}${t + 1}` })),
          { key: `z${i}`, x: state.z[i][0], y: state.z[i][1], label: `query of sequence ${i + 1}`, link: "query" },
        ],
        draw: (state, at) => {
          const here = now(state);
          const O = at([0, 0]);
          const along = (way, r) => at(way.map((u) => (u / (Math.hypot(...way) || 1)) * r));
          let inner = axes(at, [-RX, RX], [-RY, RY]);
          if (here.found && here.k > 0) {
            const end = along(apply(here.goal.W, state.z[i]), 2 * Math.hypot(RX, RY));
            inner += group({ "data-mark": `goal ${COLOUR[state.form]}` }, line(...O, ...end, { class: `al-stroke-${COLOUR[state.form]}`, "stroke-width": 2.4, "stroke-dasharray": state.form === "W" ? "8 6" : "2 5" }));
          }
          const sizes = n > 2 ? 22 : 30;
          inner += tokens(state.X[i], here.frame.s[i], at, { kind: kind(here, i), scores: here.gamma[i], seq: i + 1, area: sizes });
          const q = at(state.z[i]);
          const half = at(state.z[i].map((u) => 0.6 * u));
          inner += group({ "data-mark": "query" }, arrow(...O, ...q, { colour: "query" })
            + text(half[0] + 7, half[1] + 5, label(`$z_${i + 1}$`), { class: "al-label al-halo-text al-text-query" }));
          const way = apply(here.frame.W, state.z[i]);
          const size = Math.hypot(...way);
          if (size > 1e-9) {
            const e = along(way, (0.3 + 0.5 * (1 - Math.exp(-size / 4))) * RY);
            inner += group({ "data-mark": "trained" }, arrow(...O, ...e, { colour: "trained", width: 3 })
              + text(e[0] + (way[0] > 0 ? 6 : -6), e[1] - 6, label(`$Wz_${i + 1}$`), { class: "al-label al-halo-text al-text-trained", "text-anchor": way[0] > 0 ? "start" : "end" }));
          }
          return inner;
        },
      });
      attentionBars(kit, { parent: column, row: (state) => { const here = now(state); return { s: here.frame.s[i], kind: kind(here, i), seq: i + 1 }; } });
    });

    const matrix = document.createElement("div");
    side.append(matrix);
    kit.caption("The matrix $W$", matrix);
    heat(kit, { matrix: (state) => now(state).frame.W, parent: matrix, largest: 50 });
    strips(kit, {
      parent: side, now: (state) => now(state).k, steps: (state) => state.K, height: 52,
      rows: (state) => {
        const here = now(state);
        const all = here.frames.slice(0, here.k + 1);
        const rows = [
          { name: "loss above its floor", values: all.map((one) => one.gap), log: true, colour: "loss", show: here.frame.gap > 0 ? power(here.frame.gap) : "below 10⁻³⁰⁰", mark: "loss" },
          { name: "length of $W$", values: all.map((one) => one.length), colour: "trained", show: here.frame.length.toFixed(here.frame.length < 100 ? 2 : 0) },
        ];
        if (!here.opened) return rows;
        const to = here.found ? angle(here.frame.W, here.goal.W) : null;
        return [...rows, {
          name: "angle to max margin", values: all.map((one) => (here.found ? angle(one.W, here.goal.W) : null)),
          colour: COLOUR[state.form], show: to === null ? "none yet" : `${to.toFixed(1)}°`, mark: `goal ${COLOUR[state.form]} trained`,
        }];
      },
    });

    const bar = kit.controls();
    const run = player(kit, { key: "k", last: (state) => state.K, name: "Train", parent: bar });
    const aligned = (problem, form, k) => {
      const goal = answer(problem, form);
      return goal.status === "optimal" && angle(train(problem, k, form)[k].W, goal.W) < ALIGNED;
    };
    kit.button(`Run on until it is within ${ALIGNED}°`, () => {
      const { form } = kit.state;
      const problem = problemOf(kit.state);
      let K = STEPS;
      while (K < LONGEST && !aligned(problem, form, K)) K *= 2;
      kit.set({ K, k: Math.min(kit.state.k, STEPS) });
      run.play();
    }, bar).dataset.longer = "";
    const forms = kit.controls();
    kit.choice({ key: "form", label: "train", options: [["W", "W"], ["KQ", "K and Q, with W = KQᵀ"]], parent: forms });
    let seen = false; // the run that was asked about has been to its end
    const moved = (state) => state.form !== "W" || state.K !== STEPS || JSON.stringify(problemOf(state)) !== JSON.stringify(BOARD);
    kit.draws.push(() => { bar.hidden = forms.hidden = !open(); });

    if (initial.asks) {
      kit.predict({
        heading: "Before it runs, two predictions",
        after: "Two predictions",
        about: ["X", "z", "form"],
        go: "Train",
        asks: [
          {
            kind: "choice", key: "bet", options: CHOICES, right: () => "ray", say: sayChoice,
            question: "Let training go on for ever. What becomes of the four numbers in $W$?",
          },
          {
            kind: "sketch", key: "sketch", at: AT, known: [0.25], mark: "best", say: saySketch,
            question: "Token 1 is the best of sequence 1. Draw the share of the attention that it gets while $W$ is trained.",
            x: { range: [0, STEPS], label: "training step", ticks: [0, 50, 100, 150, 200] },
            y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent },
            truth: () => ({ xs: Array.from({ length: STEPS + 1 }, (_, k) => k), ys: asked().best }),
            upTo: (state) => (seen || moved(state) ? STEPS : state.k),
            notes: (state) => {
              const { low, lowest } = asked();
              const free = [0.55, 0.3, 0.75, 0.9].find((y) => !state.sketch || AT.every((k, j) => k < 80 || k > 140 || Math.abs(state.sketch[j] - y) > 0.12)) || 0.55;
              return [[86, free, "what happened"], [low + 22, 0.08, `${percent(lowest)} at step ${low}`]];
            },
          },
        ],
        start: () => { kit.set({ k: 0 }); run.play(); },
        over: (state) => { seen = seen || moved(state) || state.k >= STEPS; return seen; },
      });
    }

    return (state) => {
      const here = now(state);
      const { frame, goal, found } = here;
      const best = here.top.map((t) => t + 1).join(" and ");
      if (!here.opened) {
        kit.say(`Step 0: $W$ is 0, and every token has ${percent(frame.s[0][0])} of its sequence’s attention. The tokens that score highest are ${best}.`.replaceAll("$", ""));
        return;
      }
      const step = `After ${here.k.toLocaleString("en")} steps`;
      const facts = [];
      if (!found) facts.push(`${step} the length of W is ${frame.length.toFixed(2)}. No W ranks the best tokens (${best}) first in all sequences at once: the margin problem is infeasible, and there is no max-margin direction to go to.`);
      else {
        const size = 1 / (state.form === "KQ" ? nuclear(goal.W) : norm(goal.W));
        const count = goal.support.flat().filter(Boolean).length;
        const to = (other) => { const value = angle(frame.W, answer(here.problem, other).W); return value === null ? "not defined yet" : `${value.toFixed(1)}°`; };
        facts.push(`In the ${NORM[state.form]} norm the margin is ${size.toFixed(3)}, with ${count} support token${count === 1 ? "" : "s"}.`);
        facts.push(`${step} the angle from W to this max-margin direction is ${to(state.form)}${state.form === "KQ" ? `, and to that of the Frobenius norm ${to("W")}` : ""}.`);
        const astray = frame.s.findIndex((s, i) => s.indexOf(Math.max(...s)) !== here.top[i]);
        if (astray >= 0 && here.k >= STEPS) facts.push(`Sequence ${astray + 1} still prefers token ${frame.s[astray].indexOf(Math.max(...frame.s[astray])) + 1}, a worse one.`);
        kit.el.dataset.angle = String(angle(frame.W, goal.W));
        kit.el.dataset.margin = String(size);
      }
      kit.say(facts.join(" "));
      kit.el.dataset.status = goal.status;
      kit.el.dataset.optimal = JSON.stringify(here.top);
      kit.el.dataset.support = JSON.stringify(goal.support || []);
      kit.el.dataset.attention = JSON.stringify(frame.s);
      kit.el.dataset.gap = String(aboveFloor(here.problem, frame.W));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(state.X)}, float),
    z=np.array(${python(state.z)}, float),
    y=np.array(${python(state.y)}, float), v=np.array(${python(state.v)}, float))
${state.form === "KQ" ? `margin = svm.attention_svm(problem, norm="nuc")
start = {"K": np.array(${python(FACTORS[0])}), "Q": np.array(${python(FACTORS[1])})}
run = optim.train(models.Attention(factors=2), problem,
                  optim.NormalizedGD(${ETA.KQ}), steps=${state.k}, params=start)
W = run.params["K"] @ run.params["Q"].T` : `margin = svm.attention_svm(problem)
run = optim.train(models.Attention(start="zero"), problem,
                  optim.NormalizedGD(${ETA.W}), steps=${state.k})
W = run.params["W"]`}
print(models.Attention().attention({"W": W}, problem).round(3))
if W.any() and margin.W is not None:
    print(1 / margin.norm, margin.support.sum(), svm.correlation(W, margin.W))`,
});
