// How often training ends on the best tokens, by width: a stored sweep, with B.1 and its proxy.

import { explorable } from "./kit/kit.js";
import { plot } from "./kit/views.js";
import { percent } from "./kit/view.js";

export default explorable({
  name: "how_often",
  title: "Wider tokens, fewer wrong ends",
  defaults: { n: 5, T: 5, form: "W", open: 0, guess: null },
  answers: ["guess"],
  build(kit) {
    const d = kit.list("d");
    const n = kit.list("n");
    const T = kit.list("T");
    const { values: share } = kit.data("share"); // (n, T, d, forms, global/local/none)
    const { values: proxy } = kit.data("support"); // (n, T, d): mean margin below 1.1
    const { values: exact } = kit.data("exact"); // (n, T, d): every margin 1
    const trials = kit.data("trials").values[0];
    const cell = (state) => Math.max(0, n.indexOf(state.n)) * T.length + Math.max(0, T.indexOf(state.T));
    const line = (state, values) => d.map((_, k) => values[cell(state) * d.length + k]);
    const global = (state) => d.map((_, k) => share[((cell(state) * d.length + k) * 2 + (state.form === "KQ" ? 1 : 0)) * 3]);
    const last = d.length - 1;
    const now = (state) => (kit.opened ? state : { ...state, n: 5, T: 5, form: "W" });

    const names = (state) => [
      { xs: d, ys: global(now(state)), colour: "trained", name: "ends on the best tokens", mark: "trained", at: 1, dy: 115, given: true },
      { xs: d, ys: line(now(state), proxy), colour: "soft", dash: "6 5", name: "mean margin below 1.1", mark: "proxy", at: 1, dy: 140, given: true },
    ];
    kit.caption(`Share of ${trials} random problems, by the dimension $d$ of the tokens (dashed: the paper's proxy for B.1)`);
    plot(kit, {
      x: { range: [d[0], d[last]], ticks: d, label: "token dimension $d$" },
      y: { range: [0, 1.02], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent }, height: 290,
      told: (state) => `Share of trials, by dimension ${d.join(", ")}. Training ends on the best tokens: ${global(now(state)).map(percent).join(", ")}. Mean margin below 1.1: ${line(now(state), proxy).map(percent).join(", ")}.${kit.opened ? ` All margins 1: ${line(state, exact).map(percent).join(", ")}.` : ""}`,
      lines: (state) => (kit.opened ? [...names(state), { xs: d, ys: line(state, exact), colour: "bound", name: "all margins 1: B.1 itself", mark: "exact", at: 1, dy: -8 }] : names(state)),
      marks: (state) => (kit.opened && state.guess !== null && state.n === 5 && state.T === 5 ? [{ x: d[last], y: state.guess / 100, colour: "you", name: "you" }] : []),
    });
    const row = kit.controls();
    kit.slider({ key: "n", label: "sequences n", values: n, show: String, parent: row });
    kit.slider({ key: "T", label: "tokens T", values: T, show: String, parent: row });
    kit.choice({ key: "form", label: "train", options: [["W", "W"], ["KQ", "K and Q"]], parent: row });
    kit.draws.push(() => { row.hidden = !kit.opened; });
    kit.predict({
      heading: "How wide is wide?",
      go: "Compare",
      asks: [{
        kind: "number", key: "guess", min: 0, max: 100, step: 1, start: 50, show: (v) => `${v} %`,
        question: "At $d=20$ the mean margin is below 1.1 in every problem, and training hardly errs any more. In how many of these problems are really all margins equal to 1, as B.1 asks?",
        truth: (state) => Math.round(1000 * line({ ...state, n: 5, T: 5 }, exact)[last]) / 10,
        say: (mine, state) => {
          const is = percent(line({ ...state, n: 5, T: 5 }, exact)[last]);
          const fact = `In ${is}. A mean below 1.1 leaves room for a few of the 20 margins to stand above 1, and nearly always some do.`;
          if (mine === null) return fact;
          if (mine <= 5) return `Well judged: ${fact[0].toLowerCase()}${fact.slice(1)}`;
          return `You said ${mine} %. ${fact} So it is not B.1 that explains the purple line.`;
        },
      }],
    });
    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      kit.say(`${state.n} sequences of ${state.T} tokens, ${state.form === "KQ" ? "K and Q" : "W"} trained. At d = ${d[last]}: training ends on the best tokens in ${(100 * global(state)[last]).toFixed(1)} % of the problems, the mean margin is below 1.1 in ${percent(line(state, proxy)[last])}, and B.1 itself holds in ${percent(line(state, exact)[last])}.`);
      kit.el.dataset.exact = JSON.stringify(line(state, exact));
      kit.el.dataset.global = JSON.stringify(global(state));
    };
  },
  code: (state) => `from attnbook import figures

data = figures.get("svm.5").run(n=${state.n}, T=${state.T}, trials=200, steps=2000)
figures.get("svm.5").draw(data)`,
});
