// What Python shows, as nodes that can do nothing: built anew from a list of what is allowed. Code
// comes in links, so every output is a stranger's.

const HTML = new Set(("a abbr b blockquote br caption code col colgroup dd del details div dl dt em figcaption figure h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot th thead tr u ul var").split(" "));
const SVG = new Set(("svg g path rect circle ellipse line polyline polygon text tspan defs clipPath use image title desc marker linearGradient radialGradient stop pattern").split(" "));
const SPACE = "http://www.w3.org/2000/svg";
const DROPPED = new Set("script style template noscript iframe object embed form button input select textarea option math base link meta title head audio video source track canvas dialog slot portal frame frameset applet foreignobject animate animatetransform animatemotion set".split(" "));

const SPAN = /^(colspan|rowspan|span)$/;
const PLAIN = /^(alt|title|scope|start|reversed|open|width|height|dir|lang|role|datetime|aria-(label|hidden|level|colcount|rowcount))$/;
const DRAWN = new Set(("viewBox preserveAspectRatio x y x1 y1 x2 y2 cx cy r rx ry dx dy d points transform fill stroke opacity offset fill-opacity fill-rule clip-rule stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit stop-color stop-opacity text-anchor dominant-baseline font-size font-family font-weight font-style letter-spacing clip-path clipPathUnits gradientUnits gradientTransform patternUnits patternTransform markerWidth markerHeight markerUnits refX refY orient marker-start marker-mid marker-end vector-effect width height").split(" "));
const ROLES = new Set("img group note list listitem table row cell presentation none".split(" "));
// The book's own classes would let an output pass for a part of the book: only its figures have
// them, and an exercise on its own place.
const CLASS = /^(mathjax_process|dataframe|highlight)$/, EXERCISE = /^al-(exercise|ask(-[a-z]{1,20})?)$/;
const FIGURE = { "al-figure": "svg", "al-figure-frame": "div", "al-photo": "img" };
const STYLES = new Set(("color background-color fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit opacity font font-size font-family font-weight font-style font-variant text-align text-anchor text-decoration vertical-align white-space width height max-width max-height min-width border border-top border-bottom border-left border-right border-color border-collapse padding padding-left padding-right padding-top padding-bottom margin-left margin-right dominant-baseline clip-path stop-color stop-opacity letter-spacing line-height display").split(" "));
const TASK = /^[a-z][a-z0-9-]{0,80}$/;
const MOST_NODES = 30_000, MOST_DEEP = 120, MOST_HTML = 4_000_000;
const REFERRED = 100_000; // elements that are drawn by reference: use, clip paths, patterns
const ATTRIBUTES = 300; // of one element: browsers compare each with each
const SLICE = 2048, TIME = 400; // characters parsed at once; milliseconds for a whole output
let counted = 0, most = 0, letters = 0;

// -- words ---------------------------------------------------------------------------------------
// What MathJax would turn into links, styles or scripts is not mathematics.
export const formulas = (text) => String(text).replace(/\\(?=(?:href|style|cssId|data|require|url|unicode|html[a-zA-Z]*|[egx]?def|let|(?:new|renew|provide)(?:command|environment)|DeclareMathOperator|mmlToken|toggle|Tip|texttip|mathtip|action|includegraphics|class(?!\s*\{al-[\w -]*\}))(?![a-zA-Z]))/g, "\\backslash ");

// Whether MathJax sets words in less than a second: it stops the page meanwhile, and some thousand
// letters, or fractions in fractions, take it minutes.
export const quick = (text) => text.split(/\\[()[\]]|\$\$/).every((part) => {
  if (part.length > 2000) return false;
  let deep = 0;
  for (const [sign] of part.matchAll(/\{|\}|\\(?:left|right|begin|end)(?![a-zA-Z])/g)) {
    deep += sign === "{" || sign === "\\left" || sign === "\\begin" ? 1 : -1;
    if (deep > 20) return false;
  }
  return true;
});

// Letters with at most as many marks as a language puts on one: thousands of them, or of joined
// letters, take a browser minutes to draw. No signs that turn the order of letters around either.
export const legible = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, "").replace(/([\p{M}\u200d]{8})[\p{M}\u200d]+/gu, "$1").replace(/((?:[^\u200d\s]\u200d){8})(?:[^\u200d\s]\u200d)+/gu, "$1");

