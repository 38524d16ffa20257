// Heads and steps that Theorems 3 and 4 ask for, next to what training needs.

import { explorable, fixed } from "./kit/kit.js";
import { thBudget, thSpread } from "./kit/training_heads.js";

const POWERS = Array.from({ length: 41 }, (_, k) => 10 ** (k / 2));
const AWAY = Array.from({ length: 53 }, (_, k) => Number((0.05 * 10 ** (k / 20)).toPrecision(3)));
const size = (value) => (value < 1e4 ? String(Math.ceil(value)) : value.toExponential(1));

export default explorable({
  name: "head_budget",
  title: "Head budget: what the theorems ask for, and what training needs",
  defaults: { delta: 5, T: 10, d: 4, R: 2.3, K: 1000, bet: null },
  build(kit) {
    const gamma = kit.data("gamma").values[0];
    const step = Array.from(kit.data("step").values);
    const loss = Array.from(kit.data("loss").values);
    const of = (state) => thBudget({ ...state, gamma });
    const data = { T: 10, d: 4, R: kit.initial.R }; // of the mixture on which one head was trained
    const when = (level) => step.find((_, k) => loss[k] <= level);
    const by = (k) => (k === undefined ? `not within ${step[step.length - 1]} steps` : `by step ${k}`);
    kit.bet({
      question: "One head with step 1 reaches a small loss on the mixture within a few dozen steps. How many heads does Theorem 3 ask for, for a target at this distance?",
      options: ["fewer than 100", "between 100 and a million", "more than a million"],
      outcome: (state) => {
        const { heads } = of(state);
        const right = heads < 100 ? 0 : heads <= 1e6 ? 1 : 2;
        return `${state.bet === right ? "Yes." : "Look again."} For this target it asks for ${size(heads)} heads: the count grows like the sixth power of the distance.`;
      },
    });
    const row = kit.row();
    const count = kit.chart({
      label: "heads asked for by distance of the target", title: "heads asked for (circle: here)",
      x: { range: [0.05, 20], log: true, ticks: [0.1, 1, 10], label: "distance of the target" },
      y: { range: [1, 1e30], log: true, label: "heads" },
    }, row);
    const promise = kit.chart({
      label: "loss by number of steps", title: "loss: promised, and reached by one head",
      x: { range: [1, 1e20], log: true, label: "steps" }, y: { range: [1e-5, 1e15], log: true, ticks: [1e-5, 1, 1e5, 1e10, 1e15], label: "loss" },
    }, row);
    kit.legend([[0, "Theorem 3 (training)", true], [1, "Theorem 4 (generalization)", true], [2, "Theorem 3 without d (ours)", true], [4, "one head trained with step 1"], [3, "the target's loss", true]]);
    const [first, second] = [kit.controls(), kit.controls()];
    kit.slider({ key: "delta", label: "distance", values: AWAY, show: (x) => fixed(x, x < 1 ? 3 : 2), parent: first });
    kit.slider({ key: "K", label: "steps K", values: POWERS, show: size, parent: first });
    kit.slider({ key: "T", label: "tokens T", values: [2, 5, 10, 20, 50, 100, 500, 1000], show: String, parent: second });
    kit.slider({ key: "d", label: "features d", values: [1, 2, 4, 8, 16, 64, 256, 1024], show: String, parent: second });
    kit.slider({ key: "R", label: "longest token R", min: 1, max: 5, step: 0.1, show: (x) => fixed(x, 1), parent: second });
    return (state) => {
      const found = of(state);
      const sizes = { T: state.T, d: state.d, R: state.R };
      count.begin();
      [[0, 36, false, "8 4"], [1, 256, false, "2 4"], [2, 36, true, "12 3 2 3"]].forEach(([series, constant, sharp, dash]) => {
        count.line(`h${series}`, AWAY, AWAY.map((x) => thSpread(x, sizes, constant, sharp)), { series, dash, width: 2.5 });
      });
      count.line("one", [0.05, 20], [1.3, 1.3], { series: 4, width: 3 });
      count.mark("here", state.delta, found.heads, { series: 0, size: 6 });
      count.end();
      promise.begin();
      const line = POWERS.map((K) => of({ ...state, K }).bound);
      promise.line("bound", POWERS, line, { series: 0, dash: "8 4", width: 2.5 });
      promise.line("target", [1, 1e20], [found.loss, found.loss], { series: 3, dash: "3 3" });
      promise.line("run", step.map((k) => Math.max(k, 1)), loss, { series: 4, width: 3 });
      promise.mark("at", state.K, Math.min(found.bound, 5e14), { series: 0, size: 6 });
      promise.end();
      const promised = 3.25 * found.loss;
      const news = promised < Math.LN2;
      const told = news
        ? `One head with step 1 had the promised loss ${by(when(promised))}, the target's ${by(when(found.loss))}.`
        : `That is no less than log 2, the loss at step 0. One head with step 1 had the target's loss ${by(when(found.loss))}.`;
      const moved = Object.keys(data).some((name) => state[name] !== data[name]);
      const whose = moved ? ` The target and the run are still those of the mixture, with T = ${data.T}, d = ${data.d} and R = ${fixed(data.R, 1)}.` : "";
      kit.say(`A target at distance ${fixed(state.delta)} has a loss of at most ${fixed(found.loss, 3)}. Theorem 3 asks for ${size(found.heads)} heads (without d: ${size(found.sharp)}), Theorem 4 for ${size(found.generalization)}, and steps of at most ${found.eta.toExponential(1)}. After ${size(state.K)} steps the promised mean loss is ${fixed(found.bound, 3)}; ${fixed(promised, 3)} is promised from step ${size(found.full)} on. ${told}${whose}`);
      kit.el.dataset.budget = JSON.stringify({ ...found, promised, news, reached: [promised, found.loss].map((level) => when(level) ?? null) });
    };
  },
  code: (state) => `from attnbook import theory

sizes = dict(T=${state.T}, d=${state.d}, R=${state.R})
distance = ${state.delta}
for purpose in ("training", "generalization"):
    fewest = max(1.0, theory.multihead.H_min(distance, 0.0, **sizes, purpose=purpose))
    norm = distance / fewest**0.5  # the longest head of a target that is spread evenly
    H = theory.multihead.H_min(distance, norm, **sizes, purpose=purpose)
    rho = theory.multihead.rho(distance, norm, **sizes, H=max(1.0, H))
    print(f"{purpose}: {H:.2e} heads, step at most {1 / rho:.1e}")`,
});
