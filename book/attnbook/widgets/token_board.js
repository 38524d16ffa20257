// Two short sequences in the plane. Drag tokens, queries or the head; attention trains while you
// watch, and the direction it was bound to reach stands beside it.

import {
  attentionSVM, cosine, factorStep, norm, nuclear, nuclearSVM, optimal, scores, step, transpose,
  times, apply,
} from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";

const STEPS = 240;
const SHAPES = ["circle", "square", "triangle", "diamond"];
const START = [[[0.1, 0.02], [-0.03, 0.1]], [[0.1, -0.02], [0.03, 0.1]]]; // of K and Q

const problemOf = (state) => ({ X: state.X, z: state.z, y: state.y, v: state.v });

// Train on W, or on K and Q; keep W at every step, and the path of W z_i for each sequence.
function train(problem, state) {
  const paths = problem.X.map(() => ({ xs: [], ys: [] }));
  const products = [];
  let W = [[0, 0], [0, 0]];
  let [K, Q] = START;
  const factored = state.form === "KQ";
  for (let k = 0; k <= STEPS; k++) {
    if (factored) W = times(K, transpose(Q));
    products.push(W);
    problem.z.forEach((z, i) => {
      const [x, y] = apply(W, z);
      paths[i].xs.push(x);
      paths[i].ys.push(y);
    });
    if (k === STEPS) break;
    if (factored) [K, Q] = factorStep(problem, K, Q, state.rule === "gd" ? 1 : 0.05, state.rule);
    else W = step(problem, W, state.rule === "gd" ? 2 : 0.1, state.rule);
  }
  return { paths, products };
}

