// The scratch page: cells of the reader's own, kept on the device, saved as a notebook.
import { NOTEBOOK } from "./kept.js";

const first = "import numpy as np\nfrom attnlab import models, optim, problems, svm\n\nproblem = problems.sphere(n=4, T=6, d=10, rng=0)\nproblem";

export function scratchpad({ home, kept, told, extra, make, button, prepare, ask, examples, busy, drop }) {
  let count = 0;
  const list = make("div"), others = make("div", { className: "live-offers" });
  const filled = () => extra.map((one) => one.code).filter((code) => code.trim());
  const store = (at) => {
    if (filled().length) kept.put(NOTEBOOK, "", JSON.stringify(filled()), typeof at === "number" ? at : undefined);
    else kept.clear(NOTEBOOK);
    told();
    offer();
  };
  const cell = (code, after = null) => {
    count += 1;
    const id = `s${count}`, holder = make("div", { className: "cell docutils container" });
    const input = make("div", { className: "cell_input docutils container" }, make("div", { className: "highlight" }));
    holder.append(input);
    const made = { id, el: holder, input, original: "", code, number: 100 + count, group: extra, store };
    const place = after ? extra.indexOf(after) + 1 : extra.length;
    extra.splice(place, 0, made);
    if (after) after.el.after(holder); else list.append(holder);
    prepare(made);
    made.bar.querySelector('[data-do="reset"]').replaceWith(
      button("Add below", "add", () => { cell("", made).view.focus(); store(); }, "Add a cell below this one"),
      button("Remove", "remove", () => {
        if (made === busy()) return;
        drop(made);
        extra.splice(extra.indexOf(made), 1);
        made.view.remove();
        holder.remove();
        store();
      }, "Remove this cell"));
    return made;
  };
  const codes = (one) => {
    try {
      const given = JSON.parse(one.code);
      return Array.isArray(given) ? given.filter((code) => typeof code === "string") : [];
    } catch { return []; }
  };
  const versions = () => kept.all().filter((one) => one.id === NOTEBOOK && codes(one).length);
  const mine = versions().at(-1);
  (mine ? codes(mine) : [first]).forEach((code) => cell(code));
  if (mine) kept.show(NOTEBOOK, mine);
  // Notebooks that other windows kept: their cells can be added to this one.
  function offer() {
    const here = JSON.stringify(filled());
    const found = versions().reverse().filter((one) => !kept.shown(NOTEBOOK, one) && one.code !== here);
    const text = JSON.stringify(found.map((one) => one.code));
    if (others.dataset.told === text) return;
    others.dataset.told = text;
    others.replaceChildren(...found.map((one) => {
      const made = make("div", { className: "live-offer", ariaLabel: "Another notebook of yours" },
        make("p", { textContent: "You also have this notebook, from another window:" }),
        make("pre", { tabIndex: 0, textContent: codes(one).join("\n\n") }),
        make("div", { className: "live-bar" },
          button("Add its cells to this notebook", "use", () => {
            const have = new Set(filled());
            codes(one).filter((code) => !have.has(code)).forEach((code) => cell(code));
            store();
            if (!kept.unsaved.has(NOTEBOOK)) kept.drop(one);
            offer();
            extra.at(-1).view.focus();
          }),
          button("Discard it", "discard", () => { kept.drop(one); offer(); extra[0].view.focus(); })));
      made.setAttribute("role", "group");
      return made;
    }));
  }
  home.replaceChildren(list, make("div", { className: "live-bar" },
    button("Add a cell", "add-cell", () => { cell("").view.focus(); store(); }),
    button("Run my notebook", "run-notebook", () => ask([...extra])),
    button("Save as .ipynb", "save", () => save(extra.map((one) => one.code), make)),
    button("Clear", "clear", () => {
      extra.slice().forEach((one) => { if (one !== busy()) { drop(one); extra.splice(extra.indexOf(one), 1); one.el.remove(); } });
      if (!extra.length) cell("");
      store();
    })), others);
  offer();
  examples.forEach((example) => example.bar.append(button("Copy into my notebook", "copy", () => {
    const last = extra.at(-1);
    if (last && !last.code.trim()) last.view.put(example.code);
    else cell(example.code);
    store();
    extra.at(-1).el.scrollIntoView({ block: "nearest" });
    extra.at(-1).view.focus();
  })));
  return { offer, store };
}

function save(codes, make) {
  const lines = (code) => code.split(/(?<=\n)/);
  const notebook = {
    cells: codes.map((code, k) => ({ cell_type: "code", execution_count: null, id: `scratch-${k + 1}`, metadata: {}, outputs: [], source: lines(code) })),
    metadata: { kernelspec: { display_name: "Python 3", language: "python", name: "python3" }, language_info: { name: "python" } },
    nbformat: 4,
    nbformat_minor: 5,
  };
  const address = URL.createObjectURL(new Blob([JSON.stringify(notebook, null, 1)], { type: "application/x-ipynb+json" }));
  make("a", { href: address, download: "scratch.ipynb" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
