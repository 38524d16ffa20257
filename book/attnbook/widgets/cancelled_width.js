// Theorem 2: which width meets conditions (2) and (3), if weights may move by width^a?

import { leastWidth, marginsAt } from "./kit/encoder_conditions.js";
import { explorable, fixed } from "./kit/kit.js";

const WIDTHS = Array.from({ length: 43 }, (_, k) => 10 ** (1 + 0.5 * k));
const SAMPLES = Array.from({ length: 13 }, (_, k) => Math.round(10 ** (0.5 + 0.25 * k)));
const STOPS = [...Array.from({ length: 15 }, (_, k) => Number((0.05 * k).toFixed(2))), 0.75];
const told = (width) => (Number.isFinite(width) ? width.toExponential(1) : "none up to 1e40");

export default explorable({
  name: "cancelled_width",
  title: "The width that cancels: conditions (2) and (3) under the NTK start",
  defaults: { a: 0, N: 100, alpha: "corrected", bet: null },
  build(kit) {
    kit.bet({
      question: "Weights may move by C = 1, as in the paper, and alpha squared is counted rightly. Which width meets condition (2)?",
      options: ["of order N", "of order N cubed", "none"],
      outcome: (state) => {
        const ends = [1e2, 1e6, 1e12].map((width) => fixed(marginsAt(width, state.N, 0, false)[0], 6));
        return `${state.bet === 2 ? "Yes, none." : "Look again."} With C = 1 and N = ${state.N} its margin is ${ends.join(", ")} at widths 1e2, 1e6, 1e12: it does not grow, and 1 is asked for.`;
      },
    });
    const row = kit.row();
    const margins = kit.chart({
      label: "margins of both conditions by width", title: "margin: left over right side; met from 1 on",
      x: { range: [10, 1e22], log: true, label: "width d_m" }, y: { range: [1e-9, 1e5], log: true }, height: 270,
    }, row);
    const counts = kit.chart({
      label: "least width that meets both conditions, by number of samples", title: "least width that meets both",
      x: { range: [3, 3200], log: true, label: "samples N" }, y: { range: [1, 1e25], log: true }, height: 270,
    }, row);
    kit.legend([[0, "condition (2)"], [1, "condition (3)", true], [2, "least width"], [6, "guides: 1; N, N^3 from the left end", true]]);
    kit.slider({ key: "N", label: "samples N", values: SAMPLES, show: String });
    kit.slider({ key: "a", label: "C = d_m^a, a =", values: STOPS, show: (a) => fixed(a, 2) });
    kit.choice({ key: "alpha", label: "alpha squared", options: [["corrected", "lambda_0 / 4"], ["printed", "printed: d_m lambda_0 / 4"]] });
    return (state) => {
      const printed = state.alpha === "printed";
      const lines = [0, 1].map((which) => WIDTHS.map((width) => marginsAt(width, state.N, state.a, printed)[which]));
      const power = lines.map((line) => Math.log10(line[42] / line[36]) / 3);
      margins.begin().line("one", [10, 1e22], [1, 1], { series: 6, dash: "2 5", width: 1.5 });
      lines.forEach((line, i) => margins.line(`c${i}`, WIDTHS, line, { series: i, dash: i ? "8 4" : "", width: 2.5 }));
      const least = leastWidth(state.N, state.a, printed);
      if (Number.isFinite(least)) margins.mark("least", least, 1, { series: 2, shape: "diamond", size: 6 });
      margins.end();
      const curve = SAMPLES.map((n) => leastWidth(n, state.a, printed));
      counts.begin();
      const start = Number.isFinite(curve[0]) ? curve[0] : 10;
      [1, 3].forEach((p) => counts.line(`g${p}`, SAMPLES, SAMPLES.map((n) => start * (n / SAMPLES[0]) ** p), { series: 6, dash: "2 5", width: 1.5 }));
      counts.line("least", SAMPLES, curve, { series: 2, width: 2.5 });
      if (Number.isFinite(least)) counts.mark("here", state.N, least, { series: 2, shape: "diamond", size: 6 });
      else counts.text("none", 100, 1e15, "no width up to 1e40", { series: 2, anchor: "middle" });
      counts.end();
      const grows = power.map((p) => (Math.abs(p) < 0.005 ? "does not change" : `goes like d_m^${fixed(p, 2)}`));
      const order = Number.isFinite(curve[12]) && Number.isFinite(curve[8]) ? Math.log(curve[12] / curve[8]) / Math.log(SAMPLES[12] / SAMPLES[8]) : Infinity;
      kit.say(`Weights may move by d_m^${fixed(state.a, 2)}, N = ${state.N}${printed ? ", alpha as printed" : ""}. At large width the margin of (2) ${grows[0]}, that of (3) ${grows[1]}. Least width that meets both: ${told(least)}${Number.isFinite(order) ? `, of order N^${fixed(order, 1)}` : ""}.`);
      kit.el.dataset.power = JSON.stringify(power);
      kit.el.dataset.least = String(least);
      kit.el.dataset.order = String(order);
    };
  },
  code: (state) => `import numpy as np
from attnbook import theory

N, a, T = ${state.N}, ${state.a}, 2
for width in np.logspace(2, 14, 5):
    C, one = width**a, np.array(1.0)
    size = np.array(np.sqrt(width) + C)
    bars = theory.encoder.Bars(N, T, one, 1 / width, width**-0.5, Q=size, K=size, V=size, O=size)
    alpha = np.sqrt(${state.alpha === "printed" ? "width * " : ""}1 / T / 4)
    two = theory.encoder.condition_2(bars, alpha, N / 2, C)
    three = theory.encoder.condition_3(bars, alpha, N / 2)
    print(f"width {width:.0e}: (2) {two:.2e}, (3) {three:.2e}")`,
});
