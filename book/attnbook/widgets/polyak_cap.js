// What the Polyak rule asks for, what its cap lets through, and where that leads.

import { explorable, fixed } from "./kit/kit.js";

const CAPS = ["1", "10 (paper)", "100", "300", "1000", "1e4", "1e6", "none"];
const LIMITS = [1, 10, 100, 300, 1000, 1e4, 1e6, Infinity];

let stepsSeen = []; // for the code to copy

export default explorable({
  name: "polyak_cap",
  title: "The Polyak step and its cap",
  defaults: { cap: 1, k: 110, bet: null },
  build(kit) {
    const steps = kit.list("step");
    stepsSeen = steps;
    const others = kit.data("others").values;
    const width = kit.data("width").values[0];
    const count = steps.length;
    const part = (cap, which) => kit.list("values", cap, which); // 0: log10 asked, 1: log10 length, 2: miss
    const late = (line) => line.map((value, j) => (steps[j] > 0 ? value : NaN));
    kit.bet({
      question: "The paper caps the Polyak step at 10 on these data. When does the cap begin to bind?",
      options: ["never in 2000 steps", "once attention has saturated", "at the very first step"],
      outcome: (state) => `${state.bet === 2 ? "Yes." : "Look again."} At zero the rule asks for a step of 404, and it never asks for less than 200 on these data: with a cap of 10 it is gradient descent with step 10 from the start.`,
    });
    const row = kit.row();
    const x = { range: [1, steps[count - 1]], log: true, label: "step" };
    const left = kit.chart({
      label: "step size by step", title: "step size: asked for and taken",
      x, y: { range: [0.3, 1e8], log: true },
    }, row);
    const right = kit.chart({
      label: "one minus cosine by step", title: "1 - cosine with the max-margin W",
      x, y: { range: [1e-6, 1.5], log: true },
    }, row);
    kit.legend([[0, "asked for by the rule", true], [1, "taken; the rule with this cap (thin: others)"], [3, "the cap", true], [2, "gradient descent, step 0.25", true], [4, "normalized, step 0.025", true]]);
    kit.slider({ key: "cap", label: "cap on the step", min: 0, max: CAPS.length - 1, step: 1, show: (c) => CAPS[c] });
    kit.scrubber({ key: "k", times: steps });
    return (state) => {
      const k = Math.min(state.k, count - 1);
      const cap = LIMITS[state.cap];
      const asked = part(state.cap, 0);
      const taken = asked.map((value) => Math.min(value, Math.log10(cap)));
      const miss = part(state.cap, 2);
      const show = (line) => late(line).map((value) => 10 ** Math.min(value, 9));
      left.begin();
      left.line("asked", steps, show(asked), { series: 0, dash: "6 4", width: 2.5 });
      left.line("taken", steps, show(taken), { series: 1, width: 2.5 });
      if (Number.isFinite(cap)) left.line("cap", [1, steps[count - 1]], [cap, cap], { series: 3, dash: "3 7", width: 2.5 }); // over the line taken
      left.mark("at", Math.max(steps[k], 1), 10 ** Math.min(taken[k], 9), { series: 1, size: 6 });
      left.end();
      right.begin();
      CAPS.forEach((_, c) => { if (c !== state.cap) right.line(`other${c}`, steps, late(part(c, 2)), { series: 1, faint: true, width: 1.2 }); });
      [2, 4].forEach((series, r) => right.line(`rule${r}`, steps, late(Array.from(others.slice(r * count, (r + 1) * count))), { series, dash: r ? "2 4" : "9 4", width: 2 }));
      right.line("miss", steps, late(miss), { series: 1, width: 2.5 });
      right.mark("here", Math.max(steps[k], 1), miss[k], { series: 1, size: 6 });
      right.end();
      const bound = asked.filter((value) => value >= Math.log10(cap) - 1e-6).length / count;
      const first = asked.findIndex((value) => value >= Math.log10(cap) - 1e-6);
      const tell = first < 0 ? "It binds nowhere." : `It binds at ${bound === 1 ? "every recorded step" : `${Math.round(100 * bound)} of 100 recorded steps, first at step ${steps[first]}`}.`;
      const big = (log) => (log > 5 ? `10^${fixed(log, 1)}` : fixed(10 ** log, 0));
      const length = 10 ** part(state.cap, 1)[k];
      kit.say(`Cap ${CAPS[state.cap]}, step ${steps[k]}: the rule asks for ${big(asked[k])} and takes ${big(taken[k])}; W moves by ${fixed(length, 3)} (Lambda / 2 is ${fixed(width / 2, 3)}); 1 - cosine ${miss[k].toExponential(2)}. ${tell}`);
      Object.assign(kit.el.dataset, {
        asked: String(asked[k]), taken: String(taken[k]), length: String(length),
        miss: String(miss[k]), bound: String(bound), step: String(steps[k]),
      });
    };
  },
  code: (state) => `from attnlab import models, optim, problems, svm

problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
model = models.Attention(loss="exponential", start="zero")
rule = optim.PolyakStep(max_step=${Number.isFinite(LIMITS[state.cap]) ? LIMITS[state.cap].toFixed(1) : "None"})
run = optim.train(model, problem, rule, steps=${stepsSeen[Math.min(state.k, stepsSeen.length - 1)]})
print(1 - svm.correlation(run.params["W"], svm.attention_svm(problem).W))`,
});
