// What the reader changed: kept on this device, page by page, or carried by a link.

const LONGEST = 60_000, MOST = 1_000_000; // characters of a link; bytes that it may unfold to
const key = `attnlab-live:${location.pathname}`;

export const digest = (text) => [...text].reduce((sum, one) => (Math.imul(sum, 31) + one.codePointAt(0)) | 0, 7).toString(36);

// An entry for each changed cell: {was: digest of the page's own code, code}. Nothing else comes in.
function entries(given) {
  if (!given || typeof given !== "object" || Array.isArray(given)) return {};
  return Object.fromEntries(Object.entries(given).filter(([name, one]) =>
    /^[a-z]?\d{1,4}$/.test(name) && one && typeof one.code === "string" && typeof one.was === "string" && one.code.length < 200_000)
    .map(([name, one]) => [name, { was: one.was, code: one.code }]));
}

export function kept() {
  try { return entries(JSON.parse(localStorage.getItem(key))); } catch { return {}; }
}

export function keep(changed) {
  try {
    if (Object.keys(changed).length) localStorage.setItem(key, JSON.stringify(changed));
    else localStorage.removeItem(key);
    return true;
  } catch { return false; } // a private window, or a full one
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
  const url = new URL(location.href);
  url.hash = `live=${text}`;
  return url.href;
}

export const carried = () => new URLSearchParams(location.hash.slice(1)).get("live") ?? "";

export async function unpack(text) {
  if (text.length > LONGEST) throw new Error("too long");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
  return entries(JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"), MOST))));
}
