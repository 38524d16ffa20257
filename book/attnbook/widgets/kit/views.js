// Views that attention deserves. Each is added to an explorable's frame and follows its state:
// tokens in the plane with their attention as area, attention as bars and as a map, W as a heat
// map, strips over time, plots with direct labels, both sides of an inequality, a waterfall.

import { arrow, circle, group, label, line, path, percent, plain, power, rect, signed, tag, text } from "./view.js";
import { scale, ticks } from "./scale.js";

const AREA = 30; // radius of a token that has all the attention

// -- the plane ------------------------------------------------------------------------------------
// Square units: `x` and `y` are ranges; `draw(state, at, size)` gives the inside, `at([x, y])` pixels.
// `points(state)` lists what a hand may move as {key, x, y, label, link}; `move(key, x, y)` is told.
// The handles are buttons over the drawing, so keys and touch work without further ado.
export function plane(kit, { x, y, draw, told, points, move, can = () => true, parent, name = "plane", equal = true, height = 260 }) {
  const at = (w, h) => {
    const X = scale(x, [0, w]);
    const Y = scale(y, [h, 0]);
    return ([u, v]) => [X(u), Y(v)];
  };
  const tall = (w) => (equal ? Math.round((w * (y[1] - y[0])) / (x[1] - x[0])) : height);
  const shown = kit.view({
    parent, name, told,
    draw: (w, state) => ({ height: tall(w), inner: draw(state, at(w, tall(w)), { w, h: tall(w) }) }),
  });
  if (!points) return shown;
  const { host } = shown;
  const handles = new Map();
  const held = (value, [low, high]) => Math.round(Math.max(low, Math.min(high, value)) * 1000) / 1000;
  kit.draws.push((state) => {
    const here = points(state);
    const allowed = can(state);
    for (const entry of here) {
      let button = handles.get(entry.key);
      if (!button) {
        button = document.createElement("button");
        button.type = "button";
        button.className = "al-grip";
        button.dataset.handle = entry.key;
        const go = (u, v) => move(entry.key, held(u, x), held(v, y));
        button.addEventListener("pointerdown", (event) => {
          event.preventDefault();
          button.focus({ preventScroll: true });
          button.setPointerCapture(event.pointerId);
          const box = host.getBoundingClientRect();
          const off = [event.clientX - box.left - parseFloat(button.style.left) * box.width / 100, event.clientY - box.top - parseFloat(button.style.top) * box.height / 100];
          const on = (later) => {
            const now = host.getBoundingClientRect();
            const h = shown.node.clientHeight || now.height;
            go(x[0] + ((later.clientX - now.left - off[0]) / now.width) * (x[1] - x[0]),
              y[1] - ((later.clientY - now.top - off[1]) / h) * (y[1] - y[0]));
          };
          const stop = () => {
            button.removeEventListener("pointermove", on);
            button.removeEventListener("pointerup", stop);
            button.removeEventListener("pointercancel", stop);
          };
          button.addEventListener("pointermove", on);
          button.addEventListener("pointerup", stop);
          button.addEventListener("pointercancel", stop);
        });
        button.addEventListener("keydown", (event) => {
          const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
          if (!way) return;
          event.preventDefault();
          event.stopPropagation();
          const by = (event.shiftKey ? 0.1 : 0.02) * (x[1] - x[0]);
          const now = points(kit.state).find((one) => one.key === entry.key);
          go(now.x + way[0] * by, now.y + way[1] * by);
        });
        host.append(button);
        handles.set(entry.key, button);
      }
      button.hidden = !allowed;
      if (entry.link) button.dataset.link = entry.link;
      button.style.left = `${(100 * (entry.x - x[0])) / (x[1] - x[0])}%`;
      button.style.top = `${(100 * (y[1] - entry.y)) / (y[1] - y[0])}%`;
      button.setAttribute("aria-label", plain(`${entry.label}, at ${entry.x.toFixed(2)}, ${entry.y.toFixed(2)}; arrow keys move it`));
    }
    for (const [key, button] of handles) if (!here.some((entry) => entry.key === key)) { button.remove(); handles.delete(key); }
  });
  return shown;
}

// Axes through the origin of a plane.
export const axes = (at, x, y) =>
  line(...at([x[0], 0]), ...at([x[1], 0]), { class: "al-axis" }) + line(...at([0, y[0]]), ...at([0, y[1]]), { class: "al-axis" });

