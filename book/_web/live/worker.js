// Python in a worker whose origin is nobody's: no storage, no page, no network. Every file it gets
// is handed to it by the page (python.js), which checked it.
"use strict";
(() => {
  const HOME = "https://attnlab.invalid/"; // never asked: what stands there comes from the page
  const MESSAGES = 10_000, LETTERS = 5_000_000; // that one run may send
  let port, py, kernel, suspends = false, running = null, messages = 0, letters = 0;
  const tell = (message) => port.postMessage(message);
  function say(text) {
    messages += 1;
    letters += text.length;
    if (messages <= MESSAGES && letters <= LETTERS) tell({ type: "out", id: running, what: text });
    else if (messages - 1 <= MESSAGES && letters - text.length <= LETTERS) tell({ type: "much", id: running });
  }

  // -- files -------------------------------------------------------------------------------------
  const files = new Map(), wanted = new Map();
  const file = (name) => {
    if (!files.has(name)) {
      files.set(name, new Promise((done, failed) => wanted.set(name, { done, failed })));
      tell({ type: "need", name });
    }
    return files.get(name);
  };
  self.fetch = async (what) => {
    const address = String(what?.url ?? what);
    if (!address.startsWith(HOME)) throw new TypeError("a live page reaches no address");
    const blob = await file(address.slice(HOME.length));
    if (blob.type === "application/x-xz") {
      const parts = [];
      kernel.unpack(new Uint8Array(await blob.arrayBuffer()), (part) => parts.push(part.toJs()));
      return new Response(new Blob(parts));
    }
    return new Response(blob, { headers: { "Content-Type": blob.type } });
  };
  const module = async (name) => {
    const address = URL.createObjectURL(await file(name));
    try { return await import(address); } finally { URL.revokeObjectURL(address); }
  };

  async function load(names) {
    const wrong = [];
    await py.loadPackage(names, { messageCallback: () => {}, errorCallback: (text) => wrong.push(text) });
    if (wrong.length) throw new Error(wrong.join("\n"));
  }

  async function start({ runtime, source, first, forms, interrupt }) {
    const lock = JSON.parse(await (await file("pyodide-lock.json")).text());
    const { loadPyodide } = await module("pyodide.mjs");
    const { default: createPyodideModule } = await module("pyodide.asm.mjs");
    py = await loadPyodide({ indexURL: HOME, packageBaseUrl: HOME, lockFileContents: lock, createPyodideModule, stdout: () => {}, stderr: () => {} });
    if (interrupt) py.setInterruptBuffer(interrupt);
    tell({ type: "stage", text: "the library" });
    py.FS.writeFile(`${py.FS.cwd()}/kernel.py`, source);
    kernel = py.pyimport("kernel");
    await load(first);
    kernel.say = say;
    suspends = "Suspending" in WebAssembly;
    const owner = Object.fromEntries(Object.entries(lock.packages).flatMap(([name, one]) => one.imports.map((each) => [each, name])));
    kernel.begin(py.toPy(owner), (name) => load([name]), suspends);
    kernel.expect(JSON.stringify(forms));
    tell({ type: "ready", python: py.runPython("import sys; sys.version.split()[0]"), runtime });
  }

  async function run({ id, code, number }) {
    [running, messages, letters] = [id, 0, 0];
    let end = "error";
    try {
      try { await py.loadPackagesFromImports(code, { messageCallback: () => {}, errorCallback: () => {} }); } catch { /* its own error is better */ }
      for (let again = 0; again < 6; again++) {
        end = suspends ? await kernel.run.callPromising(code, number) : kernel.run(code, number);
        if (!end.startsWith("late: ")) break;
        tell({ type: "again", id });
        await load([end.slice(6)]); // a package that a library imported late
      }
    } catch (error) {
      const text = error?.name === "PythonError" ? error.message.trim().split("\n").at(-1) : String(error?.message ?? error);
      tell({ type: "out", id, what: JSON.stringify({ kind: "error", text, line: 0 }) });
    }
    running = null;
    const memory = py._module.HEAP8.length;
    tell({ type: "done", id, end, memory });
  }

  const KINDS = { start, run, state: ({ key, state }) => kernel?.heard(key, JSON.stringify(state)) };
  let queue = Promise.resolve();
  function hear({ data }) {
    if (data.type === "file") { // answered at once: what runs waits for it
      const { done, failed } = wanted.get(data.name) ?? {};
      if (data.blob) done?.(data.blob); else failed?.(new Error(data.text));
      return;
    }
    queue = queue.then(() => KINDS[data.type](data)).catch((error) => {
      if (data.type === "start") tell({ type: "dead", text: String(error?.message ?? error) });
    });
  }
  self.onmessage = ({ data }) => {
    self.onmessage = null;
    port = data.port;
    Object.entries(data.files).forEach(([name, blob]) => files.set(name, Promise.resolve(blob)));
    port.onmessage = hear;
    hear({ data: { ...data.start, type: "start", interrupt: data.interrupt } });
  };
})();
