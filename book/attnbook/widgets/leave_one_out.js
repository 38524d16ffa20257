// Train on n samples and on all but one: how far apart do the two runs end?

import { explorable, fixed } from "./kit/kit.js";

export default explorable({
  name: "leave_one_out",
  title: "Leave one out: what a single sample changes",
  defaults: { k: 5, n: 8, i: 1, bet: null },
  build(kit) {
    const step = Array.from(kit.data("step").values);
    const samples = Array.from(kit.data("samples").values);
    const times = step.length;
    const of = (name, j) => Array.from(kit.data(name).values.slice(j * times, (j + 1) * times));
    const { values, shape } = kit.data("each"); // (sizes, samples, times)
    const without = (j, i) => Array.from(values.slice((j * shape[1] + i) * times, (j * shape[1] + i + 1) * times));
    kit.bet({
      question: "Train twice for a few steps, with and without one sample. Double the number of samples: what happens to the distance between the two ends?",
      options: ["it stays as it is", "it falls by a factor of about 1.4", "it falls by a factor of about 2"],
      outcome: (state) => {
        const k = Math.min(state.k, times - 1);
        if (k === 0) return "Nothing has moved yet: take a later step.";
        const means = samples.map((_, j) => of("mean", j)[k]);
        const factors = means.slice(1).map((value, j) => means[j] / value);
        const nearest = factors.map((x) => [1, Math.SQRT2, 2].reduce((best, y, a, all) => (Math.abs(Math.log(x / y)) < Math.abs(Math.log(x / all[best])) ? a : best), 0));
        const right = nearest.every((a) => a === nearest[0]) && Math.max(...factors) < 2.4 ? nearest[0] : null;
        kit.el.dataset.right = String(right);
        const verdict = right === null ? "None of the three, so late in training." : state.bet === right ? "Yes." : "Look again.";
        return `${verdict} Measured at step ${step[k]}, from ${samples.join(" to ")} samples: it falls by factors of ${factors.map((x) => fixed(x, 2)).join(", ")}. The 1/n of Lemma 11 is a factor of 2; later the runs depend on which samples were drawn.`;
      },
    });
    const row = kit.row();
    const runs = kit.chart({
      label: "distance between the runs with and without a sample, by step", title: "distance of the two runs",
      x: { range: [1, step[times - 1]], log: true, label: "step" }, y: { range: [1e-3, 1e4], log: true, label: "distance" },
    }, row);
    const gaps = kit.chart({
      label: "test minus training loss and its bounds, by number of samples", title: "gap, and its two bounds",
      x: { range: [3.2, 40], log: true, ticks: samples, label: "samples n" }, y: { range: [1e-3, 1e4], log: true, label: "loss" },
    }, row);
    kit.legend([[6, "each sample left out"], [3, "the chosen one", true], [0, "mean distance"], [1, "Lemma 11 and Theorem 2", true], [2, "test minus training loss"], [4, "Lemma 3: 2G times the mean distance", true]]);
    kit.scrubber({ key: "k", times: step });
    kit.slider({ key: "n", label: "samples n", values: samples, show: String });
    kit.slider({ key: "i", label: "leave out sample", min: 1, max: Math.max(...samples), step: 1, show: (i) => String(Math.min(i, kit.state.n)) });
    return (state) => {
      const j = Math.max(0, samples.indexOf(state.n));
      const n = samples[j];
      const i = Math.min(state.i, n);
      const k = Math.min(state.k, times - 1);
      runs.begin();
      for (let other = 0; other < n; other++) runs.line(`e${other}`, step, without(j, other), { series: 6, width: 1, faint: true });
      runs.line("chosen", step, without(j, i - 1), { series: 3, width: 2, dash: "6 3" });
      runs.line("mean", step, of("mean", j), { series: 0, width: 3 });
      runs.line("bound", step, of("stability_bound", j), { series: 1, dash: "8 4", width: 2.5 });
      if (k > 0) runs.mark("here", step[k], of("mean", j)[k], { series: 0, size: 6 });
      runs.end();
      gaps.begin();
      const at = (name) => samples.map((_, m) => of(name, m)[k]);
      [["bound", 1, "8 4"], ["lemma", 4, "3 3"], ["gap", 2, ""]].forEach(([name, series, dash]) => {
        const line = at(name).map((value) => (value > 0 ? value : NaN));
        gaps.line(name, samples, line, { series, dash, width: 2.5 });
        if (line[j] > 0) gaps.mark(`m${name}`, n, line[j], { series, size: 6 });
      });
      gaps.end();
      const [gap, lemma, bound] = ["gap", "lemma", "bound"].map((name) => of(name, j)[k]);
      kit.say(`Step ${step[k]}, ${n} samples. Without sample ${i} the run ends ${fixed(without(j, i - 1)[k], 3)} away; the mean over samples is ${fixed(of("mean", j)[k], 3)}, Lemma 11's bound ${fixed(of("stability_bound", j)[k], 1)}. Test minus training loss ${fixed(Math.abs(gap) < 1e-12 ? 0 : gap, 4)}; Lemma 3 allows ${fixed(lemma, 2)}, Theorem 2 ${fixed(bound, 1)}.`);
      kit.el.dataset.found = JSON.stringify({ mean: of("mean", j)[k], gap, lemma, bound, away: without(j, i - 1)[k] });
    };
  },
  code: (state) => `from attnbook.widgets import training_heads

found = training_heads.leave_one_out(${state.n})
k = ${state.k}
print("step", found["step"][k])
print("distance of the two runs, sample by sample", found["each"][:, k].round(3))
print("mean", found["mean"][k], " Lemma 11", found["stability_bound"][k])
print("gap", found["gap"][k], " Lemma 3", found["lemma"][k], " Theorem 2", found["bound"][k])`,
});
