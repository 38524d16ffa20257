// Step size as a multiple of the stability limit: it settles, it is catapulted, or it diverges.

import { eigenvalues, gram, jacobian, train } from "./kit/encoder_small.js";
import { explorable, fixed } from "./kit/kit.js";

const NAMES = { lecun: "LeCun", he: "He", ntk: "NTK" };
const [N, T, D, STEPS] = [8, 3, 6, 80];
const RATIOS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 5, 6];

export default explorable({
  name: "step_dial",
  title: "The step-size dial: below the limit, a little above it, far above it",
  defaults: { init: "lecun", width: 64, ratio: 0.6, bet: null },
  build(kit) {
    const X = kit.list("X");
    const y = kit.list("y");
    const kept = new Map();
    const start = ({ init, width }) => {
      const key = `${init}${width}`;
      if (!kept.has(key)) {
        const gain = init === "he" ? Math.SQRT2 : 1;
        const theta = Float64Array.from(kit.data(`${init === "he" ? "lecun" : init}${width}`).values, (x) => gain * x);
        const tau1 = init === "ntk" ? width ** -0.5 : 1;
        const net = { N, T, d: D, m: width, tau0: width ** -0.5, pool: tau1 / T };
        const top = eigenvalues(gram(jacobian(net, X, theta).J, N), N)[N - 1];
        kept.set(key, { net, theta, top, limit: N / top });
      }
      return kept.get(key);
    };
    kit.bet({
      question: "The limit N / lambda_max(K) is where gradient descent turns unstable. Take a step 1.5 times as long. What does the loss do?",
      options: ["it diverges", "it rises first, then falls for good", "it goes on falling: the limit is only a bound"],
      outcome: (state) => `${state.bet === 1 ? "Yes, with 64 or more LeCun neurons." : "Look at 1.5 with 64 LeCun neurons."} The jump carries the weights to where the kernel is smaller, and there the step is stable: a catapult. Much longer steps do diverge.`,
    });
    const row = kit.row();
    const loss = kit.chart({
      label: "training loss by step", title: "loss", x: { range: [0, STEPS], label: "step" },
      y: { range: [1e-6, 1e4], log: true },
    }, row);
    const ratio = kit.chart({
      label: "step over the limit of the moment", title: "step over the limit of the moment, N / lambda_max(K)",
      x: { range: [0, STEPS], label: "step" }, y: { range: [0, 4] },
    }, row);
    kit.legend([[0, "loss"], [1, "step over the limit"], [3, "1: the limit", true]]);
    kit.slider({ key: "ratio", label: "step, in limits of the start", values: RATIOS });
    const more = kit.controls();
    kit.choice({ key: "init", label: "weights", options: Object.entries(NAMES), parent: more });
    kit.choice({ key: "width", label: "width", options: [[16, "16"], [64, "64"], [200, "200"]], parent: more });
    return (state) => {
      const { net, theta, top, limit } = start(state);
      const step = state.ratio * limit;
      const run = train(net, X, y, theta, step, STEPS, 1 / N);
      const times = run.loss.map((_, t) => t);
      const peak = Math.max(...run.loss);
      const last = run.loss[run.loss.length - 1];
      const ended = run.loss.length <= STEPS;
      const risen = peak > 1.05 * run.loss[0];
      const fate = ended ? "diverges" : !risen ? "settles" : last < run.loss[0] / 10 ? "catapult" : "wanders";
      const high = run.top.map((value) => (step * value) / N);
      const shown = high.map((value) => Math.min(value, 3.96)); // the top of the chart
      loss.begin().line("loss", times, run.loss, { series: 0, width: 2.5 });
      if (ended) loss.mark("end", times[times.length - 1], Math.min(last, 8e3), { series: 3, shape: "cross", size: 6 });
      loss.end();
      ratio.begin().line("limit", [0, STEPS], [1, 1], { series: 3, dash: "6 4", width: 2 });
      ratio.line("high", times, shown, { series: 1, width: 2.5 }).end();
      const told = {
        diverges: `the loss diverges; after ${times[times.length - 1]} steps it is ${fixed(last)}`,
        catapult: `a catapult: the loss rises from ${fixed(run.loss[0])} to ${fixed(peak)}; after ${STEPS} steps it is ${fixed(last, 4)}, and the same step is ${fixed(high[high.length - 1])} limits`,
        wanders: `the loss rises from ${fixed(run.loss[0])} to ${fixed(peak)} and comes to no rest; after ${STEPS} steps it is ${fixed(last)}`,
        settles: `the loss falls from ${fixed(run.loss[0])} to ${fixed(last, 4)} in ${STEPS} steps`,
      }[fate];
      kit.say(`${NAMES[state.init]}, width ${state.width}: lambda_max(K) = ${fixed(top)}, limit ${fixed(limit, 3)}. Step ${fixed(step, 3)} (${fixed(state.ratio)} limits): ${told}. The same step is called ${fixed(2 * step, 3)} for half the mean loss and ${fixed((2 * step) / N, 3)} for half the sum.`);
      Object.assign(kit.el.dataset, { limit: String(limit), loss: JSON.stringify(run.loss), fate, peak: String(peak) });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, ntk, optim, problems
from attnbook import theory

problem = problems.gaussian_regression(n=8, T=3, d=6, unit_tokens=True, rng=0)
model = models.Encoder(${state.width}, "${state.init}")
params = model.init(problem, rng=0)
top = np.linalg.eigvalsh(ntk.empirical(model, params, problem))[-1]
limit = theory.encoder.stability_limit(top, problem.n)
run = optim.train(model, problem, optim.GD(${state.ratio} * float(limit)), steps=${STEPS}, params=params)
print(limit, run.status, run.history["loss"][::10])`,
});
