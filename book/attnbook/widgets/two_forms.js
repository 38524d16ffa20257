// One attention layer written in two ways: W itself, and W = K Q'. Same data, same rule, same
// tokens win; the reader says how far apart the two matrices point.

import { optimal } from "./kit/core.js";
import { explorable, python } from "./kit/kit.js";
import { ETA, FACTORS, angle, answer, problemOf, train } from "./kit/tokens.js";
import { apply, norm, unit } from "./kit/vectors.js";
import { arrow, group, label, percent, text } from "./kit/view.js";
import { attentionBars, axes, heat, plane, player, strips, tokens } from "./kit/views.js";

const STEPS = 240;
const START = {
  X: [[[-1, 0.4], [1.4, 1.5], [1, 0.3]], [[-1, 0.6], [-0.4, -1.4], [-0.3, -0.5]]],
  z: [[-0.4, 1.1], [0.9, -0.1]],
  y: [1, 1],
  v: [0.1, 1],
};
const RANGE = { x: [-2, 2], y: [-1.65, 1.75] };
const degrees = (value) => `${Math.round(value)}°`;

// The two runs that were asked about, at their end.
function asked() {
  const [W, V] = ["W", "KQ"].map((form) => train(START, STEPS, form)[STEPS].W);
  return { between: angle(W, V), bound: angle(answer(START).W, answer(START, "KQ").W) };
}

function say(mine) {
  const { between, bound } = asked();
  const truth = `After ${STEPS} steps they are ${degrees(between)} apart, and they stay apart if each reaches the max-margin direction of its norm: these two are ${degrees(bound)} apart.`;
  if (mine === null) return truth;
  const off = Math.abs(mine - between);
  if (mine < 10) return `Nearly the same, you said, as it should be for two ways to write one map. ${truth} Training still tells them from each other.`;
  return `${off < 8 ? "Close." : mine > between ? "Not so far." : "Farther."} ${truth}`;
}

