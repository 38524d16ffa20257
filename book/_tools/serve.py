"""Serve the built book and print its address: python book/_tools/serve.py [port]."""

from __future__ import annotations

import functools
import http.server
import sys
import threading
from pathlib import Path

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files, quietly; modules with the type that browsers ask for."""

    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self) -> None:
        """Send what lets a live page stop its Python, and what keeps pages out of others' frames.

        Python's files need not be asked for twice.
        """
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Content-Security-Policy", "frame-ancestors 'self'")
        self.send_header("X-Content-Type-Options", "nosniff")
        if "/live/py-" in self.path:
            self.send_header("Cache-Control", "max-age=31536000, immutable")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing for each file."""


def serve(wanted: int) -> http.server.ThreadingHTTPServer:
    """Serve in the background, at the first free port from ``wanted``."""
    handler = functools.partial(Handler, directory=str(HTML))
    for port in (*range(wanted, wanted + 20), 0):
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
            break
        except OSError:
            continue
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    """Serve until interrupted."""
    if not (HTML / "index.html").is_file():
        sys.exit("the book is not built: make book")
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
    print(f"the book is at http://localhost:{server.server_port}/ (stop with Ctrl-C)", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
