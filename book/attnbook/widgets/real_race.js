// Four step rules on real data, with the paper's steps and with the best of a grid for each: kept runs.

import { explorable, fixed } from "./kit/kit.js";

const RULES = ["SGD", "SNGD", "SPS", "Adam"];
const SERIES = [0, 1, 3, 4]; // as in the race on the paper's own data
const SHAPES = ["circle", "square", "diamond", "triangle"];
const DASHES = ["", "7 4", "9 3 2 3", "4 2"];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const short = (value) => String(Number(value.toPrecision(2)));

const NAMES = ["sentences", "tweets", "digits", "photographs"];
const IDS = ["bias.1", "bias.4", "bias.6", "bias.7"];
const signed = (value) => `${value < 0 ? "−" : "+"}${fixed(Math.abs(value), 3)}`;

let idsSeen = [];

export default explorable({
  name: "real_race",
  title: "Four step rules on real data",
  wide: true,
  answers: ["who"],
  defaults: { data: 0, how: "printed", k: 99, open: 0, who: null },
  build(kit) {
    const names = kit.list("which").map((one) => NAMES[one]);
    idsSeen = kit.list("which").map((one) => IDS[one]);
    const times = names.map((_, d) => kit.list(`times${d}`));
    const sets = names.map((_, d) => {
      const [rules, sizes, draws, count] = kit.data(`loss${d}`).shape;
      const curve = (rule, size) => times[d].map((_, t) => mean(Array.from({ length: draws }, (__, j) => kit.list(`loss${d}`, rule, size, j)[t])));
      const curves = Array.from({ length: rules }, (_, r) => Array.from({ length: sizes }, (__, s) => curve(r, s)));
      return { curves, sizes: RULES.map((_, r) => kit.list(`sizes${d}`, r)), best: kit.list(`best${d}`), ends: RULES.map((_, r) => kit.list(`ends${d}`, r)), gaps: (how) => RULES.map((_, r) => kit.list(`gaps${d}`, how, r)), draws, count };
    });
    const which = (state) => Math.max(0, Math.min(names.length - 1, state.data));
    const how = (state) => (kit.opened ? state.how : "printed");
    const place = (state, rule) => {
      const chosen = how(state);
      return chosen === "printed" ? 0 : chosen === "best" ? sets[which(state)].best[rule] : Number(chosen);
    };
    const told = (rows) => RULES.slice(1).map((name, k) => `${name} ${rows[k + 1].map(signed).join(" [").replace(/ \[(?=[^[]*$)/, ", ")}]`).join(", ");
    // how the tuned race of the first data came out, by its intervals
    const [, sngd, sps, adam] = sets[0].gaps(1);
    const ahead = [sngd, sps].some(([, , high]) => high < 0);
    const behind = [sngd, sps].some(([, low]) => low > 0);
    const truth = adam[2] < 0 ? (ahead ? "same" : "adam") : ahead || !behind ? "level" : "sgd";
    const row = kit.row();
    const xMax = Math.max(...times.map((all) => all[all.length - 1]));
    const race = kit.chart({ label: "training loss by epoch", title: "training loss, mean over draws", height: 300, x: { range: [0, xMax], label: "epoch" }, y: { range: [0, 1] } }, row);
    const sizes = kit.chart({ label: "training loss of the last epoch by step size", title: "last epoch's loss by step size", height: 300, x: { range: [1e-5, 10], log: true, label: "step size (of SPS, its cap)" }, y: { range: [0, 1] } }, row);
    kit.legend([...RULES.map((name, r) => [SERIES[r], name, Boolean(DASHES[r])])]);
    kit.predict({
      heading: "Before the other steps are shown",
      after: "Your guess, and the runs",
      go: "Show every step size",
      start: () => kit.set({ how: "best" }),
      asks: [{
        kind: "choice", key: "who",
        question: "This is the race on sentences, with the steps that the paper prints for each rule. Now each rule may take the best of four step sizes of its own. What becomes of the order?",
        options: [["same", "SNGD and SPS stay ahead of SGD."], ["level", "All four end about level."], ["adam", "Adam is ahead of all, and SNGD and SPS lose their lead over SGD."], ["sgd", "SGD ends ahead of all."]],
        right: () => truth,
        say: (mine) => `${mine === null ? "" : mine === truth ? "Yes. " : "Not quite. "}The last epoch's loss minus that of SGD, with 95 % intervals over ${sets[0].draws} draws: with the printed steps ${told(sets[0].gaps(0))}; with the best of four for each rule ${told(sets[0].gaps(1))}. The chart on the right says why: hollow marks are the printed steps, and some stand far to the left of what their rule can bear.`,
      }],
    });
    const controls = kit.controls();
    if (names.length > 1) kit.choice({ key: "data", label: "data", options: names.map((name, d) => [d, name]), parent: controls });
    const steps = kit.controls();
    kit.draws.push(() => { steps.hidden = !kit.opened; });
    kit.choice({ key: "how", label: "steps", options: [["printed", "as printed"], ["best", "each its best"], ["1", "grid: shortest"], ["2", "second"], ["3", "third"], ["4", "longest"]], parent: steps });
    kit.slider({ key: "k", label: "time", values: Array.from({ length: Math.max(...times.map((all) => all.length)) }, (_, k) => k), show: (k) => `epoch ${times[which(kit.state)][Math.min(k, times[which(kit.state)].length - 1)]}`, parent: controls });
    return (state) => {
      const d = which(state);
      const { curves, ends } = sets[d];
      const k = Math.min(state.k, times[d].length - 1);
      const shown = curves.map((all, r) => all[place(state, r)]);
      const highest = Math.max(...shown.flat().filter(Number.isFinite), shown[0][0]);
      const top = Math.min(highest * 1.05, shown[0][0] * 1.6);
      race.range({ x: [0, times[d][times[d].length - 1]], y: [0, top] });
      sizes.range({ y: [0, shown[0][0] * 1.6] });
      race.begin();
      shown.forEach((line, r) => {
        const look = { series: SERIES[r], dash: DASHES[r], width: 2.4 };
        race.line(`all${r}`, times[d], line, { ...look, faint: true });
        race.line(`to${r}`, times[d].slice(0, k + 1), line.slice(0, k + 1), look);
        race.mark(`at${r}`, times[d][k], line[k], { series: SERIES[r], shape: SHAPES[r], size: 5 });
      });
      race.end();
      sizes.begin();
      if (kit.opened) {
        RULES.forEach((_, r) => {
          const order = sets[d].sizes[r].map((size, s) => [size, ends[r][s]]).filter(([, v]) => Number.isFinite(v)).sort((a, b) => a[0] - b[0]);
          sizes.line(`line${r}`, order.map(([s]) => s), order.map(([, v]) => v), { series: SERIES[r], dash: DASHES[r], width: 2 });
          sizes.mark(`printed${r}`, sets[d].sizes[r][0], ends[r][0], { series: SERIES[r], shape: SHAPES[r], size: 6, hollow: true });
          const at = place(state, r);
          if (Number.isFinite(ends[r][at])) sizes.mark(`now${r}`, sets[d].sizes[r][at], ends[r][at], { series: SERIES[r], shape: SHAPES[r], size: at ? 7 : 5 });
        });
      }
      sizes.end();
      const now = shown.map((line) => line[k]);
      kit.say(kit.opened
        ? `${names[d]}, epoch ${times[d][k]}: ${RULES.map((name, r) => `${name} ${fixed(now[r], 3)} with ${r === 2 ? "cap" : "step"} ${short(sets[d].sizes[r][place(state, r)])}`).join(", ")}. Last epoch minus SGD: as printed ${told(sets[d].gaps(0))}; each its best ${told(sets[d].gaps(1))}.`
        : `${names[d]}, with the paper's steps.`);
      kit.el.dataset.now = JSON.stringify(now);
      kit.el.dataset.sizes = JSON.stringify(kit.opened ? RULES.map((_, r) => sets[d].sizes[r][place(state, r)]) : []);
    };
  },
  code: (state) => `from attnbook import figures

figure = figures.get("${idsSeen[state.data] ?? idsSeen[0]}")
data = figures.kept(figure.id)  # or figure.run(), which fetches texts and weights
print(figure.verdict(data))
print(data["sizes"])
figure.draw(data)`,
});
