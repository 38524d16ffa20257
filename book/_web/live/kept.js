// What the reader typed, kept on this device page by page; and code that a link carries.
//
// Each window has its own entry for each cell, so that two windows never write over each other.
// An entry goes only when the reader changes the code that it holds in the window that shows it,
// resets the cell, or discards it. Entries that this page cannot use are left as they are.

const LONGEST = 60_000, MOST = 1_000_000; // characters of a link; bytes that it may unfold to
const HOME = "attnlab-live:";
// One page has one name, however a host writes its address.
const page = `${HOME}${location.pathname.replace(/\.html$/, "").replace(/\/index$/, "/")} `;
const before = `${HOME}${location.pathname}`; // where all cells of a page stood in one entry

export const NOTEBOOK = "notebook"; // the scratch page's own cells: a list of codes
export const digest = (text) => [...text].reduce((sum, one) => (Math.imul(sum, 31) + one.codePointAt(0)) | 0, 7).toString(36);

const CELL = /^c\d{1,4}$/;
const attempt = (call, otherwise) => { try { return call(); } catch { return otherwise; } };
// Storage may be closed (a private window), and then even its name throws.
const read = (key) => attempt(() => localStorage.getItem(key), null);
const write = (key, text) => attempt(() => { localStorage.setItem(key, text); return true; }, false);
const remove = (key) => attempt(() => { localStorage.removeItem(key); return true; }, false);

// {id, was: digest of the page's code that was changed, code, at: time, key, raw} for one entry
function version(key, raw) {
  const given = attempt(() => JSON.parse(raw), null), id = key.slice(page.length).split(" ")[0];
  if (!given || typeof given.code !== "string" || typeof given.was !== "string" || !(CELL.test(id) || id === NOTEBOOK)) return null;
  return { id, was: given.was, code: given.code, at: Number(given.at) || 0, key, raw };
}

// The entry of former versions of this site: {cell: {was, code}}.
function former() {
  const given = attempt(() => JSON.parse(read(before)), null);
  if (!given || typeof given !== "object" || Array.isArray(given)) return [];
  const good = Object.entries(given).filter(([, one]) => typeof one?.code === "string" && typeof one.was === "string");
  const found = good.filter(([id]) => CELL.test(id)).map(([id, { was, code }]) => ({ id, was, code, at: 0, key: null }));
  const codes = good.filter(([id]) => /^s\d+$/.test(id)).sort(([a], [b]) => Number(a.slice(1)) - Number(b.slice(1))).map(([, { code }]) => code);
  return codes.length ? [...found, { id: NOTEBOOK, was: "", code: JSON.stringify(codes), at: 0, key: null }] : found;
}

export class Kept {
  #window = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 8)}`;
  #count = 0;
  #shows = new Map(); // cell -> the version that this window shows; its key may be another window's
  #keys = new Map(); // cell -> where this window writes
  #times = new Map(); // cell -> when this window last wrote
  unsaved = new Set(); // cells whose code storage did not take

  // Versions of all cells, the newest last.
  all() {
    const names = attempt(() => Object.keys(localStorage), []);
    const found = names.filter((key) => key.startsWith(page)).map((key) => version(key, read(key))).filter(Boolean);
    return [...former(), ...found].sort((a, b) => a.at - b.at);
  }

  // This window shows a version: what the reader makes of it takes its place.
  show(id, one) { this.#shows.set(id, one); }

  // Whether a version is the one that this window's cell shows.
  shown(id, { key }) { return Boolean(key) && (key === this.#keys.get(id) || key === this.#shows.get(id)?.key); }

  put(id, was, code, at = Date.now()) {
    const key = this.#keys.get(id) ?? `${page}${id} ${this.#window}${this.#count++}`;
    const old = this.#shows.get(id), stands = old?.key && old.key !== key && read(old.key) === old.raw;
    const text = JSON.stringify({ was, code, at });
    let good = write(key, text);
    if (good) {
      this.#keys.set(id, key);
      this.#times.set(id, at);
      if (stands) remove(old.key);
      if (old?.key === null) this.#forget(old);
      this.#shows.delete(id);
    } else if (stands) { // no room for both: in place of the one that it was made from
      good = write(old.key, text);
      if (good) this.show(id, { ...old, raw: text });
    }
    if (good) this.unsaved.delete(id); else this.unsaved.add(id);
    return good;
  }

  // The cell is the page's own again.
  clear(id) {
    this.unsaved.delete(id);
    const old = this.#shows.get(id);
    this.#shows.delete(id);
    if (old && (old.key === null || read(old.key) === old.raw)) this.drop(old);
    if (this.#keys.has(id)) remove(this.#keys.get(id));
  }

  // What the cell has stays in storage, and what comes next gets an entry of its own.
  setAside(id) {
    this.#keys.delete(id);
    this.#shows.delete(id);
  }

  drop(one) {
    if (one.key) remove(one.key); else this.#forget(one);
  }

  #forget({ id }) {
    const given = attempt(() => JSON.parse(read(before)), null);
    if (!given) return;
    const left = Object.fromEntries(Object.entries(given).filter(([name]) => (id === NOTEBOOK ? !/^s\d+$/.test(name) : name !== id)));
    if (Object.keys(left).length) write(before, JSON.stringify(left)); else remove(before);
  }

  // Another window wrote: `changed()` says so, and `lost(id, time)` that it replaced what this
  // window wrote and still shows.
  listen(changed, lost) {
    addEventListener("storage", ({ key }) => {
      if (key === null || !(key.startsWith(page) || key === before)) return;
      const id = key.slice(page.length).split(" ")[0];
      const mine = key === this.#keys.get(id), old = this.#shows.get(id);
      if (mine || (old?.key === key && read(key) !== old.raw)) this.setAside(id);
      if (mine) lost(id, this.#times.get(id));
      changed();
    });
  }
}

// -- links -----------------------------------------------------------------------------------------
// An entry for each changed cell: {was: digest of the page's own code, code}. Nothing else comes in.
function entries(given) {
  if (!given || typeof given !== "object" || Array.isArray(given)) return {};
  return Object.fromEntries(Object.entries(given).filter(([name, one]) =>
    CELL.test(name) && one && typeof one.code === "string" && typeof one.was === "string" && one.code.length < 200_000)
    .map(([name, one]) => [name, { was: one.was, code: one.code }]));
}

async function through(bytes, stream, most = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader(), parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) { reader.cancel(); throw new Error("too long"); }
    parts.push(value);
  }
}

export async function link(changed) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(changed)), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join("")).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  if (text.length > LONGEST) throw new Error(`a link holds at most ${LONGEST.toLocaleString("en")} characters, and this code needs ${text.length.toLocaleString("en")}`);
  const url = new URL(location.href);
  url.hash = `live=${text}`;
  return url.href;
}

export const carried = () => new URLSearchParams(location.hash.slice(1)).get("live") ?? "";

// The link is settled: a reload does not bring it again.
export function strip() {
  if (!new URLSearchParams(location.hash.slice(1)).has("live")) return;
  history.replaceState(history.state, "", location.pathname + location.search);
}

export async function unpack(text) {
  if (text.length > LONGEST) throw new Error("too long");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  return entries(JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), MOST))));
}