// A sequence's tokens: area is attention. `kind(t)`: "best", "rival" or "other"; `scores` beside them.
export function tokens(X, s, at, { kind, scores = null, area = AREA, seq = 1, ring = true }) {
  return X.map((x, t) => {
    const [cx, cy] = at(x);
    const r = Math.max(3, area * Math.sqrt(s[t]));
    const is = kind(t);
    const inside = r > 9;
    return group({ class: "al-token", "data-mark": `${is} token seq${seq} tok${seq}${t + 1}` },
      circle(cx, cy, r, { class: `al-disc al-fill-${is} al-stroke-${is}`, "fill-opacity": is === "best" ? 0.85 : 0.28 }),
      ring && is === "rival" ? circle(cx, cy, r + 3.5, { class: "al-stroke-rival al-ring-line" }) : "",
      text(inside ? cx : cx + r + (ring && is === "rival" ? 7 : 3), cy + 4.5, t + 1, { class: `al-label${inside && is === "best" ? " al-on" : ""}`, "text-anchor": inside ? "middle" : "start" }),
      scores ? text(cx, x[1] < 0 && at([0, 0])[1] * 2 - cy < r + 18 ? cy - r - 6 : cy + r + 14, label(`${is === "best" ? "best, " : ""}$\\gamma$ ${signed(scores[t])}`), { class: "al-small al-halo-text", "text-anchor": "middle" }) : "");
  }).join("");
}

// One row of attention as bars: `row(state)` gives {s, kind(t), seq, names}.
export function attentionBars(kit, { row, parent }) {
  return kit.view({
    parent, name: "bars",
    told: (state) => { const { s } = row(state); return `Attention: ${s.map((p, t) => `token ${t + 1} ${percent(p)}`).join(", ")}`; },
    draw: (w, state) => {
      const { s, kind, seq = 1 } = row(state);
      const gap = 6;
      const cell = (w - gap * (s.length - 1)) / s.length;
      const inner = s.map((p, t) => group({ "data-mark": `${kind(t)} attention tok${seq}${t + 1}` },
        rect(t * (cell + gap), 0, cell, 12, { class: "al-track-bar" }),
        rect(t * (cell + gap), 0, cell * p, 12, { class: `al-fill-${kind(t)}` }),
        text(t * (cell + gap), 27, `<tspan class="al-label">${t + 1}</tspan> ${percent(p)}`, { class: "al-small" }))).join("");
      return { height: 32, inner };
    },
  });
}

// A matrix in colours; rows and columns may have names. `matrix(state)`; `digits` null hides numbers.
export function heat(kit, { matrix, parent, rows = null, columns = null, title = "W", digits = 2, largest = 52, mark = "trained" }) {
  return kit.view({
    parent, name: "heat",
    told: (state) => `${title}: ${matrix(state).map((row) => row.map((v) => signed(v)).join(", ")).join("; ")}`,
    draw: (w, state) => {
      const M = matrix(state);
      const left = rows ? 30 : 0;
      const top = columns ? 18 : 0;
      const c = Math.min(largest, (w - left - 4) / M[0].length - 3);
      const big = Math.max(...M.flat().map(Math.abs));
      const cells = M.map((row, a) => row.map((v, b) => {
        const share = big > 0 ? Math.abs(v) / big : 0;
        const [x, y] = [left + b * (c + 3), top + a * (c + 3)];
        return rect(x, y, c, c, { class: `al-fill-${v < 0 ? "negative" : "positive"} al-stroke-rule`, "fill-opacity": 0.05 + 0.85 * share })
          + (digits === null || c < 26 ? "" : text(x + c / 2, y + c / 2 + 5, signed(v, big >= 100 ? 0 : big >= 10 ? 1 : digits), { "text-anchor": "middle", class: share > 0.6 ? "al-on al-small" : "al-small" }));
      }).join("")).join("");
      const names = (rows || []).map((name, a) => text(left - 5, top + a * (c + 3) + c / 2 + 4, label(name), { class: "al-small", "text-anchor": "end" })).join("")
        + (columns || []).map((name, b) => text(left + b * (c + 3) + c / 2, 12, label(name), { class: "al-small", "text-anchor": "middle" })).join("");
      return { height: top + M.length * (c + 3), inner: group({ "data-mark": mark }, cells) + names };
    },
  });
}

