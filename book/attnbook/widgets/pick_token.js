// Any selection of tokens has a max-margin direction; some of them hold training for ever.

import { attentionSVM, combine, cosine, locallyOptimal, norm, optimal, scores, step, attention, apply, best } from "./kit/core.js";
import { explorable, fixed, python } from "./kit/kit.js";

const STEPS = 400;
const SHAPES = ["circle", "square", "triangle"];

export default explorable({
  name: "pick_token",
  title: "Pick any token: will training stay with your choice?",
  defaults: {
    X: [[[-1.1, 1.2], [1.5, 1.1], [0.7, -1.2]], [[-1.3, -0.3], [0.4, -1.0], [1.6, 0.3]]],
    z: [[-0.1, 0.9], [-1.1, -0.9]],
    y: [1, 1],
    v: [0.2, 1],
    pick: [1, 0],
    c: 3,
    bet: null,
  },
  build(kit) {
    kit.bet({
      question: "The picked tokens are not the best ones. Training starts along their direction. Can it stay?",
      options: ["never: better tokens pull it away", "yes, if the picked ones beat their nearest rivals"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look again."} Far out only support tokens (ringed) can pull, and only if they score more: Definition 2 and Theorem 7. From a short start every token still pulls.`,
    });
    const row = kit.row();
    const planes = [0, 1].map((i) => kit.chart({
      square: true, bare: true, label: `sequence ${i + 1}: choose a token`, title: `sequence ${i + 1}: choose a token`,
      x: { range: [-2, 2] }, y: { range: [-2, 2] },
    }, row));
    const buttons = planes.map((plane, i) => [0, 1, 2].map((t) => plane.handle(`x${i}${t}`, {
      series: 6, shape: SHAPES[t], label: `select token ${t + 1} of sequence ${i + 1}`,
      press: () => kit.set({ pick: kit.state.pick.map((old, k) => (k === i ? t : old)) }),
    })));
    kit.legend([[1, "max margin of the selection", true], [0, "W z in training"], [1, "support token", "ring"]]);
    kit.slider({ key: "c", label: "length of the start", min: 0.5, max: 12, step: 0.5 });
    return (state) => {
      const gamma = scores(state);
      const margin = attentionSVM(state, state.pick);
      const top = optimal(state);
      const found = margin.status === "optimal";
      const local = found && locallyOptimal(state, state.pick, margin.support);
      let W = found ? combine(state.c / norm(margin.W), margin.W, 0, margin.W) : [[0, 0], [0, 0]];
      const paths = [0, 1].map(() => ({ xs: [], ys: [] }));
      for (let k = 0; k <= STEPS; k++) {
        state.z.forEach((z, i) => {
          const [x, y] = apply(W, z);
          paths[i].xs.push(x);
          paths[i].ys.push(y);
        });
        W = step(state, W, 0.1);
      }
      const at = attention(state, W).map(best);
      const stays = at.every((t, i) => t === state.pick[i]);
      planes.forEach((plane, i) => {
        plane.begin();
        state.X[i].forEach((x, t) => {
          const look = t === state.pick[i] ? 1 : t === top[i] ? 0 : 6;
          buttons[i][t].put(x[0], x[1], { look, glow: found && margin.support[i][t], chosen: t === state.pick[i] });
          plane.text(`g${t}`, x[0], x[1], gamma[i][t].toFixed(Math.abs(gamma[i][t]) < 0.1 ? 2 : 1), { dx: found && margin.support[i][t] ? 19 : 13, dy: 4 });
        });
        if (found) {
          const way = apply(margin.W, state.z[i]);
          const size = Math.hypot(...way) || 1;
          plane.line("ray", [0, (2.7 * way[0]) / size], [0, (2.7 * way[1]) / size], { series: 1, dash: "7 5" });
        }
        const { xs, ys } = paths[i];
        const reach = 1.75 / Math.max(1e-9, ...xs.map((x, k) => Math.hypot(x, ys[k])));
        plane.line("path", xs.map((x) => x * reach), ys.map((y) => y * reach), { series: 0, width: 3 });
        plane.mark("end", xs[STEPS] * reach, ys[STEPS] * reach, { series: 0, size: 4 });
        plane.end();
      });
      kit.say(!found
        ? "No W separates this selection: there is no direction to start from."
        : `Selection ${state.pick.map((t) => t + 1).join(" and ")}: ${local ? "locally optimal" : "not locally optimal"}, margin ${fixed(1 / norm(margin.W), 3)}. After ${STEPS} normalized steps attention ${stays ? "stayed" : `moved to tokens ${at.map((t) => t + 1).join(" and ")}`}; cosine with the selection's direction ${fixed(cosine(W, margin.W), 4)}.${local && !stays ? " The start was too short: from there tokens without a ring pull as well." : ""}`);
      kit.el.dataset.local = String(local);
      kit.el.dataset.stays = String(stays);
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm

problem = problems.TokenProblem(
    X=np.array(${python(state.X)}, float),
    z=np.array(${python(state.z)}, float),
    y=np.array(${python(state.y)}, float), v=np.array(${python(state.v)}, float))
found = svm.locally_optimal(problem, ${python(state.pick)})
margin = found.margin
run = optim.train(models.Attention(start="zero"), problem, optim.NormalizedGD(0.1),
                  steps=${STEPS}, params={"W": ${state.c} * margin.W / margin.norm})
print(found.as_printed, svm.correlation(run.params["W"], margin.W))`,
});
