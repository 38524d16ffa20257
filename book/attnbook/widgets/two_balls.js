// Two parameterisations of one matrix, and the balls that they grow. The second sequence is the
// mirror image of the first, so W stays diagonal: a plane holds the whole of training and both answers.

import { answers, best, rivals, train } from "./kit/balls.js";
import { explorable } from "./kit/kit.js";
import { dot } from "./kit/vectors.js";
import { circle, group, label, path, signed, tag, text } from "./kit/view.js";
import { axes, plane, strips, tokens } from "./kit/views.js";

const A = [-0.55, 2.15];
const B = [-0.45, 1.55];
const STEPS = 1500;
const TIMES = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90, 100, 120, 140, 160, 180, 200, 250, 300, 350, 400, 500, 600, 700, 800, 1000, 1200, 1500];

// The set with all margins at least 1, cut to a box: half-planes taken off one after another.
function polygon(rows, [x0, x1], [y0, y1]) {
  let shape = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
  rows.forEach((f) => {
    const next = [];
    shape.forEach((p, k) => {
      const r = shape[(k + 1) % shape.length];
      const [u, v] = [dot(f, p) - 1, dot(f, r) - 1];
      if (u >= 0) next.push(p);
      if (u * v < 0) next.push(p.map((value, j) => value + (u / (u - v)) * (r[j] - value)));
    });
    shape = next;
  });
  return shape;
}

const shaded = (rows, at, x, y) => {
  const shape = polygon(rows, x, y);
  return shape.length ? tag("path", { d: `M${shape.map((p) => at(p).map((v) => v.toFixed(1)).join(",")).join("L")}z`, class: "al-fill-yes al-stroke-yes", "fill-opacity": 0.16, "stroke-width": 1.4, "data-mark": "yes" }) : "";
};

const scaled = (problem, w) => {
  const least = Math.min(...problem.rows.map((f) => dot(f, w)));
  return least > 0 ? w.map((value) => value / least) : null;
};
const ratio = ([a, b]) => Math.min(Math.abs(a), Math.abs(b)) / Math.max(Math.abs(a), Math.abs(b), 1e-300);
const near = (p, r, by) => p && Math.hypot(p[0] - r[0], p[1] - r[1]) < by;

