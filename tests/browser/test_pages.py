"""Every page: no foreign host, no error, no sideways scroll, legible, within its budget."""

from __future__ import annotations

import functools
import gzip
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from attnbook import theory

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"

PAGES = (
    sorted(path.relative_to(HTML).as_posix() for path in (HTML / "book").rglob("*.html"))
    if HTML.is_dir()
    else []
)
# one page of each folder, and the first, in `make test`; all, at both widths, in `make test-all`
ONE_EACH = {page.rpartition("/")[0]: page for page in PAGES} | {"": "book/index.html"}
# The theme's own, recorded: rules that fire outside what we write.
THEMES_OWN = {
    "landmark-unique",
    "scrollable-region-focusable",
    "aria-required-children",  # the bibliography: docutils marks it as a list of entries
}
RULES = {
    "resultTypes": ["violations"],
    "preload": False,
}  # preloading would fetch style sheets anew
# Before axe looks: MathJax's nodes are its own, and there are tens of thousands of them (nothing in
# their place in a button, which a formula does not name); of coloured words, each colour once.
THIN = """() => {
  const article = document.querySelector(".bd-article"), colours = new Set();
  article.querySelectorAll("mjx-container").forEach((formula) => {
    formula.replaceWith(formula.closest("button") ? "" : "x");
  });
  article.querySelectorAll(".highlight span[class]").forEach((word) => {
    if (colours.has(word.className)) word.replaceWith(word.textContent);
    colours.add(word.className);
  });
}"""
BUDGET = 400_000  # bytes of script and data a page may add to theme and MathJax, compressed


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.pictures: list[dict[str, str | None]] = []
        self.drawn: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        if found.get("id"):
            self.ids.add(str(found["id"]))
        if tag == "img":
            self.pictures.append(found)
        if tag == "svg" and "al-figure" in str(found.get("class")):
            self.drawn.append(found)
        for name in ("href", "src"):
            if found.get(name):
                self.targets.append(str(found[name]))


@functools.cache
def read(path: Path) -> Links:
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


def test_there_are_pages() -> None:
    assert len(PAGES) >= 10, "the book is not built: make book"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    here = HTML / page
    for target in read(here).targets:
        url = urlparse(target)
        assert url.scheme in ("", "http", "https", "mailto", "data"), target
        if url.scheme or target.startswith(("#", "javascript:")):
            continue
        file = (here.parent / unquote(url.path)).resolve() if url.path else here
        assert file.exists(), f"{page} links to {target}"
        if url.fragment and file.suffix == ".html":
            assert unquote(url.fragment) in read(file).ids, f"{page} links to {target}"


@pytest.mark.parametrize("page", PAGES)
def test_pictures_have_alternative_text(page: str) -> None:
    for drawn in read(HTML / page).drawn:
        assert drawn.get("role") == "img"
        assert len(drawn.get("aria-label") or "") > 40, f"{page}: a figure without words"
    for picture in read(HTML / page).pictures:
        assert (picture.get("alt") or "").strip(), f"{page}: {picture.get('src')}"
        assert not re.search(r"\.(png|svg)$", picture["alt"] or ""), f"{page}: a file name"


def test_every_name_of_theory_leads_to_the_checks_that_ran_it() -> None:
    evidence = json.loads((HTML.parent / "evidence.json").read_text())
    ran = {name for entry in evidence.values() for name in entry["calls"] + entry["reaches"]}
    for paper in theory.__all__:
        page = (HTML / "book" / "api" / f"theory-{paper}.html").read_text(encoding="utf-8")
        names = [f"theory.{paper}.{name}" for name in getattr(theory, paper).__all__]
        assert not set(names) - ran
        assert page.count("Tests: <a") == len(names)


# notes when the first explorable has drawn itself
CLOCK = """addEventListener("DOMContentLoaded", () => {
  const first = document.querySelector("[data-explorable]");
  if (!first) return;
  first.scrollIntoView();
  new MutationObserver((_, self) => {
    if (first.dataset.ready === undefined) return;
    performance.mark("usable");
    self.disconnect();
  }).observe(first, { attributes: true });
})"""
USABLE = """() => Math.max(0, performance.getEntriesByName("usable")[0].startTime
  - performance.getEntriesByType("navigation")[0].loadEventStart)"""


@pytest.mark.parametrize(
    "page",
    [
        page if page in ONE_EACH.values() else pytest.param(page, marks=pytest.mark.long)
        for page in PAGES
    ],
)
@pytest.mark.parametrize(
    ("width", "theme"),
    [pytest.param(1280, "light", marks=pytest.mark.long), (390, "dark")],
)
def test_page_is_quiet_and_fits(
    open_page, record_property, page: str, width: int, theme: str
) -> None:
    """The fixture fails on errors and on foreign requests; here: width, mathematics, rules."""
    # reference pages have thousands of formulas: they are typeset once, on the phone
    long = page.startswith(("book/api/", "book/ledger", "book/errata"))
    typeset = not long or width < 600
    how = {"color_scheme": theme, "reduced_motion": "reduce", "typeset": typeset}
    shown = open_page(page, width=width, script=CLOCK, **how)
    if shown.locator("[data-explorable]").count():
        shown.wait_for_selector("[data-explorable][data-ready]")
        record_property("milliseconds", (page, shown.evaluate(USABLE)))  # printed, not judged
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.wait_for_function(
        "() => !window.MathJax || !MathJax.startup || !!MathJax.startup.promise"
    )
    wrong = shown.locator("mjx-merror, mjx-mtext[style*='red']")  # unknown macros come out red
    assert not wrong.count(), wrong.first.locator("xpath=ancestor::p").text_content()
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.evaluate(THIN)
    found = Axe().run(shown, context={"include": [[".bd-article"]]}, options=RULES)
    serious = [
        f"{entry['id']}: {entry['help']} {[node['target'] for node in entry['nodes']][:3]}"
        for entry in found.response["violations"]
        if entry["impact"] in ("serious", "critical") and entry["id"] not in THEMES_OWN
    ]
    assert not serious, "\n".join(serious)


