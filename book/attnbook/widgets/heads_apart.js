// What each of many heads looks at in one sentence, before and after training: differing heads, copies.

import { explorable } from "./kit/kit.js";
import { rect, text } from "./kit/view.js";

const words = ["the", "plot", "is", "thin", "and", "the", "jokes", "are", "old", ",", "but", "the", "two", "actors", "are", "wonderful", "[CLS]"];
const ARMS = [["0", "heads that differ"], ["1", "copies of one head"]];
const WHEN = [["0", "before training"], ["1", "after it"]];

export default explorable({
  name: "heads_apart",
  title: "Where the heads look",
  defaults: { arm: "0", when: "1", head: 1 },
  build(kit) {
    const [, , H, T] = kit.data("look").shape;
    const row = (state, h) => kit.list("look", Number(state.arm), Number(state.when), h);
    const spread = (state) => {
      const means = Array.from({ length: T }, (_, t) => Array.from({ length: H }, (__, h) => row(state, h)[t]).reduce((a, b) => a + b) / H);
      const away = Array.from({ length: H }, (_, h) => row(state, h).reduce((sum, p, t) => sum + Math.abs(p - means[t]), 0) / 2);
      return away.reduce((a, b) => a + b) / H;
    };
    const held = (state) => Math.max(1, Math.min(H, state.head)) - 1;
    kit.caption("One row a head, one column a word of our sentence; [CLS] asks, and darker is more attention");
    kit.view({
      name: "rows",
      told: (state) => `Head ${held(state) + 1}: ${row(state, held(state)).map((p, t) => `${words[t]} ${Math.round(100 * p)} %`).join(", ")}`,
      draw: (w, state) => {
        const [top, cell] = [78, 9];
        const wide = w / T;
        const most = Math.max(0.3, ...Array.from({ length: H }, (_, h) => Math.max(...row(state, h))));
        let inner = words.map((word, t) => `<g transform="translate(${(t + (w < 560 ? 0.5 : 0.65)) * wide + (w < 560 ? 4 : 0)},${top - 6}) rotate(${w < 560 ? -90 : -55})">${text(0, 0, word, { class: "al-small" })}</g>`).join("");
        for (let h = 0; h < H; h += 1) {
          row(state, h).forEach((p, t) => { inner += rect(t * wide + 0.5, top + h * cell, wide - 1, cell - 1, { class: "al-fill-trained", "fill-opacity": Math.min(1, 0.05 + (0.95 * p) / most).toFixed(3) }); });
        }
        inner += rect(0.5, top + held(state) * cell - 1, w - 1, cell + 1, { class: "al-stroke-ink", fill: "none" });
        return { height: top + H * cell + 4, inner };
      },
    });
    const controls = kit.controls();
    kit.choice({ key: "arm", label: "show", options: ARMS, parent: controls });
    kit.choice({ key: "when", label: "when", options: WHEN, parent: controls });
    kit.slider({ key: "head", label: "head", min: 1, max: H, step: 1, show: String, parent: controls });
    return (state) => {
      const s = row(state, held(state));
      const best = s.indexOf(Math.max(...s));
      kit.say(`Head ${held(state) + 1} gives most to "${words[best]}", ${(100 * s[best]).toFixed(0)} %. On average ${(100 * spread(state)).toFixed(0)} % of a head’s attention lies elsewhere than that of the mean head.`);
      kit.el.dataset.spread = String(spread(state));
    };
  },
  code: () => `from attnbook import figures

data = figures.kept("multihead.6")  # the run that the page shows
start, end = data["look"][0, 0]  # heads that differ, (heads, words)
print(abs(end - end.mean(axis=0)).sum(axis=1).mean() / 2)`,
});
