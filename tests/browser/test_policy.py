"""Each page's Content-Security-Policy: it allows what the page needs, and no other script."""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_pages import HTML, Plain, Visit
from marionette import Firefox
from patience import handed
from playwright.sync_api import Browser, Page

# A page of each kind: front page, chapter with formulas and explorables, exercises, derivation,
# ledger, reference, scratch, search, index, the lost.
KINDS = [
    "index.html", "book/index.html", "book/svm/margin.html", "book/svm/local.html",
    "book/scratch.html", "book/errata.html", "search.html?q=margin", "genindex.html", "404.html",
]  # fmt: skip
ALL = sorted(
    path.relative_to(HTML).as_posix()
    for path in HTML.rglob("*.html")
    if path.relative_to(HTML).parts[0] not in ("_static", "vendor")
)
LISTEN = """window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(
  [event.effectiveDirective, event.blockedURI, event.sourceFile, event.lineNumber].join(" ")));"""
# Everything that comes when it is near the screen has come.
SCROLL = """async () => {
  for (const el of document.querySelectorAll("[data-explorable], [data-derivation]")) {
    el.scrollIntoView();
    await new Promise((done) => {
      const look = () => (el.dataset.ready === undefined ? setTimeout(look, 20) : done());
      look();
    });
  }
  await window.MathJax?.startup?.promise;
}"""
# As somebody would who found a hole: none of them may run.
SMUGGLE = """() => {
  window.smuggled = [];
  const put = (html) => document.body.insertAdjacentHTML("beforeend", html);
  const script = document.createElement("script");
  script.textContent = "window.smuggled.push('script')";
  document.body.append(script);
  const other = document.createElement("script");
  other.src = "data:text/javascript,window.smuggled.push('data')";
  document.body.append(other);
  put("<img src=x onerror=\\"window.smuggled.push('handler')\\">");
  put("<iframe srcdoc=\\"<script>parent.smuggled.push('frame')</script>\\"></iframe>");
  put("<a id=smuggler href=\\"javascript:window.smuggled.push('link')\\">a</a>");
  document.querySelector("#smuggler").click();
  put("<base href='https://evil.invalid/'>");
}"""


