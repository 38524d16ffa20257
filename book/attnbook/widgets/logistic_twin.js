// Logistic regression beside attention: the same vectors, the same start, the same steps.

import { leastNorm } from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";
import { logPulls, trainPath } from "./kit/twin.js";

const NAMES = ["logistic", "attention"];
const STEPS = { gd: 10000, ngd: 10000 };
const ETA = { gd: 1, ngd: 0.05 };
const TIMES = [0];
for (let k = 1; k < STEPS.gd; k = Math.max(k + 1, Math.round(k * 1.15))) TIMES.push(k);
TIMES.push(STEPS.gd);

export default explorable({
  name: "logistic_twin",
  title: "Twins: logistic regression and attention on the same vectors",
  defaults: { f: [[0.9, 0.3], [0.6, 0.9], [-2.4, 0.6]], w: [0, 0], rule: "gd", bet: null },
  build(kit) {
    kit.bet({
      question: "Both train one vector w to put w.f above 0 for every arrow f. Drag the start (square), to the lower right for instance. Who still finds the max-margin direction?",
      options: ["both, from every start", "logistic regression always, attention not always", "attention always, logistic regression not"],
      outcome: (state) => {
        const { ends } = follow(state);
        const told = NAMES.map((name, k) => `${name} ends at a cosine of ${fixed(ends[k].cosine, 3)}`).join(", ");
        return `${state.bet === 1 ? "Yes." : "Look again."} Logistic loss is convex and pulls hardest where a sample is wrong; attention barely pulls there. Here ${told}.`;
      },
    });
    const row = kit.row();
    const plane = kit.chart({
      square: true, label: "the plane of w and f", title: "arrows f (drag), start of w (drag)",
      x: { range: [-4, 4] }, y: { range: [-4, 4] }, bare: true,
    }, row);
    const pull = kit.chart({
      label: "pull of a sample by its logit", title: "pull of a sample (score gap 1); dots: at the start", height: 330,
      x: { range: [-9, 9], label: "w.f" }, y: { range: [0, 1.05], label: "pull" },
    }, row);
    const wide = kit.row();
    const length = kit.chart({
      label: "length of w by step", title: "length of w",
      x: { range: [1, STEPS.gd], log: true, label: "step" }, y: { range: [0.1, 1000], log: true },
    }, wide);
    const miss = kit.chart({
      label: "1 - cosine with the max-margin direction by step", title: "1 - cosine with max margin",
      x: { range: [1, STEPS.gd], log: true, label: "step" }, y: { range: [1e-6, 2], log: true },
    }, wide);
    const tips = kit.state.f.map((_, i) => plane.handle(`f${i}`, {
      series: 6, shape: "triangle", size: 7, label: `arrow f${i + 1}`,
      move: (x, y) => {
        const f = kit.state.f.map((entry) => entry.slice());
        f[i] = [x, Math.max(0.2, y)]; // its score stays above 0
        kit.set({ f });
      },
    }));
    const start = plane.handle("w", {
      series: 3, shape: "square", size: 8, label: "start of w", move: (x, y) => kit.set({ w: [x, y] }),
    });
    kit.legend([[0, "logistic regression"], [1, "attention", true], [2, "max-margin direction", true], [3, "start of w"], [6, "vectors f"]]);
    kit.choice({ key: "rule", label: "steps", options: [["gd", "plain"], ["ngd", "normalized"]] });
    return (state) => {
      const { paths, ends, toward } = follow(state);
      plane.begin();
      const far = 6 / Math.hypot(...toward);
      plane.line("mm", [0, far * toward[0]], [0, far * toward[1]], { series: 2, dash: "2 4", width: 2.5 });
      state.f.forEach((f, i) => {
        plane.line(`a${i}`, [0, f[0]], [0, f[1]], { series: 6, width: 1.5 });
        tips[i].put(...f, { glow: ends[1].margins[i] < 0 });
      });
      start.put(...state.w);
      pull.begin();
      NAMES.forEach((model, k) => {
        const look = { series: k, dash: k ? "7 4" : "", width: k ? 2.5 : 3 };
        const grid = Array.from({ length: 91 }, (_, at) => at / 5 - 9);
        const one = (h) => Math.exp(logPulls([[0, 1]], [0, h], model)[0]);
        pull.line(`l${k}`, grid, grid.map(one), look);
        const shapes = k ? "diamond" : "circle";
        state.f.forEach((f, i) => {
          const h = f[0] * state.w[0] + f[1] * state.w[1];
          pull.mark(`s${k}${i}`, Math.max(-9, Math.min(9, h)), one(h), { series: k, size: 4, shape: shapes });
        });
      });
      pull.end();
      const charts = [length.begin(), miss.begin()];
      paths.forEach((path, k) => {
        const look = { series: k, dash: k ? "7 4" : "", width: k ? 2.5 : 3 };
        plane.line(`p${k}`, path.map((w) => w[0]), path.map((w) => w[1]), look);
        charts[0].line(`n${k}`, TIMES.slice(1), path.slice(1).map((w) => Math.hypot(...w)), look);
        charts[1].line(`m${k}`, TIMES.slice(1), path.slice(1).map((w) => Math.max(1e-9, missed(w, toward))), look);
      });
      plane.end();
      charts.forEach((chart) => chart.end());
      const lost = ends[1].margins.filter((h) => h < 0).length;
      const told = ends.map((end, k) => `${NAMES[k]}: length ${fixed(end.length, 1)}, cosine ${fixed(end.cosine, 4)}`);
      kit.say(`After ${STEPS.gd} ${state.rule === "gd" ? "plain" : "normalized"} steps from (${state.w.map((x) => fixed(x, 1)).join(", ")}): ${told.join("; ")}. ${lost ? `Attention has lost ${lost} of ${state.f.length} samples (rim).` : "Both classify every sample."}`);
      kit.el.dataset.cosines = JSON.stringify(ends.map((end) => end.cosine));
      kit.el.dataset.lengths = JSON.stringify(ends.map((end) => end.length));
      kit.el.dataset.lost = String(lost);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

f, w = np.array(${python(state.f)}, float), np.array(${python(state.w)}, float)
problem = problems.TokenProblem(
    X=np.stack([f, np.zeros_like(f)], axis=1), z=np.tile([1.0, 0.0], (len(f), 1)),
    y=np.ones(len(f)), v=np.array([0.0, 1.0]))
run = optim.train(models.Attention(loss="exponential"), problem,
                  optim.${state.rule === "gd" ? "GD(1.0)" : "NormalizedGD(0.05)"}, steps=${STEPS.gd},
                  params={"W": np.outer(w, [1.0, 0.0])}, every=${STEPS.gd})
goal = svm.attention_svm(problem).W
print("attention", svm.correlation(run.params["W"], goal))

for _ in range(${STEPS.gd}):  # logistic regression
    pull = f.T @ (1 / (1 + np.exp(f @ w))) / len(f)
    w = w + ${state.rule === "gd" ? "1.0 * pull" : "0.05 * pull / np.linalg.norm(pull)"}
print("logistic ", svm.correlation(np.outer(w, [1.0, 0.0]), goal))`,
});

const cosineOf = (w, toward) => (w[0] * toward[0] + w[1] * toward[1])
  / (Math.hypot(...w) * Math.hypot(...toward) || 1);

// 1 - cosine without cancellation: half the squared distance of the unit vectors.
const missed = (w, toward) => {
  const [a, b] = [Math.hypot(...w) || 1, Math.hypot(...toward)];
  return ((w[0] / a - toward[0] / b) ** 2 + (w[1] / a - toward[1] / b) ** 2) / 2;
};

const cache = { key: "", found: null };
function follow(state) {
  const key = JSON.stringify([state.f, state.w, state.rule]);
  if (cache.key === key) return cache.found;
  const toward = leastNorm(state.f).w;
  const paths = NAMES.map((model) => trainPath(state.f, state.w, model, state.rule, ETA[state.rule], TIMES));
  const ends = paths.map((path) => {
    const w = path[path.length - 1];
    const margins = state.f.map(([x, y]) => w[0] * x + w[1] * y);
    return { length: Math.hypot(...w), cosine: cosineOf(w, toward), margins };
  });
  cache.key = key;
  cache.found = { toward, paths, ends };
  return cache.found;
}
