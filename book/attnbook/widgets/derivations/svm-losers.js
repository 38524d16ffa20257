// A gradient that never subtracts: the winner's share is minus the sum of the others. It is an
// identity of numbers, and of stored numbers it is not one. Twins: tests/browser/test_svm_numbers.py.

import { derivation } from "../kit/derive.js";
import { pair } from "../kit/saturation.js";
import { power } from "../kit/view.js";

const FORMATS = [[53, "64 bits"], [24, "32 bits"], [8, "bfloat16"]];

function situation(state) {
  const p = pair(state.gap, state.digits);
  const rounded = state.dropped.has("real");
  const [winner, loser] = rounded ? p.textbook : p.exact;
  return { ...p, gap: state.gap, digits: state.digits, rounded, q: [winner, loser], apart: p.exact[0] };
}

export default derivation({
  id: "svm-losers",
  defaults: { gap: 40, digits: 53 },
  hypotheses: {
    real: { dropped: "each $q_t$ is what the format below stores." },
  },
  situation,
  steps: {
    zero(s) {
      return { names: ["$q_a$", "$-\\sum_{t\\ne a}q_t$"], rows: [["winner against losers", s.q[0], -s.q[1], "=", "best"]], scale: "row",
        say: s.rounded ? `At a gap of ${s.gap} the winner is stored as ${s.winner === 1 ? "1" : `1 − ${power(1 - s.winner)}`}: its $q_a$ comes out as ${power(s.q[0])}.` : "With real numbers the two are the same." };
    },
    winner(s) {
      return { names: ["$\\gamma_a-\\bar\\gamma$", "$\\sum_{t\\ne a}s_t(\\gamma_a-\\gamma_t)$"], rows: [["lead over the mean", s.q[0] * (1 + Math.exp(-s.gap)), s.exact[0] * (1 + Math.exp(-s.gap)), "=", "best"]], scale: "row",
        say: "The right side adds positive numbers, each known to all digits, if the winner scores best." };
    },
    losers(s) {
      return { names: ["with the winner", "losers only"], rows: [["pull along $x_a-x_t$", s.q[0], -s.q[1], "=", "trained"]], scale: "row",
        say: "Only losers appear. Their logarithms can be kept, so nothing underflows either." };
    },
  },
  data(kit, parent) {
    const controls = kit.row("al-controls");
    parent.append(controls);
    kit.slider({ key: "gap", label: "gap of the logits", min: 0, max: 60, step: 1, show: String, parent: controls });
    kit.choice({ key: "digits", label: "numbers with", options: FORMATS, parent: controls });
  },
});
