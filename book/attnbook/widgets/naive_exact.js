// The textbook gradient at saturation, beside the one that does not cancel.

import { textbookGradient } from "./kit/bias_joint.js";
import { attentionSVM, gradient } from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";
import { norm } from "./kit/vectors.js";

const PROBLEMS = {
  two: { words: "two tokens", X: [[[1, 0], [0, 0]]], z: [[1, 0]], y: [1], v: [1, 0] },
  three: {
    words: "two sequences of three",
    X: [[[-1, 0.4], [1.4, 1.5], [1, 0.3]], [[-1, 0.6], [-0.4, -1.4], [-0.3, -0.5]]],
    z: [[-0.4, 1.1], [0.9, -0.1]], y: [1, 1], v: [0.1, 1],
  },
};
const RULES = ["exact", "textbook", "textbook, epsilon in the norm"];
const DASHES = ["", "8 4", "2 4"];
const SHAPES = ["circle", "square", "triangle"];
const LENGTHS = Array.from({ length: 241 }, (_, k) => k / 2);

// The share of the gradient's direction that is wrong, and both norms, at R times the unit W_mm.
function compare(problem, unit, R) {
  const W = unit.map((row) => row.map((value) => R * value));
  const exact = gradient(problem, W, "exponential");
  const naive = textbookGradient(problem, W);
  const size = norm(exact.G);
  const log10 = (Math.log(size) + exact.logScale) / Math.LN10;
  const length = norm(naive.G);
  const unlike = length > 0
    ? norm(naive.G.map((row, a) => row.map((value, b) => value / length - exact.G[a][b] / size)))
    : NaN;
  return { log10, naive: length, unlike };
}

