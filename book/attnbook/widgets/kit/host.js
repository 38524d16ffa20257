// Hosts explorables on a static page: no kernel, no require.js. Each placeholder carries its state
// as JSON; its module is the one that anywidget uses in a notebook. State lives in the address.

import { link } from "./kit/link.js";

const read = (name) => {
  const text = new URLSearchParams(window.location.search).get(name);
  if (!text) return {};
  try {
    return JSON.parse(text);
  } catch {
    return {}; // an address that somebody mangled is an address without state
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

// On a live page (book/_web/live) Python hears what the reader moves: ``live.changed``.
function host(name, traits, kind = "explorable", live = null) {
  const heard = {};
  const values = { ...traits, state: { ...traits.state, ...(live ? live.state : read(name)) } };
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
  const name = el.dataset.explorable;
  try {
    const traits = JSON.parse(el.querySelector('script[type="application/json"]').textContent);
    const module = await import(new URL(`${name}.js`, import.meta.url));
    el.replaceChildren();
    const model = host(name, traits, "explorable", el.alLive ?? null);
    traits.initial = { ...module.default.defaults, ...traits.initial };
    module.default.render({ model, el });
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
  module.default.render({ model: host(id, { state: initial, initial, data: {} }, "derivation"), el: list });
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
