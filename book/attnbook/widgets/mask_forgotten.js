// Trained with a causal mask, used without it: what was never compared is decided all the same.

import { explorable } from "./kit/kit.js";
import { EXAMPLE, angle, attentionMapOf, inequalities, opened, run } from "./kit/masks.js";
import { attentionMap } from "./kit/views.js";
import { percent } from "./kit/view.js";

const [ETA, STEPS] = [0.5, 120];
const T = EXAMPLE.X.length;
const CAUSAL = opened(T, 0);
const FULL = opened(T, T * T);
let kept = null;
const trained = () => { kept ||= run(EXAMPLE, CAUSAL, ETA, STEPS); return kept; };
let goals = null;
const directions = () => { goals ||= [CAUSAL, FULL].map((mask) => inequalities(EXAMPLE, mask).W); return goals; };

export default explorable({
  name: "mask_forgotten",
  title: "Trained with the mask, used without it",
  answers: ["bet"],
  defaults: { k: STEPS, open: 0, bet: null },
  build(kit) {
    const W = (state) => (kit.opened ? trained()[Math.min(state.k, STEPS)] : [[0, 0], [0, 0]]);
    const grid = kit.row("al-grid-2");
    const [left, right] = [0, 1].map(() => { const box = document.createElement("div"); grid.append(box); return box; });
    kit.caption("As trained, behind the mask", left);
    attentionMap(kit, { parent: left, map: (state) => attentionMapOf(EXAMPLE, CAUSAL, W(state)), mask: () => CAUSAL, largest: 50, row: () => 1 });
    kit.caption("The same $W$, mask removed", right);
    attentionMap(kit, { parent: right, map: (state) => attentionMapOf(EXAMPLE, FULL, W(state)), largest: 50, row: () => 1 });
    const bar = kit.controls();
    kit.slider({ key: "k", label: "training step", min: 0, max: STEPS, step: 1, show: String, parent: bar });
    kit.predict({
      heading: "Before you take it away",
      go: "Take the mask away",
      asks: [{
        kind: "choice", key: "bet",
        question: "Training has made position 2 look at token 2, its best visible one. Now the mask is gone. Where does it look?",
        options: [
          ["stay", "Still at token 2: that is what it learned."],
          ["spread", "It spreads over the tokens that it never met."],
          ["jump", "At one token that it never met, with all its weight."],
        ],
        right: () => "jump",
        say: (mine) => {
          const map = attentionMapOf(EXAMPLE, FULL, trained()[STEPS]);
          const to = map[1].indexOf(Math.max(...map[1]));
          const start = { stay: "It learned that token 2 beats token 1, and no more.", spread: "Doubt would need small logits; a long W has none.", jump: "Yes." }[mine] || "";
          return `${start} Position 2 gives ${percent(map[1][to])} of its attention to token ${to + 1}, which no step of training ever showed it. Position 3 stays with token 3, though token 4 is better: nothing ever compared the two for it. Both are accidents of where the hidden tokens lie.`;
        },
      }],
      start: () => kit.set({ k: STEPS }),
    });
    return (state) => {
      bar.hidden = !kit.opened;
      if (!kit.opened) { kit.say("Before training every position spreads its attention evenly over what it sees."); return; }
      const [own, other] = directions();
      if (state.k === 0) { kit.say("Step 0: W is zero, and attention is even."); return; }
      const off = [angle(W(state), own), angle(W(state), other)];
      kit.say(`Step ${state.k}: W is ${off[0].toFixed(1)}° from the max-margin direction of the causal mask and ${off[1].toFixed(1)}° from that of full attention.`);
      kit.el.dataset.angles = JSON.stringify(off);
      kit.el.dataset.removed = JSON.stringify(attentionMapOf(EXAMPLE, FULL, W(state))[1]);
    };
  },
  code: (state) => `import numpy as np
from attnbook import widgets
from attnlab import models, optim, problems

causal = widgets.CausalMask().problem  # five tokens in the plane
free = problems.TokenProblem(causal.X, causal.z, causal.y, causal.v)
model = models.Attention(start="zero")
run = optim.train(model, causal, optim.NormalizedGD(${ETA}), ${Math.max(1, state.k)})
print(model.attention(run.params, causal).round(2))
print(model.attention(run.params, free).round(2))`,
});
