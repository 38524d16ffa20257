// Two sequences share W: the plane of their two leads, its flow, and the starts that lose one of them.

import { explorable, make, python } from "./kit/kit.js";
import { atRisk, fate, floor, follow, gram, lead, loss, maxMargin, push, ratio, separatrix, share, threshold } from "./kit/two_features.js";
import { attentionBars, flow, plane, strips } from "./kit/views.js";
import { arrow, circle, group, label, line, path, percent, power, rect, text } from "./kit/view.js";

const FIRST = [1, 0];
const BOX = { x: [-5.4, 8.4], y: [-7.4, 6.4] };
const FEATURE = { x: [-2.3, 1.5], y: [-1.75, 1.75] };
const FEATURE_2 = [-1.6, 0.5];
const GAP = 0.12;
const STEPS = 120;
const AT = Array.from({ length: 13 }, (_, j) => 5 * j);
const TICKS = [[0.01, "1 %"], [0.1, "10 %"], [0.5, "50 %"], [0.9, "90 %"], [0.99, "99 %"], [0.999, "99.9 %"]];
const START = [lead(0.6), lead(0.85)].map((x) => Number(x.toFixed(3)));

const memo = (make_) => {
  let key = null;
  let kept = null;
  return (state) => {
    const now = JSON.stringify([state.f, state.gap, state.m]);
    if (now !== key) { key = now; kept = make_(state); }
    return kept;
  };
};
const matrix = (state) => gram([FIRST, state.f]);
const gaps = (state) => [1, state.gap];
const run = memo((state) => follow(state.m, matrix(state), gaps(state), STEPS));
const above_ = memo((state) => run(state).map((m) => loss(m, gaps(state)) - floor(gaps(state))));
const ends = memo((state) => fate(state.m, matrix(state), gaps(state)));
const fieldKey = { key: null, kept: null };
const field = (state, make_) => { // flow and boundary do not care where the start is
  const now = JSON.stringify([state.f, state.gap]);
  if (fieldKey.key !== now) { fieldKey.key = now; fieldKey.kept = make_(); }
  return fieldKey.kept;
};

// What was asked about, computed once it is answered.
let answers = null;
const asked = () => {
  if (answers) return answers;
  const [G, g] = [gram([FIRST, FEATURE_2]), [1, GAP]];
  const path_ = follow(START, G, g, 60);
  const [near, far] = [1, 2].map((by) => outcome(fate(START.map((x) => by * x), G, g)));
  answers = { right: near === far ? "direction" : "length", truth: { xs: path_.map((_, k) => k), ys: path_.map((m) => share(m[1])) } };
  return answers;
};

const outcome = ([one, two]) => (one && two ? "both" : two ? "two" : one ? "one" : "none");
const ENDS = {
  both: "both sequences end on their best tokens",
  one: "sequence 2 ends on its wrong token, for ever",
  two: "sequence 1 ends on its wrong token, for ever",
  none: "both end on their wrong tokens",
};

// The corners of the box that lie on the lost side, between the ends of the boundary.
function basin(curve, risk, at) {
  const [x0, x1] = BOX.x;
  const [y0, y1] = BOX.y;
  const last = curve[curve.length - 1];
  const around = risk === 2
    ? [[x0 - 1, last[1] > y1 ? y1 + 1 : last[1]], [x0 - 1, y0 - 1], [curve[0][0], y0 - 1]]
    : [[last[0] > x1 ? x1 + 1 : last[0], y0 - 1], [x0 - 1, y0 - 1], [x0 - 1, curve[0][1]]];
  return path([...curve, ...around].map(at), { class: "al-fill-violation", fill: null, "fill-opacity": 0.13 });
}

