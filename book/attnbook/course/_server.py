"""The server of ``attnlab course mark``.

Python's own http.server is enough: one person, one machine. It listens on 127.0.0.1 only, answers
nobody who does not know the token in the address, and its pages ask no other host.
"""

from __future__ import annotations

import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from attnbook.course import _sheets as sheets
from attnbook.course._desk import Desk
from attnbook.course._words import clean
from attnlab import checks as check

HOST = "127.0.0.1"
LARGEST = 1 << 16  # bytes of a request
# Styles are MathJax's own; scripts are ours, or MathJax's, and stand in files of this server.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Handler(BaseHTTPRequestHandler):
    """Pages, files and clicks."""

    server: Server
    server_version, sys_version, timeout = "attnlab", "", 30

    def log_message(self, *_: Any) -> None:
        """Quietly."""

    def send(self, status: int, body: bytes | str, kind: str, *, keep: bool = False) -> None:
        """One answer, with what browsers are told about it."""
        data = body.encode("utf-8", "replace") if isinstance(body, str) else body
        self.send_response(status)
        letters = "" if kind.startswith("font") else "; charset=utf-8"
        self.send_header("Content-Type", kind + letters)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "private, max-age=86400" if keep else "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        for name, value in (
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Cross-Origin-Opener-Policy", "same-origin"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def admitted(self) -> list[str] | None:
        """The parts of the address behind the token; None where it is refused, and told."""
        port = self.server.server_port
        here = {f"{HOST}:{port}", f"localhost:{port}"}
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if host not in here or (origin is not None and origin not in {f"http://{h}" for h in here}):
            self.send(403, "This page is for one machine only.\n", "text/plain")
            return None
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if not hmac.compare_digest(parts[0].encode(), self.server.desk.token.encode()):
            told = "Open the whole address that `attnlab course mark` printed.\n"
            self.send(403, told, "text/plain")
            return None
        return parts[1:]

    def do_GET(self) -> None:
        """A page or a file."""
        parts = self.admitted()
        if parts is None:
            return
        desk = self.server.desk
        found = desk.file(parts) if parts else None
        if found:
            self.send(200, *found, keep=parts[0] == "mathjax")
            return
        try:
            shown = desk.page(parts)
        except ValueError as error:  # a damaged file, a table that cannot be read: say which
            self.send(500, sheets.refusal(desk, str(error)), "text/html")
            return
        if shown is None:
            self.send(404, sheets.refusal(desk, "There is no such answer."), "text/html")
        else:
            self.send(200, shown, "text/html")

    def do_HEAD(self) -> None:
        """The same, without what is in it."""
        self.do_GET()

    def do_POST(self) -> None:
        """A click."""
        parts = self.admitted()
        if parts is None:
            return
        size = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0]
        if parts != ["save"] or kind != "application/json" or not size.isdecimal():
            self.send(404, "Nothing is saved here.\n", "text/plain")
            return
        if int(size) > LARGEST:
            self.send(413, "Too large.\n", "text/plain")
            return
        try:
            told = json.loads(self.rfile.read(int(size)))
            if not isinstance(told, dict):
                raise check.fail("request", "an object", type(told).__name__)
            answer = self.server.desk.save(told)
        except (ValueError, OSError) as error:
            self.send(400, json.dumps({"error": clean(error)}), "application/json")
            return
        self.send(200, json.dumps(answer), "application/json")


class Server(ThreadingHTTPServer):
    """On this machine, for whoever started it."""

    daemon_threads = True

    def __init__(self, desk: Desk, port: int = 0) -> None:
        self.desk = desk
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        """What to open."""
        return f"http://{HOST}:{self.server_port}/{self.desk.token}/"


def serve(desk: Desk, port: int = 0) -> Server:
    """A server that does not run yet."""
    try:
        return Server(desk, port)
    except (OSError, OverflowError) as error:
        raise check.fail("port", "a port that is free (0: any)", f"{port} ({error})") from None
