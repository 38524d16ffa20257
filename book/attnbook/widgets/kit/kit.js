// What every explorable shares: its frame, controls, state, read-out, betting, code to copy.

import { Chart } from "./chart.js";
import { answered, predict } from "./predict.js";
import { nearest } from "./search.js";
import { html, plain, tens, view } from "./view.js";

export const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
};

// Words in which mathematics is set as mathematics; a button is read aloud by its plain words.
const worded = (tag, words, attributes = {}) => {
  const node = make(tag, attributes);
  node.innerHTML = html(words);
  if (tag === "button" && node.textContent !== words) node.setAttribute("aria-label", plain(words));
  return node;
};

export const fixed = (value, digits = 2) => {
  if (!Number.isFinite(value)) return "none";
  const size = Math.abs(value);
  return size !== 0 && (size < 10 ** -digits || size >= 1e5) ? value.toExponential(1) : value.toFixed(digits);
};

// A list of numbers in Python's own notation.
export const python = (value) => JSON.stringify(value, (_, entry) =>
  (typeof entry === "number" ? Number(entry.toPrecision(6)) : entry)).replaceAll(",", ", ");

// Numbers computed by attnlab: {name: {shape, dtype, bytes}} with bytes a DataView or base64.
function unpack({ shape, dtype, bytes }) {
  const kinds = { "<f8": Float64Array, "<f4": Float32Array, "<i4": Int32Array, "|i1": Int8Array, "|b1": Uint8Array };
  const view = typeof bytes === "string"
    ? Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0))
    : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const copy = view.slice(); // the bytes arrive unaligned
  return { shape, values: new kinds[dtype](copy.buffer) };
}

// Thrown by a question without an answer: nothing behind it is built, so nothing can tell.
const SEALED = Symbol("sealed");

