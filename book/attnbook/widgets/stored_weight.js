// Near 1 numbers lie far apart, near 0 they do not: what is stored of two softmax weights.

import { explorable } from "./kit/kit.js";
import { bits, pair } from "./kit/saturation.js";
import { bothSides } from "./kit/views.js";
import { label, power, rect, text } from "./kit/view.js";

const FORMATS = [[53, "64 bits"], [24, "32 bits"], [8, "bfloat16"]];
const SHOWN = (x) => (x === 1 ? "1 exactly" : x === 0 ? "0" : x > 0.5 ? (x > 0.999 ? `1 − ${power(1 - x)}` : x.toFixed(4)) : power(x));
const firstOne = (digits) => {
  let gap = 1;
  while (pair(gap, digits).winner < 1) gap += 1;
  return gap;
};
const lastLoser = (digits) => {
  let gap = 1;
  while (pair(gap, digits).loser > 0) gap += 1;
  return gap - 1;
};

export default explorable({
  name: "stored_weight",
  title: "A winner and a loser, as they are stored",
  answers: ["guess"],
  defaults: { gap: 4, digits: 53, open: 0, guess: null },
  build(kit) {
    const gapOf = (state) => (kit.opened ? state.gap : 4);
    const both = (state) => pair(gapOf(state), kit.opened ? state.digits : 53);
    kit.view({
      name: "bits",
      told: (state) => { const p = both(state); return `At a gap of ${gapOf(state)}: the winner's weight is ${SHOWN(p.winner)}, the loser's ${SHOWN(p.loser)}`; },
      draw: (w, state) => {
        const p = both(state);
        const c = w / 64;
        const row = (x, y, name, colour) => {
          const cells = bits(x).split("").map((bit, k) => rect(k * c + (k > 0 ? 0.5 : 0) + (k > 11 ? 2 : 0), y + 20, c - 1.2, 18, { class: `al-fill-${k === 0 ? "ink" : k < 12 ? "soft" : colour} al-stroke-rule`, "fill-opacity": bit === "1" ? 0.9 : 0.07 })).join("");
          return text(0, y + 14, label(name), { class: `al-label al-text-${colour}` }) + text(w, y + 14, SHOWN(x), { class: "al-label", "text-anchor": "end" }) + cells;
        };
        const foot = (w < 480 ? "" : text(c, 58 + 44 + 12, "exponent", { class: "al-small" })) + text(12 * c + 2, 58 + 44 + 12, "fraction: 52 binary digits", { class: "al-small" });
        return { height: 124, inner: row(p.winner, 0, "winner", "best") + row(p.loser, 48, "loser", "rival") + foot };
      },
    });
    const names = kit.caption("What each pulls with, $s_t(\\gamma_t-\\bar\\gamma)$, for scores 1 and 0");
    const bars = bothSides(kit, {
      log: true, names: ["textbook formula", "exact"], show: (v) => power(v),
      rows: (state) => {
        const p = both(state);
        return kit.opened ? ["winner", "loser"].map((name, j) => ({
          name, left: Math.abs(p.textbook[j]), right: Math.abs(p.exact[j]), ok: Math.abs(Math.abs(p.textbook[j]) / (Math.abs(p.exact[j]) || 1) - 1) < 0.05,
        })) : [];
      },
    });
    const bar = kit.controls();
    kit.slider({ key: "gap", label: "gap of the logits", values: [...Array.from({ length: 60 }, (_, j) => j), 65, 70, 80, 90, 100, 103, 104, 110, 120, 150, 200, 300, 400, 500, 600, 700, 740, 745, 746, 750], show: String, parent: bar });
    const more = kit.controls();
    kit.choice({ key: "digits", label: "numbers with", options: FORMATS, parent: more });
    kit.predict({
      heading: "Before the gap grows",
      go: "Let it grow",
      asks: [{
        kind: "number", key: "guess", min: 1, max: 760, step: 1, start: 380, show: (v) => String(v),
        question: "Softmax never gives a weight of exactly 1. In 64-bit arithmetic it does: from which gap of logits on?",
        truth: () => firstOne(53),
        say: (mine) => {
          const [one, none] = [firstOne(53), lastLoser(53)];
          const story = `From ${one} on the winner is stored as 1. The loser is still known to sixteen digits there, and lives on until a gap of ${none}.`;
          if (mine === null) return story;
          if (mine > 600) return `That is where the loser becomes 0. ${story}`;
          if (mine > 60) return `Much earlier: the winner has to leave room for 1 − s, and near 1 numbers are 10⁻¹⁶ apart. ${story}`;
          if (mine >= 30) return `Close. ${story}`;
          return `A little later: e to the minus gap must fall below 10⁻¹⁶. ${story}`;
        },
      }],
      start: () => kit.set({ gap: 37, digits: 53 }),
    });
    return (state) => {
      bar.hidden = more.hidden = names.hidden = bars.host.hidden = !kit.opened;
      const p = both(state);
      kit.say(`Gap ${gapOf(state)}: the winner is stored as ${SHOWN(p.winner)}, the loser as ${SHOWN(p.loser)}.${kit.opened && p.winner === 1 && p.loser > 0 ? " The textbook lets the winner pull with 0." : ""}`);
      kit.el.dataset.pair = JSON.stringify([p.winner, p.loser]);
      kit.el.dataset.pulls = kit.opened ? JSON.stringify(p.textbook) : "";
    };
  },
  code: (state) => `import numpy as np

gap = ${state.gap}
small = np.exp(-np.float${state.digits === 53 ? 64 : 32}(gap))
loser, winner = small / (1 + small), 1 / (1 + small)
print("winner", winner, "1 - winner", 1 - winner, "loser", loser)`,
});
