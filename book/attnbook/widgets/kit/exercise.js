// A checked exercise: what the reader answers, what is said to it, hint and solution. The words
// stand on the page before any script runs; this file adds the form and the verdict.

import { exponent, number } from "./expression.js";
import { remember, solved } from "./solved.js";
import { html } from "./view.js";

const NUMBER = "A number, please, such as 5.2 or ln(100)/3.";
const POWER = "A power, please, such as -2, 1/2 or t^-2.";

const make = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => node.setAttribute(key, value));
  node.append(...children);
  return node;
};

// Words with $formulas$, `code`, *emphasis* and **strong emphasis** as HTML, by the rules of
// `rich` in exercise/_record.py. Everything else is escaped. `formula` writes a formula.
const MARKED = /\$([^$]+)\$|`([^`]+)`|\*\*(.+?)\*\*|\*(.+?)\*/;
const escaped = (words) => words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
function rich(words, formula) {
  const found = MARKED.exec(words);
  if (!found) return html(words);
  const [whole, tex, code, strong, lean] = found;
  const marked = tex !== undefined ? formula(tex)
    : code !== undefined ? `<code>${escaped(code)}</code>`
      : strong !== undefined ? `<strong>${rich(strong, formula)}</strong>` : `<em>${rich(lean, formula)}</em>`;
  return html(words.slice(0, found.index)) + marked + rich(words.slice(found.index + whole.length), formula);
}
// Into a node; MathJax sets the formulas where the page has it.
const typesets = () => typeof window.MathJax?.typesetPromise === "function";
function put(node, words) {
  const plainly = () => { node.innerHTML = rich(words, (tex) => html(`$${tex}$`)); };
  if (!words.includes("$") || !typesets()) {
    plainly();
    return;
  }
  node.innerHTML = rich(words, (tex) => escaped(`\\(${tex}\\)`));
  window.MathJax.typesetPromise([node]).catch(plainly);
}

// -- what an answer is -------------------------------------------------------------------------
const gap = (x, wanted, task) => (task.relative && wanted !== 0 ? Math.abs(x - wanted) / Math.abs(wanted) : Math.abs(x - wanted));
const says = (verdict, key, words) => ({ verdict, key, words });

function amount(task, x) {
  if (gap(x, task.answer, task) <= task.tolerance) return says("right", "right", task.right);
  const named = task.wrong.map(({ value }, k) => [gap(x, value, task), k]).sort((a, b) => a[0] - b[0])[0];
  if (named && named[0] <= task.tolerance) return says("wrong", `wrong-${named[1]}`, task.wrong[named[1]].say);
  if (gap(-x, task.answer, task) <= task.tolerance) return says("wrong", "sign", "The size is right, the sign is not.");
  return x < task.answer ? says("wrong", "small", task.small) : says("wrong", "large", task.large);
}

const JUDGE = {
  number(task, words) {
    const x = number(words, task.unit);
    return x === null ? says("", "bad", NUMBER) : amount(task, x);
  },
  power(task, words) {
    const x = exponent(words);
    return x === null ? says("", "bad", POWER) : amount(task, x);
  },
  choice: (task, key) => says(key === task.answer ? "right" : "wrong", key, task.say[key]),
  reach: (task) => reached(task),
};
JUDGE.false_line = JUDGE.choice;

// -- the state of an explorable ----------------------------------------------------------------
const target = (task) => document.querySelector(`[data-explorable="${task.explorable}"]`);

function look(el, path) {
  const [head, ...rest] = path.split(".");
  let found = el.dataset[head] ?? el.alState?.[head];
  if (typeof found === "string") {
    try { found = JSON.parse(found); } catch { /* a word */ }
  }
  return rest.reduce((value, key) => value?.[key], found);
}

const TESTS = {
  is: (value, wanted) => JSON.stringify(value) === JSON.stringify(wanted),
  not: (value, other) => value !== undefined && JSON.stringify(value) !== JSON.stringify(other),
  above: (value, bound) => Number(value) > bound,
  below: (value, bound) => Number(value) < bound,
  near: (value, [wanted, reach]) => Math.abs(Number(value) - wanted) <= reach,
  among: (value, options) => options.some((each) => TESTS.is(value, each)),
  count: (value, wanted) => Array.isArray(value) && value.flat(9).filter(Boolean).length === wanted,
};

function reached(task) {
  const el = target(task);
  if (!el || el.dataset.ready === undefined) return says("", "absent", "The picture has not started yet.");
  if (el.dataset.sealed === "true") return says("", "sealed", "Answer the question above the picture first.");
  const missed = task.goal.find(([path, tests]) => {
    const value = look(el, path);
    return value === "" || value === null || value === undefined
      || !Object.entries(tests).every(([name, wanted]) => TESTS[name](value, wanted));
  });
  return missed ? says("wrong", missed[0], task.say[missed[0]] ?? task.missed) : says("right", "right", task.right);
}

// -- the form ----------------------------------------------------------------------------------
function field(task, answer) {
  const id = `answer-${task.id}`;
  const input = make("input", { type: "text", id, autocomplete: "off", spellcheck: "false", size: "12", "aria-describedby": `told-${task.id}` });
  if (task.kind === "power") input.placeholder = "t^…";
  const form = make("form", { class: "al-ask-form", novalidate: "" },
    make("label", { for: id }, task.kind === "power" ? "Your power" : "Your answer"), input,
    ...(task.unit ? [make("span", { class: "al-ask-unit" })] : []), make("button", { type: "submit" }, "Check"));
  if (task.unit) put(form.querySelector(".al-ask-unit"), task.unit);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(input.value);
    input.select();
  });
  return form;
}

// The list that stands on the page becomes buttons: its nodes move, so formulas stay as they are.
function options(el, answer) {
  el.querySelectorAll("[data-option]").forEach((item) => {
    const said = item.querySelector(".math, mjx-container") && item.textContent.replace(/\\[()]/g, " ").trim();
    const button = make("button", { type: "button", "aria-pressed": "false" }, ...item.childNodes);
    if (said) button.setAttribute("aria-label", said); // a formula names no button
    button.addEventListener("click", () => {
      el.querySelectorAll("[data-option] > button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      answer(item.dataset.option);
    });
    item.append(button);
  });
}

function hands(task, answer) {
  const show = make("button", { type: "button", class: "al-ask-show" }, "Show me");
  const check = make("button", { type: "button" }, "Check the picture");
  check.addEventListener("click", () => answer(""));
  show.addEventListener("click", () => {
    const el = target(task);
    el?.dispatchEvent(new CustomEvent("al-state", { detail: task.reached }));
    el?.scrollIntoView({ block: "nearest" });
  });
  return make("div", { class: "al-ask-form" }, check, show);
}

const MARKS = { right: ["✓", "Right. "], wrong: ["✗", "Not yet. "], "": ["", ""] };

export default {
  render({ model, el }) {
    const task = model.get("task");
    if (!el.querySelector(".al-ask-head")) { // a notebook: the static page has the words already
      el.innerHTML = model.get("markup");
      el.querySelectorAll("p, li, span").forEach((node) => {
        if (!node.firstElementChild || node.querySelector("code, em")) node.innerHTML = node.innerHTML.replace(/\\\((.*?)\\\)/g, (_, tex) => html(`$${tex.replace(/&amp;/g, "&").replace(/&lt;/g, "<").replace(/&gt;/g, ">")}$`));
      });
      el.classList.add("al-exercise");
      el.dataset.exercise = task.id;
    }
    const mark = make("span", { class: "al-ask-mark", "aria-hidden": "true" });
    const word = make("span", { class: "al-ask-hidden" });
    const words = make("span", { class: "al-ask-words" });
    const told = make("p", { class: "al-ask-told", id: `told-${task.id}`, role: "status" });
    const head = el.querySelector(".al-ask-head");
    const [hint, solution] = ["hint", "solution"].map((name) => el.querySelector(`.al-ask-${name}`));
    const kept = make("span", { class: "al-ask-kept" });
    head.append(kept);

    const note = () => { kept.textContent = solved()[task.id] === "right" ? "solved" : ""; };
    const open = () => { if (solution) solution.hidden = false; };
    const answer = (given) => {
      const found = JUDGE[task.kind](task, given);
      [mark.textContent, word.textContent] = MARKS[found.verdict];
      put(words, found.words);
      el.dataset.said = found.key;
      if (!found.verdict) {
        delete el.dataset.verdict;
        return;
      }
      el.dataset.verdict = found.verdict;
      if (solved()[task.id] !== "right" || found.verdict === "right") remember(task.id, found.verdict);
      note();
      open();
      model.set("state", { given, verdict: found.verdict });
      model.save_changes();
    };

    // a hint comes before the solution; the solution after the hint, or after an attempt
    if (hint && solution) {
      solution.hidden = true;
      hint.addEventListener("toggle", open);
    }
    let form = null;
    if (task.kind === "number" || task.kind === "power") form = field(task, answer);
    else if (task.kind === "reach") form = hands(task, answer);
    else options(el, answer);
    told.append(mark, word, words);
    const parts = [form, told].filter(Boolean);
    if (hint || solution) (hint || solution).before(...parts);
    else el.append(...parts);

    let watch = null;
    let timer = null;
    if (task.kind === "reach") { // reached is reached, whether somebody pressed a button or not
      const see = () => {
        const found = reached(task);
        if (found.verdict === "right" ? el.dataset.verdict !== "right" : el.dataset.verdict) answer("");
      };
      const begin = () => {
        const picture = target(task);
        if (!picture) return false;
        watch = new MutationObserver(see);
        watch.observe(picture, { attributes: true, attributeFilter: ["data-draws", "data-ready", "data-sealed"] });
        see();
        return true;
      };
      if (!begin()) timer = window.setInterval(() => { if (begin()) window.clearInterval(timer); }, 700);
    }
    note();
    const forgot = () => { note(); };
    window.addEventListener("al-forgot", forgot);
    el.dataset.ready = "true";
    return () => {
      watch?.disconnect();
      window.clearInterval(timer);
      window.removeEventListener("al-forgot", forgot);
    };
  },
};
