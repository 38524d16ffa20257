// Sealed predictions: a choice, a number, a point, a sketched curve. Until the reader answers (or
// asks to be shown) no truth is computed: `truth` and `say` are functions, called once it is open.

import { circle, group, html, label, line, path, plain, text, view } from "./view.js";
import { scale, ticks } from "./scale.js";

export const answered = (value) => value !== null && value !== undefined;

const node = (tag, attributes = {}, words = "") => {
  const found = document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => found.setAttribute(name, value));
  found.innerHTML = html(words);
  return found;
};

// A choice: `options` is [[value, words], ...]; `right(state)` names the true one, once open.
function choice(kit, ask, host) {
  const list = node("fieldset", { class: "al-choices" });
  list.append(node("legend", {}, ask.question));
  const labels = ask.options.map(([value, words]) => {
    const entry = node("label", {});
    const input = node("input", { type: "radio", name: `${kit.spec.name}-${ask.key}`, value });
    input.addEventListener("change", () => kit.set({ [ask.key]: value }));
    entry.append(input, node("span", {}, words));
    list.append(entry);
    return [value, entry, input];
  });
  host.append(list);
  return (state) => {
    list.disabled = kit.opened;
    const right = kit.opened && kit.told() ? ask.right(state) : null;
    for (const [value, entry, input] of labels) {
      input.checked = state[ask.key] === value;
      entry.classList.toggle("al-right", right === value);
      entry.classList.toggle("al-mine", kit.opened && state[ask.key] === value);
    }
  };
}

// A number on a slider without a mark for the truth.
function number(kit, ask, host) {
  const { min, max, step, show = String } = ask;
  const start = ask.start ?? min + Math.round((max - min) / step / 2) * step;
  const entry = node("label", { class: "al-number-ask" });
  const input = node("input", { type: "range", min, max, step });
  const told = node("output", {});
  input.addEventListener("input", () => kit.set({ [ask.key]: Number(input.value) }));
  entry.append(node("span", { class: "al-ask" }, ask.question), input, told);
  host.append(entry);
  return (state) => {
    const mine = state[ask.key];
    input.disabled = kit.opened;
    input.value = answered(mine) ? mine : start;
    const words = answered(mine) ? show(mine) : "move the slider";
    told.innerHTML = html(words);
    input.setAttribute("aria-valuetext", plain(words));
    if (kit.opened && kit.told()) told.innerHTML = html(`${answered(mine) ? `you: ${show(mine)}; ` : ""}it is ${show(ask.truth(state))}`);
  };
}

// Where a pointer is in a drawing with these scales.
const place = (event, box, X, Y, range) => {
  const share = (at, [from, to]) => Math.max(0, Math.min(1, (at - from) / (to - from)));
  return [
    range.x[0] + share(event.clientX - box.left, X) * (range.x[1] - range.x[0]),
    range.y[0] + share(event.clientY - box.top, Y) * (range.y[1] - range.y[0]),
  ];
};

function follow(area, allowed, move) {
  area.addEventListener("pointerdown", (event) => {
    if (!allowed()) return;
    event.preventDefault();
    area.setPointerCapture(event.pointerId);
    move(event, true);
    const on = (later) => move(later, false);
    const stop = () => ["pointermove", "pointerup", "pointercancel"].forEach((name) =>
      area.removeEventListener(name, name === "pointermove" ? on : stop));
    area.addEventListener("pointermove", on);
    area.addEventListener("pointerup", stop);
    area.addEventListener("pointercancel", stop);
  });
}

const frame = (w, h, pad, X, Y, ask) => {
  const xt = ask.x.ticks || ticks(ask.x.range, ask.x);
  const yt = ask.y.ticks || ticks(ask.y.range, ask.y);
  const show = (axis, value) => (axis.show || ((v) => String(Number(v.toPrecision(3)))))(value);
  return yt.map((v) => line(pad.l, Y(v), w - pad.r, Y(v), { class: v === ask.y.range[0] ? "al-axis" : "al-grid" })
    + text(pad.l - 7, Y(v) + 4, label(show(ask.y, v)), { class: "al-small", "text-anchor": "end" })).join("")
    + xt.map((v) => text(X(v), h - pad.b + 17, label(show(ask.x, v)), { class: "al-small", "text-anchor": "middle" })).join("")
    + text(w - pad.r, h - 3, label(ask.x.label || ""), { class: "al-small", "text-anchor": "end" })
    + (ask.y.label ? text(2, 10, label(ask.y.label), { class: "al-small" }) : "");
};

