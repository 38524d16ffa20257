// Lemma 6: a concave head asks for several tokens, like water over a floor of steps. The bars are
// the best weights; a softmax comes as close as one likes to the zeros among them.

import { waterFilling } from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";

export default explorable({
  name: "water_filling",
  title: "Water-filling: how many tokens does a concave head select?",
  defaults: { lambda: 0.3, gamma: [1, 0.8, 0.55, 0.3, 0], tau: 2, bet: null },
  build(kit) {
    kit.bet({
      question: "The penalty lambda grows. When does a second token get its share: at the printed threshold, the first score gap?",
      options: ["at the gap", "earlier, at half the gap", "later, at twice the gap"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} The printed condition is sufficient; the sharp one is half the gap.`,
    });
    const row = kit.row();
    const bars = kit.chart({
      label: "scores and weights", title: "drag the scores; filled: the best weights",
      x: { range: [0.4, 5.6], ticks: [1, 2, 3, 4, 5], label: "token" }, y: { range: [-0.1, 1.25], label: "score, weight" },
    }, row);
    const count = kit.chart({
      label: "number of selected tokens by lambda", title: "selected tokens",
      x: { range: [0, 1.5], label: "lambda" }, y: { range: [0, 5.4], ticks: [1, 2, 3, 4, 5] },
    }, row);
    const handles = [0, 1, 2, 3, 4].map((t) => bars.handle(`g${t}`, {
      series: 1, shape: "diamond", size: 7, label: `score of token ${t + 1}`,
      move: (_, y) => {
        const gamma = kit.state.gamma.slice();
        gamma[t] = Math.max(0, Math.min(1.2, y));
        kit.set({ gamma });
      },
      tell: () => fixed(kit.state.gamma[t]),
    }));
    kit.legend([[0, "best weight (a softmax only approaches 0)"], [1, "score"], [2, "sharp thresholds"], [3, "printed thresholds", true]]);
    kit.slider({ key: "lambda", label: "penalty lambda", min: 0.02, max: 1.5, step: 0.02 });
    kit.slider({ key: "tau", label: "at most tau tokens", min: 2, max: 4, step: 1, show: String });
    return (state) => {
      const s = waterFilling(state.gamma, state.lambda);
      const g = state.gamma.slice().sort((a, b) => b - a);
      const low = (g[0] - g[1]) / 2;
      const high = g.slice(0, state.tau).reduce((sum, x) => sum + x - g[state.tau], 0) / 2;
      const printed = [g[0] - g[1], (state.tau * (g[state.tau - 1] - g[state.tau])) / 2];
      bars.begin();
      s.forEach((weight, t) => {
        bars.rect(`s${t}`, [t + 0.7, 0], [t + 1.3, weight], { series: 0, strength: 0.75 });
        handles[t].put(t + 1, state.gamma[t]);
      });
      bars.end();
      const grid = Array.from({ length: 150 }, (_, k) => (k + 1) / 100);
      count.begin();
      count.line("n", grid, grid.map((l) => waterFilling(state.gamma, l).filter((x) => x > 0).length), { series: 0, width: 2.5 });
      [low, high].forEach((x, k) => count.line(`sharp${k}`, [x, x], [0, 5.4], { series: 2 }));
      printed.forEach((x, k) => count.line(`printed${k}`, [x, x], [0, 5.4], { series: 3, dash: "5 4" }));
      const selected = s.filter((x) => x > 0).length;
      count.mark("here", state.lambda, selected, { series: 0, size: 6 });
      count.end();
      kit.say(`lambda = ${fixed(state.lambda)}: ${selected} token${selected === 1 ? "" : "s"} selected, weights ${s.map((x) => fixed(x, 3)).join(", ")}. Two or more from ${fixed(low, 3)} (printed ${fixed(printed[0], 3)}); at most ${state.tau} up to ${fixed(high, 3)} (printed ${fixed(printed[1], 3)}).${printed[0] < printed[1] ? "" : " The printed range is empty for these scores: condition (8) does not hold, and the lemma says nothing."}`);
      kit.el.dataset.empty = String(!(printed[0] < printed[1]));
      kit.el.dataset.weights = JSON.stringify(s);
    };
  },
  code: (state) => `from attnbook import theory

scores = ${python(state.gamma)}
print(theory.svm.water_filling(scores, ${state.lambda}))
print(theory.svm.thresholds(scores, tokens=${state.tau}))`,
});