// An attention map: T x T weights, rows are queries; what a mask forbids is hatched. A cell may be
// pressed: `press(row, column)`, while `can(state)`. `chosen(state)` rings a column in each row,
// `row(state)` is the row that speaks; `blank` leaves the numbers out.
export function attentionMap(kit, { map, mask = null, parent, press = null, largest = 44, names = null, can = () => true, chosen = null, row: speaks = null, fixed = () => false, blank = false }) {
  const shown = kit.view({
    parent, name: "map",
    told: (state) => `Attention map: ${map(state).map((row, a) => `row ${a + 1}: ${row.map(percent).join(", ")}`).join("; ")}`,
    draw: (w, state) => {
      const M = map(state);
      const allowed = mask ? mask(state) : null;
      const c = Math.min(largest, (w - 26) / M.length - 2);
      const rings = chosen ? chosen(state) : [];
      const here = speaks ? speaks(state) : -1;
      const inner = M.map((row, a) => text(16, 18 + a * (c + 2) + c / 2 + 4, label(names ? names[a] : String(a + 1)), { class: a === here ? "al-label" : "al-small", "text-anchor": "end" })
        + row.map((p, b) => {
          const [x, y] = [22 + b * (c + 2), 18 + a * (c + 2)];
          const mark = { "data-mark": `attention cell${a + 1}${b + 1} row${a + 1}` };
          if (allowed && !allowed[a][b]) return group(mark, rect(x, y, c, c, { class: "al-masked" }), line(x, y + c, x + c, y, { class: "al-stroke-rule" }));
          return group(mark, rect(x, y, c, c, { class: "al-fill-best al-stroke-rule", "fill-opacity": 0.04 + 0.9 * p }),
            rings[a] === b ? rect(x + 2, y + 2, c - 4, c - 4, { class: "al-stroke-best", fill: "none", "stroke-width": 2.4, rx: 3 }) : "",
            c > 30 && !blank ? text(x + c / 2, y + c / 2 + 4, percent(p).replace(/\s%/, ""), { class: `al-small${p > 0.55 ? " al-on" : ""}`, "text-anchor": "middle" }) : "");
        }).join("")).join("")
        + (here < 0 ? "" : rect(20, 16 + here * (c + 2), M.length * (c + 2) + 2, c + 4, { class: "al-stroke-query", fill: "none", "stroke-width": 2, rx: 4 }))
        + M.map((_, b) => text(22 + b * (c + 2) + c / 2, 12, label(names ? names[b] : String(b + 1)), { class: "al-small", "text-anchor": "middle" })).join("");
      if (press && !shown?.keys) queueMicrotask(() => cells(M.length, c));
      return { height: 20 + M.length * (c + 2), inner };
    },
  });
  const buttons = new Map();
  function cells(count, c) {
    const { host } = shown;
    for (let a = 0; a < count; a++) {
      for (let b = 0; b < count; b++) {
        const key = `${a},${b}`;
        let button = buttons.get(key);
        if (!button) {
          button = document.createElement("button");
          button.type = "button";
          button.className = "al-cell";
          button.dataset.cell = key;
          button.addEventListener("click", () => press(a, b));
          host.append(button);
          buttons.set(key, button);
        }
        const on = !mask || mask(kit.state)[a][b];
        button.setAttribute("aria-pressed", String(on));
        button.setAttribute("aria-label", `row ${a + 1}, column ${b + 1}: ${on ? "may look" : "masked"}`);
        Object.assign(button.style, { left: `${22 + b * (c + 2)}px`, top: `${18 + a * (c + 2)}px`, width: `${c}px`, height: `${c}px` });
      }
    }
    const allowed = can(kit.state);
    for (const [key, button] of buttons) button.hidden = !allowed || key.split(",").some((k) => Number(k) >= count) || fixed(...key.split(",").map(Number));
  }
  return shown;
}

