// Trainings on real words: which hypothesis do they miss, orthogonal tokens or equal scores?

import { explorable, fixed } from "./kit/kit.js";

const WORLDS = [["orthogonal tokens", "equal scores"], ["words", "equal scores"], ["orthogonal tokens", "the words' own scores"], ["words", "the words' own scores"]];
const CHOSEN = 0.5;
const LEVELS = 127; // attention as it travels

export default explorable({
  name: "four_worlds",
  title: "Two hypotheses, dropped one by one",
  answers: ["which"],
  defaults: { tokens: 1, scores: 1, run: 0, k: 999, open: 0, which: null },
  build(kit) {
    const steps = kit.list("step");
    const [, runs, n, count] = kit.data("attention").shape; // (worlds, trainings, texts, times)
    const words = kit.data("scores").shape[3];
    const world = (state) => 2 * state.scores + state.tokens;
    const on = (w, run) => Array.from({ length: n }, (_, i) => kit.list("attention", w, run, i).map((v) => v / LEVELS));
    const least = (w, run) => {
      const all = on(w, run);
      return steps.map((_, k) => Math.min(...all.map((one) => one[k])));
    };
    const memo = {};
    const leasts = (w) => (memo[w] = memo[w] || Array.from({ length: runs }, (_, run) => least(w, run)));
    const arrived = (w, k = count - 1) => leasts(w).filter((one) => one[k] > CHOSEN).length;
    const soon = steps.findIndex((step) => step >= 1000);
    // by how much the best word of each text leads its runner-up
    const leads = (w, run) => Array.from({ length: n }, (_, i) => {
      const [first, second] = kit.list("scores", w < 2 ? 0 : 1, run, i).sort((a, b) => b - a);
      return first - second;
    });
    const row = kit.row();
    const all = kit.chart({ label: "least attention on a best word, by step", title: "least attention on a best word, a line a training", height: 280, x: { range: [1, steps[count - 1]], log: true, label: "step" }, y: { range: [0, 1.02] } }, row);
    const each = kit.chart({ label: "attention on each best word by its lead", title: "the marked training, a dot a text", height: 280, x: { range: [0, 1.6], label: "lead of the best word's score" }, y: { range: [0, 1.02], label: "attention on it" } }, row);
    kit.predict({
      heading: "Before they run", go: "Run them",
      asks: [{
        kind: "choice", key: "which",
        question: `Twenty trainings, each on twenty texts of ${words} real words. The theorem wants nearly orthogonal tokens, and one score for all rivals of a best word; real words have neither. What does it take so that, at the end of a long run, a good share of the trainings is not on every best word?`,
        options: [["tokens", "Real words in place of orthogonal tokens, nothing else."], ["scores", "Scores of their own, nothing else."], ["either", "Either of the two."], ["together", "The two together; each alone is harmless."], ["none", "Nothing does: practically all arrive, whatever is dropped."]],
        right: () => truth(),
        say: (mine) => `${mine === null ? "" : mine === truth() ? "Yes. " : "Not quite. "}Of ${runs} trainings ${arrived(0)} end on every best word with both hypotheses, ${arrived(1)} with words in place of orthogonal tokens, ${arrived(2)} with the words' own scores, and ${arrived(3)} with words and their own scores. A thousand steps were enough for ${[0, 1, 2, 3].map((w) => arrived(w, soon)).join(", ")} of them: what is lost is time. Move the step back.`,
      }],
    });
    function truth() {
      const [tokens, scores, together] = [1, 2, 3].map((w) => arrived(w) < 0.8 * runs);
      return tokens && scores ? "either" : tokens ? "tokens" : scores ? "scores" : together ? "together" : "none";
    }
    const controls = kit.controls();
    kit.choice({ key: "tokens", label: "tokens", options: [[0, "orthogonal"], [1, "words"]], parent: controls });
    kit.choice({ key: "scores", label: "scores of rivals", options: [[0, "equal"], [1, "each word its own"]], parent: controls });
    kit.slider({ key: "run", label: "marked training", min: 0, max: runs - 1, step: 1, show: (v) => String(v + 1), parent: controls });
    kit.scrubber({ key: "k", times: steps, parent: controls });
    kit.draws.push(() => { controls.hidden = !kit.opened; });
    return (state) => {
      const w = world(state);
      const k = Math.min(state.k, count - 1);
      const run = Math.min(state.run, runs - 1);
      all.begin();
      each.begin();
      if (kit.opened) {
        leasts(w).forEach((line, j) => {
          const good = line[count - 1] > CHOSEN;
          all.line(`t${j}`, steps, line, { series: good ? 0 : 1, width: 1.2, dash: good ? "" : "6 4" });
        });
        const mine = leasts(w)[run];
        all.line("mine", steps, mine, { series: 3, width: 3 });
        all.mark("now", steps[k], mine[k], { series: 3, size: 6 });
        const attention = on(w, run);
        leads(w, run).forEach((lead, i) => each.mark(`m${i}`, Math.min(lead, 1.6), attention[i][k], { series: attention[i][k] > CHOSEN ? 0 : 1, shape: attention[i][k] > CHOSEN ? "circle" : "square", size: 4.5 }));
      }
      all.end();
      each.end();
      const lost = kit.opened ? on(w, run).filter((one) => one[k] <= CHOSEN).length : 0;
      kit.say(kit.opened
        ? `${WORLDS[w][0]}, ${WORLDS[w][1]}: ${arrived(w)} of ${runs} trainings end with most attention on every best word, ${arrived(w, k)} have it at step ${steps[k]}. Training ${run + 1} there: ${n - lost} of ${n} texts have it; the least is ${fixed(leasts(w)[run][k], 3)}.`
        : "Attention on the best word of each text, as W trains from zero.");
      kit.el.dataset.arrived = kit.opened ? String(arrived(w)) : "";
      kit.el.dataset.least = kit.opened ? String(leasts(w)[run][k]) : "";
    };
  },
  code: (state) => `from attnbook import figures

data = figures.kept("bias.10")
attention = data["attention"][:, ${2 * state.scores + state.tokens}]  # (draws, trainings, texts, steps)
least = attention[..., -1].min(axis=-1).ravel()
print((least > 0.5).sum(), "of", least.size, "trainings end on every best word")`,
});
