// The page on which people mark: clicks and keys, each saved at once; formulas by MathJax.
const body = document.body;
const form = document.querySelector("form.rubric");
const one = (selector) => document.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// -- formulas: ours first, so that what an answer defines changes no text of ours ----------------
if (body.dataset.mathjax) {
  window.MathJax = {
    tex: {
      packages: ["base", "ams", "newcommand", "noundefined", "configmacros"],
      macros: { mmlToken: "\\text{mmlToken}" }, // could carry links and styles
      maxMacros: 1000,
    },
    options: { enableMenu: false },
    startup: {
      typeset: false,
      async ready() {
        MathJax.startup.defaultReady();
        document.documentElement.dataset.set = "";
        await MathJax.typesetPromise(all(".ours .math"));
        await MathJax.typesetPromise(all(".prose .math"));
        reachable();
        body.dataset.typeset = "";
      },
    },
  };
  const script = document.createElement("script");
  script.src = body.dataset.mathjax;
  script.onerror = () => delete document.documentElement.dataset.set;
  document.head.append(script);
}

// What is wider than its box can be moved by keys.
function reachable() {
  all(".math.shown, .prose, legend, details > div").forEach((box) => {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
  });
}

// -- marks ---------------------------------------------------------------------------------------
const rows = form ? all("fieldset", form) : [];
const radios = (row) => all("input", row);
const level = (row) => {
  const on = radios(row).find((input) => input.checked);
  return on ? Number(on.value) : null;
};
const put = (row, value) => {
  for (const input of radios(row)) input.checked = value !== null && Number(input.value) === value;
};
const most = (row) => Number(radios(row)[0].value);
const words = (text, bad = false) => {
  one("#said").textContent = text;
  one("#said").classList.toggle("bad", bad);
};

function otherwise() {
  const told = one("#otherwise").value.trim().replace(",", ".");
  return told === "" ? null : Number(told);
}

function sum() {
  const other = otherwise();
  const open = rows.filter((row) => level(row) === null).length;
  const points = Number.isNaN(other) ? "?" : other ?? rows.reduce((total, row) => total + (level(row) ?? 0), 0);
  one("#sum").textContent = `${points} of ${form.dataset.most}`;
  return other === null ? open : 0;
}

let chain = Promise.resolve(null);
let timer = 0;
let pending = 0;

function save() {
  clearTimeout(timer);
  timer = 0;
  const open = sum();
  if (Number.isNaN(otherwise())) {
    words("Not saved: points are a number.", true);
    return Promise.resolve(null);
  }
  const { set, problem, who, of, settle } = form.dataset;
  const told = {
    set, problem, who, of, settle: Boolean(settle),
    items: rows.map(level), otherwise: otherwise(), comment: one("#comment").value,
  };
  pending += 1;
  chain = chain.then(async () => {
    try {
      const reply = await fetch(`${body.dataset.base}save`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(told),
        keepalive: true,
      });
      const found = await reply.json();
      if (found.error) throw new Error(found.error);
      one("#far").textContent = found.finished;
      one("progress").value = found.finished;
      words(open ? `Saved. ${open} of ${rows.length} not decided.` : "Saved.");
      return found;
    } catch (error) {
      words(`Not saved: ${error.message}`, true);
      return null;
    } finally {
      pending -= 1;
    }
  });
  return chain;
}

const settled = () => (timer ? save() : chain);

async function leave(address) {
  const failed = one("#said")?.classList.contains("bad");
  if (form && (timer || pending)) await settled();
  if (form && !failed && one("#said").classList.contains("bad")) return;
  location.href = address;
}

const acts = {
  async done() {
    const open = sum();
    if (open === rows.length && otherwise() === null) {
      words("Nothing is decided yet: 0 gives no points.", true);
      return;
    }
    acts.rest(false);
    const found = await save();
    if (found) location.href = found.next;
  },
  rest(keep = true) {
    for (const row of rows) if (level(row) === null) put(row, 0);
    if (keep) save();
  },
  all() {
    for (const row of rows) put(row, most(row));
    save();
  },
  clear() {
    for (const row of rows) put(row, null);
    one("#otherwise").value = "";
    save();
  },
};

function press(row) {
  const values = radios(row).map((input) => Number(input.value));
  const now = level(row);
  put(row, now === null ? values[0] : values[(values.indexOf(now) + 1) % values.length]);
  row.scrollIntoView({ block: "nearest" });
  save();
}

if (form) {
  sum();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (event.target.id !== "keys") save();
  });
  form.addEventListener("input", (event) => {
    if (!["comment", "otherwise"].includes(event.target.id)) return;
    clearTimeout(timer);
    timer = setTimeout(save, 400);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.do) acts[button.dataset.do]();
    if (button.dataset.take !== undefined) {
      const given = button.dataset.take.split(",");
      rows.forEach((row, k) => put(row, given[k] === "" ? null : Number(given[k])));
      one("#otherwise").value = button.dataset.otherwise;
      one("#comment").value = button.dataset.comment;
      save();
    }
    if (button.dataset.do !== "done") one("[data-do=done]").focus(); // Enter goes on
  });
  addEventListener("beforeunload", () => {
    if (timer) save();
  });
}

// -- keys ----------------------------------------------------------------------------------------
const keys = one("#keys");
if (keys) {
  keys.checked = localStorage.getItem("keys") !== "off";
  keys.addEventListener("change", () => localStorage.setItem("keys", keys.checked ? "on" : "off"));
}

addEventListener("keydown", (event) => {
  const { target, key } = event;
  const typing = target.matches("textarea, input:not([type=radio], [type=checkbox])");
  if (typing) {
    if (key === "Escape") target.blur();
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) acts.done();
    if (key === "Enter" && target.id === "otherwise") target.blur();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !keys?.checked) return;
  if (key === "Enter" && target.matches("a, button, summary")) return;
  const choice = target.matches("input[type=radio]") && key.startsWith("Arrow");
  if (choice) return;
  const name = { ArrowRight: "n", ArrowLeft: "p" }[key] ?? key;
  const link = one(`a[data-key="${CSS.escape(name)}"]`);
  const fold = one(`details[data-fold="${CSS.escape(name)}"]`);
  const act = form && { Enter: "done", a: "all", 0: "rest" }[name];
  if (link) leave(link.href);
  else if (fold) fold.open = !fold.open;
  else if (form && /^[1-9]$/.test(name) && rows[name - 1]) press(rows[name - 1]);
  else if (act) acts[act]();
  else if (form && name === "c") one("#comment").focus();
  else return;
  event.preventDefault();
});
