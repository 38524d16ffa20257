// Share of draws in which a max-margin W exists, over width d and length T: a phase picture.

import { explorable } from "./kit/kit.js";
import { label, percent, rect, tag, text } from "./kit/view.js";

export default explorable({
  name: "enough_width",
  title: "How wide is wide enough?",
  defaults: { n: 3, which: 1 },
  build(kit) {
    const [ns, Ts, ds] = ["n", "T", "d"].map((name) => kit.list(name));
    const trials = kit.list("trials")[0];
    const share = (which, n, a, b) => kit.list("found", which, ns.indexOf(n), a)[b] / trials;
    kit.caption("Draws in which some $W$ puts the selected tokens first, in percent");
    kit.view({
      name: "phase",
      told: (state) => `${state.which ? "Tokens selected by chance" : "Best tokens"}, ${state.n} sequences. ${Ts.map((T, a) => `T ${T}: ${ds.map((d, b) => `d ${d} ${percent(share(state.which, state.n, a, b))}`).join(", ")}`).join("; ")}`,
      draw: (w, state) => {
        const left = 46;
        const c = Math.min(86, (w - left - 4) / ds.length);
        const h = Math.min(44, c);
        const top = 6;
        const Y = (a) => top + (Ts.length - 1 - a) * h;
        let inner = "";
        Ts.forEach((T, a) => {
          inner += text(left - 10, Y(a) + h / 2 + 5, T, { class: "al-small", "text-anchor": "end" });
          ds.forEach((d, b) => {
            const p = share(state.which, state.n, a, b);
            inner += rect(left + b * c, Y(a), c - 2, h - 2, { class: "al-fill-best", "fill-opacity": (0.06 + 0.84 * p).toFixed(3) })
              + text(left + b * c + c / 2 - 1, Y(a) + h / 2 + 5, Math.round(100 * p), { class: `al-small${p > 0.6 ? " al-on" : ""}`, "text-anchor": "middle" });
          });
        });
        const bottom = top + Ts.length * h;
        ds.forEach((d, b) => { inner += text(left + b * c + c / 2, bottom + 16, d, { class: "al-small", "text-anchor": "middle" }); });
        inner += text(left + ds.length * c, bottom + 34, label("width $d$"), { class: "al-small", "text-anchor": "end" })
          + text(4, top + 14, label("$T$"), { class: "al-small" });
        // the staircase left of which a rule does not promise anything
        const stairs = (allowed, attributes) => {
          let d = "";
          let last = null;
          Ts.forEach((T, a) => {
            const first = ds.findIndex((width) => allowed(T, width));
            const x = left + (first < 0 ? ds.length : first) * c - 1;
            d += `${last === null ? "M" : "L"}${x.toFixed(1)},${(Y(a) + h).toFixed(1)}L${x.toFixed(1)},${Y(a).toFixed(1)}`;
            last = x;
          });
          return tag("path", { d, fill: "none", ...attributes });
        };
        inner += stairs((T, d) => d >= Math.max(T - 1, state.n), { class: "al-stroke-bound", "stroke-width": 3.4, "data-mark": "bound" })
          + stairs((T, d) => state.n * (T - 1) <= d * d, { class: "al-stroke-rival", "stroke-width": 2.4, "stroke-dasharray": "6 4", "data-mark": "count" });
        const y = bottom + 52;
        inner += rect(left, y - 6, 24, 3.4, { class: "al-fill-bound" }) + text(left + 32, y, label("promised to its right: $d \\ge T-1$ and $d \\ge n$"), { class: "al-small" })
          + tag("line", { x1: left, x2: left + 24, y1: y + 16, y2: y + 16, class: "al-stroke-rival", "stroke-width": 2.4, "stroke-dasharray": "6 4" })
          + text(left + 32, y + 20, label("as many entries as inequalities: $d^2 \\ge n(T-1)$"), { class: "al-small" });
        return { height: y + 30, inner };
      },
    });
    const bar = kit.controls();
    kit.choice({ key: "which", label: "selected", options: [[1, "by chance"], [0, "the best tokens"]], parent: bar });
    kit.slider({ key: "n", label: "sequences", values: ns, show: String, parent: bar });
    return (state) => {
      const low = Ts.flatMap((_, a) => ds.map((_d, b) => share(state.which, state.n, a, b)));
      kit.el.dataset.mean = (low.reduce((x, y) => x + y, 0) / low.length).toFixed(4);
      kit.say(`${state.n} sequences, ${trials} Gaussian draws a field.`);
    };
  },
  code: (state) => `import numpy as np
from attnlab import problems, svm

rng, n, T, d = np.random.default_rng(0), ${state.n}, 5, 3
drawn = problems.TokenProblem(
    X=rng.standard_normal((100, n, T, d)),
    z=rng.standard_normal((100, n, d)),
    y=np.ones((100, n)),
    v=rng.standard_normal((100, d)),
)
tokens = ${state.which ? "rng.integers(0, T, (100, n))" : "None  # the best ones"}
print((svm.attention_svm(drawn, tokens).status == "optimal").mean())`,
});
