// Both sides of a step as bars on one scale, with their numbers; and what each step gave away.
// A side is a number, or {ln: x} for e^x where the number itself would underflow.

import { circle, html, label, line, plain, path, power, rect, text } from "./view.js";

export const value = (side) => (typeof side === "number" ? side : Math.exp(side.ln));
const ln = (side) => (typeof side === "number" ? Math.log(side) : side.ln);
const ten = (side) => ln(side) / Math.LN10;

// A number as people write it, also below the smallest float.
export function written(side) {
  if (side === null || side === undefined) return "none";
  if (typeof side === "number") {
    if (Number.isNaN(side)) return "0 / 0";
    return Number.isFinite(side) ? power(side) : side > 0 ? "∞" : "−∞";
  }
  if (side.ln === -Infinity) return "0";
  if (Math.abs(side.ln) < 600) return power(Math.exp(side.ln));
  const e = Math.floor(ten(side)); // a tenth of it fits: 1.2 · 10⁻³⁰⁰
  const raised = String(Math.abs(e)).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]);
  return `${(10 ** (ten(side) - e)).toFixed(1)} · 10${e < 0 ? "⁻" : ""}${raised}`;
}

const TOLERANCE = 1e-9;
const RELATIONS = {
  "=": (d, e) => Math.abs(d) <= e, "≤": (d, e) => d <= e, "≥": (d, e) => d >= -e,
  "<": (d, e) => d < -e, ">": (d, e) => d > e,
};
const BROKEN = { "=": "≠", "≤": "≰", "≥": "≱", "<": "≮", ">": "≯", "≈": "≉" };
const SPOKEN = { "=": "equals", "≤": "at most", "≥": "at least", "<": "below", ">": "above", "≈": "about", "→": "tends to" };

// Whether "left relation right" holds, to rounding; "≈" and "→" are for the step itself to judge.
export function holds([, left, right, relation = "="]) {
  const test = RELATIONS[relation];
  if (!test) return true;
  if (typeof left === "number" && typeof right === "number") {
    if (Number.isNaN(left) || Number.isNaN(right)) return false;
    if (left === right) return relation !== "<" && relation !== ">";
    return test(left - right, TOLERANCE * Math.min(1, Math.max(Math.abs(left), Math.abs(right))));
  }
  const [a, b] = [ln(left), ln(right)];
  if (a === b) return relation !== "<" && relation !== ">";
  return test(a - b, TOLERANCE * Math.max(1, Math.abs(a), Math.abs(b) === Infinity ? 1 : Math.abs(b)));
}

export const spoken = ({ rows }) => rows.map((row) => `${plain(row[0])}: ${written(row[1])} ${holds(row) ? "" : "not "}${SPOKEN[row[3] || "="]} ${written(row[2])}`).join("; ");

// What a bar is a share of: the scale of a step's numbers over [0, 1].
function scaleOf({ rows, scale, range }) {
  const sides = rows.flatMap((row) => [row[1], row[2]]).filter((side) => side !== null && !Number.isNaN(value(side)));
  const positive = sides.filter((side) => ln(side) > -Infinity);
  const spread = positive.length ? Math.max(...positive.map(ten)) - Math.min(...positive.map(ten)) : 0;
  const signless = sides.every((side) => typeof side !== "number" || side >= 0);
  const log = scale === "log" || (scale !== "linear" && signless && positive.length > 1 && spread > 1.7);
  if (log) {
    const tens = positive.map(ten);
    const [low, high] = range ? range.map(Math.log10)
      : [Math.min(...tens) - Math.max(0.3, 0.2 * spread), Math.max(...tens) + 0.05];
    return { log, low, high, zero: 0, at: (side) => Math.max(0, Math.min(1, (ten(side) - low) / (high - low || 1))) };
  }
  const values = sides.map(value).filter(Number.isFinite);
  const low = range ? range[0] : Math.min(0, ...values);
  const high = range ? range[1] : Math.max(0, ...values);
  const at = (side) => Math.max(0, Math.min(1, (value(side) - low) / (high - low || 1)));
  return { log, low, high, zero: at(0), at };
}