// Quantities over time, one strip each: `rows(state)` gives [{name, values, colour, show, log, range,
// mark}]; `now(state)` is the index shown, `steps(state)` how many there are. Values may be null.
export function strips(kit, { rows, now, steps, parent, height = 56, unit = "step", last = null }) {
  return kit.view({
    parent, name: "strips",
    told: (state) => `${unit} ${now(state)}: ${rows(state).map((one) => `${one.name} ${one.show}`).join(", ")}`,
    draw: (w, state) => {
      const all = rows(state);
      const k = now(state);
      const K = Math.max(1, steps(state));
      const gap = 9;
      const X = (j) => 2 + (j / K) * (w - 8);
      const inner = all.map((one, j) => {
        const base = j * (height + gap) + height;
        const top = base - height + 20;
        let found = line(2, base, w - 4, base, { class: "al-axis" })
          + text(2, top - 8, label(one.name), { class: "al-small" })
          + text(w - 4, top - 8, label(one.show), { class: "al-small al-value", "text-anchor": "end" });
        const some = one.values.filter((v) => v !== null && (!one.log || v > 0));
        if (!some.length) return found;
        const form = one.log ? Math.log10 : (v) => v;
        const [low, high] = one.range || [one.log ? form(Math.min(...some)) : Math.min(0, ...some), form(Math.max(...some))];
        const Y = (v) => base - Math.max(0, Math.min(1, (form(v) - low) / (high - low || 1))) * (base - top);
        const pts = [];
        const every = Math.max(1, Math.floor(K / (2 * w)));
        for (let a = 0; a <= Math.min(k, one.values.length - 1); a += every) if (one.values[a] !== null && (!one.log || one.values[a] > 0)) pts.push([X(a), Y(one.values[a])]);
        if (pts.length > 1) found += path(pts, { class: `al-curve al-stroke-${one.colour}` });
        if (pts.length) found += circle(...pts[pts.length - 1], 3.5, { class: `al-fill-${one.colour}` });
        return group({ "data-mark": one.mark || one.colour }, found);
      }).join("");
      const bottom = all.length * (height + gap) - gap;
      return { height: bottom + 20, inner: inner + text(2, bottom + 15, `${unit} 0`, { class: "al-small" }) + text(w - 4, bottom + 15, last ?? String(K), { class: "al-small", "text-anchor": "end" }) };
    },
  });
}

// A plot with direct labels: `lines(state)` gives [{xs, ys, colour, name, dash, width, at, mark}] (`at`: share of
// the line where its name stands; `given`: shown before a question is answered), `marks(state)` [{x, y, colour, name}], `areas(state)` [{from, to, colour, name, dy}].
export function plot(kit, { x, y, lines, marks = () => [], areas = () => [], told, parent, height = 260, pad: given, inside = null }) {
  const pad = { l: 52, r: 16, t: y.label ? 22 : 12, b: 38, ...given };
  const range = (axis, state) => (typeof axis.range === "function" ? axis.range(state) : axis.range);
  return kit.view({
    parent, name: "plot", told,
    draw: (w, state) => {
      const [rx, ry] = [range(x, state), range(y, state)];
      const X = scale(rx, [pad.l, w - pad.r], x.log);
      const Y = scale(ry, [height - pad.b, pad.t], y.log);
      const show = (axis, v) => (axis.show || ((u) => (axis.log ? power(u).replace("1.0 · ", "") : String(Number(u.toPrecision(3))).replace("-", "−"))))(v);
      let inner = areas(state).map(({ from, to, colour, name, dy = 0 }) => rect(X(from), pad.t, X(to) - X(from), height - pad.b - pad.t, { class: `al-fill-${colour}`, "fill-opacity": 0.1 })
        + text((X(from) + X(to)) / 2, height - pad.b - 8 - dy, label(name || ""), { class: `al-small al-text-${colour}`, "text-anchor": "middle" })).join("");
      inner += (y.ticks || ticks(ry, y)).map((v) => line(pad.l, Y(v), w - pad.r, Y(v), { class: v === 0 ? "al-axis" : "al-grid" })
        + text(pad.l - 7, Y(v) + 4, label(show(y, v)), { class: "al-small", "text-anchor": "end" })).join("");
      inner += (x.ticks || ticks(rx, { ...x, count: w < 420 ? 3 : 5 })).map((v) => text(X(v), height - pad.b + 17, label(show(x, v)), { class: "al-small", "text-anchor": "middle" })).join("");
      inner += text(w - pad.r, height - 3, label(x.label || ""), { class: "al-small", "text-anchor": "end" });
      if (y.label) inner += text(2, 12, label(y.label), { class: "al-small" });
      const clip = `al-clip-${kit.spec.name}-${Math.round(pad.l + height + w)}`;
      inner += tag("clipPath", { id: clip }, rect(pad.l - 4, pad.t - 4, w - pad.l - pad.r + 8, height - pad.t - pad.b + 8));
      let names = "";
      const drawn = lines(state).map((one) => {
        const pts = [];
        one.xs.forEach((v, k) => { if (Number.isFinite(one.ys[k]) && (!y.log || one.ys[k] > 0) && (!x.log || v > 0)) pts.push([X(v), Y(one.ys[k])]); });
        if (one.name && pts.length) {
          const [px, py] = pts[Math.round((one.at ?? 1) * (pts.length - 1))];
          const anchor = px > w - pad.r - 80 ? "end" : px < pad.l + 40 ? "start" : "middle";
          names += text(px, Math.max(pad.t + 10, Math.min(height - pad.b - 4, py - 7 + (one.dy || 0))), label(one.name), { class: `al-label al-halo-text al-text-${one.colour}`, "text-anchor": anchor, "data-mark": one.mark || one.colour });
        }
        return group({ "data-mark": one.mark || one.colour }, path(pts, { class: `${one.given ? "al-given-line" : "al-curve"} al-stroke-${one.colour}`, "stroke-dasharray": one.dash, "stroke-width": one.width || 2.4, opacity: one.faint ? 0.35 : undefined }));
      }).join("");
      const points = marks(state).map(({ x: u, y: v, colour, name, r = 4.5 }) => circle(X(u), Y(v), r, { class: `al-fill-${colour}` })
        + (name ? text(X(u) + (X(u) > w - 90 ? -8 : 8), Y(v) - 7, label(name), { class: `al-label al-halo-text al-text-${colour}`, "text-anchor": X(u) > w - 90 ? "end" : "start" }) : "")).join("");
      return { height, inner: inner + group({ "clip-path": `url(#${clip})` }, drawn, points, inside ? inside(state, ([u, v]) => [X(u), Y(v)], { w, h: height }) : "") + names };
    },
  });
}

