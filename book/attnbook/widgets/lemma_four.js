// Lemma 4 under the hand: the cosine of the negative gradient with W_mm, and the bound below it.

import { attentionSVM, best, gradient, scores } from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";
import { nearest } from "./kit/search.js";
import { cosine, norm } from "./kit/vectors.js";

const LENGTHS = Array.from({ length: 61 }, (_, k) => 10 ** (-1 + k / 20)); // .1 to 100
const SIZES = [0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100];
const SHAPES = ["circle", "square", "triangle"];
const LEVEL_GAP = 0.1;
const PLANE = { height: 256, bare: true, x: { range: [-2, 2] }, y: { range: [-1.4, 1.4] } }; // one unit is as long both ways

// The same random matrices for everybody: entries uniform, lengths log-uniform from .1 to 100.
let seed = 12345;
const chance = () => {
  seed = (1103515245 * seed + 12345) % 2147483648;
  return seed / 2147483648;
};
const CLOUD = Array.from({ length: 150 }, () => {
  const D = [[2 * chance() - 1, 2 * chance() - 1], [2 * chance() - 1, 2 * chance() - 1]];
  const size = norm(D);
  const length = 10 ** (3 * chance() - 1);
  return { length, W: D.map((row) => row.map((x) => (x * length) / size)) };
});

const problemOf = (state) => ({ X: state.X, z: state.X.map((x) => x[0]), y: state.X.map(() => 1), v: [0, 1] });
const scaled = (D, s) => D.map((row) => row.map((x) => s * x));

function meter(problem, goal, W) {
  const { G } = gradient(problem, W, "exponential");
  return norm(G) > 0 ? -cosine(G, goal) : NaN;
}