// A curve, drawn by mouse or finger, or by keys at the abscissae `at`; the first `known` of its
// values are given. The truth is laid over it; `here(state)` rings a place on it, `also(state)` is a
// second curve {xs, ys, colour, name, at}.
function sketch(kit, ask, host) {
  const pad = { l: 46, r: 14, t: ask.y.label ? 20 : 12, b: 36 };
  const H = ask.height || 240;
  const known = ask.known || [];
  const count = ask.at.length;
  const idle = Array(count).fill(known.length ? known[known.length - 1] : (ask.y.range[0] + ask.y.range[1]) / 2);
  known.forEach((value, j) => { idle[j] = value; });
  const now = () => (Array.isArray(kit.state[ask.key]) && kit.state[ask.key].length === count ? kit.state[ask.key] : null);
  const set = new Set(); // abscissae the reader has been at: later ones follow until they are set
  let at = Math.min(known.length, count - 1);
  let last = null;
  host.append(node("p", { class: "al-ask" }, ask.question));
  const area = node("div", { class: "al-sketch" });
  const keys = node("div", { role: "group", "aria-label": "Your sketch: left and right choose a place, up and down set its height" });
  area.append(keys);
  host.append(area);
  const scales = (w) => [
    scale(ask.x.range, [pad.l, w - pad.r], ask.x.log), scale(ask.y.range, [H - pad.b, pad.t]),
  ];
  const drawn = view(area, () => `${plain(ask.question)} ${kit.opened ? "Your sketch and what happened." : "Your sketch."}`, (w) => {
    const [X, Y] = scales(w);
    const mine = now();
    let inner = frame(w, H, pad, X, Y, ask);
    const points = (mine || idle).map((value, j) => [X(ask.at[j]), Y(value)]);
    if (!kit.opened || mine) inner += path(points, { class: `al-sketched${mine ? "" : " al-idle"}` });
    if (!kit.opened) {
      inner += points.slice(known.length).map(([x, y]) => circle(x, y, 4, { class: "al-knob" })).join("");
      if (!mine) inner += text((pad.l + w - pad.r) / 2, pad.t + 18, "draw here, from left to right", { class: "al-text-you al-label", "text-anchor": "middle" });
    } else {
      const { xs, ys } = ask.truth(kit.state);
      if (ask.also) { // a second curve to compare with
        const other = ask.also(kit.state);
        const course = other.xs.map((x, j) => [X(x), Y(other.ys[j])]);
        const [u, v] = course[Math.round((other.at ?? 1) * (course.length - 1))];
        inner += path(course, { class: `al-curve al-stroke-${other.colour}`, "stroke-dasharray": "7 5" })
          + text(u, v - 9, label(other.name), { class: `al-text-${other.colour} al-label al-halo-text`, "text-anchor": "middle" });
      }
      const stop = ask.upTo ? ask.upTo(kit.state) : xs.length - 1;
      const done = xs.slice(0, stop + 1).map((x, j) => [X(x), Y(ys[j])]);
      inner += group({ "data-mark": ask.mark || "" }, path(done, { class: `al-curve al-stroke-${ask.colour || "best"}` })
        + (done.length ? circle(...done[done.length - 1], 4, { class: `al-fill-${ask.colour || "best"}` }) : ""));
      if (mine) {
        const off = ask.at.map((x, j) => (j > 1 && j < count - 2 ? Math.abs(mine[j] - near(xs, ys, x)) : 0));
        const j = off.indexOf(Math.max(...off));
        const above = mine[j] >= near(xs, ys, ask.at[j]);
        inner += text(X(ask.at[j]), Y(mine[j]) + (above ? -12 : 22), "your line", { class: "al-text-you al-label al-halo-text", "text-anchor": "middle" });
      }
      const spot = stop === xs.length - 1 && ask.here ? ask.here(kit.state) : null; // where the reader is on it
      if (spot) inner += circle(X(spot[0]), Y(spot[1]), 7, { class: `al-stroke-${ask.colour || "best"}`, fill: "none", "stroke-width": 2 });
      if (stop === xs.length - 1 && ask.notes) {
        inner += ask.notes(kit.state).map(([x, y, words, anchor = "start"]) =>
          text(X(x), Y(y), label(words), { class: `al-text-${ask.colour || "best"} al-label al-halo-text`, "text-anchor": anchor })).join("");
      }
    }
    return { height: H, inner };
  });
  kit.stops.push(drawn.stop);
  const put = (values) => kit.set({ [ask.key]: values.map((v) => Number(v.toPrecision(3))) });
  const knobs = ask.at.slice(known.length).map((x, j) => {
    const k = j + known.length;
    const knob = node("span", { role: "slider", class: "al-knobkey", "aria-valuemin": ask.y.range[0], "aria-valuemax": ask.y.range[1], "aria-label": `your value at ${ask.x.name || plain(ask.x.label || "")} ${x}` });
    knob.addEventListener("focus", () => { at = k; });
    knob.addEventListener("keydown", (event) => {
      const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const size = ask.y.range[1] - ask.y.range[0];
      const by = { ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.2, PageDown: -0.2 }[event.key];
      const to = { Home: ask.y.range[0], End: ask.y.range[1] }[event.key];
      if (side === undefined && by === undefined && to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      if (side) { const next = knobs[j + side]; if (next) { next.tabIndex = 0; next.focus(); } return; }
      const values = (now() || idle).slice();
      const value = to ?? Math.max(ask.y.range[0], Math.min(ask.y.range[1], values[k] + by * size));
      for (let a = k; a < count; a++) if (a === k || !set.has(a)) values[a] = value;
      set.add(k);
      put(values);
    });
    keys.append(knob);
    return knob;
  });
  follow(area, () => !kit.opened, (event, first) => {
    const box = area.getBoundingClientRect();
    const here = place(event, box, [pad.l, box.width - pad.r], [H - pad.b, pad.t], { x: [0, 1], y: ask.y.range });
    const X = scale(ask.x.range, [0, 1], ask.x.log);
    const from = first || !last ? here : last;
    const [a, b] = from[0] < here[0] ? [from, here] : [here, from];
    const values = (now() || idle).slice();
    const gap = 0.5 / (count - 1);
    ask.at.forEach((x, j) => {
      const p = X(x);
      if (j < known.length || p < a[0] - gap || p > b[0] + gap) return;
      const share = b[0] > a[0] ? Math.max(0, Math.min(1, (p - a[0]) / (b[0] - a[0]))) : 1;
      values[j] = a[1] + share * (b[1] - a[1]);
      set.add(j);
    });
    const reached = Math.max(known.length - 1, ...set);
    if (set.size) for (let j = reached + 1; j < count; j++) values[j] = values[reached];
    last = here;
    if (set.size) put(values);
  });
  return () => {
    drawn.update();
    keys.hidden = kit.opened;
    area.classList.toggle("al-closed", kit.opened);
    const [X, Y] = scales(drawn.width);
    knobs.forEach((knob, j) => {
      const k = j + known.length;
      const value = (now() || idle)[k];
      knob.tabIndex = !kit.opened && k === at ? 0 : -1;
      knob.setAttribute("aria-valuenow", value);
      knob.setAttribute("aria-valuetext", plain((ask.y.show || ((v) => v.toFixed(2)))(value)));
      knob.style.left = `${X(ask.at[k])}px`;
      knob.style.top = `${Y(value)}px`;
    });
  };
}

const near = (xs, ys, x) => {
  let best = 0;
  xs.forEach((value, j) => { if (Math.abs(value - x) < Math.abs(xs[best] - x)) best = j; });
  return ys[best];
};

// A point in the plane; `ground(at, w, h)` draws what is known.
function point(kit, ask, host) {
  const pad = { l: 46, r: 14, t: 14, b: 36 };
  const H = ask.height || 300;
  host.append(node("p", { class: "al-ask" }, ask.question));
  const area = node("div", { class: "al-sketch", tabindex: "0", role: "slider", "aria-label": `${plain(ask.question)} Arrow keys move the point.` });
  host.append(area);
  const middle = [(ask.x.range[0] + ask.x.range[1]) / 2, (ask.y.range[0] + ask.y.range[1]) / 2];
  const scales = (w) => [scale(ask.x.range, [pad.l, w - pad.r]), scale(ask.y.range, [H - pad.b, pad.t])];
  const drawn = view(area, ask.question, (w) => {
    const [X, Y] = scales(w);
    const mine = kit.state[ask.key];
    let inner = frame(w, H, pad, X, Y, ask) + (ask.ground ? ask.ground(([x, y]) => [X(x), Y(y)], kit.state) : "");
    if (answered(mine)) {
      const [x, y] = [X(mine[0]), Y(mine[1])];
      inner += circle(x, y, 7, { class: "al-fill-you" }) + text(x + 11, y + 4, "you", { class: "al-text-you al-label al-halo-text" });
    }
    if (kit.opened && kit.told()) {
      const [x, y] = ask.truth(kit.state);
      inner += circle(X(x), Y(y), 7, { class: `al-fill-${ask.colour || "best"}` })
        + text(X(x) + 11, Y(y) - 6, label(ask.name || "here"), { class: `al-text-${ask.colour || "best"} al-label al-halo-text` });
    }
    return { height: H, inner };
  });
  kit.stops.push(drawn.stop);
  const put = ([x, y]) => {
    const hold = (value, [low, high]) => Number(Math.max(low, Math.min(high, value)).toPrecision(3));
    kit.set({ [ask.key]: [hold(x, ask.x.range), hold(y, ask.y.range)] });
  };
  follow(area, () => !kit.opened, (event) => {
    const box = area.getBoundingClientRect();
    put(place(event, box, [pad.l, box.width - pad.r], [H - pad.b, pad.t], { x: ask.x.range, y: ask.y.range }));
  });
  area.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!way || kit.opened) return;
    event.preventDefault();
    event.stopPropagation();
    const [x, y] = kit.state[ask.key] || middle;
    const by = event.shiftKey ? 0.1 : 0.02;
    put([x + way[0] * by * (ask.x.range[1] - ask.x.range[0]), y + way[1] * by * (ask.y.range[1] - ask.y.range[0])]);
  });
  return (state) => {
    drawn.update();
    const mine = state[ask.key];
    area.setAttribute("aria-valuetext", answered(mine) ? mine.join(", ") : "not placed");
    area.setAttribute("aria-disabled", String(kit.opened));
    area.classList.toggle("al-closed", kit.opened);
  };
}

