// From a zero start H heads are one head with two learning rates: two runs on one picture.

import { trainHeads, twinRates } from "./kit/equal_heads.js";
import { explorable, fixed } from "./kit/kit.js";

const HEADS = [1, 2, 4, 8, 16];
const STEPS = 120;
const RULES = [["gd", "gradient descent"], ["momentum", "momentum .9"], ["adam", "Adam"]];
const PYTHON = {
  gd: (eta) => `optim.GD(${eta})`,
  momentum: (eta) => `optim.Momentum(${eta}, 0.9)`,
  adam: (eta) => `optim.Adam(${eta})`,
};

const sized = (value) => (value === 0 ? "0" : value < 1e-3 ? value.toExponential(1) : value.toFixed(5));

export default explorable({
  name: "one_head_twin",
  title: "Heads that coincide: many heads and their one-head twin",
  defaults: { H: 16, rule: "gd", eta: 1, kick: 0, twin: "on", eps: "scaled", bet: null },
  build(kit) {
    const { shape, values } = kit.data("X");
    const problem = { X: Float64Array.from(values), y: Array.from(kit.data("y").values), T: shape[1], d: shape[2] };
    const sizes = [problem.T * problem.d, problem.d ** 2];
    const steps = Array.from({ length: STEPS }, (_, k) => k + 1);
    const starts = {}; // standard normal numbers for each number of heads, as attnlab draws them
    let at = 0;
    HEADS.forEach((H) => {
      starts[H] = sizes.map((size) => {
        const found = kit.data("starts").values.slice(at, at + H * size);
        at += H * size;
        return Array.from(found);
      });
    });
    let known = { key: "" };
    const runs = ({ H, rule, eta, kick, eps }) => {
      const key = JSON.stringify([H, rule, eta, kick, eps]);
      if (known.key === key) return known;
      const [U0, W0] = starts[H].map((part) => part.map((x) => kick * x));
      const many = trainHeads(problem, { H, rule, etaU: eta, etaW: eta, steps: STEPS, U0, W0 });
      const one = trainHeads(problem, { H: 1, rule, ...twinRates(rule, eta, H, eps), steps: STEPS });
      known = { key, many, one };
      return known;
    };
    kit.bet({
      question: "All heads start at zero. What do 16 heads do that one head cannot?",
      options: ["look at different tokens", "average out noise", "nothing: one head with two learning rates does the same"],
      outcome: (state) => {
        const { many, one } = runs(state);
        const away = Math.max(...many.losses.map((x, k) => Math.abs(x - one.losses[k])));
        return `${state.bet === 2 ? "Yes." : "Look again."} From a zero start the heads receive equal gradients and stay equal. ${state.kick === 0 ? "Here" : "With this random start"} the largest difference of the losses is ${sized(away)}.`;
      },
    });
    const row = kit.row();
    const loss = kit.chart({
      label: "training loss of many heads and of one head", title: "training loss",
      x: { range: [1, STEPS], log: true, label: "step" }, y: { range: [1e-4, 2], log: true, label: "loss" },
    }, row);
    const norms = kit.chart({
      label: "norm of W of each head, and of the twin", title: "‖W‖ of each head",
      x: { range: [1, STEPS], log: true, label: "step" }, y: { range: [1e-4, 10], log: true, label: "‖W‖" },
    }, row);
    kit.legend([[0, "the H heads (‖W‖: one line each)"], [1, "one head, two rates (dots)", true]]);
    const first = kit.controls();
    kit.slider({ key: "H", label: "heads H", values: HEADS, show: String, parent: first });
    kit.slider({ key: "eta", label: "step size", values: [0.03, 0.1, 0.3, 1, 2], show: String, parent: first });
    kit.slider({ key: "kick", label: "random start", values: [0, 1e-6, 1e-3, 0.01, 0.1, 0.3], show: String, parent: first });
    const second = kit.controls();
    kit.choice({ key: "rule", label: "rule", options: RULES, parent: second });
    kit.choice({ key: "twin", label: "twin", options: [["on", "show"], ["off", "hide"]], parent: second });
    kit.choice({ key: "eps", label: "the twin's ε (Adam)", options: [["scaled", "√H and H times"], ["same", "the same"]], parent: second });
    return (state) => {
      const { H, rule, eta, kick, twin, eps } = state;
      const { many, one } = runs(state);
      const rates = twinRates(rule, eta, H, eps);
      const drawn = (line) => line.slice(1).map((x) => (x > 0 ? x : NaN));
      const least = Math.min(...many.losses, ...one.losses);
      loss.range({ y: [10 ** Math.floor(Math.log10(Math.max(least, 1e-12))), 10 ** Math.max(0.3, Math.ceil(Math.log10(Math.max(...many.losses, ...one.losses))))] });
      const top = Math.max(...many.normW.flat(), ...one.normW[0]);
      norms.range({ y: [1e-4, 10 ** Math.max(1, Math.ceil(Math.log10(top)))] });
      loss.begin();
      norms.begin();
      loss.line("many", steps, drawn(many.losses), { series: 0, width: 8 });
      many.normW.forEach((line, h) => norms.line(`head${h}`, steps, drawn(line), { series: 0, width: kick === 0 ? 8 : 1.5 }));
      if (twin === "on") {
        loss.line("one", steps, drawn(one.losses), { series: 1, dash: "1 9", width: 5 });
        norms.line("twin", steps, drawn(one.normW[0]), { series: 1, dash: "1 9", width: 5 });
      }
      loss.end();
      norms.end();
      const away = Math.max(...many.losses.map((x, k) => Math.abs(x - one.losses[k])));
      const ends = many.normW.map((line) => line[STEPS]);
      const spread = Math.max(...ends) - Math.min(...ends);
      const heads = H === 1 ? "1 head" : `${H} heads`;
      const added = rule === "adam" ? `, with ε of ${rates.epsU.toExponential(1)} and ${rates.epsW.toExponential(1)} in place of 1e-8` : "";
      kit.say(`${heads}, step ${eta}: loss ${sized(many.losses[STEPS])} after ${STEPS} steps. One head with step ${fixed(rates.etaU, 3)} for its readout and ${fixed(rates.etaW, 4)} for W${added}: ${sized(one.losses[STEPS])}. Largest difference over all steps ${sized(away)}; the lengths of the W differ by ${sized(spread)} from head to head.`);
      kit.el.dataset.many = String(many.losses[STEPS]);
      kit.el.dataset.one = String(one.losses[STEPS]);
      kit.el.dataset.away = String(away);
      kit.el.dataset.spread = String(spread);
      kit.el.dataset.eps = JSON.stringify(rule === "adam" ? [rates.epsU, rates.epsW] : []);
    };
  },
  code: ({ H, rule, eta, kick, eps }) => `from attnlab import models, optim
from attnbook import theory, widgets

problem = widgets.OneHeadTwin().problem
model = models.MultiHead(heads=${H}${kick === 0 ? "" : `, start="gaussian", scale=${kick}`})
run = optim.train(model, problem, ${PYTHON[rule](eta)}, ${STEPS}, rng=0)
print(run.history["loss"][-1])
print(theory.multihead.one_head_steps(${eta}, ${H}, rule="${rule === "adam" ? "adam" : "gd"}"))${rule === "adam" ? `
print("eps of the twin:", ${eps === "scaled" ? `1e-8 * ${H} ** 0.5, 1e-8 * ${H}` : "1e-8, 1e-8"})` : ""}`,
});
