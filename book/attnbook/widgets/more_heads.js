// Heads on real sentences: the loss of one head and of many, with a longer step and parameters taken apart.

import { explorable } from "./kit/kit.js";
import { plot } from "./kit/views.js";

const SHOWN = [["train", "training loss"], ["test", "loss on other sentences"], ["accuracy", "accuracy"]];
const NAMES = ["heads that differ", "copies of one head", "one head's parameters"];
const COLOURS = ["trained", "query", "rival"];
const FORM = (v) => v.toFixed(3);

export default explorable({
  name: "more_heads",
  title: "One head, many heads, and many copies of one",
  wide: true,
  defaults: { H: 32, rate: 1, shown: "train", open: 0, share: null },
  answers: ["share"],
  build(kit) {
    const heads = kit.list("heads");
    const rates = kit.list("rates");
    const epoch = kit.list("epoch");
    const common = kit.data("common").values[0];
    const most = heads.length - 1;
    const last = epoch.length - 1;
    const now = (state) => (kit.opened ? state : { ...state, H: heads[most], rate: common, shown: "train" });
    const place = (state) => Math.max(0, heads.indexOf(state.H));
    const mean = (state, arm, h) => kit.list(state.shown, arm, Math.max(0, Math.min(rates.length - 1, state.rate)), h);
    const gain = (arm) => {
      const rows = [0, most].map((h) => kit.list("train", arm, common, h)[last]);
      return rows[0] - rows[1];
    };
    const share = () => Math.round((100 * gain(1)) / gain(0));
    const span = (state) => {
      const { shown } = now(state);
      if (shown === "accuracy") return [0.5, 0.8];
      const r = now(state).rate;
      const every = NAMES.slice(0, kit.opened ? 3 : 1).flatMap((_, arm) => heads.flatMap((__, h) => kit.list(shown, arm, r, h)));
      return [Math.max(0, Math.min(...every) - 0.02), Math.min(1.2, Math.max(...every) + 0.02)];
    };
    plot(kit, {
      x: { range: [0, epoch[last]], ticks: epoch.filter((v) => v === Math.round(v)), label: "passes through the sentences" },
      y: { range: span, show: (v) => v.toFixed(2), get label() { return SHOWN.find(([key]) => key === now(kit.state).shown)[1]; } },
      height: 330,
      told: (state) => {
        const s = now(state);
        const arms = kit.opened ? NAMES : NAMES.slice(0, 1);
        return `${SHOWN.find(([key]) => key === s.shown)[1]} over ${epoch[last]} passes, from one head at the end ${kit.opened ? FORM(mean(s, 0, 0)[last]) : "to many"}${kit.opened ? `; with ${s.H}: ${arms.map((words, arm) => `${words} ${FORM(mean(s, arm, place(s))[last])}`).join(", ")}` : ""}.`;
      },
      lines: (state) => {
        const s = now(state);
        const h = place(s);
        const one = { xs: epoch, ys: mean(s, 0, 0), colour: "ink", name: "one head", mark: "one", at: 0.55, given: true };
        const arms = kit.opened ? [2, 1, 0] : [0];
        return [one, ...(h === 0 ? [] : arms.map((arm) => ({
          xs: epoch, ys: mean(s, arm, h), colour: COLOURS[arm], mark: COLOURS[arm], given: !kit.opened,
          name: arm === 2 ? `${s.H} heads, ${NAMES[2]}` : `${s.H} ${NAMES[arm]}`, dash: arm ? "7 5" : undefined,
          at: [0.75, 0.6, 0.95][arm], dy: [24, -8, -6][arm],
        })))];
      },
      marks: (state) => (kit.opened && state.share !== null && state.shown === "train" && state.rate === common && state.H === heads[most]
        ? [{ x: epoch[last], y: kit.list("train", 0, common, 0)[last] - (state.share / 100) * gain(0), colour: "you", name: "you" }] : []),
    });
    const row = kit.controls();
    kit.slider({ key: "H", label: "heads", values: heads, show: String, parent: row });
    kit.slider({ key: "rate", label: "step size of Adam", values: rates.map((_, k) => k), show: (k) => String(Number(rates[k].toPrecision(2))), parent: row });
    kit.choice({ key: "shown", label: "show", options: SHOWN, parent: row });
    kit.draws.push(() => { row.hidden = !kit.opened; });
    kit.predict({
      heading: "What did the heads do?",
      go: "Train the copies",
      asks: [{
        kind: "number", key: "share", min: 0, max: 100, step: 5, start: 50, show: (v) => `${v} %`,
        question: `Now ${heads[most]} copies of one head: they start equal and stay equal, so they can look at one thing only. At the same step size, how much of the gain do they keep?`,
        truth: share,
        say: (mine) => {
          const fact = `The copies keep ${share()} % of the gain in training loss, although there is one head among them.`;
          const why = "The output is a sum: when all copies step together, it moves further. More heads were mostly a longer step.";
          if (mine === null) return `${fact} ${why}`;
          if (Math.abs(mine - share()) <= 10) return `Well judged. ${fact} ${why}`;
          if (mine < share()) return `More than that. ${fact} ${why}`;
          return `Less than that. ${fact} The rest needs heads that differ.`;
        },
      }],
    });
    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const s = now(state);
      const ends = [mean(s, 0, 0)[last], ...[0, 1, 2].map((arm) => mean(s, arm, place(s))[last])];
      const what = SHOWN.find(([key]) => key === s.shown)[1];
      kit.say(`Step ${Number(rates[s.rate].toPrecision(2))}, mean of ${kit.data("seeds").values[0]} seeds: ${what} after the last pass is ${FORM(ends[0])} with one head; with ${s.H} it is ${FORM(ends[1])} where heads differ, ${FORM(ends[2])} with copies, ${FORM(ends[3])} with one head's parameters.`);
      kit.el.dataset.ends = JSON.stringify(ends);
    };
  },
  code: (state) => `from attnbook import figures

data = figures.kept("multihead.6")  # the run that the page shows
heads, rate = list(data["heads"]).index(${state.H}), ${state.rate}
print(data["${state.shown}"][:, :, rate, heads, -1].mean(axis=0))  # ${NAMES.join("; ")}`,
});
