// LeCun, He and NTK: at one step size, and at the same share of each one's largest stable step.

import { raceBoard, shareInWords } from "./kit/race.js";
import { explorable, fixed } from "./kit/kit.js";

const NAMES = ["LeCun", "He", "NTK"];
const INITS = ["lecun", "he", "ntk"];
const STEPS = { equal: [0.25, 0.5, 1], relative: [0.125, 0.25, 0.5] };
const MODES = ["equal", "relative"];

export default explorable({
  name: "init_race",
  title: "A race of initialisations: at one step, or at one share of the stable step",
  defaults: { mode: "equal", s: 2, w: 2, k: 31, bet: null },
  build(kit) {
    const steps = kit.list("step").slice(1);
    const widths = kit.list("widths");
    const N = kit.data("values").shape[2];
    const alpha = (state, i) => kit.list("alpha", i, state.w)[0];
    const curve = (state, i) => kit.list("loss", MODES.indexOf(state.mode), state.s, i, state.w).slice(1);
    const spectrum = (state, i) => kit.list("values", i, state.w);
    const limit = (state, i) => N / spectrum(state, i)[0];
    const size = (state, i) => STEPS[state.mode][state.s] * (state.mode === "equal" ? 1 : limit(state, i));
    const ends = (state) => NAMES.map((_, i) => curve(state, i)[state.k]);
    const told = (shares) => NAMES.map((name, i) => `${name} ${shareInWords(shares[i])}`).join(", ");
    kit.bet({
      question: "At width 240 and step 1 the NTK start is far behind. Now give each start half of its own largest stable step. Who is behind?",
      options: ["NTK, as before", "not NTK any more", "LeCun and He by as much as NTK was"],
      outcome: (state) => {
        const wide = { mode: "relative", s: 2, w: 2, k: steps.length - 1 };
        return `${state.bet === 1 ? "Yes." : "Look again."} At half of its own limit each start fits: ${told(ends(wide))} after ${steps[steps.length - 1]} steps. With the setting you see: ${told(ends(state))}.`;
      },
    });
    const draw = raceBoard(kit, { steps, count: N, names: NAMES, low: 1e-24 });
    kit.scrubber({ key: "k", times: steps });
    const controls = kit.controls();
    kit.choice({ key: "mode", label: "the same", options: [["equal", "step size"], ["relative", "share of the stable step"]], parent: controls });
    kit.slider({ key: "s", label: "how much", values: [0, 1, 2], show: (s) => String(STEPS[kit.state.mode][s]), parent: controls });
    kit.slider({ key: "w", label: "width", values: [0, 1, 2], show: (w) => String(widths[w]), parent: controls });
    return (state) => {
      draw({
        curves: NAMES.map((_, i) => curve(state, i)),
        rates: NAMES.map((_, i) => spectrum(state, i).map((value) => (size(state, i) * value) / N)),
        k: state.k,
      });
      const shares = ends(state);
      const squares = NAMES.map((_, i) => alpha(state, i));
      kit.say(`Width ${widths[state.w]}, ${state.mode === "equal" ? `step ${STEPS.equal[state.s]} for all` : `${STEPS.relative[state.s]} of each limit`}. Loss after ${steps[state.k]} steps: ${told(shares)}. Largest stable steps: ${NAMES.map((_, i) => fixed(limit(state, i))).join(", ")}; in use: ${NAMES.map((_, i) => fixed(size(state, i))).join(", ")}. alpha² is ${squares.map((value) => fixed(value, 4)).join(", ")}: LeCun over NTK ${fixed(squares[0] / squares[2], 1)}, d_m/d = ${widths[state.w] / 20} at the same attention.`);
      kit.el.dataset.shares = JSON.stringify(shares);
      kit.el.dataset.steps = JSON.stringify(NAMES.map((_, i) => size(state, i)));
      kit.el.dataset.limits = JSON.stringify(NAMES.map((_, i) => limit(state, i)));
    };
  },
  code: (state) => `import numpy as np
from attnlab import models, ntk, optim, problems
from attnbook import theory

problem = problems.gaussian_regression(n=20, T=4, d=20, unit_tokens=True, rng=0)
for init in ${JSON.stringify(INITS)}:
    model = models.Encoder(${[20, 80, 240][state.w]}, init=init)
    start = model.init(problem, rng=0)
    top = np.linalg.eigvalsh(ntk.empirical(model, start, problem))[-1]
    limit = float(theory.encoder.stability_limit(top, problem.n))
    step = ${STEPS[state.mode][state.s]}${state.mode === "equal" ? "" : " * limit"}
    run = optim.train(model, problem, optim.GD(step), steps=200, params=start)
    loss = run.history["loss"]
    print(init, f"limit {limit:.2f}, step {step:.2f}, loss times {loss[-1] / loss[0]:.1e}")`,
});
