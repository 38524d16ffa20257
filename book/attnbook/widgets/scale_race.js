// tau_0 = width^-1/2 against 1/width: who wins depends on what "the same step" means.

import { raceBoard, shareInWords } from "./kit/race.js";
import { explorable, fixed } from "./kit/kit.js";

const NAMES = ["tau_0 = width^-1/2", "tau_0 = 1/width"];
const MODES = ["equal", "relative"];
const TOKENS = ["raw", "unit"];

export default explorable({
  name: "scale_race",
  title: "A race of scalings: one over the root of the width, or one over the width",
  defaults: { mode: "equal", tokens: "raw", seed: 0, w: 1, k: 31, bet: null },
  build(kit) {
    const steps = kit.list("step").slice(1);
    const widths = kit.list("widths");
    const [, draws, , , N] = kit.data("values").shape;
    const network = (state, i) => [TOKENS.indexOf(state.tokens), state.seed, i, state.w];
    const curve = (state, i) => kit.list("loss", MODES.indexOf(state.mode), ...network(state, i)).slice(1);
    const spectrum = (state, i) => kit.list("values", ...network(state, i));
    const limit = (state, i) => N / spectrum(state, i)[0];
    const size = (state, i) => 0.5 * (state.mode === "equal" ? Math.min(limit(state, 0), limit(state, 1)) : limit(state, i));
    const pair = (name, state) => NAMES.map((_, i) => kit.list(name, ...network(state, i))[0]);
    const ahead = (state) => {
      const [a, b] = NAMES.map((_, i) => curve(state, i)[state.k]);
      return Math.abs(Math.log(a / b)) < 0.05 * Math.max(1, Math.abs(Math.log(a))) ? "hardly differ" : a < b ? "put width^-1/2 ahead" : "put 1/width ahead";
    };
    kit.bet({
      question: "Raw Gaussian tokens, one step size: width^-1/2 is ahead. Let each scaling use half of its own largest stable step. What changes?",
      options: ["nothing: sharper attention learns faster", "the order turns round", "they become equal"],
      outcome: (state) => {
        const turned = Array.from({ length: draws }, (_, seed) => ahead({ mode: "relative", tokens: "raw", seed, w: 1, k: steps.length - 1 }));
        const count = turned.filter((words) => words.includes("1/width")).length;
        return `${state.bet === 1 ? "Yes." : "Look again."} At equal shares of the stable step 1/width is ahead in ${count} of ${draws} draws at width ${widths[1]}. The losses you see ${ahead(state)}.`;
      },
    });
    const draw = raceBoard(kit, { steps, count: N, names: NAMES });
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.choice({ key: "mode", label: "the same", options: [["equal", "step size"], ["relative", "share of the stable step"]], parent: controls });
    kit.choice({ key: "tokens", label: "tokens", options: [["raw", "raw Gaussian"], ["unit", "of length 1"]], parent: controls });
    kit.slider({ key: "w", label: "width", values: widths.map((_, w) => w), show: (w) => String(widths[w]), parent: controls });
    kit.slider({ key: "seed", label: "draw", values: Array.from({ length: draws }, (_, k) => k), show: (k) => String(k + 1), parent: controls });
    return (state) => {
      const curves = NAMES.map((_, i) => curve(state, i));
      draw({
        curves,
        rates: NAMES.map((_, i) => spectrum(state, i).map((value) => (size(state, i) * value) / N)),
        k: state.k,
      });
      const shares = curves.map((values_) => values_[state.k]);
      const [squares, weights] = [pair("alpha", state), pair("weight", state)];
      kit.say(`${state.tokens === "raw" ? "Raw tokens" : "Tokens of length 1"}, width ${widths[state.w]}, draw ${state.seed + 1}. After ${steps[state.k]} steps the losses are ${shares.map(shareInWords).join(" and ")} of their start: they ${ahead(state)}. Steps in use ${NAMES.map((_, i) => fixed(size(state, i), 3)).join(" and ")}, limits ${NAMES.map((_, i) => fixed(limit(state, i), 3)).join(" and ")}. Mean squared length of an attention row: ${weights.map((value) => fixed(value, 3)).join(" and ")}; alpha²: ${squares.map((value) => fixed(value, 3)).join(" and ")}.`);
      kit.el.dataset.shares = JSON.stringify(shares);
      kit.el.dataset.limits = JSON.stringify(NAMES.map((_, i) => limit(state, i)));
      kit.el.dataset.alpha = JSON.stringify(squares);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, ntk, optim, problems
from attnbook import theory

problem = problems.gaussian_regression(
    n=20, T=5, d=20, unit_tokens=${state.tokens === "unit" ? "True" : "False"}, rng=${state.seed})
found = []
for scaling in ("sqrt", "linear"):
    model = models.Encoder(${[80, 240][state.w]}, scaling=scaling)
    start = model.init(problem, rng=${state.seed})
    top = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[-1]
    found.append((model, start, float(theory.encoder.stability_limit(top, problem.n))))
for model, start, limit in found:
    step = 0.5 * ${state.mode === "equal" ? "min(each[2] for each in found)" : "limit"}
    run = optim.train(model, problem, optim.GD(step), steps=200, params=start)
    alpha = float(theory.encoder.alpha(model, start, problem))
    loss = run.history["loss"]
    print(model.scaling, f"loss times {loss[-1] / loss[0]:.1e}, alpha^2 {alpha**2:.3f}")`,
});
