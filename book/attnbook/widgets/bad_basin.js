// Where normalized descent ends, for every start in the plane in which W moves: Figure 8's data,
// and the same with the tokens of sample 2 turned.

import {
  basinAllowed, basinFrame, basinLongest, basinPath, basinTurns,
} from "./kit/bias_joint.js";
import { explorable, fixed } from "./kit/kit.js";

const COLUMNS = 60; // of the map: 6 degrees each
const ROWS = 40;
const LOW = -3.6; // log10 of the shortest and the longest start
const HIGH = 0.8;
const REACH = 40; // length of the path after which a run is judged
const tall = (HIGH - LOW) / ROWS;
const radians = (degrees) => (degrees * Math.PI) / 180;
const spot = (angle, size) => [10 ** size * Math.cos(radians(angle)), 10 ** size * Math.sin(radians(angle))];

const maps = {};
// For each column of the map the cells that end at the wrong token, as runs [from, to).
function lost(a) {
  const key = a.toFixed(2);
  if (maps[key]) return maps[key];
  const frame = basinFrame(a);
  maps[key] = Array.from({ length: COLUMNS }, (_, i) => {
    const runs = [];
    for (let j = 0; j < ROWS; j++) {
      const start = spot(-180 + (i + 0.5) * (360 / COLUMNS), LOW + (j + 0.5) * tall);
      if (basinTurns(frame, start, 0.08, REACH / 0.08)) continue;
      if (runs.length && runs[runs.length - 1][1] === j) runs[runs.length - 1][1] = j + 1;
      else runs.push([j, j + 1]);
    }
    return runs;
  });
  return maps[key];
}

