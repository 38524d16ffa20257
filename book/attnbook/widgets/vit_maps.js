// A Vision Transformer trained under both scalings: maps that move or freeze, and what that costs.

import { explorable, fixed } from "./kit/kit.js";
import { group, rect, text } from "./kit/view.js";
import { player, plot } from "./kit/views.js";

const NAMES = ["$\\tau_0=d_m^{-1/2}$", "$\\tau_0=1/d_m$"];
const WORDS = ["1/√width", "1/width"];
const COLOURS = ["trained", "other"];
const UNIT = 1e4; // maps travel in units of 1e-4

export default explorable({
  name: "vit_maps",
  title: "One Vision Transformer, two scalings",
  wide: true,
  answers: ["times", "loss"],
  defaults: { k: 0, width: 1024, image: 2, open: 0, times: null, loss: null },
  build(kit) {
    const widths = kit.list("width");
    const epoch = kit.list("epoch");
    const last = epoch.length - 1;
    const seeds = kit.data("moved").shape[1];
    const T = kit.data("maps").shape[4];
    const side = Math.round(Math.sqrt(T));
    const at = (state) => Math.max(0, widths.indexOf(state.width));
    const picture = (state) => Math.max(0, Math.min(2, state.image));
    const k = (state) => (kit.opened ? Math.max(0, Math.min(state.k, last)) : 0);
    const map = (state, s, when) => kit.list("maps", at(state), s, when, picture(state)).map((v) => v / UNIT);
    // mean, least and most over seeds, by time
    const over = (name, w, s) => {
      const rows = Array.from({ length: seeds }, (_, j) => kit.list(name, w, j, s));
      return rows[0].map((_, j) => rows.map((row) => row[j])).map((v) => [v.reduce((a, b) => a + b, 0) / seeds, Math.min(...v), Math.max(...v)]);
    };
    const end = (name, w, s) => over(name, w, s)[last - (name === "loss" ? 1 : 0)][0];
    const final = (w, s) => kit.list("last", w).filter((_, j) => j % 2 === s).reduce((a, b) => a + b, 0) / seeds;

    const grid = kit.row("al-grid-2");
    [0, 1].forEach((s) => {
      const one = document.createElement("div");
      grid.append(one);
      kit.caption(`${NAMES[s]}: how the ${T} patches attend to each other`, one);
      kit.view({
        parent: one, name: "map",
        told: (state) => {
          const M = map(state, s, k(state));
          return `Attention with ${WORDS[s]} at epoch ${fixed(epoch[k(state)], 1)}: the largest weight of a patch is ${fixed(Math.max(...M), 3)}.`;
        },
        draw: (w, state) => {
          const M = map(state, s, k(state));
          const c = Math.min(19, (w - 4) / (T + side + 1.2));
          const big = 0.35;
          const ink = kit.list("ink", picture(state));
          let inner = M.map((p, j) => rect((j % T) * c, 16 + Math.floor(j / T) * c, c - 1, c - 1, {
            class: "al-fill-best", "fill-opacity": 0.03 + 0.97 * Math.min(1, Math.sqrt(p / big)),
          })).join("");
          inner += text(0, 11, "row: who looks, column: at whom", { class: "al-small" });
          // the image in patches, and how much attention each gets from all
          const x0 = (T + 1) * c;
          const got = Array.from({ length: T }, (_, j) => M.reduce((sum, p, i) => sum + (i % T === j ? p : 0), 0) / T);
          const cells = (values, top) => values.map((v, j) => rect(x0 + (j % side) * c, top + Math.floor(j / side) * c, c - 1, c - 1, { class: "al-stroke-rule al-fill-ink", "fill-opacity": Math.max(0.02, Math.min(1, v)) })).join("");
          inner += text(x0, 11, "image", { class: "al-small" }) + cells(ink, 16);
          const top = 16 + side * c + 22;
          inner += text(x0, top - 6, "looked at", { class: "al-small" })
            + got.map((v, j) => rect(x0 + (j % side) * c, top + Math.floor(j / side) * c, c - 1, c - 1, { class: "al-stroke-rule al-fill-best", "fill-opacity": Math.max(0.03, Math.min(1, Math.sqrt(v / big))) })).join("");
          return { height: 18 + T * c, inner: group({ "data-mark": "attention" }, inner) };
        },
      });
    });

    const row = kit.controls();
    const { play } = player(kit, { key: "k", last: () => (kit.opened ? last : 0), label: "record", seconds: 5, parent: row });
    const choices = kit.controls();
    kit.choice({ key: "width", label: "width", options: widths.map((w) => [w, w.toLocaleString("en")]), parent: choices });
    kit.choice({ key: "image", label: "image", options: [0, 1, 2].map((v) => [v, String(v)]), parent: choices });
    kit.draws.push(() => { row.hidden = !kit.opened; choices.hidden = !kit.opened; });

    const curves = (name, state) => {
      if (!kit.opened) return [];
      const x = name === "loss" ? epoch.slice(1) : epoch;
      const stop = Math.max(1, k(state) + (name === "loss" ? 0 : 1));
      return [0, 1].flatMap((s) => {
        const rows = over(name, at(state), s);
        const look = { colour: COLOURS[s], dash: s ? "7 4" : "" };
        return [
          { xs: x, ys: rows.map((v) => v[1]), ...look, faint: true, width: 1 },
          { xs: x, ys: rows.map((v) => v[2]), ...look, faint: true, width: 1 },
          { xs: x.slice(0, stop), ys: rows.slice(0, stop).map((v) => v[0]), ...look, name: k(state) > 2 ? `$${s ? "1/d_m" : "d_m^{-1/2}"}$` : undefined, at: 0.9, dy: s ? -4 : 20 },
        ];
      });
    };
    const pair = kit.row("al-grid-2");
    const [one, two] = [document.createElement("div"), document.createElement("div")];
    pair.append(one, two);
    kit.caption(`Training loss: mean and range of ${seeds} seeds`, one);
    plot(kit, {
      parent: one, height: 210, x: { range: [0, epoch[last]], label: "epoch" }, y: { range: [0, 2.5] },
      told: (state) => (kit.opened ? `Training loss at width ${state.width}: ${WORDS.map((name, s) => `${name} ends at ${fixed(final(at(state), s), 3)}`).join(", ")}.` : "Training loss, still sealed."),
      lines: (state) => curves("loss", state),
    });
    kit.caption("How far attention has moved from the start (0 to 2)", two);
    plot(kit, {
      parent: two, height: 210, x: { range: [0, epoch[last]], label: "epoch" }, y: { range: [0, 1.6] },
      told: (state) => (kit.opened ? `Change of attention at width ${state.width}: ${WORDS.map((name, s) => `${name} ends at ${fixed(end("moved", at(state), s), 3)}`).join(", ")}.` : "Change of attention, still sealed."),
      lines: (state) => curves("moved", state),
    });

    const wide = widths.length - 1;
    const ratio = () => end("moved", wide, 0) / end("moved", wide, 1);
    const cost = () => final(wide, 1) - final(wide, 0);
    kit.predict({
      heading: `Two networks of width ${widths[wide].toLocaleString("en")} begin with the same weights. Only $\\tau_0$ differs.`,
      go: "Train them",
      start: () => play(),
      over: (state) => state.k >= last,
      asks: [
        {
          kind: "number", key: "times", min: 1, max: 60, step: 1, show: (v) => `${Number(v.toFixed(1))} times`,
          question: "How many times as far does attention move with $d_m^{-1/2}$ as with $1/d_m$, in six epochs?",
          truth: () => ratio(),
          say: (mine) => {
            const fact = `It moves ${fixed(end("moved", wide, 0), 2)} against ${fixed(end("moved", wide, 1), 2)}, out of 2`;
            if (mine === null) return `${fact}.`;
            if (mine < ratio() / 2) return `More than you thought. ${fact}.`;
            if (mine > ratio() * 2) return `Less than that. ${fact}; the square root of the width alone would make it ${fixed(Math.sqrt(widths[wide]), 0)} times.`;
            return `Close. ${fact}.`;
          },
        },
        {
          kind: "choice", key: "loss", question: "And the training loss with $1/d_m$?",
          options: [["stuck", "It hardly falls: attention is frozen."], ["behind", "It falls, and stays behind."], ["same", "It falls as fast: values and output do the work."]],
          right: () => (cost() > 0.8 ? "stuck" : cost() > 0.05 ? "behind" : "same"),
          say: (mine) => {
            const fact = `The last epoch's loss is ${fixed(final(wide, 0), 2)} with the root and ${fixed(final(wide, 1), 2)} without`;
            if (mine === "stuck") return `Values, output and embedding go on learning when attention stands still. ${fact}.`;
            if (mine === "same") return `They do much of the work, not all of it. ${fact}.`;
            return `${mine ? "Right. " : ""}${fact}. A frozen mean over patches can be read, only less well.`;
          },
        },
      ],
    });
    return (state) => {
      if (!kit.opened) {
        kit.say("Before training, both maps of one image. Answer, and both networks train.");
        return;
      }
      const w = at(state);
      const moved = [0, 1].map((s) => over("moved", w, s)[k(state)][0]);
      kit.say(`Epoch ${fixed(epoch[k(state)], 1)}, width ${widths[w]}: attention has moved by ${fixed(moved[0], 3)} with 1/√width and by ${fixed(moved[1], 3)} with 1/width. Loss of the last epoch ${fixed(final(w, 0), 3)} and ${fixed(final(w, 1), 3)}.`);
      kit.el.dataset.moved = JSON.stringify(moved);
      kit.el.dataset.last = JSON.stringify([final(w, 0), final(w, 1)]);
    };
  },
  code: () => `from attnbook import figures

data = figures.kept("encoder.4")  # or figures.get("encoder.4").run(), minutes with PyTorch
print(figures.get("encoder.4").verdict(data))`,
});