const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Kit {
  constructor(model, el, spec) {
    Object.assign(this, { model, spec, el, draws: [], stops: [], unpacked: {} });
    const fresh = model.get("initial") || {};
    this.initial = { ...spec.defaults, ...fresh };
    this.state = { ...this.initial, ...(model.get("state") || {}) };
    this.root = make("section", { class: `al${spec.wide ? " al-wide" : ""}`, "aria-label": spec.title });
    this.told = () => this.opened;
    this.main = make("div", { class: "al-main" });
    this.readout = make("p", { class: "al-readout" });
    this.live = make("p", { class: "al-hidden", "aria-live": "polite", role: "status" });
    this.root.append(worded("p", spec.title, { class: "al-title" }), this.main, this.readout, this.live, this.tools());
    el.dataset.explorable = spec.name;
    el.append(this.root);
    this.build();
  }

  // Where a question is open, only what stands before it is built; the answer builds it all.
  build() {
    this.halt();
    this.draws.splice(this.lasting);
    this.stops = [];
    this.main.replaceChildren();
    this.asking = null;
    try {
      const draw = this.spec.build(this);
      if (draw) this.draws.push(draw);
    } catch (error) {
      if (error !== SEALED) throw error;
      this.main.replaceChildren(...(this.shownBefore || []), this.asking.box);
    }
    this.root.classList.toggle("al-asking", Boolean(this.asking));
    this.readout.hidden = Boolean(this.asking);
    if (this.asking) this.readout.textContent = this.live.textContent = "";
    this.draw();
  }

  // Whether the reader has answered, or asked to be shown.
  get opened() { return this.state.open > 0; }

  // -- state -------------------------------------------------------------------------------------
  set(patch) {
    this.state = { ...this.state, ...patch };
    this.el.alState = this.state; // exercises look at it; it is known before it is drawn
    this.model.tell?.(this.state);
    this.schedule();
    if (this.saving) return;
    this.saving = window.setTimeout(() => {
      this.saving = null;
      this.model.set("state", this.state);
      this.model.save_changes();
    }, 60);
  }

  schedule() {
    if (this.frame) return;
    this.frame = window.requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const start = performance.now();
    if (Boolean(this.asking) !== Boolean(this.question && !answered(this.state[this.question]))) {
      this.build();
      return;
    }
    if (this.asks) this.el.dataset.sealed = String(this.question ? Boolean(this.asking) : !this.opened);
    this.el.alState = this.state;
    for (const each of this.draws) each(this.state);
    this.el.dataset.work = (performance.now() - start).toFixed(2);
    this.el.dataset.draws = String(1 + Number(this.el.dataset.draws || 0));
  }

  data(name) {
    const stored = this.model.get("data") || {};
    if (!this.unpacked[name]) this.unpacked[name] = unpack(stored[name]);
    return this.unpacked[name];
  }

  // The numbers of an array at its leading indices, as one flat list.
  list(name, ...at) {
    const { shape, values } = this.data(name);
    const size = shape.slice(at.length).reduce((a, b) => a * b, 1);
    const place = at.reduce((sum, index, k) => sum * shape[k] + index, 0);
    return Array.from(values.slice(place * size, (place + 1) * size));
  }

  say(words) {
    const inner = html(words);
    if (this.said === inner && this.readout.textContent) return;
    this.readout.innerHTML = this.said = inner;
    window.clearTimeout(this.telling);
    this.telling = window.setTimeout(() => { this.live.textContent = plain(words); }, 500);
  }

  // A picture drawn anew with every state: `draw(width, state)` gives {height, inner}; `told(state)`
  // says it in words. `parent` is where it stands.
  view({ draw, told, parent = this.main, name = "" }) {
    const host = make("div", { class: `al-picture${name ? ` al-${name}` : ""}` });
    parent.append(host);
    const drawn = view(host, () => (typeof told === "function" ? told(this.state) : told), (width) => draw(width, this.state));
    this.stops.push(drawn.stop);
    this.draws.push(() => drawn.update());
    return Object.assign(drawn, { host });
  }

  // Words above a view, with mathematics between dollars.
  caption(words, parent = this.main) {
    const line = make("p", { class: "al-caption" });
    line.innerHTML = html(words);
    parent.append(line);
    return line;
  }

  // Questions whose answers are sealed until the reader commits: see predict.js.
  predict(questions) {
    this.asks = true;
    predict(this, questions);
  }

  // -- views and controls ------------------------------------------------------------------------
  chart(options, parent = this.row()) {
    const frame = make("figure", { class: `al-frame${options.square ? " al-square" : ""}` });
    if (options.title) frame.append(worded("figcaption", options.title));
    parent.append(frame);
    return new Chart(frame, options);
  }

  row(name = "al-row") {
    const row = make("div", { class: name });
    this.main.append(row);
    return row;
  }

  controls() {
    return this.row("al-controls");
  }

  // A slider over a state's number; `values` lists the stops, or min, max and step make them.
  slider({ key, label, min, max, step, values, show = fixed, parent }) {
    const stops = values || Array.from({ length: Math.round((max - min) / step) + 1 }, (_, k) =>
      Number((min + k * step).toPrecision(10)));
    const input = make("input", { type: "range", min: 0, max: stops.length - 1, step: 1, "aria-label": plain(label), "data-key": key });
    const told = make("output", {});
    (parent || this.controls()).append(make("label", { class: "al-slider" }, worded("span", label),
      make("span", { class: "al-track" }, input, told)));
    const move = (index) => this.set({ [key]: stops[Math.max(0, Math.min(stops.length - 1, index))] });
    input.addEventListener("input", () => move(Number(input.value)));
    input.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -1e9, End: 1e9 }[event.key];
      if (way === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      move(nearest(stops, this.state[key]) + way); // two keys within a frame are two stops
    });
    this.draws.push((state) => {
      input.value = Math.max(0, nearest(stops, state[key]));
      told.textContent = tens(show(state[key]));
      input.setAttribute("aria-valuetext", `${plain(label)} ${told.textContent}`);
    });
    return input;
  }

  // One of several words, as a row of buttons.
  choice({ key, label, options, parent }) {
    const group = make("div", { class: "al-choice", role: "group", "aria-label": plain(label) });
    group.append(worded("span", label));
    const buttons = options.map(([value, words]) => {
      const button = worded("button", words, { type: "button", "data-key": key, "data-value": value });
      button.addEventListener("click", () => this.set({ [key]: value }));
      group.append(button);
      return [value, button];
    });
    (parent || this.controls()).append(group);
    this.draws.push((state) => buttons.forEach(([value, button]) =>
      button.setAttribute("aria-pressed", String(state[key] === value))));
  }

  button(words, press, parent) {
    const button = make("button", { type: "button" }, words);
    button.addEventListener("click", press);
    (parent || this.controls()).append(button);
    return button;
  }

  // Time on a logarithmic scale with a play button; the state holds the index into `times`.
  scrubber({ key, label = "step", times, seconds = 6, parent }) {
    const row = parent || this.controls();
    this.state[key] = Math.max(0, Math.min(times.length - 1, this.state[key])); // any address
    let timer = null;
    const stop = () => {
      window.clearInterval(timer);
      timer = null;
      play.textContent = "Play";
      play.setAttribute("aria-pressed", "false");
    };
    const play = this.button("Play", () => {
      if (timer) { stop(); return; }
      if (still()) { this.set({ [key]: times.length - 1 }); return; } // no motion: the end at once
      if (this.state[key] >= times.length - 1) this.set({ [key]: 0 });
      play.textContent = "Pause";
      play.setAttribute("aria-pressed", "true");
      const pace = (1000 * seconds) / times.length;
      const began = performance.now();
      const from = this.state[key] >= times.length - 1 ? 0 : this.state[key];
      timer = window.setInterval(() => {
        const now = from + Math.floor((performance.now() - began) / pace);
        this.set({ [key]: Math.min(now, times.length - 1) });
        if (now >= times.length - 1) stop();
      }, Math.max(pace, 30));
    }, row);
    play.className = "al-play";
    play.setAttribute("aria-pressed", "false");
    this.stops.push(stop);
    const indices = times.map((_, k) => k);
    return this.slider({ key, label, values: indices, show: (k) => String(times[k]), parent: row });
  }

  // A question to answer first; what is built after it waits for the answer. `outcome(state)` tells
  // what came.
  bet({ question, options, outcome, key = "bet" }) {
    this.asks = true;
    this.question = key;
    const box = make("div", { class: "al-bet" });
    const answers = options.map((words, k) => {
      const button = make("button", { type: "button", "data-bet": k });
      button.innerHTML = html(words);
      button.addEventListener("click", () => this.set({ [key]: k }));
      return button;
    });
    const asked = make("p", { class: "al-question" });
    asked.innerHTML = html(question);
    box.append(asked, make("div", { class: "al-options" }, ...answers));
    if (!answered(this.state[key])) {
      const show = make("button", { type: "button", class: "al-quiet", "data-show": "" }, "show me without");
      show.addEventListener("click", () => this.set({ [key]: -1 }));
      box.append(show);
      this.asking = { box };
      throw SEALED;
    }
    const told = make("p", { class: "al-told", "aria-live": "polite" });
    box.append(told);
    this.main.append(box);
    this.draws.push((state) => {
      answers.forEach((button, k) => button.setAttribute("aria-pressed", String(state[key] === k)));
      const words = outcome(state);
      told.innerHTML = html(state[key] === -1 ? words.replace(/^[A-Z][a-z ,]{1,24}[.:!?] /, "") : words);
    });
  }

  legend(entries, parent = this.main) {
    const list = make("ul", { class: "al-legend" });
    for (const [series, words, look] of entries) { // look: true for dashes, "ring" for a rim
      const form = look === "ring" ? " al-ring" : look ? " al-dashed" : "";
      const sample = make("span", { class: `al-sample al-s${series}${form}` });
      list.append(make("li", {}, sample, worded("span", words)));
    }
    parent.append(list);
  }

  tools() {
    const row = make("div", { class: "al-tools" });
    const kept = () => Object.fromEntries([...(this.spec.answers || []), "open", this.question || "bet"]
      .filter((key) => key in this.state).map((key) => [key, this.state[key]]));
    this.button("Reset", () => { this.halt(); this.set({ ...this.initial, ...kept() }); }, row);
    const again = this.button("Ask me again", () => { this.halt(); this.set({ ...this.initial }); }, row);
    this.draws.push(() => { again.hidden = !this.asks || this.el.dataset.sealed === "true"; });
    const listing = this.spec.code ? [this.source(row)] : [];
    if (this.model.link) {
      const link = this.button("Copy link", () => this.copy(this.model.link(this.state), link, "Copy link"), row);
    }
    this.lasting = this.draws.length; // a build begins after these
    return make("div", {}, row, ...listing);
  }

  source(row) {
    const code = make("pre", { class: "al-code", hidden: true, tabindex: "0", "aria-label": "Python code" });
    const open = this.button("Copy as code", async () => {
      code.hidden = !code.hidden;
      code.textContent = this.spec.code(this.state);
      open.setAttribute("aria-expanded", String(!code.hidden));
      if (!code.hidden) await this.copy(code.textContent, open, "Copy as code");
    }, row);
    open.setAttribute("aria-expanded", "false");
    this.draws.push((state) => { if (!code.hidden) code.textContent = this.spec.code(state); });
    return code;
  }

  async copy(words, button, name) {
    try {
      await navigator.clipboard.writeText(words);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select and copy"; // the browser forbids writing to the clipboard
    }
    window.setTimeout(() => { button.textContent = name; }, 1500);
  }

  halt() { this.stops.forEach((stop) => stop()); }
}

// Turn a description into what anywidget, and our own host, call.
export function explorable(spec) {
  return {
    defaults: spec.defaults,
    render({ model, el }) {
      const kit = new Kit(model, el, spec);
      const hear = () => {
        if (kit.saving) return; // our own change is on its way
        kit.state = { ...kit.initial, ...model.get("state") };
        kit.schedule();
      };
      model.on("change:state", hear);
      const asked = (event) => kit.set(event.detail);
      el.addEventListener("al-state", asked);
      el.alDrawn = () => !kit.frame; // tests wait for what they asked
      el.dataset.ready = "true";
      return () => {
        kit.halt();
        window.cancelAnimationFrame(kit.frame);
        model.off("change:state", hear);
        el.removeEventListener("al-state", asked);
        kit.root.remove();
      };
    },
  };
}
