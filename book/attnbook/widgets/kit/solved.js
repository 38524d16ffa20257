// What was solved, kept on this device and nowhere else; where a browser keeps nothing, until the
// page is left.

const KEY = "attnlab-solved";
let held = {};

export function solved() {
  try {
    const found = JSON.parse(window.localStorage.getItem(KEY) || "{}");
    return found && typeof found === "object" ? { ...found, ...held } : { ...held };
  } catch {
    return { ...held };
  }
}

export function remember(id, verdict) {
  held = { ...solved(), [id]: verdict };
  try {
    window.localStorage.setItem(KEY, JSON.stringify(held));
    held = {};
  } catch { /* private mode: `held` has it */ }
}

export function forget() {
  held = {};
  try {
    window.localStorage.removeItem(KEY);
  } catch { /* there was nothing */ }
}
