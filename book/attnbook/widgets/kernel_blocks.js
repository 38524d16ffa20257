// The four blocks of the tangent kernel on their way to a limit, or not: Lemma 1 over the width.

import { explorable, fixed } from "./kit/kit.js";
import { exponent } from "./kit/vectors.js";

const BLOCKS = ["w_O", "W_V", "W_Q", "W_K"];
const SHAPES = ["circle", "square", "triangle", "diamond"];
const DASHES = ["", "8 4", "2 4", "8 3 2 3"];
const SCALINGS = ["linear", "sqrt"];
const LIMITS = ["corrected", "printed", "proof"];
const small = (value) => (value < 0.01 ? value.toExponential(1) : value.toFixed(3));

export default explorable({
  name: "kernel_blocks",
  title: "The tangent kernel by block: who has a limit?",
  defaults: { k: 4, draw: 1, scaling: "linear", limit: "corrected", bet: null },
  build(kit) {
    const width = kit.list("width");
    const [error, spread, entry, limit] = ["error", "spread", "entry", "limit"].map((name) => kit.data(name).values);
    const draws = kit.data("entry").shape[2];
    const pairs = kit.data("limit").shape[2];
    const at = (state) => [Math.max(0, SCALINGS.indexOf(state.scaling)), Math.max(0, LIMITS.indexOf(state.limit)), Math.min(state.k, width.length - 1)];
    const far = (s, l, k, b) => error[((s * width.length + k) * 3 + l) * 4 + b];
    kit.bet({
      question: "Logits divided by the width d_m, NTK start. The width grows: what becomes of the four blocks?",
      options: ["all four settle at something", "w_O and W_V settle, W_Q and W_K vanish", "the kernel stays random"],
      outcome: (state) => {
        const [, , k] = at(state);
        return `${state.bet === 1 ? "Yes." : "Look again."} At width ${width[k]} the blocks of W_Q and W_K are ${fixed(100 * (far(0, 0, k, 2) + far(0, 0, k, 3)), 3)} % of the limit's norm with 1/d_m, and ${fixed(100 * (far(1, 0, k, 2) + far(1, 0, k, 3)), 1)} % with one over the root.`;
      },
    });
    const row = kit.row();
    const rates = kit.chart({
      label: "distance of each block from its limit by width", title: "distance from the limit, whole limit = 1",
      x: { range: [45, 14500], log: true, label: "width d_m" }, y: { range: [3e-6, 30], log: true }, height: 270,
    }, row);
    const parity = kit.chart({
      label: "entries of one network's kernel against the limit", title: "one network: its entries over the limit's",
      x: { range: [-0.05, 0.3], label: "entry of the limit" }, y: { range: [-0.05, 0.3] }, height: 270,
    }, row);
    kit.legend([...BLOCKS.map((name, b) => [b, `${name} (${SHAPES[b]})`, b > 0]), [6, "slopes -1/2 and -1", true]]);
    kit.slider({ key: "k", label: "width", values: width.map((_, k) => k), show: (k) => String(width[k]) });
    kit.slider({ key: "draw", label: "network", min: 1, max: draws, step: 1, show: String });
    kit.choice({ key: "scaling", label: "logits over", options: [["linear", "width"], ["sqrt", "root of width"]] });
    kit.choice({ key: "limit", label: "limit", options: [["corrected", "corrected"], ["printed", "printed, no Hadamard"], ["proof", "lines 63, 64"]] });
    const seen = { x: [-0.01, 0.1], y: [-0.05, 0.3] };
    return (state) => {
      const [s, l, k] = at(state);
      const draw = Math.min(Math.max(state.draw, 1), draws) - 1;
      rates.begin();
      [[-0.5, 0.6], [-1, 0.1]].forEach(([power, start], i) => rates.line(`g${i}`, width, width.map((m) => start * (m / width[0]) ** power), { series: 6, dash: "2 5", width: 1.5 }));
      const found = BLOCKS.map((_, b) => {
        const line = width.map((__, j) => far(s, l, j, b));
        rates.line(`l${b}`, width, line, { series: b, dash: DASHES[b], width: 2.2 });
        rates.mark(`m${b}`, width[k], line[k], { series: b, shape: SHAPES[b], size: 5 });
        return { error: line[k], exponent: exponent(width, line) };
      });
      rates.end();
      const goal = (b, p) => limit[(l * 4 + b) * pairs + p];
      const own = (b, p) => entry[(((s * width.length + k) * draws + draw) * 4 + b) * pairs + p];
      const all = (f) => Array.from({ length: 4 * pairs }, (_, i) => f(Math.floor(i / pairs), i % pairs));
      for (const [axis, list] of [["x", all(goal)], ["y", [...all(own), ...all(goal)]]]) {
        const [low, high] = [Math.min(...list), Math.max(...list)];
        seen[axis] = [low - 0.06 * (high - low), high + 0.06 * (high - low)];
      }
      parity.range(seen).begin();
      parity.line("same", seen.x, seen.x, { series: 6, dash: "2 5", width: 1.5 });
      BLOCKS.forEach((_, b) => {
        for (let p = 0; p < pairs; p++) parity.mark(`${b}-${p}`, goal(b, p), own(b, p), { series: b, shape: SHAPES[b], size: 3.5 });
      });
      parity.end();
      const told = BLOCKS.map((name, b) => `${name} ${small(found[b].error)} (over all widths like d_m^${fixed(found[b].exponent, 2)})`);
      kit.say(`Width ${width[k]}, logits over ${s ? "its root" : "the width"}. Distance from the limit, median of 12 networks: ${told.join(", ")}. From one network to the next the kernel varies by ${fixed(100 * spread[s * width.length + k], 1)} %. Right: network ${draw + 1}.`);
      kit.el.dataset.errors = JSON.stringify(found.map((x) => x.error));
      kit.el.dataset.exponents = JSON.stringify(found.map((x) => x.exponent));
      kit.el.dataset.spread = String(spread[s * width.length + k]);
      kit.el.dataset.entry = String(own(0, 0));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, ntk, problems
from attnbook import theory

problem = problems.gaussian_regression(n=6, T=5, d=8, unit_tokens=True, rng=0)
model = models.Encoder(${50 * 2 ** state.k}, "ntk", "${state.scaling}")
K = ntk.empirical(model, model.init(problem, rng=${state.draw}), problem, by_group=True)
phi = theory.encoder.mean_tokens(problem)
relu, step = ntk.arc_cosine(phi)
limit = {"w_O": relu, "W_V": step ${state.limit === "printed" ? "@" : "*"} (phi @ phi.T), "W_Q": 0, "W_K": 0}
size = np.linalg.norm(ntk.limiting_encoder(problem))
for name, block in K.items():
    print(name, np.linalg.norm(block - ${state.limit === "proof" ? "25 * " : ""}limit[name]) / size)`,
});