export default explorable({
  name: "two_balls",
  title: "One matrix, written in two ways: W, or K times Q",
  wide: true,
  defaults: { X: [[0.2, -0.1], [-1, -0.7], [0.5, -0.5], [0.9, 1]], step: TIMES.length - 1, R: 1, end: null, values: null, open: 0 },
  answers: ["end", "values"],
  build(kit) {
    kit.state.step = Math.max(0, Math.min(TIMES.length - 1, kit.state.step));
    let key = "";
    let cached = null;
    const at_ = (state) => {
      const now = JSON.stringify(state.X) + kit.opened;
      if (now !== key) {
        key = now;
        const problem = rivals(state.X);
        const goals = answers(problem.rows);
        const runs = kit.opened && goals ? train(problem, STEPS) : null;
        cached = {
          problem, goals, runs,
          scaledW: runs && runs.W.map((w) => scaled(problem, w)),
          scaledKQ: runs && runs.KQ.map((w) => scaled(problem, w)),
        };
      }
      return cached;
    };
    const step = (state) => TIMES[state.step];

    const grid = kit.row("al-grid-balls");
    const cell = (name = "") => { const node = document.createElement("div"); node.className = name; grid.append(node); return node; };
    const left = cell();
    kit.caption("Sequence 1, query $(1,1)$", left);
    plane(kit, {
      x: [-1.4, 1.4], y: [-1.3, 1.5], parent: left, name: "plane al-tokens",
      can: () => kit.opened,
      told: (state) => `Four tokens; the best is token ${best(state.X) + 1}`,
      points: (state) => state.X.map(([x, y], t) => ({ key: `x${t}`, x, y, label: `token ${t + 1}`, link: `tok1${t + 1}` })),
      move: (handle, x, y) => {
        const next = kit.state.X.map((row) => row.slice());
        next[Number(handle[1])] = [x, y];
        kit.set({ X: next });
      },
      draw: (state, at) => {
        const { problem, runs, goals } = at_(state);
        const w = runs ? runs.KQ[step(state)] : [0, 0];
        const logit = state.X.map((x) => x[0] * w[0] + x[1] * w[1]);
        const top = Math.max(...logit);
        const e = logit.map((a) => Math.exp(a - top));
        const sum = e.reduce((x, y) => x + y, 0);
        const held = kit.opened && goals ? problem.others.filter((_, k) => dot(problem.rows[k], goals.nuc) < 1 + 1e-6) : [];
        const b = best(state.X);
        return axes(at, [-1.4, 1.4], [-1.3, 1.5]) + tokens(state.X, e.map((x) => x / sum), at, {
          kind: (t) => (t === b ? "best" : held.includes(t) ? "rival" : "other"), area: 26, scores: kit.opened ? null : state.X.map((x) => x[0]),
        });
      },
    });
    const middle = cell();
    kit.caption("All $W$ with entries $a$ and $b$ on the diagonal, scaled to margin 1", middle);
    plane(kit, {
      x: A, y: B, parent: middle, name: "plane al-slice",
      told: (state) => {
        const { goals } = at_(state);
        if (!kit.opened || !goals) return "The shaded set: all margins at least 1";
        return `Circle touches the shaded set at ${goals.fro.map((v) => signed(v)).join(", ")}, diamond at ${goals.nuc.map((v) => signed(v)).join(", ")}`;
      },
      draw: (state, at) => {
        const { problem, goals, scaledW, scaledKQ } = at_(state);
        const [ox, oy] = at([0, 0]);
        let inner = axes(at, A, B) + shaded(problem.rows, at, A, B)
          + text(at([A[1], 0])[0] - 8, oy - 7, label("$a$"), { class: "al-label", "text-anchor": "end" }) + text(ox + 7, at([0, B[1]])[1] + 16, label("$b$"), { class: "al-label" });
        if (!goals) return inner;
        if (!kit.opened) {
          const [x, y] = at(goals.fro);
          return inner + circle(x, y, 6, { class: "al-fill-fro" }) + text(x + 10, y - 8, label("$W$ ends here"), { class: "al-label al-halo-text al-text-fro" })
            + text(...at([1.25, 1.3]), "all margins at least 1", { class: "al-small al-halo-text", "text-anchor": "middle" });
        }
        const sizes = [Math.hypot(...goals.fro), Math.abs(goals.nuc[0]) + Math.abs(goals.nuc[1])];
        const [c, r] = sizes.map((size) => at([Math.min(state.R, size), 0])[0] - ox); // each grows until it touches
        inner += circle(ox, oy, c, { class: "al-fill-fro al-stroke-fro", "fill-opacity": 0.08, "stroke-width": 2, "data-mark": "fro ball" })
          + tag("path", { d: `M${ox + r},${oy}L${ox},${oy - r}L${ox - r},${oy}L${ox},${oy + r}z`, class: "al-fill-nuc al-stroke-nuc", "fill-opacity": 0.1, "stroke-width": 2, "data-mark": "nuc ball" });
        const trace = (list, colour) => {
          const pts = list.slice(0, step(state) + 1).filter((p, k) => p && Math.abs(p[0]) < 9 && Math.abs(p[1]) < 9 && (k < 100 || k % 10 === 0 || k === step(state))).map(at);
          return pts.length ? group({ "data-mark": colour }, path(pts, { class: `al-curve al-stroke-${colour}` }), circle(...pts[0], 3, { class: `al-fill-${colour}` }), circle(...pts[pts.length - 1], 6, { class: `al-fill-${colour}` })) : "";
        };
        inner += trace(scaledW, "trained") + trace(scaledKQ, "nuc");
        const tip = (list) => { const p = list[step(state)]; return p ? at(p) : null; };
        const [w, kq] = [tip(scaledW), tip(scaledKQ)];
        if (w) inner += text(w[0] + 10, w[1] + 16, label("$W$"), { class: "al-label al-halo-text al-text-trained" });
        if (kq) inner += text(kq[0] + 10, kq[1] - 10, label("$KQ^\\top$"), { class: "al-label al-halo-text al-text-nuc" });
        const mark = (p, colour) => tag("path", { d: `M${at(p)[0] - 8},${at(p)[1]}H${at(p)[0] + 8}M${at(p)[0]},${at(p)[1] - 8}V${at(p)[1] + 8}`, class: `al-stroke-${colour}`, "stroke-width": 2.4 });
        return inner + mark(goals.fro, "fro") + mark(goals.nuc, "nuc");
      },
    });
    const side = cell("al-side");
    kit.caption("Smaller singular value over larger", side);
    strips(kit, {
      parent: side, height: 72, now: (state) => (kit.opened ? state.step : 0), steps: () => TIMES.length - 1, last: String(STEPS),
      rows: (state) => {
        const { runs } = at_(state);
        const row = (name, list, colour) => ({
          name, colour, range: [0, 1],
          values: list ? TIMES.map((n) => ratio(list[n])) : [], show: list ? ratio(list[step(state)]).toFixed(2) : "",
        });
        return [row("$W$ trained", runs && runs.W, "trained"), row("$K$ and $Q$ trained", runs && runs.KQ, "nuc")];
      },
    });
    const bar = kit.controls();
    kit.scrubber({ key: "step", label: "training step", times: TIMES, parent: bar });
    kit.slider({ key: "R", label: "radius of both balls", min: 0, max: 1.6, step: 0.01, parent: bar });
    kit.draws.push(() => { bar.hidden = !kit.opened; side.style.visibility = kit.opened ? "" : "hidden"; });

    kit.predict({
      heading: "Before $K$ and $Q$ are trained",
      about: ["X"],
      go: "Train both",
      start: () => kit.set({ step: TIMES.length - 1 }),
      asks: [
        {
          kind: "choice", key: "values",
          question: "The two singular values of $KQ^\\top$ are $|a|$ and $|b|$. What becomes of them?",
          options: [
            ["same", "They grow in the same ratio as those of $W$."],
            ["equal", "They grow and become equal."],
            ["one", "One grows, the other is left behind for good."],
            ["swap", "First one leads, then the other takes all."],
          ],
          right: () => "swap",
          say: (mine) => {
            const { KQ } = train(rivals(kit.initial.X), 60);
            const lead = KQ.map(([a, b]) => a / b);
            const at = lead.indexOf(Math.max(...lead));
            const what = `A product of two small numbers grows the faster the larger it is. So $a$, which pushes attention off token 2, the worst one, runs ahead: at step ${at} it is ${lead[at].toFixed(1)} times as large as $b$. Then token 2 has hardly any attention left. Tokens 1 and 3 still have some, and against them $b$ helps more: $b$ overtakes.`;
            const reply = { swap: "Yes. ", one: "One is left behind, but not the one that fell behind first. ", same: "$W$ keeps a ratio near 0.6. ", equal: "Nothing makes them equal: the ratio goes to 0. " }[mine] || "";
            return reply + what;
          },
        },
        {
          kind: "point", key: "end", colour: "nuc", name: "$KQ^\\top$", height: 330,
          question: "Scaled to margin 1, $W$ ends at the point of the shaded set that is nearest to the origin. Where does $KQ^\\top$ end?",
          x: { range: A, ticks: [0, 0.5, 1, 1.5, 2], label: "$a$" }, y: { range: B, ticks: [0, 0.5, 1, 1.5], label: "$b$" },
          ground: (at, state) => {
            const { problem, goals } = at_(state);
            const [x, y] = goals ? at(goals.fro) : [0, 0];
            return axes(at, A, B) + shaded(problem.rows, at, A, B) + (goals ? circle(x, y, 5, { class: "al-fill-fro" }) + text(x + 9, y + 15, label("$W$"), { class: "al-label al-text-fro al-halo-text" }) : "");
          },
          truth: (state) => at_(state).goals?.nuc || [0, 0],
          say: (mine, state) => {
            const { goals, scaledKQ } = at_(state);
            if (!goals) return "";
            const last = scaledKQ[STEPS];
            const off = Math.abs(Math.atan2(last[1], last[0]) - Math.atan2(goals.nuc[1], goals.nuc[0])) * 180 / Math.PI;
            const what = `It heads for (0, ${goals.nuc[1].toFixed(2)}), where $a$ is exactly 0, and is ${off.toFixed(1)}° away at the end of this run. Scores are read off the first coordinate alone; attention ends up reading the second alone.`;
            if (!mine) return what;
            if (near(mine, goals.nuc, 0.12)) return `There it is. ${what}`;
            if (near(mine, goals.fro, 0.15)) return `You left it with $W$. But that point is nearest only if distance is measured with a circle. ${what}`;
            if (near(mine, [0.656, 0.49], 0.15)) return `A corner of the shaded set is a good guess; what counts here is a corner of the ball. ${what}`;
            if (mine[0] > 0.9) return `It does lean that way in its first twenty steps. ${what}`;
            return what;
          },
        },
      ],
    });

    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const { goals, runs } = at_(state);
      kit.el.dataset.status = goals ? "optimal" : "infeasible";
      if (!goals) { kit.say("No W has all margins at least 1."); return; }
      const sizes = [Math.hypot(...goals.fro), Math.abs(goals.nuc[0]) + Math.abs(goals.nuc[1])];
      kit.el.dataset.norms = JSON.stringify(sizes);
      kit.el.dataset.rank = String(goals.nuc.filter((v) => Math.abs(v) > 1e-9).length);
      kit.el.dataset.ratios = JSON.stringify([ratio(runs.W[STEPS]), ratio(runs.KQ[STEPS])]);
      const said = (size) => (state.R < size - 0.005 ? `touches at ${size.toFixed(2)}` : state.R < size + 0.005 ? "touches" : `touched at ${size.toFixed(2)}`);
      kit.say(`Step ${step(state)}. Radius ${state.R.toFixed(2)}: the circle ${said(sizes[0])}, the diamond ${said(sizes[1])}. Rank of the nuclear answer: ${kit.el.dataset.rank}.`);
    };
  },
  code: (state) => `import numpy as np
from attnlab import problems, svm

X, mirror = np.array(${JSON.stringify(state.X).replaceAll(",", ", ")}), np.diag([1.0, -1.0])
problem = problems.TokenProblem(
    X=np.stack([X, X @ mirror]), z=[[1.0, 1.0], [1.0, -1.0]], y=np.ones(2), v=[1.0, 0.0]
)
for norm in ("fro", "nuc"):
    print(svm.attention_svm(problem, norm=norm).W.round(3))`,
});
