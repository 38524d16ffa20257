// Seventy-two heads of a real model: what each attends to, and how close it lies to its own SVM.

import { explorable, fixed, make } from "./kit/kit.js";
import { circle, group, label, line, percent, rect, text } from "./kit/view.js";
import { scale } from "./kit/scale.js";

const HEADS = 12;
const SIZE = 16; // tokens of a sentence that are kept
const LOW = 0.15;
const whole = (value, most) => Math.max(0, Math.min(most, Math.round(value) || 0)); // any address

export default explorable({
  name: "real_heads",
  wide: true,
  title: "Six layers of twelve heads",
  answers: ["first", "taught"],
  defaults: { layer: 3, head: 1, sentence: 1, query: 10, show: "attention", open: 0, first: null, taught: null },
  build(kit) {
    const { values: maps } = kit.data("maps");
    const { values: cosines } = kit.data("cosines");
    const letters = kit.data("letters");
    const count = letters.shape[0];
    const layers = kit.data("own").shape[0];
    const every = layers * HEADS;
    const sentences = Array.from({ length: count }, (_, k) => Array.from({ length: SIZE }, (__, t) =>
      String.fromCharCode(...kit.list("letters", k, t).filter(Boolean))).filter(Boolean));
    const own = (h) => kit.list("own", Math.floor(h / HEADS), h % HEADS);
    const controls = (h) => ["random", "other"].map((name) => kit.list(name, Math.floor(h / HEADS), h % HEADS));
    const isFirst = (h) => own(h)[2] > Math.max(...controls(h).flat());
    const isLast = (h) => own(h)[2] < Math.min(...controls(h).flat());
    const lasts = () => Array.from({ length: every }, (_, h) => h).filter(isLast).length;
    const firsts = () => Array.from({ length: every }, (_, h) => h).filter(isFirst).length;
    const draws = () => kit.data("random").shape[2] + kit.data("other").shape[2];
    const now = (state) => {
      const [layer, head, sentence] = [whole(state.layer, layers - 1), whole(state.head, HEADS - 1), whole(state.sentence, count - 1)];
      const words = sentences[sentence];
      return { layer, head, sentence, words, query: whole(state.query, words.length - 1), h: layer * HEADS + head };
    };
    // weights that a token gives, of the head (0) or of its SVM (1); stored as roots
    const row = ({ layer, head, sentence, words }, which, query) => {
      const at = ((((layer * HEADS + head) * 2 + which) * count + sentence) * SIZE + query) * SIZE;
      const found = words.map((_, t) => (maps[at + t] / 127) ** 2);
      const sum = found.reduce((a, b) => a + b, 0) || 1;
      return found.map((p) => p / sum);
    };
    const alike = ({ layer, sentence, words }, query) => {
      const at = ((layer * count + sentence) * SIZE + query) * SIZE;
      return words.map((_, t) => cosines[at + t] / 127);
    };
    const lead = (s) => s.indexOf(Math.max(...s));

    const bar = kit.controls();
    kit.choice({ key: "sentence", label: "sentence", options: sentences.map((_, k) => [k, String(k + 1)]), parent: bar });
    kit.choice({ key: "layer", label: "layer", options: Array.from({ length: layers }, (_, k) => [k, String(k)]), parent: bar });
    kit.slider({ key: "head", label: "head", min: 0, max: HEADS - 1, step: 1, show: String });
    kit.slider({ key: "query", label: "the word that asks", min: 0, max: SIZE - 1, step: 1, show: (t) => now({ ...kit.state, query: t }).words[now({ ...kit.state, query: t }).query] });

    const above = kit.caption("");
    kit.draws.push(() => { above.textContent = `A disc’s area is the attention that the ringed word gives. Press a word to let it ask.${kit.opened ? " Below the head: its SVM, on other sentences, as long as the head." : ""}`; });
    const discs = kit.view({
      name: "words",
      told: (state) => {
        const here = now(state);
        const s = row(here, 0, here.query);
        return `Layer ${here.layer}, head ${here.head}: ${here.words[here.query]} attends to ${here.words.map((word, t) => `${word} ${percent(s[t])}`).join(", ")}`;
      },
      draw: (w, state) => {
        const here = now(state);
        const lines = kit.opened ? [["the head", 0, "trained"], ["its SVM", 1, "fro"]] : [["the head", 0, "trained"]];
        const cell = Math.max(52, w / here.words.length);
        const across = Math.max(1, Math.floor(w / cell));
        const most = Math.min(30, cell / 2 - 1);
        const tier = 2 * most + (kit.opened ? 18 : 6); // room for a name above the discs
        const tall = lines.length * tier + 30;
        const rows = Math.ceil(here.words.length / across);
        const weights = lines.map(([, which]) => row(here, which, here.query));
        const names = kit.opened ? lines.map(([name, , colour], k) => text(2, 12 + k * tier, name, { class: `al-small al-halo-text al-text-${colour}` })).join("") : "";
        const inner = here.words.map((word, t) => {
          const x = (t % across) * cell + cell / 2;
          const top = Math.floor(t / across) * tall;
          return group({ "data-query": t, style: "cursor:pointer" },
            rect(x - cell / 2, top, cell, tall - 4, { fill: "transparent" }),
            ...lines.map(([, , colour], k) => circle(x, top + (k + 1) * tier - most - 2, Math.max(1.5, most * Math.sqrt(weights[k][t])), { class: `al-fill-${colour}`, "fill-opacity": 0.75, "data-mark": k ? "fro" : "trained" })),
            t === here.query ? rect(x - cell / 2 + 3, top + tall - 26, cell - 6, 21, { class: "al-stroke-query", fill: "none", "stroke-width": 2, rx: 5, "data-mark": "query" }) : "",
            text(x, top + tall - 11, word, { class: "al-small", "text-anchor": "middle" }));
        }).join("");
        return { height: rows * tall, inner: inner + names };
      },
    });
    discs.host.addEventListener("click", (event) => {
      const pressed = event.target.closest?.("[data-query]");
      if (pressed) kit.set({ query: Number(pressed.dataset.query) });
    });

    kit.predict({
      heading: "Is a head where its own SVM points? Two predictions",
      go: "Compare",
      asks: [
        {
          kind: "number", key: "first", min: 0, max: every, step: 1, start: Math.round(every / 2), show: (v) => `${v} heads`,
          question: `Each of the ${every} heads is compared with the SVM of what it selects, and so are ${draws()} matrices made from it that learned nothing of these choices. How many heads come first among their ${draws() + 1}?`,
          truth: firsts,
          say: (mine) => {
            const fair = Math.round(every / (draws() + 1));
            const fact = `By luck alone it would be about ${fair}, so something is there; but ${lasts()} heads come last, where luck would give as few. The strip shows in which layers.`;
            if (mine === null) return fact;
            if (mine < fair - 1) return `Fewer than luck would give. ${fact}`;
            return mine > every * 0.8 ? `Had training really ended at the SVMs, you would be right. ${fact}` : fact;
          },
        },
        {
          kind: "number", key: "taught", min: 0, max: 1, step: 0.05, start: 0.8, show: (v) => v.toFixed(2),
          question: "Now a matrix that does what the theory says: trained on sentences of its own until it lies along its SVM. The probe sees it only on other sentences, as it sees MiniLM’s heads. Which cosine does it find, inside the span?",
          truth: () => Math.round(kit.list("taught")[1] * 100) / 100,
          say: (mine) => {
            const random = fixed(kit.list("taught_random")[0], 2);
            const fact = `On its own sentences the probe finds all of it. On others it looks much like a head, and only its distance to its own random directions, which have ${random}, tells it from them.`;
            if (mine === null) return fact;
            return mine > 0.7 ? `The matrix has not changed, but the SVM has: other sentences select other tokens, and have another answer. ${fact}` : fact;
          },
        },
      ],
    });

    const shownAfter = make("div", {});
    kit.main.append(shownAfter);
    const strip = kit.view({
      parent: shownAfter, name: "strip",
      told: (state) => {
        if (!kit.opened) return "Sealed until you answer";
        const here = now(state);
        return `Cosine with the own SVM, inside the span, for ${every} heads; ${firsts()} are ahead of all their controls. Layer ${here.layer}, head ${here.head}: ${fixed(own(here.h)[2], 3)}`;
      },
      draw: (w, state) => {
        if (!kit.opened) return { height: 0, inner: "" };
        const here = now(state);
        const [top, bottom, left] = [26, 250, 34];
        const Y = scale([LOW, 1.02], [bottom, top]);
        const X = (h) => left + ((h + 0.5) / every) * (w - left - 6);
        const step = (w - left - 6) / every;
        let inner = [0.2, 0.4, 0.6, 0.8, 1].map((v) => line(left, Y(v), w - 6, Y(v), { class: "al-grid" }) + text(left - 6, Y(v) + 4, v.toFixed(1), { class: "al-small", "text-anchor": "end" })).join("");
        inner += text(2, 12, "cosine with its own SVM, inside the span", { class: "al-small" });
        const [mine, others] = kit.list("taught");
        [[mine, "what the theory predicts, and the taught matrix on its own sentences", 15], [others, "the taught matrix on other sentences", -7]].forEach(([v, words, dy]) => {
          inner += line(left, Y(v), w - 6, Y(v), { class: "al-stroke-fro", "stroke-width": 2, "stroke-dasharray": "7 5", "data-mark": "fro" })
            + text(w - 8, Y(v) + dy, w < 520 ? words.replace(", and the taught matrix on its own sentences", "") : words, { class: "al-small al-halo-text al-text-fro", "text-anchor": "end" });
        });
        for (let k = 1; k < layers; k++) inner += line(X(k * HEADS) - step / 2, top, X(k * HEADS) - step / 2, bottom, { class: "al-grid" });
        for (let k = 0; k < layers; k++) inner += text(X(k * HEADS + 5.5), bottom + 16, w < 520 ? String(k) : `layer ${k}`, { class: "al-small", "text-anchor": "middle" });
        inner += rect(X(here.h) - Math.max(step, 8) / 2, top, Math.max(step, 8), bottom - top, { class: "al-fill-query", "fill-opacity": 0.2, "data-mark": "query" });
        for (let h = 0; h < every; h++) {
          const [random, other] = controls(h);
          random.forEach((v) => { inner += circle(X(h), Y(v), 1.8, { class: "al-fill-other", "data-mark": "random" }); });
          other.forEach((v) => { inner += circle(X(h), Y(v), 1.8, { class: "al-fill-rival", "data-mark": "other" }); });
          inner += circle(X(h), Y(own(h)[2]), h === here.h ? 5.5 : 3.6, { class: "al-fill-trained", "fill-opacity": isFirst(h) ? 1 : 0.35, "data-mark": "trained" });
        }
        return { height: bottom + 24, inner };
      },
    });
    strip.host.addEventListener("click", (event) => {
      const box = strip.host.getBoundingClientRect();
      const h = Math.floor(((event.clientX - box.left - 34) / (box.width - 40)) * every);
      if (h >= 0 && h < every) kit.set({ layer: Math.floor(h / HEADS), head: h % HEADS });
    });
    const key = kit.caption("Large discs are heads, pale where a control is ahead of them. Small ones are the controls: random directions in grey, keys of other heads in colour. Press the strip to choose a head.", shownAfter);
    kit.draws.push(() => { key.hidden = !kit.opened; });

    const table = kit.row("al-lead");
    const left = make("div", {});
    table.append(left);
    kit.choice({ key: "show", label: "map", options: [["attention", "attention"], ["svm", "its SVM"], ["cosines", "cosines of tokens"]], parent: left });
    kit.draws.push(() => { left.querySelector("[data-value=svm]").hidden = !kit.opened; });
    kit.view({
      parent: left, name: "map",
      told: (state) => `${state.show === "cosines" ? "Cosines of all pairs of tokens" : state.show === "svm" ? "Attention of its SVM" : "Attention of the head"}, rows ask`,
      draw: (w, state) => {
        const here = now(state);
        const T = here.words.length;
        const edge = 66;
        const c = Math.min(24, (w - edge - 4) / T);
        const inner = here.words.map((word, a) => {
          const seen = state.show === "cosines" ? alike(here, a) : state.show === "svm" && !kit.opened ? here.words.map(() => 0) : row(here, state.show === "svm" ? 1 : 0, a);
          const colour = (v) => (state.show === "cosines" ? (v < 0 ? "negative" : "positive") : state.show === "svm" ? "fro" : "trained");
          return group({ "data-query": a, style: "cursor:pointer" },
            text(edge - 6, a * c + c / 2 + 4, word, { class: a === here.query ? "al-label" : "al-small", "text-anchor": "end" }),
            ...seen.map((v, b) => rect(edge + b * c, a * c, c - 1, c - 1, { class: `al-fill-${colour(v)} al-stroke-rule`, "fill-opacity": 0.03 + 0.95 * Math.abs(v), "stroke-width": 0.4 })),
            a === here.query ? rect(edge - 1, a * c - 1, T * c + 1, c + 1, { class: "al-stroke-query", fill: "none", "stroke-width": 2 }) : "");
        }).join("");
        return { height: T * c + 4, inner };
      },
    }).host.addEventListener("click", (event) => {
      const pressed = event.target.closest?.("[data-query]");
      if (pressed) kit.set({ query: Number(pressed.dataset.query) });
    });
    const side = make("div", { class: "al-side" });
    table.append(side);
    kit.view({
      parent: side, name: "facts",
      told: (state) => (kit.opened ? `This head and its controls: ${facts(now(state)).map(([name, v]) => `${name} ${fixed(v, 3)}`).join(", ")}` : "Sealed until you answer"),
      draw: (w, state) => {
        if (!kit.opened) return { height: 0, inner: "" };
        const all = facts(now(state));
        const from = 138;
        const inner = all.map(([name, v, colour], k) => group({ "data-mark": colour },
          text(from - 8, 26 + 22 * k, label(name), { class: "al-small", "text-anchor": "end" }),
          rect(from, 17 + 22 * k, (w - from - 50) * v, 11, { class: `al-fill-${colour}` }),
          text(w, 26 + 22 * k, fixed(v, 3), { class: "al-small al-value", "text-anchor": "end" }))).join("");
        return { height: 24 + 22 * all.length, inner: text(0, 11, "inside the span, this head and its controls", { class: "al-small" }) + inner };
      },
    });
    function facts(here) {
      const [random, other] = controls(here.h);
      return [["this head", own(here.h)[2], "trained"], ...random.map((v, k) => [`random directions ${k + 1}`, v, "other"]),
        ...other.map((v, k) => [`another key ${k + 1}`, v, "rival"])];
    }

    return (state) => {
      const here = now(state);
      const s = row(here, 0, here.query);
      const best = lead(s);
      const second = lead(s.map((p, t) => (t === best ? -1 : p)));
      const gap = Math.log(s[best] / Math.max(s[second], 1e-6));
      let told = `Layer ${here.layer}, head ${here.head}. “${here.words[here.query]}” gives most to “${here.words[best]}” (${percent(s[best])}), ahead of “${here.words[second]}” by a gap of ${fixed(gap, 1)} in the logits.`;
      if (kit.opened) {
        const [, share, inside, common] = own(here.h);
        const [agree, luck] = kit.list("agree", here.layer, here.head);
        told += ` Inside the span, which holds ${percent(share)} of its length, its cosine with its SVM is ${fixed(inside, 3)}: ${isFirst(here.h) ? "ahead of all its controls" : "a control is as close"}. On other sentences its SVM selects the same word in ${percent(agree)} of cases (${percent(luck)} for random directions). One position takes ${percent(common)} of its choices, ${percent(kit.list("special", here.layer)[here.head])} if [CLS] and [SEP] may be chosen.`;
      }
      kit.say(told);
      kit.el.dataset.weights = JSON.stringify(s);
      if (kit.opened) {
        kit.el.dataset.svm = JSON.stringify(row(here, 1, here.query));
        kit.el.dataset.inside = String(own(here.h)[2]);
        kit.el.dataset.firsts = String(firsts());
      }
    };
  },
  code: (state) => `from attnbook import figures, real

model = real.models.minilm()  # 84 MB, once
texts = real.data.texts("rotten-tomatoes").texts
seen = real.probe.selections(real.probe.traces(model, texts, 16, 120), ${state.layer}, 16, rng=0)
head = model.head(${state.layer}, ${state.head})
others = [model.head(${state.layer}, k) for k in range(12) if k != ${state.head}]
print(real.probe.selection(seen, head.W))
print(real.probe.controls(seen, head, others, rng=0))
print(figures.get("svm.real").verdict(figures.kept("svm.real")))`,
});
