// The published update stops moving when softmax saturates; an exact one does not.

import { explorable, fixed } from "./kit/kit.js";

const NAMES = ["published update", "exact steps"];

export default explorable({
  name: "arithmetic",
  title: "When arithmetic lies: the same update, two ways of computing it",
  defaults: { k: 40, bet: null },
  build(kit) {
    const steps = kit.list("step");
    const angle = [0, 1].map((m) => kit.list("angle", m));
    const size = [0, 1].map((m) => kit.list("norm", m));
    kit.bet({
      question: "Train ten times longer. What does the angle to the max-margin direction do?",
      options: ["it falls in both", "it falls in one and grows in the other"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} Once 1 - softmax is below rounding, the published formula subtracts equal numbers: the leading token's share of the gradient is lost, and eps in the norm freezes what remains.`,
    });
    const row = kit.row();
    const last = steps[steps.length - 1];
    const left = kit.chart({
      label: "one minus cosine by step", title: "1 - cosine with the max-margin W",
      x: { range: [10, last], log: true, label: "step" }, y: { range: [1e-6, 1], log: true },
    }, row);
    const right = kit.chart({
      label: "norm of W by step", title: "norm of W",
      x: { range: [10, last], log: true, label: "step" }, y: { range: [1, 3000], log: true },
    }, row);
    kit.legend([[1, NAMES[0], true], [0, NAMES[1]]]);
    kit.scrubber({ key: "k", times: steps });
    return (state) => {
      const k = Math.min(state.k, steps.length - 1);
      [[left, angle], [right, size]].forEach(([chart, values]) => {
        chart.begin();
        values.forEach((line, m) => {
          const look = { series: m === 0 ? 1 : 0, dash: m === 0 ? "6 4" : "", width: 2.5 };
          chart.line(`all${m}`, steps, line, { ...look, faint: true });
          chart.line(`to${m}`, steps.slice(0, k + 1), line.slice(0, k + 1), look);
          chart.mark(`at${m}`, steps[k], line[k], { series: look.series, size: 5 });
        });
        chart.end();
      });
      kit.say(`Step ${steps[k]}: 1 - cosine is ${angle[0][k].toExponential(1)} by the published update and ${angle[1][k].toExponential(1)} by exact steps; |W| is ${fixed(size[0][k], 1)} and ${fixed(size[1][k], 1)}.`);
      kit.el.dataset.angles = JSON.stringify([angle[0][k], angle[1][k]]);
    };
  },
  code: () => `from attnlab import models, optim, problems, svm

problem = problems.sphere(n=6, T=8, d=10, min_gap=0.1, rng=0)
model = models.Attention()
for recipe in ("paper", "exact"):
    run = optim.train(model, problem, optim.NormalizedGD(0.1, recipe=recipe), steps=20_000, rng=0)
    print(recipe, 1 - svm.classify(run).correlation)`,
});
