// What an output becomes on a page, poked at like a reader would.
async ([site, text]) => {
  window.pwned = 0;
  window.pwn = () => { window.pwned += 1; };
  const { safe } = await import(site + "live/safe.js");
  const { nodes, mounts } = safe(text, "mark-", undefined, new Set(["pick_token"]));
  const box = document.createElement("div");
  box.className = "attacked";
  box.append(nodes);
  document.querySelector("article").append(box);
  box.querySelectorAll("*").forEach((el) => {
    ["mouseover", "focus", "toggle", "load", "error"].forEach((one) => el.dispatchEvent(new Event(one)));
  });
  box.querySelectorAll("a").forEach((el) => { el.removeAttribute("target"); if (!/^https?:/.test(el.getAttribute("href") ?? "")) el.dispatchEvent(new MouseEvent("click", { bubbles: true })); });
  await new Promise((done) => setTimeout(done, 20));
  const all = [...box.querySelectorAll("*")];
  const told = { pwned: window.pwned, polluted: ({}).polluted ?? null, count: all.length, mounts: mounts.length,
    base: document.baseURI, clobbered: window.MathJax instanceof Element || typeof location === "undefined",
    tags: [...new Set(all.filter((el) => el.localName !== "script" || el.type !== "application/json").map((el) => el.localName))],
    ids: all.map((el) => el.id).filter(Boolean),
    attributes: [...new Set(all.flatMap((el) => [...el.attributes].map((one) => one.name)))],
    covers: all.some((el) => ["fixed", "absolute", "sticky"].includes(getComputedStyle(el).position)),
    values: all.flatMap((el) => [...el.attributes].map((one) => one.value)).join(" "),
    json: all.filter((el) => el.localName === "script").map((el) => el.textContent).join(" "),
    classes: [...new Set(all.flatMap((el) => [...el.classList]))],
    explorables: all.filter((el) => el.dataset.explorable !== undefined).map((el) => el.dataset.explorable),
    words: box.textContent.slice(0, 200000) };
  box.remove();
  return told;
}
