// One sequence in the plane and one query: the tokens that W can put first are the corners of the
// set. Inside, the pushes of the others balance, and that is the proof that there is no W.

import { exposed, gaps, shareOfCorners, wedge } from "./kit/exposed.js";
import { explorable, make } from "./kit/kit.js";
import { dot } from "./kit/vectors.js";
import { arrow, circle, group, label, signed, tag, text } from "./kit/view.js";
import { axes, plane } from "./kit/views.js";

const X = [-2.2, 2.2];
const Y = [-1.4, 1.9];

export default explorable({
  name: "exposed_token",
  title: "Which tokens can be selected?",
  defaults: { X: [[1.2, -0.8], [-1.3, -0.6], [0.1, 1.1], [0.3, 0], [-0.9, 0.7]], pick: 4, share: null, open: 0 },
  answers: ["share"],
  build(kit) {
    let counted = null;
    const truth = () => { counted ??= Math.round(100 * shareOfCorners(5, 4000)); return counted; };
    const found = (state) => exposed(state.X, state.pick - 1);
    const halves = kit.row("al-grid-2");
    const [left, row] = [make("div", {}), make("div", {})];
    halves.append(left, row);
    kit.predict({
      parent: left,
      heading: "First, a guess",
      go: "Count",
      asks: [{
        kind: "number", key: "share", min: 0, max: 100, step: 1, start: 50, show: (v) => `${v} of 100`,
        question: "One query, five tokens drawn from a bell curve in the plane, one of them selected by chance. That asks for four inequalities of a $W$ with four entries. In how many of 100 draws is there such a $W$?",
        truth,
        say: (mine) => {
          const share = truth();
          const why = "Four entries are enough for four inequalities when these are independent. Here they are not: all four see only the two numbers $W z$. What counts is where the token lies.";
          if (mine === null) return why;
          if (mine > 95) return `Counting says always. It is ${share} of 100. ${why}`;
          return `${Math.abs(mine - share) <= 6 ? "Close" : mine < share ? "More often than that" : "Less often than that"}: ${share} of 100. ${why}`;
        },
      }],
    });
    kit.caption("The selected token, and every direction of $W z$ that puts it first", row);
    plane(kit, {
      x: X, y: Y, parent: row,
      can: () => kit.opened,
      told: (state) => {
        const words = `Five tokens; token ${state.pick} is selected`;
        if (!kit.opened) return words;
        return found(state).u ? `${words}; a W puts it first` : `${words}; no W puts it first`;
      },
      points: (state) => state.X.map(([x, y], t) => ({ key: `x${t}`, x, y, label: `token ${t + 1}`, link: `tok1${t + 1}` })),
      move: (handle, x, y) => {
        const next = kit.state.X.map((point) => point.slice());
        next[Number(handle[1])] = [x, y];
        kit.set({ X: next });
      },
      draw: (state, at) => {
        const pick = state.pick - 1;
        const here = at(state.X[pick]);
        let inner = axes(at, X, Y);
        const rivals = state.X.flatMap((_, t) => (t === pick ? [] : [t]));
        let held = new Set();
        if (kit.opened) {
          const { u, weights } = found(state);
          if (u) {
            const [from, to] = wedge(state.X, pick, u);
            const r = 72;
            const edge = (angle) => `${(here[0] + r * Math.cos(angle)).toFixed(1)},${(here[1] - r * Math.sin(angle)).toFixed(1)}`;
            const long = Math.hypot(...u);
            const side = [-u[1] / long, u[0] / long];
            const end = state.X[pick].map((value, a) => value - u[a] / long / long);
            const far = (p, s) => at([p[0] + s * 9 * side[0], p[1] + s * 9 * side[1]]).map((v) => v.toFixed(1)).join(",");
            inner += tag("path", { d: `M${far(state.X[pick], 1)}L${far(state.X[pick], -1)}L${far(end, -1)}L${far(end, 1)}z`, class: "al-fill-fro", "fill-opacity": 0.1, "data-mark": "fro street" })
              + tag("path", { d: `M${far(end, -1)}L${far(end, 1)}`, class: "al-stroke-fro", "stroke-width": 2, fill: "none" })
              + tag("path", { d: `M${here.map((v) => v.toFixed(1)).join(",")}L${edge(from)}A${r},${r} 0 0 0 ${edge(to)}z`, class: "al-fill-yes", "fill-opacity": 0.22, "data-mark": "yes" })
              + arrow(...here, here[0] + r * u[0] / long, here[1] - r * u[1] / long, { colour: "fro", "data-mark": "fro" })
              + text(here[0] + (r + 12) * u[0] / long, here[1] - (r + 12) * u[1] / long + 4, label("$W z$"), { class: "al-label al-halo-text al-text-fro", "text-anchor": "middle" });
            held = new Set(rivals.filter((t, k) => dot(gaps(state.X, pick)[k], u) < 1 + 1e-6));
          } else {
            const top = Math.max(...weights);
            rivals.forEach((t, k) => {
              if (!(weights[k] > 1e-9)) return;
              const [dx, dy] = gaps(state.X, pick)[k];
              const size = Math.hypot(dx, dy);
              const long = 30 + 60 * weights[k] / top;
              const [ux, uy] = [dx / size, -dy / size];
              inner += group({ "data-mark": "violation" }, arrow(here[0] - ux * (long + 14), here[1] - uy * (long + 14), here[0] - ux * 14, here[1] - uy * 14, { colour: "violation", width: 3 }));
              held.add(t);
            });
          }
        }
        return inner + state.X.map((x, t) => {
          const [cx, cy] = at(x);
          const kind = t === pick ? "best" : held.has(t) ? "rival" : "other";
          return group({ class: "al-token", "data-mark": `${kind} token tok1${t + 1}` },
            circle(cx, cy, 13, { class: `al-disc al-fill-${kind} al-stroke-${kind}`, "fill-opacity": t === pick ? 0.9 : 0.3 }),
            text(cx, cy + 4.5, t + 1, { class: `al-label${t === pick ? " al-on" : ""}`, "text-anchor": "middle" }));
        }).join("");
      },
    });
    const bar = make("div", { class: "al-controls" });
    row.append(bar);
    kit.choice({ key: "pick", label: "selected token", options: [1, 2, 3, 4, 5].map((t) => [t, String(t)]), parent: bar });
    kit.draws.push(() => { bar.hidden = !kit.opened; });
    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const { u, weights } = found(state);
      kit.el.dataset.status = u ? "optimal" : "infeasible";
      kit.el.dataset.margin = u ? (1 / Math.hypot(...u)).toFixed(6) : "0";
      const names = state.X.flatMap((_, t) => (t === state.pick - 1 ? [] : [t + 1]));
      if (u) kit.say(`Token ${state.pick} is a corner: margin ${(1 / Math.hypot(...u)).toFixed(2)}.`);
      else kit.say(`No W: token ${state.pick} lies between the others. Pushes in balance: ${weights.flatMap((w, k) => (w > 1e-9 ? [`token ${names[k]} ${signed(w)}`] : [])).join(", ")}.`);
    };
  },
  code: (state) => `from attnlab import problems, svm

X = ${JSON.stringify(state.X).replaceAll(",", ", ")}
problem = problems.TokenProblem(X=[X], z=[[1, 0]], y=[1], v=[0, 1])
print(svm.attention_svm(problem, tokens=[${state.pick - 1}]))  # refuses, with its proof, where there is none`,
});