export default explorable({
  name: "two_forms",
  wide: true,
  title: "The same map, written in two ways",
  answers: ["guess"],
  defaults: { ...START, k: 0, open: 0, guess: null },
  build(kit) {
    kit.state.k = Math.max(0, Math.min(STEPS, Math.round(kit.state.k) || 0)); // any address
    let memo = {};
    const now = (state) => {
      if (memo.state === state && memo.opened === kit.opened) return memo;
      const problem = problemOf(state);
      const runs = ["W", "KQ"].map((form) => train(problem, kit.opened ? STEPS : 0, form));
      const k = Math.min(state.k, runs[0].length - 1);
      memo = { state, opened: kit.opened, problem, runs, k, frames: runs.map((run) => run[k]), top: optimal(problem) };
      return memo;
    };
    const kind = (here, i) => (t) => (t === here.top[i] ? "best" : "other");
    const picture = kit.row("al-board");
    const planes = document.createElement("div");
    planes.className = "al-grid-2";
    const side = document.createElement("div");
    side.className = "al-side";
    picture.append(planes, side);
    kit.state.X.forEach((_, i) => {
      const column = document.createElement("div");
      planes.append(column);
      kit.caption(`Sequence ${i + 1}`, column);
      plane(kit, {
        ...RANGE, parent: column, can: () => kit.opened,
        told: (state) => { const { frames, k } = now(state); return `Sequence ${i + 1}, step ${k}: ${frames.map(({ s }, f) => `${f ? "K and Q" : "one matrix"} ${s[i].map(percent).join(", ")}`).join("; ")}`; },
        points: (state) => state.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}`, link: `tok${i + 1}${t + 1}` })),
        move: (key, x, y) => {
          const X = structuredClone(kit.state.X);
          X[Number(key[1])][Number(key[2])] = [x, y];
          kit.set({ X, k: kit.state.k || STEPS });
        },
        draw: (state, at) => {
          const here = now(state);
          const ways = here.frames.map(({ W }, f) => {
            const way = apply(W, state.z[i]);
            const size = Math.hypot(...way);
            if (!here.opened || size < 1e-9) return "";
            const e = at(way.map((u) => ((0.5 + 0.9 * (1 - Math.exp(-size / 4))) * u) / size));
            return group({ "data-mark": f ? "nuc" : "fro" }, arrow(...at([0, 0]), ...e, { colour: f ? "nuc" : "fro", width: 3 })
              + text(e[0] + (way[0] > 0 ? 6 : -6), e[1] + (way[1] > 0 ? -5 : 14), label(f ? "$KQ^\\top z$" : "$Wz$"), { class: `al-label al-halo-text al-text-${f ? "nuc" : "fro"}`, "text-anchor": way[0] > 0 ? "start" : "end" }));
          }).join("");
          const q = at(state.z[i]);
          return axes(at, RANGE.x, RANGE.y) + group({ "data-mark": "query" }, arrow(...at([0, 0]), ...q, { colour: "query", width: 1.8 })
            + text(q[0] + 7, q[1] + 4, label(`$z_${i + 1}$`), { class: "al-small al-halo-text al-text-query" }))
            + tokens(state.X[i], here.frames[0].s[i], at, { kind: kind(here, i), area: 24, seq: i + 1 }) + ways;
        },
      });
      ["one matrix", "K and Q"].forEach((name, f) => {
        const line = document.createElement("p");
        line.className = `al-small al-text-${f ? "nuc" : "fro"}`;
        line.textContent = `attention, ${name}`;
        column.append(line);
        attentionBars(kit, { parent: column, row: (state) => { const here = now(state); return { s: here.frames[f].s[i], kind: kind(here, i), seq: i + 1 }; } });
      });
    });
    const maps = document.createElement("div");
    maps.className = "al-pair-heat";
    side.append(maps);
    ["$W$", "$KQ^\\top$"].forEach((name, f) => {
      const cell = document.createElement("div");
      maps.append(cell);
      kit.caption(name, cell);
      heat(kit, { parent: cell, largest: 48, title: f ? "K Q, to length 1" : "W, to length 1", mark: f ? "nuc" : "fro", matrix: (state) => { const { W } = now(state).frames[f]; return now(state).opened ? unit(W) : W.map((row) => row.map(() => 0)); } });
    });
    strips(kit, {
      parent: side, now: (state) => now(state).k, steps: () => STEPS, height: 64,
      rows: (state) => {
        const here = now(state);
        if (!here.opened) return [{ name: "attention on the best tokens", values: [], colour: "best", show: percent(1 / state.X[0].length) }];
        const worst = (frame) => Math.min(...frame.s.map((s, i) => s[here.top[i]]));
        const upTo = here.runs.map((run) => run.slice(0, here.k + 1));
        const to = angle(here.frames[0].W, here.frames[1].W);
        return [
          { name: "best tokens, one matrix", values: upTo[0].map(worst), range: [0, 1], colour: "fro", show: percent(worst(here.frames[0])) },
          { name: "best tokens, K and Q", values: upTo[1].map(worst), range: [0, 1], colour: "nuc", show: percent(worst(here.frames[1])) },
          { name: "angle between the two", values: upTo[0].map((one, k) => angle(one.W, upTo[1][k].W)), range: [0, 90], colour: "trained", show: to === null ? "none yet" : `${to.toFixed(0)}°` },
        ];
      },
    });
    const bar = kit.controls();
    const run = player(kit, { key: "k", last: () => STEPS, name: "Train", parent: bar });
    kit.draws.push(() => { bar.hidden = !kit.opened; });
    let seen = false;
    kit.predict({
      heading: "Before they run", after: "Your prediction", go: "Train both", about: ["X", "z"],
      asks: [{
        kind: "number", key: "guess", min: 0, max: 90, step: 1, show: degrees, say, truth: () => asked().between,
        question: `Both start (almost) at 0, see the same two sequences and take ${STEPS} normalized steps. Both end with all their attention on the same tokens. At which angle to each other do the matrices $W$ and $KQ^\\top$ point then?`,
      }],
      start: () => { kit.set({ k: 0 }); run.play(); },
      over: (state) => { seen = seen || state.k >= STEPS; return seen; },
    });
    return (state) => {
      const here = now(state);
      if (!here.opened) { kit.say(`Step 0. The best tokens are ${here.top.map((t) => t + 1).join(" and ")}.`); return; }
      const goals = ["W", "KQ"].map((form) => answer(here.problem, form));
      const between = angle(here.frames[0].W, here.frames[1].W);
      if (goals.some(({ status }) => status !== "optimal")) {
        kit.say(`Step ${here.k}. No W ranks both best tokens first.`);
        Object.assign(kit.el.dataset, { status: "infeasible" });
        return;
      }
      const to = here.frames.map(({ W }, f) => angle(W, goals[f].W));
      kit.say(`Step ${here.k}. ${between === null ? "W is still 0." : `The matrices are ${between.toFixed(1)}° apart. W is ${to[0].toFixed(1)}° from the max-margin direction of the Frobenius norm, K Q ${to[1].toFixed(1)}° from that of the nuclear norm; these two are ${angle(goals[0].W, goals[1].W).toFixed(1)}° apart.`}`);
      Object.assign(kit.el.dataset, { status: "optimal", between: String(between), to: JSON.stringify(to), lengths: JSON.stringify(here.frames.map(({ W }) => norm(W))) });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(state.X)}, float), z=np.array(${python(state.z)}, float),
    y=np.array(${python(state.y)}, float), v=np.array(${python(state.v)}, float))
start = {"K": np.array(${python(FACTORS[0])}), "Q": np.array(${python(FACTORS[1])})}
one = optim.train(models.Attention(start="zero"), problem,
                  optim.NormalizedGD(${ETA.W}), steps=${state.k})
two = optim.train(models.Attention(factors=2), problem,
                  optim.NormalizedGD(${ETA.KQ}), steps=${state.k}, params=start)
W, V = one.params["W"], two.params["K"] @ two.params["Q"].T
if W.any():
    print(np.degrees(np.arccos(svm.correlation(W, V))))`,
});
