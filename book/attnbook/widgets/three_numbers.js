// One feature a token: drag the three numbers that the whole network consists of.

import { explorable, fixed, make } from "./kit/kit.js";
import { squares } from "./kit/losses.js";
import { bestFit, outputsOf, partSums } from "./kit/one_feature.js";
import { dot } from "./kit/vectors.js";

const WIDTHS = [8, 64, 512];
const SAMPLES = [2, 3, 6, 12];
const REACH = 4;
const told = (value) => (value < 1e-12 ? "0" : fixed(value, 3));

export default explorable({
  name: "three_numbers",
  title: "One feature a token: a network in three numbers",
  defaults: { kappa: 1, pq: [1, -1], N: 12, net: 2, k: 25, bet: null },
  build(kit) {
    const steps = kit.list("step");
    const [count, T] = kit.data("X").shape;
    const all = Array.from({ length: count }, (_, n) => kit.list("X", n));
    const y = kit.list("y");
    const path = kit.data("path").values; // (samples, widths, times, 3)
    const losses = kit.data("loss").values;
    const grid = Array.from({ length: 81 }, (_, k) => (k - 40) / 10);
    const given = (N) => ({ X: all.slice(0, N), y: y.slice(0, N), energy: dot(y.slice(0, N), y.slice(0, N)) / N });
    const floors = Object.fromEntries(SAMPLES.map((N) => {
      const { X, y: target } = given(N);
      return [N, grid.map((kappa) => bestFit(kappa, X, target).floor)];
    }));
    const network = (state, k = state.k) => {
      const at = (SAMPLES.indexOf(state.N) * WIDTHS.length + state.net) * steps.length + k;
      return { kappa: path[3 * at], p: path[3 * at + 1], q: path[3 * at + 2], loss: losses[at] };
    };
    kit.bet({
      question: "12 samples with random targets, and a trained network of width 512: how close to 0 does its loss get?",
      options: ["to 0: it has 2048 parameters", "not below a floor: it has three numbers", "to 0 if tau_0 is right"],
      outcome: (state) => {
        const low = Math.min(...floors[state.N]);
        return `${state.bet === 1 ? "Yes." : "Look again."} With ${state.N} samples no network of any width, with kappa between -4 and 4, has a loss below ${told(low)}; the mean of y² is ${fixed(given(state.N).energy, 3)}.${state.N < 4 ? " Three numbers can fit two samples, and nearly three; try 12." : ""}`;
      },
    });
    const row = kit.row();
    const plane = kit.chart({
      square: true, label: "p and q", title: "drag p and q; rings: equal loss at your kappa",
      x: { range: [-REACH, REACH], label: "p" }, y: { range: [-REACH, REACH], label: "q" },
    }, row);
    const side = make("div", { class: "al-frame" });
    row.append(side);
    const fit = kit.chart({
      height: 190, label: "targets and outputs of the samples", title: "targets (squares) and your outputs (circles)",
      x: { range: [0.4, 12.6], label: "sample", ticks: [1, 2, 3, 6, 9, 12] }, y: { range: [-3, 3] },
    }, side);
    const least = kit.chart({
      label: "least loss by kappa", title: "least loss over all p, q, by kappa",
      x: { range: [-4, 4], label: "kappa" }, y: { range: [0, 2] }, height: 190,
    }, side);
    const handle = plane.handle("pq", {
      series: 1, shape: "diamond", size: 9, label: "p and q", move: (p, q) => kit.set({ pq: [p, q] }),
      tell: () => `p ${fixed(kit.state.pq[0])}, q ${fixed(kit.state.pq[1])}`,
    });
    kit.legend([[1, "your network"], [0, "a trained network, and its path", true], [2, "least loss, and where it is"], [5, "targets"]]);
    kit.slider({ key: "kappa", label: "attention kappa", min: -4, max: 4, step: 0.05 });
    kit.slider({ key: "N", label: "samples", values: SAMPLES, show: String });
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.choice({ key: "net", label: "trained network of width", options: WIDTHS.map((width, i) => [i, String(width)]), parent: controls });
    kit.button("Take its three numbers", () => {
      const { kappa, p, q } = network(kit.state);
      kit.set({ kappa, pq: [p, q] });
    }, controls);
    return (state) => {
      const { X, y: target, energy } = given(state.N);
      const [p, q] = state.pq;
      const outputs = outputsOf(state.kappa, p, q, X);
      const loss = squares(outputs, target) / state.N;
      const best = bestFit(state.kappa, X, target);
      const net = network(state);
      plane.begin();
      // rings: floor + share of the energy, from the 2 x 2 second moment of the features
      const sums = partSums(state.kappa, X).map((pair) => pair.map((value) => value / T));
      const [aa, ab, bb] = [[0, 0], [0, 1], [1, 1]].map(([i, j]) => sums.reduce((sum, pair) => sum + pair[i] * pair[j], 0) / state.N);
      const low = Math.sqrt(bb - (ab * ab) / aa);
      if (aa > 0 && low > 1e-6) {
        [0.03, 0.15, 0.5, 1.2].forEach((share, r) => {
          const turn = Array.from({ length: 73 }, (_, k) => (k * Math.PI) / 36);
          const radius = Math.sqrt(share * energy);
          const v = turn.map((t) => (radius * Math.sin(t)) / low);
          const u = turn.map((t, k) => (radius * Math.cos(t)) / Math.sqrt(aa) - (ab / aa) * v[k]);
          plane.line(`ring${r}`, u.map((value) => value + best.p), v.map((value) => value + best.q), { series: 2, width: 1.2, faint: r > 1 });
        });
      }
      plane.mark("best", best.p, best.q, { series: 2, shape: "triangle", size: 6 });
      const way = steps.slice(0, state.k + 1).map((_, k) => network(state, k));
      plane.line("way", way.map((each) => each.p), way.map((each) => each.q), { series: 0, width: 2.5, dash: "4 3" });
      plane.mark("net", net.p, net.q, { series: 0, size: 6 });
      handle.put(p, q);
      plane.end();
      fit.begin();
      outputs.forEach((f, n) => {
        fit.line(`gap${n}`, [n + 1, n + 1], [f, target[n]], { series: 6, width: 1.5 });
        fit.mark(`y${n}`, n + 1, target[n], { series: 5, shape: "square", size: 4.5, hollow: true });
        fit.mark(`f${n}`, n + 1, f, { series: 1, size: 4.5 });
      });
      fit.end();
      const high = Math.max(1.5 * energy, 0.3);
      least.range({ y: [0, high] });
      least.begin();
      least.line("floor", grid, floors[state.N], { series: 2, width: 2.5 });
      least.line("way", way.map((each) => each.kappa), way.map((each) => each.loss), { series: 0, width: 2, dash: "4 3" });
      least.mark("net", net.kappa, net.loss, { series: 0, size: 5 });
      least.mark("mine", state.kappa, Math.min(loss, 0.93 * high), { series: 1, shape: "diamond", size: 6 });
      least.end();
      const again = squares(outputsOf(net.kappa, net.p, net.q, X), target) / state.N;
      kit.say(`Yours: kappa ${fixed(state.kappa)}, p ${fixed(p)}, q ${fixed(q)}, loss ${fixed(loss, 3)}; at this kappa nothing is below ${told(best.floor)}. The network of width ${WIDTHS[state.net]} after ${steps[state.k]} steps: kappa ${fixed(net.kappa)}, p ${fixed(net.p)}, q ${fixed(net.q)}, loss ${told(net.loss)}; its three numbers alone give ${told(again)}. Mean of y²: ${fixed(energy, 3)}.`);
      kit.el.dataset.outputs = JSON.stringify(outputs);
      kit.el.dataset.loss = String(loss);
      kit.el.dataset.floor = String(best.floor);
      kit.el.dataset.network = JSON.stringify(net);
      kit.el.dataset.again = String(again);
    };
  },
  code: (state) => `import numpy as np
from attnlab import problems
from attnbook import theory

drawn = problems.gaussian_regression(n=12, T=5, d=1, rng=4)
problem = problems.SequenceProblem(drawn.X[:${state.N}], drawn.y[:${state.N}])
kappa, p, q = ${[state.kappa, ...state.pq].map((value) => Number(value.toPrecision(6))).join(", ")}
features = theory.encoder.effective_features(kappa, problem) / problem.T
outputs = features @ [p, q]
print(outputs.round(4), "loss", np.mean((outputs - problem.y) ** 2).round(6))
print("least at this kappa:", theory.encoder.effective_floor(kappa, problem).round(6))`,
});
