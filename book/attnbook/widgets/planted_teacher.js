// Twelve planted heads, many settings: which teachers does training fail to find?

import { explorable, fixed } from "./kit/kit.js";

const RULES = ["GD, step √H", "momentum, .3 √H", "Adam .01", "Adam .1", "Adam .5"];
const PYTHON = [
  (H) => `optim.GD(${H} ** 0.5)`, (H) => `optim.Momentum(0.3 * ${H} ** 0.5, 0.9)`,
  () => "optim.Adam(0.01)", () => "optim.Adam(0.1)", () => "optim.Adam(0.5)",
];
const SHORT = ["GD", "mom.", "A .01", "A .1", "A .5"];
const FOUND = 0.9;

export default explorable({
  name: "planted_teacher",
  title: "A planted teacher, and the seeds that get stuck",
  defaults: { k: 30, rule: 0, H: 16, teacher: 0, bet: null },
  build(kit) {
    const steps = Array.from(kit.data("step").values);
    const heads = Array.from(kit.data("heads").values);
    const trials = kit.data("align").shape[2]; // (rules, heads, teachers, times), in percent
    const curve = (what, rule, h, i) => {
      const from = ((rule * heads.length + h) * trials + i) * steps.length;
      return Array.from(kit.data(what).values.slice(from, from + steps.length), (x) => (what === "align" ? x / 100 : x));
    };
    const end = (rule, h, i) => curve("align", rule, h, i)[steps.length - 1];
    const teachers = Array.from({ length: trials }, (_, i) => i);
    const found = (rule, h) => teachers.filter((i) => end(rule, h, i) >= FOUND).length;
    const last = heads.length - 1;
    const missed = teachers.map((i) => RULES.reduce((sum, _, r) => sum + heads.filter((H, h) => end(r, h, i) < FOUND).length, 0));
    const most = missed.indexOf(Math.max(...missed));
    kit.bet({
      question: "Labels come from one attention head, a teacher. Gradient descent from zero, twelve teachers: when does it find most of them?",
      options: ["with one head", `with ${heads[last]} heads`, "it always finds all"],
      outcome: ({ bet }) => `${bet === 0 ? "Yes." : "Look again."} It finds ${found(0, 0)} of ${trials} with one head and ${found(0, last)} with ${heads[last]}, whose W is slow. Adam with step .01 finds ${found(2, 0)} and ${found(2, last)}, with step .5 ${found(4, 0)} and ${found(4, last)}. Teacher ${most} is missed in ${missed[most]} of the ${RULES.length * heads.length} settings, ${missed.filter((x) => x === 0).length} teachers in none.`,
    });
    const row = kit.row();
    const align = kit.chart({
      label: "cosine with the planted W", title: "cosine of W with the teacher's",
      x: { range: [1, 1.12 * steps[steps.length - 1]], log: true, label: "step" }, y: { range: [-1, 1.05], label: "cosine" },
    }, row);
    const loss = kit.chart({
      label: "training loss", title: "training loss",
      x: { range: [1, 1.12 * steps[steps.length - 1]], log: true, label: "step" }, y: { range: [1e-4, 2], log: true, label: "loss" },
    }, row);
    const below = kit.row();
    below.style.marginTop = "0.6rem";
    const columns = RULES.length * heads.length;
    const board = kit.chart({
      label: "stuck runs: teachers by settings", title: "stuck runs (filled): a row a teacher, a column a setting",
      height: 300, x: { range: [-0.5, columns - 0.5], hide: true, label: "heads" },
      y: { range: [-0.5, trials + 0.6], ticks: teachers, label: "teacher" },
    }, below);
    const side = kit.row("al-column");
    below.append(side);
    side.style.flex = "1 1 280px";
    kit.legend([[0, "teacher found (cosine at least .9)"], [1, "stuck", true], [3, "the chosen teacher"]], side);
    const place = () => {
      const controls = kit.controls();
      side.append(controls);
      return controls;
    };
    kit.slider({ key: "H", label: "heads H", values: heads, show: String, parent: place() });
    kit.slider({ key: "teacher", label: "teacher", min: 0, max: trials - 1, step: 1, show: String, parent: place() });
    kit.scrubber({ key: "k", times: steps, parent: place() });
    kit.choice({ key: "rule", label: "rule", options: RULES.map((words, k) => [k, words]), parent: place() });
    return (state) => {
      const k = Math.min(state.k, steps.length - 1);
      const h = Math.max(0, heads.indexOf(state.H));
      const { rule, teacher } = state;
      [[align, "align"], [loss, "loss"]].forEach(([chart, what]) => {
        chart.begin();
        teachers.concat(teacher).forEach((i, place) => {
          const good = end(rule, h, i) >= FOUND;
          const mine = place === trials;
          const look = mine ? { series: 3, width: 3.5, dash: good ? "" : "6 4" } : { series: good ? 0 : 1, width: 1.3, dash: good ? "" : "6 4" };
          const line = curve(what, rule, h, i);
          chart.line(mine ? "mine" : `t${i}`, steps, line, look);
          chart.mark(mine ? "now" : `m${i}`, steps[k], line[k], { series: look.series, size: mine ? 6 : 3, shape: good ? "circle" : "square" });
        });
        chart.end();
      });
      board.begin();
      const column = rule * heads.length + h;
      board.rect("column", [column - 0.5, -0.5], [column + 0.5, trials - 0.5], { series: 3, strength: 0.3 });
      board.rect("row", [-0.5, teacher - 0.5], [columns - 0.5, teacher + 0.5], { series: 3, strength: 0.15 });
      RULES.forEach((words, r) => {
        board.text(`rule${r}`, (r + 0.5) * heads.length - 0.5, trials, SHORT[r], { anchor: "middle", dy: 3 });
        if (r) board.line(`cut${r}`, [r * heads.length - 0.5, r * heads.length - 0.5], [-0.5, trials + 0.6], { series: 6, width: 1 });
        heads.forEach((H, j) => {
          const x = r * heads.length + j;
          board.text(`H${x}`, x, -0.5, String(H), { anchor: "middle", dy: j % 2 ? 22 : 12 });
          teachers.forEach((i) => {
            if (end(r, j, i) < FOUND) board.rect(`b${x}-${i}`, [x - 0.4, i - 0.4], [x + 0.4, i + 0.4], { series: 1 });
            else board.mark(`g${x}-${i}`, x, i, { series: 0, size: 2 });
          });
        });
      });
      board.end();
      const stuck = teachers.filter((i) => end(rule, h, i) < FOUND);
      const mine = curve("align", rule, h, teacher)[k];
      kit.say(`${RULES[rule]}, ${state.H === 1 ? "1 head" : `${state.H} heads`}: ${trials - stuck.length} of ${trials} teachers found after ${steps[steps.length - 1]} steps${stuck.length ? `; stuck on ${stuck.join(", ")}` : ""}. Teacher ${teacher} at step ${steps[k]}: cosine ${fixed(mine, 2)}, loss ${fixed(curve("loss", rule, h, teacher)[k], 3)}.`);
      kit.el.dataset.stuck = JSON.stringify(stuck);
      kit.el.dataset.cosine = String(mine);
    };
  },
  code: ({ rule, H, teacher }) => `import numpy as np
from attnlab import models, optim, problems

problem = problems.planted(n=400, T=5, d=3, trials=12, rng=0)
run = optim.train(models.MultiHead(heads=${H}), problem, ${PYTHON[rule](H)}, 800)
W, goal = run.params["W"][:, 0], problem.teacher.W  # from zero all heads are equal
size = np.linalg.norm(W, axis=(1, 2)) * np.linalg.norm(goal, axis=(1, 2))
cosine = (W * goal).sum(axis=(1, 2)) / size
print(cosine.round(2), "teacher ${teacher}:", cosine[${teacher}].round(2))`,
});