@pytest.mark.parametrize("page", ALL)
def test_a_page_has_one_policy_without_gaps(page: str) -> None:
    text = (HTML / page).read_text("utf-8")
    (allowed,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert "'unsafe-eval'" not in allowed
    assert "'unsafe-inline'" not in allowed.partition("script-src")[2].partition(";")[0]


@pytest.mark.parametrize("page", KINDS)
def test_a_page_does_what_it_needs(visit: Visit, page: str) -> None:
    """The fixture fails where the browser's console has an error, such as a refusal.

    So do `test_pages` on every page, and `test_touch_and_mouse` on every explorable in its chapter.
    """
    shown = visit(page, typeset=page != "book/errata.html")  # thousands of formulas
    if page == "index.html":
        shown.wait_for_url("**/book/index.html")
    shown.evaluate(SCROLL)
    if "q=" in page:
        shown.wait_for_selector("#search-results li a")


def attacked(chromium: Browser, address: str) -> Page:
    page = handed(chromium.new_context().new_page())
    page.add_init_script(LISTEN)
    page.goto(address, wait_until="load")
    page.evaluate(SMUGGLE)
    page.wait_for_function("() => window.violations.length >= 5")
    return page


@pytest.mark.parametrize("host", ["headers", "plain"])
def test_a_smuggled_script_does_not_run(
    chromium: Browser, hosts: dict[str, str], host: str
) -> None:
    page = attacked(chromium, hosts[host] + "book/svm/margin.html")
    assert page.evaluate("window.smuggled") == []
    assert page.evaluate("document.baseURI").startswith(hosts[host])
    page.context.close()


def test_without_the_policy_a_smuggled_script_runs(
    chromium: Browser, hosts: dict[str, str]
) -> None:
    """What stops it is the policy, not chance."""
    from policy import unsecured

    context = chromium.new_context()
    text = unsecured((HTML / "book/svm/margin.html").read_text("utf-8"))
    context.route("**/margin.html", lambda route: route.fulfill(body=text))
    page = handed(context.new_page())
    page.goto(hosts["plain"] + "book/svm/margin.html", wait_until="load")
    page.evaluate(SMUGGLE)
    page.wait_for_function("() => window.smuggled.length === 5")
    context.close()


# -- frames of other sites -------------------------------------------------------------------------
@pytest.fixture
def elsewhere(hosts: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """Another site, which shows a page of the book inside its own."""
    for name, host in hosts.items():
        (tmp_path / f"{name}.html").write_text(
            f'<!doctype html><iframe src="{host}book/svm/margin.html"></iframe>'
        )
    handler = functools.partial(Plain, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("host", ["headers", "reads", "plain"])
def test_no_other_site_frames_a_page(chromium: Browser, elsewhere: str, host: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{elsewhere}{host}.html", wait_until="load")
    inside = page.frames[1]
    assert "attention SVM" not in inside.content()
    if host == "plain":  # by the page's own script
        assert "open it by itself" in inside.locator("html").inner_text()
    context.close()


def test_the_book_may_frame_its_own_pages(visit: Visit, hosts: dict[str, str]) -> None:
    page = visit("book/index.html", "plain")
    page.evaluate("""async (address) => {
      const frame = Object.assign(document.createElement("iframe"), { src: address });
      await new Promise((done) => { frame.onload = done; document.body.append(frame); });
    }""", hosts["plain"] + "book/svm/margin.html")  # fmt: skip
    assert "attention SVM" in page.frames[-1].content()


# -- the archive, opened from a folder -------------------------------------------------------------
def test_a_page_opened_from_a_folder_has_its_styles(chromium: Browser) -> None:
    page = handed(chromium.new_context().new_page())
    page.goto((HTML / "book" / "svm" / "margin.html").as_uri(), wait_until="load")
    page.wait_for_function("() => window.MathJax?.startup?.promise")
    sheets = page.evaluate("[...document.styleSheets].filter((one) => one.href).length")
    assert sheets == page.locator('link[rel="stylesheet"]').count()
    page.wait_for_selector("mjx-container")
    page.context.close()


# -- Firefox ---------------------------------------------------------------------------------------
@pytest.mark.long
@pytest.mark.parametrize("page", KINDS[1:])  # the first leads to the second
def test_a_page_does_what_it_needs_in_firefox(
    firefox: Firefox, hosts: dict[str, str], page: str
) -> None:
    firefox.go(hosts["headers"] + page)
    firefox.run(LISTEN)
    firefox.run(f"window.scrolled = false; ({SCROLL})().then(() => {{ window.scrolled = true; }})")
    firefox.wait("return window.scrolled")
    assert firefox.run("return window.violations") == []
    firefox.run(f"return ({SMUGGLE})()")
    firefox.wait("return window.violations.length >= 4")
    assert firefox.run("return window.smuggled") == []


@pytest.mark.long
def test_the_next_page_may_be_fetched_ahead_in_firefox(
    firefox: Firefox, hosts: dict[str, str]
) -> None:
    """It does so by itself when it is idle, and `default-src` decides."""
    firefox.go(hosts["headers"] + "book/svm/margin.html")
    firefox.run("""
      const { href } = document.querySelector('link[rel="next"]');
      const link = Object.assign(document.createElement("link"), { rel: "prefetch", href });
      link.onload = link.onerror = ({ type }) => { window.fetched = type; };
      document.head.append(link);
    """)
    firefox.wait("return window.fetched")
    assert firefox.run("return window.fetched") == "load"


@pytest.mark.long
def test_a_page_opened_from_a_folder_has_its_styles_in_firefox(firefox: Firefox) -> None:
    firefox.go((HTML / "book" / "svm" / "margin.html").as_uri())
    firefox.wait("return document.querySelector('mjx-container') !== null")
    wanted = firefox.run("return document.querySelectorAll('link[rel=stylesheet]').length")
    assert (
        firefox.run("return [...document.styleSheets].filter((one) => one.href).length") == wanted
    )
