// A live page: an editor for each cell, one Python behind them, outputs that can do nothing.
import { codemirror, editor } from "./editor.js";
import { carried, digest, Kept, link, NOTEBOOK, strip, unpack } from "./kept.js";
import { Python } from "./python.js";
import { data as clean, drawing, formulas, legible, quick, safe } from "./safe.js";

const MIMES = ["text/html", "image/svg+xml", "image/png", "text/latex", "text/plain"];
// What one run of a cell shows: outputs, characters of text, elements, characters of formulas,
// explorables and exercises.
const MOST = { outputs: 400, text: 300_000, nodes: 30_000, formulas: 6_000, mounts: 12 };
const PIXELS = 30_000_000; // of one picture
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
  const names = new Set(await (await fetch(new URL("../explorables/names.json", import.meta.url))).json()); // of explorables
  const progress = make("progress", { max: 1, value: 0, ariaLabel: "Loading Python" });
  bar.append(progress);
  bar.classList.add("live-on");

  // -- what the page has ---------------------------------------------------------------------------
  const article = document.querySelector("article.bd-article");
  const words = [...article.querySelectorAll(".pasted-text")];
  const built = words.map((word) => word.textContent);
  const forms = {};
  places.forEach((place) => { if (place) (forms[place[0]] ??= []).push(place[1]); });
  let visible = 0;
  const pageCells = listed.map(({ index, code }) => {
    const el = article.querySelector(`div.cell.al-cell-${index}`), input = el?.querySelector(".cell_input");
    const seen = Boolean(input?.querySelector(".highlight"));
    return { id: `c${index}`, el, input: seen ? input : null, original: code, code, number: seen ? ++visible : 1000 + index };
  });
  pageCells.forEach((cell) => { cell.group = pageCells; });
  let waiting = [], busy = null, begun = 0, failed = false;

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
    much(id) { const cell = find(id); if (cell) full(cell); },
    flood() {
      const cell = busy;
      end(cell);
      if (cell) box(cell, "stderr", make("pre", { textContent: "Python was ended: it sent far more than a page can show." }));
    },
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
    Object.assign(cell, { fresh: true, began: cell.code, shown: 0, left: { ...MOST }, full: false });
    delete cell.holder.dataset.ran;
    cell.view?.wrong(0);
    begun = performance.now();
    python.run(cell.id, cell.code, cell.number);
  }
  function done(cell, end, memory) {
    busy = null;
    paint(cell.tail);
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
    waiting = [];
    if (cell) {
      paint(cell.tail);
      cell.mark("stopped");
      cell.holder.dataset.ran = "error";
    }
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
  // A page can hold only so much of one run; Python's own caps can be passed by.
  function full(cell) {
    if (cell.full) return;
    if (cell.fresh) empty(cell);
    cell.full = true;
    box(cell, "stderr", make("pre", { textContent: "This cell shows more than a page can hold; the rest is left out." }));
  }
  // As much of `text` as is left of the run's share.
  function allot(cell, kind, text) {
    const taken = text.slice(0, cell.left[kind]);
    cell.left[kind] -= taken.length;
    return legible(taken);
  }
  function show(cell, what) {
    if (!what || typeof what !== "object") return;
    if (what.kind === "told") { tell(what); return; }
    if (cell.full) return;
    if (cell.fresh) empty(cell);
    if (what.kind === "stream") stream(cell, what.name === "stderr" ? "stderr" : "stdout", String(what.text));
    else {
      paint(cell.tail);
      cell.tail = null;
      if (cell.left.outputs-- <= 0) { full(cell); return; }
      if (what.kind === "error") error(cell, String(what.text), what.line);
      else if (what.kind === "display" && what.data && typeof what.data === "object") display(cell, what.data);
    }
    if (cell.left.text <= 0 || cell.left.nodes <= 0) {
      paint(cell.tail);
      full(cell);
    }
  }
  function error(cell, text, line) {
    const pre = make("pre", { tabIndex: 0, textContent: allot(cell, "text", text) });
    box(cell, "error", pre).setAttribute("role", "group");
    pre.parentElement.setAttribute("aria-label", "Error");
    if (Number.isInteger(line)) cell.view?.wrong(line);
  }
  function stream(cell, name, text) {
    if (cell.tail?.dataset.name !== name) {
      if (cell.left.outputs-- <= 0) { full(cell); return; }
      paint(cell.tail);
      cell.tail = make("pre", { tabIndex: 0, data: { name } });
      box(cell, name, cell.tail);
    }
    const tail = cell.tail;
    tail.words = (tail.words ?? "") + allot(cell, "text", text);
    tail.paint ??= setTimeout(() => paint(tail), Math.max(50, 4 * (tail.took ?? 0)));
  }
  // What was printed comes in thousands of pieces: the page shows it a few times a second.
  function paint(tail) {
    if (!tail?.paint) return;
    clearTimeout(tail.paint);
    const start = performance.now();
    tail.textContent = legible(overwritten(tail.words));
    tail.took = performance.now() - start;
    tail.paint = null;
  }
  let counter = 0;
  function display(cell, given) {
    const mime = MIMES.find((one) => typeof given[one] === "string");
    if (!mime) return;
    const text = given[mime], alt = (words) => String(given["text/plain"] ?? words).slice(0, 1000);
    if (mime === "text/plain") box(cell, "text", make("pre", { tabIndex: 0, textContent: allot(cell, "text", text) }));
    else if (mime === "text/latex") {
      const formula = text.length <= cell.left.formulas && quick(text);
      const set = text.replace(/\$\$|\$([^$]+)\$/g, (all, inner) => (inner ? `\\(${inner}\\)` : all)); // as MathJax here knows it
      const made = box(cell, "latex", formula ? formulas(allot(cell, "formulas", set)) : allot(cell, "text", text));
      if (formula) typeset(made);
    } else if (mime === "image/png") {
      const picture = /^[A-Za-z0-9+/=\s]+$/.test(text) && pixels(text) <= PIXELS;
      box(cell, "image", picture ? make("img", { src: `data:image/png;base64,${text}`, alt: alt("a picture") }) : alt("A picture that is too large for a page"));
    } else if (mime === "image/svg+xml") { // as a picture: no script of it runs
      const drawn = drawing(text, cell.left.nodes);
      cell.left.nodes -= drawn.count;
      const address = URL.createObjectURL(new Blob([drawn.text], { type: mime }));
      box(cell, "image", make("img", { src: address, alt: alt("a figure"), onload: () => URL.revokeObjectURL(address) }));
    } else {
      const { nodes, mounts, count, letters } = safe(text, `live-${++counter}-`, cell.left.nodes, typeof given.key === "string" ? names : undefined);
      cell.left.nodes -= count;
      cell.left.text -= letters;
      const made = box(cell, "html", nodes);
      mounts.forEach((one) => {
        if (cell.left.mounts-- <= 0) full(cell);
        else setTimeout(() => mount(cell, one, made, given.key)); // one after the other
      });
    }
  }
  // Formulas one output after the other: MathJax cannot do two at a time.
  let typesetting = Promise.resolve();
  function typeset(el) {
    const turn = () => new Promise((done) => { setTimeout(done); }); // the page answers in between
    typesetting = typesetting.then(turn).then(() => window.MathJax?.startup?.promise).then(() => el.isConnected && window.MathJax?.typesetPromise?.([el])).catch(() => {});
    return typesetting;
  }
  // Exercises that are the same keep what the reader did; explorables report to Python.
  function mount(cell, { el, kind, name, told }, made, key) {
    made.classList.add("live-alive");
    if (kind === "exercise") {
      const old = cell.before.flatMap((node) => (node.querySelectorAll ? [...node.querySelectorAll(`[data-exercise="${name}"]`)] : []))[0];
      const script = old?.querySelector(':scope > script[type="application/json"]');
      if (script && JSON.stringify(clean(JSON.parse(script.textContent), true)) === JSON.stringify(told)) { el.replaceWith(old); return; }
      const question = [...el.querySelectorAll(":scope > :not(script)")].map((one) => one.textContent).join(" ");
      const long = question.length > cell.left.formulas || !quick(question);
      cell.left.formulas -= Math.min(question.length, cell.left.formulas);
      (long ? Promise.resolve() : typeset(el)).then(() => el.dispatchEvent(new CustomEvent("attnlab:mount", { bubbles: true })));
      return;
    }
    let moved = {};
    if (cell.code === cell.original) { // what the reader already moved on the page
      try { moved = clean(JSON.parse(new URLSearchParams(location.search).get(name) ?? "{}")); } catch { /* mangled */ }
    }
    const hear = (state) => { if (typeof key === "string") python.state(key, { ...state }); };
    el.alLive = { state: moved ?? {}, changed: hear, begins: (state) => { if (Object.keys(moved ?? {}).length) hear(state); } };
    const others = document.querySelectorAll(`[id="${el.id}"]`).length;
    if (others > 1) el.id = `${el.id}-${++counter}`;
    el.dispatchEvent(new CustomEvent("attnlab:mount", { bubbles: true })); // host.js listens
  }
  // A number that a cell tells: the page's words say it, and show where the built book says another.
  function tell({ name, texts }) {
    if (words.length !== places.length || !texts) return;
    places.forEach((place, k) => {
      const text = place && place[0] === name ? texts[place[1]] : undefined;
      if (typeof text !== "string") return;
      if (words[k].textContent !== text) words[k].textContent = text.slice(0, 2000);
      const other = words[k].textContent !== built[k];
      words[k].classList.toggle("live-changed", other);
      words[k].title = other ? `The built book says ${built[k]}.` : "";
    });
  }

  // -- cells ---------------------------------------------------------------------------------------
  const CM = await codemirror(await (boot(), python.file(here.editor)));
  const extra = []; // of the scratch page
  const everything = () => [...pageCells, ...extra];
  const changed = () => pageCells.filter((cell) => cell.code !== cell.original);
  const kept = new Kept();
  const unsaved = make("span", { className: "live-unsaved" });
  unsaved.setAttribute("role", "status");
  bar.append(unsaved);
  // Keeps what a cell has now: it may be what the page has.
  function store(cell, at) {
    if (cell.code === cell.original) kept.clear(cell.id);
    else kept.put(cell.id, digest(cell.original), cell.code, at);
    told();
  }
  function told() {
    const count = changed().length;
    undo.textContent = count ? `Undo all edits (${count})` : "Undo all edits";
    undo.disabled = !count;
    unsaved.textContent = kept.unsaved.size ? "This browser does not keep your changes (its storage is closed or full): copy them elsewhere before you close the page." : "";
  }
  addEventListener("beforeunload", (event) => { if (kept.unsaved.size) event.preventDefault(); });
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
        (cell.store ?? store)(cell);
      },
    });
    cell.bar = make("div", { className: "live-bar" },
      button("Run", "run", () => ask(needed(cell)), `Run ${label}, and what it needs above it`),
      button("Run to here", "run-to", () => ask(cell.group.slice(0, cell.group.indexOf(cell) + 1)), `Run everything down to ${label}`),
      button("Reset", "reset", () => reset(cell), `Undo what was changed in ${label}`), mark);
    cell.offers = make("div", { className: "live-offers" });
    cell.input.after(cell.bar, cell.offers);
    if (cell.before.length) mark.textContent = "the output is the build's";
  }
  function reset(cell) {
    if (cell.code !== cell.original) cell.view.put(cell.original);
    cell.ran = null;
    if (cell !== busy) {
      restore(cell);
      delete cell.holder.dataset.ran;
      cell.view?.wrong(0);
      cell.mark(cell.before.length ? "the output is the build's" : "");
    }
    store(cell);
    offer();
  }

  // Where code belongs: to the cell whose code it was made from, else to the one at its place.
  const editable = pageCells.filter((cell) => cell.input);
  function home({ id, was }) {
    const at = editable.find((cell) => cell.id === id), same = editable.filter((cell) => digest(cell.original) === was);
    return at && digest(at.original) === was ? at : same.length === 1 ? same[0] : at;
  }
  const fits = (one, cell) => one.was === digest(cell.original);
  kept.all().filter((one) => one.id !== NOTEBOOK).forEach((one) => { // the newest last: it is shown
    const cell = home(one);
    if (!cell || !fits(one, cell)) return;
    cell.code = one.code;
    kept.show(cell.id, one);
  });
  pageCells.forEach((cell) => {
    prepare(cell);
    if (cell.code !== cell.original) cell.mark("");
  });
  const undo = button("Undo all edits", "undo-all", () => changed().forEach(reset));
  const share = button("Copy a link to my code", "link", async () => {
    let address;
    try {
      address = await link(Object.fromEntries(changed().map((cell) => [cell.id, { was: digest(cell.original), code: cell.code }])));
    } catch (error) {
      say(`No link was made: ${error.message}.`);
      return;
    }
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

  // -- code beside the reader's own -----------------------------------------------------------------
  // Another version of a cell: from a link, another window, an older page. It stands below the cell
  // and does nothing; the reader puts it into the cell, where it can run, or discards it.
  let notice = null, carriedHere = []; // versions that the link brought: {id, was, code}
  let loose = []; // what the reader typed, was put aside, and storage did not take
  const lost = make("div", { className: "live-offers" }); // of cells that this page no longer has
  bar.after(lost);
  function offer() {
    const byCell = new Map();
    const add = (one, given) => {
      const cell = home(one), place = cell?.offers ?? lost;
      if (cell && (one.code === cell.code || one.code === cell.original || kept.shown(cell.id, one))) return;
      const list = byCell.get(place) ?? byCell.set(place, []).get(place);
      if (!list.some((other) => other.one.code === one.code && other.cell === cell)) list.push({ one, cell, ...given });
    };
    carriedHere.forEach((one) => add(one, { drop: () => { carriedHere = carriedHere.filter((other) => other !== one); }, words: "From the link, and somebody else's. It has not run." }));
    kept.all().reverse().filter((one) => one.id !== NOTEBOOK).forEach((one) => {
      const cell = home(one);
      add(one, {
        drop: () => kept.drop(one),
        words: !cell ? "Your code for a cell that this page no longer has:" : fits(one, cell) ? "You also typed this version of the cell:" : "You changed this cell in an older version of the page:",
      });
    });
    loose.forEach((one) => add(one, { drop: () => { loose = loose.filter((other) => other !== one); }, words: "You also typed this version of the cell:" }));
    [lost, ...editable.map((cell) => cell.offers)].forEach((place) => {
      const list = byCell.get(place) ?? [], told = JSON.stringify(list.map(({ one, words }) => [one.code, words]));
      if (place.dataset.told === told) return; // the same: a button that has the focus keeps it
      place.dataset.told = told;
      place.replaceChildren(...list.map(offered));
    });
    settle();
  }
  function offered({ one, cell, drop, words }) {
    const label = cell ? `cell ${cell.number}` : "a cell that is gone";
    const made = make("div", { className: "live-offer", ariaLabel: `Another version of ${label}` },
      make("p", { textContent: words }), make("pre", { tabIndex: 0, textContent: one.code }),
      make("div", { className: "live-bar" },
        ...(cell ? [button("Put it into the cell", "use", () => { use(cell, one, drop); offer(); cell.view.focus(); }, `Put this version into ${label}; what is there now is kept`)] : []),
        button("Discard it", "discard", () => { drop(); offer(); (cell?.view ?? all).focus(); }, `Discard this version of ${label}`)));
    made.setAttribute("role", "group");
    return made;
  }
  // What was in the cell is set aside, and offered from then on.
  function use(cell, one, drop) {
    if (kept.unsaved.has(cell.id)) loose.push({ id: cell.id, was: digest(cell.original), code: cell.code });
    else if (cell.code !== cell.original) kept.setAside(cell.id);
    cell.view.put(one.code);
    if (!kept.unsaved.has(cell.id)) drop();
  }

  // A link is settled when each version that it brought is used or discarded.
  function settle() {
    const left = carriedHere.filter((one) => home(one) && home(one).code !== one.code && home(one).original !== one.code);
    if (left.length) return;
    carriedHere = [];
    if (!notice) return;
    notice.remove();
    notice = null;
    strip();
  }
  async function receive() {
    if (!carried()) return;
    let given;
    try { given = await unpack(carried()); } catch {
      say("The code in this address could not be read.");
      return;
    }
    carriedHere = Object.entries(given).map(([id, one]) => ({ id, ...one }))
      .filter((one) => home(one) && home(one).code !== one.code && home(one).original !== one.code);
    notice?.remove();
    notice = null;
    if (!carriedHere.length) {
      strip(); // the page shows what it carries, or has no such cells
      offer();
      return;
    }
    const numbers = carriedHere.map((one) => home(one).number).join(", ");
    const every = (call) => () => {
      carriedHere.slice().forEach(call);
      carriedHere = [];
      offer();
      all.focus();
    };
    notice = make("div", { className: "live-notice" },
      make("p", { textContent: `The link brings other code for cell ${numbers}. It stands below, it has not run, and it is somebody else's. Your own code stays unless you put the link's in its place; then it is kept beside it.` }),
      make("div", { className: "live-bar" },
        button("Use the link's code", "take", every((one) => use(home(one), one, () => {}))),
        button("Leave the link's code", "refuse", every(() => {}))));
    notice.setAttribute("role", "group");
    notice.setAttribute("aria-label", "Code from the link");
    bar.after(notice);
    offer();
  }

  const scratch = await notebook();
  await receive();
  addEventListener("hashchange", receive);
  offer();
  told();
  kept.listen(() => { offer(); scratch.offer(); }, (id, at) => {
    const cell = pageCells.find((one) => one.id === id);
    if (cell && cell.code !== cell.original) store(cell, at);
    if (id === NOTEBOOK) scratch.store(at);
  });
  bar.dataset.editors = String(visible);
  (notice ?? bar).querySelector("button").focus({ preventScroll: true });

  // -- the scratch page ------------------------------------------------------------------------------
  async function notebook() {
    const place = article.querySelector(".al-scratch");
    if (!place) return { offer() {}, store() {} };
    const { scratchpad } = await import("./scratch.js");
    return scratchpad({ home: place, kept, told, extra, make, button, prepare, ask, examples: editable, busy: () => busy, drop: (cell) => { waiting = waiting.filter((one) => one !== cell); } });
  }
}

// What a terminal would show: progress bars write over their line.
function overwritten(text) {
  if (!text.includes("\r")) return text;
  return text.split("\n").map((line) => {
    let end = line.length;
    while (end && line[end - 1] === "\r") end -= 1; // what comes next may write over it
    return line.slice(line.lastIndexOf("\r", end - 1) + 1);
  }).join("\n");
}

// Of a PNG in base64: width times height, as its first chunk says.
function pixels(text) {
  const head = Uint8Array.from(atob(text.replace(/\s/g, "").slice(0, 32).padEnd(32, "A")), (one) => one.charCodeAt(0)), view = new DataView(head.buffer);
  return view.getUint32(16) * view.getUint32(20);
}

// The cells of this page and the places of its told numbers, as they were built.
async function page() {
  const root = new URL("../", import.meta.url).pathname;
  const name = decodeURIComponent(location.pathname.slice(root.length)).replace(/\.html$/, "").replace(/(^|\/)$/, "$1index");
  const answer = await fetch(new URL(`pages/${name}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`the cells of ${name} are not on this site`);
  return answer.json();
}
