// Every start W of one query is a point of this plane. Its colour says on which token training ends;
// the cone in which Theorem 7 leaves no place of rest is drawn into it.

import { explorable, python } from "./kit/kit.js";
import { FIVE, endsAt, localConstants, problemOf, selected, stayRadius } from "./kit/local.js";
import { angle2, attentionAt, follow, size2, unit2 } from "./kit/prompt.js";
import { circle, group, label, line, path, percent, power, rect, tag, text } from "./kit/view.js";
import { attentionBars, axes, plane } from "./kit/views.js";

const HOLDS = 3;
const PROBLEM = problemOf(FIVE.X[0]);
const GOAL = selected(PROBLEM, [HOLDS]);
const BEST = selected(PROBLEM, [2]);
const CONE = localConstants(PROBLEM, [HOLDS], GOAL); // no place of rest in it
const STAYS = stayRadius(PROBLEM, CONE, CONE.mu / 2); // epsilon of the proof is below mu / 2
const WAY = unit2(GOAL.u);
const RANGES = { near: 12, far: 36 };
const COLUMNS = 54;
const ROWS = 34;

// The token at the end of each cell, filled a little at a time.
const maps = {};
function mapOf(scale) {
  if (!maps[scale]) maps[scale] = { ends: new Int8Array(COLUMNS * ROWS).fill(-1), done: 0 };
  return maps[scale];
}
const cell = (j, scale) => {
  const r = RANGES[scale];
  return [((j % COLUMNS) + 0.5) / COLUMNS * 2 * r - r, (Math.floor(j / COLUMNS) + 0.5) / ROWS * 1.26 * r - 0.63 * r];
};
function fill(scale, budget) {
  const map = mapOf(scale);
  const until = performance.now() + budget;
  while (map.done < map.ends.length && performance.now() < until) {
    map.ends[map.done] = endsAt(PROBLEM, ...cell(map.done, scale));
    map.done += 1;
  }
  return map;
}
// What the near map says, all of it: asked for once the answer is given.
let counted = null;
function share() {
  if (counted === null) {
    const { ends } = fill("near", Infinity);
    counted = ends.filter((t) => t === HOLDS).length / ends.length;
  }
  return counted;
}
const colour = (t) => (t === 2 ? "best" : t === HOLDS ? "trained" : "other");
const lead = (s) => s.indexOf(Math.max(...s));

