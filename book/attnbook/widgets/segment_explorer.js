// Proposition 4: along a short segment of parameter space the loss stays within 4/3 of the
// higher end; along a long one between two trained networks it need not.

import { explorable, fixed } from "./kit/kit.js";
import { curvatureBound, manyHeadsLoss } from "./kit/onehead.js";

const GRID = [...Array.from({ length: 60 }, (_, k) => 10 ** (-3 + (k * 2) / 60)), ...Array.from({ length: 91 }, (_, k) => 0.1 + k / 100)];
const SHARES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const LIMIT = 4 / 3;

export default explorable({
  name: "segment_explorer",
  title: "Segment explorer: walk from one trained network to another",
  defaults: { heads: 4, to: "other", share: 1, at: 0.5, bet: null },
  build(kit) {
    const sizes = Array.from(kit.data("heads").values);
    const [n, T, d] = kit.data("X").shape;
    const flat = Array.from(kit.data("X").values);
    const X = Array.from({ length: n }, (_, i) => Array.from({ length: T }, (_, t) => flat.slice((i * T + t) * d, (i * T + t + 1) * d)));
    const y = Array.from(kit.data("y").values);
    // points: start of the first run, then the ends of three runs
    const point = (H, k) => ({
      U: Array.from(kit.data(`U${H}`).values.slice(k * H * T * d, (k + 1) * H * T * d)),
      W: Array.from(kit.data(`W${H}`).values.slice(k * H * d * d, (k + 1) * H * d * d)),
    });
    const turned = (values, size) => [...values.slice(-size), ...values.slice(0, -size)];
    const goal = (H, to) => {
      if (to === "swap") {
        const { U, W } = point(H, 1);
        return { U: turned(U, T * d), W: turned(W, d * d) };
      }
      return point(H, { start: 0, other: 2, third: 3 }[to]);
    };
    const mix = (a, b, s) => a.map((x, k) => x + s * (b[k] - x));
    const longest = ({ U, W }, H) => Math.max(...Array.from({ length: H }, (_, h) =>
      Math.hypot(...U.slice(h * T * d, (h + 1) * T * d), ...W.slice(h * d * d, (h + 1) * d * d))));
    const known = {};
    const segment = (H, to) => {
      const key = `${H} ${to}`;
      if (known[key]) return known[key];
      const [from, end] = [point(H, 1), goal(H, to)];
      const on = (s) => ({ U: mix(from.U, end.U, s), W: mix(from.W, end.W, s) });
      const loss = (s) => { const p = on(s); return manyHeadsLoss(X, y, p.U, p.W); };
      const values = GRID.map(loss);
      const first = loss(0);
      let top = first;
      const ratios = values.map((value) => { top = Math.max(top, value); return top / Math.max(first, value); });
      const length = Math.hypot(...from.U.map((x, k) => x - end.U[k]), ...from.W.map((x, k) => x - end.W[k]));
      // the longest head of both ends; beta_3 grows with it
      const beta = (s) => curvatureBound(Math.max(longest(from, H), longest(on(s), H)), T, d, 1);
      const used = (s) => (2 * beta(s) * (s * length) ** 2) / Math.sqrt(H);
      let [low, high] = [0, 1]; // the longest share that Proposition 4 admits
      for (let k = 0; k < 50; k++) {
        const middle = (low + high) / 2;
        if (used(middle) <= 1) low = middle;
        else high = middle;
      }
      const broken = ratios.findIndex((ratio) => ratio > LIMIT);
      known[key] = { loss, values, first, ratios, length, used, admitted: low, broken: broken < 0 ? null : GRID[broken] };
      return known[key];
    };
    kit.bet({
      question: "Two trained networks, both with a small loss. Is every network on the straight line between them as good?",
      options: ["yes, roughly", "no: there is a hill between them", "a hill with few heads, none with 64"],
      outcome: (state) => {
        const told = sizes.map((H) => `${fixed(segment(H, state.to).ratios[GRID.length - 1], 1)} with ${H}`);
        return `${state.bet === 1 ? "Yes." : "Look again."} Between two trained networks there is a hill, with 64 heads as with 2. Highest loss of the whole line over the higher end: ${told.join(", ")} heads${state.to === "start" ? " (you walk to an untrained start now)" : ""}. Proposition 4 promises something for short segments only.`;
      },
    });
    const row = kit.row();
    const walk = kit.chart({
      label: "loss along the segment", title: "loss along the segment shown",
      x: { range: [0, 1], label: "how far along it" }, y: { range: [0, 1], label: "loss" }, height: 280,
    }, row);
    const reach = kit.chart({
      label: "highest loss over the higher end, by length", title: "highest loss over the higher end, by length",
      x: { range: [0.01, 60], log: true, label: "length of the segment" }, y: { range: [0.8, 1000], log: true, label: "ratio" }, height: 280,
    }, row);
    kit.legend([[0, "loss; its maximum over the higher end"], [1, "4/3 of the higher end", true], [2, "Proposition 4 holds up to here (first chart: shaded)", true]]);
    kit.slider({ key: "at", label: "along the segment", min: 0, max: 1, step: 0.01 });
    const controls = kit.controls();
    kit.slider({ key: "share", label: "share of the whole line", values: SHARES, show: String, parent: controls });
    const choices = kit.controls();
    kit.choice({ key: "heads", label: "heads", options: sizes.map((H) => [H, String(H)]), parent: choices });
    kit.choice({
      key: "to", label: "walk to", parent: choices,
      options: [["other", "a second start's end"], ["third", "a third's"], ["swap", "itself, heads renumbered"], ["start", "its own start"]],
    });
    return (state) => {
      const found = segment(state.heads, state.to);
      const { share } = state;
      const steps = Array.from({ length: 101 }, (_, k) => k / 100);
      const losses = steps.map((s) => found.loss(s * share));
      const higher = Math.max(losses[0], losses[100]);
      const highest = Math.max(...losses);
      const here = found.loss(state.at * share);
      const top = 1.12 * Math.max(highest, LIMIT * higher);
      walk.begin();
      walk.range({ x: [0, 1], y: [0, top] });
      const seen = Math.min(1, found.admitted / share);
      walk.rect("seen", [0, 0], [seen, top], { series: 2, strength: 0.18 });
      walk.line("limit", [0, 1], [LIMIT * higher, LIMIT * higher], { series: 1, dash: "7 4" });
      walk.line("loss", steps, losses, { series: 0, width: 3 });
      walk.mark("here", state.at, here, { series: 0, shape: "square", size: 6 });
      walk.end();
      reach.begin();
      reach.line("ratio", GRID.map((s) => s * found.length), found.ratios, { series: 0, width: 2.5 });
      reach.line("limit", [0.01, 60], [LIMIT, LIMIT], { series: 1, dash: "7 4" });
      reach.line("admitted", [found.admitted * found.length, found.admitted * found.length], [0.8, 1000], { series: 2, dash: "2 4", width: 2.5 });
      reach.mark("now", share * found.length, highest / higher, { series: 0, shape: "diamond", size: 6 });
      reach.end();
      const inside = found.used(share) <= 1;
      const words = found.broken === null
        ? "On the whole line the factor 4/3 is not exceeded."
        : `The factor 4/3 is first exceeded at length ${fixed(found.broken * found.length)}.`;
      kit.say(`Length ${fixed(share * found.length)} of ${fixed(found.length)}; here the loss is ${fixed(here, 4)}. Ends ${fixed(losses[0], 4)} and ${fixed(losses[100], 4)}, highest ${fixed(highest, 4)}: ${fixed(highest / higher, 3)} times the higher end. Proposition 4 admits lengths up to ${fixed(found.admitted * found.length, 3)}${inside ? ", so it promises at most 1.333" : ", so it promises nothing here"}. ${words}`);
      Object.assign(kit.el.dataset, {
        here: String(here), ends: JSON.stringify([losses[0], losses[100]]), ratio: String(highest / higher),
        length: String(share * found.length), used: String(found.used(share)), admitted: String(found.admitted * found.length),
      });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models
from attnbook import theory, widgets

H, share, place = ${state.heads}, ${state.share}, ${state.at}
problem, points = widgets.single_head.trained(H)  # a start, and the ends of three runs
ends = [{k: v[i] for k, v in points.items()} for i in range(4)]
first, last = ends[1], ${state.to === "swap" ? "{k: np.roll(v, 1, axis=0) for k, v in ends[1].items()}" : `ends[${{ start: 0, other: 2, third: 3 }[state.to]}]`}
last = {k: first[k] + share * (last[k] - first[k]) for k in first}
model = models.MultiHead(heads=H)

def loss(s):
    point = {k: (1 - s) * first[k] + s * last[k] for k in first}
    return float(model.value_and_grad(point, problem)[0])

losses = [loss(s) for s in np.linspace(0, 1, 101)]
print("here", loss(place), "highest over the higher end", max(losses) / max(losses[0], losses[-1]))
size = max(np.sqrt(sum((p[k] ** 2).sum((-1, -2)) for k in p)).max() for p in (first, last))
length = np.sqrt(sum(((first[k] - last[k]) ** 2).sum() for k in first))
beta3 = theory.multihead.beta3(size, T=problem.T, d=problem.d, R=1.0)
print("share of the admissible length's square", theory.multihead.short_enough(length, beta3, H=H))`,
});
