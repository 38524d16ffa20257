// A hundred datasets in ten dimensions: W goes to the Frobenius direction, K and Q to the nuclear one.

import { explorable, fixed, make } from "./kit/kit.js";
import { plot } from "./kit/views.js";

const FORMS = ["W", "K and Q"];

export default explorable({
  name: "two_norms",
  title: "A hundred datasets: cosine with both directions",
  defaults: { k: 30 },
  build(kit) {
    const steps = kit.list("step");
    const trials = kit.data("trials").values[0];
    const curve = [0, 1].map((form) => [0, 1].map((which) => kit.list("correlation", form, which)));
    const at = (state) => Math.max(0, Math.min(state.k, steps.length - 1));
    const row = kit.row("al-grid-2");
    FORMS.forEach((name, form) => {
      const cell = make("div", {});
      row.append(cell);
      kit.caption(form ? "$K$ and $Q$ trained" : "$W$ trained", cell);
      plot(kit, {
        parent: cell, height: 240,
        x: { range: [1, steps[steps.length - 1]], log: true, label: "step" }, y: { range: [0, 1.16], ticks: [0, 0.5, 1] },
        told: (state) => `${name} trained, step ${steps[at(state)]}: cosine ${fixed(curve[form][0][at(state)], 3)} with the Frobenius direction, ${fixed(curve[form][1][at(state)], 3)} with the nuclear one`,
        lines: () => [
          { xs: steps, ys: curve[form][0], colour: "fro", name: "Frobenius", at: 0.98, dy: form ? 24 : -2, mark: "fro" },
          { xs: steps, ys: curve[form][1], colour: "nuc", name: "nuclear", at: 0.98, dy: form ? -2 : 24, dash: "7 4", mark: "nuc" },
        ],
        marks: (state) => ["fro", "nuc"].map((colour, which) => ({ x: steps[at(state)], y: curve[form][which][at(state)], colour })),
      });
    });
    kit.scrubber({ key: "k", times: steps });
    return (state) => {
      const k = at(state);
      const told = FORMS.map((name, form) => `${name}: ${fixed(curve[form][0][k], 3)} Frobenius, ${fixed(curve[form][1][k], 3)} nuclear`);
      kit.say(`Step ${steps[k]}, mean of ${trials} datasets. ${told.join(". ")}.`);
      kit.el.dataset.correlations = JSON.stringify([0, 1].map((form) => [0, 1].map((which) => curve[form][which][k])));
    };
  },
  code: () => `from attnbook import figures

data = figures.get("svm.7").run(trials=100)
figures.get("svm.7").draw(data)`,
});
