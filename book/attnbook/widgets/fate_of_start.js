// The 2x2 counterexample to Theorem 4: the length of the start decides where training ends.

import { attentionSVM, gradient, attention } from "./kit/core.js";
import { explorable, fixed } from "./kit/kit.js";
import { combine, cosine, norm } from "./kit/vectors.js";

const PROBLEM = {
  X: [[[1, 0.2], [-1, -0.2]], [[-2.5, 0.5], [2.5, -0.5]]],
  z: [[1, 0.2], [-2.5, 0.5]],
  y: [-1, 1],
  v: [0, 1],
};
const STEPS = 20000;
const ETA = 0.05;
const GOOD = attentionSVM(PROBLEM).W; // the optimal tokens, the second and the first
const BAD = attentionSVM(PROBLEM, [1, 1]).W; // both times the second
const times = [0];
for (let k = 1; k <= STEPS; k = Math.max(k + 1, Math.round(k * 1.12))) times.push(k);

const kept = new Map();
function follow(c) {
  if (kept.has(c)) return kept.get(c);
  let W = combine(c / norm(BAD), BAD, 0, BAD);
  const good = [];
  const bad = [];
  const share = [];
  let next = 0;
  for (let k = 0; k <= times[times.length - 1]; k++) {
    if (k === times[next]) {
      good.push(norm(W) > 0 ? cosine(W, GOOD) : 0);
      bad.push(norm(W) > 0 ? cosine(W, BAD) : 0);
      share.push(attention(PROBLEM, W)[1][0]);
      next += 1;
    }
    const { G, logScale } = gradient(PROBLEM, W);
    W = combine(1, W, -ETA * Math.exp(logScale), G);
  }
  const found = { good, bad, share, size: norm(W) };
  kept.set(c, found);
  return found;
}

export default explorable({
  name: "fate_of_start",
  title: "The fate of a start: same data, same step, another length",
  defaults: { c: 0.3, bet: null },
  build(kit) {
    kit.bet({
      question: "Training starts at c times the unit direction of the wrong selection. Theorem 4 says the start does not matter. Does it?",
      options: ["no: every start reaches the max-margin direction", "yes: a long start stays wrong for ever"],
      outcome: (state) => `${state.bet === 1 ? "Yes." : "Look:"} below a length between .3 and .5 training turns round, above it the wrong direction attracts.`,
    });
    const row = kit.row();
    const angle = kit.chart({
      label: "cosines during training", title: "cosine of W with two directions",
      x: { range: [1, STEPS], log: true, label: "step" }, y: { range: [-1, 1.05] },
    }, row);
    const mass = kit.chart({
      label: "attention on the best token of sequence 2", title: "attention on the best token of sequence 2",
      x: { range: [1, STEPS], log: true, label: "step" }, y: { range: [0, 1.05] },
    }, row);
    kit.legend([[0, "with the max-margin direction"], [1, "with the wrong selection's direction", true], [2, "attention"]]);
    kit.slider({ key: "c", label: "length c of the start", min: 0.05, max: 1.5, step: 0.05 });
    return (state) => {
      const { good, bad, share, size } = follow(state.c);
      angle.begin().line("good", times, good, { series: 0, width: 2.5 });
      angle.line("bad", times, bad, { series: 1, dash: "6 4", width: 2.5 }).end();
      mass.begin().line("share", times, share, { series: 2, width: 2.5 }).end();
      const last = good.length - 1;
      const fate = good[last] > bad[last] ? "the max-margin direction" : "the wrong direction";
      kit.say(`c = ${fixed(state.c)}: after ${times[last]} plain steps W points to ${fate} (cosine ${fixed(good[last], 4)} with the max-margin one, ${fixed(bad[last], 4)} with the wrong one; |W| = ${fixed(size)}).`);
      kit.el.dataset.good = String(good[last]);
      kit.el.dataset.bad = String(bad[last]);
    };
  },
  code: (state) => `from attnlab import models, optim, problems, svm

problem = problems.bad_direction()
wrong = svm.attention_svm(problem, [1, 1])
start = ${state.c} * wrong.W / wrong.norm
run = optim.train(models.Attention(start="zero"), problem, optim.GD(${ETA}),
                  steps=${times[times.length - 1]}, params={"W": start})
print(svm.correlation(run.params["W"], svm.attention_svm(problem).W))`,
});
