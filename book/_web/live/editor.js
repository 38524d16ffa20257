// An editor for a cell: CodeMirror, in the colours that the page's code has anyway.

// What Pygments calls the kinds of words that CodeMirror's own style colours like this.
const CLASSES = { "#708": "k", "#219": "kc", "#164": "mf", "#a11": "s2", "#e40": "s2", "#940": "c1", "#167": "nc" };

// The editor's script, once; it was checked like every other file.
export async function codemirror(blob) {
  if (!window.CM6) {
    const address = URL.createObjectURL(blob);
    await new Promise((done, failed) => {
      document.head.append(Object.assign(document.createElement("script"), { src: address, onload: done, onerror: () => failed(new Error("the editor did not load")) }));
    });
    URL.revokeObjectURL(address);
  }
  return window.CM6;
}

let wrong, marks, colours; // an effect, the field that draws it, a style: made once
function once(CM) {
  if (wrong) return;
  wrong = CM.StateEffect.define();
  const line = CM.Decoration.line({ class: "live-wrong" });
  marks = CM.StateField.define({
    create: () => CM.Decoration.none,
    update(found, change) {
      let now = change.docChanged ? CM.Decoration.none : found;
      change.effects.forEach((effect) => {
        if (!effect.is(wrong)) return;
        const at = effect.value;
        now = at > 0 && at <= change.state.doc.lines ? CM.Decoration.set([line.range(change.state.doc.line(at).from)]) : CM.Decoration.none;
      });
      return now;
    },
    provide: (field) => CM.EditorView.decorations.from(field),
  });
  const specs = CM.defaultHighlightStyle.specs.filter(({ color }) => color in CLASSES);
  colours = CM.HighlightStyle.define(specs.map(({ tag, color }) => ({ tag, class: CLASSES[color] })));
}

// `run(next)`: run this cell, and go on to the next; `change(code)`: what was typed.
export function editor(CM, parent, code, label, { run, change }) {
  once(CM);
  const view = new CM.EditorView({
    parent,
    state: CM.EditorState.create({
      doc: code,
      extensions: [
        CM.keymap.of([
          { key: "Shift-Enter", run: () => (run(true), true) },
          { key: "Mod-Enter", run: () => (run(false), true) },
        ]),
        CM.history(), CM.drawSelection(), CM.highlightSpecialChars(), CM.bracketMatching(), CM.indentUnit.of("    "), CM.indentOnInput(),
        CM.python(), CM.syntaxHighlighting(colours), marks,
        CM.keymap.of([...CM.defaultKeymap, ...CM.historyKeymap]), // Tab is not among them: it leaves
        CM.EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false", autocapitalize: "off", autocorrect: "off" }),
        CM.EditorView.updateListener.of((update) => { if (update.docChanged) change(update.state.doc.toString()); }),
      ],
    }),
  });
  return {
    focus: () => view.focus(),
    put: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
    wrong: (line) => view.dispatch({ effects: wrong.of(line) }),
    remove: () => view.destroy(),
  };
}
