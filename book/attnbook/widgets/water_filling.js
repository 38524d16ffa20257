// A head that dislikes long vectors keeps several tokens: scores are cut at a common level, and what
// stands out above it is shared out (Lemma 6). A softmax comes as near to the zeros as one likes.

import { waterFilling } from "./kit/core.js";
import { explorable, fixed, make, python } from "./kit/kit.js";
import { attentionBars, plane, plot } from "./kit/views.js";
import { circle, group, label, line, percent, rect, text } from "./kit/view.js";

const GAMMA = [1, 0.9, 0.5, 0.43, 0.4, 0.35];
const RANGE = [0.02, 4];
const LAMBDAS = Array.from({ length: 117 }, (_, k) => Number((RANGE[0] * 10 ** (k / 50)).toPrecision(3))).filter((l) => l <= RANGE[1]).concat(RANGE[1]);
const AT = [0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2.5, 4];
const GRID = Array.from({ length: 161 }, (_, k) => RANGE[0] * (RANGE[1] / RANGE[0]) ** (k / 160));

let kept = {};
const curves = (gamma) => { // shares over the grid, kept while the scores stay
  const key = gamma.join();
  if (kept.key !== key) {
    const all = GRID.map((l) => waterFilling(gamma, l));
    kept = { key, lines: gamma.map((_, t) => all.map((s) => s[t])) };
  }
  return kept.lines;
};
const second = (gamma) => curves(gamma)[1];
const thresholds = (gamma, tau) => {
  const g = gamma.slice().sort((a, b) => b - a);
  return {
    sharp: [(g[0] - g[1]) / 2, g.slice(0, tau).reduce((sum, x) => sum + x - g[tau], 0) / 2],
    printed: [g[0] - g[1], (tau * (g[tau - 1] - g[tau])) / 2],
  };
};

