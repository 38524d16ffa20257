// Norms of the blocks of the Hessian of an encoder with one feature a token: Theorem 3 in a picture.

import { explorable, fixed } from "./kit/kit.js";

const NAMES = ["QQ", "KK", "QK", "QV", "KV", "QO", "KO", "VO", "whole"]; // the order of the data
const GRID = [["QQ", "QK", "QV", "QO"], ["QK", "KK", "KV", "KO"], ["QV", "KV", null, "VO"], ["QO", "KO", "VO", null]];
const LETTERS = ["W_Q", "W_K", "W_V", "w_O"];
const GROUPS = [["QQ", "KK", "QK"], ["VO"], ["QV", "KV", "QO", "KO"]];
const WORDS = ["queries and keys among themselves", "W_V with w_O", "queries or keys with W_V or w_O"];

export default explorable({
  name: "hessian_map",
  title: "Where the network bends: norms of the Hessian's blocks",
  defaults: { k: 4, init: "ntk", radius: 1, block: "VO", bet: null },
  build(kit) {
    const width = kit.list("width");
    const radius = kit.list("radius");
    const [norm, quarter, bound] = ["norm", "quarter", "bound"].map((name) => kit.data(name).values);
    const trials = kit.data("trials").values[0];
    const setting = (state) => (state.init === "lecun" ? 0 : 1) * radius.length + Math.max(0, radius.indexOf(state.radius));
    const half = norm.length;
    const size = (state, k, name) => norm[(setting(state) * width.length + k) * 9 + NAMES.indexOf(name)];
    const edge = (state, k, name, which) => quarter[which * half + (setting(state) * width.length + k) * 9 + NAMES.indexOf(name)];
    const most = (state, k, name) => bound[(setting(state) * width.length + k) * 8 + NAMES.indexOf(name)];
    const here = (state) => Math.min(state.k, width.length - 1);
    kit.bet({
      question: "The softmax is the curved part of the network. In a wide one, which block of the Hessian is largest?",
      options: WORDS,
      outcome: (state) => {
        const k = here(state);
        const tops = GROUPS.map((names) => Math.max(...names.map((name) => size(state, k, name))));
        const best = tops.indexOf(Math.max(...tops));
        return `${state.bet === best ? "Yes." : "Look again."} Here, at width ${width[k]}: ${WORDS.map((words, i) => `${words} ${fixed(tops[i], 3)}`).join("; ")}.`;
      },
    });
    const row = kit.row();
    const map = kit.chart({
      label: "norm of every block of the Hessian", title: "spectral norm of each block (median)", square: true, bare: true,
      x: { range: [-0.75, 4], hide: true }, y: { range: [-0.05, 4.7], hide: true },
    }, row);
    const rates = kit.chart({
      label: "norm of the chosen block by width", title: "the chosen block by width",
      x: { range: [7, 600], log: true, label: "width d_m" }, y: { range: [1e-4, 30], log: true }, height: 300,
    }, row);
    kit.legend([[0, "measured, median and quartiles"], [1, "bound of the proof, mended", true], [6, "slopes -1/2 and -1", true]]);
    kit.slider({ key: "k", label: "width", values: width.map((_, k) => k), show: (k) => String(width[k]) });
    kit.choice({ key: "init", label: "start", options: [["ntk", "NTK"], ["lecun", "LeCun"]] });
    kit.choice({ key: "radius", label: "distance R", options: radius.map((R) => [R, String(R)]) });
    kit.choice({ key: "block", label: "block", options: NAMES.map((name) => [name, name]) });
    return (state) => {
      const k = here(state);
      const name = NAMES.includes(state.block) ? state.block : "whole";
      map.begin();
      LETTERS.forEach((letter, i) => {
        map.text(`row${i}`, -0.08, 3.5 - i, letter, { anchor: "end", dy: 4 });
        map.text(`col${i}`, i + 0.5, 4.2, letter, { anchor: "middle" });
      });
      GRID.forEach((line, i) => line.forEach((block, j) => {
        const value = block ? size(state, k, block) : 0;
        const strength = block ? Math.max(0.04, Math.min(0.6, 0.6 * (Math.log10(value) + 4) / 4.3)) : 0.02;
        map.rect(`c${i}${j}`, [j + 0.04, 3 - i + 0.04], [j + 0.96, 3 - i + 0.96], { series: block === name ? 1 : 0, strength });
        map.text(`t${i}${j}`, j + 0.5, 3.5 - i, block ? fixed(value, value < 0.01 ? 4 : 3) : "0", { anchor: "middle", dy: 4 });
      }));
      map.end();
      const line = width.map((_, j) => size(state, j, name));
      const start = line[0];
      rates.begin();
      [-0.5, -1].forEach((power, i) => rates.line(`g${i}`, width, width.map((m) => start * (m / width[0]) ** power), { series: 6, dash: "2 5", width: 1.5 }));
      [0, 1].forEach((which) => rates.line(`q${which}`, width, width.map((_, j) => edge(state, j, name, which)), { series: 0, width: 1, faint: true }));
      rates.line("measured", width, line, { series: 0, width: 2.5 });
      if (name !== "whole") rates.line("bound", width, width.map((_, j) => most(state, j, name)), { series: 1, dash: "8 4", width: 2 });
      rates.mark("here", width[k], line[k], { series: 0, size: 6 });
      rates.end();
      const tail = Math.log(line[line.length - 1] / line[2]) / Math.log(width[width.length - 1] / width[2]);
      const limit = name === "whole" ? "" : ` The bound is ${fixed(most(state, k, name), 3)}.`;
      kit.say(`${state.init === "lecun" ? "LeCun" : "NTK"} start, distance ${state.radius}, width ${width[k]}, median of ${trials} networks: block ${name} has norm ${fixed(line[k], 4)} and changes like d_m^${fixed(tail, 2)} from ${width[2]} on.${limit} The whole Hessian: ${fixed(size(state, k, "whole"), 3)}.`);
      kit.el.dataset.norms = JSON.stringify(NAMES.map((block) => size(state, k, block)));
      kit.el.dataset.bounds = JSON.stringify(NAMES.slice(0, 8).map((block) => most(state, k, block)));
      kit.el.dataset.exponent = String(tail);
    };
  },
  code: (state) => `import numpy as np
from attnbook.widgets import sweeps_encoder

names = ["QQ", "KK", "QK", "QV", "KV", "QO", "KO", "VO", "whole"]
width = [8, 16, 32, 64, 128, 256, 512][${state.k}]
norms, bounds = sweeps_encoder.hessian_cell("${state.init}", ${Number(state.radius).toFixed(1)}, width, trials=40)
print(dict(zip(names, np.median(norms, axis=0).round(5))))
print("bounds", dict(zip(names, np.median(bounds, axis=0).round(4))))`,
});
