// A derivation: the steps are list items in the page's own text, so that it reads, prints and is
// found without a script. This adds one step at a time, both sides as bars over data under the
// hand, a switch for each hypothesis, the first step that fails in red, and what each step gave
// away. See README.md, "Derivations".

import { Kit, make } from "./kit.js";
import { heardWaterfall, holds, legend, sides, spoken, strip, waterfall } from "./sides.js";
import { html, plain, view } from "./view.js";

const VERDICTS = { yes: "holds here", soon: "not yet", no: "fails here", unreached: "not reached" };

class Walk extends Kit {
  constructor(model, list, spec) {
    const box = list.closest(".al-derive") || list.parentElement;
    const title = box.querySelector(".al-derive-title");
    super(model, box, { ...spec, name: spec.id, title: title ? title.textContent : spec.title || "Derivation" });
    delete box.dataset.explorable;
    this.list = list;
    this.root.classList.add("al-walk");
    this.items = [...list.children];
    this.keys = this.items.map((item) => item.dataset.key);
    const missing = Object.keys(spec.steps).filter((key) => !this.keys.includes(key));
    const unknown = this.keys.filter((key) => !spec.steps[key]);
    if (missing.length || unknown.length) throw new Error(`${spec.id}: steps ${[...missing, ...unknown]} are not on both, page and module`);
    this.initial.step = this.keys[0];
    if (!this.keys.includes(this.state.step)) this.state.step = this.keys[0];
    if (!Array.isArray(this.state.drop)) this.state.drop = [];
    const [head] = this.root.children;
    if (title) head.replaceWith(title);
    const given = box.querySelector(".al-hypotheses");
    const before = box.querySelector(".al-given");
    this.main.append(...[before, given].filter(Boolean), list);
    this.readout.remove();
    this.switches(given ? [...given.children] : []);
    this.panel();
    this.numbers();
    this.slack();
    this.draws.unshift(() => this.compute());
  }

  // The parts are built once, by the constructor: nothing here is sealed.
  build() {}

  // -- parts -----------------------------------------------------------------------------------
  switches(items) {
    this.hypotheses = items.map((item) => {
      const key = item.dataset.hypothesis;
      if (!this.spec.hypotheses[key]) throw new Error(`${this.spec.id}: hypothesis ${key} is not in the module`);
      const input = make("input", { type: "checkbox", role: "switch", checked: true, "aria-label": `assume: ${plain(item.dataset.told)}` });
      const words = make("span", {});
      words.append(...item.childNodes);
      const state = make("span", { class: "al-switch-word", "aria-hidden": "true" });
      const instead = make("span", {});
      const see = make("button", { type: "button", class: "al-quiet" }); // on a phone the step is far below
      see.addEventListener("click", () => {
        this.go(this.keys.indexOf(this.failed));
        const number = this.buttons[this.keys.indexOf(this.failed)];
        number.focus({ preventScroll: true });
        number.scrollIntoView({ block: "center" });
      });
      item.append(make("label", { class: "al-switch" }, input, state, words), make("p", { class: "al-dropped" }, instead, " ", see));
      input.addEventListener("change", () => this.assume(key, input.checked));
      return { key, input, item, instead, state, see };
    });
  }

  // Dropping one leads to the first step that fails.
  assume(key, wanted) {
    const drop = this.state.drop.filter((other) => other !== key);
    if (!wanted) drop.push(key);
    const { failed } = this.judged({ ...this.state, drop });
    this.set({ drop, ...(failed ? { step: failed } : {}) });
  }

