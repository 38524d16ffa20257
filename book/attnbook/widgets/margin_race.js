// Three margins of the tokenized mixture: linear, tangent features, attention. Who leads?

import { explorable, fixed } from "./kit/kit.js";
import { crossing, marginsAt, shareLinear, shareNeeded } from "./kit/mixture_margins.js";

const SIGNALS = Array.from({ length: 111 }, (_, k) => 1 + k / 10);
const NOISES = Array.from({ length: 81 }, (_, k) => k / 500);
const NAMES = { lin: "linear", star: "tangent features", attn: "attention" };

const order = (margins) => Object.keys(margins).sort((a, b) => margins[b] - margins[a]);

export default explorable({
  name: "margin_race",
  title: "Margin race: linear, tangent features, attention",
  defaults: { S: 2, zeta: 0.1, Z: 0, bet: null },
  build(kit) {
    kit.bet({
      question: "At the paper's setting, S = 2 without noise, attention leads and linear is last. Make the patterns longer. Does the order stay?",
      options: ["it stays", "tangent features overtake attention", "linear overtakes attention"],
      outcome: ({ bet }) => `${bet === 1 ? "Yes." : "Look again."} Attention grows like S and tangent features like the fourth power of S. Without noise, and with one relevant token in ten, they change places at S = 6.03.`,
    });
    const row = kit.row();
    const race = kit.chart({
      label: "margins over the signal S", title: "margins over the signal S",
      x: { range: [1, 12], log: true, ticks: [1, 2, 3, 4, 6, 8, 12], label: "signal S" },
      y: { range: [0.1, 1000], log: true, label: "margin" },
    }, row);
    const plane = kit.chart({
      label: "where tangent features beat the linear margin", title: "noise and share: drag the point",
      x: { range: [0, 0.16], ticks: [0, 0.04, 0.08, 0.12, 0.16], label: "noise r = Z / S²" },
      y: { range: [0, 1], label: "share ζ of relevant tokens" },
    }, row);
    const point = plane.handle("noise", {
      series: 5, label: "noise and share of relevant tokens",
      move: (r, share) => kit.set({
        Z: Number(Math.min(1, r * kit.state.S ** 2).toFixed(4)),
        zeta: Math.max(1, Math.min(9, Math.round(10 * share))) / 10,
      }),
      tell: () => `noise Z ${fixed(kit.state.Z, 2)}, share ${fixed(kit.state.zeta, 1)}`,
    });
    kit.legend([[0, "γ_attn, attention on relevant tokens only"], [1, "γ⋆, tangent features (bound)", true], [2, "γ_lin, linear (bound)", true]]);
    const controls = kit.controls();
    kit.slider({ key: "S", label: "signal S", min: 1, max: 12, step: 0.1, show: (x) => fixed(x, 1), parent: controls });
    kit.slider({ key: "zeta", label: "share ζ", min: 0.1, max: 0.9, step: 0.1, show: (x) => fixed(x, 1), parent: controls });
    kit.slider({ key: "Z", label: "noise Z", min: 0, max: 1, step: 0.02, parent: controls });
    return ({ S, zeta, Z }) => {
      const here = marginsAt({ S, zeta, Z });
      const all = SIGNALS.map((signal) => marginsAt({ S: signal, zeta, Z }));
      const cross = crossing({ zeta, Z });
      race.begin();
      [["attn", 0, ""], ["star", 1, "7 4"], ["lin", 2, "2 4"]].forEach(([name, series, dash]) => {
        const shown = all.map((margins) => (margins[name] > 0 ? margins[name] : NaN));
        race.line(name, SIGNALS, shown, { series, dash, width: 2.5 });
        if (here[name] > 0) race.mark(`at-${name}`, S, here[name], { series, shape: ["circle", "square", "triangle"][series], size: 5 });
      });
      race.line("now", [S, S], [0.1, 1000], { series: 6, width: 1 });
      if (cross > 1 && cross < 12) {
        race.mark("cross", cross, marginsAt({ S: cross, zeta, Z }).attn, { series: 3, shape: "diamond", size: 7, hollow: true });
        const left = cross > 5;
        race.text("cross-at", cross, 0.1, `S = ${fixed(cross, 2)}`, { series: 3, dy: -8, dx: left ? -6 : 6, anchor: left ? "end" : "start" });
        race.line("cross-line", [cross, cross], [0.1, marginsAt({ S: cross, zeta, Z }).attn], { series: 3, dash: "3 4", width: 1.5 });
      }
      race.end();
      const r = Z / S ** 2;
      plane.begin();
      plane.line("needed", NOISES, NOISES.map(shareNeeded), { series: 1, dash: "7 4", width: 2.5 });
      plane.line("linear", NOISES, NOISES.map(shareLinear), { series: 2, dash: "2 4", width: 2.5 });
      plane.text("above", 0.004, 0.93, "γ⋆ above γ_lin", { series: 1 });
      plane.text("below", 0.157, 0.5, "γ⋆ below γ_lin", { series: 1, anchor: "end" });
      plane.text("void", 0.157, 0.06, "γ_lin negative", { series: 2, anchor: "end" });
      point.put(Math.min(r, 0.16), zeta);
      plane.end();
      const ranking = order(here).map((name) => `${NAMES[name]} ${fixed(here[name], 3)}`).join(", ");
      const sense = here.star < 0 ? " A negative bound says nothing." : "";
      kit.say(`S = ${fixed(S, 1)}, ζ = ${fixed(zeta, 1)}, Z = ${fixed(Z, 2)}: ${ranking}.${sense} Tangent features pass attention at S = ${fixed(cross, 2)}. They are at least linear where ζ reaches ${fixed(shareNeeded(r), 3)}; here ζ is ${fixed(zeta, 1)}.`);
      kit.el.dataset.margins = JSON.stringify([here.lin, here.star, here.attn]);
      kit.el.dataset.crossing = String(cross);
      kit.el.dataset.needed = String(shareNeeded(r));
    };
  },
  code: ({ S, zeta, Z }) => `from attnbook import theory

bounds = theory.multihead
print(bounds.gamma_lin(T=10, zeta=${zeta}, S=${S}, Z_mu=${Z}))
print(bounds.gamma_star(T=10, zeta=${zeta}, S=${S}, M=2, Z_mu=${Z}, Z_nu=${Z}))
print(bounds.gamma_attn(T=10, S=${S}))
print(bounds.crossing(T=10, zeta=${zeta}, M=2))  # without noise`,
});
