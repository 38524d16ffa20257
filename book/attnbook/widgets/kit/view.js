// Pictures as functions of the state, drawn at the width they really have: a size of type in a
// picture is its size on the screen. An element is a string; a view keeps one <svg> up to date.

const SPACE = "http://www.w3.org/2000/svg";

export const tag = (name, attributes = {}, inner = "") => {
  const told = Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== null && value !== false)
    .map(([key, value]) => ` ${key}="${typeof value === "number" ? Math.round(value * 100) / 100 : value}"`);
  return `<${name}${told.join("")}>${inner}</${name}>`;
};
export const line = (x1, y1, x2, y2, a = {}) => tag("line", { x1, y1, x2, y2, ...a });
export const rect = (x, y, width, height, a = {}) =>
  tag("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...a });
export const circle = (cx, cy, r, a = {}) => tag("circle", { cx, cy, r, ...a });
export const text = (x, y, inner, a = {}) => tag("text", { x, y, ...a }, inner);
export const group = (a, ...inner) => tag("g", a, inner.join(""));
export const path = (points, a = {}) => tag("path", {
  d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)},${y.toFixed(1)}`).join(""), fill: "none", ...a,
});

// An arrow in a colour of the book (`colour`: "trained", "query", ...).
export function arrow(x1, y1, x2, y2, { colour = "ink", width = 2.5, ...a } = {}) {
  const size = Math.hypot(x2 - x1, y2 - y1);
  if (!(size > 1)) return "";
  const [ux, uy] = [(x2 - x1) / size, (y2 - y1) / size];
  const h = Math.min(4 + 2 * width, size * 0.6);
  const [bx, by] = [x2 - ux * h, y2 - uy * h];
  const corner = (s) => `${(bx + s * uy * h * 0.45).toFixed(1)},${(by - s * ux * h * 0.45).toFixed(1)}`;
  const head = tag("path", { d: `M${x2.toFixed(1)},${y2.toFixed(1)}L${corner(1)}L${corner(-1)}z`, class: `al-fill-${colour}` });
  return tag("g", a, line(x1, y1, bx, by, { class: `al-stroke-${colour}`, "stroke-width": width }) + head);
}

// -- mathematics in labels ------------------------------------------------------------------------
const SIGNS = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", eta: "η", theta: "θ", kappa: "κ", lambda: "λ",
  mu: "μ", xi: "ξ", pi: "π", rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", omega: "ω", Gamma: "Γ", Delta: "Δ",
  Lambda: "Λ", Sigma: "Σ", Upsilon: "Υ", Xi: "Ξ", Omega: "Ω", ell: "ℓ", nabla: "∇", infty: "∞", cdot: "·",
  times: "×", le: "≤", ge: "≥", ne: "≠", approx: "≈", to: "→", in: "∈", sum: "∑", top: "⊤", star: "★",
  "|": "‖", ",": " ", " ": " ", langle: "⟨", rangle: "⟩", "{": "{", "}": "}", percent: "%", ll: "≪", sqrt: "√",
};
const UPRIGHT = new Set(["Gamma", "Delta", "Lambda", "Sigma", "Upsilon", "Xi", "Omega", "nabla", "sum"]);

// The little of TeX that labels need, as [kind, content]: letters lean, words in \text{} stand.
function parse(source) {
  const found = [];
  let at = 0;
  const braced = () => {
    if (source[at] !== "{") {
      if (source[at] === "\\") {
        const name = /^\\([A-Za-z]+|.)/.exec(source.slice(at));
        at += name[0].length;
        return name[0];
      }
      at += 1;
      return source[at - 1];
    }
    let depth = 0;
    const from = at + 1;
    do {
      if (source[at] === "{") depth += 1;
      if (source[at] === "}") depth -= 1;
      at += 1;
    } while (depth && at <= source.length);
    return source.slice(from, at - 1);
  };
  while (at < source.length) {
    const c = source[at];
    if (c === "_" || c === "^") {
      at += 1;
      found.push([c === "_" ? "low" : "high", parse(braced())]);
    } else if (c === "\\") {
      const name = /^\\([A-Za-z]+|.)/.exec(source.slice(at))[1];
      at += name.length + 1;
      if (/^[A-Za-z]/.test(name)) while (source[at] === " ") at += 1;
      if (["text", "mathrm", "operatorname"].includes(name)) found.push(["words", braced()]);
      else if (name === "bar") found.push(["barred", braced()]);
      else if (name in SIGNS) found.push([/[a-z]/i.test(name) && !UPRIGHT.has(name) && SIGNS[name].match(/\p{L}/u) ? "letter" : "sign", SIGNS[name]]);
      else found.push(["words", name]); // \log, \softmax
    } else if (c === "{" || c === "}") at += 1;
    else {
      at += 1;
      if (/[A-Za-z]/.test(c)) found.push(["letter", c]);
      else if (c !== " ") found.push(["sign", c === "-" ? "−" : c === "'" ? "′" : /[=<>+≤≥≈→∈]/.test(c) ? ` ${c} ` : c]);
    }
  }
  return found;
}

const safe = (words) => words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const barred = (content) => parse(content).map(([, sign]) => `${safe(sign)}\u0304`).join("");
const ZERO = "&#8203;"; // carries the way back to the line

function asSvg(parts) {
  return parts.map(([kind, content]) => {
    if (kind === "letter") return `<tspan class="al-mi">${content}</tspan>`;
    if (kind === "barred") return `<tspan class="al-barred">${barred(content)}</tspan>`;
    if (kind === "low" || kind === "high") {
      const way = kind === "low" ? 0.32 : -0.5;
      return `<tspan dy="${way}em" font-size="75%">${asSvg(content)}</tspan><tspan dy="${-way * 0.75}em">${ZERO}</tspan>`;
    }
    return safe(content);
  }).join("");
}

function asHtml(parts) {
  return parts.map(([kind, content]) => {
    if (kind === "letter") return `<i class="al-mi">${content}</i>`;
    if (kind === "barred") return `<i class="al-barred">${barred(content)}</i>`;
    if (kind === "low") return `<sub>${asHtml(content)}</sub>`;
    if (kind === "high") return `<sup>${asHtml(content)}</sup>`;
    return safe(content);
  }).join("");
}

// "1.8e-3" and "10^6", as programs write them, as people do: 1.8 · 10⁻³, which no line breaks.
const UP = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const ten = (e) => `10${e < 0 ? "⁻" : ""}${String(Math.abs(e)).split("").map((c) => UP[c]).join("")}`;
export const tens = (words) => String(words)
  .replace(/(?<![\w.])(\d+(?:\.\d+)?)e([+-]?\d+)(?!\w)/g, (_, digits, e) => `${digits === "1" ? "" : `${digits}\u00a0·\u00a0`}${ten(e)}`)
  .replace(/(?<![\w.])10\^(-?\d+)(?![\w.])/g, (_, e) => ten(e));

// "tau_0", "w_O", "d_m^-0.5", "epsilon" in plain words are mathematics too.
const GREEK = Object.keys(SIGNS).filter((name) => /^\p{Script=Greek}$/u.test(SIGNS[name])).join("|");
const LOOSE = new RegExp(`(?:(?<![\\w\\\\.]|\\w-)|(?=\\)))(?:(${GREEK})|[A-Za-zα-ω]|[a-z]+(?=\\^)|\\d+(?=\\^)|\\)(?=\\^))(?:_(\\w+))?(?:\\^(-?(?:[\\d.]*\\d(?:/\\d+)?|[A-Za-z])))?(?!\\w)`, "g");
const standing = (word) => (/^[A-Za-z]{2,}$/.test(word) ? `\\text{${word}}` : word);
const dollars = (words) => words.replace(LOOSE, (found, greek, low, high) => {
  if (!(greek || low || high)) return found;
  const letter = greek ? `\\${greek}` : standing(found.replace(/[_^].*/, ""));
  return `$${letter}${low ? `_{${standing(low)}}` : ""}${high ? `^{${high}}` : ""}$`;
});

const both = (words, form) => tens(words).split(/(\$[^$]*\$)/).map((part) =>
  (part.startsWith("$") ? part : dollars(part))).join("").split(/\$([^$]*)\$/).map((part, k) =>
  (k % 2 ? form(parse(part)) : safe(part))).join("");

// "length of $W$": mathematics between dollars, for the inside of an SVG text, of an HTML element,
// and for what is read aloud.
export const label = (words) => both(words, asSvg);
export const html = (words) => both(words, asHtml);
export const plain = (words) => {
  const flat = (parts) => parts.map(([kind, content]) => (Array.isArray(content) ? ` ${flat(content)}`
    : kind === "barred" ? `${flat(parse(content))} bar` : content)).join("");
  return tens(words).replace(/\$([^$]*)\$/g, (_, source) => flat(parse(source)).replace(/\s+/g, " ").trim());
};

// -- numbers as people write them -------------------------------------------------------------------
export const percent = (x) =>
  `${x >= 0.9995 ? "100" : x > 0.995 ? "> 99" : x < 0.0005 ? "0" : x < 0.1 ? (100 * x).toFixed(1) : Math.round(100 * x)} %`;
export const power = (x) => {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : "none";
  const e = Math.floor(Math.log10(Math.abs(x)) + 1e-9);
  if (e >= -2 && e < 4) return x.toPrecision(2 + Math.max(0, e)).replace("-", "−").replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  return tens(x.toExponential(1).replace(/^-/, "−")).replaceAll("\u00a0", " "); // 10 ** -324 is 0
};
export const signed = (x, digits = 2) => `${x < 0 ? "−" : ""}${Math.abs(x).toFixed(digits)}`;

// -- a view ---------------------------------------------------------------------------------------
// Keeps an <svg> in `host` at the host's width; `draw(width)` gives {height, inner}, `told()` what
// a reader hears. `update()` draws anew.
export function view(host, told, draw) {
  const node = document.createElementNS(SPACE, "svg");
  node.setAttribute("role", "img");
  node.setAttribute("class", "al-view");
  host.prepend(node);
  let width = 0;
  const update = () => {
    width = Math.round(host.clientWidth) || width;
    if (!width) return;
    const { height, inner } = draw(width);
    node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    node.setAttribute("width", width);
    node.setAttribute("height", height);
    node.setAttribute("aria-label", plain(typeof told === "function" ? told() : told));
    node.innerHTML = inner;
  };
  const watch = new ResizeObserver(() => { if (Math.round(host.clientWidth) !== width) update(); });
  watch.observe(host);
  return { node, update, stop: () => watch.disconnect(), get width() { return width; } };
}