const POWERS = (e) => `$10^{${e}}$`;

// Rows [label, left, right, relation, marks]; a row that fails is red.
export function sides(result, width, least = 0) {
  const number = 82;
  const sign = 18;
  const span = Math.max(60, width - number - sign);
  const apart = result.scale === "row";
  let scale = scaleOf(result);
  const X = (share) => sign + share * span;
  let inner = "";
  let y = scale.log && !apart ? 18 : 0;
  const bottom = y + 54 * result.rows.length - 8;
  if (scale.log && !apart) {
    const every = Math.max(1, Math.ceil((scale.high - scale.low) / Math.max(2, Math.floor(span / 70))));
    for (let e = Math.ceil(scale.low); e <= scale.high; e += 1) {
      if (e % every) continue;
      const x = X((e - scale.low) / (scale.high - scale.low));
      inner += line(x, 16, x, bottom, { class: "al-tick-line" })
        + text(x, 11, label(e === 0 ? "1" : POWERS(e)), { class: "al-tick", "text-anchor": "middle" });
    }
  }
  const top = y;
  for (const row of result.rows) {
    const [name, left, right, relation = "=", marks] = row;
    if (apart) scale = scaleOf({ rows: [row] });
    const good = holds(row);
    const mark = marks ? { "data-mark": marks } : {};
    inner += text(sign, y + 13, label(name), { class: good ? "al-row-name" : "al-row-name al-text-violation", ...mark });
    inner += text(2, y + 37, good ? relation : BROKEN[relation] || relation, { class: good ? "al-relation" : "al-relation al-text-violation" });
    [[left, "a", 19], [right, "b", 33]].forEach(([side, which, down]) => {
      if (side === null) return;
      const v = value(side);
      if (!Number.isNaN(v)) {
        const to = v === Infinity ? 1 : scale.log && !(ln(side) > -Infinity) ? 0 : scale.at(side);
        const [x0, x1] = [Math.min(X(scale.zero), X(to)), Math.max(X(scale.zero), X(to))];
        inner += rect(x0, y + down, Math.max(1, x1 - x0), 10, { class: `al-bar-${which}${good ? "" : " al-broken"}`, ...mark });
      }
      inner += text(width, y + down + 9, written(side), { class: `al-value${good ? "" : " al-text-violation"}`, "text-anchor": "end" });
    });
    y += 54;
  }
  if (!scale.log && !apart) inner += line(X(scale.zero), top + 16, X(scale.zero), y - 8, { class: "al-axis-line" });
  return { height: Math.max(least, y), inner };
}

// Curves over a parameter on logarithmic axes, with a line at the present one:
// {x, at, label, names, series: [[values, "a" | "b" | "c"]], y: [low, high]}.
export function strip({ x, at, label: below, series, y }, width) {
  const [left, right, top, bottom, height] = [40, 10, 8, 34, 150];
  const share = (v, [low, high]) => Math.max(0, Math.min(1, Math.log(v / low) / Math.log(high / low)));
  const X = (v) => left + share(v, [x[0], x[x.length - 1]]) * (width - left - right);
  const Y = (v) => height - bottom - share(v, y) * (height - top - bottom);
  let inner = "";
  for (let e = Math.ceil(Math.log10(y[0]) - 1e-9); e <= Math.log10(y[1]) + 1e-9; e++) {
    inner += line(left, Y(10 ** e), width - right, Y(10 ** e), { class: "al-tick-line" })
      + text(left - 5, Y(10 ** e) + 4, label(e === 0 ? "1" : POWERS(e)), { class: "al-tick", "text-anchor": "end" });
  }
  for (let e = Math.ceil(Math.log10(x[0]) - 1e-9); e <= Math.log10(x[x.length - 1]) + 1e-9; e++) {
    inner += text(X(10 ** e), height - bottom + 15, label(e === 0 ? "1" : e === 1 ? "10" : e === 2 ? "100" : POWERS(e)), { class: "al-tick", "text-anchor": "middle" });
  }
  inner += text((left + width - right) / 2, height - 4, label(below), { class: "al-tick", "text-anchor": "middle" });
  inner += line(X(at), top, X(at), height - bottom, { class: "al-axis-line" });
  for (const [values, which] of series) {
    const points = values.map((v, k) => [v, k]).filter(([v]) => v > 0 && Number.isFinite(v)).map(([v, k]) => [X(x[k]), Y(v)]);
    inner += path(points, { class: `al-curve-${which}` });
  }
  return { height, inner, X, Y, dot: (v, which) => circle(X(at), Y(v), 5, { class: `al-dot-${which}` }) };
}