export default explorable({
  name: "naive_exact",
  title: "At saturation: the textbook gradient, and an exact one",
  defaults: { data: "three", R: 30, k: 120, bet: null },
  build(kit) {
    const steps = kit.list("step");
    const count = steps.length;
    const names = Object.keys(PROBLEMS);
    // (problems, rules, [miss, norm], times), the first two as one
    const part = (data, rule, which) => kit.list("runs", names.indexOf(data) * RULES.length + rule, which);
    const curves = {};
    for (const name of names) {
      const { W } = attentionSVM(PROBLEMS[name]);
      const size = norm(W);
      const unit = W.map((row) => row.map((value) => value / size));
      curves[name] = { unit, at: LENGTHS.map((R) => compare(PROBLEMS[name], unit, R)) };
    }
    kit.bet({
      question: "The loss has settled to 16 digits and the textbook gradient is rounding error. Normalized descent goes on with it. Where does W go?",
      options: ["on, in the right direction: only the direction counts", "nowhere: it stops", "on, in a wrong direction"],
      outcome: (state) => {
        const misses = RULES.map((_, r) => part(state.data, r, 0)[count - 1]);
        const right = state.data === "two" ? 1 : 2;
        return `${state.bet === right ? "Yes, on these data." : "Look again."} ${state.data === "two" ? "With two tokens it becomes exactly zero at a length of 37, and W stops there." : "One term is rounded away, and the sum of the others points elsewhere."} After ${steps[count - 1]} steps 1 - cosine is ${fixed(misses[1], 4)}, where the exact gradient has ${misses[0].toExponential(1)}.`;
      },
    });
    const row = kit.row();
    const left = kit.chart({
      label: "gradient along the max-margin direction", title: "norm of the gradient at R times the unit W_mm",
      x: { range: [0, 120], label: "length R" }, y: { range: [1e-45, 30], log: true },
    }, row);
    const right = kit.chart({
      label: "one minus cosine by step", title: "1 - cosine with W_mm, steps of 0.1",
      x: { range: [1, 1.2 * steps[count - 1]], log: true, label: "step" }, y: { range: [1e-7, 2], log: true },
    }, row);
    kit.legend([[0, "exact gradient"], [1, "textbook", true], [2, "textbook, epsilon in the norm", true], [3, "how wrong the textbook direction is", true]]);
    kit.slider({ key: "R", label: "length R", values: LENGTHS, show: (R) => fixed(R, 1) });
    kit.scrubber({ key: "k", times: steps });
    kit.choice({ key: "data", label: "data", options: names.map((name) => [name, PROBLEMS[name].words]) });
    return (state) => {
      const data = PROBLEMS[state.data] ? state.data : "three";
      const { unit, at } = curves[data];
      const here = compare(PROBLEMS[data], unit, state.R);
      const k = Math.min(state.k, count - 1);
      left.begin();
      left.line("norm", LENGTHS, at.map(({ log10 }) => 10 ** log10), { series: 0, width: 2.5 });
      left.line("naive", LENGTHS, at.map(({ naive }) => (naive > 0 ? naive : NaN)), { series: 1, dash: "8 4", width: 2.5 });
      left.line("unlike", LENGTHS, at.map(({ unlike }) => Math.max(unlike, 1e-17)), { series: 3, dash: "5 3", width: 2 });
      left.line("here", [state.R, state.R], [1e-45, 30], { series: 6, dash: "1 4", width: 1.5 });
      left.mark("n", state.R, 10 ** here.log10, { series: 0, size: 5 });
      if (here.naive > 0) left.mark("u", state.R, Math.max(here.unlike, 1e-17), { series: 3, shape: "diamond", size: 5 });
      left.end();
      right.begin();
      RULES.forEach((_, r) => {
        const line = part(data, r, 0).map((value, j) => (steps[j] > 0 ? value : NaN));
        const look = { series: r, dash: DASHES[r], width: 2.5 };
        if (state.bet !== null) right.line(`all${r}`, steps, line, { ...look, faint: true });
        right.line(`to${r}`, steps.slice(0, k + 1), line.slice(0, k + 1), look);
        if (steps[k] > 0) right.mark(`at${r}`, steps[k], line[k], { series: r, shape: SHAPES[r], size: 5 });
      });
      right.end();
      const ends = RULES.map((_, r) => [part(data, r, 0)[k], part(data, r, 1)[k]]);
      const big = here.log10 < -3 ? `10^${fixed(here.log10, 1)}` : fixed(10 ** here.log10, 4);
      const told = here.naive > 0
        ? `the textbook formula has ${here.naive.toExponential(1)}, and its direction is off by ${fixed(here.unlike, 3)}`
        : "the textbook formula has exactly 0, and no direction";
      kit.say(`Length ${fixed(state.R, 1)}: the gradient's norm is ${big}; ${told}. Step ${steps[k]}: 1 - cosine and length are ${ends.map(([miss, length], r) => `${fixed(miss, 5)} and ${fixed(length, 1)} (${RULES[r]})`).join(", ")}.`);
      Object.assign(kit.el.dataset, {
        log10: String(here.log10), naive: String(here.naive), unlike: String(here.unlike),
        ends: JSON.stringify(ends), step: String(steps[k]),
      });
    };
  },
  code: (state) => {
    const { X, z, y, v } = PROBLEMS[state.data] || PROBLEMS.three;
    return `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(X)}, float),
    z=np.array(${python(z)}, float),
    y=np.array(${python(y)}, float), v=np.array(${python(v)}, float))
goal = svm.attention_svm(problem)
model = models.Attention(loss="exponential", start="zero")
W = {"W": ${state.R} * goal.W / goal.norm}
_, grads = model.value_and_grad(W, problem)
_, unit, log_scale = model.scaled_grad(W, problem)
print(np.linalg.norm(grads["W"]), (np.log(np.linalg.norm(unit["W"])) + log_scale) / np.log(10))
start = {"W": np.array([[0.1, 0.3], [-0.2, 0.4]])}
for rule in (optim.NormalizedGD(0.1), optim.NormalizedGD(0.1, recipe="paper", eps=0.0),
             optim.NormalizedGD(0.1, recipe="paper")):
    run = optim.train(model, problem, rule, steps=5000, params=start)
    print(rule, 1 - svm.correlation(run.params["W"], goal.W), np.linalg.norm(run.params["W"]))`;
  },
});