// Both sides of statements as bars on one scale: `rows(state)` gives [{name, left, right, ok}]; `names`
// says what left and right are; `log` for sizes that differ by powers.
export function bothSides(kit, { rows, names = ["left side", "right side"], parent, log = false, show = power }) {
  return kit.view({
    parent, name: "sides",
    told: (state) => rows(state).map((one) => `${one.name}: ${names[0]} ${show(one.left)}, ${names[1]} ${show(one.right)}`).join("; "),
    draw: (w, state) => ({ ...sides(w, rows(state), { names, log, show }) }),
  });
}

export function sides(w, rows, { names, log = false, show = power }) {
  const left = Math.min(120, w * 0.3);
  const right = 92;
  const sizes = rows.flatMap((one) => [Math.abs(one.left), Math.abs(one.right)]).filter((v) => v > 0 && Number.isFinite(v));
  const top = Math.max(...sizes, 1e-300);
  const [least, most] = [Math.log(Math.min(...sizes, top / 10)) - Math.log(3), Math.log(top)];
  const span = w - left - right;
  const size = (v) => {
    if (!Number.isFinite(v)) return span;
    if (log) return Math.abs(v) > 0 ? Math.max(2, ((Math.log(Math.abs(v)) - least) / (most - least)) * span) : 0;
    return (Math.abs(v) / top) * span;
  };
  let y = 24;
  const inner = rows.map((one) => {
    const broken = one.ok === false ? "violation" : null;
    const found = text(left - 8, y + 17, label(one.name), { class: `al-small${broken ? " al-text-violation" : ""}`, "text-anchor": "end" })
      + rect(left, y + 3, size(one.left), 9, { class: `al-fill-${broken || one.colour || "trained"}` })
      + rect(left, y + 14, size(one.right), 9, { class: `al-fill-${one.other || "bound"}`, "fill-opacity": 0.55 })
      + text(w, y + 12, show(one.left), { class: "al-small al-value", "text-anchor": "end" })
      + text(w, y + 24, show(one.right), { class: "al-small", "text-anchor": "end" });
    y += 34;
    return found;
  }).join("");
  const key = rect(left, 4, 10, 9, { class: "al-fill-trained" }) + text(left + 15, 13, label(names[0]), { class: "al-small" })
    + rect(left + span / 2, 4, 10, 9, { class: "al-fill-bound", "fill-opacity": 0.55 }) + text(left + span / 2 + 15, 13, label(names[1]), { class: "al-small" });
  return { height: y + 4, inner: key + inner + line(left, 20, left, y, { class: "al-axis" }) };
}

