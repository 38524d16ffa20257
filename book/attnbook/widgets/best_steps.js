// Each number of heads with the same step, or with its own best: what is left for heads that differ.

import { explorable } from "./kit/kit.js";
import { plot } from "./kit/views.js";

const NAMES = ["heads that differ", "copies of one head", "one head's parameters"];
const COLOURS = ["trained", "query", "rival"];
const SHOWN = [["train", "training loss"], ["test", "loss on other sentences"]];
const HOW = [["same", "the same for all"], ["best", "each its best"]];

export default explorable({
  name: "best_steps",
  title: "Give each its best step",
  defaults: { how: "best", shown: "train", open: 0, left: null },
  answers: ["left"],
  build(kit) {
    const heads = kit.list("heads");
    const most = heads.length - 1;
    const row = (how, shown, arm) => kit.list(`${shown}_${how}`, arm); // (heads, mean, low, high over seeds)
    const now = (state) => (kit.opened ? state : { ...state, how: "same", shown: "train" });
    const column = (s, arm, k) => row(s.how, s.shown, arm).filter((_, j) => j % 3 === k);
    const gain = (how, arm) => { const m = column({ how, shown: "train" }, arm, 0); return m[0] - m[most]; };
    const truth = () => {
      if (gain("best", 2) <= 0.25 * gain("best", 0)) return "parameters";
      return "heads";
    };
    kit.caption("Loss after the last pass, by the number of heads: mean and range over seeds");
    plot(kit, {
      x: { range: [1, heads[most]], log: true, ticks: heads, show: String, label: "heads" },
      y: { range: (state) => {
        const s = now(state);
        const every = NAMES.slice(0, kit.opened ? 3 : 2).flatMap((_, arm) => row(s.how, s.shown, arm));
        return [Math.max(0, Math.min(...every) - 0.02), Math.max(...every) + 0.02];
      }, show: (v) => v.toFixed(2) },
      height: 300,
      told: (state) => {
        const s = now(state);
        return kit.opened ? NAMES.map((words, arm) => `${words}: ${column(s, arm, 0).map((v) => v.toFixed(3)).join(", ")}`).join("; ") : "Loss by the number of heads, the same step for all: heads that differ, and copies of one head.";
      },
      lines: (state) => {
        const s = now(state);
        return (kit.opened ? [2, 1, 0] : [1, 0]).map((arm) => ({
          xs: heads, ys: column(s, arm, 0), colour: COLOURS[arm], mark: COLOURS[arm], given: !kit.opened,
          name: NAMES[arm], dash: arm ? "7 5" : undefined, at: [0.7, 1, 1][arm], dy: s.how === "same" ? [26, 0, -4][arm] : [26, -2, 26][arm],
        }));
      },
      inside: (state, at) => {
        const s = now(state);
        return (kit.opened ? [0, 1, 2] : [0, 1]).map((arm) => {
          const [low, high] = [column(s, arm, 1), column(s, arm, 2)];
          return heads.map((H, h) => { const [x, a] = at([H, low[h]]); const [, b] = at([H, high[h]]); return `<line x1="${x}" x2="${x}" y1="${a}" y2="${b}" class="al-stroke-${COLOURS[arm]}" stroke-width="1.5"/>`; }).join("");
        }).join("");
      },
    });
    const controls = kit.controls();
    kit.choice({ key: "how", label: "step size", options: HOW, parent: controls });
    kit.choice({ key: "shown", label: "show", options: SHOWN, parent: controls });
    kit.draws.push(() => { controls.hidden = !kit.opened; });
    kit.predict({
      heading: "Two confounds at once",
      go: "Tune them all",
      asks: [{
        kind: "choice", key: "left",
        question: `Now every number of heads gets the step that suits it best. ${heads[most]} heads that differ also have ${heads[most]} times the parameters. What becomes of their lead once they are cut to one head's number of parameters?`,
        options: [["heads", "Much of it stays: it is the heads."], ["parameters", "Most of it goes: it was the parameters."]],
        right: truth,
        say: (mine) => {
          const fact = `With each at its best step, ${heads[most]} heads that differ gain ${gain("best", 0).toFixed(3)} over one; cut to one head's parameters they ${gain("best", 2) >= 0 ? "gain" : "lose"} ${Math.abs(gain("best", 2)).toFixed(3)}.`;
          if (mine === null) return fact;
          return `${mine === truth() ? "Yes." : "It is the other way round."} ${fact}`;
        },
      }],
      start: () => kit.set({ how: "best", shown: "train" }),
    });
    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const s = now(state);
      kit.say(`${s.how === "best" ? "Each at its best step" : "One step for all"}: ${NAMES.map((words, arm) => { const m = column(s, arm, 0); return `${words} from ${m[0].toFixed(3)} with one to ${m[most].toFixed(3)} with ${heads[most]}`; }).join("; ")}.`);
      kit.el.dataset.gains = JSON.stringify([0, 1, 2].map((arm) => gain(s.how, arm)));
    };
  },
  code: () => `from attnbook import figures

data = figures.kept("multihead.6")  # the run that the page shows
print(figures.get("multihead.6").verdict(data))`,
});