export default explorable({
  name: "lemma_four",
  title: "Lemma 4 under the hand: can you make the gradient turn its back on max margin?",
  defaults: {
    X: [[[-1, -0.2], [0.4, 1.1], [0.9, -0.2]], [[0.8, 0.9], [-0.9, -0.5], [0.3, -0.5]]],
    D: [[1, -0.5], [0.4, 0.8]], s: 1, level: "yes", bet: null,
  },
  build(kit) {
    kit.bet({
      question: "Attention is a mess when W is bad. Is there a W at which the step leads away from the max-margin direction?",
      options: ["yes, far out there is", "no: never, at any W"],
      outcome: (state) => {
        const { spread, low, bound } = measure(state);
        if (spread < 1e-9) return `${state.bet === 1 ? "Yes." : "Look again."} As long as the two worse tokens score the same (Assumption 2), no cosine falls below ${fixed(bound, 3)}. The lowest of 150 random W here: ${fixed(low, 3)}.`;
        return `Assumption 2 is off now (the worse tokens' scores differ by up to ${fixed(spread)}), so nothing is promised. The lowest of 150 random W here: ${fixed(low, 3)}.`;
      },
    });
    const row = kit.row();
    const planes = kit.state.X.map((_, i) => kit.chart({
      ...PLANE, label: `sequence ${i + 1}`, title: `sequence ${i + 1}: higher scores more`,
    }, row));
    const wide = kit.row();
    const matrix = kit.chart({
      ...PLANE, label: "W", title: "W: where it sends e1 and e2",
    }, wide);
    const chart = kit.chart({
      label: "cosine by the length of W", title: "cosine of -gradient with W_mm", height: 256,
      x: { range: [0.1, 100], log: true, label: "length of W" }, y: { range: [-1, 1.02] },
    }, wide);
    const columns = [0, 1].map((j) => matrix.handle(`d${j}`, {
      series: 3, shape: j ? "square" : "diamond", label: `W e${j + 1}`,
      move: (x, y) => {
        const D = kit.state.D.map((line) => line.slice());
        [D[0][j], D[1][j]] = [x, y];
        kit.set({ D });
      },
    }));
    const handles = planes.map((plane, i) => [0, 1, 2].map((t) => plane.handle(`x${i}${t}`, {
      series: 6, shape: SHAPES[t], label: `sequence ${i + 1}, token ${t + 1}${t ? "" : ", the query"}`,
      move: (x, y) => kit.set({ X: moved(kit.state, i, t, x, y) }),
    })));
    kit.legend([[0, "optimal token; this W"], [6, "other tokens"], [1, "along this direction of W"], [4, "150 random W"], [2, "the bound of Lemma 4", true], [3, "W; query"]]);
    const controls = kit.controls();
    kit.slider({ key: "s", label: "W times", values: SIZES, show: (x) => fixed(x, 1), parent: controls });
    kit.choice({ key: "level", label: "worse tokens at one height", options: [["yes", "yes (Assumption 2)"], ["no", "free"]], parent: controls });
    kit.button("Hunt for the lowest", () => kit.set(hunt(kit.state)), controls);
    return (state) => {
      const { problem, found, goal, top, bound, here, W, cloud, low, spread } = measure(state);
      planes.forEach((plane, i) => {
        plane.begin();
        const level = state.X[i][(top[i] + 1) % 3][1];
        if (spread < 1e-9) plane.line("level", [-2, 2], [level, level], { series: 6, dash: "2 5", width: 1 });
        plane.arrow("z", [0, 0], state.X[i][0], { series: 3, width: 1.5 });
        state.X[i].forEach((x, t) => handles[i][t].put(...x, { look: t === top[i] ? 0 : 6 }));
        plane.end();
      });
      matrix.begin();
      [0, 1].forEach((j) => {
        const end = [state.D[0][j], state.D[1][j]];
        matrix.arrow(`c${j}`, [0, 0], end, { series: 3, width: 2, dash: j ? "5 4" : "" });
        matrix.text(`n${j}`, ...end, `e${j + 1}`, { dx: 13, dy: 4 });
        columns[j].put(...end);
      });
      matrix.end();
      chart.begin();
      if (found) {
        const along = LENGTHS.map((length) => meter(problem, goal, scaled(W, length / (norm(W) || 1))));
        CLOUD.forEach((one, k) => chart.mark(`c${k}`, one.length, cloud[k], { series: 4, size: 2 }));
        chart.line("along", LENGTHS, along, { series: 1, width: 2 });
        chart.line("bound", [0.1, 100], [bound, bound], { series: 2, dash: "7 5", width: 2.5 });
        chart.mark("here", norm(W), here, { series: 0, size: 7 });
      }
      chart.end();
      const promise = spread < 1e-9
        ? `Lemma 4: at least ${fixed(bound, 4)}.`
        : `Scores of the worse tokens differ by ${fixed(spread)}: no promise (the bound would be ${fixed(bound, 4)}).`;
      kit.say(found
        ? `|W| = ${fixed(norm(W), 1)}: cosine ${fixed(here, 4)}. ${promise} Lowest of 150 random W: ${fixed(low, 4)}.`
        : `No W separates the optimal tokens now: there is no max-margin direction. |W| = ${fixed(norm(W), 1)}.`);
      kit.el.dataset.cosine = String(here);
      kit.el.dataset.bound = String(bound);
      kit.el.dataset.low = String(low);
      kit.el.dataset.spread = String(spread);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, problems, svm
from attnbook import theory

X = np.array(${python(state.X)}, float)
problem = problems.TokenProblem(X=X, z=X[:, 0], y=np.ones(2), v=np.array([0.0, 1.0]))
W = ${state.s} * np.array(${python(state.D)}, float)
margin = svm.attention_svm(problem)
gradient = models.Attention(loss="exponential").scaled_grad({"W": W}, problem)[1]["W"]
B = np.linalg.norm(X, axis=-1).max()
print("cosine", svm.correlation(-gradient, margin.W))
print("bound ", theory.bias.alignment_bound(B, margin.norm))`,
});

const optimalTokens = (X) => scores({ X, y: X.map(() => 1), v: [0, 1] }).map(best);

// A token where the hand wants it; with Assumption 2 on, the optimal token stays the optimal one and
// the two others move up and down together.
function moved(state, i, t, x, y) {
  const X = state.X.map((rows) => rows.map((row) => row.slice()));
  if (state.level !== "yes") {
    X[i][t] = [x, y];
    return X;
  }
  const top = optimalTokens(state.X)[i];
  const others = [0, 1, 2].filter((k) => k !== top);
  if (t === top) {
    X[i][t] = [x, Math.max(y, Math.max(...others.map((k) => X[i][k][1])) + LEVEL_GAP)];
    return X;
  }
  X[i][t][0] = x;
  const height = Math.min(y, X[i][top][1] - LEVEL_GAP);
  others.forEach((k) => { X[i][k][1] = height; });
  return X;
}

function measure(state) {
  const problem = problemOf(state);
  const top = optimalTokens(state.X);
  const heights = state.X.map((X, i) => X.filter((_, t) => t !== top[i]).map((x) => x[1]));
  const spread = Math.max(...heights.map(([a, b]) => Math.abs(a - b)));
  const margin = attentionSVM(problem);
  const W = scaled(state.D, state.s);
  if (margin.status !== "optimal") {
    return { problem, top, spread, W, found: false, bound: 0, here: NaN, low: NaN, cloud: [] };
  }
  const goal = margin.W;
  const B = Math.max(...state.X.flat().map((x) => Math.hypot(...x)));
  const cloud = CLOUD.map((one) => meter(problem, goal, one.W));
  return {
    problem, top, spread, W, found: true, goal, cloud,
    bound: 1 / (2 * B * B * norm(goal)), here: meter(problem, goal, W), low: Math.min(...cloud),
  };
}

// From the lowest of the random matrices downhill by small random moves, as a reader would do it.
function hunt(state) {
  const { problem, found, goal, cloud } = measure(state);
  if (!found) return {};
  let W = CLOUD[best(cloud.map((x) => -x))].W;
  let low = Math.min(...cloud);
  seed = 777;
  for (let k = 0; k < 400; k++) {
    const size = norm(W) * 0.15;
    const near = W.map((row) => row.map((x) => x + size * (2 * chance() - 1)));
    const value = norm(near) < 100 ? meter(problem, goal, near) : Infinity;
    if (value < low) [W, low] = [near, value];
  }
  const s = SIZES[nearest(SIZES, norm(W), Math.log)];
  return { s, D: W.map((row) => row.map((x) => Number((x / s).toFixed(4)))) };
}
