// The minimiser over a ball of radius R turns towards the max-margin direction as R grows.

import { explorable, fixed } from "./kit/kit.js";

export default explorable({
  name: "regularization_path",
  title: "Regularization path: grow the ball, watch the minimiser turn",
  defaults: { k: 0, bet: null },
  build(kit) {
    const R = kit.list("radii");
    const cosine = kit.list("cosine");
    const { values: attention, shape } = kit.data("attention"); // (radii, n, T)
    const [, n, T] = shape;
    kit.bet({
      question: "The best W in a ball of radius R: when does its direction become the max-margin one?",
      options: ["at once, for every R", "only in the limit of a large R", "never exactly, but at a finite R nearly"],
      outcome: (state) => `${state.bet >= 1 ? "Yes." : "Look again."} At R = 1 the loss still listens to every token; 1 - cosine then falls about as 1/R^2.`,
    });
    const row = kit.row();
    const angle = kit.chart({
      label: "one minus cosine by radius", title: "1 - cosine with the max-margin W",
      x: { range: [R[0], R[R.length - 1]], log: true, label: "radius R" },
      y: { range: [1e-6, 1], log: true },
    }, row);
    const bars = kit.chart({
      label: "attention at this radius", title: "attention of each sequence (a row)",
      x: { range: [0.4, T + 0.6], ticks: Array.from({ length: T }, (_, t) => t + 1), label: "token" },
      y: { range: [0, n], ticks: [] }, height: 250,
    }, row);
    kit.scrubber({ key: "k", label: "radius", times: R.map((x) => Number(x.toPrecision(3))) });
    return (state) => {
      const k = Math.min(state.k, R.length - 1);
      angle.begin();
      angle.line("path", R, cosine.map((c) => Math.max(1 - c, 1e-9)), { series: 0, width: 2.5 });
      angle.mark("here", R[k], Math.max(1 - cosine[k], 1e-9), { series: 1, size: 6 });
      angle.end();
      bars.begin();
      for (let i = 0; i < n; i++) {
        for (let t = 0; t < T; t++) {
          const share = attention[(k * n + i) * T + t];
          bars.rect(`s${i}${t}`, [t + 0.65, n - 1 - i + 0.08], [t + 1.35, n - 1 - i + 0.08 + 0.84 * share], { series: i, strength: 0.8 });
        }
      }
      bars.end();
      const least = Math.min(...Array.from({ length: n }, (_, i) => Math.max(...attention.slice((k * n + i) * T, (k * n + i + 1) * T))));
      kit.say(`R = ${fixed(R[k], 1)}: cosine ${fixed(cosine[k], 5)} with the max-margin direction; the least decided sequence puts ${fixed(least, 3)} on its first choice.`);
      kit.el.dataset.cosine = String(cosine[k]);
    };
  },
  code: () => `import numpy as np
from attnlab import models, problems, svm

problem = problems.sphere(n=3, T=4, d=5, min_gap=0.2, rng=0)
path = svm.regularization_path(models.Attention(), problem, radii=np.geomspace(0.5, 500, 40))
print(svm.correlation(path.W, svm.attention_svm(problem).W))`,
});
