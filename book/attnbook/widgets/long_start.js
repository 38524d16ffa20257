// The one picture's data from a start of any length in a wrong direction: does training come back?

import { explorable, fixed } from "./kit/kit.js";
import { percent } from "./kit/view.js";
import { plot } from "./kit/views.js";

export default explorable({
  name: "long_start",
  title: "Start in a wrong direction",
  defaults: { which: 0, i: 5 },
  build(kit) {
    const lengths = kit.list("lengths");
    const steps = kit.list("steps");
    const last = steps.length - 1;
    const cosines = (state, way) => steps.map((_, k) => kit.list("cosines", state.which, state.i, k)[way]);
    const least = (state) => kit.list("least", state.which, state.i);
    const row = kit.row("al-grid-2");
    const [left, right] = [document.createElement("div"), document.createElement("div")];
    row.append(left, right);
    kit.caption("cosine of $W$ with two directions", left);
    plot(kit, {
      parent: left, height: 240, x: { range: [1, steps[last]], log: true, label: "step" }, y: { range: [0, 1.05] },
      told: (state) => `After ${steps[last]} steps: cosine with the max-margin direction ${fixed(cosines(state, 0)[last], 3)}, with the direction of the start ${fixed(cosines(state, 1)[last], 3)}.`,
      lines: (state) => [
        { xs: steps, ys: cosines(state, 0), colour: "fro", name: "max margin", at: 0.55, dy: 18 },
        { xs: steps, ys: cosines(state, 1), colour: "violation", name: "start", at: 0.15, dy: -2 },
      ],
    });
    kit.caption("least attention on a best token", right);
    plot(kit, {
      parent: right, height: 240, x: { range: [1, steps[last]], log: true, label: "step" }, y: { range: [0, 1.05], show: (v) => percent(v) },
      told: (state) => `Least attention on a best token after ${steps[last]} steps: ${percent(least(state)[last])}.`,
      lines: (state) => [{ xs: steps, ys: least(state), colour: "best" }],
    });
    const controls = kit.controls();
    kit.choice({ key: "which", label: "other tokens", options: [[0, "1, 4, 1, 1"], [1, "2, 4, 1, 1"]], parent: controls });
    kit.slider({ key: "i", label: "length of the start", values: lengths.map((_, k) => k), show: (k) => String(lengths[k]), parent: controls });
    return (state) => {
      const end = least(state)[last];
      kit.say(`A start of length ${lengths[state.i]}: after ${steps[last]} steps ${end > 0.5 ? "every best token is chosen" : "some best token is not chosen"} (least attention ${percent(end)}).`);
      kit.el.dataset.least = String(end);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.sphere(n=4, T=4, d=6, min_gap=0.2, rng=6)
wrong = svm.attention_svm(problem, np.array(${state.which ? "[1, 3, 0, 0]" : "[0, 3, 0, 0]"}))
start = {"W": ${[0.5, 1, 1.5, 2, 3, 4, 5, 6, 8, 10][state.i]} * wrong.W / wrong.norm}
run = optim.train(models.Attention(), problem, optim.NormalizedGD(0.05), 4000, params=start)
print(svm.classify(run).tokens, problem.optimal)`,
});
