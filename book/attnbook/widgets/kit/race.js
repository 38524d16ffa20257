// Two charts that belong together: losses over log time, and what the tangent kernel at the start
// says about them, step size times eigenvalue over N, which is stable below 1.

const DASHES = ["", "7 4", "2 4"];
const SHAPES = ["circle", "square", "triangle"];

export function raceBoard(kit, { steps, count, names, low = 1e-8 }) {
  const row = kit.row();
  const last = steps[steps.length - 1];
  const loss = kit.chart({
    label: "loss over its start, by step", title: "loss, as a share of its start",
    x: { range: [1, 1.2 * last], log: true, label: "step" }, y: { range: [low, 3], log: true },
  }, row);
  const rate = kit.chart({
    label: "step size times eigenvalue over N", title: "step × eigenvalue / N; unstable above 1",
    x: { range: [0.5, count + 0.5], label: "eigenvalue, largest first", ticks: [1, 5, 10, 15, 20] },
    y: { range: [1e-4, 3], log: true },
  }, row);
  kit.legend([...names.map((name, i) => [i, name, i > 0]), [5, "largest stable step", true]]);
  return ({ curves, rates, k }) => {
    loss.begin();
    rate.begin();
    curves.forEach((curve, i) => {
      const look = { series: i, dash: DASHES[i], width: 2.5 };
      loss.line(`all${i}`, steps, curve, { ...look, faint: true });
      loss.line(`to${i}`, steps.slice(0, k + 1), curve.slice(0, k + 1), look);
      if (curve[k] > low && curve[k] < 2.5) loss.mark(`at${i}`, steps[k], curve[k], { series: i, shape: SHAPES[i], size: 5 });
      const index = rates[i].map((_, j) => j + 1);
      const above = rates[i].map((value) => Math.max(value, 1e-12));
      rate.line(`rate${i}`, index, above, look);
      above.forEach((value, j) => rate.mark(`r${i}-${j}`, j + 1, value, { series: i, shape: SHAPES[i], size: 3 }));
    });
    rate.line("limit", [0.5, count + 0.5], [1, 1], { series: 5, dash: "5 4", width: 1.5 });
    loss.end();
    rate.end();
  };
}

// A share of the start in words.
export const shareInWords = (value) => (value >= 1e6 ? "diverged" : value < 0.01 ? value.toExponential(1) : value.toFixed(2));
