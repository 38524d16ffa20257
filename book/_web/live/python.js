// Python for one page. Files come from this site, are checked, and go into a frame that has no
// origin: what runs there cannot read what this site keeps, nor ask any address.

const FRAME = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; worker-src blob:; connect-src blob:"><script>
onmessage = ({ data }) => {
  onmessage = null;
  const address = URL.createObjectURL(new Blob([data.worker], { type: "text/javascript" }));
  const worker = new Worker(address);
  const interrupt = self.crossOriginIsolated ? new Uint8Array(new SharedArrayBuffer(1)) : null;
  worker.onerror = (event) => data.control.postMessage({ type: "dead", text: event.message || "the worker failed" });
  data.control.onmessage = ({ data: what }) => { if (interrupt) interrupt[0] = what === "stop" ? 2 : 0; };
  data.control.postMessage({ type: "frame", interrupts: Boolean(interrupt) });
  worker.postMessage({ port: data.port, files: data.files, start: data.start, interrupt }, [data.port]);
};
<\/script>`;
const TYPES = { mjs: "text/javascript", js: "text/javascript", wasm: "application/wasm", json: "application/json", xz: "application/x-xz" };
// worker.js sends no more messages and characters for one run: what sends more has taken its place.
const MESSAGES = 20_000, LETTERS = 20_000_000;
const type = (name) => TYPES[name.split(".").pop()] ?? "application/octet-stream";

// The browser may refuse both: on plain http other than this machine's, in a private window.
async function is(blob, hash) {
  if (!crypto.subtle) return true;
  const found = new Uint8Array(await crypto.subtle.digest("SHA-256", await blob.arrayBuffer()));
  return [...found].map((one) => one.toString(16).padStart(2, "0")).join("") === hash;
}

// Files stay for the next visit; their folder is named by what is in it, so older ones go.
let opened = null;
function cached(folder) {
  opened ??= (async () => {
    try {
      const cache = await caches.open("attnlab-live");
      for (const { url } of await cache.keys()) if (!url.includes(folder)) await cache.delete(url);
      return cache;
    } catch { return null; }
  })();
  return opened;
}

export class Python {
  // `on`: progress(loaded, total, words), out(id, what), again(id), done(id, end), gone(words);
  // much(id): a run shows more than a page can hold; flood(): so much more that Python must end
  constructor(runtime, forms, on) {
    Object.assign(this, { runtime, forms, on, blobs: new Map(), loaded: 0, interrupts: false, messages: 0, letters: 0 });
    this.home = new URL(runtime.folder, import.meta.url);
    this.total = 0;
  }

  // One file, counted while it comes, its hash compared with the build's.
  file(name) {
    if (!this.blobs.has(name)) this.blobs.set(name, this.#fetch(name).catch((error) => { this.blobs.delete(name); throw error; }));
    return this.blobs.get(name);
  }

  // As it lies on the site: some are packed. The browser unpacks gzip, Python (worker.js) the rest.
  async #fetch(asked) {
    const name = ["", ".xz", ".gzip"].map((end) => asked + end).find((one) => Object.hasOwn(this.runtime.files, one));
    if (!name) throw new Error(`${asked} is not on this site`);
    const blob = await this.#checked(name);
    if (!name.endsWith(".gzip")) return blob;
    const plain = await new Response(blob.stream().pipeThrough(new DecompressionStream("gzip"))).blob();
    return plain.slice(0, plain.size, type(asked));
  }

  async #checked(name) {
    const [bytes, hash] = this.runtime.files[name], address = new URL(name, this.home).href;
    this.total += bytes;
    const cache = await cached(this.home.pathname), hit = await cache?.match(address);
    if (hit) {
      const blob = await this.#read(hit, name);
      if (await is(blob, hash)) return blob;
      this.loaded -= blob.size; // somebody changed it: fetch it again
    }
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`${name}: the site answers ${answer.status}`);
    const blob = await this.#read(answer, name);
    if (!await is(blob, hash)) throw new Error(`${name} is not what was built: its sha256 differs`);
    cache?.put(address, new Response(blob)).catch(() => {}); // a full disk: it is fetched next time
    return blob;
  }

  async #read(answer, name) {
    const parts = [], reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      this.loaded += value.length;
      this.on.progress(this.loaded, this.total, name);
    }
    return new Blob(parts, { type: type(name) });
  }

  start() {
    this.ready = this.#start();
    this.ready.catch((error) => this.on.gone(error.message));
    return this.ready;
  }

  async #start() {
    const text = async (name) => (await fetch(new URL(name, import.meta.url))).text();
    const names = this.runtime.core;
    const coming = names.map((name) => this.file(name)); // side by side
    const [worker, source, ...blobs] = await Promise.all([text("worker.js"), text("kernel.py"), ...coming]);
    const files = Object.fromEntries(names.map((name, place) => [name, blobs[place]]));
    this.on.progress(this.loaded, this.total, "starting Python");
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts");
    frame.allow = "cross-origin-isolated *";
    frame.hidden = true;
    frame.title = "Python of this page";
    frame.srcdoc = FRAME;
    this.frame = frame;
    this.messages = this.letters = 0;
    await new Promise((done) => { frame.onload = done; document.body.append(frame); });
    if (this.frame !== frame) throw new Error("stopped");
    const [calls, control] = [new MessageChannel(), new MessageChannel()];
    this.port = calls.port1;
    this.control = control.port1;
    const up = new Promise((good, bad) => {
      this.control.onmessage = ({ data }) => {
        if (data.type === "frame") this.interrupts = data.interrupts;
        if (data.type === "dead") bad(new Error(data.text));
      };
      this.port.onmessage = ({ data }) => { if (this.frame === frame) this.hear(data, good, bad); }; // else it was ended
    });
    const start = { runtime: this.runtime.folder, source, first: this.runtime.first, forms: this.forms };
    frame.contentWindow.postMessage({ worker, files, start, port: calls.port2, control: control.port2 }, "*", [calls.port2, control.port2]);
    return up;
  }

  // One message of Python, counted.
  hear(data, good, bad) {
    if (!data || typeof data !== "object") return;
    this.messages += 1;
    if (this.messages > MESSAGES || this.letters > LETTERS) { this.on.flood(); return; }
    if (data.type === "ready") good(data);
    else if (data.type === "dead") bad(new Error(String(data.text)));
    else if (data.type === "stage") this.on.progress(this.loaded, this.total, String(data.text));
    else if (data.type === "need") {
      const { port } = this, name = String(data.name);
      this.file(name).then((blob) => port.postMessage({ type: "file", name, blob }), (error) => port.postMessage({ type: "file", name, text: error.message }));
    } else if (data.type === "out") this.#out(data.id, String(data.what));
    else if (data.type === "much") this.on.much(data.id);
    else if (data.type === "again") this.on.again(data.id);
    else if (data.type === "done") this.on.done(data.id, String(data.end), data.memory);
  }

  #out(id, text) {
    this.letters += text.length;
    let what = null;
    try { what = JSON.parse(text); } catch { return; } // not from kernel.py
    this.on.out(id, what);
  }

  run(id, code, number) {
    this.messages = this.letters = 0;
    this.control.postMessage("go");
    this.port.postMessage({ type: "run", id, code, number });
  }

  state(key, state) { this.port?.postMessage({ type: "state", key, state }); }

  interrupt() { this.control.postMessage("stop"); }

  // Ends Python, whatever it does; files stay for the next one.
  end() {
    this.frame?.remove();
    this.frame = this.port = this.control = null;
    this.interrupts = false;
  }
}