export default explorable({
  name: "token_board",
  title: "Token board: drag anything, and watch where attention goes",
  defaults: {
    X: [[[-1, 0.4], [1.4, 1.5], [1, 0.3]], [[-1, 0.6], [-0.4, -1.4], [-0.3, -0.5]]],
    z: [[-0.4, 1.1], [0.9, -0.1]],
    y: [1, 1],
    v: [0.1, 1],
    form: "W",
    rule: "ngd",
    t: STEPS,
    bet: null,
  },
  build(kit) {
    kit.bet({
      question: "Training grows W for ever. What decides where it points?",
      options: ["the mean of the tokens", "the best token against its nearest rivals", "the head v alone"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} The dashed lines are the max-margin direction that separates the best token of each sequence from the others. Only support tokens, with a ring, hold it in place; the others may move a little and it stays.`,
    });
    const row = kit.row();
    const planes = kit.state.X.map((_, i) => kit.chart({
      square: true, label: `sequence ${i + 1}`, title: `sequence ${i + 1}`,
      x: { range: [-2, 2] }, y: { range: [-2, 2] }, bare: true,
    }, row));
    const move = (group, i, t) => (x, y) => {
      const value = kit.state[group].map((entry) => (Array.isArray(entry) ? entry.slice() : entry));
      if (t === undefined) value[i] = [x, y];
      else value[i][t] = [x, y];
      kit.set({ [group]: value });
    };
    const handles = planes.map((plane, i) => ({
      tokens: kit.state.X[i].map((_, t) => plane.handle(`x${i}${t}`, {
        series: 6, shape: SHAPES[t % SHAPES.length], label: `sequence ${i + 1}, token ${t + 1}`, move: move("X", i, t),
      })),
      query: plane.handle(`z${i}`, {
        series: 3, shape: "square", size: 6, label: `query of sequence ${i + 1}`, move: move("z", i),
      }),
    }));
    const head = planes[0].handle("v", {
      series: 4, shape: "diamond", size: 8, label: "head v", move: (x, y) => kit.set({ v: [x, y] }),
    });
    kit.legend([[0, "W z in training"], [1, "max margin, Frobenius norm", true], [2, "max margin, nuclear norm", true], [3, "query z"], [4, "head v"], [1, "support token", "ring"]]);
    const times_ = Array.from({ length: STEPS + 1 }, (_, k) => k);
    kit.scrubber({ key: "t", times: times_ });
    const controls = kit.controls();
    kit.choice({ key: "form", label: "train", options: [["W", "W"], ["KQ", "K and Q"]], parent: controls });
    kit.choice({ key: "rule", label: "by", options: [["ngd", "normalized steps"], ["gd", "plain steps"]], parent: controls });

    return (state) => {
      const problem = problemOf(state);
      const gamma = scores(problem);
      const top = optimal(problem);
      const frobenius = attentionSVM(problem);
      const other = nuclearSVM(problem);
      const factored = state.form === "KQ";
      const goal = factored ? other : frobenius; // rings, margin and count are those of this one
      const { paths, products } = train(problem, state);
      const W = products[state.t];
      const found = goal.status === "optimal";
      planes.forEach((plane, i) => {
        plane.begin();
        state.X[i].forEach((x, t) => {
          const glow = found && goal.support[i][t];
          handles[i].tokens[t].put(x[0], x[1], { look: t === top[i] ? 0 : 6, glow });
          plane.text(`g${t}`, x[0], x[1], gamma[i][t].toFixed(Math.abs(gamma[i][t]) < 0.1 ? 2 : 1), { dx: glow ? 19 : 13, dy: 4 });
        });
        plane.arrow("z", [0, 0], state.z[i], { series: 3, width: 1.5 });
        handles[i].query.put(...state.z[i]);
        if (i === 0) {
          plane.arrow("v", [0, 0], state.v, { series: 4, width: 1.5 });
          head.put(...state.v);
        }
        const ray = (id, margin, series, dash) => {
          if (margin.status !== "optimal") return;
          const way = apply(margin.W, state.z[i]);
          const size = Math.hypot(...way) || 1;
          plane.line(id, [0, (2.6 * way[0]) / size], [0, (2.6 * way[1]) / size], { series, dash, width: 2 });
        };
        ray("fro", frobenius, 1, "7 5");
        ray("nuc", other, 2, "2 4");
        const { xs, ys } = paths[i];
        const reach = 1.7 / Math.max(1e-9, ...xs.map((x, k) => Math.hypot(x, ys[k])));
        const shown = xs.slice(0, state.t + 1).map((x) => x * reach);
        plane.line("path", shown, ys.slice(0, state.t + 1).map((y) => y * reach), { series: 0, width: 3 });
        plane.mark("end", shown[state.t], ys[state.t] * reach, { series: 0, size: 4 });
        plane.end();
      });
      const told = gamma.map((row) => row.map((g) => fixed(g, 2)).join(", ")).join("; ");
      const count = found ? goal.support.flat().filter(Boolean).length : 0;
      const margin = found ? 1 / (factored ? nuclear(goal.W) : norm(goal.W)) : 0;
      const near = (answer) => (state.t || factored ? fixed(cosine(W, answer.W), 4) : "none yet");
      kit.say(found
        ? `Scores ${told}: best are tokens ${top.map((t) => t + 1).join(" and ")}. In the ${factored ? "nuclear" : "Frobenius"} norm the margin is ${fixed(margin, 3)}, with ${count} support tokens. After ${state.t} steps the cosine of W with the dashed (Frobenius) answer is ${near(frobenius)}, with the dotted (nuclear) one ${near(other)}.`
        : `Scores ${told}: best are tokens ${top.map((t) => t + 1).join(" and ")}. No W separates them from the others: infeasible, and training has no direction to go to.`);
      kit.el.dataset.status = goal.status;
      kit.el.dataset.cosine = found ? String(cosine(W, goal.W)) : "";
      kit.el.dataset.margin = String(margin);
      kit.el.dataset.support = JSON.stringify(goal.support || []);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(state.X)}, float),
    z=np.array(${python(state.z)}, float),
    y=np.array(${python(state.y)}, float), v=np.array(${python(state.v)}, float))
${state.form === "KQ" ? `margin = svm.attention_svm(problem, norm="nuc")
start = {"K": np.array(${python(START[0])}), "Q": np.array(${python(START[1])})}
run = optim.train(models.Attention(factors=2), problem,
                  optim.${state.rule === "gd" ? "GD(1.0)" : "NormalizedGD(0.05)"}, steps=${state.t}, params=start)
W = run.params["K"] @ run.params["Q"].T` : `margin = svm.attention_svm(problem)
run = optim.train(models.Attention(start="zero"), problem,
                  optim.${state.rule === "gd" ? "GD(2.0)" : "NormalizedGD(0.1)"}, steps=${state.t})
W = run.params["W"]`}
print(1 / margin.norm, margin.support.sum(), svm.correlation(W, margin.W))`,
});
