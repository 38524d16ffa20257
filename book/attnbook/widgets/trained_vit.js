// A small Vision Transformer, scrubbed through its training: where it looks, how long W is, its rank.

import { explorable, fixed } from "./kit/kit.js";
import { circle, line, percent, rect, text } from "./kit/view.js";
import { player, plot, strips } from "./kit/views.js";

const RULES = ["SGD", "Adam"];
const SIDE = 28;
const LEVELS = 127;

export default explorable({
  name: "trained_vit",
  title: "Where a Vision Transformer looks while it learns",
  wide: true,
  answers: ["rank", "keys"],
  defaults: { t: 0, digit: 2, rule: 1, layer: 0, head: 3, open: 0, rank: null, keys: null },
  build(kit) {
    const epochs = kit.list("epoch");
    const last = epochs.length - 1;
    const digits = kit.list("digit");
    const [, , , layers, heads, tokens] = kit.data("maps").shape;
    const grid = Math.round(Math.sqrt(tokens - 1));
    const held = (value, top) => Math.max(0, Math.min(top, Math.round(value) || 0));
    const shown = (state) => (kit.opened ? held(state.t, last) : 0);
    const where = (state) => [held(state.rule, 1), held(state.digit, digits.length - 1), held(state.layer, layers - 1), held(state.head, heads)];
    // what the token that is read gives to itself and to each patch; head 0 is the mean of all heads
    const row = (state, t) => {
      const [rule, digit, layer, head] = where(state);
      const all = head ? [head - 1] : Array.from({ length: heads }, (_, h) => h);
      const sum = Array(tokens).fill(0);
      all.forEach((h) => kit.list("maps", rule, t, digit, layer, h).forEach((v, k) => { sum[k] += v / LEVELS / all.length; }));
      return sum;
    };
    // measures: 0 keys, 1 norm, 2 rank
    const inside = (state, measure) => {
      const [rule, , layer, head] = where(state);
      return epochs.map((_, t) => {
        const values = kit.list("inside", rule, measure, t, layer);
        return head ? values[head - 1] : values.reduce((a, b) => a + b, 0) / heads;
      });
    };
    const over = (rule, measure, t) => {
      const values = kit.list("inside", rule, measure, t);
      return values.reduce((a, b) => a + b, 0) / values.length;
    };
    const told = (state, t) => kit.list("told", ...where(state).slice(0, 1), t)[where(state)[1]];

    const hero = kit.row("al-hero");
    const left = document.createElement("div");
    const side = document.createElement("div");
    side.className = "al-side";
    hero.append(left, side);
    kit.caption("A digit of our own hand, cut into 16 patches. A disc’s area is the attention that the read-out token gives to the patch.", left);
    kit.view({
      parent: left, name: "digit",
      told: (state) => {
        const s = row(state, shown(state));
        const order = s.slice(1).map((v, k) => [v, k]).sort((a, b) => b[0] - a[0]);
        const first = order[0][1];
        return `The digit ${digits[where(state)[1]]}; most attention goes to the patch in row ${Math.floor(first / grid) + 1}, column ${(first % grid) + 1}`;
      },
      draw: (w, state) => {
        const size = Math.min(w, 400);
        const c = size / SIDE;
        const patch = size / grid;
        const [, digit] = where(state);
        const grey = kit.list("picture", digit);
        const s = row(state, shown(state));
        let inner = rect(0, 0, size, size, { class: "al-track-bar" });
        grey.forEach((v, k) => {
          if (v > 6) inner += rect((k % SIDE) * c, Math.floor(k / SIDE) * c, c + 0.3, c + 0.3, { class: "al-fill-ink", "fill-opacity": 0.75 * (v / LEVELS) });
        });
        for (let k = 0; k <= grid; k++) inner += line(k * patch, 0, k * patch, size, { class: "al-stroke-rule" }) + line(0, k * patch, size, k * patch, { class: "al-stroke-rule" });
        for (let k = 0; k < grid * grid; k++) {
          inner += circle(((k % grid) + 0.5) * patch, (Math.floor(k / grid) + 0.5) * patch, patch * Math.sqrt(s[k + 1] / Math.PI) * 1.25, { class: "al-fill-best al-stroke-best", "fill-opacity": 0.45, "data-mark": "attention" });
        }
        const bar = size - 122;
        inner += text(0, size + 20, "to itself", { class: "al-small" })
          + rect(62, size + 11, bar, 10, { class: "al-track-bar" }) + rect(62, size + 11, bar * s[0], 10, { class: "al-fill-query" })
          + (kit.opened ? text(size, size + 20, percent(s[0]), { class: "al-small al-value", "text-anchor": "end" }) : "");
        return { height: size + 28, inner };
      },
    });
    plot(kit, {
      parent: side, height: 170,
      x: { range: [0, epochs[last]], label: "epoch" },
      y: { range: [0, tokens + 0.5], label: "effective keys of a query", ticks: [1, 5, 9, 13, tokens] },
      told: (state) => (kit.opened ? `Effective keys by epoch: now ${fixed(inside(state, 0)[shown(state)], 1)} of ${tokens}; the theory’s limit is 1` : "Effective keys by epoch, not yet known"),
      lines: (state) => {
        if (!kit.opened) return [];
        const [rule, , layer, head] = where(state);
        const t = shown(state);
        const upTo = (values) => ({ xs: epochs.slice(0, t + 1), ys: values.slice(0, t + 1) });
        const all = Array.from({ length: heads }, (_, h) => ({ ...upTo(epochs.map((__, k) => kit.list("inside", rule, 0, k, layer)[h])), colour: "other", faint: true, width: 1.2 }));
        return [
          { xs: [0, epochs[last]], ys: [1, 1], colour: "bound", dash: "6 5", name: "theory: one key", at: 0.5 },
          ...all,
          { ...upTo(inside(state, 0)), colour: "best", name: head ? `head ${head}` : "mean of heads" },
        ];
      },
    });
    strips(kit, {
      parent: side, height: 44, unit: "frame", last: `${last} (epoch ${epochs[last]})`,
      now: (state) => shown(state), steps: () => last,
      rows: (state) => {
        if (!kit.opened) return [];
        const t = shown(state);
        const [rule] = where(state);
        const [norm, rank] = [1, 2].map((m) => inside(state, m));
        const loss = kit.list("loss", rule);
        return [
          { name: "training loss", values: loss, show: fixed(loss[t], 3), colour: "loss" },
          { name: "norm of $W$", values: norm, show: `${fixed(norm[t], 2)}, start × ${fixed(norm[t] / norm[0], 2)}`, colour: "trained", range: [0, 1.25 * Math.max(...norm)] },
          { name: "rank of $W$", values: rank, show: `${fixed(rank[t], 2)} of 4`, colour: "nuc", range: [1, 4] },
        ];
      },
    });

    const controls = kit.controls();
    kit.choice({ key: "digit", label: "digit", options: digits.map((d, k) => [k, String(d)]), parent: controls });
    kit.choice({ key: "rule", label: "rule", options: RULES.map((name, k) => [k, name]), parent: controls });
    kit.choice({ key: "layer", label: "layer", options: Array.from({ length: layers }, (_, k) => [k, String(k + 1)]), parent: controls });
    kit.slider({ key: "head", label: "head", min: 0, max: heads, step: 1, show: (k) => (k ? String(k) : "mean of all") });
    const play = kit.controls();
    player(kit, { key: "t", last: () => (kit.opened ? last : 0), name: "Train", label: "frame", seconds: 6, parent: play });
    const facts = () => {
      const ratio = (m) => over(1, m, last) / over(1, m, 0);
      return { keys: over(1, 0, last), rank: ratio(2), norm: ratio(1) };
    };
    kit.predict({
      heading: "Before it trains, two predictions",
      go: "Train",
      start: (state) => { kit.set({ t: 0, rule: state.rule }); },
      asks: [
        {
          kind: "choice", key: "rank",
          question: "Adam trains for 40 epochs, until nearly every training image is told right. What becomes of the rank of the heads’ $W$, on average?",
          options: [["falls", "It falls to less than half: a few directions win."], ["stays", "It hardly changes."], ["grows", "It grows by half or more."]],
          right: () => { const r = facts().rank; return r < 0.5 ? "falls" : r > 1.5 ? "grows" : "stays"; },
          say: (mine) => {
            const { rank, norm } = facts();
            const so = rank < 0.9 ? "The rank falls" : rank > 1.1 ? "The rank grows" : "The rank hardly moves";
            return `${so}: at the end it is ${fixed(rank, 3)} times that of the start. The norm of $W$ is ${fixed(norm, 3)} times its start.${mine === "falls" ? " Theory has a start at zero, a frozen head and a run without end; none of the three is given here." : ""}`;
          },
        },
        {
          kind: "number", key: "keys", min: 1, max: tokens, step: 0.5, show: (v) => fixed(v, 1),
          question: `A query may spread over ${tokens} keys. Over how many does it spread effectively at the end, on average over heads?`,
          truth: () => facts().keys,
          say: (mine) => {
            const { keys } = facts();
            return `${fixed(keys, 2)} effective keys.${mine !== null && mine !== undefined && mine < keys / 2 ? " Attention chooses much less than the theory’s limit suggests." : ""} The limit of the theory is one.`;
          },
        },
      ],
    });
    return (state) => {
      play.hidden = !kit.opened;
      side.hidden = !kit.opened;
      const t = shown(state);
      const [rule, digit, layer, head] = where(state);
      const of = `layer ${layer + 1}, ${head ? `head ${head}` : "mean of heads"}`;
      kit.say(kit.opened
        ? `${RULES[rule]}, epoch ${fixed(epochs[t], epochs[t] % 1 ? 2 : 0)}: training loss ${fixed(kit.list("loss", rule)[t], 3)}, test accuracy ${percent(kit.list("accuracy", rule)[t])}; the digit ${digits[digit]} is called a ${digits[digit]} with ${percent(told(state, t))}. In ${of}, a query has ${fixed(inside(state, 0)[t], 1)} effective keys.`
        : `The start, before any training. Choose a digit, a layer and a head.`);
      kit.el.dataset.frame = String(t);
      if (kit.opened) kit.el.dataset.attention = JSON.stringify(row(state, t));
    };
  },
  code: () => `from attnbook import figures

figure = figures.get("bias.vit")
data = figures.kept("bias.vit")  # or figure.run(), with the extra "real-train"
print(figure.verdict(data))
print(data["maps"].shape, data["rank"].mean(axis=(1, 3, 4)).round(2))
figure.draw(data)`,
});