export default explorable({
  name: "water_filling",
  title: "How many tokens does a head want?",
  wide: true,
  defaults: { open: 0, sketch: null, enter: null, lambda: 0.02, gamma: GAMMA, tau: 2 },
  answers: ["sketch", "enter"],
  build(kit) {
    const now = (state) => (kit.opened ? state : { ...state, gamma: GAMMA, lambda: RANGE[0] });
    const shares = (state) => waterFilling(now(state).gamma, now(state).lambda);
    const T = GAMMA.length;
    const grid = make("div", { class: "al-grid-2" });
    kit.main.append(grid);
    const [one, two] = [make("div"), make("div")];
    grid.append(one, two);

    // -- scores, cut at a level ---------------------------------------------------------------------
    const head = kit.caption("Scores", one);
    kit.draws.push(() => { head.textContent = kit.opened ? "Scores, cut at a common level" : "Scores"; });
    const [X, Y] = [[0.4, T + 0.6], [0, 1.25]];
    plane(kit, {
      parent: one, name: "plane al-scores", x: X, y: Y, equal: false, height: 250, can: () => kit.opened,
      told: (state) => `Scores ${now(state).gamma.map((g) => g.toFixed(2)).join(", ")}; shares ${shares(state).map(percent).join(", ")}.`,
      points: (state) => state.gamma.map((g, t) => ({ key: `g${t}`, x: t + 1, y: g, label: `score of token ${t + 1}`, link: `tok1${t + 1}` })),
      move: (key, _, y) => { const gamma = kit.state.gamma.slice(); gamma[Number(key.slice(1))] = Math.round(100 * Math.max(0.02, Math.min(1.2, y))) / 100; kit.set({ gamma }); },
      draw: (state, at, { w }) => {
        const { gamma, lambda } = now(state);
        const s = shares(state);
        const top = gamma.indexOf(Math.max(...gamma));
        const level = gamma[top] - 2 * lambda * s[top];
        const half = Math.min(26, (at([1.36, 0])[0] - at([1, 0])[0]));
        const base = at([0, 0])[1];
        const numbers = gamma.map((g, t) => { const [x, y] = at([t + 1, g]); return text(x, y - 9, g.toFixed(2), { class: "al-small al-halo-text", "text-anchor": "middle" }); }).join("");
        if (!kit.opened) { // the level is the answer to what is asked
          return gamma.map((g, t) => {
            const [x, y] = at([t + 1, g]);
            return group({ "data-mark": `other tok1${t + 1}` }, rect(x - half, y, 2 * half, base - y, { class: "al-fill-other", "fill-opacity": 0.22 }), text(x, base - 7, t + 1, { class: "al-label", "text-anchor": "middle" }));
          }).join("") + numbers;
        }
        let inner = gamma.map((g, t) => {
          const [x, y] = at([t + 1, g]);
          const cut = Math.min(base, at([0, Math.max(0, Math.min(g, level))])[1]);
          return group({ "data-mark": `${s[t] > 0 ? "best" : "other"} tok1${t + 1}` },
            rect(x - half, cut, 2 * half, base - cut, { class: "al-fill-other", "fill-opacity": 0.22 }),
            s[t] > 0 ? rect(x - half, y, 2 * half, cut - y, { class: "al-fill-best", "fill-opacity": 0.85 }) : "",
            circle(x, y, 5, { class: "al-fill-on al-stroke-ink", "stroke-width": 1.5 }),
            text(x, base - 7, t + 1, { class: "al-label", "text-anchor": "middle" }));
        }).join("");
        const y = at([0, Math.max(level, 0)])[1];
        if (level > 0) inner += group({ "data-mark": "bound level" }, line(0, y, w, y, { class: "al-stroke-bound", "stroke-width": 2 }), text(w - 6, y - 6, "level", { class: "al-small al-halo-text al-text-bound", "text-anchor": "end" }));
        else inner += text(w - 6, 16, "level below 0", { class: "al-small al-text-bound", "text-anchor": "end" });
        return inner + numbers;
      },
    });
    kit.caption("Shares of attention", one);
    attentionBars(kit, { parent: one, row: (state) => { const s = shares(state); return { s, kind: (t) => (s[t] > 0 ? "best" : "other") }; } });

    // -- shares over lambda --------------------------------------------------------------------------
    kit.caption("Each token's share as the penalty $λ$ grows", two);
    plot(kit, {
      parent: two, height: 300,
      x: { range: RANGE, log: true, label: "penalty $λ$", ticks: [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 4], show: String },
      y: { range: [0, 1.02], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent },
      told: (state) => (kit.opened ? `Shares at penalty ${fixed(state.lambda)}: ${shares(state).map(percent).join(", ")}.` : "Shares over the penalty: not shown yet. At 0.02 token 1 has all."),
      areas: (state) => {
        if (!kit.opened) return [];
        const { sharp, printed } = thresholds(state.gamma, state.tau);
        const hold = ([a, b]) => ({ from: Math.max(a, RANGE[0]), to: Math.max(Math.min(b, RANGE[1]), RANGE[0]) });
        return [{ ...hold(sharp), colour: "bound", name: state.tau === 2 ? "keeps 2" : `keeps 2 to ${state.tau}` }, ...(printed[0] < printed[1] ? [{ ...hold(printed), colour: "bound", dy: 16, name: "as printed" }] : [])];
      },
      lines: (state) => (kit.opened ? curves(state.gamma).map((ys, t) => ({ xs: GRID, ys, colour: t < 2 ? "best" : "other", width: t === 1 ? 3.2 : 1.8, name: t < 2 ? `token ${t + 1}` : "", at: t ? 0.4 : 0.12, dy: t ? -10 : 22, mark: `tok1${t + 1}` })) : []),
      marks: (state) => shares(state).map((s, t) => ({ x: now(state).lambda, y: s, colour: s > 0 ? "best" : "other", r: 4 })),
    });
    const row = kit.controls();
    kit.slider({ key: "lambda", label: "penalty λ", values: LAMBDAS, show: (l) => fixed(l), parent: row });
    kit.slider({ key: "tau", label: "at most τ tokens", min: 2, max: 5, step: 1, show: String, parent: row });
    kit.draws.push(() => { row.hidden = !kit.opened; });

    kit.predict({
      heading: "The penalty on long vectors grows. Who gets a share?",
      about: ["gamma"],
      go: "Let it grow",
      start: () => kit.set({ lambda: 0.45 }),
      asks: [
        {
          kind: "number", key: "enter", min: 0, max: 0.3, step: 0.005, start: 0.15, show: (v) => v.toFixed(3),
          question: "Token 1 scores 1.00 and token 2 scores 0.90. From which $λ$ on does token 2 get anything?",
          truth: () => thresholds(GAMMA, 2).sharp[0],
          say: (mine) => {
            const is = thresholds(GAMMA, 2).sharp[0];
            const fact = `Token 2 joins at $λ=$ ${is.toFixed(3)}, half the difference of the scores: the penalty on a small share $s$ is $λs^2$, nearly nothing, and taking as much from token 1 saves $2λs$.`;
            if (mine === null) return fact;
            if (Math.abs(mine - is) < 0.008) return `Right. ${fact}`;
            if (Math.abs(mine - 2 * is) < 0.012) return `You said the whole difference, as the paper's condition does, which is only sufficient. ${fact}`;
            return mine < is ? `Too early. ${fact}` : `Too late. ${fact}`;
          },
        },
        {
          kind: "sketch", key: "sketch",
          question: "Draw the share of token 2 as $λ$ grows.",
          at: AT, known: [0], x: { range: RANGE, log: true, ticks: [0.02, 0.1, 0.5, 1, 4], show: String, label: "penalty $λ$", name: "penalty" },
          y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent }, colour: "best", mark: "tok12",
          truth: () => ({ xs: GRID, ys: second(GAMMA) }),
          say: (mine) => {
            const ys = GRID.map((l) => waterFilling(GAMMA, l)[1]);
            const peak = ys.indexOf(Math.max(...ys));
            const fact = `it is at most ${percent(ys[peak])}, at $λ=$ ${GRID[peak].toFixed(2)}, where token 3 joins, and ends at ${percent(ys[ys.length - 1])}`;
            if (!mine) return `Token 2 rises, then gives way: ${fact}.`;
            const top = Math.max(...mine);
            const end = mine[mine.length - 1];
            if (end > 0.85 * top && top > 0.35) return `You let it rise and stay. It rises, but then the crowd comes: ${fact}.`;
            if (end < top - 0.08) return `You saw that it gives way again: ${fact}.`;
            return `It goes up and down again: ${fact}.`;
          },
        },
      ],
    });

    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const s = shares(state);
      const { sharp, printed } = thresholds(state.gamma, state.tau);
      const many = s.filter((x) => x > 0).length;
      const empty = !(printed[0] < printed[1]);
      kit.say(`At λ = ${fixed(state.lambda)} the head keeps ${many} token${many === 1 ? "" : "s"}. It keeps ${state.tau === 2 ? "exactly 2" : `2 to ${state.tau}`} from ${fixed(sharp[0], 3)} to ${fixed(sharp[1], 3)}; the paper's condition covers ${empty ? "nothing for these scores: its range is empty" : `${fixed(printed[0], 3)} to ${fixed(printed[1], 3)}`}.`);
      kit.el.dataset.empty = String(empty);
      kit.el.dataset.weights = JSON.stringify(s);
      kit.el.dataset.kept = String(many);
    };
  },
  code: (state) => `from attnbook import theory

scores = ${python(state.gamma)}
print(theory.svm.water_filling(scores, ${state.lambda}))
print(theory.svm.thresholds(scores, tokens=${state.tau}))`,
});
