// One drawing surface for planes and plots: SVG elements kept by name and moved, never rebuilt.

import { label as labelled, plain, tens } from "./view.js";

const SPACE = "http://www.w3.org/2000/svg";
const MARKS = {
  circle: (r) => `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`,
  square: (r) => `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  triangle: (r) => `M0,${-1.2 * r}L${1.1 * r},${0.8 * r}H${-1.1 * r}z`,
  diamond: (r) => `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`,
  cross: (r) => `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`,
};

export function svg(tag, attributes = {}, parent = null) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
}

const short = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e4 || size < 1e-2) {
    const power = Math.floor(Math.log10(size) + 1e-9);
    const lead = Number((value / 10 ** power).toFixed(1));
    return lead === 1 ? `1e${power}` : `${lead}e${power}`;
  }
  return String(Number(value.toPrecision(3)));
};

const clip = (value) => Math.max(-1e5, Math.min(1e5, Number.isFinite(value) ? value : 0));

// options: {label, x: {range, log, label, ticks, show}, y: the same, square, height}
export class Chart {
  constructor(parent, options) {
    this.options = options;
    this.square = Boolean(options.square);
    this.bare = Boolean(options.bare);
    this.width = 360;
    this.height = this.square ? 360 : options.height || 250;
    this.pad = this.bare ? [6, 6, 6, 6] : [12, 14, 40, 50]; // top, right, bottom, left
    this.root = svg("svg", {
      viewBox: `0 0 ${this.width} ${this.height}`, role: "group",
      "aria-label": plain(options.label || ""), class: "al-chart",
    }, parent);
    this.ground = svg("g", { class: "al-axes", "aria-hidden": "true" }, this.root);
    const name = `al-clip-${Math.random().toString(36).slice(2)}`;
    const window = svg("clipPath", { id: name }, svg("defs", {}, this.root));
    this.window = svg("rect", {}, window);
    this.body = svg("g", { "clip-path": `url(#${name})`, "aria-hidden": "true" }, this.root);
    this.front = svg("g", {}, this.root);
    this.items = new Map();
    this.seen = new Set();
    this.range({ x: options.x?.range || [-1, 1], y: options.y?.range || [-1, 1] });
  }

  // Axes: new ranges redraw ticks and grid; the same ranges cost nothing.
  range({ x = this.x, y = this.y }) {
    const key = JSON.stringify([x, y]);
    if (key === this.key) return this;
    [this.x, this.y, this.key] = [x, y, key];
    const [top, right, bottom, left] = this.pad;
    this.box = [left, top, this.width - right, this.height - bottom];
    const [x0, y0, x1, y1] = this.box;
    const box = { x: x0 - 6, y: y0, width: x1 - x0 + 12, height: y1 - y0 }; // marks at an end stay whole
    Object.entries(box).forEach(([name, value]) => this.window.setAttribute(name, value));
    this.ground.replaceChildren();
    for (const axis of ["x", "y"]) this.axis(axis);
    return this;
  }

  axis(axis) {
    const { label, hide, show = short } = this.options[axis] || {};
    const [x0, y0, x1, y1] = this.box;
    for (const value of hide ? [] : this.ticks(axis)) {
      const at = axis === "x" ? this.sx(value) : this.sy(value);
      const ends = axis === "x" ? { x1: at, x2: at, y1: y0, y2: y1 } : { x1: x0, x2: x1, y1: at, y2: at };
      svg("line", { ...ends, class: value === 0 ? "al-zero" : "al-grid" }, this.ground);
      if (this.bare) continue;
      const place = axis === "x"
        ? { x: at, y: y1 + 15, "text-anchor": "middle" }
        : { x: x0 - 6, y: at + 4, "text-anchor": "end" };
      svg("text", { ...place, class: "al-tick" }, this.ground).textContent = tens(show(value)).replaceAll("\u00a0", "");
    }
    if (!label || this.bare) return;
    const place = axis === "x"
      ? { x: (x0 + x1) / 2, y: this.height - 5, "text-anchor": "middle" }
      : { transform: `translate(12 ${(y0 + y1) / 2}) rotate(-90)`, "text-anchor": "middle" };
    svg("text", { ...place, class: "al-label" }, this.ground).innerHTML = labelled(label);
  }

  ticks(axis) {
    const [low, high] = this[axis];
    const given = this.options[axis]?.ticks;
    if (given) return given.filter((value) => value >= low && value <= high);
    if (this.options[axis]?.log) {
      const powers = [];
      const span = Math.log10(high / low);
      const every = Math.max(1, Math.ceil(span / 5));
      for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p += every) {
        powers.push(10 ** p);
      }
      return powers;
    }
    const rough = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((value) => value >= rough);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  }

  scale(axis, value, from, to) {
    const [low, high] = this[axis];
    const log = this.options[axis]?.log;
    const share = log
      ? Math.log(Math.max(value, 1e-300) / low) / Math.log(high / low)
      : (value - low) / (high - low);
    return clip(from + share * (to - from));
  }

  sx(value) { return this.scale("x", value, this.box[0], this.box[2]); }

  sy(value) { return this.scale("y", value, this.box[3], this.box[1]); }

  // From a pointer event to coordinates of the plane.
  at(event) {
    const place = this.root.getBoundingClientRect();
    const px = ((event.clientX - place.left) / place.width) * this.width;
    const py = ((event.clientY - place.top) / place.height) * this.height;
    const share = (value, from, to) => (value - from) / (to - from);
    const [x0, y0, x1, y1] = this.box;
    return [
      this.x[0] + share(px, x0, x1) * (this.x[1] - this.x[0]),
      this.y[0] + share(py, y1, y0) * (this.y[1] - this.y[0]),
    ];
  }

  item(id, tag, layer = this.body) {
    let node = this.items.get(id);
    if (!node) {
      node = svg(tag, {}, layer);
      this.items.set(id, node);
    }
    this.seen.add(id);
    node.style.display = "";
    return node;
  }

  // What is not drawn again between begin() and end() disappears.
  begin() { this.seen = new Set(); return this; }

  end() {
    for (const [id, node] of this.items) if (!this.seen.has(id)) node.style.display = "none";
  }

  line(id, xs, ys, { series = 0, dash = "", width = 2, faint = false } = {}) {
    const node = this.item(id, "path");
    let d = "";
    let pen = "M";
    for (let k = 0; k < xs.length; k++) {
      if (!Number.isFinite(ys[k]) || !Number.isFinite(xs[k])) { pen = "M"; continue; }
      d += `${pen}${this.sx(xs[k]).toFixed(1)},${this.sy(ys[k]).toFixed(1)}`;
      pen = "L";
    }
    node.setAttribute("d", d);
    node.setAttribute("class", `al-line al-s${series}${faint ? " al-faint" : ""}`);
    node.setAttribute("stroke-width", width);
    node.setAttribute("stroke-dasharray", dash);
    return this;
  }

  arrow(id, from, to, options = {}) {
    const [x0, y0, x1, y1] = [this.sx(from[0]), this.sy(from[1]), this.sx(to[0]), this.sy(to[1])];
    const node = this.item(id, "path");
    const angle = Math.atan2(y1 - y0, x1 - x0);
    const size = Math.min(9, Math.hypot(x1 - x0, y1 - y0) / 2);
    const wing = (turn) => `${x1 - size * Math.cos(angle + turn)},${y1 - size * Math.sin(angle + turn)}`;
    node.setAttribute("d", `M${x0},${y0}L${x1},${y1}M${wing(0.45)}L${x1},${y1}L${wing(-0.45)}`);
    node.setAttribute("class", `al-line al-s${options.series || 0}`);
    node.setAttribute("stroke-width", options.width || 2.5);
    node.setAttribute("stroke-dasharray", options.dash || "");
    return this;
  }

  mark(id, x, y, { series = 0, shape = "circle", size = 5, hollow = false, glow = false } = {}) {
    const node = this.item(id, "path");
    node.setAttribute("d", MARKS[shape](size));
    node.setAttribute("transform", `translate(${this.sx(x)} ${this.sy(y)})`);
    node.setAttribute("class", `al-mark al-s${series}${hollow ? " al-hollow" : ""}${glow ? " al-glow" : ""}`);
    return this;
  }

  rect(id, [x0, y0], [x1, y1], { series = 0, strength = 1, title = "" } = {}) {
    const node = this.item(id, "rect");
    const [left, right] = [this.sx(x0), this.sx(x1)].sort((a, b) => a - b);
    const [top, bottom] = [this.sy(y0), this.sy(y1)].sort((a, b) => a - b);
    const box = { x: left, y: top, width: right - left, height: bottom - top };
    Object.entries(box).forEach(([name, value]) => node.setAttribute(name, value));
    node.setAttribute("class", `al-area al-s${series}`);
    node.setAttribute("fill-opacity", strength);
    if (title) node.setAttribute("data-title", title);
    return this;
  }

  text(id, x, y, words, { series = null, anchor = "start", dx = 0, dy = 0 } = {}) {
    const node = this.item(id, "text", this.front);
    const inner = labelled(words);
    if (node.alWords !== inner) node.innerHTML = node.alWords = inner;
    node.setAttribute("x", this.sx(x) + dx);
    node.setAttribute("y", this.sy(y) + dy);
    node.setAttribute("text-anchor", anchor);
    node.setAttribute("class", series === null ? "al-words" : `al-words al-s${series}`);
    return this;
  }

  // A point to drag by mouse, touch or arrow keys. `move(x, y)` sets, `tell()` describes.
  handle(id, { series = 0, shape = "circle", size = 9, label, move, tell, press }) {
    const node = svg("g", {
      class: `al-handle al-s${series}`, tabindex: "0", role: press ? "button" : "slider",
      "aria-label": label, "data-handle": id,
    }, this.front);
    svg("circle", { r: 22, class: "al-reach" }, node); // what a thumb can hit
    svg("circle", { r: size + 6, class: "al-halo" }, node); // seen where it glows
    const shown = svg("path", { d: MARKS[shape](size) }, node);
    const chart = this;
    let place = [0, 0];
    const go = (x, y) => {
      const inside = (value, [low, high]) => Math.min(high, Math.max(low, value));
      place = [inside(x, chart.x), inside(y, chart.y)]; // the next event may come before the drawing
      move(...place);
    };
    if (move) {
      node.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        node.focus({ preventScroll: true });
        node.setPointerCapture(event.pointerId);
        const [x, y] = chart.at(event);
        const offset = [place[0] - x, place[1] - y];
        const follow = (later) => {
          const [u, v] = chart.at(later);
          go(u + offset[0], v + offset[1]);
        };
        const stop = () => {
          node.removeEventListener("pointermove", follow);
          node.removeEventListener("pointerup", stop);
          node.removeEventListener("pointercancel", stop);
        };
        node.addEventListener("pointermove", follow);
        node.addEventListener("pointerup", stop);
        node.addEventListener("pointercancel", stop);
      });
    }
    node.addEventListener("keydown", (event) => {
      if (press && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        event.stopPropagation();
        press();
        return;
      }
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!way || !move) return;
      event.preventDefault();
      event.stopPropagation(); // JupyterLab would take the key for itself
      const size = (event.shiftKey ? 0.1 : 0.02) * (chart.x[1] - chart.x[0]);
      go(place[0] + way[0] * size, place[1] + way[1] * size);
    });
    if (press) node.addEventListener("click", press);
    return {
      node,
      put(x, y, { look = series, form = shape, glow = false, chosen = null } = {}) {
        place = [x, y];
        node.setAttribute("transform", `translate(${chart.sx(x)} ${chart.sy(y)})`);
        node.setAttribute("class", `al-handle al-s${look}${glow ? " al-glow" : ""}`);
        shown.setAttribute("d", MARKS[form](size));
        if (chosen !== null) node.setAttribute("aria-pressed", String(chosen));
        if (!press) {
          node.setAttribute("aria-valuetext", tell ? tell() : `${x.toFixed(2)}, ${y.toFixed(2)}`);
          node.setAttribute("aria-valuenow", x.toFixed(2));
        }
      },
    };
  }
}
