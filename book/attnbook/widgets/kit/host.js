// Hosts explorables on a static page: no kernel, no require.js. Each placeholder carries its state
// as JSON; its module is the one that anywidget uses in a notebook. State lives in the address.

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

function host(name, traits) {
  const heard = {};
  const values = { ...traits, state: { ...traits.state, ...read(name) } };
  return {
    get: (key) => values[key],
    set(key, value) {
      values[key] = value;
      (heard[`change:${key}`] || []).forEach((call) => call());
    },
    on: (event, call) => { (heard[event] ||= []).push(call); },
    off: (event, call) => { heard[event] = (heard[event] || []).filter((other) => other !== call); },
    send: () => {},
    save_changes() {
      try {
        window.history.replaceState(null, "", address(name, traits.initial, values.state));
      } catch { /* a page opened from a folder has no address to write to */ }
    },
    link: (state) => {
      const url = address(name, traits.initial, state);
      url.hash = `explorable-${name}`;
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
    const model = host(name, traits);
    traits.initial = { ...module.default.defaults, ...traits.initial };
    module.default.render({ model, el });
  } catch (error) {
    el.textContent = "This experiment could not start. If you opened the page from a folder, serve it: see the README there.";
    throw error;
  }
}

// The one on the first screen starts at once, the others when they come near.
const near = new IntersectionObserver((entries) => entries.forEach((entry) => {
  if (!entry.isIntersecting) return;
  near.unobserve(entry.target);
  start(entry.target);
}), { rootMargin: "600px" });
document.querySelectorAll("[data-explorable]").forEach((el) => {
  el.id ||= `explorable-${el.dataset.explorable}`;
  near.observe(el);
});
