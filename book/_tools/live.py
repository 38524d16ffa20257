"""A server of the book that tells browsers to show it anew; its script is in no file."""

from __future__ import annotations

import functools
import http.server
import json
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlparse

from policy import unsecured
from serve import Handler

EVENTS = "/-/events"
SCRIPT = """<script data-live>
(() => {
  const box = document.createElement("div"), own = new Map();
  box.id = "al-live"; box.setAttribute("role", "status");
  box.style.cssText = "position:fixed;z-index:9999;left:0;right:0;bottom:0;max-height:60vh;" +
    "overflow:auto;margin:0;padding:.6em 1em;font:13px/1.4 monospace;white-space:pre-wrap;" +
    "background:#300;color:#fff;border-top:3px solid #f55;display:none";
  document.body.append(box);
  let told = { problems: [], working: "" };
  const show = () => {
    const lines = [...told.problems, ...own.keys(), ...(told.working ? [told.working] : [])];
    box.textContent = lines.join("\\n\\n");
    box.style.display = lines.length ? "block" : "none";
    box.style.background = told.problems.length || own.size ? "#300" : "#234";
  };
  addEventListener("error", (e) => { own.set(String(e.message)); show(); });
  addEventListener("unhandledrejection", (e) => { own.set(String(e.reason)); show(); });
  const key = "al-live-y" + location.pathname;
  if (sessionStorage.getItem(key)) scrollTo(0, +sessionStorage.getItem(key));
  sessionStorage.removeItem(key);
  const events = new EventSource("%s?page=" + encodeURIComponent(location.pathname));
  events.onmessage = ({ data }) => {
    const found = JSON.parse(data);
    if (found.reload) { sessionStorage.setItem(key, scrollY); location.reload(); return; }
    told = found; show();
  };
  addEventListener("pagehide", () => events.close());
})();
</script>""".replace("%s", EVENTS)


class Told:
    """What browsers are told: reload, what is worked on, what is wrong with which page."""

    def __init__(self, visited: Callable[[str], None] = lambda _: None) -> None:
        self.visited = visited
        self._lock = threading.Lock()
        self._open: dict[queue.Queue[str], str] = {}
        self._wrong: dict[tuple[str, str], str] = {}
        self._working = ""

    def connect(self, page: str) -> queue.Queue[str]:
        """A browser shows a page from now on."""
        mine: queue.Queue[str] = queue.Queue()
        with self._lock:
            self._open[mine] = page
            mine.put(self._state(page))
        self.visited(page)
        return mine

    def leave(self, mine: queue.Queue[str]) -> None:
        """A browser went away."""
        with self._lock:
            self._open.pop(mine, None)

    def open_pages(self) -> set[str]:
        """What browsers show."""
        with self._lock:
            return set(self._open.values())

    def _state(self, page: str) -> str:
        wrong = [words for (at, _), words in self._wrong.items() if at in ("", page)]
        elsewhere = sorted({at for at, _ in self._wrong} - {"", page})
        wrong += [f"something is wrong with {at}" for at in elsewhere]
        return json.dumps({"problems": wrong, "working": self._working})

    def _tell(self) -> None:
        for mine, page in self._open.items():
            mine.put(self._state(page))

    def fail(self, page: str, kind: str, words: str) -> None:
        """Something is wrong with a page, or (no page) with the book."""
        print(words, flush=True)
        with self._lock:
            self._wrong[page, kind] = words
            self._tell()

    def mend(self, page: str, kind: str) -> None:
        """It no longer is."""
        with self._lock:
            if self._wrong.pop((page, kind), None) is not None:
                self._tell()

    def working(self, words: str) -> None:
        """Something is being made."""
        with self._lock:
            self._working = f"... {words}"
            self._tell()

    def done(self) -> None:
        """Nothing is."""
        with self._lock:
            self._working = ""
            self._tell()

    def reload(self) -> None:
        """Show the pages anew."""
        with self._lock:
            for mine in self._open:
                mine.put(json.dumps({"reload": True}))


class Live(Handler):
    """Pages with the script in them, nothing from a browser's cache."""

    told: Told

    def end_headers(self) -> None:
        """Nothing is kept."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_GET(self) -> None:
        """A page, an event stream, or a file."""
        url = urlparse(self.path)
        if url.path == EVENTS:
            self.stream(parse_qs(url.query).get("page", ["/"])[0])
            return
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() and url.path.endswith("/") else path
        if path.suffix == ".html" and path.is_file():
            text = unsecured(path.read_text("utf-8"))  # it would refuse the script
            at = text.rfind("</body>")
            body = (text[:at] + SCRIPT + text[at:] if at >= 0 else text + SCRIPT).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        super().do_GET()

    def stream(self, address: str) -> None:
        """Events for one browser until it leaves."""
        page = unquote(address).strip("/").removesuffix(".html") or "index"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        mine = self.told.connect(page)
        try:
            while True:
                try:
                    line = f"data: {mine.get(timeout=5)}\n\n"
                except queue.Empty:
                    line = ": still here\n\n"
                self.wfile.write(line.encode())
                self.wfile.flush()
        except OSError:
            pass
        finally:
            self.told.leave(mine)


def serve(folder: Path, told: Told, wanted: int) -> http.server.ThreadingHTTPServer:
    """Serve a folder in the background, at the first free port from ``wanted``."""
    own = type("Own", (Live,), {"told": told})
    handler = functools.partial(own, directory=str(folder))
    for port in (*range(wanted, wanted + 20), 0):
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
            break
        except OSError:
            continue
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
