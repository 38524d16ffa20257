// Head and attention trained together: equation 10 with its shrinking steps, beside steps that do
// not shrink and one norm for both.

import { jointTraining } from "./kit/bias_joint.js";
import { explorable, fixed } from "./kit/kit.js";

const TIMES = [0, ...new Set(Array.from({ length: 97 }, (_, k) => Math.round(10 ** (k / 24))))]; // to 10,000
const RULES = ["equation 10", "constant steps", "one norm for both"];
const DASHES = ["", "8 4", "2 4"];
const SHAPES = ["circle", "square", "triangle"];
const POWERS = [0, 1 / 3, 0.5, 2 / 3, 0.8, 0.95, 1];
const show = (power) => ({ 3333: "1/3", 6667: "2/3" }[Math.round(1e4 * power)] || String(power));
const SIZES = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const VIEWS = [["normW", "|W|"], ["normv", "|v|"], ["cosW", "cosine of W"], ["cosv", "cosine of v"], ["attention", "attention"]];
const PLACE = { normv: 1, normW: 2, cosv: 3, cosW: 4, attention: 5 };
const TITLES = { normW: "length of W", normv: "length of the head v", cosW: "cosine of W with its max-margin direction", cosv: "cosine of the head v with its max-margin direction", attention: "mean attention on the deciding token" };
const known = {};