// Levels [{name, value, step}] from what is measured to what is proven: each bar is what one step
// gave away, with its factor. They rise, or they fall; on a log scale where they span decades.
export function waterfall({ levels, numbers }, width) {
  const narrow = width < 520;
  const left = narrow ? 0 : Math.min(330, Math.round(0.46 * width));
  const right = 74;
  const positive = levels.every((level) => value(level.value) > 0);
  const tens = positive ? levels.map((level) => ten(level.value)) : [];
  const log = positive && Math.max(...tens) - Math.min(...tens) > 1.2;
  const list = levels.map((level) => (log ? ten(level.value) : value(level.value)));
  const low = log ? Math.min(...list) - 0.15 * (Math.max(...list) - Math.min(...list)) : Math.min(0, ...list);
  const high = Math.max(...list, low + 1e-12);
  const X = (v) => left + ((v - low) / (high - low || 1)) * (width - left - right);
  const row = narrow ? 46 : 31;
  let inner = "";
  levels.forEach((level, k) => {
    const y = k * row;
    const by = narrow ? y + 20 : y + 5;
    const last = k === levels.length - 1;
    const before = k ? list[k - 1] : low;
    const [x0, x1] = [Math.min(X(before), X(list[k])), Math.max(X(before), X(list[k]))];
    const number = numbers && level.step && numbers[level.step] ? `${numbers[level.step]}. ` : "";
    inner += text(0, y + (narrow ? 14 : 18), label(`${number}${level.name}`), { class: "al-row-name" });
    inner += rect(x0, by, Math.max(1.5, x1 - x0), 16, { class: k === 0 ? "al-bar-a" : "al-bar-gave" });
    if (!last) inner += line(X(list[k]), by, X(list[k]), by + row + 16, { class: "al-tick-line" });
    const factor = k ? value(level.value) / value(levels[k - 1].value) : 0;
    const words = k === 0 ? written(level.value) : gave(factor, value(level.value) - value(levels[k - 1].value));
    inner += text(width, y + (narrow ? 33 : 18), words, { class: "al-value", "text-anchor": "end" });
  });
  const y = levels.length * row;
  const by = narrow ? y + 20 : y + 5;
  inner += text(0, y + (narrow ? 14 : 18), label(levels[levels.length - 1].proven || "proven"), { class: "al-row-name" })
    + rect(X(Math.min(low, list[list.length - 1])), by, Math.max(1.5, X(list[list.length - 1]) - X(low)), 16, { class: "al-bar-b" })
    + text(width, y + (narrow ? 33 : 18), written(levels[levels.length - 1].value), { class: "al-value", "text-anchor": "end" });
  return { height: y + row + 6, inner };
}

const gave = (factor, change) => {
  if (!Number.isFinite(factor) || factor <= 0) return `${change < 0 ? "−" : "+"} ${written(Math.abs(change))}`;
  return Math.abs(factor - 1) < 5e-4 ? "nothing" : `× ${power(factor)}`;
};

export const heardWaterfall = ({ levels }) => levels.map((level, k) =>
  `${plain(level.name)}: ${k ? gave(value(level.value) / value(levels[k - 1].value), 0) : written(level.value)}`).join("; ");

export const legend = (names) => names.map((name, k) =>
  `<span><span class="al-swatch al-swatch-${"ab"[k]}"></span>${html(name)}</span>`).join("");
