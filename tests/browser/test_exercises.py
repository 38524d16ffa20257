"""Every exercise of the built book: right answers, named wrong ones, and what is kept of them."""

from __future__ import annotations

import functools
import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe

from attnbook.widgets import exercise
from attnbook.widgets._base import bundle

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
BUILT = sorted((HTML / "book").rglob("*.html")) if HTML.is_dir() else []
BLOCK = re.compile(
    r'<div data-exercise="([^"]+)".*?<script type="application/json">(.*?)</script>', re.S
)


@functools.cache
def found() -> dict[str, tuple[str, dict[str, Any]]]:
    """Page and task of every exercise, by name."""
    tasks = {}
    for path in BUILT:
        for name, text in BLOCK.findall(path.read_text(encoding="utf-8")):
            tasks[name] = (path.relative_to(HTML).as_posix(), json.loads(text))
    return tasks


SAMPLES = {
    each.task["id"]: each
    for each in (
        exercise.number(
            "sample-number", "How long, for $\\ln 100$?", 5.2, unit="$\\eta$",
            wrong={
                4.6: "Divide by the margin.", 4.07: "You multiplied: $\\|W\\|$ grows.",
                9.0: "**Twice** *too long*, says `<b>norm</b>`: *half of $R$* & <i>no less</i>.",
            },
            right="Yes: $\\ln 100 / m$.", hint="A gap of $\\ln 100$.", solution="Divide.",
        ),
        exercise.number("sample-percent", "What share?", 12.0, unit="%", wrong={88.0: "The rest."}),
        exercise.power("sample-power", "How fast?", -1.98, wrong={-1: "That is one head."}),
        exercise.choice(
            "sample-choice", "Which norm?", {"fro": "$\\|W\\|_F$", "nuc": "the nuclear one"},
            right="fro", say={"fro": "Yes.", "nuc": "That is for $K$ and $Q$."}, hint="Count.",
        ),
        exercise.false_line(
            "sample-line", "One line is false.", ["a = b", "a^2 = b", "b = a"], 1,
            say={0: "That is given."}, right="It is $a^2 = b^2$.",
        ),
    )
}  # fmt: skip


@pytest.fixture
def sample(open_page):
    """Exercises of this file on a page of their own."""
    blocks = "".join(each.html() for each in SAMPLES.values())
    styles = "".join(
        f'<link rel="stylesheet" href="explorables/{file}">'
        for file in ("kit/kit.css", "kit/exercise.css", "book.css")
    )
    text = (
        '<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8"><title>x</title>'
        f'<meta name="viewport" content="width=device-width">{styles}'
        "<style>[data-theme=dark] {{ --pst-color-text-base: #eee; --pst-color-background: #14181e;"
        " --pst-color-surface: #222832; --pst-color-text-muted: #b5bcc4;"
        " --pst-color-border: #48525e }} body {{ color: var(--pst-color-text-base);"
        f" background: var(--pst-color-background) }}}}</style><body><main class='bd-article'>"
        '{blocks}</main><script type="module" src="explorables/host.js"></script></body></html>'
    )

    def visit(theme: str = "light", **how: Any):
        shown = text.replace("{{", "{").replace("}}", "}")
        shown = shown.replace("{theme}", theme).replace("{blocks}", blocks)
        return open_page("sample.html", body=shown, **how)

    return visit


def ready(page, name: str):
    """An exercise that is alive."""
    page.wait_for_selector(f'[data-exercise="{name}"][data-ready]')
    return page.locator(f'[data-exercise="{name}"]')


def submit(box, kind: str, given: Any) -> None:
    """Answer as a reader does."""
    if kind in ("number", "power"):
        box.locator("input").fill(str(given))
        box.locator("input").press("Enter")
    else:
        box.locator(f'[data-option="{given}"] > button').click()


SHOWN = r"""async ([address, words]) => {
  const { html } = await import(address);
  const node = document.createElement("p");
  const bare = words.replace(/\*\*(.+?)\*\*|\*(.+?)\*/g, "$1$2").replace(/`/g, "");
  node.innerHTML = html(bare);
  return node.textContent;
}"""


def said(page, site: str, words: str) -> str:
    """Words with their formulas, as a label shows them."""
    return str(page.evaluate(SHOWN, [f"{site}/explorables/kit/view.js", words]))


def answers(task: dict[str, Any]) -> list[tuple[Any, str, str]]:
    """The right answer and every wrong one that has a response of its own."""
    if task["kind"] in ("number", "power"):
        wrong = [(each["value"], "wrong", each["say"]) for each in task["wrong"]]
        return [*wrong, (task["answer"], "right", task["right"])]
    return [
        (key, "right" if key == task["answer"] else "wrong", words)
        for key, words in task["say"].items()
    ]