@pytest.mark.parametrize("page", PAGES)
def test_page_weight(page: str, record_property) -> None:
    """What a page adds: its data, the explorables' modules, the kit."""
    text = (HTML / page).read_text(encoding="utf-8")
    data = "".join(re.findall(r'<script type="application/json">(.*?)</script>', text, re.S))
    weight = len(gzip.compress(data.encode()))
    names = set(re.findall(r'data-explorable="(\w+)"', text))
    if names:
        kit = [*(HTML / "explorables" / "kit").iterdir(), HTML / "explorables" / "host.js"]
        modules = [HTML / "explorables" / f"{name}.js" for name in names]
        walks = set(re.findall(r'data-derivation="([\w-]+)"', text))
        modules += [HTML / "explorables" / "derivations" / f"{name}.js" for name in walks]
        weight += sum(len(gzip.compress(path.read_bytes())) for path in (*kit, *modules))
    record_property("bytes", (page, weight))
    assert weight <= BUDGET, f"{page}: {weight} bytes"


def test_every_derivation_of_the_book_walks(open_page) -> None:
    """Page and module know the same steps, and the page's data let them all hold."""
    for path in PAGES:
        text = (HTML / path).read_text(encoding="utf-8")
        names = re.findall(r'data-derivation="([\w-]+)"', text)
        if not names:
            continue
        page = open_page(path, typeset=False)
        for name in names:
            found = page.locator(f'[data-derivation="{name}"]')
            found.scroll_into_view_if_needed()
            page.wait_for_selector(f'[data-derivation="{name}"][data-ready]')
            assert found.get_attribute("data-failed") == "", f"{path}: {name}"
        page.context.close()


def test_no_sign_lies_on_a_title_of_an_exercise(open_page) -> None:
    page = open_page("book/bias/directions.html", typeset=False)
    signs = page.locator("div.exercise > .admonition-title").evaluate_all(
        """(titles) => titles.flatMap((title) => ["::before", "::after"].map((sign) =>
          [sign, getComputedStyle(title, sign)])).filter(([, style]) =>
          style.display !== "none" && style.content !== "none").map(([sign]) => sign)"""
    )
    assert page.locator("div.exercise > .admonition-title").count()
    assert not signs


def test_the_lost_find_home(open_page, site: str) -> None:
    page = open_page("404.html")
    page.wait_for_timeout(300)
    assert page.get_attribute("#home", "href") == "/"


# What sticks out of the screen and cannot be scrolled into it, and what scrolls without a shade.
CUT = """() => {
  const article = document.querySelector(".bd-article");
  const wide = document.documentElement.clientWidth;
  const scrolls = (node) => ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
  const leaves = [...article.querySelectorAll("p, li, td, th, pre, img, svg, mjx-container")]
    .filter((node) => !node.closest(".al-hidden, .al-ask-hidden, .headerlink, [hidden]"));
  const reach = (node) => {
    for (let up = node; up !== article; up = up.parentElement) if (scrolls(up)) return true;
    return false;
  };
  const out = (node) => node.getBoundingClientRect().right > wide + 1;
  const cut = leaves.filter((node) => out(node) && !reach(node));
  const SHADED = '.al-figure-frame, mjx-container[display="true"], .highlight pre';
  const bare = [...article.querySelectorAll(SHADED)]
    .filter((node) => node.clientWidth && node.scrollWidth > node.clientWidth + 8)
    .filter((node) => !getComputedStyle(node).backgroundImage.includes("gradient"));
  return [cut, bare].map((nodes) => nodes.map((node) => node.outerHTML.slice(0, 80)));
}"""


def edge(box) -> float:
    """How light the right edge of an element is, from 0 to 255."""
    shown = Image.open(io.BytesIO(box.screenshot())).convert("L")
    return float(np.asarray(shown)[:, -6:].mean())


@pytest.mark.parametrize("page", ["norms", "local", "real"])
def test_what_a_phone_cuts_can_be_scrolled_and_says_so(open_page, page: str) -> None:
    shown = open_page(f"book/svm/{page}.html", width=390, reduced_motion="reduce")
    shown.wait_for_function("() => window.MathJax?.startup?.promise")
    shown.evaluate("() => MathJax.startup.promise")
    cut, bare = shown.evaluate(CUT)
    assert not cut
    assert not bare
    if page == "local":  # its one figure fits: it is no longer stretched beyond the screen
        assert shown.locator(".al-figure-frame").evaluate("(n) => n.scrollWidth <= n.clientWidth")
        return
    figure = shown.locator(".al-figure-frame").last
    figure.scroll_into_view_if_needed()
    more = edge(figure)
    figure.evaluate("(node) => { node.scrollLeft = node.scrollWidth; }")
    assert edge(figure) > more + 20, "the shade is seen where there is more, and only there"
