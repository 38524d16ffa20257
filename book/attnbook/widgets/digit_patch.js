// Figure 9 of the bias paper over a kept run: one digit among noise, three ways to take a step.

import { explorable, fixed } from "./kit/kit.js";
import { power } from "./kit/view.js";

const NAMES = ["gradient descent", "normalized, exact gradients", "normalized, plain gradients"];
const SERIES = [0, 1, 2];
const DASHES = ["", "", "6 4"];
const SHAPES = ["circle", "square", "triangle"];
const MEASURES = ["1 − cosine with the max-margin W", "mean attention on the digit", "loss above its floor"];

export default explorable({
  name: "digit_patch",
  title: "One digit among five patches of noise",
  defaults: { k: 63, gd: 0, ngd: 1, measure: 1, guide: 1, bet: null },
  build(kit) {
    const steps = kit.list("step");
    const [gd, ngd] = [kit.list("gd"), kit.list("ngd")];
    const draws = kit.list("draws")[0];
    const last = steps.length - 1;
    const place = (state) => [state.gd, gd.length + state.ngd, gd.length + ngd.length + state.ngd];
    const curve = (rule, measure) => kit.list("curves", rule, measure);
    kit.bet({
      question: "Six patches; one holds a handwritten 0 or 1, the others noise. Only attention is trained. Two runs take normalized steps of the same length from the same start. One forms its gradient by the formula, in 64-bit numbers; the other forms the same gradient without a subtraction that cancels. Soon nearly all attention is on the digit. What does the run with the plain formula do from there?",
      options: ["Nothing else: both formulas are right", "It stops turning towards the max-margin W", "It leaves the digit for a patch of noise"],
      outcome: (state) => {
        const [, exact, plain] = place({ gd: 0, ngd: 1 }).map((rule) => [curve(rule, 0)[last], curve(rule, 1)[last]]);
        return `${state.bet === 1 ? "Yes." : "Look again."} After ${steps[last].toLocaleString("en")} steps its miss, one minus the cosine, is ${power(plain[0])}; with exact gradients it is ${power(exact[0])}. Attention sits on the digit in both. Where it rounds to 1, the plain formula subtracts equal numbers, and what is left has no direction.`;
      },
    });
    const row = kit.row();
    const x = { range: [1, steps[last]], log: true, label: "step" };
    const main = kit.chart({ label: "one minus cosine by step", title: MEASURES[0], x, y: { range: [1e-6, 1.2], log: true } }, row);
    const others = [1, 2].map((m) => kit.chart({
      label: `${MEASURES[m]} by step`, title: MEASURES[m], x, y: m === 1 ? { range: [0, 1] } : { range: [1e-14, 1], log: true },
    }, row));
    kit.legend([...NAMES.map((name, r) => [SERIES[r], name, Boolean(DASHES[r])]), [5, "guide", true]]);
    kit.scrubber({ key: "k", times: steps });
    kit.slider({ key: "gd", label: "step size of gradient descent", min: 0, max: gd.length - 1, step: 1, show: (k) => String(gd[k]) });
    kit.slider({ key: "ngd", label: "length of a normalized step", min: 0, max: ngd.length - 1, step: 1, show: (k) => String(ngd[k]) });
    const controls = kit.controls();
    kit.choice({ key: "measure", label: "second chart", options: [[1, "attention"], [2, "loss"]], parent: controls });
    kit.choice({ key: "guide", label: "guide", options: [[0, "none"], [1, "(log t)²/t, Theorem 5"]], parent: controls });
    const theory = (t) => Math.log(t) ** 2 / t;
    const from = steps.findIndex((t) => t >= 30);
    return (state) => {
      const k = Math.max(0, Math.min(state.k, last));
      const rules = place({ gd: Math.max(0, Math.min(state.gd, gd.length - 1)), ngd: Math.max(0, Math.min(state.ngd, ngd.length - 1)) });
      others.forEach((chart, m) => { chart.root.parentNode.style.display = m + 1 === state.measure ? "" : "none"; });
      [[main, 0], [others[state.measure - 1] || others[0], state.measure]].forEach(([chart, measure]) => {
        chart.begin();
        rules.forEach((rule, r) => {
          const line = curve(rule, measure).map((value) => (measure !== 1 && !(value > 0) ? NaN : value));
          const look = { series: SERIES[r], dash: DASHES[r], width: 2.2 };
          chart.line(`all${r}`, steps, line, { ...look, faint: true });
          chart.line(`to${r}`, steps.slice(0, k + 1), line.slice(0, k + 1), look);
          if (Number.isFinite(line[k])) chart.mark(`at${r}`, steps[k], line[k], { series: SERIES[r], shape: SHAPES[r], size: 5 });
        });
        if (measure === 0 && state.guide) {
          const anchor = curve(rules[1], 0)[from] / theory(steps[from]);
          chart.line("guide", steps, steps.map((t) => (t >= steps[from] ? anchor * theory(t) : NaN)), { series: 5, dash: "2 5", width: 2 });
        }
        chart.end();
      });
      const misses = rules.map((rule) => curve(rule, 0)[k]);
      const shares = rules.map((rule) => curve(rule, 1)[k]);
      kit.say(`Step ${steps[k].toLocaleString("en")}, mean of ${draws} draws. 1 − cosine: ${misses.map((value, r) => `${power(value)} (${NAMES[r]})`).join(", ")}. Attention on the digit: ${shares.map((value) => fixed(value, 3)).join(", ")}.`);
      kit.el.dataset.misses = JSON.stringify(misses);
      kit.el.dataset.attention = JSON.stringify(shares);
      kit.el.dataset.step = String(steps[k]);
    };
  },
  code: () => `from attnbook import figures

figure = figures.get("bias.9")
data = figures.kept("bias.9")  # or figure.run(), with the extra "real": MNIST is fetched once
print(figure.verdict(data))
print(data["step"][0, -1], data["cosine"][..., -1].mean(axis=0).round(5))
figure.draw(data)`,
});
