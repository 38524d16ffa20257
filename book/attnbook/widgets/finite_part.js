// Several tokens at once: W is a finite part plus R times a direction. The finite part decides how
// the selected tokens share, the direction how the others die.

import { logits } from "./kit/core.js";
import { explorable, fixed } from "./kit/kit.js";
import { softmax } from "./kit/softmax.js";

export default explorable({
  name: "finite_part",
  title: "Finite and infinite part: R grows, the selected tokens keep their shares",
  defaults: { R: 4, bet: null },
  build(kit) {
    const read = (name) => {
      const { shape, values } = kit.data(name);
      const fold = (sizes, at) => (sizes.length === 1
        ? Array.from(values.slice(at, at + sizes[0]))
        : Array.from({ length: sizes[0] }, (_, k) => fold(sizes.slice(1), at + k * sizes.slice(1).reduce((a, b) => a * b, 1))));
      return fold(shape, 0);
    };
    const problem = { X: read("X"), z: read("z") };
    const [finite, direction] = [read("finite"), read("direction")];
    const selected = read("selected");
    const [n, T] = [problem.X.length, problem.X[0].length];
    kit.bet({
      question: "R is doubled. What happens to the shares of the selected tokens among themselves?",
      options: ["they sharpen: one of them wins", "they stay as they are"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} The direction gives selected tokens equal logits; only the masked ones fall, like exp(-R times the margin).`,
    });
    const row = kit.row();
    const bars = kit.chart({
      label: "softmax by token", title: "attention of each sequence (a row)",
      x: { range: [0.4, T + 0.6], ticks: Array.from({ length: T }, (_, t) => t + 1), label: "token" }, y: { range: [0, n], ticks: [] },
    }, row);
    const decay = kit.chart({
      label: "largest masked weight by R", title: "largest masked weight",
      x: { range: [0, 60], label: "R" }, y: { range: [1e-12, 1], log: true },
    }, row);
    kit.legend([[0, "selected token"], [1, "masked token"]]);
    kit.slider({ key: "R", label: "R", min: 0, max: 60, step: 0.5, show: (x) => fixed(x, 1) });
    const at = (R) => {
      const W = finite.map((line, a) => line.map((x, b) => x + R * direction[a][b]));
      return logits(problem, W).map(softmax);
    };
    const masked = (s) => Math.max(...s.flatMap((line, i) => line.filter((_, t) => !selected[i][t])));
    const grid = Array.from({ length: 61 }, (_, k) => k);
    const curve = grid.map((R) => masked(at(R)));
    return (state) => {
      const s = at(state.R);
      bars.begin();
      s.forEach((line, i) => line.forEach((share, t) => {
        const base = n - 1 - i + 0.06;
        bars.rect(`s${i}${t}`, [t + 0.65, base], [t + 1.35, base + 0.86 * share], { series: selected[i][t] ? 0 : 1, strength: 0.8 });
        if (selected[i][t]) bars.mark(`o${i}${t}`, t + 1, base + 0.9 * share, { series: 0, size: 4, hollow: true });
      }));
      bars.end();
      decay.begin().line("curve", grid, curve, { series: 1, width: 2.5 });
      decay.mark("here", state.R, masked(s), { series: 1, size: 6 }).end();
      const shares = s.map((line, i) => {
        const kept = line.filter((_, t) => selected[i][t]);
        const sum = kept.reduce((a, b) => a + b, 0);
        return kept.map((x) => fixed(x / sum, 3)).join(" : ");
      });
      kit.say(`R = ${fixed(state.R, 1)}: among themselves the selected tokens share ${shares.join("; ")}. The largest masked weight is ${masked(s).toExponential(1)}.`);
      kit.el.dataset.shares = shares.join(";");
      kit.el.dataset.masked = String(masked(s));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, problems, svm

problem = problems.sphere(n=2, T=4, d=8, rng=0)
selected = np.array([[True, True, False, False], [False, True, True, False]])
shares = np.where(selected, [[0.7, 0.3, 0, 0], [0, 0.4, 0.6, 0]], 0.0)
finite = svm.finite_component(problem, shares, selected=selected)
general = svm.general_svm(problem, selected=selected)
W = finite + ${state.R} * general.W / general.norm
print(models.Attention().attention({"W": W}, problem).round(4))`,
});