export default explorable({
  name: "start_map",
  wide: true,
  title: "Where a start ends",
  answers: ["share"],
  defaults: { u: [-3.6, 4.4], scale: "near", open: 0, share: null },
  build(kit) {
    let timer = null;
    kit.stops.push(() => window.clearTimeout(timer));
    const go = () => {
      timer = null;
      const map = fill(kit.state.scale, 8);
      kit.schedule();
      if (map.done < map.ends.length) timer = window.setTimeout(go, 16);
    };
    let memo = {};
    const now = (state) => {
      if (memo.u === state.u && memo.opened === kit.opened) return memo;
      const run = follow(PROBLEM, state.u, 0.25, kit.opened ? 400 : 0);
      const s = attentionAt(PROBLEM, state.u)[0];
      memo = { u: state.u, opened: kit.opened, run, s, end: lead(attentionAt(PROBLEM, run[run.length - 1])[0]), inside: size2(state.u) >= CONE.radius && Math.cos((angle2(state.u, WAY) * Math.PI) / 180) >= 1 - CONE.mu };
      return memo;
    };
    const grounds = {};
    const ground = (scale, at, w) => {
      const map = mapOf(scale);
      const key = `${scale},${w},${map.done}`;
      if (grounds.key === key) return grounds.inner;
      const r = RANGES[scale];
      let inner = "";
      for (let b = 0; b < ROWS; b++) {
        let from = 0;
        for (let a = 1; a <= COLUMNS; a++) {
          const t = map.ends[b * COLUMNS + from];
          if (a < COLUMNS && map.ends[b * COLUMNS + a] === t) continue;
          if (t >= 0) {
            const [x0, y1] = at([(from / COLUMNS) * 2 * r - r, (b / ROWS) * 1.26 * r - 0.63 * r]);
            const [x1, y0] = at([(a / COLUMNS) * 2 * r - r, ((b + 1) / ROWS) * 1.26 * r - 0.63 * r]);
            inner += rect(x0, y0, x1 - x0, y1 - y0, { class: `al-fill-${colour(t)}` });
          }
          from = a;
        }
      }
      grounds.key = key;
      grounds.inner = group({ "fill-opacity": 0.2, "shape-rendering": "crispEdges" }, inner);
      return grounds.inner;
    };
    const board = kit.row("al-lead");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    board.append(left, side);
    kit.caption("Drag the start, $Wz$", left);
    let shown = null;
    const make = () => {
      left.querySelectorAll(".al-picture").forEach((node) => node.remove());
      const r = RANGES[kit.state.scale];
      const [x, y] = [[-r, r], [-0.63 * r, 0.63 * r]];
      plane(kit, {
        parent: left, x, y,
        told: (state) => { const here = now(state); return `The plane of starts, with one at ${here.u[0].toFixed(1)}, ${here.u[1].toFixed(1)}.${kit.opened ? ` From there training ends on token ${here.end + 1}.` : ""}`; },
        points: (state) => [{ key: "u", x: state.u[0], y: state.u[1], label: "start", link: "trained" }],
        move: (_, u, v) => kit.set({ u: [u, v] }),
        draw: (state, at, { w }) => {
          const here = now(state);
          const ray = (way, name, dx) => group({ "data-mark": "fro" }, line(...at([0, 0]), ...at(way.map((v) => 3 * r * v)), { class: "al-stroke-fro", "stroke-width": 1.8, "stroke-dasharray": "8 6" }))
            + text(at(way.map((v) => 0.56 * r * v))[0] + dx, at(way.map((v) => 0.56 * r * v))[1], name, { class: "al-small al-halo-text al-text-fro", "text-anchor": dx < 0 ? "end" : "start" });
          let inner = (kit.opened ? ground(state.scale, at, w) : "") + axes(at, x, y) + ray(WAY, w < 430 || state.scale === "far" ? "" : "direction of token 4", -8) + ray(unit2(BEST.u), "of token 3", 8);
          const half = Math.acos(1 - CONE.mu);
          const turn = (t, R) => [R * (WAY[0] * Math.cos(t) - WAY[1] * Math.sin(t)), R * (WAY[0] * Math.sin(t) + WAY[1] * Math.cos(t))];
          const arc = Array.from({ length: 9 }, (_, k) => turn(half * (k / 4 - 1), CONE.radius));
          const outer = [turn(half, 4 * r), turn(-half, 4 * r)];
          if (CONE.radius < 1.2 * r) {
            inner += tag("path", { d: [...arc, ...outer].map((p, k) => `${k ? "L" : "M"}${at(p).map((v) => v.toFixed(1)).join(",")}`).join("") + "z", class: "al-fill-bound al-stroke-bound", "fill-opacity": 0.45, "data-mark": "bound" });
            const tip = at(turn(half, CONE.radius * 1.02));
            inner += text(tip[0] - 4, tip[1] + 24, "no rest here", { class: "al-label al-halo-text al-text-bound", "text-anchor": "end" });
          }
          if (kit.opened) inner += group({ "data-mark": "trained" }, path(here.run.map(at), { class: "al-curve al-stroke-trained" }));
          const P = at(here.u);
          return inner + circle(P[0], P[1], 7, { class: "al-stroke-trained al-open-dot" })
            + text(P[0] + 11, P[1] + 5, label("start"), { class: "al-label al-halo-text al-text-trained" });
        },
      });
      shown = kit.state.scale;
    };
    // the ranges of a plane are fixed: another scale is another plane
    const before = kit.draws.length;
    make();
    kit.draws.splice(before, kit.draws.length - before, ...kit.draws.slice(before));
    let mine = kit.draws.slice(before);
    kit.draws.push((state) => {
      if (shown === state.scale) return;
      kit.draws = kit.draws.filter((draw) => !mine.includes(draw));
      const length = kit.draws.length;
      make();
      mine = kit.draws.slice(length);
      mine.forEach((draw) => draw(state));
    });
    const bars = document.createElement("div");
    side.append(bars);
    kit.caption("Attention at the start", bars);
    attentionBars(kit, { parent: bars, row: (state) => ({ s: now(state).s, kind: (t) => (t === 2 ? "best" : GOAL.support[0][t] ? "rival" : "other"), seq: 1 }) });
    const key = document.createElement("div");
    side.append(key);
    key.innerHTML = [["best", "ends on token 3, the best"], ["trained", "ends on token 4, a worse one"], ["bound", "the cone of Theorem 7: no place of rest"]].map(([name, words]) =>
      `<p class="al-keyline"><span class="al-keyswatch al-keyswatch-${name}"></span>${words}</p>`).join("");
    kit.choice({ key: "scale", label: "show lengths", options: [["near", "up to 12"], ["far", "up to 36"]] });
    kit.predict({
      heading: "Before the map is drawn",
      go: "Draw the map",
      asks: [{
        kind: "number", key: "share", min: 0, max: 60, step: 1, show: (x) => `${Math.round(x)} %`, truth: () => 100 * share(),
        question: "Training may begin anywhere in this picture (lengths up to 12). What share of the starts ends on token 4, the second worst?",
        say: (mine) => {
          const is = Math.round(100 * share());
          const tail = `${is} % of the starts in this picture end on token 4. Theorem 7 vouches for none of them: that training stays in its cone is proven from a length of ${power(STAYS)} on.`;
          if (mine === null) return tail;
          return `${Math.abs(mine - is) <= 4 ? "Very near." : mine < is ? "More than that." : "Fewer, but still many."} ${tail}`;
        },
      }],
    });
    kit.draws.push((state) => { if (kit.opened && !timer && mapOf(state.scale).done < COLUMNS * ROWS) timer = window.setTimeout(go, 0); });
    return (state) => {
      const here = now(state);
      key.hidden = !kit.opened;
      if (!kit.opened) {
        kit.say(`The start has length ${size2(here.u).toFixed(1)} and gives token 4 ${percent(here.s[HOLDS])} of the attention.`);
        return;
      }
      kit.say(`The start has length ${size2(here.u).toFixed(1)}, is ${angle2(here.u, WAY).toFixed(0)}° from the direction of token 4, and gives it ${percent(here.s[HOLDS])} of the attention. Training ends on token ${here.end + 1}. The start is ${here.inside ? "inside" : "outside"} the cone without a place of rest (${((Math.acos(1 - CONE.mu) * 180) / Math.PI).toFixed(1)}° wide to each side, from length ${CONE.radius.toFixed(1)} on). That training never leaves it is proven from length ${power(STAYS)} on.`);
      Object.assign(kit.el.dataset, { end: String(here.end), inside: String(here.inside), filled: String(mapOf(state.scale).done) });
    };
  },
  code: (state) => `import numpy as np
from attnbook import theory
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=${python(FIVE.X)},
    z=${python(FIVE.z)}, y=${python(FIVE.y)}, v=${python(FIVE.v)})
margin = svm.attention_svm(problem, [${HOLDS}])
print(theory.svm.local_constants(problem, margin.W, [${HOLDS}]))
start = np.array([[${state.u[0]}, 0.0], [${state.u[1]}, 0.0]])
run = optim.train(models.Attention(), problem, optim.NormalizedGD(0.25), 400,
                  params={"W": start})
print(models.Attention().attention(run.params, problem).round(3))`,
});
