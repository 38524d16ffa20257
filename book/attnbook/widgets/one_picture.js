// One run from zero to saturation, three directions known beforehand, and where each paper speaks.

import { explorable, fixed } from "./kit/kit.js";
import { percent, power } from "./kit/view.js";
import { attentionBars, bothSides, heat, plot } from "./kit/views.js";

const WAYS = [["bound", "first gradient"], ["nuc", "margin of tangent features"], ["fro", "margin of tokens"]];
const TOLD = {
  first: "It sets out along the first gradient, and leaves it.",
  tangent: "Not that one: it is never the nearest of the three.",
  both: "Right.",
  none: "It does get there, slowly.",
};

export default explorable({
  name: "one_picture",
  title: "One run, and three directions that were known before it",
  wide: true,
  answers: ["way", "curve"],
  defaults: { k: 30, open: 0, way: null, curve: null },
  build(kit) {
    const steps = kit.list("steps");
    const n = kit.data("attention").shape[1];
    const d = kit.data("W").shape[1];
    const ways = WAYS.map((_, i) => kit.list("cosines", i));
    const [mean, saturated] = kit.list("bounds");
    const optimal = kit.list("optimal");
    const last = steps.length - 1;
    const at = (state) => (kit.opened ? state.k : 0);
    const grid = kit.row("al-hero");
    const left = document.createElement("div");
    const side = document.createElement("div");
    grid.append(left, side);
    kit.caption("cosine of $W$ with three directions, against training steps", left);
    plot(kit, {
      parent: left, height: 320,
      x: { range: [1, steps[last]], log: true, label: "step" }, y: { range: [0.5, 1.04], ticks: [0.5, 0.6, 0.7, 0.8, 0.9, 1] },
      told: (state) => (kit.opened ? `Step ${steps[at(state)]}: ${WAYS.map(([, words], i) => `cosine with the ${words} ${fixed(ways[i][at(state)], 3)}`).join(", ")}` : "Cosines during training, not yet shown."),
      areas: () => (kit.opened ? [
        { from: 1, to: mean, colour: "nuc", name: "near zero" },
        { from: mean, to: saturated, colour: "other", name: "choosing" },
        { from: saturated, to: steps[last], colour: "fro", name: "far out" },
      ] : []),
      lines: (state) => (kit.opened ? WAYS.map(([colour, name], i) => ({
        xs: steps.slice(1, at(state) + 1), ys: ways[i].slice(1, at(state) + 1), colour, name: steps[at(state)] > 400 ? name : "", at: 0.8, dy: [-8, -8, 24][i], // where the curves are well apart
      })) : []),
      marks: (state) => (kit.opened && at(state) ? WAYS.map(([colour], i) => ({ x: steps[at(state)], y: ways[i][at(state)], colour })) : []),
    });
    kit.caption("attention of the four queries", side);
    for (let i = 0; i < n; i++) {
      attentionBars(kit, {
        parent: side,
        row: (state) => ({ s: kit.list("attention", at(state), i), kind: (t) => (t === optimal[i] ? "best" : "other"), seq: i + 1 }),
      });
    }
    kit.caption("$W$", side);
    heat(kit, {
      parent: side, largest: 20, digits: null,
      matrix: (state) => Array.from({ length: d }, (_, a) => kit.list("W", at(state), a)),
    });
    const near = document.createElement("div");
    side.append(near);
    kit.caption("near zero: what the tangent says of each output, and the output", near);
    bothSides(kit, {
      parent: near, names: ["moved", "tangent"],
      rows: (state) => kit.list("moved", at(state)).map((left, i) => ({ name: `sequence ${i + 1}`, left, right: kit.list("tangent", at(state), i)[0] })),
    });
    const controls = kit.controls();
    kit.scrubber({ key: "k", times: steps, seconds: 8, parent: controls });
    const play = controls.querySelector(".al-play");
    const asks = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, Math.log10(steps[last])].map((p) => Number((10 ** p).toPrecision(3)));
    kit.predict({
      heading: "Before it runs, two predictions",
      go: "Train",
      start: () => { kit.set({ k: 0 }); window.setTimeout(() => play.click(), 50); },
      over: (state) => state.k >= last,
      asks: [{
        kind: "choice", key: "way",
        question: "Three directions can be computed before the first step. Which does $W$ take?",
        options: [["first", "That of the first gradient, all the way."], ["tangent", "The largest margin in tangent features."], ["both", "It sets out along the first gradient and ends along the token margin."], ["none", "It ends somewhere between them."]],
        right: () => "both",
        say: (mine) => `${mine ? `${TOLD[mine]} ` : ""}After ${steps[last].toLocaleString("en")} steps the cosine with the token margin is 1 but for ${power(1 - ways[2][last])}.`,
      }, {
        kind: "sketch", key: "curve", height: 250,
        question: "Draw the cosine of $W$ with the first gradient. It begins at 1.",
        x: { range: [1, steps[last]], log: true, label: "step", name: "step", ticks: [1, 10, 100, 1000, 10000] },
        y: { range: [0, 1], ticks: [0, 0.25, 0.5, 0.75, 1] },
        at: asks, known: [1], colour: "bound", mark: "bound",
        truth: () => ({ xs: steps.slice(1), ys: ways[0].slice(1) }),
        upTo: (state) => Math.max(0, state.k - 1),
        say: (mine) => {
          const end = ways[0][last];
          const truth = `it stays near 1 while attention is nearly a mean, and settles at ${fixed(end, 2)}`;
          if (!mine) return `The first gradient is not forgotten: ${truth}.`;
          const off = mine[mine.length - 1] - end;
          if (Math.abs(off) < 0.1) return `Your end is right: ${truth}. The max-margin direction has that much of the first gradient in it.`;
          return off < 0 ? `You let it forget more than it does: ${truth}, the cosine of the two directions themselves.` : `You let it remember too well: ${truth}.`;
        },
      }],
    });
    return (state) => {
      controls.hidden = near.hidden = !kit.opened;
      const k = at(state);
      if (!kit.opened) { kit.say("Step 0: all attention is a mean, W is zero."); return; }
      const s = Array.from({ length: n }, (_, i) => kit.list("attention", k, i)[optimal[i]]);
      kit.say(`Step ${steps[k]}: length of W ${fixed(kit.list("norm")[k])}; attention on the best tokens ${s.map(percent).join(", ")}; 1 - cosine with the token margin ${k ? power(1 - ways[2][k]) : "none yet"}.`);
      kit.el.dataset.step = String(steps[k]);
    };
  },
  code: () => `from attnlab import models, ntk, optim, problems, svm

problem = problems.sphere(n=4, T=4, d=6, min_gap=0.2, rng=6)
model = models.Attention(start="zero")
zero = model.init(problem, rng=0)
run = optim.train(model, problem, optim.NormalizedGD(0.05), 20_000)
first = -model.value_and_grad(zero, problem)[1]["W"]
tangent = ntk.margin(model, zero, problem).direction["W"]
goal = svm.attention_svm(problem).W
print([float(svm.correlation(run.params["W"], way)) for way in (first, tangent, goal)])`,
});
