// Proposition 1 on one network: do its conditions hold, and what does one step really do?

import { constantsOf, eigenvalues, forward, gram, jacobian } from "./kit/encoder_small.js";
import { explorable, fixed } from "./kit/kit.js";

const [N, T, D] = [4, 2, 6];
const POWERS = Array.from({ length: 61 }, (_, k) => -1 + k / 10);

const short = (value) => fixed(value, value >= 100 ? 0 : 2);

export default explorable({
  name: "gauge_one",
  title: "Proposition 1 as a gauge: its conditions, and one step against its promise",
  defaults: { width: 100, offset: -6, multiple: 0, pooling: "sum", bet: null },
  build(kit) {
    const X = kit.list("X");
    const xi = kit.list("xi");
    const kept = new Map();
    const curves = new Map();
    const start = ({ width, pooling }) => {
      const key = `${pooling}${width}`;
      if (!kept.has(key)) {
        const theta = Float64Array.from(kit.list(`start${width}`));
        const net = { N, T, d: D, m: width, tau0: width ** -0.5, pool: pooling === "sum" ? 1 : 1 / T };
        const { f, J } = jacobian(net, X, theta);
        const values = eigenvalues(gram(J, N), N);
        kept.set(key, { net, theta, f, J, top: values[N - 1], Z: forward(net, X, theta).Z });
      }
      return kept.get(key);
    };
    // Share of the loss that a step takes away, and how many pre-activations change their sign.
    const step = ({ net, theta, f, J, Z }, errors, gamma) => {
      const p = theta.length;
      const next = theta.slice();
      for (let n = 0; n < N; n++) for (let k = 0; k < p; k++) next[k] -= gamma * errors[n] * J[n * p + k];
      const after = forward(net, X, next);
      const [before, later] = [0, 0].map((_, which) => errors.reduce((sum, e, n) => sum + (e + which * (after.f[n] - f[n])) ** 2, 0));
      return { taken: 1 - later / before, crossed: after.Z.filter((z, k) => z > 0 !== Z[k] > 0).length };
    };
    kit.bet({
      question: "Labels are the network's own outputs, but for a millionth. The conditions hold. How long is the proven step 1/C, against the longest stable one, 2/lambda_max?",
      options: ["about as long", "about a tenth of it", "thousands of times shorter"],
      outcome: (state) => {
        const now = start(state);
        const loss = xi.reduce((sum, x) => sum + (10 ** state.offset * x) ** 2, 0) / 2;
        const { C } = constantsOf(now.net, X, now.theta, loss, 1);
        return `${state.bet === 2 ? "Yes." : "Look:"} here it is ${fixed((2 * C) / now.top, 0)} times shorter. At 1/C the loss falls all the same, and faster than promised.`;
      },
    });
    const row = kit.row();
    const bars = kit.chart({
      label: "conditions and step", title: "powers of ten: right of 0 a condition holds", height: 200,
      x: { range: [-8, 8], ticks: [-8, -4, 0, 4, 8], label: "log10" }, y: { range: [0.4, 3.6], ticks: [] },
    }, row);
    const taken = kit.chart({
      label: "share of the loss that one step takes", title: "share of the loss taken by one step",
      x: { range: [-1, 5], ticks: [-1, 0, 1, 2, 3, 4, 5], label: "log10 of the step in units of 1/C" }, y: { range: [1e-8, 1.5], log: true },
    }, row);
    kit.legend([[0, "taken"], [5, "taken, some signs change", true], [1, "promised", true], [3, "2/lambda_max, the limit"], [2, "conditions"]]);
    kit.slider({ key: "multiple", label: "step: 1/C times ten to the", values: POWERS });
    kit.slider({ key: "offset", label: "labels off by ten to the", min: -8, max: 0, step: 0.5 });
    const more = kit.controls();
    kit.choice({ key: "width", label: "width", options: [[20, "20"], [100, "100"], [500, "500"]], parent: more });
    kit.choice({ key: "pooling", label: "pooling", options: [["sum", "sum (proofs)"], ["mean", "mean (equation 1.2)"]], parent: more });
    return (state) => {
      const now = start(state);
      const errors = xi.map((x) => -(10 ** state.offset) * x);
      const loss = errors.reduce((sum, e) => sum + e * e, 0) / 2;
      const { alpha, two, three, C } = constantsOf(now.net, X, now.theta, loss, 1);
      const stable = Math.log10((2 * C) / now.top);
      const promise = (power) => ((10 ** power / C) * alpha * alpha) / 2;
      const gauges = [[3, "condition (2)", Math.log10(two)], [2, "condition (3)", Math.log10(three)], [1, "1/C in limits", -stable]];
      bars.begin();
      gauges.forEach(([y, words, value]) => {
        bars.rect(`bar${y}`, [0, y - 0.3], [value, y + 0.05], { series: y === 1 ? 3 : 2, strength: 0.75 });
        bars.text(`name${y}`, -7.8, y, `${words}: ${short(10 ** value)}`, { dy: -12 });
      });
      bars.end();
      const key = `${state.pooling}${state.width},${state.offset}`;
      if (!curves.has(key)) curves.set(key, POWERS.map((power) => step(now, errors, 10 ** power / C)));
      const found = curves.get(key);
      const shown = (turned) => found.map((s) => (s.taken > 0 && s.crossed > 0 === turned ? s.taken : NaN));
      taken.begin();
      taken.line("promised", [-1, 5], [promise(-1), promise(5)], { series: 1, dash: "6 4", width: 2.5 });
      taken.line("stable", [stable, stable], [1e-8, 1.5], { series: 3 });
      taken.line("taken", POWERS, shown(false), { series: 0, width: 2.5 });
      taken.line("turned", POWERS, shown(true), { series: 5, dash: "2 4", width: 2.5 });
      const here = step(now, errors, 10 ** state.multiple / C);
      taken.mark("here", state.multiple, here.taken > 0 ? here.taken : 1e-8, { series: 0, size: 6, shape: here.taken > 0 ? "circle" : "cross" });
      taken.end();
      const words = here.taken > 0 ? `takes ${fixed(here.taken, 3)} of the loss` : `raises the loss, by ${fixed(-here.taken, 3)} of it`;
      const all = N * T * state.width;
      kit.say(`Condition (2) ${two >= 1 ? "holds" : "fails"} (${short(two)}), (3) ${three >= 1 ? "holds" : "fails"} (${short(three)}); alpha = ${fixed(alpha)}. A step of ${short(10 ** state.multiple)}/C ${words}; the promised share would be ${fixed(promise(state.multiple), 3)}. ${here.crossed === 0 ? `None of ${all} pre-activations changes its sign, as the repair asks` : `${here.crossed} of ${all} pre-activations change their sign`}.${state.multiple > 0 ? " Beyond 1/C nothing is promised." : ""}`);
      Object.assign(kit.el.dataset, { two: String(two), three: String(three), step: String(10 ** state.multiple / C), taken: String(here.taken), crossed: String(here.crossed) });
    };
  },
  code: (state) => `from attnlab import models, optim, problems
from attnbook import theory

e = theory.encoder
drawn = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, rng=0)
model = models.Encoder(${state.width}, pooling="${state.pooling}", loss="half_sum")
params = model.init(drawn, rng=0)
y = model.forward(params, drawn) + 10 ** ${state.offset} * drawn.y
problem = problems.SequenceProblem(drawn.X, y)
loss, _ = model.value_and_grad(params, problem)
b = e.bars(model, problem, params, radius=1.0)
alpha, C = e.alpha(model, params, problem), e.smoothness(b, loss)
print("(2)", e.condition_2(b, alpha, loss), "(3)", e.condition_3(b, alpha, loss))
step = 10 ** ${state.multiple} / float(C)
run = optim.train(model, problem, optim.GD(step), steps=1, params=params)
print("taken", 1 - run.history["loss"][1] / run.history["loss"][0])
print("promised", 1 - e.rate(alpha, step))`,
});
