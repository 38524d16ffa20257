// The attention SVM under the hand: two sequences, the angle between their queries, the strip in
// front of each best token that no rival may enter, and what holds W there.

import { attentionSVM, optimal, scores } from "./kit/core.js";
import { explorable } from "./kit/kit.js";
import { parts, problemAt, queries } from "./kit/pushes.js";
import { apply, norm } from "./kit/vectors.js";
import { arrow, circle, group, label, signed, tag, text } from "./kit/view.js";
import { axes, heat, plane, tokens } from "./kit/views.js";

const X = [-2.3, 2.3];
const Y = [-1.4, 1.75];
const STEP = 5; // degrees
const ANGLES = Array.from({ length: 180 / STEP + 1 }, (_, k) => k * STEP);
const AT = Array.from({ length: 13 }, (_, k) => 15 * k);

export default explorable({
  name: "margin_street",
  title: "The attention SVM: two sequences, two queries, one matrix",
  wide: true,
  defaults: {
    X: [[[0, 0.1], [0.6, -0.2], [1.6, 0.9], [-1.4, 0.2]], [[-0.2, 0], [0.9, 0.9], [-1.5, 0.9], [1, -1]]],
    v: [-0.1, 1], angle: 30, which: null, margins: null, open: 0,
  },
  answers: ["which", "margins"],
  build(kit) {
    let key = "";
    let found = null;
    let curve = null;
    let curveKey = "";
    const solved = (state) => {
      const now = JSON.stringify([state.X, state.v, state.angle]);
      if (now !== key) { key = now; found = attentionSVM(problemAt(state)); }
      return found;
    };
    const size = (margin) => (margin.W ? 1 / norm(margin.W) : 0);
    const margins = (state) => {
      const now = JSON.stringify([state.X, state.v]);
      if (now !== curveKey) {
        curveKey = now;
        curve = { xs: ANGLES, ys: ANGLES.map((angle) => size(attentionSVM(problemAt(state, angle)))) };
      }
      return curve;
    };
    const kinds = (state, i) => {
      const best = optimal(problemAt(state))[i];
      const margin = kit.opened ? solved(state) : {};
      return (t) => (t === best ? "best" : margin.W && margin.support[i][t] ? "rival" : "other");
    };

    const grid = kit.row("al-grid-3");
    const panels = [0, 1].map((i) => {
      const cell = document.createElement("div");
      grid.append(cell);
      kit.caption(`Sequence ${i + 1}`, cell);
      plane(kit, {
        x: X, y: Y, parent: cell, name: `plane al-seq${i + 1}`,
        can: () => kit.opened,
        told: (state) => {
          const margin = kit.opened ? solved(state) : {};
          const kind = kinds(state, i);
          return `Sequence ${i + 1}: ${state.X[i].map((x, t) => `token ${t + 1} at ${x.map((a) => signed(a)).join(", ")}${kind(t) === "best" ? ", best" : margin.W ? `, ahead by ${margin.margins[i][t].toFixed(2)}` : ""}`).join("; ")}`;
        },
        points: (state) => state.X[i].map(([x, y], t) => ({ key: `x${i}${t}`, x, y, label: `sequence ${i + 1}, token ${t + 1}`, link: `seq${i + 1} tok${i + 1}${t + 1}` })),
        move: (handle, x, y) => {
          const next = kit.state.X.map((rows) => rows.map((row) => row.slice()));
          next[i][Number(handle[2])] = [x, y];
          kit.set({ X: next });
        },
        draw: (state, at) => {
          const problem = problemAt(state);
          const gamma = scores(problem)[i];
          const best = optimal(problem)[i];
          const margin = kit.opened ? solved(state) : {};
          let street = "";
          let push = "";
          if (margin.W) {
            const u = apply(margin.W, problem.z[i]);
            const long = Math.hypot(...u);
            const [b, side] = [state.X[i][best], [-u[1] / long, u[0] / long]];
            const end = b.map((value, a) => value - u[a] / long / long);
            const far = (p, s) => at([p[0] + s * 9 * side[0], p[1] + s * 9 * side[1]]);
            const corners = [far(b, 1), far(b, -1), far(end, -1), far(end, 1)];
            street = group({ "data-mark": "fro street" },
              tag("path", { d: `M${corners.map((c) => c.map((v) => v.toFixed(1)).join(",")).join("L")}z`, class: "al-fill-fro", "fill-opacity": 0.13 }),
              tag("path", { d: `M${far(end, -1).join(",")}L${far(end, 1).join(",")}`, class: "al-stroke-fro", "stroke-width": 2.2, fill: "none" }),
              tag("path", { d: `M${far(b, -1).join(",")}L${far(b, 1).join(",")}`, class: "al-stroke-best", "stroke-width": 1.2, "stroke-dasharray": "5 5", fill: "none" }));
            const from = at(b);
            const tip = at([b[0] + 0.62 * u[0] / long, b[1] + 0.62 * u[1] / long]);
            push = group({ "data-mark": "fro Wz" }, arrow(...from, ...tip, { colour: "fro", width: 2.6 }),
              text(tip[0] + (u[0] > 0 ? 6 : -6), tip[1] - 4, label(`$W z_${i + 1}$`), { class: "al-label al-halo-text al-text-fro", "text-anchor": u[0] > 0.4 * long && b[0] < 1.2 ? "start" : "end" }));
          }
          const shares = gamma.map(() => 0.16);
          return street + axes(at, X, Y) + push + tokens(state.X[i], shares, at, { kind: kinds(state, i), scores: kit.opened ? null : gamma, seq: i + 1 });
        },
      });
      return cell;
    });

    const side = document.createElement("div");
    side.className = "al-side";
    grid.append(side);
    kit.caption("The two queries", side);
    side.classList.add("al-narrow");
    plane(kit, {
      x: [-1.5, 1.5], y: [-0.35, 1.3], parent: side, name: "dial",
      can: () => kit.opened,
      told: (state) => `Queries of length 1, ${state.angle} degrees apart`,
      points: (state) => [{ key: "z2", x: queries(state.angle)[1][0], y: queries(state.angle)[1][1], label: "query of sequence 2" }],
      move: (_, x, y) => {
        const turned = (Math.atan2(y, x) * 180) / Math.PI;
        const held = turned < -90 ? 180 : Math.max(0, Math.min(180, turned));
        kit.set({ angle: Math.round(held) });
      },
      draw: (state, at) => {
        const [one, two] = queries(state.angle);
        const [cx, cy] = at([0, 0]);
        const r = at([1, 0])[0] - cx;
        return tag("path", { d: `M${cx + r},${cy}A${r},${r} 0 0 0 ${cx - r},${cy}`, class: "al-stroke-rule", fill: "none" })
          + arrow(cx, cy, ...at(one), { colour: "query" }) + arrow(cx, cy, ...at(two), { colour: "query" })
          + circle(...at(two), 7, { class: "al-stroke-query", fill: "none", "stroke-width": 1.5 })
          + text(at(one)[0] + 6, at(one)[1] + 16, label("$z_1$"), { class: "al-label al-text-query" })
          + text(at(two)[0] + (two[0] < -0.3 ? -8 : 10), at(two)[1] - 8, label("$z_2$"), { class: "al-label al-text-query", "text-anchor": two[0] < -0.3 ? "end" : "start" })
          + text(cx, cy + 18, `${state.angle}° apart`, { class: "al-small", "text-anchor": "middle" });
      },
    });

    // After the answers: what the two sequences add to each W z, head to tail.
    const after = kit.row("al-grid-3 al-after");
    const forces = [0, 1].map((i) => {
      const cell = document.createElement("div");
      after.append(cell);
      kit.caption(`What adds up to $W z_${i + 1}$`, cell);
      kit.view({
        parent: cell, name: "forces",
        told: (state) => {
          if (!kit.opened || !solved(state).W) return "";
          const { own, other } = parts(problemAt(state), solved(state), i);
          return `Own pushes ${own.map((a) => signed(a)).join(", ")}; from the other sequence ${other.map((a) => signed(a)).join(", ")}`;
        },
        draw: (w, state) => {
          const h = 128;
          if (!kit.opened || !solved(state).W) return { height: h, inner: "" };
          const problem = problemAt(state);
          const { single, other } = parts(problem, solved(state), i);
          const chain = [[0, 0]];
          const steps = [...single.map(({ t, push }) => ({ push, colour: "rival", name: `token ${t + 1}` })), { push: other, colour: "other", name: `sequence ${2 - i}` }];
          steps.forEach(({ push }) => { const [x, y] = chain[chain.length - 1]; chain.push([x + push[0], y + push[1]]); });
          const tip = chain[chain.length - 1];
          const [xs, ys] = [0, 1].map((a) => chain.map((p) => p[a]));
          const span = Math.max((Math.max(...xs) - Math.min(...xs)) / (w - 150), (Math.max(...ys) - Math.min(...ys)) / (h - 46), 1 / 90);
          const mid = [(Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2];
          const at = ([x, y]) => [w / 2 + (x - mid[0]) / span, h / 2 - (y - mid[1]) / span];
          const inner = steps.map(({ push, colour, name }, k) => {
            const [a, b] = [at(chain[k]), at(chain[k + 1])];
            if (Math.hypot(a[0] - b[0], a[1] - b[1]) < 2) return "";
            const below = push[0] < 0 === (k % 2 === 0);
            return group({ "data-mark": `${colour} force` }, arrow(...a, ...b, { colour, width: 2.2 }),
              text((a[0] + b[0]) / 2, (a[1] + b[1]) / 2 + (below ? 16 : -8), name, { class: `al-small al-halo-text al-text-${colour}`, "text-anchor": "middle" }));
          }).join("");
          const [a, b] = [at([0, 0]), at(tip)];
          return { height: h, inner: inner + group({ "data-mark": "fro Wz" }, arrow(...a, ...b, { colour: "fro", width: 3.2 }),
            text(b[0] + (tip[0] < 0 ? -7 : 7), b[1] - 6, label(`$W z_${i + 1}$`), { class: "al-label al-halo-text al-text-fro", "text-anchor": tip[0] < 0 ? "end" : "start" })) };
        },
      });
      return cell;
    });
    const last = document.createElement("div");
    last.className = "al-side";
    after.append(last);
    kit.caption("The shortest $W$", last);
    heat(kit, { parent: last, matrix: (state) => (kit.opened && solved(state).W) || [[0, 0], [0, 0]], title: "W", mark: "fro", largest: 46 });
    const bar = kit.controls();
    kit.slider({ key: "angle", label: "angle between the queries", min: 0, max: 180, step: 1, show: (a) => `${a}°`, parent: bar });
    kit.draws.push(() => {
      after.hidden = !kit.opened;
      bar.hidden = !kit.opened;
    });

    kit.predict({
      heading: "Before $W$ is shown, two predictions",
      about: ["X"],
      go: "Show $W$",
      asks: [
        {
          kind: "choice", key: "which",
          question: "The queries are 30° apart. Which rival in sequence 1 holds $W$ in place, so that moving it turns $W$?",
          options: [[1, "token 1"], [2, "token 2, the nearest to the best one"], [4, "token 4, the next best score"], [0, "all three, each a little"]],
          right: () => 1,
          say: (mine) => {
            const why = "At 30° it is token 1 alone. $W$ serves both sequences, so $W z_1$ cannot point where sequence 1 likes best, and <em>nearest</em> means nearest along $W z_1$: token 1 reaches farthest up the slope.";
            const reply = { 1: "Right, and by no simple rule. ", 2: "Token 2 is nearest in the plane, but far behind along $W z_1$; at 75° and more it does take over. ", 4: "Scores decide who is best, and nothing after that. Token 4 does hold $W$ when the queries are 15° apart. ", 0: "Only tokens at the edge of the strip push, as in every support vector machine; the others have a margin to spare. " }[mine] || "";
            return reply + why.replaceAll("<em>", "").replaceAll("</em>", "");
          },
        },
        {
          kind: "sketch", key: "margins", colour: "fro", mark: "fro",
          question: "Turn query 2 from the direction of query 1 (0°) to the opposite one (180°). Draw the margin that the best $W$ of length 1 reaches.",
          at: AT, x: { range: [0, 180], ticks: [0, 45, 90, 135, 180], show: (a) => `${a}°`, label: "angle between the queries", name: "angle" },
          y: { range: [0, 1.4], ticks: [0, 0.5, 1], show: (v) => v.toFixed(1), label: "margin" },
          truth: margins,
          notes: (state) => {
            const { ys } = margins(state);
            const now = ys[Math.round(state.angle / STEP)];
            return [[Math.min(150, Math.max(8, state.angle)), Math.max(0.08, now - 0.2), `${state.angle}°: ${size(solved(state)).toFixed(2)}`]];
          },
          say: (mine, state) => {
            const { ys } = margins(state);
            const [low, high] = [ys[0].toFixed(2), ys[ys.length - 1].toFixed(2)];
            const what = `Equal queries give ${low}, opposite ones ${high}. What $W$ learns about $z_1$ it does to $-z_1$ with the opposite sign, and these two sequences want opposite things: their best tokens lie on different sides.`;
            if (!mine) return what;
            const [a, b] = [mine[0], mine[mine.length - 1]];
            if (a > b + 0.15) return `You expected alike queries to be the easy case. Here it is the other way round. ${what}`;
            if (b > a + 0.15) return `Yes, it rises. ${what}`;
            return `You drew both ends alike. ${what}`;
          },
        },
      ],
    });

    return (state) => {
      if (!kit.opened) { kit.say(""); return; }
      const margin = solved(state);
      kit.el.dataset.status = margin.status;
      kit.el.dataset.margin = size(margin).toFixed(6);
      kit.el.dataset.support = JSON.stringify((margin.support || []).map((row) => row.flatMap((yes, t) => (yes ? [t + 1] : []))));
      if (!margin.W) {
        kit.say("There is no such W: a nudge in almost any direction brings it back.");
        return;
      }
      const names = margin.support.map((row, i) => {
        const held = row.flatMap((yes, t) => (yes ? [t + 1] : []));
        return `sequence ${i + 1}: ${held.length ? `token ${held.join(" and ")}` : "none"}`;
      });
      kit.say(`Margin ${size(margin).toFixed(3)}, length of the shortest W ${norm(margin.W).toFixed(2)}. Support tokens of ${names.join(", of ")}.`);
    };
  },
  code: (state) => `import numpy as np
from attnlab import problems, svm

angle = np.radians(${state.angle})
problem = problems.TokenProblem(
    X=${JSON.stringify(state.X).replaceAll(",", ", ")},
    z=[[1, 0], [np.cos(angle), np.sin(angle)]],
    y=[1, 1],
    v=${JSON.stringify(state.v).replaceAll(",", ", ")},
)
print(svm.attention_svm(problem))`,
});
