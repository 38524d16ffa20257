"""A server of the built site and a Chromium that may talk to nobody else."""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import programs
import pytest
from live_pages import Plain, Reads, Visit
from marionette import Firefox
from marionette import firefox as browser
from patience import handed, waiting
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
HELP = (
    "the browser tests need Chromium, which `make programs` installs; or name it in "
    "ATTNLAB_CHROMIUM"
)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """What a hand did is drawn before a test looks."""
    with waiting():
        yield


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves quietly, and knows what a module is on every machine."""

    extensions_map = {  # noqa: RUF012
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
    }

    def log_message(self, *_: object) -> None:
        pass


def serve(folder: Path) -> http.server.ThreadingHTTPServer:
    """A server on a free port."""
    handler = functools.partial(Handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """Address of the built book."""
    if not (HTML / "index.html").is_file():
        pytest.fail("the book is not built: make book")
    server = serve(HTML)
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    if error := programs.why_no_driver():
        pytest.fail(f"{HELP}\n{error}")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=programs.chromium(), args=programs.QUIET
            )
        except Exception as error:
            pytest.fail(f"{HELP}\n{error}")
        yield browser
        browser.close()


Open = Callable[..., Page]


@functools.cache
def alone(page: str, name: str) -> str:
    """An explorable of a built page, its data included, with what it needs and nothing else."""
    text = (HTML / page).read_text(encoding="utf-8")
    found = re.search(
        rf'<div data-explorable="{name}".*?</script><noscript>.*?</noscript></div>', text, re.S
    )
    assert found, f"{page} does not show {name}"
    depth = "../" * page.count("/")
    styles = "".join(
        f'<link rel="stylesheet" href="{depth}explorables/{file}">'
        for file in ("kit/kit.css", "book.css")
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width">{styles}'
        f'<body><main class="bd-article">{found[0]}</main>'
        f'<script type="module" src="{depth}explorables/host.js"></script></body></html>'
    )


@pytest.fixture
def open_page(chromium: Browser, site: str) -> Iterator[Open]:
    """``open_page("svm/margin", width=390)``: a page that must not err, nor ask another host."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def visit(
        path: str,
        *,
        width: int = 1280,
        height: int = 900,
        wait: bool = True,
        typeset: bool = True,  # what does not look at formulas need not wait for them
        script: str = "",  # runs before the page's own
        only: str = "",  # this explorable of the page, without the rest of the chapter
        body: str = "",  # in place of what the site has there
        **how: object,
    ):
        context = chromium.new_context(viewport={"width": width, "height": height}, **how)
        contexts.append(context)

        context.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((site, "data:", "blob:"))
                else wrong.append(f"asks another host: {request.url}")
            ),
        )
        if not typeset:
            context.route("**/vendor/mathjax/**", lambda route: route.fulfill(body=""))
        if only or body:
            shown = body or alone(path.partition("?")[0], only)
            context.route(
                lambda address: address.partition("?")[0].endswith(".html"),
                lambda route: route.fulfill(body=shown, content_type="text/html"),
            )
        page = handed(context.new_page())
        if script:
            page.add_init_script(script)
        page.on("pageerror", lambda error: wrong.append(f"{path}: {error}"))
        page.on(
            "console",
            lambda message: (
                wrong.append(f"{path}: {message.text} {message.location}")
                if message.type == "error" and "favicon.ico" not in str(message.location)
                else None
            ),
        )
        page.goto(f"{site}/{path}", wait_until="domcontentloaded", timeout=90_000)
        if wait:
            page.wait_for_load_state("load", timeout=90_000)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def explorable(open_page) -> Callable[..., tuple[Page, object]]:
    """``explorable("water_filling", {"tau": 3})``: its page, and its root element, ready.

    Its question is open, unless ``sealed=True``.
    """
    pages = sorted((HTML / "book").rglob("*.html"))

    def visit(
        name: str, state: dict[str, object] | None = None, sealed: bool = False, **how: object
    ):
        state = (state or {}) if sealed else {**SHOWN, **(state or {})}
        mark = f'data-explorable="{name}"'
        home = next((path for path in pages if mark in path.read_text(encoding="utf-8")), None)
        assert home is not None, f"no page shows {name}"
        query = f"?{name}={quote(json.dumps(state))}" if state else ""
        path = home.relative_to(HTML).as_posix()
        page = open_page(path + query, typeset=False, only=name, **how)
        root = page.locator(f"[{mark}]").first
        root.scroll_into_view_if_needed()
        page.wait_for_selector(f"[{mark}][data-ready]", timeout=60_000)
        return page, root

    return visit


SHOWN = {"bet": -1, "open": 2}  # what is asked, shown without an answer


CALL = """async ([address, name, cases]) => {
  const module = await import(address);
  return cases.map((given) => module[name](...given));
}"""


@pytest.fixture
def kernel(open_page, site: str) -> Callable[..., list[object]]:
    """``kernel("multihead", "scores", [[a, b], ...])``: a function of a kit module, on cases."""
    page = open_page("404.html")

    def call(module: str, name: str, cases: list[list[object]]) -> list[object]:
        return page.evaluate(CALL, [f"{site}/explorables/kit/{module}.js", name, cases])

    return call


@pytest.fixture(scope="session")
def hosts() -> Iterator[dict[str, str]]:
    """The site served as `make read` does, and by hosts that read `_headers`, and that cannot."""
    from serve import Handler

    if "export default null" in (HTML / "live" / "here.js").read_text("utf-8"):
        pytest.fail("the site has no Python for live pages: make live")
    servers = {}
    for name, kind in {"headers": Handler, "reads": Reads, "plain": Plain}.items():
        handler = functools.partial(kind, directory=str(HTML))
        servers[name] = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=servers[name].serve_forever, daemon=True).start()
    yield {name: f"http://127.0.0.1:{one.server_port}/" for name, one in servers.items()}
    for one in servers.values():
        one.shutdown()
        one.server_close()


@pytest.fixture
def visit(chromium: Browser, hosts: dict[str, str]) -> Iterator[Visit]:
    """A page in a context of its own; it asks no other host and errs nowhere."""
    contexts, wrong = [], []

    def go(
        page: str, host: str = "headers", context: Any = None, typeset: bool = True, **how: Any
    ) -> Page:
        if context is None:
            how.setdefault("viewport", {"width": 1200, "height": 1000})
            context = chromium.new_context(**how)
            contexts.append(context)
            context.on("request", lambda request: wrong.append(request.url)
                       if not request.url.startswith((hosts[host], "data:", "blob:"))
                       else None)  # fmt: skip
            if not typeset:
                context.route("**/vendor/mathjax/**", lambda route: route.fulfill(body=""))
        shown = handed(context.new_page())
        shown.on("pageerror", lambda error: wrong.append(f"{page}: {error}"))
        shown.on("console", lambda said: wrong.append(f"{page}: {said.text} {said.location}")
                 if said.type == "error" and "favicon" not in str(said.location)
                 else None)  # fmt: skip
        shown.goto(hosts[host] + page, wait_until="load")
        return shown

    yield go
    for context in contexts:
        context.close()
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Debian's package, driven without another program."""
    path = programs.firefox()
    if not path:
        pytest.fail("these tests need Firefox, which `make programs-all` installs; or name it in "
                    "ATTNLAB_FIREFOX")  # fmt: skip
    with browser(tmp_path_factory.mktemp("firefox"), path) as found:
        yield found
