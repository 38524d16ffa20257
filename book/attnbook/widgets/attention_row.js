// Lemma 1: the output of an attention row is a mean, its slope a covariance, its curvature a
// third moment of the tokens under the attention weights.

import { explorable, fixed, python } from "./kit/kit.js";
import { rowMoments } from "./kit/onehead.js";

const SHAPES = ["circle", "square", "triangle", "diamond"];
const STEP = 1e-3; // of central differences
const SPAN = 4; // theta runs over [-SPAN, SPAN]

const largest = (values) => Math.max(...values.map(Math.abs));

export default explorable({
  name: "attention_row",
  title: "One attention row is a distribution over tokens",
  defaults: { x: [[-0.9, -0.5], [-0.2, 0.9], [0.5, -0.1], [1.1, 0.7]], g: [0.4, 0.8, -0.6, 0], theta: 0, bet: null },
  build(kit) {
    kit.bet({
      question: "Move theta until one token has nearly all the weight. What is left of the slope and of the curvature?",
      options: ["both grow with theta", "both die out", "the slope dies, the curvature stays"],
      outcome: (state) => {
        const { p, covariance, third } = rowMoments(...given(state, state.theta));
        return `${state.bet === 1 ? "Yes." : "Look again."} A distribution on one point has neither covariance nor third moment. Here the heaviest token has weight ${fixed(Math.max(...p), 3)}, the slope is ${fixed(covariance, 3)}, the curvature ${fixed(third, 3)}.`;
      },
    });
    const given = (state, theta) => {
      const B = state.x.map((x) => x[0]);
      return [state.x.map((x) => x[1]), B, state.g.map((g, s) => g + theta * B[s])];
    };
    const row = kit.row();
    const plane = kit.chart({
      label: "tokens as a weighted cloud", title: "drag the tokens; discs: attention weights",
      x: { range: [-1.5, 1.5], label: "B: what theta adds to the logit" }, y: { range: [-1.5, 1.5], label: "A: score for the readout" },
      height: 300,
    }, row);
    const output = kit.chart({
      label: "output of the row over theta", title: "the row's output, with its slope and curvature",
      x: { range: [-SPAN, SPAN], label: "theta" }, y: { range: [-1.5, 1.5], label: "output" }, height: 300,
    }, row);
    const logits = kit.chart({
      label: "logits and weights", title: "drag the logits; filled: weights (full height is 1)",
      x: { range: [0.4, 4.6], ticks: [1, 2, 3, 4], label: "token" }, y: { range: [-3, 3], label: "logit at theta = 0" },
      height: 210,
    }, row);
    const shares = kit.chart({
      label: "slope and curvature as shares of their bounds", title: "how much of their bounds slope and curvature use",
      x: { range: [0, 1], label: "share of the bound" }, y: { range: [0.4, 4.6], hide: true }, height: 210,
    }, row);
    const tokens = SHAPES.map((shape, s) => plane.handle(`x${s}`, {
      series: 5, shape, size: 7, label: `token ${s + 1}: B and A`,
      move: (b, a) => kit.set({ x: kit.state.x.map((x, k) => (k === s ? [b, a] : x)) }),
    }));
    const knobs = SHAPES.map((shape, s) => logits.handle(`g${s}`, {
      series: 5, shape, size: 7, label: `logit of token ${s + 1}`,
      move: (_, g) => kit.set({ g: kit.state.g.map((old, k) => (k === s ? g : old)) }),
      tell: () => fixed(kit.state.g[s]),
    }));
    kit.legend([[0, "output: the mean of A (disc sizes: weights)"], [1, "slope: covariance (among the tokens: over the variance of B)", true], [2, "parabola with the third moment as curvature", true]]);
    kit.slider({ key: "theta", label: "theta: how far W moves", min: -SPAN, max: SPAN, step: 0.1, show: (x) => fixed(x, 1) });
    return (state) => {
      const now = rowMoments(...given(state, state.theta));
      const at = (theta) => rowMoments(...given(state, theta)).mean;
      const [ahead, behind] = [at(state.theta + STEP), at(state.theta - STEP)];
      const slope = (ahead - behind) / (2 * STEP);
      const bend = (ahead - 2 * now.mean + behind) / STEP ** 2;
      const [A, B] = given(state, 0);
      const R = Math.max(1, ...state.x.map((x) => Math.hypot(...x))); // the query has length 1
      const entry = Math.max(1, largest(A), largest(B));
      const sharp = [largest(A) * largest(B), 2 * largest(A) * largest(B) ** 2];
      const printed = [2 * R * R * largest(A), 12 * R * R * entry * entry * largest(A)];
      plane.begin();
      state.x.forEach(([b, a], s) => {
        plane.mark(`p${s}`, b, a, { series: 0, size: 1 + 30 * Math.sqrt(now.p[s]), hollow: true });
        tokens[s].put(b, a);
        const out = 5 + 22 * Math.sqrt(now.p[s]);
        plane.text(`n${s}`, b, a, String(s + 1), { dx: out, dy: -0.7 * out });
      });
      if (now.variance > 1e-9) {
        const tilt = now.covariance / now.variance;
        plane.line("tilt", [-2, 2], [-2, 2].map((b) => now.mean + tilt * (b - now.meanB)), { series: 1, dash: "6 4" });
      }
      plane.mark("mean", now.meanB, now.mean, { series: 0, shape: "square", size: 6 });
      plane.text("words", now.meanB, now.mean, "mean", { series: 0, dx: 10, dy: 16 });
      plane.end();
      const grid = Array.from({ length: 161 }, (_, k) => -SPAN + (k * SPAN) / 80);
      const away = grid.map((theta) => theta - state.theta);
      output.begin();
      output.line("f", grid, grid.map(at), { series: 0, width: 3 });
      output.line("tangent", grid, away.map((h) => now.mean + now.covariance * h), { series: 1, dash: "6 4" });
      output.line("parabola", grid, away.map((h) => now.mean + now.covariance * h + (now.third * h * h) / 2), { series: 2, dash: "2 4", width: 2.5 });
      output.mark("here", state.theta, now.mean, { series: 0, shape: "square", size: 6 });
      output.end();
      logits.begin();
      now.p.forEach((weight, s) => {
        logits.rect(`w${s}`, [s + 0.7, -3], [s + 1.3, -3 + 6 * weight], { series: 0, strength: 0.6 });
        knobs[s].put(s + 1, state.g[s]);
      });
      logits.end();
      shares.begin();
      [[now.covariance, sharp[0], "slope", 1], [now.covariance, printed[0], "slope, printed", 1], [now.third, sharp[1], "curvature", 2], [now.third, printed[1], "curvature, printed", 2]]
        .forEach(([value, bound, words, series], k) => {
          const share = bound > 0 ? Math.abs(value) / bound : 0;
          shares.rect(`b${k}`, [0, 3.7 - k], [share, 4.3 - k], { series, strength: k % 2 ? 0.45 : 0.8 });
          shares.text(`t${k}`, Math.min(share, 0.5), 4 - k, `${words}: ${fixed(share, 3)}`, { dx: 6, dy: 4 });
        });
      shares.end();
      const off = Math.max(Math.abs(slope - now.covariance), Math.abs(bend - now.third));
      kit.say(`Mean ${fixed(now.mean, 3)}. Slope: covariance ${fixed(now.covariance, 3)}, central differences ${fixed(slope, 3)}; at most ${fixed(sharp[0])} (printed bound ${fixed(printed[0])}). Curvature: third moment ${fixed(now.third, 3)}, differences ${fixed(bend, 3)}; at most ${fixed(sharp[1])} (printed ${fixed(printed[1])}). Formula and differences are ${off < 1e-4 ? "within 1e-4" : `off by ${fixed(off, 4)}`}.`);
      const { p, mean, covariance, third } = now;
      kit.el.dataset.moments = JSON.stringify({ p, mean, covariance, third, slope, bend, sharp, printed });
    };
  },
  code: (state) => `import numpy as np
from attnlab import curvature, models, problems

tokens, logits, theta = np.array(${python(state.x)}), np.array(${python(state.g)}), ${state.theta}
X = np.column_stack([tokens, logits])[None]  # B, A, logit at theta = 0
problem = problems.TokenProblem(X=X, z=np.eye(3)[:1], y=np.ones(1), v=np.eye(3)[1])
W = np.zeros((3, 3))
W[:, 0] = theta, 0.0, 1.0  # logits X W z = theta B + logits
model = models.Attention(loss="correlation")  # the loss is minus the output
value, grads = model.value_and_grad({"W": W}, problem)
bent = curvature.hessian(model, {"W": W}, problem).matrix
print("mean", -value, "covariance", -grads["W"][0, 0], "third moment", -bent[0, 0])`,
});
