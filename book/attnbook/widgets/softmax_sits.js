// Where attention starts: initialisation, token length, tau_0 and width set the spread of the logits.

import { explorable, fixed } from "./kit/kit.js";
import { softmax } from "./kit/softmax.js";

const NAMES = { lecun: "LeCun", he: "He", ntk: "NTK" };

export default explorable({
  name: "softmax_sits",
  title: "Where does the softmax sit? Ten tokens at the start, nothing trained",
  defaults: { init: "lecun", a: 0.5, r: 1, width: 1000, bet: null },
  build(kit) {
    const widths = kit.list("widths");
    const { shape: [, samples, T], values } = kit.data("logits"); // spread 1, (widths, samples, T, T)
    const eta = (init) => ({ lecun: 1, he: 2, ntk: 100 })[init] / 100; // d = 100 features
    const spread = (s) => s.width ** (0.5 - s.a) * eta(s.init) * 10 ** (2 * s.r);
    kit.bet({
      question: "LeCun weights, width 1000, tau_0 = width^-1/2, tokens of length 10. Now scale the tokens to length 1, as one does with data. What will attention do at the start?",
      options: ["nothing changes: softmax is normalised", "it blurs a little", "it becomes a plain mean of the tokens"],
      outcome: (state) => `${state.bet === 2 ? "Yes." : "Look again."} For LeCun weights the logits' deviation falls from 1 to 1/d = 0.01 at that width, and at every other. Here it is ${fixed(spread(state), 3)}.`,
    });
    const row = kit.row();
    const map = kit.chart({
      label: "deviation of the logits over scaling and token length", title: "drag: scaling and token length; lines of equal deviation",
      x: { range: [0.45, 1.05], ticks: [0.5, 0.6, 0.7, 0.8, 0.9, 1], label: "a in tau_0 = width^-a" },
      y: { range: [-0.1, 1.1], ticks: [0, 0.25, 0.5, 0.75, 1], label: "log10 of token length" },
    }, row);
    const bars = kit.chart({
      label: "attention of the first token", title: "attention row of the first token",
      x: { range: [0.4, T + 0.6], ticks: [1, 2, 4, 6, 8, 10], label: "attended token" }, y: { range: [0, 1], label: "weight" },
    }, row);
    kit.legend([[0, "attention row"], [3, "a plain mean", true], [2, "deviation 0.1", true], [1, "deviation 1"], [4, "deviation 10", true]]);
    const handle = map.handle("here", {
      series: 5, shape: "diamond", size: 8, label: "scaling and token length",
      move: (x, y) => kit.set({ a: Math.min(1, Math.max(0.5, x)), r: Math.min(1, Math.max(0, y)) }),
      tell: () => `a ${fixed(kit.state.a)}, length ${fixed(10 ** kit.state.r)}`,
    });
    kit.choice({ key: "init", label: "weights", options: Object.entries(NAMES) });
    kit.slider({ key: "width", label: "width", values: widths, show: String });
    return (state) => {
      const s = spread(state);
      const k = Math.max(0, widths.indexOf(state.width));
      const unit = values.subarray(k * samples * T * T, (k + 1) * samples * T * T);
      const rows = Array.from({ length: samples * T }, (_, i) =>
        softmax(Array.from(unit.subarray(i * T, (i + 1) * T), (x) => s * x)));
      const mean = (of) => rows.reduce((sum, b) => sum + of(b), 0) / rows.length;
      const tokens = mean((b) => Math.exp(-b.reduce((sum, x) => sum + (x > 0 ? x * Math.log(x) : 0), 0)));
      const length = mean((b) => Math.hypot(...b));
      map.begin();
      [[0.1, 2, "2 4"], [1, 1, ""], [10, 4, "7 4"]].forEach(([level, series, dash]) => {
        const xs = [0.45, 1.05];
        const ys = xs.map((a) => Math.log10(level / (eta(state.init) * state.width ** (0.5 - a))) / 2);
        map.line(`at${level}`, xs, ys, { series, dash, width: 2.5 });
      });
      handle.put(state.a, state.r);
      map.end();
      bars.begin();
      rows[0].forEach((weight, t) => bars.rect(`b${t}`, [t + 0.7, 0], [t + 1.3, weight], { series: 0, strength: 0.8 }));
      bars.line("mean", [0.4, T + 0.6], [1 / T, 1 / T], { series: 3, dash: "6 4", width: 2 });
      bars.end();
      const word = tokens > 9.9 ? "a plain mean" : tokens > 5 ? "a soft weighting" : tokens > 1.5 ? "a few tokens" : "a choice of one";
      kit.say(`${NAMES[state.init]}, width ${state.width}, tau_0 = width^-${fixed(state.a)}, tokens of length ${fixed(10 ** state.r)}: logits deviate by ${fixed(s, 3)} (variance ${fixed(s * s, 4)}). On average a row spreads over ${fixed(tokens, 2)} of ${T} tokens: ${word}. Its length is ${fixed(length, 3)}, between ${fixed(T ** -0.5, 3)} and 1.`);
      Object.assign(kit.el.dataset, { row: JSON.stringify(rows[0]), deviation: String(s), tokens: String(tokens) });
    };
  },
  code: (state) => `from attnlab import models, problems
from attnbook import theory

drawn = problems.gaussian_regression(n=8, T=10, d=100, unit_tokens=True, rng=0)
size = 10 ** ${Number(state.r.toFixed(4))}
problem = problems.SequenceProblem(size * drawn.X, drawn.y)
model = models.Encoder(${state.width}, "${state.init}", scaling=${state.width} ** -${Number(state.a.toFixed(4))})
print("variance of a logit", theory.encoder.logit_variance(model, 100, size, size))
print(model.attention(model.init(problem, rng=1), problem)[0, 0].round(3))`,
});
