// Assumption 1 as a number on the paper's own kind of data, and training that does not ask for it.

import { explorable, fixed } from "./kit/kit.js";

export default explorable({
  name: "assumption_one",
  title: "Assumption 1: what is asked, what the data have, and what training does",
  defaults: { rho: 1, d: 3, bet: null },
  build(kit) {
    const sizes = Array.from(kit.data("rho").values, (x) => Number(x.toPrecision(3)));
    const widths = kit.list("d");
    const steps = kit.list("step");
    const needed = kit.data("needed").values[0];
    const draws = kit.data("factor").shape[2];
    const at = (name, j, i, k) => kit.list(name, j, i, k)[0];
    const curve = (j, i, k) => kit.list("cosine", j, i, k);
    const each = Array.from({ length: draws }, (_, k) => k);
    const ends = (j, i) => each.map((k) => curve(j, i, k)[steps.length - 1]);
    const factors = (j, i) => each.map((k) => at("factor", j, i, k));
    const arrived = (j, i) => ends(j, i).filter((value) => value > 0.99).length;
    const count = (test) => widths.reduce((sum, _, j) => sum + sizes.reduce((s, __, i) => s + test(j, i), 0), 0);
    const all = count((j, i) => arrived(j, i));
    const cells = widths.length * sizes.length * draws;

    kit.bet({
      question: `Assumption 1 asks that tokens beat their products ${fixed(needed, 0)} times. How large must that factor be in fact for training to find the max-margin direction?`,
      options: ["close to what is asked", "around 10 to 100", "no clear threshold: even below 1 it mostly works"],
      outcome: (state) => `${state.bet === 2 ? "Yes." : "Look again."} Of all ${cells} runs here, with factors from ${fixed(Math.min(...kit.data("factor").values), 3)} to ${fixed(Math.max(...kit.data("factor").values), 1)}, ${all} pass a cosine of .99. At this place: ${arrived(state.d, state.rho)} of ${draws}.`,
    });
    const row = kit.row();
    const asked = kit.chart({
      label: "factor of Assumption 1 by rho", title: `the factor: asked ${fixed(needed, 0)}`,
      x: { range: [0.015, 1], log: true, label: "rho", ticks: sizes }, y: { range: [0.005, 1e4], log: true },
    }, row);
    const done = kit.chart({
      label: "1 - cosine during training", title: "1 - cosine of W with max margin",
      x: { range: [1, 1.15 * steps[steps.length - 1]], log: true, label: "normalized step" }, y: { range: [1e-5, 2], log: true },
    }, row);
    kit.legend([[0, `this place, ${draws} draws`], [2, "what Assumption 1 asks", true], [6, "other widths d"], [1, "cosine .99", true]]);
    const controls = kit.controls();
    kit.slider({ key: "rho", label: "rho, size of noise", values: sizes.map((_, i) => i), show: (i) => String(sizes[i]), parent: controls });
    kit.slider({ key: "d", label: "d, width", values: widths.map((_, j) => j), show: (j) => String(widths[j]), parent: controls });
    return (state) => {
      const [j, i] = [state.d, state.rho];
      asked.begin();
      asked.line("needed", [0.015, 1], [needed, needed], { series: 2, dash: "7 5", width: 2.5 });
      widths.forEach((d, other) => {
        const means = sizes.map((_, m) => factors(other, m).reduce((sum, x) => sum + x / draws, 0));
        asked.line(`d${d}`, sizes, means, { series: other === j ? 0 : 6, width: other === j ? 3 : 1, faint: other !== j });
      });
      const here = factors(j, i);
      const reached = ends(j, i);
      each.forEach((k) => asked.mark(`m${k}`, sizes[i], here[k], { series: 0, size: 5, shape: reached[k] > 0.99 ? "circle" : "cross" }));
      asked.line("gap", [sizes[i], sizes[i]], [Math.max(...here), needed], { series: 0, dash: "2 4", width: 1.5 });
      asked.end();
      done.begin();
      done.line("goal", [1, steps[steps.length - 1]], [0.01, 0.01], { series: 1, dash: "7 5" });
      each.forEach((k) => {
        const values = curve(j, i, k).map((x) => Math.max(1 - x, 1e-7));
        done.line(`c${k}`, steps.slice(1), values.slice(1), { series: 0, width: 2 });
        done.mark(`e${k}`, steps[steps.length - 1], values[steps.length - 1], { series: 0, size: 5, shape: reached[k] > 0.99 ? "circle" : "cross" });
      });
      done.end();
      const mean = here.reduce((sum, x) => sum + x / draws, 0);
      const lost = each.filter((k) => at("least", j, i, k) < 0.01).length;
      kit.say(`rho = ${sizes[i]}, d = ${widths[j]}: factor ${fixed(mean, 2)}, asked ${fixed(needed, 0)}: missed ${fixed(needed / mean, 0)} times over. After ${steps[steps.length - 1]} steps ${arrived(j, i)} of ${draws} draws have a cosine above .99 (lowest ${fixed(Math.min(...reached), 4)})${lost ? `; in ${lost} attention has left an optimal token` : ""}.`);
      kit.el.dataset.factors = JSON.stringify(here);
      kit.el.dataset.cosines = JSON.stringify(reached);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm
from attnbook import theory

rho, d = ${[0.02, 0.05, 0.15, 0.4, 0.8][state.rho]}, ${[10, 20, 40, 100, 300, 1000][state.d]}
print("asked", theory.bias.orthogonality_needed(20, 6, np.e))
for seed in range(3):
    problem = problems.orthogonal(n=20, T=6, d=d, rho=rho, rng=seed)
    B = np.linalg.norm(problem.X, axis=-1).max()
    run = optim.train(models.Attention(loss="exponential", start="zero"), problem,
                      optim.NormalizedGD(float(theory.bias.largest_step(B, 6))), 500, every=500)
    print("factor", theory.bias.orthogonality(problem),
          "cosine", svm.correlation(run.params["W"], svm.attention_svm(problem).W))`,
});
