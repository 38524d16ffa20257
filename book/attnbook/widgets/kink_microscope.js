// A neuron at the kink of relu: there the first step raises the loss, however small it is.

import { constantsOf, kinkStep } from "./kit/encoder_small.js";
import { explorable, fixed } from "./kit/kit.js";

const COS = 0.6;
const Q = 0.4;
const ERRORS = [1e-7, -0.5e-7 * COS];
const SIN = Math.sqrt(1 - COS * COS);
const NET = { N: 2, T: 1, d: 2, m: 3, tau0: 3 ** -0.5, pool: 1 };
const TOKENS = [1, 0, COS, SIN];

export default explorable({
  name: "kink_microscope",
  title: "The kink under the microscope: Proposition 1 as printed, and one neuron",
  defaults: { power: -17, multiple: 1, w: 12, bet: null },
  build(kit) {
    const spec = (state) => ({ cos: COS, p: -(10 ** state.power), q: Q, w: state.w, e: ERRORS });
    const constants = (state) => {
      const dual = [[1, -COS / SIN], [0, 1 / SIN]];
      const own = [0, 1].flatMap((k) => dual[k].map((value, a) => value - 0.1 * dual[1 - k][a]));
      const theta = [...Array(12).fill(0), -(10 ** state.power), Q, ...own, state.w, 0, 0];
      return constantsOf(NET, TOKENS, theta, (ERRORS[0] ** 2 + ERRORS[1] ** 2) / 2, 1);
    };
    const first = (state) => kinkStep(spec(state), state.multiple / constants(state).C);
    kit.bet({
      question: "Conditions (2) and (3) hold, and the step is 1/C. One neuron has the pre-activation -1e-17 for one sample. Does the first step lower the loss?",
      options: ["yes, as Proposition 1 says", "no, but a smaller step would", "no, and a step a thousand times smaller would not either"],
      outcome: (state) => {
        const { growth } = first(state);
        return `${state.bet === 2 ? "Yes:" : "Look:"} at -1e-17 and weight 12 the loss rises at 1/C and at 1/(1000 C) alike. As the controls stand now it ${growth > 0 ? "rises" : "falls"}.`;
      },
    });
    const row = kit.row();
    const curve = kit.chart({
      label: "relative change of the loss by step", title: "change of the loss in one step, in thousandths (drag)",
      x: { range: [0, 2], label: "step in units of 1/C" }, y: { range: [-4, 6] },
    }, row);
    const relu = kit.chart({
      label: "relu at the neuron's pre-activation", title: "relu of the neuron for sample 1, near the kink",
      x: { range: [-2, 2], label: "pre-activation, in units of the move" }, y: { range: [-0.3, 2] },
    }, row);
    kit.legend([[0, "what happens"], [1, "tangent at the start", true], [2, "promised", true], [3, "pre-activation before (square)"], [4, "after (circle)"]]);
    const handle = curve.handle("step", {
      series: 0, shape: "diamond", size: 8, label: "step in units of 1/C",
      move: (x) => kit.set({ multiple: Math.max(0.01, Math.min(2, x)) }),
      tell: () => `${fixed(kit.state.multiple)} of 1/C`,
    });
    kit.slider({ key: "power", label: "before: minus ten to the", min: -17, max: -4, step: 0.25 });
    kit.slider({ key: "w", label: "output weight of the neuron", min: 0, max: 20, step: 0.5 });
    return (state) => {
      const { C, alpha, two, three } = constants(state);
      const xs = Array.from({ length: 101 }, (_, k) => k / 50);
      const all = xs.map((x) => kinkStep(spec(state), x / C));
      const now = first(state);
      const promised = ((state.multiple / C) * alpha * alpha) / 2;
      const crossed = now.before[0] > 0 !== now.after[0] > 0;
      const reach = Math.max(...all.map((s) => Math.abs(s.growth)), all[100].slope * 2 / C) * 1e3 * 1.1;
      curve.range({ x: [0, 2], y: [-reach, reach] });
      curve.begin();
      curve.line("tangent", [0, 2], [0, -1e3 * now.slope * 2 / C], { series: 1, dash: "6 4", width: 2 });
      curve.line("promise", [0, 2], [0, -1e3 * alpha * alpha / C], { series: 2, dash: "2 4", width: 2.5 });
      curve.line("loss", xs, all.map((s) => 1e3 * s.growth), { series: 0, width: 2.5 });
      handle.put(state.multiple, 1e3 * now.growth);
      curve.end();
      const move = Math.abs(now.after[0] - now.before[0]) || 1;
      relu.begin();
      relu.line("relu", [-2, 0, 2], [0, 0, 2], { series: 5, width: 2 });
      const place = (z) => Math.max(-1.95, Math.min(1.95, z / move));
      [["before", 3, "square"], ["after", 4, "circle"]].forEach(([when, series, shape]) => {
        const x = place(now[when][0]);
        relu.mark(when, x, Math.max(x, 0), { series, shape, size: 6 });
      });
      relu.end();
      const sign = now.growth > 0 ? "rises" : "falls";
      kit.say(`Condition (2) ${fixed(two, 0)}, (3) ${fixed(three, 0)}: ${two >= 1 && three >= 1 ? "both hold" : "not both hold"}. A step of ${fixed(state.multiple)}/C moves the pre-activation from ${now.before[0].toExponential(1)} to ${now.after[0].toExponential(1)}${crossed ? ", across the kink" : ": no sign changes"}. The loss ${sign} by ${Math.abs(now.growth).toExponential(2)} of itself; Proposition 1 promises a fall by ${promised.toExponential(2)}.`);
      Object.assign(kit.el.dataset, { growth: String(now.growth), promised: String(promised), crossed: String(crossed), two: String(two), three: String(three) });
    };
  },
  code: (state) => `from attnlab import optim
from attnbook import theory, widgets

model, params, problem = widgets.KinkMicroscope.instance(-(10 ** ${state.power}), w=${state.w})
e = theory.encoder
loss, _ = model.value_and_grad(params, problem)
b = e.bars(model, problem, params, radius=1.0)
alpha = e.alpha(model, params, problem)
step = ${Number(state.multiple.toFixed(4))} / float(e.smoothness(b, loss))
run = optim.train(model, problem, optim.GD(step), steps=1, params=params)
print("the loss changes by", run.history["loss"][1] / run.history["loss"][0] - 1)
print("promised", e.rate(alpha, step) - 1)
print("(2)", e.condition_2(b, alpha, loss), " (3)", e.condition_3(b, alpha, loss))`,
});
