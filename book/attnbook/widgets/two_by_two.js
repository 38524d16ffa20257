// Two tokens: gradient descent's angle closes like 1/(log t)^2, normalized descent's like 1/t^2.

import { twoTokenGd, twoTokenMiss, twoTokenRun } from "./kit/bias_rates.js";
import { explorable, fixed } from "./kit/kit.js";

const TIMES = Array.from({ length: 61 }, (_, k) => Math.round(10 ** (k / 12))); // 1 to 1e5
const STOPS = TIMES.filter((t, k) => t !== TIMES[k - 1]);
const POWERS = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2];

export default explorable({
  name: "two_by_two",
  title: "Two tokens, one moving entry: the angle in closed form",
  defaults: { t: 28, start: [0.1, 0.54], gd: 1, ngd: 0.1, view: 0, bet: null },
  build(kit) {
    kit.bet({
      question: "Gradient descent and normalized descent run for 100 000 steps. How much closer to the max-margin direction is the normalized one?",
      options: ["about as close", "some ten times closer", "more than a hundred thousand times"],
      outcome: (state) => `${state.bet === 2 ? "Yes." : "Look again."} From the first start, with steps of 1 and 0.1, the miss is 1.3e-3 against 1.5e-9: both push in the same direction, and only the length of the pushes differs.`,
    });
    const row = kit.row();
    const plane = kit.chart({
      label: "the moving entry against the part that stays", title: "drag the start: only W11 moves, the angle closes",
      x: { range: [-1, 13], label: "W11, along the max-margin W" },
      y: { range: [0, 2.4], label: "the rest" },
    }, row);
    const axis = { range: [1, 1e5], log: true, label: "steps t" };
    const growth = kit.chart({
      label: "W11 by step", title: "W11: log t against t",
      x: axis, y: { range: [0.01, 1e5], log: true },
    }, row);
    const angle = kit.chart({
      label: "one minus cosine by step", title: "1 - cosine with the max-margin W",
      x: axis, y: { range: [1e-12, 2], log: true, ticks: [1, 1e-3, 1e-6, 1e-9, 1e-12] },
    }, row);
    const handle = plane.handle("start", {
      series: 3, shape: "diamond", size: 8, label: "start",
      move: (x, y) => kit.set({ start: [Math.max(-1, Math.min(3, x)), Math.max(0.02, y)] }),
      tell: () => `W11 ${fixed(kit.state.start[0])}, the rest ${fixed(kit.state.start[1])}`,
    });
    kit.legend([[0, "gradient descent, step by step"], [2, "its closed form", true], [1, "normalized descent, exact", true], [3, "start"]]);
    kit.scrubber({ key: "t", label: "steps", times: STOPS });
    kit.choice({ key: "view", label: "second chart", options: [[0, "1 - cosine"], [1, "growth of W11"]] });
    const sizes = kit.controls();
    kit.slider({ key: "gd", label: "plain step", values: POWERS, parent: sizes });
    kit.slider({ key: "ngd", label: "normalized step", values: POWERS, parent: sizes });
    return (state) => {
      const [w0, rest] = state.start;
      const off = rest * rest;
      const k = Math.min(state.t, STOPS.length - 1);
      const t = STOPS[k];
      const slow = twoTokenRun(w0, state.gd, STOPS);
      const formula = STOPS.map((x) => twoTokenGd(x, w0, state.gd));
      const fast = STOPS.map((x) => w0 + state.ngd * x);
      [angle, growth].forEach((chart, v) => { chart.root.parentNode.style.display = v === state.view ? "" : "none"; });
      const positive = (w) => (w > 0 ? w : NaN);
      plane.begin();
      plane.line("axis", [-1, 13], [0, 0], { series: 4, width: 1.5 });
      plane.line("path", [w0, Math.min(13, Math.max(slow[k], fast[k]))], [rest, rest], { series: 4, dash: "3 4", width: 1.5 });
      [[slow[k], 0, 0], [fast[k], 1, 1]].forEach(([w, series, dashed]) => {
        const shrink = w > 12.6 ? 12.6 / w : 1; // beyond the border: the same direction
        plane.arrow(`arrow${series}`, [0, 0], [w * shrink, rest * shrink], { series, dash: dashed ? "6 4" : "" });
      });
      handle.put(w0, rest);
      plane.end();
      growth.begin();
      growth.line("ngd", STOPS, fast.map(positive), { series: 1, dash: "6 4", width: 2.5 });
      growth.line("closed", STOPS, formula.map(positive), { series: 2, dash: "2 4", width: 4 });
      growth.line("gd", STOPS, slow.map(positive), { series: 0, width: 2 });
      growth.mark("atgd", t, Math.max(slow[k], 0.01), { series: 0 });
      growth.mark("atngd", t, Math.max(fast[k], 0.01), { series: 1, shape: "square" });
      growth.end();
      const misses = [slow, formula, fast].map((ws) => ws.map((w) => twoTokenMiss(w, off)));
      angle.begin();
      angle.line("ngd", STOPS, misses[2], { series: 1, dash: "6 4", width: 2.5 });
      angle.line("closed", STOPS, misses[1], { series: 2, dash: "2 4", width: 4 });
      angle.line("gd", STOPS, misses[0], { series: 0, width: 2 });
      angle.mark("atgd", t, misses[0][k], { series: 0 });
      angle.mark("atngd", t, misses[2][k], { series: 1, shape: "square" });
      angle.end();
      const late = Math.log10(Math.E / state.gd) + fast[k] / Math.LN10; // of e^w = step t / e
      const wait = late < 5 ? `${STOPS[slow.findIndex((w, j) => w >= fast[k] || j === STOPS.length - 1)]}` : `10^${fixed(late, 0)}`;
      const told = slow[k] >= fast[k] ? "So early gradient descent is ahead." : `To get as far, gradient descent would need about ${wait} steps.`;
      kit.say(`After ${t} steps from W11 = ${fixed(w0)}: gradient descent has W11 = ${fixed(slow[k], 3)} (closed form ${fixed(formula[k], 3)}) and misses by ${misses[0][k].toExponential(2)}; normalized descent has ${fixed(fast[k], 2)} and misses by ${misses[2][k].toExponential(2)}. ${told}`);
      Object.assign(kit.el.dataset, {
        t: String(t), gd: String(slow[k]), closed: String(formula[k]), ngd: String(fast[k]),
        missGd: String(misses[0][k]), missNgd: String(misses[2][k]),
      });
    };
  },
  code: (state) => {
    const [w0, rest] = state.start.map((x) => Number(x.toPrecision(6)));
    const t = STOPS[Math.min(state.t, STOPS.length - 1)];
    const wide = w0 > 0
      ? "theory.bias.two_token_miss([w, ngd], rest**2)"
      : "[1 - x / np.hypot(x, rest) for x in (w, ngd)]";
    return `import numpy as np
from attnlab import models, optim, problems
from attnbook import theory

w0, rest, t = ${w0}, ${rest}, ${t}
model = models.Attention(loss="exponential")
start = {"W": np.array([[w0, rest], [0.0, 0.0]])}
run = optim.train(model, problems.two_token(), optim.GD(${state.gd}), steps=t, params=start)
w, ngd = run.params["W"][0, 0], w0 + ${state.ngd} * t
print("W11:", w, "closed form", theory.bias.two_token_gd(t, start=w0, step=${state.gd}))
print("1 - cosine:", ${wide})`;
  },
});
