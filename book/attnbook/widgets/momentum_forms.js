// Momentum in both of its forms, beside one plain step that is 1 / (1 - beta) times as long.

import { explorable, fixed } from "./kit/kit.js";

const FORMS = ["plain step", "heavy ball", "averaged", "plain, longer step"];
const SHAPES = ["circle", "triangle", "square", "diamond"];
const DASHES = ["", "2 3", "7 4", "9 3 2 3"];

let stepsSeen = []; // for the code to copy

export default explorable({
  name: "momentum_forms",
  title: "Two forms of momentum, and one longer step",
  defaults: { k: 110, beta: 0.9, kind: 0, clock: 0, bet: null },
  build(kit) {
    const steps = kit.list("step");
    stepsSeen = steps;
    const betas = Array.from(kit.data("betas").values, (b) => Number(b.toPrecision(3)));
    const count = steps.length;
    // (kind: plain, then three a beta; [miss, norm]; times)
    const part = (kind, beta, form, which) => {
      const run = kind * (1 + 3 * betas.length) + (form ? 3 * betas.indexOf(beta) + form : 0);
      return kit.list("values", run, which);
    };
    kit.bet({
      question: "Heavy-ball momentum 0.9 is far ahead of the plain step. Against a plain step ten times as long, it is",
      options: ["still far ahead", "nearly the same", "behind: momentum overshoots"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} Choose "step x length" as clock: all four curves fall on one line, but for a short lag of the ones with momentum.`,
    });
    const row = kit.row();
    const make = (which, label, range) => [0, 1].map((clock) => kit.chart({
      label, title: label,
      x: { range: clock ? [0.02, 1000] : [1, steps[count - 1]], log: true, label: clock ? "step x effective length" : "step" },
      y: { range, log: true },
    }, row));
    const charts = [make(0, "1 - cosine with the max-margin W", [1e-4, 1.5]), make(1, "norm of W", [0.02, 1000])];
    kit.legend(FORMS.map((name, f) => [f, name, f > 0]));
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.slider({ key: "beta", label: "momentum beta", values: betas, parent: controls });
    kit.choice({ key: "kind", label: "gradient", options: [[0, "normalized"], [1, "plain"]], parent: controls });
    kit.choice({ key: "clock", label: "clock", options: [[0, "steps"], [1, "step x length"]], parent: controls });
    return (state) => {
      const k = Math.min(state.k, count - 1);
      const size = state.kind ? 0.25 : 0.025;
      const beta = betas.includes(state.beta) ? state.beta : 0.9;
      const gain = 1 / (1 - beta);
      const lengths = [size, size * gain, size, size * gain];
      charts.forEach((pair, which) => pair.forEach((chart, clock) => {
        chart.root.parentNode.style.display = clock === state.clock ? "" : "none";
        if (clock !== state.clock) return;
        const scale = state.kind ? 0.1 : 1; // step sizes of plain gradients are ten times larger
        chart.begin();
        FORMS.forEach((_, form) => {
          const line = part(state.kind, beta, form, which).map((v, j) => (steps[j] > 0 ? v : NaN));
          const clockOf = clock ? steps.map((t) => t * lengths[form] * scale) : steps;
          const look = { series: form, dash: DASHES[form], width: form === 3 ? 1.8 : 2.6 };
          chart.line(`all${form}`, clockOf, line, { ...look, faint: true });
          chart.line(`to${form}`, clockOf.slice(0, k + 1), line.slice(0, k + 1), look);
          if (steps[k] > 0) chart.mark(`at${form}`, clockOf[k], line[k], { series: form, shape: SHAPES[form], size: 5 });
        });
        chart.end();
      }));
      const misses = FORMS.map((_, form) => part(state.kind, beta, form, 0)[k]);
      const sizes = FORMS.map((_, form) => part(state.kind, beta, form, 1)[k]);
      kit.say(`Step ${steps[k]}, beta ${beta}: 1 - cosine is ${misses.map((value, f) => `${fixed(value, 4)} (${FORMS[f]})`).join(", ")}. Heavy ball's steps of ${fixed(size, 3)} add up to ${fixed(size * gain, 3)}: |W| = ${fixed(sizes[1], 2)} against ${fixed(sizes[3], 2)} by plain steps of that length, which need no warm-up of ${fixed(beta * gain, 0)} steps.`);
      kit.el.dataset.misses = JSON.stringify(misses);
      kit.el.dataset.norms = JSON.stringify(sizes);
      kit.el.dataset.step = String(steps[k]);
    };
  },
  code: (state) => {
    const gain = Number((1 / (1 - state.beta)).toPrecision(6));
    const share = Number((1 - state.beta).toPrecision(6));
    const rules = state.kind
      ? ["optim.GD(0.25)", `optim.Momentum(0.25, ${state.beta})`, `optim.Momentum(0.25 * ${share}, ${state.beta})`, `optim.GD(0.25 * ${gain})`]
      : ["optim.NormalizedGD(0.025)", `optim.NormalizedGD(0.025, momentum=${state.beta})`,
        `optim.NormalizedGD(0.025, momentum=${state.beta}, averaged=True)`, `optim.NormalizedGD(0.025 * ${gain})`];
    return `from attnlab import models, optim, problems, svm

problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
goal = svm.attention_svm(problem)
model = models.Attention(loss="exponential", start="zero")
for rule in (
    ${rules.join(",\n    ")},
):
    run = optim.train(model, problem, rule, steps=${stepsSeen[Math.min(state.k, stepsSeen.length - 1)]})
    print(rule, 1 - svm.correlation(run.params["W"], goal.W))`;
  },
});