export default explorable({
  name: "bad_basin",
  title: "Bad directions: which starts turn round",
  defaults: { angle: 78, size: -1, a: 2.5, eta: 0.025, bet: null },
  build(kit) {
    kit.bet({
      question: "Theorem 1 is for starts of any direction and of small scale. Start with length 1 in a bad direction: what happens?",
      options: ["it turns round, only later", "it stays with the wrong token for ever", "that depends on the step size"],
      outcome: (state) => {
        const frame = basinFrame(state.a);
        const turned = basinTurns(frame, spot(78, 0), 0.08, REACH / 0.08);
        if (turned) return `${state.bet === 0 ? "Yes, here." : "Not here."} With sample 2's tokens at ${fixed(state.a, 1)} even a start of length 1 at 78 degrees turns round${frame.pull < 1 ? ": nothing holds W on the wrong side" : ""}. Put them back at 2.5.`;
        return `${state.bet === 1 ? "Yes." : "Look again."} From length 1 at 78 degrees it never turns round, at any step size of the slider. The theorem's starts are as short as the dashed line.`;
      },
    });
    const row = kit.row();
    const map = kit.chart({
      label: "start by angle and length", title: "starts by angle and length; their fate, once you bet",
      x: { range: [-180, 180], label: "angle from W_mm, degrees" },
      y: { range: [LOW, HIGH], label: "log10 of the start's length" }, height: 320,
    }, row);
    const plane = kit.chart({
      square: true, bare: true, label: "path of W in the plane in which it moves",
      title: "the path of W", x: { range: [-3, 3] }, y: { range: [-3, 3] },
    }, row);
    const tell = () => `angle ${Math.round(kit.state.angle)} degrees, length ${fixed(10 ** kit.state.size, 4)}`;
    const onMap = map.handle("start", {
      series: 0, shape: "diamond", label: "start, by angle and length", tell,
      move: (x, y) => kit.set({ angle: Math.round(x), size: Number(y.toFixed(2)) }),
    });
    const inPlane = plane.handle("W", {
      series: 0, shape: "diamond", label: "start W(0)", tell,
      move: (x, y) => kit.set({
        angle: Math.round((Math.atan2(y, x) * 180) / Math.PI),
        size: Number(Math.max(LOW, Math.min(HIGH, Math.log10(Math.hypot(x, y) || 1e-9))).toFixed(2)),
      }),
    });
    kit.legend([[0, "start and path"], [2, "W_mm (angle 0)", true], [1, "ends at the wrong token; its direction", true], [3, "longest start that Lemma 2 allows", true], [4, "direction -I", true], [6, "attention of sample 2 even", true]]);
    const controls = kit.controls();
    kit.slider({ key: "eta", label: "step eta", values: [0.01, 0.025, 0.05, 0.08, 0.2], show: (eta) => String(eta), parent: controls });
    kit.slider({ key: "a", label: "sample 2's tokens at", min: 0, max: 3, step: 0.1, show: (a) => (a === 2.5 ? "2.5 (paper)" : fixed(a, 1)), parent: controls });
    return (state) => {
      const frame = basinFrame(state.a);
      const start = spot(state.angle, state.size);
      const steps = Math.round(REACH / state.eta);
      const every = Math.max(1, Math.round(0.02 / state.eta));
      const path = basinPath(frame, start, state.eta, steps, every);
      const end = path[path.length - 1];
      const turned = basinTurns(frame, start, state.eta, steps);
      const cosine = end[0] / Math.hypot(...end);
      const allowed = basinAllowed(frame, state.eta);
      const cells = lost(state.a);
      map.begin();
      if (state.bet !== null) cells.forEach((runs, i) => runs.forEach(([from, to], j) =>
        map.rect(`c${i}-${j}`, [-180 + (i * 360) / COLUMNS, LOW + from * tall], [-180 + ((i + 1) * 360) / COLUMNS, LOW + to * tall], { series: 1, strength: 0.3 })));
      const floor = Math.max(LOW, Math.log10(allowed));
      map.line("allowed", [-180, 180], [floor, floor], { series: 3, dash: "7 4", width: 2.5 });
      const degrees = ([x, y]) => (Math.atan2(y, x) * 180) / Math.PI;
      const upright = (id, angle, series, dash) => map.line(id, [angle, angle], [LOW, HIGH], { series, dash, width: 1.8 });
      upright("good", 0, 2, "9 4");
      if (frame.pull >= 1) upright("wrong", degrees(frame.wrong), 1, "9 4");
      upright("figure", degrees(frame.figure), 4, "2 4");
      onMap.put(state.angle, state.size);
      map.end();
      plane.begin();
      const ray = (id, [x, y], series, dash) => {
        const size = 4.3 / Math.hypot(x, y);
        plane.line(id, [0, x * size], [0, y * size], { series, dash, width: 2 });
      };
      ray("good", [1, 0], 2, "9 4");
      plane.text("goodName", 2.95, 0, "W_mm", { anchor: "end", dy: -24, series: 2 });
      if (frame.pull >= 1) {
        ray("wrong", frame.wrong, 1, "9 4");
        const name = frame.wrong.map((value) => (2.55 * value) / Math.hypot(...frame.wrong));
        plane.text("wrongName", name[0], name[1], "wrong", { series: 1, dx: 9, dy: 12 });
      }
      ray("figure", frame.figure, 4, "2 4");
      const wall = 4.3 / Math.hypot(frame.lean, frame.side[1]); // where sample 2's attention is even
      plane.line("even", [-wall * frame.side[1], wall * frame.side[1]].map((x) => -x), [-wall * frame.lean, wall * frame.lean], { series: 6, dash: "1 4", width: 1.5 });
      plane.line("path", path.map(([x]) => x), path.map(([, y]) => y), { series: 0, width: 2.5 });
      inPlane.put(...start);
      plane.end();
      const share = (W) => 1 / (1 + Math.exp(-(frame.lean * W[0] + frame.side[1] * W[1])));
      const times = 10 ** state.size / allowed;
      const fate = turned
        ? `sample 2 turns to its better token and the cosine with W_mm reaches ${fixed(cosine, 4)}`
        : `sample 2 never turns: its attention goes from ${fixed(share(start), 3)} to ${fixed(share(end), 6)}, and the cosine with W_mm is ${fixed(cosine, 3)}`;
      const limit = basinLongest(frame);
      kit.say(`Start of length ${fixed(10 ** state.size, 4)} at ${Math.round(state.angle)} degrees, ${steps} steps of ${state.eta}: ${fate}. Lemma 2 allows a length of ${fixed(allowed, 5)}; this start is ${times > 1 ? `${fixed(times, times < 10 ? 1 : 0)} times longer` : "inside"}.${state.eta > limit ? ` Theorem 1 asks for steps of at most ${fixed(limit, 3)}.` : ""} Sample 1 alone pulls sample 2's margin ${frame.pull >= 1 ? "down" : frame.pull > 0 ? "down, but" : "nowhere:"} ${fixed(frame.pull, 2)} times as fast as it lifts its own.`);
      const wrongCells = cells.flat().reduce((sum, [from, to]) => sum + to - from, 0);
      Object.assign(kit.el.dataset, {
        turned: String(turned), cosine: String(cosine), allowed: String(allowed), longest: String(limit),
        pull: String(frame.pull), lost: String(wrongCells), share: String(share(end)),
      });
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, optim, problems, svm
from attnbook import theory

a = ${state.a}  # the paper has 2.5
data = problems.bad_direction()
X = data.X.copy()
X[1, :, 0] = [-a, a]
problem = problems.TokenProblem(X, X[:, 0], data.y, data.v)
good = svm.attention_svm(problem)
wrong = svm.attention_svm(problem, tokens=np.array([1, 1]))
g = (X[[0, 1], [1, 0]] - X[[0, 1], [0, 1]])[:, :, None] * X[:, 0][:, None, :]
along = good.W / good.norm
across = g[0] - (g[0] * along).sum() * along  # in the plane of the two features g
across /= np.linalg.norm(across)
angle = np.radians(${state.angle})
start = 10.0 ** ${state.size} * (np.cos(angle) * along + np.sin(angle) * across)
model = models.Attention(loss="exponential", start="zero")
run = optim.train(model, problem, optim.NormalizedGD(${state.eta}),
                  steps=${Math.round(REACH / state.eta)}, params={"W": start})
print(svm.correlation(run.params["W"], good.W), run.attention()[1])
B = np.linalg.norm(X, axis=-1).max()
print("longest start of Lemma 2:", theory.bias.initial_norm(${state.eta}, B, good.norm))`,
});
