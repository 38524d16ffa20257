// Hosts explorables on a static page: no kernel, no require.js. Each placeholder carries its state
// as JSON; its module is the one that anywidget uses in a notebook. State lives in the address.

import { link } from "./kit/link.js";

const read = (name) => {
  const text = new URLSearchParams(window.location.search).get(name);
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    return null; // an address that somebody mangled
  }
};

const address = (name, initial, state) => {
  const changed = Object.fromEntries(Object.entries(state).filter(([key, value]) =>
    JSON.stringify(value) !== JSON.stringify(initial[key])));
  const url = new URL(window.location.href);
  if (Object.keys(changed).length) {
    url.searchParams.set(name, JSON.stringify(changed, (_, value) =>
      (typeof value === "number" ? Number(value.toPrecision(8)) : value)));
  } else url.searchParams.delete(name);
  return url;
};

// The part of a state that has the types and shapes of the state that an experiment starts from,
// and what is wrong with the rest. What is null at first, an answer or a mask of one's own, may be
// anything plain, up to a table in a record.
const ANSWER = (value, depth = 3) => value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value)
  || (depth > 0 && typeof value === "object" && Object.keys(value).length <= (Array.isArray(value) ? 1000 : 20)
    && Object.values(value).every((one) => ANSWER(one, depth - 1)));
function like(value, example) {
  if (example === null) return ANSWER(value);
  if (Array.isArray(example) && !example.length) return Array.isArray(value) && value.length < 100 && value.every((one) => ANSWER(one, 0));
  if (Array.isArray(example)) return Array.isArray(value) && value.length === example.length && value.every((one, k) => like(one, example[k]));
  if (typeof example === "number") return Number.isFinite(value);
  return value !== null && typeof value === typeof example && typeof value !== "object";
}
function fitting(given, example) {
  if (!given || typeof given !== "object" || Array.isArray(given)) return { state: {}, wrong: "it is not a state" };
  const good = [], wrong = [];
  for (const [key, value] of Object.entries(given)) {
    if (Object.hasOwn(example, key) && like(value, example[key])) good.push([key, value]);
    else wrong.push(key.slice(0, 30));
  }
  return { state: Object.fromEntries(good), wrong: wrong.length ? `${wrong.slice(0, 5).join(", ")} of another kind` : "" };
}
function refuse(el, why) {
  const said = document.createElement("p");
  said.className = "al-refused";
  said.setAttribute("role", "status");
  said.textContent = `The address has a state that this experiment cannot use (${why}); it starts without it.`;
  el.prepend(said);
}

// On a live page (book/_web/live) Python hears what the reader moves: ``live.changed``.
function host(name, traits, kind, live, given) {
  const heard = {};
  const values = { ...traits, state: { ...traits.state, ...given } };
  return {
    get: (key) => values[key],
    set(key, value) {
      values[key] = value;
      (heard[`change:${key}`] || []).forEach((call) => call());
    },
    on: (event, call) => { (heard[event] ||= []).push(call); },
    off: (event, call) => { heard[event] = (heard[event] || []).filter((other) => other !== call); },
    send: () => {},
    tell: (state) => live?.changed(state), // at once: the next cell may ask
    save_changes() {
      try {
        window.history.replaceState(null, "", address(name, traits.initial, values.state));
      } catch { /* a page opened from a folder has no address to write to */ }
    },
    link: (state) => {
      const url = address(name, traits.initial, state);
      url.hash = `${kind}-${name}`;
      return url.href;
    },
  };
}

async function start(el) {
  const name = el.dataset.explorable, live = el.alLive ?? null;
  try {
    const traits = JSON.parse(el.querySelector('script[type="application/json"]').textContent);
    const module = await import(new URL(`${name}.js`, import.meta.url));
    el.replaceChildren();
    traits.initial = { ...module.default.defaults, ...traits.initial };
    const { state, wrong } = fitting(live ? live.state : read(name), { ...traits.initial, ...traits.state });
    try {
      module.default.render({ model: host(name, traits, "explorable", live, state), el });
      live?.begins?.({ ...traits.state, ...state });
      if (wrong) refuse(el, wrong);
    } catch (error) {
      if (!Object.keys(state).length) throw error;
      el.replaceChildren(); // a state of the right types that the experiment cannot show all the same
      module.default.render({ model: host(name, traits, "explorable", live, {}), el });
      refuse(el, "it does not fit together");
    }
  } catch (error) {
    el.textContent = "This experiment could not start. If you opened the page from a folder, serve it: see the README there.";
    throw error;
  }
}

// Formulas come first: what is hidden while they are typeset gets the wrong size.
async function typeset() {
  const pause = (time) => new Promise((done) => { window.setTimeout(done, time); });
  while (!window.MathJax?.startup?.promise && document.readyState !== "complete") await pause(50);
  await Promise.race([window.MathJax?.startup?.promise, pause(4000)]);
}

// A derivation stands in the page as a list, and stays so where this fails.
async function walk(list) {
  const id = list.dataset.derivation;
  const module = await import(new URL(`derivations/${id}.js`, import.meta.url));
  await typeset();
  const initial = { ...module.default.defaults, step: list.firstElementChild.dataset.key };
  const { state, wrong } = fitting(read(id), initial);
  module.default.render({ model: host(id, { state: initial, initial, data: {} }, "derivation", null, state), el: list });
  if (wrong) refuse(list, wrong);
}

// The one on the first screen starts at once, the others when they come near.
const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (!entry.isIntersecting) return;
  near.unobserve(entry.target);
  (entry.target.dataset.derivation ? walk : start)(entry.target);
}), { rootMargin: "600px" });
document.querySelectorAll("[data-explorable]").forEach((el) => {
  el.id ||= `explorable-${el.dataset.explorable}`;
  near.observe(el);
});
document.querySelectorAll("[data-derivation]").forEach((list) => near.observe(list));

// -- exercises, and the page that lists them ---------------------------------------------------
async function ask(el) {
  const task = JSON.parse(el.querySelector('script[type="application/json"]').textContent);
  const values = { task, state: {} };
  const module = await import(new URL("kit/exercise.js", import.meta.url));
  module.default.render({ el, model: { get: (key) => values[key], set(key, value) { values[key] = value; }, save_changes() {} } });
}
document.querySelectorAll("[data-exercise]").forEach(ask);
// What a cell of a live page made; its name and its data were looked at there.
document.addEventListener("attnlab:mount", ({ target }) => (target.dataset.exercise ? ask : start)(target));
document.querySelectorAll(".al-progress").forEach(async (el) =>
  (await import(new URL("kit/progress.js", import.meta.url))).progress(el));

link();
