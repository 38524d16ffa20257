// What a reader types as a number: "5,2", "10^-3", "ln(100)/0.88", "3/4", "12 %"; and as a power of
// one variable: "-2", "t^-2", "1/sqrt(t)". Anything else is null.

const WORDS = {
  ln: Math.log, log: Math.log, exp: Math.exp, sqrt: Math.sqrt, log2: Math.log2, log10: Math.log10, abs: Math.abs,
  sin: Math.sin, cos: Math.cos, tan: Math.tan,
};
const NAMED = { pi: Math.PI, "π": Math.PI, e: Math.E };
const RAISED = { "⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9", "⁻": "-", "⁄": "/" };
const SIGNS = { "−": "-", "–": "-", "·": "*", "×": "*", "÷": "/", "{": "(", "}": ")", "[": "(", "]": ")" };

const tidy = (words) => String(words).trim().toLowerCase()
  .replace(/\\(sqrt|ln|log|exp|pi|cdot|times)\s*/g, (_, name) => (/cdot|times/.test(name) ? "*" : name))
  .replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁄]+/g, (found) => `^(${[...found].map((c) => RAISED[c]).join("")})`)
  .replace(/[−–·×÷{}[\]]/g, (c) => SIGNS[c])
  .replace(/√/g, "sqrt").replace(/\*\*/g, "^").replace(/\$/g, "");

const TOKEN = /\s*(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|log10|log2|[a-zπ]+|[-+*/^()%])/y;

function read(words) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < words.length) {
    const next = TOKEN.exec(words);
    if (!next) return null;
    found.push(next[1]);
  }
  return found.length ? found : null;
}

// sum > product > sign > power > atom; a product may be left unsaid, as in 2 sqrt(3) or 2(1 + 1)
function evaluate(tokens) {
  let at = 0;
  const wrong = () => { throw new SyntaxError("not a number"); };
  const atom = () => {
    const next = tokens[at];
    at += 1;
    if (next === "(") {
      const inner = sum();
      if (tokens[at] !== ")") wrong();
      at += 1;
      return inner;
    }
    if (next in NAMED) return NAMED[next];
    if (next in WORDS) return WORDS[next](tokens[at] === "(" ? atom() : power());
    return next !== undefined && /^[\d.]/.test(next) ? Number(next) : wrong();
  };
  const power = () => {
    const base = atom();
    if (tokens[at] !== "^") return base;
    at += 1;
    return base ** sign();
  };
  const sign = () => {
    if (tokens[at] !== "-" && tokens[at] !== "+") return power();
    at += 1;
    return tokens[at - 1] === "-" ? -sign() : sign();
  };
  const product = () => {
    let value = sign();
    for (;;) {
      const next = tokens[at];
      if (next === "%") { value /= 100; at += 1; } else if (next === "*" || next === "/") {
        at += 1;
        value = next === "*" ? value * sign() : value / sign();
      } else if (next !== undefined && (next === "(" || /^[a-zπ]/.test(next))) value *= sign();
      else return value;
    }
  };
  const sum = () => {
    let value = product();
    while (tokens[at] === "+" || tokens[at] === "-") {
      at += 1;
      value += tokens[at - 1] === "+" ? product() : -product();
    }
    return value;
  };
  const value = sum();
  return at === tokens.length && Number.isFinite(value) ? value : wrong();
}

// A number, or null. `unit` may stand behind it; 5,2 is 5.2 and 1,000 a thousand.
export function number(words, unit = "") {
  let text = tidy(words);
  const own = tidy(unit);
  if (own && text.endsWith(own)) text = text.slice(0, -own.length).trim();
  text = text.replace(/\b[1-9]\d{0,2}(,\d{3})+\b(?![,\d])/g, (found) => found.replaceAll(",", "")).replace(/(\d),(\d)/g, "$1.$2");
  const tokens = read(text);
  if (!tokens) return null;
  try {
    return evaluate(tokens);
  } catch {
    return null;
  }
}

// The exponent of a power law, or null: "-2", "1/2", "t^-2", "1/t", "t^(-1/2)", "1/sqrt(t)".
export function exponent(words) {
  const plain = number(words);
  if (plain !== null) return plain;
  const text = tidy(words).replace(/\s+/g, "");
  const found = /^(\d+\/)?(?:sqrt\(?([a-z])\)?|([a-z])(?:\^(.+))?)$/.exec(text);
  if (!found) return null;
  const [, under, root, , raised] = found;
  const size = root ? 0.5 : raised === undefined ? 1 : number(raised);
  return size === null ? null : under ? -size : size;
}
