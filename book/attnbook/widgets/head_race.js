// H heads from a zero start on the tokenized mixture: loss, attention, margin, and a sample's map.

import { softmax } from "./kit/core.js";
import { explorable, fixed } from "./kit/kit.js";

const RULES = [[0, "step 1"], [1, "step .3 √H"], [2, "Adam .06"]];
const SHOWN = [["attention", "attention"], ["margin", "margin"], ["test", "test loss"]];
const WORDS = { attention: "attention on the relevant token", margin: "margin / ‖U‖", test: "test loss" };
const PYTHON = [(H) => "optim.GD(1.0)", (H) => `optim.GD(0.3 * ${H} ** 0.5)`, () => "optim.Adam(0.06)"];

export default explorable({
  name: "head_race",
  title: "A race of heads on the tokenized mixture",
  defaults: { k: 30, H: 16, rule: 0, shown: "attention", bet: null },
  build(kit) {
    const steps = Array.from(kit.data("step").values);
    const heads = Array.from(kit.data("heads").values).map((H) => (H === 0 ? Infinity : H)); // 0: the limit
    const tokens = kit.data("X");
    const [T, d] = tokens.shape;
    const relevant = Array.from(kit.data("relevant").values);
    const ceiling = kit.data("ceiling").values[0];
    const X = Array.from({ length: T }, (_, t) => Array.from(tokens.values.slice(t * d, (t + 1) * d)));
    const name = (H) => (Number.isFinite(H) ? String(H) : "∞");
    const curve = (what, rule, j) => {
      const from = (rule * heads.length + j) * steps.length;
      return Array.from(kit.data(what).values.slice(from, from + steps.length));
    };
    const stops = heads.map((H) => (Number.isFinite(H) ? H : 0));
    kit.bet({
      question: "Gradient descent with step 1 for every number of heads, all from zero. Which loss falls fastest?",
      options: ["one head", "64 heads", "all the same"],
      outcome: ({ bet }) => `${bet === 0 ? "Yes." : "Look again."} With one step size, more heads are slower, because the step of W is H times smaller. With step .3 √H it turns around, up to 16 heads, at the price of margin.`,
    });
    const row = kit.row();
    const loss = kit.chart({
      label: "training loss over steps", title: "training loss",
      x: { range: [1, 1.12 * steps[steps.length - 1]], log: true, label: "step" }, y: { range: [1e-5, 10], log: true, label: "loss" },
    }, row);
    const other = kit.chart({
      label: "another quantity over steps", title: "second chart: attention, margin or test loss",
      x: { range: [1, 1.12 * steps[steps.length - 1]], log: true, label: "step" }, y: { range: [0, 1] },
    }, row);
    const below = kit.row();
    below.style.marginTop = "0.6rem";
    const map = kit.chart({
      label: "attention map of one sample", title: "attention of a sample: filled by weight", square: true,
      x: { range: [0.5, T + 0.5], ticks: X.map((_, t) => t + 1), label: "key (triangle: relevant)" },
      y: { range: [0.2, T + 0.5], ticks: X.map((_, t) => t + 1), label: "query" },
    }, below);
    const side = kit.row("al-column");
    below.append(side);
    side.style.flex = "1 1 280px";
    kit.legend([[1, "the chosen H"], [0, "one head"], [2, "H = ∞: W frozen at 0", true], [6, "the others"]], side);
    const place = () => {
      const controls = kit.controls();
      side.append(controls);
      return controls;
    };
    kit.scrubber({ key: "k", times: steps, parent: place() });
    kit.slider({ key: "H", label: "heads H", values: stops, show: (H) => (H === 0 ? "∞" : String(H)), parent: place() });
    kit.choice({ key: "rule", label: "rule", options: RULES, parent: place() });
    kit.choice({ key: "shown", label: "second chart", options: SHOWN, parent: place() });
    return (state) => {
      const k = Math.min(state.k, steps.length - 1);
      const rule = state.rule;
      const asked = Math.max(0, stops.indexOf(state.H));
      const chosen = rule > 0 && stops[asked] === 0 ? asked - 1 : asked; // these steps have no limit
      const ranges = { attention: [0, 1], margin: [0, 5], test: [1e-5, 10] };
      other.options.y = { log: state.shown === "test", label: WORDS[state.shown] };
      other.key = null;
      other.range({ y: rule === 2 && state.shown === "test" ? [1e-12, 10] : ranges[state.shown] });
      loss.range({ y: rule === 2 ? [1e-12, 10] : [1e-5, 10] });
      const pick = (j) => (j === chosen ? { series: 1, width: 3.5 }
        : j === 0 ? { series: 0, width: 2 }
          : stops[j] === 0 ? { series: 2, width: 2, dash: "6 4" } : { series: 6, width: 1 });
      const order = heads.map((_, j) => j).filter((j) => j !== chosen).concat(chosen);
      [[loss, "train"], [other, state.shown]].forEach(([chart, what]) => {
        chart.begin();
        if (what === "margin") {
          chart.line("ceiling", [1, steps[steps.length - 1]], [ceiling, ceiling], { series: 3, dash: "2 4" });
          chart.text("ceiling-name", 1.15, ceiling, "γ_attn", { series: 3, dy: -6 });
        }
        order.forEach((j) => {
          if (rule > 0 && stops[j] === 0) return;
          const line = curve(what, rule, j);
          chart.line(`h${j}`, steps, line, pick(j));
          if (j === chosen) chart.mark("at", steps[k], line[k], { series: 1, size: 5 });
        });
        chart.end();
      });
      const all = kit.data("W");
      const from = ((rule * heads.length + chosen) * steps.length + k) * d * d;
      const W = Array.from(all.values.slice(from, from + d * d));
      const weights = X.map((z) => softmax(X.map((x) => x.reduce((sum, xa, a) => sum + xa * z.reduce((s, zb, b) => s + W[a * d + b] * zb, 0), 0))));
      map.begin();
      weights.forEach((line, t) => line.forEach((p, s) => map.rect(`p${t}-${s}`, [s + 0.54, t + 0.54], [s + 1.46, t + 1.46], { series: 0, strength: 0.04 + 0.96 * p })));
      relevant.forEach((yes, s) => { if (yes) map.mark(`r${s}`, s + 1, 0.36, { series: 1, shape: "triangle", size: 5 }); });
      map.end();
      const now = (what) => curve(what, rule, chosen)[k];
      const note = chosen !== asked ? "This rule has no limit for H → ∞: shown are 64 heads. " : "";
      const mass = weights.reduce((sum, line) => sum + line.reduce((s, p, j) => s + (relevant[j] ? p : 0), 0), 0) / T;
      kit.say(`${note}Step ${steps[k]}, H = ${name(heads[chosen])}: training loss ${now("train").toExponential(2)}, test loss ${now("test").toExponential(2)}, test error ${fixed(100 * now("error"), 1)} %. Attention on relevant tokens ${fixed(now("attention"), 3)} (this sample ${fixed(mass, 3)}), margin ${fixed(now("margin"), 3)}; γ_attn is ${fixed(ceiling, 3)}.`);
      kit.el.dataset.now = JSON.stringify(["train", "test", "attention", "margin"].map(now));
      kit.el.dataset.mass = String(mass);
      kit.el.dataset.ends = JSON.stringify(heads.map((_, j) => curve("train", rule, j)[steps.length - 1]));
    };
  },
  code: ({ H, rule }) => (H === 0
    ? `from attnbook import widgets

race = widgets.HeadRace(rng=0)
print(race.limit)  # training loss when W stays at 0: logistic regression on mean tokens`
    : `from attnlab import models, optim
from attnbook import widgets

race = widgets.HeadRace(rng=0)
run = optim.train(models.MultiHead(heads=${H}), race.problem, ${PYTHON[rule](H)}, race.steps)
print(run.history["loss"][-1])`),
});