def judged(page, site: str, name: str, task: dict[str, Any]) -> None:
    """All of an exercise's answers get their verdicts and their words."""
    box = ready(page, name)
    for given, verdict, words in answers(task):
        submit(box, task["kind"], given)
        assert box.get_attribute("data-verdict") == verdict, (name, given)
        shown = box.locator(".al-ask-words").inner_text()
        assert shown == said(page, site, words).strip()
        assert not re.search(r"[*`$]", shown), "marks of Markdown are rendered, not shown"
    assert box.locator(".al-ask-kept").inner_text() == "solved" or verdict == "wrong"


@pytest.mark.parametrize("name", sorted(found()))
def test_every_exercise_of_the_book_knows_its_answers(open_page, site: str, name: str) -> None:
    path, task = found()[name]
    if task["kind"] != "reach":
        judged(open_page(path, typeset=False), site, name, task)
        return
    page = open_page(path, typeset=False)
    picture = f'[data-explorable="{task["explorable"]}"]'
    box = ready(page, name)
    page.locator(picture).first.scroll_into_view_if_needed()
    page.wait_for_selector(f"{picture}[data-ready]")
    box.get_by_role("button", name="Check the picture").click()
    assert box.get_attribute("data-verdict") != "right", "it is solved before anybody began"
    state = quote(json.dumps(task["reached"]))
    again = open_page(f"{path}?{task['explorable']}={state}", typeset=False)
    again.locator(picture).first.scroll_into_view_if_needed()
    again.wait_for_selector(f'[data-exercise="{name}"][data-verdict="right"]')
    box.get_by_role("button", name="Show me").click()
    page.wait_for_selector(f'[data-exercise="{name}"][data-verdict="right"]')


def test_names_are_unique() -> None:
    names = [name for path in BUILT for name, _ in BLOCK.findall(path.read_text("utf-8"))]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_knows_its_answers(sample, site: str, name: str) -> None:
    judged(sample(), site, name, SAMPLES[name].task)


MATHJAX = "window.MathJax = { typesetPromise: async (nodes) => { window.alSet = nodes; } };"


@pytest.mark.parametrize("script", ["", MATHJAX])
def test_replies_are_rendered_and_nothing_else_in_them_is(sample, script: str) -> None:
    """Emphasis, code and formulas inside it; other people's HTML stays text."""
    box = ready(sample(script=script), "sample-number")
    submit(box, "number", 9.0)
    words = box.locator(".al-ask-words")
    assert words.locator("strong").inner_text() == "Twice"
    assert words.locator("em").first.inner_text() == "too long"
    assert words.locator("code").inner_text() == "<b>norm</b>"
    half = words.locator("em").last.inner_text()
    assert half == ("half of \\(R\\)" if script else "half of R")
    assert not words.locator("b").count()
    assert words.inner_text().endswith("& <i>no less</i>.")


@pytest.mark.parametrize(
    ("name", "given", "key"),
    [
        ("sample-number", "5.25", "right"),
        ("sample-number", "5,2", "right"),
        ("sample-number", "ln(100) / 0.885", "right"),
        ("sample-number", "-5.2", "sign"),
        ("sample-number", "1,000", "large"),
        ("sample-number", "10^-3", "small"),
        ("sample-number", "2 sqrt(3)", "small"),
        ("sample-number", "long", "bad"),
        ("sample-number", "", "bad"),
        ("sample-number", "5.2.1", "bad"),
        ("sample-percent", "12 %", "right"),
        ("sample-percent", "88", "wrong-0"),
        ("sample-power", "t^-2", "right"),
        ("sample-power", "t⁻²", "right"),
        ("sample-power", "1/k^2", "right"),
        ("sample-power", "−2", "right"),
        ("sample-power", "t^(-1)", "wrong-0"),
        ("sample-power", "1/sqrt(t)", "large"),
        ("sample-power", "fast", "bad"),
    ],
)
def test_answers_are_read_as_people_write_them(sample, name: str, given: str, key: str) -> None:
    box = ready(page := sample(), name)
    submit(box, SAMPLES[name].task["kind"], given)
    assert box.get_attribute("data-said") == key
    verdict = {"right": "right", "bad": None}.get(key, "wrong")
    assert box.get_attribute("data-verdict") == verdict
    assert box.locator(".al-ask-words").inner_text()
    assert page.evaluate("document.activeElement.tagName") == "INPUT", "one can go on typing"


def test_the_solution_waits_for_an_attempt_or_for_the_hint(sample) -> None:
    page = sample()
    box = ready(page, "sample-number")
    assert not box.locator(".al-ask-solution").is_visible()
    submit(box, "number", "long")
    assert not box.locator(".al-ask-solution").is_visible(), "that was no attempt"
    submit(box, "number", 1)
    assert box.locator(".al-ask-solution").is_visible()
    other = ready(page, "sample-choice")
    assert not other.locator(".al-ask-solution").is_visible()
    other.locator(".al-ask-hint > summary").click()
    other.locator(".al-ask-solution").wait_for()


OPTION = "document.activeElement.closest('[data-option]')?.dataset.option"


