// A live page: an editor for each cell, one Python behind them, outputs that can do nothing.
import { codemirror, editor } from "./editor.js";
import { carried, digest, keep, kept, link, unpack } from "./kept.js";
import { Python } from "./python.js";
import { data as clean, formulas, safe } from "./safe.js";

const MIMES = ["text/html", "image/svg+xml", "image/png", "text/latex", "text/plain"];
const MOST_TEXT = 300_000, MOST_OUTPUTS = 400; // characters and outputs that a cell shows
const WAIT = 4000; // until a Python that does not stop is ended, milliseconds
const make = (tag, props = {}, ...inside) => {
  const { data = {}, ...rest } = props, el = Object.assign(document.createElement(tag), rest);
  Object.assign(el.dataset, data);
  el.append(...inside);
  return el;
};
const button = (words, what, call, label = "") => make("button", { type: "button", className: "live-button", textContent: words, ariaLabel: label || null, onclick: call, data: { do: what } });

export async function live(here, bar, pressed, said) {
  const say = (words) => { said.textContent = words; };
  const { cells: listed, told: places } = await page();
  const progress = make("progress", { max: 1, value: 0, ariaLabel: "Loading Python" });
  bar.append(progress);
  bar.classList.add("live-on");

  // -- what the page has ---------------------------------------------------------------------------
  const article = document.querySelector("article.bd-article");
  const words = [...article.querySelectorAll(".pasted-text")];
  const forms = {};
  places.forEach((place) => { if (place) (forms[place[0]] ??= []).push(place[1]); });
  let visible = 0;
  const pageCells = listed.map(({ index, code }) => {
    const el = article.querySelector(`div.cell.al-cell-${index}`), input = el?.querySelector(".cell_input");
    const seen = Boolean(input?.querySelector(".highlight"));
    return { id: `c${index}`, el, input: seen ? input : null, original: code, code, number: seen ? ++visible : 1000 + index };
  });
  pageCells.forEach((cell) => { cell.group = pageCells; });
  let waiting = [], busy = null, locked = false, begun = 0, failed = false;

  // -- Python --------------------------------------------------------------------------------------
  const find = (id) => busy && busy.id === id ? busy : null;
  const python = new Python(here, forms, {
    progress(loaded, total, what) {
      if (failed) return; // what failed stays to be read
      progress.hidden = false;
      progress.value = total ? loaded / total : 0;
      say(`${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB: ${what}`);
    },
    out(id, what) { const cell = find(id); if (cell) show(cell, what); },
    again(id) { const cell = find(id); if (cell) cell.fresh = true; },
    done(id, end, memory) { const cell = find(id); if (cell) done(cell, end, memory); },
    gone(text) {
      failed = true;
      progress.hidden = true;
      say(`Python could not start: ${text}. Run a cell to try again.`);
      waiting.forEach((cell) => cell.mark(""));
      if (busy) busy.mark("");
      [waiting, busy] = [[], null];
    },
  });
  function boot() {
    failed = false;
    python.start().then(({ python: version }) => {
      progress.hidden = true;
      bar.dataset.ready = version;
      bar.dataset.stops = String(python.interrupts);
      say(`Python ${version} is ready.`);
    }, () => {});
  }

  // -- running -------------------------------------------------------------------------------------
  // A cell needs what stands above it: what has not run as it is written now runs first.
  const needed = (cell) => [...cell.group.slice(0, cell.group.indexOf(cell)).filter((one) => one.ran !== one.code), cell];
  function ask(cells) {
    if (locked && cells.some((cell) => cell.strange)) {
      say("This page has code from the link. Read it, then say above whether it is to be used.");
      notice?.querySelector("button").focus();
      return;
    }
    if (failed) { python.end(); boot(); }
    cells.filter((cell) => cell !== busy && !waiting.includes(cell)).forEach((cell) => { waiting.push(cell); cell.mark("waits"); });
    next();
  }
  async function next() {
    if (busy || !waiting.length) return;
    const cell = waiting.shift();
    busy = cell;
    cell.mark("runs");
    try { await python.ready; } catch {
      if (busy === cell) { busy = null; cell.mark(""); }
      return;
    }
    if (busy !== cell) return;
    Object.assign(cell, { fresh: true, began: cell.code, shown: 0, letters: 0 });
    delete cell.holder.dataset.ran;
    cell.view?.wrong(0);
    begun = performance.now();
    python.run(cell.id, cell.code, cell.number);
  }
  function done(cell, end, memory) {
    busy = null;
    const seconds = (performance.now() - begun) / 1000, [word, why] = end.split(/: (.*)/s);
    cell.seconds = seconds;
    bar.dataset.memory = memory;
    progress.hidden = true;
    if (word === "skipped") {
      restore(cell);
      cell.mark(`needs a desk (${why})${cell.before.length ? "; the output is the build's" : ""}`);
    } else {
      if (cell.fresh) empty(cell);
      cell.mark(word === "ok" ? `ran in ${seconds.toFixed(1)} s` : "stopped with an error");
    }
    cell.ran = word === "error" ? null : cell.began;
    cell.holder.dataset.ran = word === "ok" || word === "skipped" ? word : "error";
    if (word === "error") {
      waiting.forEach((one) => one.mark(""));
      waiting = [];
    }
    const name = cell.number < 1000 ? `Cell ${cell.number}` : "A cell without code to see";
    say(word === "ok" ? `${name} ran in ${seconds.toFixed(1)} s.` : word === "skipped" ? `${name} needs a desk: ${why}.` : `${name} stopped: see below it.`);
    if (word === "error" && !cell.input) cell.holder.scrollIntoView({ block: "nearest" });
    next();
  }
  function stop() {
    waiting.forEach((cell) => cell.mark(""));
    waiting = [];
    const cell = busy;
    if (!cell) { say("Nothing runs."); return; }
    if (!python.interrupts) { end(cell); return; }
    python.interrupt();
    say("Stopping …");
    const stopped = begun;
    setTimeout(() => { if (busy === cell && begun === stopped) end(cell); }, WAIT); // not a later run of it
  }
  function end(cell) {
    python.end();
    busy = null;
    cell.mark("stopped");
    cell.holder.dataset.ran = "error";
    everything().forEach((one) => {
      if (!one.ran) return;
      one.ran = null;
      delete one.holder.dataset.ran;
      one.mark("must run again: Python was ended");
    });
    boot();
    python.ready.then(() => say("Stopped. Python had to start anew and its variables are gone: cells must run again."), () => {});
  }

  // -- outputs -------------------------------------------------------------------------------------
  function empty(cell) {
    cell.fresh = false;
    cell.tail = null;
    cell.out.replaceChildren();
    delete cell.out.dataset.from;
  }
  function restore(cell) {
    empty(cell);
    cell.out.replaceChildren(...cell.before);
    if (cell.before.length) cell.out.dataset.from = "build";
  }
  function box(cell, kind, ...inside) {
    const made = make("div", { className: `output live-out live-${kind}` }, ...inside);
    cell.out.append(made);
    return made;
  }
  function show(cell, what) {
    if (what.kind === "told") { tell(what); return; }
    if (cell.fresh) empty(cell);
    if (cell.shown > MOST_OUTPUTS) return;
    if (what.kind === "stream") { stream(cell, what.name === "stderr" ? "stderr" : "stdout", String(what.text)); return; }
    cell.tail = null;
    if (++cell.shown > MOST_OUTPUTS) {
      box(cell, "stderr", make("pre", { textContent: "This cell shows more than a page can hold." }));
    } else if (what.kind === "error") {
      const pre = make("pre", { tabIndex: 0, textContent: String(what.text).slice(0, MOST_TEXT) });
      box(cell, "error", pre).setAttribute("role", "group");
      pre.parentElement.setAttribute("aria-label", "Error");
      if (Number.isInteger(what.line)) cell.view?.wrong(what.line);
    } else if (what.kind === "display" && what.data && typeof what.data === "object") display(cell, what.data);
  }
  function stream(cell, name, text) {
    if (cell.letters > MOST_TEXT) return;
    cell.letters += text.length;
    if (cell.tail?.dataset.name !== name) {
      cell.tail = make("pre", { tabIndex: 0, data: { name } });
      box(cell, name, cell.tail);
    }
    const all = cell.tail.textContent + text.slice(0, MOST_TEXT);
    cell.tail.textContent = all.includes("\r") ? all.replace(/[^\n]*\r(?!\n)/g, "") : all; // progress bars write over their line
  }
  let counter = 0;
  function display(cell, given) {
    const mime = MIMES.find((one) => typeof given[one] === "string");
    if (!mime) return;
    const text = given[mime];
    if (mime === "text/plain") box(cell, "text", make("pre", { tabIndex: 0, textContent: text.slice(0, MOST_TEXT) }));
    else if (mime === "text/latex") {
      const made = box(cell, "latex", formulas(text.slice(0, MOST_TEXT)));
      typeset(made);
    } else if (mime === "image/png") {
      if (/^[A-Za-z0-9+/=\s]+$/.test(text)) box(cell, "image", make("img", { src: `data:image/png;base64,${text}`, alt: String(given["text/plain"] ?? "a picture") }));
    } else if (mime === "image/svg+xml") { // as a picture: no script of it runs
      const address = URL.createObjectURL(new Blob([text], { type: mime }));
      box(cell, "image", make("img", { src: address, alt: String(given["text/plain"] ?? "a figure"), onload: () => URL.revokeObjectURL(address) }));
    } else {
      const { nodes, mounts } = safe(text, `live-${++counter}-`);
      const made = box(cell, "html", nodes);
      mounts.forEach((one) => mount(cell, one, made, given.key));
    }
  }
  // Formulas one output after the other: MathJax cannot do two at a time.
  let typesetting = Promise.resolve();
  function typeset(el) {
    typesetting = typesetting.then(() => window.MathJax?.startup?.promise).then(() => el.isConnected && window.MathJax?.typesetPromise?.([el])).catch(() => {});
    return typesetting;
  }
  // Exercises that are the same keep what the reader did; explorables report to Python.
  function mount(cell, { el, kind, name, told }, made, key) {
    made.classList.add("live-alive");
    if (kind === "exercise") {
      const old = cell.before.flatMap((node) => (node.querySelectorAll ? [...node.querySelectorAll(`[data-exercise="${name}"]`)] : []))[0];
      const script = old?.querySelector(':scope > script[type="application/json"]');
      if (script && JSON.stringify(clean(JSON.parse(script.textContent), true)) === JSON.stringify(told)) { el.replaceWith(old); return; }
      typeset(el).then(() => el.dispatchEvent(new CustomEvent("attnlab:mount", { bubbles: true })));
      return;
    }
    let moved = {};
    if (cell.code === cell.original) { // what the reader already moved on the page
      try { moved = clean(JSON.parse(new URLSearchParams(location.search).get(name) ?? "{}")); } catch { /* mangled */ }
    }
    el.alLive = { state: moved, changed: (state) => { if (typeof key === "string") python.state(key, { ...state }); } };
    if (Object.keys(moved).length && typeof key === "string") python.state(key, { ...told.state, ...moved });
    const others = document.querySelectorAll(`[id="${el.id}"]`).length;
    if (others > 1) el.id = `${el.id}-${++counter}`;
    el.dispatchEvent(new CustomEvent("attnlab:mount", { bubbles: true })); // host.js listens
  }
  // A number that a cell tells: the page's words say it.
  function tell({ name, texts }) {
    if (words.length !== places.length || !texts) return;
    places.forEach((place, k) => {
      const text = place && place[0] === name ? texts[place[1]] : undefined;
      if (typeof text === "string" && words[k].textContent !== text) words[k].textContent = text.slice(0, 200);
    });
  }

  // -- cells ---------------------------------------------------------------------------------------
  const CM = await codemirror(await (boot(), python.file(here.editor)));
  const extra = []; // of the scratch page
  const everything = () => [...pageCells, ...extra];
  const changed = () => Object.fromEntries(pageCells.filter((cell) => cell.code !== cell.original)
    .map((cell) => [cell.id, { was: digest(cell.original), code: cell.code }]));
  let own = kept();
  const store = () => {
    // what came by the link and was not taken over stays out of what is kept
    const mine = Object.fromEntries(Object.entries(changed()).filter(([id]) => !pageCells.find((cell) => cell.id === id).strange));
    if (!keep({ ...mine, ...scratch.kept() })) say("This browser keeps nothing: your changes are gone when the page is closed.");
    const count = Object.keys(changed()).length;
    undo.textContent = count ? `Undo all edits (${count})` : "Undo all edits";
    undo.disabled = !count;
  };
  function prepare(cell) {
    cell.holder = cell.el ?? make("div");
    if (!cell.el) cell.holder.className = "cell live-hidden"; // its output is nowhere; its errors are
    const label = cell.number < 1000 ? `cell ${cell.number}` : "a cell without code";
    cell.out = cell.holder.querySelector(".cell_output") ?? cell.holder.appendChild(make("div", { className: "cell_output docutils container" }));
    cell.before = [...cell.out.childNodes];
    if (cell.before.length) cell.out.dataset.from = "build";
    const mark = make("span", { className: "live-mark" });
    cell.mark = (text) => { mark.textContent = text || (cell.code !== cell.original ? "changed" : ""); cell.holder.dataset.state = text.split(" ")[0]; };
    cell.ran = null;
    if (!cell.input) {
      if (!cell.el) {
        const near = pageCells.slice(0, pageCells.indexOf(cell)).reverse().find((one) => one.el);
        if (near) near.el.after(cell.holder); else bar.after(cell.holder);
      }
      return;
    }
    const place = make("div", { className: "highlight live-editor" });
    cell.input.querySelector(".highlight").replaceWith(place);
    place.addEventListener("keydown", (event) => event.stopPropagation()); // Sphinx takes "/" for its search
    cell.view = editor(CM, place, cell.code, `Code of ${label}. Shift and Enter runs it; Tab leaves it.`, {
      run(on) {
        ask(needed(cell));
        if (on) cell.group.slice(cell.group.indexOf(cell) + 1).find((one) => one.view)?.view.focus();
      },
      change(code) {
        cell.code = code;
        cell.mark("");
        (cell.store ?? store)();
      },
    });
    cell.bar = make("div", { className: "live-bar" },
      button("Run", "run", () => ask(needed(cell)), `Run ${label}, and what it needs above it`),
      button("Run to here", "run-to", () => ask(cell.group.slice(0, cell.group.indexOf(cell) + 1)), `Run everything down to ${label}`),
      button("Reset", "reset", () => reset(cell), `Undo what was changed in ${label}`), mark);
    cell.input.after(cell.bar);
    if (cell.before.length) mark.textContent = "the output is the build's";
  }
  function reset(cell) {
    if (cell.code !== cell.original) cell.view.put(cell.original);
    cell.strange = false;
    cell.ran = null;
    if (cell !== busy) {
      restore(cell);
      delete cell.holder.dataset.ran;
      cell.view?.wrong(0);
      cell.mark(cell.before.length ? "the output is the build's" : "");
    }
    store();
  }

  let strangers = {};
  if (carried()) { try { strangers = await unpack(carried()); } catch { say("The code in this address could not be read."); } }
  let old = 0;
  pageCells.forEach((cell) => {
    if (cell.input) {
      const given = strangers[cell.id] ?? own[cell.id];
      if (given && given.was !== digest(cell.original)) old += 1;
      else if (given) cell.code = given.code;
      cell.strange = Boolean(strangers[cell.id]) && cell.code !== cell.original;
    }
    prepare(cell);
    if (cell.code !== cell.original) cell.mark(cell.strange ? "from the link: read it before you run it" : "");
  });
  const undo = button("Undo all edits", "undo-all", () => pageCells.filter((cell) => cell.input && cell.code !== cell.original).forEach(reset));
  const share = button("Copy a link to my code", "link", async () => {
    const address = await link(changed());
    bar.dataset.link = address;
    try {
      await navigator.clipboard.writeText(address);
      say("The link is on the clipboard. Whoever opens it sees your code and decides whether it runs.");
    } catch {
      history.replaceState(history.state, "", address);
      say("The link stands in this page's address.");
    }
  });
  const all = button("Run all", "run-all", () => ask(pageCells));
  pressed.replaceWith(all, button("Stop", "stop", stop), undo, share);

  // -- code that came by a link ----------------------------------------------------------------------
  let notice = null;
  if (pageCells.some((cell) => cell.strange)) {
    locked = true;
    const numbers = pageCells.filter((cell) => cell.strange).map((cell) => cell.number).join(", ");
    const settle = (take) => {
      pageCells.filter((cell) => cell.strange).forEach((cell) => {
        if (!take) {
          const mine = own[cell.id];
          cell.view.put(mine && mine.was === digest(cell.original) ? mine.code : cell.original);
        }
        cell.strange = false;
        cell.mark("");
      });
      locked = false;
      notice.remove();
      notice = null;
      store();
      all.focus();
    };
    notice = make("div", { className: "live-notice" },
      make("p", { textContent: `The link changed the code of cell ${numbers}. It has not run. Read it below; it is somebody else's.` }),
      make("div", { className: "live-bar" },
        button("Use the link's code", "take", () => settle(true)), button("Use the page's own", "refuse", () => settle(false))));
    notice.setAttribute("role", "group");
    notice.setAttribute("aria-label", "Code from the link");
    bar.after(notice);
  }
  const scratch = await notebook();
  store();
  if (old) say(`${old} kept ${old > 1 ? "changes belong" : "change belongs"} to an older version of this page and ${old > 1 ? "are" : "is"} not shown.`);
  bar.dataset.editors = String(visible);
  (notice ?? bar).querySelector("button").focus({ preventScroll: true });

  // -- the scratch page ------------------------------------------------------------------------------
  async function notebook() {
    const home = article.querySelector(".al-scratch");
    if (!home) return { kept: () => ({}) };
    const { scratchpad } = await import("./scratch.js");
    return scratchpad({ home, own, extra, make, button, prepare, store: () => store(), ask, needed, examples: pageCells.filter((cell) => cell.input), busy: () => busy, drop: (cell) => { waiting = waiting.filter((one) => one !== cell); } });
  }
}

// The cells of this page and the places of its told numbers, as they were built.
async function page() {
  const root = new URL("../", import.meta.url).pathname;
  const name = decodeURIComponent(location.pathname.slice(root.length)).replace(/\.html$/, "").replace(/(^|\/)$/, "$1index");
  const answer = await fetch(new URL(`pages/${name}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`the cells of ${name} are not on this site`);
  return answer.json();
}
