// From a layer as it is built to the one that theorems speak of: what is exact, what is lost.

import { explorable, fixed } from "./kit/kit.js";
import { group, label, line, percent, power, rect, text } from "./kit/view.js";

export default explorable({
  name: "layer_steps",
  title: "From a layer to the theory, a step at a time",
  defaults: { step: 1 },
  build(kit) {
    const change = kit.list("change");
    const spread = [0, 1].map((q) => kit.list("quartiles", q));
    const rank = kit.list("rank");
    const [T, d, m, H] = kit.list("sizes");
    const STEPS = [
      ["the whole block", "$x+$ heads $+$ MLP"],
      ["no MLP", "$x+\\text{heads}$"],
      ["no residual", "heads alone"],
      ["layer norm first", "exact"],
      ["$W_h=W_{K}W_{Q}^\\top/\\sqrt m$", "exact"],
      ["$U_h=W_{V}W_{O}$", "exact"],
      ["one head of many", "$H=1$"],
      ["read out by a fixed $v$", "exact"],
    ];
    const host = kit.row("al-steps");
    kit.view({
      parent: host,
      told: (state) => `${STEPS[state.step][0]}: the output changes by ${power(change[state.step])}`,
      draw: (w, state) => {
        const left = Math.min(230, 0.5 * w);
        const span = w - left - 76;
        const X = (v) => left + (Math.log10(Math.max(v, 1e-17) / 1e-17) / 17.5) * span;
        let inner = text(w, 12, "change of the output", { class: "al-small", "text-anchor": "end" });
        [1e-16, 1e-8, 1].forEach((v) => { inner += line(X(v), 20, X(v), 26 + 30 * STEPS.length, { class: "al-grid" }) + text(X(v), 40 + 30 * STEPS.length, v === 1 ? "1" : `10${v === 1e-8 ? "⁻⁸" : "⁻¹⁶"}`, { class: "al-small", "text-anchor": "middle" }); });
        STEPS.forEach(([name], k) => {
          const y = 26 + 30 * k;
          const seen = k <= state.step;
          const exact = change[k] < 1e-9;
          inner += group({ opacity: seen ? 1 : 0.7, "data-mark": `layer${k}` },
            text(0, y + 16, `<tspan class="al-label">${k}</tspan>  ${label(name)}`, { class: k === state.step ? "al-label" : "" }),
            k && seen ? rect(left, y + 5, Math.max(2, X(change[k]) - left), 13, { class: `al-fill-${exact ? "yes" : "other"}`, "fill-opacity": 0.75 })
              + (exact ? "" : line(X(spread[0][k]), y + 11, X(spread[1][k]), y + 11, { class: "al-stroke-ink", "stroke-width": 1.5 })) : "",
            text(w, y + 16, !k || !seen ? "" : exact ? "exact" : percent(change[k]), { class: `al-small ${exact ? "al-text-yes" : "al-text-ink"}`, "text-anchor": "end" }));
        });
        return { height: 48 + 30 * STEPS.length, inner };
      },
    });
    kit.slider({ key: "step", label: "steps taken", min: 0, max: STEPS.length - 1, step: 1, show: (k) => `${k} of ${STEPS.length - 1}` });
    const WORDS = [
      `The block has H = ${H} heads of width m = ${m}, ${T} tokens of ${d} numbers, layer norms, a residual and an MLP.`,
      "The MLP sees each token alone; theorems of this book stop before it.",
      "Without the residual a token no longer carries itself to the output.",
      "Layer norm is taken out of the layer: what it puts out is called a token from now on.",
      `Keys and queries meet only in their product: nothing is lost but the bound on the rank, ${rank[0]} of ${d}.`,
      `Values and output meet only in their product; its rank is ${rank[1]} of ${d}.`,
      "One head is kept. Many heads are chapter 1's subject; chapters 3 and 4 take one.",
      "The output is read by one vector: a token is worth the number v·x, its score.",
    ];
    return (state) => {
      kit.say(`${WORDS[state.step]}${state.step && change[state.step] > 1e-9 ? ` The output moves by ${percent(change[state.step])} in the median, ${fixed(100 * spread[0][state.step], 0)} to ${fixed(100 * spread[1][state.step], 0)} % in the middle half of the draws.` : ""}`);
      kit.el.dataset.change = String(change[state.step]);
    };
  },
  code: () => `from attnbook import widgets

layer = widgets.LayerSteps()
print(layer.change)  # median over draws of a random block, step by step`,
});
