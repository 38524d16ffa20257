// Six step rules on the same heads from a zero start: the loss, and the length it is paid with.

import { explorable, fixed } from "./kit/kit.js";

const RULES = ["GD, step 1", "GD, step 0.3 root H", "momentum", "Adam", "normalized GD", "Polyak"];
const DASHES = ["", "8 4", "2 4", "12 3 2 3", "", "6 3"];
const HEADS = [1, 4, 16, 64];

export default explorable({
  name: "step_rules",
  title: "Step rules: how fast, how far, with which margin",
  defaults: { k: 40, H: 16, level: 0.001, rule: 0, bet: null },
  build(kit) {
    const step = Array.from(kit.data("step").values);
    const ceiling = kit.data("ceiling").values[0];
    const times = step.length;
    const of = (name, H, rule) => {
      const from = (HEADS.indexOf(H) * RULES.length + rule) * times;
      return Array.from(kit.data(name).values.slice(from, from + times));
    };
    const price = (state) => RULES.map((_, rule) => {
      const k = of("loss", state.H, rule).findIndex((value) => value <= state.level);
      return k < 0 ? null : { k, step: step[k], length: of("length", state.H, rule)[k], margin: of("margin", state.H, rule)[k] };
    });
    kit.bet({
      question: "All six rules start at zero. Which of them reaches a given small loss with the shortest parameters?",
      options: RULES,
      outcome: (state) => {
        const paid = price(state);
        const found = paid.map((entry, rule) => [entry ? entry.length : Infinity, rule]).sort((a, b) => a[0] - b[0])[0];
        if (!Number.isFinite(found[0])) return "Nobody has reached this loss in these steps: choose a larger one.";
        return `${state.bet === found[1] ? "Yes." : "Look again."} A loss of ${fixed(state.level, 2)} with ${state.H} heads is cheapest for ${RULES[found[1]]}: length ${fixed(found[0], 2)} when it first gets there.`;
      },
    });
    const row = kit.row();
    const loss = kit.chart({
      label: "training loss by step", title: "training loss",
      x: { range: [1, step[times - 1]], log: true, label: "step" }, y: { range: [1e-12, 3], log: true, label: "loss" },
    }, row);
    const margin = kit.chart({
      label: "margin by distance from the start", title: "margin paid for with distance",
      x: { range: [0.3, 60], log: true, ticks: [0.3, 1, 3, 10, 30], label: "distance from the start" }, y: { range: [-0.2, 4.8], label: "margin" },
    }, row);
    kit.legend(RULES.map((name, rule) => [rule, name, DASHES[rule] !== ""]));
    kit.scrubber({ key: "k", times: step });
    kit.slider({ key: "level", label: "price of a loss of", values: Array.from({ length: 10 }, (_, k) => Number(`1e-${k + 1}`)), show: (x) => x.toExponential(0) });
    const controls = kit.controls();
    kit.choice({ key: "H", label: "heads", options: HEADS.map((H) => [H, String(H)]), parent: controls });
    kit.choice({ key: "rule", label: "tell of", options: RULES.map((name, rule) => [rule, name]), parent: controls });
    return (state) => {
      const k = Math.min(state.k, times - 1);
      const paid = price(state);
      loss.begin();
      margin.begin();
      loss.line("level", [1, step[times - 1]], [state.level, state.level], { series: 6, dash: "3 3", width: 1.5 });
      margin.line("ceiling", [0.3, 60], [ceiling, ceiling], { series: 6, dash: "3 3", width: 1.5 });
      RULES.forEach((_, rule) => {
        const look = { series: rule, dash: DASHES[rule], width: rule === state.rule ? 4 : 2 };
        const [l, far, m] = ["loss", "length", "margin"].map((name) => of(name, state.H, rule));
        const there = l.map((value) => Math.max(value, 1e-13)); // what is lower runs along the bottom
        loss.line(`f${rule}`, step, there, { ...look, faint: true });
        loss.line(`l${rule}`, step.slice(0, k + 1), there.slice(0, k + 1), look);
        margin.line(`g${rule}`, far.slice(1), m.slice(1), { ...look, faint: true });
        margin.line(`m${rule}`, far.slice(1, k + 1), m.slice(1, k + 1), look);
        if (paid[rule] && paid[rule].k > 0) margin.mark(`p${rule}`, paid[rule].length, paid[rule].margin, { series: rule, shape: "diamond", size: 5 });
      });
      margin.text("top", 0.33, ceiling, "attention on relevant tokens only", { dy: -5 });
      loss.end();
      margin.end();
      const [l, far, w, m] = ["loss", "length", "length_W", "margin"].map((name) => of(name, state.H, state.rule)[k]);
      const told = RULES.map((name, rule) => `${name} ${paid[rule] ? `${fixed(paid[rule].length, 1)} (step ${paid[rule].step})` : "not reached"}`);
      kit.say(`${state.H} heads, step ${step[k]}, ${RULES[state.rule]}: loss ${fixed(l, 2)}, distance ${fixed(far, 2)} of which W has ${fixed(w, 2)}, margin ${fixed(m, 3)} (γ_attn is ${fixed(ceiling, 3)}). Distance paid for a loss of ${state.level.toExponential(0)} (diamonds): ${told.join("; ")}.`);
      kit.el.dataset.found = JSON.stringify({ loss: l, length: far, margin: m, paid: paid.map((entry) => (entry ? entry.length : null)) });
    };
  },
  code: (state) => `from attnlab import optim, models, problems
from attnbook.widgets import training_heads

rule = list(training_heads.rules(${state.H}).values())[${state.rule}]
seq = problems.tokenized_mixture(n=60, rng=0)
run = optim.train(models.MultiHead(heads=${state.H}), seq, rule, steps=300)
print(rule, run.history["loss"][-1])`,
});