def test_by_keyboard_alone(sample) -> None:
    page = sample()
    ready(page, "sample-number")
    box = ready(page, "sample-choice")
    page.keyboard.press("Tab")
    page.keyboard.type("4.6")
    page.keyboard.press("Enter")
    assert page.get_attribute('[data-exercise="sample-number"]', "data-verdict") == "wrong"
    for _ in range(30):
        page.keyboard.press("Tab")
        if (
            page.evaluate("document.activeElement.closest('[data-option]')?.dataset.option")
            == "fro"
        ):
            break
    page.keyboard.press("Space")
    assert box.get_attribute("data-verdict") == "right"


def test_without_a_script_the_page_reads(sample) -> None:
    page = sample(java_script_enabled=False)
    for each in SAMPLES.values():
        box = page.locator(f'[data-exercise="{each.task["id"]}"]')
        assert box.locator(".al-ask-question").is_visible()
        assert box.locator(".al-ask-solution").is_visible()
        assert not box.locator("input, button").count()


def test_what_was_solved_stays_on_the_device(sample) -> None:
    page = sample()
    submit(ready(page, "sample-choice"), "choice", "fro")
    submit(ready(page, "sample-choice"), "choice", "nuc")
    submit(ready(page, "sample-power"), "power", "-1")
    kept = json.loads(page.evaluate("localStorage.getItem('attnlab-solved')"))
    assert kept == {"sample-choice": "right", "sample-power": "wrong"}
    page.reload()
    assert ready(page, "sample-choice").locator(".al-ask-kept").inner_text() == "solved"
    assert not ready(page, "sample-power").locator(".al-ask-kept").inner_text()


def test_where_nothing_can_be_kept_it_works_all_the_same(sample) -> None:
    page = sample(
        script="Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } })"
    )
    submit(ready(page, "sample-choice"), "choice", "fro")
    assert page.get_attribute('[data-exercise="sample-choice"]', "data-verdict") == "right"
    assert ready(page, "sample-choice").locator(".al-ask-kept").inner_text() == "solved"


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
def test_legible_for_everybody(sample, width: int, theme: str) -> None:
    page = sample(theme, width=width)
    for name in SAMPLES:
        box = ready(page, name)
        submit(box, SAMPLES[name].task["kind"], answers(SAMPLES[name].task)[0][0])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    violations = Axe().run(page, context={"include": [["main"]]}).response["violations"]
    serious = [each["help"] for each in violations if each["impact"] in ("serious", "critical")]
    assert not serious


NOTEBOOK = """async ([text, task, markup]) => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const widget = (await import(address)).default;
  const el = document.createElement("div"), values = { task, markup, state: {} }, saved = [];
  document.body.append(el);
  const set = (key, value) => { values[key] = value; };
  const save_changes = () => { saved.push(values.state.verdict); };
  const stop = widget.render({ el, model: { get: (key) => values[key], set, save_changes } });
  el.querySelector("input").value = "4.6";
  el.querySelector("form").requestSubmit();
  const told = el.querySelector(".al-ask-words").textContent;
  stop();
  return [el.dataset.verdict, told, saved, el.querySelector(".al-ask-question").textContent];
}"""


def test_in_a_notebook_the_kernel_hears_the_verdict(open_page) -> None:
    """As anywidget does it: one module, an empty element, words from Python, no MathJax."""
    made = SAMPLES["sample-number"]
    given = [bundle("kit/exercise"), made.task, made.markup]
    verdict, told, saved, question = open_page("404.html").evaluate(NOTEBOOK, given)
    assert (verdict, told, saved) == ("wrong", "Divide by the margin.", ["wrong"])
    assert question == "How long, for ln100?"


def test_the_list_shows_and_forgets(open_page) -> None:
    page = open_page("book/progress.html", typeset=False)
    for name, (path, _) in found().items():
        link = page.locator(f"li.al-solves-{name} a")
        assert link.count() == 1, f"{name} is not listed"
        here = (HTML / "book" / link.get_attribute("href").split("#")[0]).resolve()
        assert here == (HTML / path).resolve()
    if not found():
        return
    name = next(iter(found()))
    page.evaluate(f"localStorage.setItem('attnlab-solved', '{{\"{name}\": \"right\"}}')")
    page.reload()
    page.wait_for_selector(".al-progress[data-ready]")
    assert page.get_attribute(f"li.al-solves-{name}", "data-verdict") == "right"
    assert page.locator(".al-progress [role=status]").inner_text().startswith("1 of")
    page.get_by_role("button", name="Forget").click()
    assert page.get_attribute(f"li.al-solves-{name}", "data-verdict") is None
    assert page.evaluate("localStorage.getItem('attnlab-solved')") is None


def test_every_list_of_options_reads_as_html() -> None:
    """What stands on the page without a script is well formed, with its formulas."""
    text = SAMPLES["sample-line"].html()
    assert html.unescape(text).count(r"\(a^2 = b\)") == 1
