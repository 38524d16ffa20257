// The button "Make this page live". Nothing else of it is loaded before somebody presses it.
import here from "./here.js";

const CELLS = 'div.cell[class*="al-cell-"]';
const AGAIN = "attnlab-live-again"; // pressed before the page had to be loaded anew

function offer() {
  const title = document.querySelector("article.bd-article h1");
  if (!here || !title || location.protocol === "file:" || !window.WebAssembly || !document.querySelector(`${CELLS}, .al-scratch`)) return;
  const bar = document.createElement("div");
  bar.className = "live-bar live-top";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Live code");
  const button = Object.assign(document.createElement("button"), { type: "button", className: "live-button", textContent: "Make this page live" });
  button.dataset.live = "";
  button.title = `Loads Python from this site (${(here.bytes / 1e6).toFixed(0)} MB, once); then every cell can be changed and run`;
  const said = Object.assign(document.createElement("span"), { className: "live-status" });
  said.setAttribute("role", "status");
  bar.append(button, said);
  (title.parentElement.querySelector(":scope > .al-meta") ?? title).after(bar);
  if (new URLSearchParams(location.hash.slice(1)).has("live")) said.textContent = "This address carries changed code. It is shown once the page is live, and runs only when you run it.";
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      if (await isolated(said)) (await import("./live.js")).live(here, bar, button, said);
    } catch (error) {
      button.disabled = false;
      said.textContent = `It could not start: ${error.message}`;
    }
  });
  let again = "";
  try { again = sessionStorage.getItem(AGAIN) ?? ""; sessionStorage.removeItem(AGAIN); } catch { /* no storage */ }
  if (again === location.pathname) button.click();
}

// Stop needs shared memory, which needs two headers. Where the host sends none a service worker
// adds them: the page is loaded once more, and goes on by itself. Without either, Stop ends Python.
async function isolated(said) {
  if (self.crossOriginIsolated || !navigator.serviceWorker || !window.isSecureContext) return true;
  const root = new URL("../", import.meta.url);
  try {
    if (navigator.serviceWorker.controller?.scriptURL.startsWith(new URL("live-sw.js", root).href)) return true; // it could not help
    const tried = `${AGAIN}-tried`;
    if (sessionStorage.getItem(tried)) return true;
    said.textContent = "Preparing …";
    await navigator.serviceWorker.register(new URL("live-sw.js", root), { scope: root.pathname });
    const ready = await Promise.race([navigator.serviceWorker.ready, new Promise((done) => { setTimeout(done, 4000); })]);
    if (!ready) return true;
    sessionStorage.setItem(tried, "1");
    sessionStorage.setItem(AGAIN, location.pathname);
    location.reload();
    return false;
  } catch { return true; }
}

offer();
