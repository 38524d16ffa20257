// Figures 2 and 9 again, epoch by epoch: what moves in training, and what does not.

import { explorable, fixed } from "./kit/kit.js";

const GROUPS = ["W_Q", "W_K", "W_V", "w_O"];
const SHAPES = ["triangle", "diamond", "square", "circle"];
const DASHES = ["2 4", "8 3 2 3", "8 4", ""];
const SERIES = [2, 3, 1, 0]; // the same colours as in the picture of the kernel's blocks

export default explorable({
  name: "lazy_replay",
  title: "Replay: loss, way of each weight, distance of the kernel",
  defaults: { k: 24, width: 1000, scaling: "sqrt", init: "lecun", bet: null },
  build(kit) {
    const width = kit.list("width");
    const step = kit.list("step");
    const [loss, moved, distance, stable] = ["loss", "moved", "distance", "stable_below"].map((name) => kit.data(name).values);
    const trials = kit.data("trials").values[0];
    const shown = step.map((epoch) => Math.max(epoch, 0.7)); // the start, on a logarithmic axis
    const chosen = (state) => Math.max(0, width.indexOf(state.width));
    const row = (state, w) => ((state.init === "ntk" ? 1 : 0) * 2 + (state.scaling === "linear" ? 1 : 0)) * width.length + w;
    const curve = (values, state, w, group = 0, groups = 1) =>
      step.map((_, k) => values[(row(state, w) * step.length + k) * groups + group]);
    const way = (state, group) => curve(moved, state, chosen(state), group, 4);
    kit.bet({
      question: "LeCun start, width 1000, 400 epochs. Which weights end farthest from their start, relative to their length there?",
      options: ["W_Q and W_K: attention learns where to look", "W_V", "w_O, the readout"],
      outcome: (state) => {
        const truth = { width: 1000, scaling: "sqrt", init: "lecun" };
        const ends = GROUPS.map((_, g) => way(truth, g)[step.length - 1]);
        return `${state.bet === 2 ? "Yes." : "Look again."} ${GROUPS.map((name, g) => `${name} ${fixed(ends[g], 4)}`).join(", ")}: the readout ends several times its own length away, queries and keys hardly stir.`;
      },
    });
    const first = kit.row();
    const x = { range: [0.7, 470], log: true, label: "epoch (the start at the left edge)" };
    const losses = kit.chart({ label: "training loss by epoch, every width", height: 200, title: "training loss; other widths faint", x, y: { range: [1e-9, 30], log: true } }, first);
    const ways = kit.chart({ label: "relative movement of each parameter", height: 200, title: "way from the start, start's length = 1", x, y: { range: [1e-6, 30], log: true } }, first);
    const kernels = kit.chart({ label: "distance of the tangent kernel from the first one", height: 200, title: "kernel distance; other widths faint", x, y: { range: [1e-6, 1], log: true } }, first);
    const sizes = kit.chart({ label: "relative movement at this epoch by width", height: 200, title: "the same way at this epoch, by width", x: { range: [8, 5200], log: true, label: "width d_m" }, y: { range: [1e-6, 30], log: true } }, first);
    kit.legend([...GROUPS.map((name, g) => [SERIES[g], name, Boolean(DASHES[g])]), [5, "loss, kernel"]]);
    kit.scrubber({ key: "k", label: "epoch", times: step });
    kit.slider({ key: "width", label: "width", values: width, show: String });
    kit.choice({ key: "scaling", label: "logits over", options: [["sqrt", "root of width"], ["linear", "width"]] });
    kit.choice({ key: "init", label: "start", options: [["lecun", "LeCun"], ["ntk", "NTK"]] });
    return (state) => {
      const k = Math.max(0, Math.min(state.k, step.length - 1));
      const w = chosen(state);
      const seen = (values) => values.map((value) => (value > 0 ? value : NaN)); // 0 has no logarithm
      for (const [chart, values] of [[losses, loss], [kernels, distance]]) {
        chart.begin();
        width.forEach((_, j) => chart.line(`f${j}`, shown, seen(curve(values, state, j)), { series: 5, width: j === w ? 2 : 1.2, faint: true }));
        const line = curve(values, state, w);
        chart.line("to", shown.slice(0, k + 1), seen(line.slice(0, k + 1)), { series: 5, width: 2.5 });
        if (line[k] > 0) chart.mark("at", shown[k], line[k], { series: 5, size: 5 });
        chart.end();
      }
      ways.begin();
      const here = GROUPS.map((_, g) => {
        const line = way(state, g);
        const look = { series: SERIES[g], dash: DASHES[g], width: 2.2 };
        ways.line(`f${g}`, shown, seen(line), { ...look, faint: true });
        ways.line(`l${g}`, shown.slice(0, k + 1), seen(line.slice(0, k + 1)), look);
        if (line[k] > 0) ways.mark(`m${g}`, shown[k], line[k], { series: SERIES[g], shape: SHAPES[g], size: 5 });
        return line[k];
      });
      ways.end();
      sizes.begin();
      GROUPS.forEach((_, g) => {
        const line = seen(width.map((__, j) => curve(moved, state, j, g, 4)[k]));
        sizes.line(`l${g}`, width, line, { series: SERIES[g], dash: DASHES[g], width: 2.2 });
        if (line[w] > 0) sizes.mark(`m${g}`, width[w], line[w], { series: SERIES[g], shape: SHAPES[g], size: 5 });
      });
      sizes.end();
      const [now, start] = [curve(loss, state, w)[k], curve(loss, state, w)[0]];
      const far = curve(distance, state, w)[k];
      const limit = stable[row(state, w)];
      kit.say(`Epoch ${step[k]}, width ${width[w]}, median of ${trials} runs: loss ${fixed(now / start, 4)} of its start. Way from the start over its length: ${GROUPS.map((name, g) => `${name} ${fixed(here[g], 4)}`).join(", ")}. Kernel distance ${fixed(far, 4)}. The step is 1; at the start it could be ${fixed(limit, 1)}.`);
      kit.el.dataset.moved = JSON.stringify(here);
      kit.el.dataset.loss = String(now);
      kit.el.dataset.distance = String(far);
    };
  },
  code: (state) => `from attnbook import figures

figure = figures.get("${state.scaling === "linear" ? "encoder.9" : "encoder.2"}")
data = figure.run("paper", 0, width=(${state.width},), init="${state.init}")
print(data["step"][0, 0], data["moved"][0].round(4), data["distance"][0].round(4))
figure.draw(data)`,
});