// JSON of an explorable or an exercise: no key that reaches a prototype, no markup in its words.
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);
export function data(value, markup = false, deep = 0) {
  if (deep > 40) return null;
  if (Array.isArray(value)) return value.map((one) => data(one, markup, deep + 1));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).filter(([key]) => !FORBIDDEN.has(key) && (markup || !/[<>"'`&]/.test(key)))
      .map(([key, one]) => [key, data(one, markup, deep + 1)]));
  }
  if (typeof value !== "string" || /^[<|][fib]\d$/.test(value)) return value; // the kind of an array's numbers
  return markup ? formulas(value) : value.replace(/[<>"'`]/g, "");
}

// -- attributes ----------------------------------------------------------------------------------
const local = (value, mark) => value.replace(/url\(\s*["']?#([\w.:-]+)["']?\s*\)/g, (_, id) => `url(#${mark}${id})`);
const quiet = (value) => !/url\((?!#)|[\\@]|\/\*|expression|javascript|image-set|paint\(|attr\(/i.test(value);

function style(text, mark) {
  return text.split(";").map((part) => {
    const at = part.indexOf(":"), name = part.slice(0, at).trim().toLowerCase(), value = local(part.slice(at + 1).trim(), mark);
    if (at < 0 || !STYLES.has(name) || !quiet(value) || value.length > 300) return "";
    if (name === "display" && !/^(none|block|inline|inline-block|table|table-cell)$/.test(value)) return "";
    return `${name}: ${value}`;
  }).filter(Boolean).join("; ");
}

function address(value) {
  if (value.startsWith("#")) return value;
  try {
    const url = new URL(value, document.baseURI);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch { return null; }
}

const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/;

function dress(made, given, drawn, mark, exercise) {
  for (const { name: full, value } of given.attributes) {
    const name = full.replace(/^xlink:/, "");
    if (/^on/i.test(name)) continue;
    if (name === "id") made.setAttribute("id", mark + value.replace(/[^\w.:-]/g, "").slice(0, 80));
    else if (name === "class") {
      const kept = value.split(/\s+/).filter((one) => CLASS.test(one) || FIGURE[one] === made.localName || (exercise && EXERCISE.test(one)));
      if (kept.length) made.setAttribute("class", kept.join(" "));
    } else if (name === "style") {
      const kept = style(value, mark);
      if (kept) made.setAttribute("style", kept);
    } else if (name === "href") {
      const kept = drawn ? (value.startsWith("#") ? value : null) : address(value);
      if (made.localName === "image" && PICTURE.test(value)) made.setAttribute("href", value);
      else if (kept === null || made.localName === "image") continue;
      else if (made.localName === "use") made.setAttribute("href", `#${mark}${value.slice(1).replace(/[^\w.:-]/g, "")}`);
      else if (made.localName === "a") {
        made.setAttribute("href", kept.startsWith("#") ? `#${mark}${kept.slice(1)}` : kept);
        made.setAttribute("rel", "noopener noreferrer nofollow");
        if (!kept.startsWith("#")) made.setAttribute("target", "_blank");
      }
    } else if (name === "src") {
      if (made.localName === "img" && PICTURE.test(value)) made.setAttribute("src", value);
    } else if (name === "role") {
      if (ROLES.has(value)) made.setAttribute("role", value);
    } else if (name === "data-option") {
      if (TASK.test(value) || /^\d{1,3}$/.test(value)) made.setAttribute("data-option", value);
    } else if (SPAN.test(name)) { // takes as much room as that many cells
      const span = Math.min(Number.parseInt(value, 10) || 1, 100);
      counted += span;
      made.setAttribute(name, String(span));
    } else if (PLAIN.test(name)) made.setAttribute(name, value.slice(0, 2000));
    else if (drawn && DRAWN.has(name) && quiet(local(value, mark))) made.setAttribute(name, local(value, mark));
  }
}

// -- nodes ---------------------------------------------------------------------------------------
function build(given, mark, mounts, deep, exercise) {
  if (++counted > most || deep > MOST_DEEP) return null;
  if (given.nodeType === Node.TEXT_NODE) {
    letters += given.data.length;
    return document.createTextNode(legible(given.data));
  }
  if (given.nodeType !== Node.ELEMENT_NODE) return null;
  const drawn = given.namespaceURI === SPACE, name = given.localName;
  if (!drawn && given.namespaceURI !== "http://www.w3.org/1999/xhtml") return null;
  if (DROPPED.has(name.toLowerCase()) && !(drawn && name === "title")) return null;
  const allowed = drawn ? SVG.has(name) : HTML.has(name);
  const made = !allowed ? document.createDocumentFragment() : drawn ? document.createElementNS(SPACE, name) : document.createElement(name);
  const asks = exercise || (name === "div" && !drawn && TASK.test(given.dataset.exercise ?? ""));
  if (allowed) dress(made, given, drawn, mark, asks);
  if (allowed && name === "div" && !drawn) mount(made, given, mounts);
  for (const child of given.childNodes) {
    if (counted > most) break;
    const inner = build(child, mark, mounts, deep + 1, asks);
    if (inner) made.append(inner);
  }
  if (made.localName === "img" && !made.hasAttribute("alt")) made.setAttribute("alt", "a picture without words");
  return made;
}

// An explorable or an exercise: only its name and its JSON come through.
function mount(made, given, mounts) {
  const { explorable, exercise } = given.dataset;
  const kind = explorable !== undefined ? "explorable" : exercise !== undefined ? "exercise" : "";
  if (!kind) return;
  const name = explorable ?? exercise;
  if (kind === "explorable" ? !mounts.explorables.has(name) : !TASK.test(name)) return;
  let told = null;
  try { told = JSON.parse([...given.children].find((one) => one.localName === "script" && one.type === "application/json").textContent); } catch { return; }
  const clean = data(told, kind === "exercise");
  if (!clean || typeof clean !== "object" || Array.isArray(clean)) return;
  if (kind === "exercise" && clean.id !== name) return;
  made.dataset[kind] = name;
  made.id = `${kind}-${name}`;
  const script = document.createElement("script");
  script.type = "application/json";
  script.textContent = JSON.stringify(clean).replace(/</g, "\\u003c");
  made.append(script);
  mounts.push({ el: made, kind, name, told: clean });
}

// Where the first element stands that has too many attributes. Looks from every "<", as it cannot
// tell comments and the like from elements: at worst it finds one where there is none.
function crowded(text) {
  const open = /<[a-zA-Z][^\s/>]*/g;
  const attribute = /[\s/]*[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>"'][^\s>]*)?)?/y;
  for (let found = open.exec(text); found; found = open.exec(text)) {
    attribute.lastIndex = open.lastIndex;
    for (let count = 0; attribute.test(text); count++) if (count >= ATTRIBUTES) return found.index;
  }
  return text.length;
}

// Elements of a text, in a document that shows nothing and runs nothing. A parser can be made to
// work for minutes on a short text, so it gets it in slices and is stopped in between.
function parsed(text) {
  const doc = document.implementation.createHTMLDocument(""), all = doc.getElementsByTagName("*");
  const began = performance.now();
  const end = crowded(text.slice(0, MOST_HTML));
  let at = 0;
  for (; at < end; at += SLICE) {
    let deep = 0;
    for (let el = doc.body; el && deep <= 3 * MOST_DEEP; el = el.lastElementChild) deep += 1;
    if (all.length > 2 * most + 100 || deep > 3 * MOST_DEEP || performance.now() - began > TIME) break;
    doc.write(text.slice(at, Math.min(at + SLICE, end)));
  }
  const whole = at >= text.length && end === text.length;
  if (whole) doc.close();
  return { body: doc.body, whole };
}

// What is drawn by reference is drawn once for each reference, and references in what is referred
// to multiply. Those go, and all after the budget.
function unreferred(nodes) {
  const all = [...nodes.querySelectorAll("*")].filter((el) => el.namespaceURI === SPACE);
  const byId = new Map(all.filter((el) => el.id).map((el) => [el.id, el]));
  const refers = new Set(), found = [];
  for (const el of all) {
    const names = [...el.attributes].filter((one) => (el.localName === "use" && one.name === "href") || one.value.includes("url("));
    if (!names.length) continue;
    found.push([el, names]);
    for (let up = el; up && up.namespaceURI === SPACE && !refers.has(up); up = up.parentNode) refers.add(up);
  }
  const sizes = new Map();
  let left = REFERRED;
  for (const [el, names] of found) {
    for (const one of names) {
      const ids = one.name === "href" ? [one.value.slice(1)] : [...one.value.matchAll(/url\(#([\w.:-]+)\)/g)].map((each) => each[1]);
      const good = ids.every((id) => {
        const target = byId.get(id);
        if (!target || refers.has(target)) return false;
        if (!sizes.has(target)) sizes.set(target, 1 + target.querySelectorAll("*").length);
        left -= sizes.get(target);
        return left >= 0;
      });
      if (!good) el.removeAttribute(one.name);
    }
  }
}

// Nodes for `text`, and what wants to come alive among them; ids get `mark` before them. `count`
// and `letters` are what it takes of a run's share; only `explorables` come alive.
export function safe(text, mark, share = MOST_NODES, explorables = new Set()) {
  const mounts = Object.assign([], { explorables }), nodes = document.createDocumentFragment();
  [counted, most, letters] = [0, share, 0];
  const { body, whole } = parsed(text);
  for (const child of body?.childNodes ?? []) {
    const made = build(child, mark, mounts, 0, false);
    if (made) nodes.append(made);
  }
  unreferred(nodes);
  nodes.querySelectorAll("[data-exercise]").forEach((el) => {
    const walk = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) if (walk.currentNode.parentElement.localName !== "script") walk.currentNode.data = formulas(walk.currentNode.data);
  });
  if (counted > most || !whole) nodes.append(Object.assign(document.createElement("p"), { textContent: "The rest of this output is more than a page can show." }));
  return { nodes, mounts, count: counted, letters };
}

// A drawing as a file of its own, made of the same elements.
export function drawing(text, share) {
  const { nodes, count } = safe(text, "", share), svg = nodes.querySelector("svg");
  return { text: svg ? new XMLSerializer().serializeToString(svg) : "", count };
}
