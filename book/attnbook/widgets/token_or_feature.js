// A vector of 24 numbers, cut into tokens: the kernel's spectrum and training, by shape.

import { explorable, fixed } from "./kit/kit.js";

const SCALINGS = ["sqrt", "linear"];

export default explorable({
  name: "token_or_feature",
  title: "One token or one feature: the same 24 numbers, cut eight ways",
  defaults: { t: 3, w: 1, scaling: "sqrt", bet: null },
  build(kit) {
    const steps = kit.list("step").slice(1);
    const tokens = kit.list("tokens");
    const widths = kit.list("widths");
    const floor = kit.data("floor").values[0];
    const [shapes, , , N] = kit.data("values").shape;
    const network = (state, t = state.t) => [t, state.w, SCALINGS.indexOf(state.scaling)];
    const curve = (state, t) => kit.list("loss", ...network(state, t)).slice(1);
    const list = (name, state, t) => kit.list(name, ...network(state, t));
    const rank = (numbers, small) => numbers.filter((value) => value > small * numbers[0]).length;
    const name = (t) => `${tokens[t]} × ${N / tokens[t]}`;
    const last = steps[steps.length - 1];
    kit.bet({
      question: "24 samples, each a vector of 24 numbers. Cut it into more and more, shorter and shorter tokens. When does training begin to fail?",
      options: ["only at the end, with one feature a token", "little by little", "only with tau_0 = 1/width"],
      outcome: (state) => {
        const ends = tokens.map((_, t) => curve(state, t)[steps.length - 1]);
        return `${state.bet === 1 ? "Yes." : "Look again."} Loss after ${last} steps at width ${widths[state.w]}, from one token to 24: ${ends.map((value) => fixed(value, 3)).join(", ")}. The other tau_0 gives nearly the same numbers.`;
      },
    });
    const row = kit.row();
    const left = kit.chart({
      label: "eigenvalues of the tangent kernel at the start", title: "eigenvalues over the largest, at the start",
      x: { range: [0.5, N + 0.5], label: "eigenvalue, largest first", ticks: [1, 4, 8, 12, 16, 20, 24] },
      y: { range: [1e-10, 2], log: true },
    }, row);
    const right = kit.chart({
      label: "loss in training", title: "loss over the mean of y²",
      x: { range: [1, 1.2 * last], log: true, label: "step" }, y: { range: [1e-4, 2], log: true },
    }, row);
    kit.legend([[0, "kernel K, this shape"], [2, "block of w_O (its last: alpha²)", true], [6, "the other shapes"], [1, "floor of all networks with one feature", true]]);
    kit.slider({ key: "t", label: "tokens × features", values: tokens.map((_, t) => t), show: name });
    const controls = kit.controls();
    kit.slider({ key: "w", label: "width", values: widths.map((_, w) => w), show: (w) => String(widths[w]), parent: controls });
    kit.choice({ key: "scaling", label: "tau_0", options: [["sqrt", "width^-1/2"], ["linear", "1/width"]], parent: controls });
    return (state) => {
      const index = Array.from({ length: N }, (_, k) => k + 1);
      const above = (numbers) => numbers.map((value) => Math.max(value / numbers[0], 1e-16));
      left.begin();
      right.begin();
      tokens.forEach((_, t) => {
        if (t === state.t) return;
        left.line(`k${t}`, index, above(list("values", state, t)), { series: 6, width: 1, faint: true });
        right.line(`l${t}`, steps, curve(state, t), { series: 6, width: 1, faint: true });
      });
      const own = above(list("values", state));
      const block = above(list("squares", state));
      left.line("block", index, block, { series: 2, dash: "5 4", width: 2 });
      left.line("own", index, own, { series: 0, width: 2.5 });
      own.forEach((value, k) => left.mark(`o${k}`, k + 1, value, { series: 0, size: 3.5 }));
      right.line("floor", [1, last], [floor, floor], { series: 1, dash: "5 4", width: 2 });
      right.line("here", steps, curve(state), { series: 0, width: 2.5 });
      const end = curve(state)[steps.length - 1];
      if (end > 1e-4) right.mark("end", last, end, { series: 0, size: 5 });
      left.end();
      right.end();
      const ranks = rank(list("values", state), 1e-10);
      const blocks = rank(list("squares", state), 1e-20);
      const T_ = tokens[state.t];
      const least = list("values", state)[N - 1];
      kit.say(`${T_} ${T_ === 1 ? "token" : "tokens"} of ${N / T_} ${N === T_ ? "feature" : "features"}, width ${widths[state.w]}. The kernel has rank ${ranks} of ${N} (hidden layer ${blocks}), its smallest eigenvalue is ${least > 0 ? fixed(least, 4) : "0"}. After ${last} steps the loss is ${fixed(end, 3)} of the mean of y²${T_ === N ? `; no network of this shape gets below ${fixed(floor, 3)}` : ""}. Assumption 2 ${T_ <= N / T_ ? "can hold" : "is violated: more tokens than features"}.`);
      kit.el.dataset.rank = String(ranks);
      kit.el.dataset.block = String(blocks);
      kit.el.dataset.loss = String(end);
      kit.el.dataset.least = String(least);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, ntk, optim, problems
from attnbook import theory

drawn = problems.gaussian_regression(n=24, T=1, d=24, unit_tokens=True, rng=3)
tokens = ${[1, 2, 3, 4, 6, 8, 12, 24][state.t]}
problem = problems.SequenceProblem(drawn.X.reshape(24, tokens, 24 // tokens), drawn.y)
model = models.Encoder(${[24, 120][state.w]}, scaling="${state.scaling}")
start = model.init(problem, rng=3)
values = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[::-1]
print("rank", (values > 1e-10 * values[0]).sum(), " smallest", values[-1])
step = 0.25 * float(theory.encoder.stability_limit(values[0], problem.n))
run = optim.train(model, problem, optim.GD(step), steps=150, params=start)
print("loss over mean of y^2:", run.history["loss"][-1] / (problem.y**2).mean())`,
});
