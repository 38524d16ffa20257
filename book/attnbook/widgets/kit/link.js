// Linked words. A term, <span class="al-term" data-link="key">, or a part of a formula,
// \class{al-link-key}{...}, lights every mark of the page whose data-mark lists the key; other
// marks of those pictures dim. A mark lights the words. One style sheet is rewritten, so what is
// drawn anew stays lit.

const sheet = document.createElement("style");
document.head.append(sheet);
let pinned = null; // a term that was tapped stays lit until the next tap, or Escape
let lit = null;

const keyOf = (element) => {
  if (element.dataset.link) return element.dataset.link;
  return [...element.classList].find((name) => name.startsWith("al-link-"))?.slice("al-link-".length);
};
const WORDS = '.al-term, [class*="al-link-"]';
const named = (key) => document.querySelector(`.al-term[data-link="${key}"], .al-link-${key}`) !== null;

export function light(key) {
  if (key === lit) return;
  lit = key;
  const mark = `[data-mark~="${key}"]`;
  sheet.textContent = key === null ? "" : `
svg:has(${mark}) [data-mark]:not(${mark}, ${mark} *, :has(${mark})) { opacity: 0.2; }
.al-term[data-link="${key}"], .al-link-${key} { background: color-mix(in srgb, currentColor 18%, transparent); }
:not(svg *)${mark} { background: color-mix(in srgb, currentColor 18%, transparent); }`;
  document.documentElement.dataset.lit = key || "";
}

const keyAt = (target) => {
  const word = target.closest?.(WORDS);
  if (word) return keyOf(word);
  for (let mark = target.closest?.("[data-mark]"); mark; mark = mark.parentElement?.closest("[data-mark]")) {
    const found = mark.dataset.mark.split(" ").find(named);
    if (found) return found;
  }
  return null;
};

function pin(term) {
  const key = keyOf(term);
  pinned = pinned === key ? null : key;
  document.querySelectorAll(".al-term").forEach((other) =>
    other.setAttribute("aria-pressed", String(keyOf(other) === pinned)));
  light(pinned);
}

const clear = () => {
  pinned = null;
  document.querySelectorAll('.al-term[aria-pressed="true"]').forEach((term) => term.setAttribute("aria-pressed", "false"));
  light(null);
};

// Terms become buttons that switch the light; marks listen wherever they are drawn.
export function link() {
  const terms = document.querySelectorAll(".al-term");
  if (!terms.length && !document.querySelector("main :is(.math, mjx-container)")) return;
  terms.forEach((term) => {
    term.tabIndex = 0;
    term.setAttribute("role", "button");
    term.setAttribute("aria-pressed", "false");
  });
  document.addEventListener("pointerover", ({ target, pointerType }) => {
    if (pointerType !== "touch") light(keyAt(target) ?? pinned);
  });
  document.addEventListener("focusin", ({ target }) => light(target.matches(WORDS) && target.matches(":focus-visible") ? keyOf(target) : pinned));
  document.addEventListener("focusout", () => light(pinned));
  document.addEventListener("click", ({ target }) => {
    const term = target.closest(".al-term");
    if (term) pin(term);
    else if (pinned !== null && !target.closest("button, input, a, .al")) clear();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") clear();
    if ((event.key === "Enter" || event.key === " ") && event.target.matches?.(".al-term")) {
      event.preventDefault();
      pin(event.target);
    }
  });
}
