// Four rules train a Vision Transformer on images: steps as printed, each rule's best, or one's own.

import { explorable, fixed } from "./kit/kit.js";

const RULES = ["SGD", "SNGD", "SPS", "Adam"];
const SERIES = [0, 1, 3, 4]; // the colours of these rules in the race on synthetic data
const DASHES = ["", "7 4", "9 3 2 3", "4 2"];
const SHAPES = ["circle", "square", "diamond", "cross"];
const DATA = ["MNIST", "CIFAR-10"];
const MEASURES = ["training loss", "test loss", "test accuracy", "mean norm of W of a head"];
const LOST = 10; // a loss above it is off the picture: the run diverged
const LEVEL = 0.15;

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

export default explorable({
  name: "image_race",
  title: "Four rules, one Vision Transformer, two data sets",
  defaults: { data: 0, steps: "printed", measure: 0, own: [0, 0, 0, 0], bet: null },
  build(kit) {
    const times = kit.data("epoch").shape[1];
    const sizes = kit.data("size").shape[2];
    const epochs = (data) => kit.list("epoch", data);
    const size = (data, rule, j) => Number(kit.list("size", data, rule)[j].toPrecision(3));
    const curve = (data, rule, j, measure) => kit.list("curves", data, rule, j, measure);
    const end = (data, rule, j) => Math.min(LOST, curve(data, rule, j, 0)[times - 1]);
    const gap = (data, mode, rule) => kit.list("gaps", data, mode, rule); // mean, low, high against SGD
    const seeds = kit.list("seeds");
    const best = (data, rule) => {
      const all = Array.from({ length: sizes }, (_, j) => end(data, rule, j));
      return all.indexOf(Math.min(...all));
    };
    const told = ([mean, low, high]) => `${signed(mean)} [${signed(low)}, ${signed(high)}]`;
    kit.bet({
      question: "With the step sizes printed in the paper, normalized SGD (SNGD) ends far behind SGD on MNIST. Now each rule may take the best of four step sizes. Where does SNGD end?",
      options: ["still far behind SGD", "about level with SGD", "far ahead of SGD"],
      outcome: (state) => {
        const [printed, tuned] = [gap(0, 0, 1), gap(0, 1, 1)];
        const right = tuned[0] > LEVEL ? 0 : tuned[0] < -LEVEL ? 2 : 1;
        const so = ["It stays behind", "The gap is gone", "It turns round"][right];
        return `${state.bet === right ? "Yes." : "Look again."} ${so}. Training loss against SGD's: ${told(printed)} with the printed steps, ${told(tuned)} with each rule's best. The printed step of SNGD is the shortest of its four: in the chart on the right it lies far up the slope of its valley.`;
      },
    });
    const row = kit.row();
    const frames = MEASURES.map((title, m) => [0, 1].map((data) => {
      const values = RULES.flatMap((_, r) => Array.from({ length: sizes }, (__, j) => curve(data, r, j, m)).flat());
      const top = m < 2 ? 3.2 : m === 2 ? 1 : Math.max(...values.filter((v) => v < 10)) * 1.05;
      const low = m === 3 ? Math.min(...values) * 0.95 : 0;
      const list = epochs(data);
      return kit.chart({
        label: `${title} by epoch, ${DATA[data]}`, title: `${title}, ${DATA[data]}`,
        x: { range: [0, list[list.length - 1]], label: "epoch" }, y: { range: [low, top] },
      }, row);
    }));
    const valleys = [0, 1].map((data) => kit.chart({
      label: `training loss at the end by step size, ${DATA[data]}`, title: "training loss at the end, by step size",
      x: { range: data ? [2e-3, 2000] : [0.2, 2000], log: true, label: "step size, in units of the paper's" }, y: { range: [0, 3.2] },
    }, row));
    kit.legend(RULES.map((name, r) => [SERIES[r], name, Boolean(DASHES[r])]));
    const controls = kit.controls();
    kit.choice({ key: "steps", label: "step sizes", options: [["printed", "as printed"], ["best", "each its best"], ["own", "yours"]], parent: controls });
    kit.choice({ key: "data", label: "images", options: [[0, DATA[0]], [1, DATA[1]]], parent: controls });
    kit.choice({ key: "measure", label: "first chart", options: [[0, "training loss"], [1, "test loss"], [2, "accuracy"], [3, "norm of W"]], parent: controls });
    const hand = kit.row("al-controls");
    const owns = RULES.map((name, r) => {
      const input = document.createElement("input");
      Object.assign(input, { type: "range", min: 0, max: sizes - 1, step: 1 });
      input.dataset.key = `own${r}`;
      const output = document.createElement("output");
      const words = document.createElement("span");
      words.textContent = r === 2 ? "SPS, cap" : name;
      const track = document.createElement("span");
      track.className = "al-track";
      track.append(input, output);
      const label = document.createElement("label");
      label.className = "al-slider";
      label.style.flex = "1 1 44%";
      label.append(words, track);
      hand.append(label);
      input.addEventListener("input", () => {
        const order = ordered(kit.state.data, r);
        kit.set({ steps: "own", own: kit.state.own.map((old, k) => (k === r ? order[Number(input.value)] : chosen(kit.state, k))) });
      });
      return { input, output, words };
    });
    const ordered = (data, r) => Array.from({ length: sizes }, (_, j) => j).sort((a, b) => size(data, r, a) - size(data, r, b));
    const chosen = (state, r) => (state.steps === "printed" ? 0 : state.steps === "best" ? best(state.data, r) : Math.max(0, Math.min(sizes - 1, state.own[r])));
    return (state) => {
      const data = state.data ? 1 : 0;
      const m = Math.max(0, Math.min(3, state.measure));
      frames.forEach((pair, k) => pair.forEach((chart, d) => { chart.root.parentNode.style.display = k === m && d === data ? "" : "none"; }));
      valleys.forEach((chart, d) => { chart.root.parentNode.style.display = d === data ? "" : "none"; });
      const picks = RULES.map((_, r) => chosen({ ...state, data }, r));
      const chart = frames[m][data];
      chart.begin();
      RULES.forEach((_, r) => {
        const line = curve(data, r, picks[r], m);
        const look = { series: SERIES[r], dash: DASHES[r], width: 2.4 };
        chart.line(`l${r}`, epochs(data), line, look);
        chart.mark(`m${r}`, epochs(data)[times - 1], line[times - 1], { series: SERIES[r], shape: SHAPES[r], size: 5 });
      });
      chart.end();
      const valley = valleys[data];
      valley.begin();
      valley.line("paper", [1, 1], [0, 3.2], { series: 6, dash: "2 4", width: 1.5 });
      RULES.forEach((_, r) => {
        const order = ordered(data, r);
        const at = (j) => size(data, r, j) / size(data, r, 0);
        valley.line(`v${r}`, order.map(at), order.map((j) => end(data, r, j)), { series: SERIES[r], dash: DASHES[r], width: 2 });
        valley.mark(`p${r}`, at(picks[r]), end(data, r, picks[r]), { series: SERIES[r], shape: SHAPES[r], size: 6 });
        const { input, output, words } = owns[r];
        input.value = order.indexOf(picks[r]);
        output.textContent = String(size(data, r, picks[r])) + (picks[r] === 0 ? " (paper)" : "");
        input.setAttribute("aria-valuetext", `${words.textContent} ${output.textContent}`);
        input.setAttribute("aria-label", `step size of ${words.textContent}`);
      });
      valley.end();
      const ends = RULES.map((_, r) => end(data, r, picks[r]));
      const mode = state.steps === "printed" ? 0 : state.steps === "best" ? 1 : null;
      const lines = RULES.map((name, r) => `${name} ${ends[r] >= LOST ? "diverged" : fixed(ends[r], 3)}`).join(", ");
      const against = mode === null ? "" : ` Against SGD, 95 % intervals over ${seeds[data]} seeds: ${[1, 2, 3].map((r) => `${RULES[r]} ${told(gap(data, mode, r))}`).join(", ")}.`;
      kit.say(`${DATA[data]}, training loss after ${epochs(data)[times - 1]} epochs: ${lines}.${against}`);
      kit.el.dataset.ends = JSON.stringify(ends);
      kit.el.dataset.picks = JSON.stringify(picks);
      kit.el.dataset.steps = state.steps;
    };
  },
  code: (state) => `from attnbook import figures

figure = figures.get("bias.${state.data ? 7 : 6}")
data = figures.kept(figure.id)  # or figure.run(), with the extra "real-train"
print(figure.verdict(data))
print(data["size"])  # SGD, SNGD, SPS (its cap), Adam; the paper's first
print(data["loss"][..., -1].mean(axis=-1).round(3))
figure.draw(data)`,
});
