// What was solved on this device, beside the list of exercises that the build wrote.

import { forget, solved } from "./solved.js";

export function progress(el) {
  const items = [...el.querySelectorAll("li[class*=al-solves-]")];
  const named = (item) => /al-solves-(\S+)/.exec(item.className)[1];
  const line = document.createElement("p");
  line.setAttribute("role", "status");
  const clear = document.createElement("button");
  clear.type = "button";
  clear.textContent = "Forget what was solved";
  const WORDS = { right: "solved", wrong: "tried" };
  const show = () => {
    const found = solved();
    items.forEach((item) => {
      const verdict = found[named(item)];
      if (verdict in WORDS) item.dataset.verdict = verdict;
      else delete item.dataset.verdict;
      item.querySelector(".al-solved")?.remove();
      if (!(verdict in WORDS)) return;
      const word = document.createElement("span");
      word.className = "al-solved";
      word.textContent = ` (${WORDS[verdict]})`;
      item.querySelector("p, a").after(word);
    });
    const done = items.filter((item) => item.dataset.verdict === "right").length;
    line.textContent = `${done} of ${items.length} solved on this device.`;
    clear.disabled = !items.some((item) => item.dataset.verdict) && !Object.keys(found).length;
  };
  clear.addEventListener("click", () => { forget(); show(); });
  el.prepend(line, clear);
  show();
  window.addEventListener("storage", show);
  el.dataset.ready = "true";
}