const KINDS = { choice, number, point, sketch };

// The questions of an explorable. `asks` as above; `go` names the button; `start(state)` runs when
// it opens; `after` is the heading then; `over(state)`: whether the verdicts may be said already (after the run, say).
// `about`: the keys of the state that the questions are about. Once the reader has changed one of
// these, questions and verdicts would speak of another picture: they fold until it is as it was.
export function predict(kit, { heading = "Before it runs", after = heading, asks, go = "Let it run", start, over, parent, about = [] }) {
  const box = node("div", { class: `al-predict${asks.length > 1 ? " al-two" : ""}` });
  const head = node("p", { class: "al-heading" }, heading);
  const bar = node("div", { class: "al-predict-bar" });
  const run = node("button", { type: "button", class: "al-main-button", "data-go": "" }, go);
  const need = node("span", { role: "status" });
  const show = node("button", { type: "button", class: "al-quiet", "data-show": "" }, "show me without");
  const verdict = node("div", { class: "al-verdict", "aria-live": "polite" });
  bar.append(run, need, show);
  box.append(head);
  const hosts = [];
  const parts = asks.map((ask) => {
    const host = node("div", { class: "al-asked" });
    box.append(host);
    hosts.push(host);
    return KINDS[ask.kind](kit, ask, host);
  });
  box.append(bar, verdict);
  (parent || kit.main).append(box);
  const open = (how) => {
    const held = bar.contains(document.activeElement);
    kit.set({ open: how });
    kit.draw(); // at once: what comes now may measure what is shown
    if (held) { // the buttons are gone: the focus stays here
      head.tabIndex = -1;
      head.focus({ preventScroll: true });
    }
    if (start) start(kit.state);
  };
  run.addEventListener("click", () => open(1));
  show.addEventListener("click", () => open(2));
  kit.told = () => kit.opened && (!over || over(kit.state));
  kit.draws.push((state) => {
    parts.forEach((draw) => draw(state));
    const left = asks.filter((ask) => !answered(state[ask.key]));
    run.disabled = left.length > 0;
    bar.hidden = kit.opened;
    const changed = kit.opened && about.some((key) => JSON.stringify(state[key]) !== JSON.stringify(kit.initial[key]));
    hosts.forEach((host) => { host.hidden = changed; });
    const title = changed ? `The picture has been changed since the prediction${asks.length > 1 ? "s" : ""}. Reset brings ${asks.length > 1 ? "them" : "it"} back.` : kit.opened ? after : heading;
    if (head.dataset.words !== title) {
      head.dataset.words = title;
      head.innerHTML = html(title);
    }
    const words = kit.opened ? "" : !left.length ? (asks.length > 1 ? "All set." : "")
      : { choice: "Choose first.", number: "Move the slider first.", point: "Place your point first.", sketch: "Draw your line first." }[left[0].kind];
    if (need.textContent !== words) need.textContent = words;
    const said = kit.told() && !changed ? asks.map((ask) => ask.say(answered(state[ask.key]) ? state[ask.key] : null, state)) : [];
    const key = said.join("|");
    if (verdict.dataset.key !== key) {
      verdict.dataset.key = key;
      verdict.replaceChildren(...said.map((one) => node("p", {}, one)));
    }
    verdict.hidden = !said.length;
  });
}