  numbers() {
    this.buttons = this.items.map((item, k) => {
      const button = make("button", { type: "button", class: "al-step-number" }, String(k + 1));
      button.addEventListener("click", () => this.go(k));
      button.addEventListener("keydown", (event) => {
        const to = { ArrowDown: k + 1, ArrowUp: k - 1, Home: 0, End: this.items.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        this.go(to);
        this.buttons[Math.max(0, Math.min(this.items.length - 1, to))].focus();
      });
      item.prepend(button);
      return button;
    });
  }

  go(k) {
    this.set({ step: this.keys[Math.max(0, Math.min(this.keys.length - 1, k))] });
  }

  // What stands in the current step: the data under the hand, both sides, the verdict, the way on.
  panel() {
    const [hand, both] = [make("div", { class: "al-hand" }), make("div", { class: "al-both" })];
    this.names = make("p", { class: "al-sides", "aria-hidden": "true" });
    const bars = make("div", { class: "al-bars" });
    const curve = make("div", { class: "al-strip" });
    this.told = make("p", { class: "al-said" });
    both.append(this.names, bars, curve, this.told);
    const way = make("div", { class: "al-way" });
    this.shown = make("div", { class: "al-panel" }, make("div", { class: `al-panel-row${this.spec.beside ? " al-beside" : ""}` }, hand, both), way);
    this.back = this.button("Back", () => this.go(this.keys.indexOf(this.state.step) - 1), way);
    this.next = this.button("Next step", () => this.go(this.keys.indexOf(this.state.step) + 1), way);
    this.whole = this.button("All reasons", () => this.set({ all: !this.state.all }), way);
    this.bars = view(bars, () => spoken(this.now()), (width) => sides(this.now(), width));
    this.curve = view(curve, () => plain(this.curved?.heard || ""), (width) => this.drawCurve(width));
    this.curveHost = curve;
    if (this.spec.data) {
      const draw = this.spec.data(this, hand);
      if (draw) this.draws.push((state) => draw(state, this.situation, this.now()));
    } else hand.remove();
    this.draws.push(() => this.show());
  }

  drawCurve(width) {
    const curve = this.curved;
    if (!curve) return { height: 0, inner: "" };
    const drawn = strip(curve, width);
    return { height: drawn.height, inner: drawn.inner + (curve.dots || []).map(([v, which]) => drawn.dot(v, which)).join("") };
  }

  slack() {
    if (!this.spec.waterfall) return;
    this.fallHost = make("div", { class: "al-fall-bars" });
    this.fallSay = make("p", { class: "al-said" });
    const heading = make("p", { class: "al-fall-title" }, "What each step gave away");
    this.main.append(make("div", { class: "al-fall" }, heading, this.fallHost, this.fallSay));
    this.fall = view(this.fallHost, () => (this.fallen ? heardWaterfall(this.fallen) : ""), (width) => {
      const numbers = Object.fromEntries(this.keys.map((key, k) => [key, k + 1]));
      return this.fallen ? waterfall({ ...this.fallen, numbers }, width) : { height: 0, inner: "" };
    });
  }

  // -- what holds ------------------------------------------------------------------------------
  judged(state) {
    const situation = this.spec.situation({ ...this.spec.defaults, ...state, dropped: new Set(state.drop) });
    const { results, failed } = judge(this.spec, this.keys, situation);
    return { situation, results, failed };
  }

  compute() {
    Object.assign(this, this.judged(this.state));
    const broken = this.failed || this.state.drop.length;
    this.fallen = this.spec.waterfall && !this.failed ? this.spec.waterfall(this.situation) : null;
    if (this.fallSay) {
      const words = this.fallen ? this.fallen.say || "" : `Step ${this.keys.indexOf(this.failed) + 1} fails${broken ? "" : " here"}: there is nothing to give away.`;
      this.fallSay.innerHTML = html(words);
    }
  }

  now() { return this.results[this.keys.indexOf(this.state.step)]; }

  // -- what is seen ----------------------------------------------------------------------------
  show() {
    const { step, drop, all } = this.state;
    const k = this.keys.indexOf(step);
    const moves = this.shown.parentElement !== this.items[k];
    const held = moves && this.list.contains(document.activeElement) ? document.activeElement : null;
    const stood = held?.getBoundingClientRect().top;
    this.items.forEach((item, j) => {
      const { ok } = this.results[j];
      item.classList.toggle("al-now", j === k);
      item.dataset.verdict = ok;
      this.buttons[j].setAttribute("aria-label", `step ${j + 1} of ${this.keys.length}, ${VERDICTS[ok]}`);
      this.buttons[j].setAttribute("aria-current", j === k ? "step" : "false");
    });
    this.back.disabled = k === 0;
    this.next.disabled = k === this.keys.length - 1;
    if (moves) this.items[k].append(this.shown);
    if (held) { // what was pressed stays under the finger, and keeps the focus
      const kept = !held.disabled ? held : held === this.next ? this.back : this.next;
      kept.focus({ preventScroll: true });
      window.scrollBy(0, kept.getBoundingClientRect().top - stood);
    }
    this.hypotheses.forEach(({ key, input, item, instead, state, see }) => {
      const dropped = drop.includes(key);
      input.checked = !dropped;
      state.textContent = dropped ? "dropped" : "assumed";
      item.classList.toggle("al-is-dropped", dropped);
      instead.parentElement.hidden = !dropped;
      instead.innerHTML = dropped ? html(this.spec.hypotheses[key].dropped) : "";
      see.hidden = !this.failed;
      see.textContent = `Step ${this.keys.indexOf(this.failed) + 1} fails.`;
    });
    const result = this.now();
    const failed = this.keys.indexOf(this.failed);
    const words = result.ok === "unreached" ? `Not reached: step ${failed + 1} fails before it.` : result.say;
    const mark = { yes: "Holds. ", soon: "Not yet. ", no: "Fails. ", unreached: "" }[result.ok];
    this.names.innerHTML = result.names && result.rows.length ? legend(result.names) : "";
    this.bars.update();
    this.curved = result.curve ? result.curve() : null;
    this.curveHost.hidden = !this.curved;
    if (this.curved) this.curve.update();
    this.told.innerHTML = `<strong>${mark}</strong>${html(words || "")}`;
    this.told.dataset.verdict = result.ok;
    this.tell(`Step ${k + 1}. ${mark}${plain(words || "")}`);
    this.root.classList.toggle("al-all", Boolean(all));
    this.whole.setAttribute("aria-pressed", String(Boolean(all)));
    if (this.fall) {
      this.fallHost.hidden = !this.fallen;
      if (this.fallen) this.fall.update();
    }
    Object.assign(this.list.dataset, { step, failed: this.failed || "", dropped: drop.join(" ") });
  }

  tell(words) {
    if (this.heard === words) return;
    this.heard = words;
    window.clearTimeout(this.telling);
    this.telling = window.setTimeout(() => { this.live.textContent = words; }, 500);
  }
}

// Each step's two sides and whether they hold; after the first that fails nothing is reached.
export function judge(spec, keys, situation) {
  let failed = null;
  const results = keys.map((key) => {
    if (failed) return { names: null, rows: [], ok: "unreached", say: "" };
    const result = { rows: [], say: "", ...spec.steps[key](situation) };
    result.ok ||= result.rows.every(holds) ? "yes" : "no";
    if (result.ok === "no") failed = key;
    return result;
  });
  return { results, failed };
}

// What a module of derivations/ exports by default.
export function derivation(spec) {
  const full = { hypotheses: {}, ...spec, defaults: { step: null, drop: [], all: false, ...spec.defaults } };
  return {
    ...full,
    judge: (state) => {
      const situation = full.situation({ ...full.defaults, ...state, dropped: new Set(state.drop || []) });
      return { situation, ...judge(full, Object.keys(full.steps), situation) };
    },
    render({ model, el }) {
      const walk = new Walk(model, el, full);
      walk.draw();
      el.dataset.ready = "true";
      return walk;
    },
  };
}