// What each step of a proof gave away: [[name, factor]], factors of at least 1 multiply up.
export function waterfall(w, steps, { from = "measured", to = "bound" } = {}) {
  const logs = steps.map(([, factor]) => Math.max(0, Math.log10(factor)));
  const total = Math.max(logs.reduce((a, b) => a + b, 0), 0.05);
  const left = Math.min(190, w * 0.42);
  const X = (v) => left + (v / total) * (w - left - 64);
  let sum = 0;
  let y = 20;
  let inner = text(left, 12, from, { class: "al-small al-text-trained" }) + text(w - 64, 12, to, { class: "al-small al-text-bound", "text-anchor": "end" });
  steps.forEach(([name, factor], k) => {
    inner += text(left - 8, y + 13, label(name), { class: "al-small", "text-anchor": "end" })
      + rect(X(sum), y + 3, Math.max(1.5, X(sum + logs[k]) - X(sum)), 12, { class: "al-fill-bound" })
      + text(w, y + 14, `× ${factor < 100 ? factor.toFixed(2) : power(factor)}`, { class: "al-small al-value", "text-anchor": "end" });
    sum += logs[k];
    y += 22;
  });
  return { height: y + 4, inner };
}

// Flow in a plane: short arrows of `field([x, y]) -> [u, v]` on a grid, their direction only.
export function flow(field, at, x, y, { columns = 14, colour = "other", length = 11 } = {}) {
  const rows = Math.max(4, Math.round((columns * (y[1] - y[0])) / (x[1] - x[0])));
  let shafts = ""; // two paths for all: the page draws them anew at every frame
  let heads = "";
  const one = (v) => v.toFixed(1);
  for (let a = 0; a < columns; a++) {
    for (let b = 0; b < rows; b++) {
      const p = [x[0] + ((a + 0.5) / columns) * (x[1] - x[0]), y[0] + ((b + 0.5) / rows) * (y[1] - y[0])];
      const [u, v] = field(p);
      const size = Math.hypot(u, v);
      if (!(size > 0)) continue;
      const [px, py] = at(p);
      const [ux, uy] = [u / size, -v / size];
      const [tx, ty] = [px + (ux * length) / 2, py + (uy * length) / 2];
      const h = Math.min(6, length * 0.5);
      const [bx, by] = [tx - ux * h, ty - uy * h];
      shafts += `M${one(px - (ux * length) / 2)},${one(py - (uy * length) / 2)}L${one(bx)},${one(by)}`;
      heads += `M${one(tx)},${one(ty)}L${one(bx + uy * h * 0.42)},${one(by - ux * h * 0.42)}L${one(bx - uy * h * 0.42)},${one(by + ux * h * 0.42)}z`;
    }
  }
  const inner = tag("path", { d: shafts, class: `al-stroke-${colour}`, "stroke-width": 1.1, fill: "none", opacity: 0.55 })
    + tag("path", { d: heads, class: `al-fill-${colour}`, opacity: 0.55 });
  return inner;
}

// Frames 0 to `last(state)` under a button and a slider: an animation whose length may change.
// `name` is what the button says; gives {play, stop, row}.
export function player(kit, { key, last, name = "Play", label: words = "step", seconds = 5, parent }) {
  const row = parent || kit.controls();
  let timer = null;
  const stop = () => {
    window.clearInterval(timer);
    timer = null;
    button.textContent = name;
    button.setAttribute("aria-pressed", "false");
  };
  const play = () => {
    stop();
    const end = last(kit.state);
    const from = kit.state[key] >= end ? 0 : kit.state[key];
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) { kit.set({ [key]: end }); return; }
    kit.set({ [key]: from });
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    const began = performance.now();
    timer = window.setInterval(() => {
      const now = Math.min(end, Math.round(from + ((performance.now() - began) / (1000 * seconds)) * end));
      kit.set({ [key]: now });
      if (now >= end) stop();
    }, 30);
  };
  const button = kit.button(name, () => (timer ? stop() : play()), row);
  button.className = "al-main-button al-play";
  button.setAttribute("aria-pressed", "false");
  const input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, step: 1 });
  input.setAttribute("aria-label", words);
  input.dataset.key = key;
  const told = document.createElement("output");
  const track = document.createElement("span");
  track.className = "al-track al-scrub";
  track.append(input, told);
  row.append(track);
  input.addEventListener("input", () => { stop(); kit.set({ [key]: Number(input.value) }); });
  kit.stops.push(stop);
  kit.draws.push((state) => {
    input.max = last(state);
    input.value = state[key];
    told.textContent = `${words} ${state[key].toLocaleString("en")}`;
    input.setAttribute("aria-valuetext", told.textContent);
  });
  return { play, stop, row, button };
}
