// How often training finds the global direction: from a stored sweep.

import { explorable, fixed } from "./kit/kit.js";

const KINDS = ["global", "local", "not local"];

export default explorable({
  name: "how_often",
  title: "How often global? Wider tokens, fewer rivals",
  defaults: { n: 5, T: 5, form: "W", bet: null },
  build(kit) {
    const d = Array.from(kit.data("d").values);
    const n = Array.from(kit.data("n").values);
    const T = Array.from(kit.data("T").values);
    const { values: share } = kit.data("share"); // (n, T, d, forms, global/local/none)
    const { values: proxy } = kit.data("support"); // (n, T, d): mean margin below 1.1
    const { values: exact } = kit.data("exact"); // (n, T, d): every margin 1
    const trials = kit.data("trials").values[0];
    const percent = (rows, tokens) => {
      const cell = ((n.indexOf(rows) * T.length) + T.indexOf(tokens)) * d.length + d.indexOf(4);
      return `${fixed(100 * share[cell * 6], 0)} %`;
    };
    kit.bet({
      question: "More sequences to satisfy at once, at the same width. Does training find the global direction more often?",
      options: ["more often: more data", "less often: more constraints"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} Width helps and more sequences hurt; more tokens hurt less, and at small widths hardly. So the number of constraints, n (T - 1), is not all that counts: compare n = 10, T = 3 (20 of them) with n = 5, T = 10 (45) at d = 4: ${percent(10, 3)} against ${percent(5, 10)} global, with W trained.`,
    });
    const chart = kit.chart({
      label: "shares by token dimension", title: "share of trials by token dimension",
      x: { range: [0.4, d.length + 0.6], ticks: d.map((_, k) => k + 1), show: (k) => String(d[k - 1]), label: "token dimension d" },
      y: { range: [0, 1], label: "share" }, height: 280,
    });
    kit.legend([[0, "global"], [1, "local"], [6, "not local"], [5, "mean margin below 1.1 (the paper's proxy of B.1)", true], [3, "all tokens support (B.1)"]]);
    kit.slider({ key: "n", label: "sequences n", values: n, show: String });
    kit.slider({ key: "T", label: "tokens T", values: T, show: String });
    kit.choice({ key: "form", label: "train", options: [["W", "W"], ["KQ", "K and Q"]] });
    return (state) => {
      const i = Math.max(0, n.indexOf(state.n));
      const j = Math.max(0, T.indexOf(state.T));
      const form = state.form === "KQ" ? 1 : 0;
      const at = (k, kind) => share[((((i * T.length) + j) * d.length + k) * 2 + form) * 3 + kind];
      chart.begin();
      d.forEach((_, k) => {
        let bottom = 0;
        KINDS.forEach((__, kind) => {
          const value = at(k, kind);
          chart.rect(`b${k}${kind}`, [k + 0.65, bottom], [k + 1.35, bottom + value], { series: [0, 1, 6][kind], strength: [0.85, 0.7, 0.45][kind] });
          bottom += value;
        });
      });
      const line = (values) => d.map((_, k) => values[(i * T.length + j) * d.length + k]);
      chart.line("proxy", d.map((_, k) => k + 1), line(proxy), { series: 5, dash: "6 4", width: 2.5 });
      chart.line("b1", d.map((_, k) => k + 1), line(exact), { series: 3, width: 2.5 });
      chart.end();
      kit.say(`n = ${n[i]}, T = ${T[j]}, ${state.form === "KQ" ? "K and Q" : "W"} trained, ${trials} trials a bar. Global: ${d.map((x, k) => `${fixed(100 * at(k, 0), 0)} % at d = ${x}`).join(", ")}. At d = ${d[d.length - 1]} the mean margin is below 1.1 in ${fixed(100 * line(proxy).pop(), 0)} % of the trials, and B.1 itself holds in ${fixed(100 * line(exact).pop(), 1)} %.`);
      kit.el.dataset.exact = JSON.stringify(line(exact));
      kit.el.dataset.global = JSON.stringify(d.map((_, k) => at(k, 0)));
    };
  },
  code: (state) => `from attnbook import figures

data = figures.get("svm.5").run(n=${state.n}, T=${state.T}, trials=200, steps=2000)
figures.get("svm.5").draw(data)`,
});