export default explorable({
  name: "joint_training",
  title: "Training the head too: steps that shrink, and steps that do not",
  defaults: { k: 50, eta: 0.002, head: 2 / 3, attention: 1, view: "normW", clock: 0, bet: null },
  build(kit) {
    const data = {};
    for (const key of ["K", "G", "y", "head", "goal"]) data[key] = Float64Array.from(kit.list(key));
    const rate = kit.data("rate").values[0]; // omega_1 of Theorem 8
    const run = (kind, eta, head, attention) => {
      const key = [kind, eta, head, attention].join();
      if (!known[key]) known[key] = jointTraining(data, { kind, eta, head, attention }, TIMES);
      return known[key];
    };
    const all = (state) => [
      run("each", state.eta, state.head, state.attention),
      run("each", state.eta, 0, 0),
      run("whole", state.eta, 0, 0),
    ];
    kit.bet({
      question: "The paper's experiment has eta = 0.002, its theorems the shrinking steps of equation 10. With both: how low is the loss after 10,000 steps?",
      options: ["below 0.01", "about a half", "still above 0.9"],
      outcome: (state) => {
        const end = Math.exp(run("each", 0.002, 2 / 3, 1)[TIMES.length - 1][0]);
        return `${state.bet === 2 ? "Yes." : "Look again."} It is ${fixed(end, 3)}. The steps of W add up to 0.002 log t, those of the head to 0.006 times the cube root of t. For its figure the paper drops the shrinking factors, as its Section 5 says.`;
      },
    });
    const row = kit.row();
    const ranges = [[1, 1.3e4], [1e-3, 100]];
    const both = (label, title, y) => [0, 1].map((clock) => kit.chart({
      label, title, height: 215, x: { range: ranges[clock], log: true, label: clock ? "length of the head's path" : "step" }, y,
    }, row));
    const losses = both("loss by time", "loss", { range: [1e-4, 1.5], log: true });
    const rights = {};
    for (const [view] of VIEWS) {
      rights[view] = both(TITLES[view], TITLES[view], PLACE[view] < 3 ? { range: [1e-3, 100], log: true } : { range: [view === "attention" ? 0.45 : 0, 1.02] });
    }
    kit.legend([...RULES.map((name, r) => [r, name, r > 0]), [6, "proved (Theorem 8, Lemma 10)", true]]);
    kit.scrubber({ key: "k", times: TIMES });
    const controls = kit.controls();
    kit.slider({ key: "eta", label: "step eta", values: SIZES, show: (eta) => (eta === 0.002 ? "0.002 (paper)" : String(eta)), parent: controls });
    kit.slider({ key: "head", label: "power for the head", values: POWERS, show, parent: controls });
    kit.slider({ key: "attention", label: "power for W", values: POWERS, show, parent: controls });
    kit.choice({ key: "view", label: "second chart", options: VIEWS });
    kit.choice({ key: "clock", label: "clock", options: [[0, "steps"], [1, "the head's path"]] });
    return (state) => {
      const k = Math.min(state.k, TIMES.length - 1);
      const runs = all(state);
      const proved = Math.abs(state.head - 2 / 3) < 1e-6 && state.attention === 1;
      const draw = (chart, which, log) => {
        chart.begin();
        runs.forEach((rows, r) => {
          const xs = rows.map((entry, j) => (state.clock ? entry[6] : TIMES[j])).slice(1);
          const ys = rows.map((entry) => (log ? Math.exp(entry[which]) : entry[which] || NaN)).slice(1);
          const look = { series: r, dash: DASHES[r], width: 2.5 };
          if (state.bet !== null) chart.line(`all${r}`, xs, ys, { ...look, faint: true });
          chart.line(`to${r}`, xs.slice(0, k), ys.slice(0, k), look);
          if (k > 0) chart.mark(`at${r}`, xs[k - 1], ys[k - 1], { series: r, shape: SHAPES[r], size: 5 });
        });
        const times = TIMES.slice(1);
        const xs = state.clock ? runs[0].map((entry) => entry[6]).slice(1) : times;
        const bound = which === 0 ? (t) => Math.exp((-state.eta * rate * Math.cbrt(t)) / 2) : (t) => 3 * state.eta * Math.cbrt(t);
        if (which === 0 ? proved : which === 1 && proved) chart.line("proved", xs, times.map(bound), { series: 6, dash: "1 4", width: 2 });
        chart.end();
      };
      const place = (charts, visible) => charts.forEach((chart, clock) => {
        const seen = visible && clock === state.clock;
        chart.root.parentNode.style.display = seen ? "" : "none";
        return seen;
      });
      place(losses, true);
      draw(losses[state.clock], 0, true);
      for (const [view] of VIEWS) place(rights[view], view === state.view);
      const view = rights[state.view] ? state.view : "normW";
      draw(rights[view][state.clock], PLACE[view], false);
      const now = runs.map((rows) => rows[k]);
      const loss = now.map((entry) => Math.exp(entry[0]));
      const needed = runs[1].findIndex((entry) => entry[0] <= Math.log(0.01));
      const path = needed < 0 ? NaN : runs[1][needed][6];
      const late = Number.isFinite(path) && proved ? ` Constant steps reach a loss of 0.01 on a path of ${fixed(path, 1)}; equation 10 has walked as far after some ${(((path / state.eta + 2.447) / 3) ** 3).toExponential(0)} steps.` : "";
      kit.say(`Step ${TIMES[k]}, eta ${state.eta}: loss ${loss.map((value, r) => `${fixed(value, 4)} (${RULES[r]})`).join(", ")}. Equation 10 has |v| ${fixed(now[0][1], 4)}, |W| ${fixed(now[0][2], 4)}, attention ${fixed(now[0][5], 3)}, cosine of W ${fixed(now[0][4], 3)}; constant steps ${fixed(now[1][1], 2)}, ${fixed(now[1][2], 2)}, ${fixed(now[1][5], 3)}, ${fixed(now[1][4], 3)}.${late}`);
      Object.assign(kit.el.dataset, {
        step: String(TIMES[k]), rows: JSON.stringify(now),
        bound: String(Math.exp((-state.eta * rate * Math.cbrt(TIMES[k])) / 2)),
      });
    };
  },
  code: (state) => `from attnlab import models, optim, problems, svm

problem = problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, rng=0)
goal = svm.attention_svm(problem, tokens=problem.relevant.argmax(axis=-1))
model = models.Attention(loss="exponential", start="zero", train_head=True)
for rule in (
    optim.DecayedNormalizedGD(${state.eta}, head_power=${state.head}, attention_power=${state.attention}),
    optim.NormalizedGD(${state.eta}),
    optim.JointNormalizedGD(${state.eta}),
):
    run = optim.train(model, problem, rule, steps=${Math.max(1, TIMES[Math.min(state.k, TIMES.length - 1)])})
    loss, _ = model.value_and_grad(run.params, problem)
    print(rule, float(loss), float(svm.correlation(run.params["W"], goal.W)))`,
});
