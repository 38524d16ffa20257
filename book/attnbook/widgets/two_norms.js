// W goes to the Frobenius direction, K and Q to the nuclear one: two curves that swap.

import { explorable, fixed } from "./kit/kit.js";

const FORMS = ["W", "K and Q"];
const NORMS = ["Frobenius", "nuclear"];

export default explorable({
  name: "two_norms",
  title: "W or K and Q: two parameterisations, two directions",
  defaults: { k: 30, form: 0, bet: null },
  build(kit) {
    const steps = kit.list("step");
    const trials = kit.data("trials").values[0];
    const curve = (form, which) => kit.list("correlation", form, which);
    kit.bet({
      question: "The same attention, written as W or as K times Q. Do both end in the same direction?",
      options: ["yes: the function class is the same", "no: each has a norm of its own"],
      outcome: (state) => `${state.bet === 1 ? "Yes, they differ." : "Look again."} Training W maximises the margin in the Frobenius norm, training K and Q in the nuclear norm.`,
    });
    const row = kit.row();
    const charts = FORMS.map((name) => kit.chart({
      label: `cosine when ${name} is trained`, title: `${name} trained: cosine with both`,
      x: { range: [1, steps[steps.length - 1]], log: true, label: "step" }, y: { range: [0, 1.02] },
    }, row));
    kit.legend([[0, "with the Frobenius direction"], [1, "with the nuclear direction", true]]);
    kit.scrubber({ key: "k", times: steps });
    return (state) => {
      const k = Math.min(state.k, steps.length - 1);
      charts.forEach((chart, form) => {
        chart.begin();
        NORMS.forEach((_, which) => {
          const line = curve(form, which);
          const look = { series: which, dash: which ? "6 4" : "", width: 2.5 };
          chart.line(`all${which}`, steps, line, { ...look, faint: true });
          chart.line(`to${which}`, steps.slice(0, k + 1), line.slice(0, k + 1), look);
          chart.mark(`at${which}`, steps[k], line[k], { series: which, size: 5 });
        });
        chart.end();
      });
      const told = FORMS.map((name, form) => `${name}: ${fixed(curve(form, 0)[k], 3)} Frobenius, ${fixed(curve(form, 1)[k], 3)} nuclear`);
      kit.say(`Step ${steps[k]}, mean of ${trials} trials. ${told.join(". ")}.`);
      kit.el.dataset.correlations = JSON.stringify([0, 1].map((form) => [0, 1].map((which) => curve(form, which)[k])));
    };
  },
  code: () => `from attnbook import figures

data = figures.get("svm.7").run(trials=100)
figures.get("svm.7").draw(data)`,
});
