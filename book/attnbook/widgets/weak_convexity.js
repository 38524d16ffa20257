// Corollary 1 (3): the loss's worst negative curvature, in units of the loss, over heads.

import { explorable, fixed } from "./kit/kit.js";
import { curvatureBound } from "./kit/onehead.js";

const KINDS = ["random", "pairs"];

export default explorable({
  name: "weak_convexity",
  title: "The weak-convexity meter: how far from convex, in units of the loss",
  defaults: { heads: 4, size: 1, kind: "random", bet: null },
  build(kit) {
    const heads = Array.from(kit.data("heads").values);
    const sizes = Array.from(kit.data("sizes").values);
    const trials = kit.data("ratio").shape[3];
    const [T, d] = kit.data("shape").values;
    // (kinds, sizes, heads, trials)
    const read = (name, kind, size) => heads.map((_, h) => {
      const from = ((kind * sizes.length + size) * heads.length + h) * trials;
      return Array.from(kit.data(name).values.slice(from, from + trials));
    });
    const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;
    const FROM = heads.indexOf(4); // with fewer heads there are no two equal ones in opposite pairs
    const power = (ys) => {
      const xs = heads.slice(FROM).map(Math.log);
      const logs = ys.slice(FROM).map(Math.log);
      const [x, y] = [mean(xs), mean(logs)];
      return xs.reduce((s, v, k) => s + (v - x) * (logs[k] - y), 0) / xs.reduce((s, v) => s + (v - x) ** 2, 0);
    };
    const measured = (state, kind) => read("ratio", KINDS.indexOf(kind), nearest(sizes, state.size)).map(mean);
    const nearest = (list, value) => list.reduce((best, x, k) => (Math.abs(x - value) < Math.abs(list[best] - value) ? k : best), 0);
    kit.bet({
      question: "Sixteen times as many heads. What happens to the worst negative curvature, in units of the loss?",
      options: ["it stays", "about a quarter is left", "about a sixteenth is left"],
      outcome: (state) => {
        const curve = measured(state, state.kind);
        return `${state.bet === 1 ? "Yes." : "Look again."} From 4 heads to 64 the factor is ${fixed(curve[heads.indexOf(64)] / curve[heads.indexOf(4)], 3)} here: each head's curvature enters with 1/sqrt(H), and sqrt(16) = 4.`;
      },
    });
    const row = kit.row();
    const meter = kit.chart({
      label: "negative curvature over loss, by heads", title: "measured, and the three bounds",
      x: { range: [0.85, 75], log: true, label: "heads H", ticks: heads }, y: { range: [0.01, 300], log: true, label: "-lambda_min / loss" },
      height: 290,
    }, row);
    const flat = kit.chart({
      label: "the same times the root of H", title: "measured, times sqrt(H): flat where the power is -1/2",
      x: { range: [0.85, 75], log: true, label: "heads H", ticks: heads }, y: { range: [0, 0.6], label: "times sqrt(H)" }, height: 290,
    }, row);
    kit.legend([[0, "measured, mean (dots: trials)"], [1, "Corollary 1, printed", true], [3, "Lemma 6: readouts only", true], [2, "without d, ours", true], [6, "the other kind of heads", true]]);
    kit.slider({ key: "heads", label: "heads H", values: heads, show: String });
    const controls = kit.controls();
    kit.slider({ key: "size", label: "length of each head", values: sizes, show: (x) => fixed(x, 1), parent: controls });
    kit.choice({ key: "kind", label: "heads", options: [["random", "independent"], ["pairs", "copies in opposite pairs"]], parent: controls });
    return (state) => {
      const size = nearest(sizes, state.size);
      const at = nearest(heads, state.heads);
      const kind = KINDS.indexOf(state.kind);
      const ratio = read("ratio", kind, size);
      const curve = ratio.map(mean);
      const readout = read("readout", kind, size).map(mean);
      const bounds = {
        printed: heads.map((H) => curvatureBound(sizes[size], T, d, 1) / Math.sqrt(H)),
        readout: heads.map((H, h) => curvatureBound(readout[h], T, d, 1) / Math.sqrt(H)),
        sharp: heads.map((H, h) => curvatureBound(readout[h], T, d, 1, true) / Math.sqrt(H)),
      };
      meter.begin();
      meter.line("printed", heads, bounds.printed, { series: 1, dash: "7 4" });
      meter.line("readout", heads, bounds.readout, { series: 3, dash: "2 4", width: 2.5 });
      meter.line("sharp", heads, bounds.sharp, { series: 2, dash: "9 3 2 3" });
      meter.line("mean", heads, curve, { series: 0, width: 2.5 });
      ratio.forEach((values, h) => values.forEach((v, k) => meter.mark(`t${h}-${k}`, heads[h], v, { series: 0, size: 2.5 })));
      meter.mark("at", heads[at], curve[at], { series: 0, shape: "square", size: 7 });
      meter.mark("over", heads[at], bounds.printed[at], { series: 1, shape: "diamond", size: 6 });
      meter.end();
      flat.begin();
      KINDS.forEach((name, k) => {
        const shown = measured(state, name).map((v, h) => v * Math.sqrt(heads[h]));
        flat.line(name, heads, shown, { series: k === kind ? 0 : 6, dash: k === kind ? "" : "2 4", width: 2.5 });
      });
      flat.mark("at", heads[at], curve[at] * Math.sqrt(heads[at]), { series: 0, shape: "square", size: 7 });
      flat.end();
      const slope = power(curve);
      kit.say(`${heads[at]} head${heads[at] === 1 ? "" : "s"} of length ${fixed(sizes[size], 1)}: -lambda_min / loss = ${fixed(curve[at], 4)}, mean of ${trials}. Corollary 1 allows ${fixed(bounds.printed[at])}, Lemma 6 ${fixed(bounds.readout[at])}, without d ${fixed(bounds.sharp[at])}. Power of H, fitted from ${heads[FROM]} heads on: ${fixed(slope, 3)}; the bound's, for heads of one length: -0.5.`);
      kit.el.dataset.ratio = String(curve[at]);
      kit.el.dataset.power = String(slope);
      kit.el.dataset.bounds = JSON.stringify([bounds.printed[at], bounds.readout[at], bounds.sharp[at]]);
    };
  },
  code: (state) => `import numpy as np
from attnlab import curvature, models
from attnbook import theory, widgets

H, size = ${state.heads}, ${state.size}
problem, params = widgets.single_head.drawn(H, size, pairs=${state.kind === "pairs" ? "True" : "False"})  # three draws
model = models.MultiHead(heads=H)
found = [curvature.weak_convexity(model, {k: v[i] for k, v in params.items()}, problem)
         for i in range(3)]
print("-lambda_min / loss", np.mean(found))
print("Corollary 1 allows", theory.multihead.beta3(size, T=4, d=3, R=1.0) / H**0.5)`,
});