export default explorable({
  name: "phase_plane",
  title: "Two sequences, one matrix",
  wide: true,
  defaults: { open: 0, sketch: null, decides: null, f: FEATURE_2, gap: GAP, m: START, k: 0 },
  answers: ["sketch", "decides"],
  build(kit) {
    const here = (state) => (kit.opened ? run(state)[Math.min(state.k, STEPS)] : state.m);
    const grid = make("div", { class: "al-grid-3" });
    kit.main.append(grid);
    const column = (name = "") => { const one = make("div", { class: name }); grid.append(one); return one; };
    const [first, second, third] = [column(), column(), column("al-side")];

    // -- the plane of the leads -------------------------------------------------------------------
    kit.caption("Attention on both best tokens", first);
    plane(kit, {
      parent: first, name: "plane al-phase", x: BOX.x, y: BOX.y,
      told: (state) => {
        const [one, two] = here(state).map(share);
        return `Attention on the best token: sequence 1 ${percent(one)}, sequence 2 ${percent(two)}.${kit.opened ? ` From this start ${ENDS[outcome(ends(state))]}.` : ""}`;
      },
      points: (state) => [{ key: "start", x: state.m[0], y: state.m[1], label: "start of training", link: "start" }],
      move: (_, x, y) => kit.set({ m: [x, y] }),
      can: () => kit.opened,
      draw: (state, at, { w, h }) => {
        const [ox, oy] = at([0, 0]);
        let inner = "";
        if (kit.opened) {
          inner += field(state, () => ({})).drawn === `${w}` ? fieldKey.kept.inner : ground(state, at, w);
        }
        inner += line(0, oy, w, oy, { class: "al-axis" }) + line(ox, 0, ox, h, { class: "al-axis" });
        TICKS.forEach(([s, words]) => {
          const [x, y] = [at([lead(s), 0])[0], at([0, lead(s)])[1]];
          if (x > 46 && x < w - 24) inner += line(x, h - 22, x, h - 18, { class: "al-axis" }) + text(x, h - 6, words, { class: "al-small al-halo-text", "text-anchor": "middle" });
          if (y > 12 && y < h - 26) inner += text(5, y + 4, words, { class: "al-small al-halo-text" });
        });
        inner += text(w - 6, oy - 7, "of sequence 1 →", { class: "al-small al-halo-text", "text-anchor": "end" })
          + text(ox + 7, 14, "↑ of sequence 2", { class: "al-small al-halo-text" });
        if (kit.opened) {
          const done = run(state).slice(0, state.k + 1).map(at);
          inner += group({ "data-mark": "trained path" }, path(done, { class: "al-curve al-stroke-trained", "stroke-width": 3 }),
            circle(...done[done.length - 1], 5, { class: "al-fill-trained" }));
        }
        const [sx, sy] = at(state.m);
        inner += group({ "data-mark": "start" }, circle(sx, sy, 8, { class: "al-stroke-trained al-fill-on", "stroke-width": 2.5 }),
          text(sx + 12, sy - 8, "start", { class: "al-label al-halo-text al-text-trained" }));
        return inner;
      },
    });
    function ground(state, at, w) {
      const [G, g] = [matrix(state), gaps(state)];
      const risk = atRisk(G);
      let inner = "";
      if (risk) {
        const curve = separatrix(G, g, [Math.min(BOX.x[0], BOX.y[0]), Math.max(BOX.x[1], BOX.y[1])]);
        inner += group({ "data-mark": "basin violation" }, basin(curve, risk, at), path(curve.map(at), { class: "al-curve al-stroke-violation", "stroke-width": 2 }),
          text(...at(risk === 2 ? [-5.2, -3.6] : [-5.2, -6.2]), `starts that lose sequence ${risk}`, { class: "al-label al-halo-text al-text-violation" }));
        const C = G[0][1];
        const way = risk === 2 ? [-BOX.y[0] * G[0][0] / -C, BOX.y[0]] : [BOX.x[0], BOX.x[0] * G[1][1] / C];
        const wrong = at(way);
        inner += line(...at([0, 0]), ...wrong, { class: "al-stroke-violation", "stroke-width": 2, "stroke-dasharray": "7 5" });
        if (risk === 2) inner += text(wrong[0] - 14, wrong[1] - 30, "wrong direction", { class: "al-small al-halo-text al-text-violation", "text-anchor": "end" });
      }
      inner += flow((m) => push(m, G, g).d, at, BOX.x, BOX.y, { columns: w < 330 ? 11 : 14, length: 12 });
      const mm = maxMargin(G);
      const reach = 6.4 / Math.max(...mm);
      const [ex, ey] = at(mm.map((x) => x * reach));
      inner += group({ "data-mark": "fro" }, line(...at([0, 0]), ex, ey, { class: "al-stroke-fro", "stroke-width": 2.4, "stroke-dasharray": "8 6" }),
        text(Math.min(ex + 4, w - 6), Math.max(ey + 30, 16), label("$W^{mm}$"), { class: "al-label al-halo-text al-text-fro", "text-anchor": "end" }));
      fieldKey.kept.inner = inner;
      fieldKey.kept.drawn = `${w}`;
      return inner;
    }

    // -- the two features -------------------------------------------------------------------------
    kit.caption("The two features", second);
    plane(kit, {
      parent: second, name: "plane al-features", x: FEATURE.x, y: FEATURE.y,
      told: (state) => `Difference of the two tokens: sequence 1 at 1, 0; sequence 2 at ${state.f.join(", ")}.`,
      points: (state) => [{ key: "f", x: state.f[0], y: state.f[1], label: "feature of sequence 2", link: "feature" }],
      move: (_, x, y) => kit.set({ f: Math.abs(y) < 0.06 ? [x, y < 0 ? -0.06 : 0.06] : [x, y] }),
      can: () => kit.opened,
      draw: (state, at, { w, h }) => {
        const O = at([0, 0]);
        const unit = at([1, 0])[0] - O[0];
        let inner = "";
        if (kit.opened) {
          inner += group({ "data-mark": "forbidden violation" },
            rect(0, 0, at([-1, 0])[0], h, { class: "al-fill-violation", "fill-opacity": 0.13 }),
            circle(...at([-0.5, 0]), unit / 2, { class: "al-fill-violation", "fill-opacity": 0.13 }),
            line(at([-1, 0])[0], 0, at([-1, 0])[0], h, { class: "al-stroke-violation", "stroke-width": 1.5 }),
            ["here", "sequence 2", "can be lost"].map((words, k) => text(6, h - 41 + 16 * k, words, { class: "al-small al-text-violation" })).join(""),
            ["here", "sequence 1", "can be lost"].map((words, k) => text(at([-0.5, 0])[0], at([0, -0.5])[1] + 16 * (k + 1), words, { class: "al-small al-text-violation", "text-anchor": "middle" })).join(""));
        }
        inner += line(0, O[1], w, O[1], { class: "al-axis" }) + line(O[0], 0, O[0], h, { class: "al-axis" });
        const [a, b] = [at(FIRST), at(state.f)];
        inner += group({ "data-mark": "first" }, arrow(...O, ...a, { colour: "best", width: 3 }), text(a[0] - 4, a[1] - 10, label("$f_1$"), { class: "al-label al-halo-text al-text-best", "text-anchor": "end" }));
        inner += group({ "data-mark": "feature" }, arrow(...O, ...b, { colour: "best", width: 3 }), text(b[0], b[1] + (state.f[1] < 0 ? 20 : -10), label("$f_2$"), { class: "al-label al-halo-text al-text-best", "text-anchor": "middle" }));
        return inner;
      },
    });

    // -- attention and the loss -------------------------------------------------------------------
    [0, 1].forEach((i) => {
      kit.caption(`Sequence ${i + 1}: best, wrong`, third);
      attentionBars(kit, { parent: third, row: (state) => { const s = share(here(state)[i]); return { s: [s, 1 - s], kind: (t) => (t ? "rival" : "best"), seq: i + 1 }; } });
    });
    strips(kit, {
      parent: third, height: 52, now: (state) => (kit.opened ? state.k : 0), steps: () => STEPS,
      rows: (state) => {
        const path_ = kit.opened ? run(state) : [state.m];
        const g = gaps(state);
        const k = kit.opened ? state.k : 0;
        const above = kit.opened ? above_(state) : [loss(state.m, g) - floor(g)];
        return [
          { name: "loss above its floor", values: above, colour: "loss", show: power(above[k]), range: [0, above[0]] },
          { name: "sequence 1, best token", values: path_.map((m) => share(m[0])), colour: "best", range: [0, 1], show: percent(share(path_[k][0])) },
          { name: "sequence 2, best token", values: path_.map((m) => share(m[1])), colour: "best", range: [0, 1], show: percent(share(path_[k][1])) },
        ];
      },
    });

    // -- controls, only once it is open -------------------------------------------------------------
    const row = kit.controls();
    kit.scrubber({ key: "k", label: "step", times: Array.from({ length: STEPS + 1 }, (_, k) => k), seconds: 5, parent: row });
    const second_ = kit.controls();
    kit.slider({ key: "gap", label: "score gap of sequence 2", values: [0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 0.7, 1], show: (v) => v.toFixed(2), parent: second_ });
    kit.button("Start twice as long", () => kit.set({ m: kit.state.m.map((x) => Math.max(-7.3, Math.min(6.3, 2 * x))), k: STEPS }), second_);
    kit.button("Start at 0", () => kit.set({ m: [0, 0], k: STEPS }), second_);
    kit.draws.push(() => { row.hidden = second_.hidden = !kit.opened; });

    kit.predict({
      heading: "Both best tokens lead. Where will training take them?",
      about: ["f", "gap", "m"],
      go: "Train",
      start: () => { kit.set({ k: 0 }); row.querySelector(".al-play").click(); },
      over: (state) => state.k >= 60,
      asks: [
        {
          kind: "choice", key: "decides",
          question: "What decides where training ends?",
          options: [
            ["nothing", "Nothing: from every start both sequences end on their best tokens."],
            ["direction", "The direction in which $W$ starts, whatever its length."],
            ["length", "The direction of the start and its length."],
            ["lead", "Who leads: a best token that starts ahead stays ahead."],
          ],
          right: () => asked().right,
          say: (mine) => {
            const [one, two] = START.map((x) => percent(share(2 * x)));
            const fact = `A start twice as long in the same direction, with ${one} and ${two}, keeps both sequences; this one loses the second.`;
            return {
              nothing: `That is what Theorem 4 of the paper says. It is true for one sequence. ${fact}`,
              direction: `The length decides too. ${fact}`,
              length: `Right. ${fact}`,
              lead: `Both led, and one was overtaken. ${fact}`,
            }[mine] || fact;
          },
        },
        {
          kind: "sketch", key: "sketch",
          question: "Sequence 2 starts with 85 % on its best token. Draw that share while $W$ is trained.",
          at: AT, known: [0.85], x: { range: [0, 60], label: "training step", name: "step" }, y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1], show: percent },
          colour: "best", mark: "best",
          truth: () => asked().truth,
          upTo: (state) => Math.min(60, state.k),
          say: (mine) => {
            const truth = asked().truth.ys;
            const half = truth.findIndex((s) => s < 0.5);
            const fact = `from step ${half} on its wrong token leads, and at step 60 the best one has ${percent(truth[60])}`;
            if (!mine) return `Sequence 2 is lost: ${fact}.`;
            const end = mine[mine.length - 1];
            if (end > 0.6) return `The better token leads, and you let it win. But ${fact}. It never comes back.`;
            if (end > 0.2) return `You were suspicious, and not enough: ${fact}.`;
            return `You saw it fall: ${fact}. It never comes back.`;
          },
        },
      ],
    });

    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const G = matrix(state);
      const risk = atRisk(G);
      kit.say(`From this start ${ENDS[outcome(ends(state))]}. ${risk ? `Sequence ${risk} can be lost: minus the inner product of the features, ${(-G[0][1]).toFixed(2)}, exceeds the square of the other one's length, ${(risk === 2 ? G[0][0] : G[1][1]).toFixed(2)}.` : "No start can lose a sequence: neither feature reaches further against the other than the other is long."}`);
      kit.el.dataset.fate = outcome(ends(state));
      kit.el.dataset.risk = String(risk);
      kit.el.dataset.threshold = String(threshold(G));
      kit.el.dataset.ratio = String(ratio(state.m, gaps(state)));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm
from attnbook import theory

f = np.array([[1.0, 0.0], ${python(state.f)}])  # best token minus wrong token
v = np.linalg.solve(f, [1.0, ${state.gap}])  # the head that gives these score gaps
pair = problems.TokenProblem(
    X=np.stack([f, -f], axis=1) / 2, z=[[1.0, 0.0]] * 2, y=[1.0, 1.0], v=v)
W = np.zeros((2, 2))
W[:, 0] = np.linalg.solve(f, ${python(state.m)})  # the two leads at the start
model = models.Attention()
run = optim.train(model, pair, optim.NormalizedGD(0.1), 2000, params={"W": W}, every=2000)
print(model.attention(run.params, pair).round(3))
print("threshold of w2/w1:", theory.svm.opposing_threshold(f @ f.T))`,
});
