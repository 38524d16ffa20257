"""Before the reader answers, nothing in the page tells: no mark, no number, no name for it."""

from __future__ import annotations

import re

import pytest

from attnbook import widgets

NAMES = [name for each in widgets.__all__ if (name := getattr(getattr(widgets, each), "name", ""))]
# All that an explorable says or shows: words, attributes, what assistive technology is told.
ALL = """(root) => [root, ...root.querySelectorAll("*")].flatMap((node) => [
  ...[...node.attributes].filter(({ name }) => !["d", "style", "x", "y", "x1", "x2", "y1", "y2",
    "cx", "cy", "r", "width", "height", "viewBox", "transform"].includes(name))
    .map(({ value }) => value),
  ...[...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data),
  node.tagName === "INPUT" ? node.value : "",
]).join("\\n")"""
MARKS = ".al-right, .al-told, .al-verdict p"
SHOWS_A_RUN = {"first_run", "arithmetic"}  # their questions come after the first part of a run
GIVEN = {"causal_mask": {"0.50"}}  # the margin of the mask that is shown
NUMBER = re.compile(r"\d+\.\d+(?:e-?\d+)?|\d{3,}|\d+(?= ?%)")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_tells_before_the_answer(explorable, name: str) -> None:
    """The whole DOM is read, then the answer is asked for and compared with what was there."""
    page, root = explorable(name, sealed=True, reduced_motion="reduce")
    if root.get_attribute("data-sealed") is None:
        assert not root.locator("[data-bet], .al-predict").count()
        return
    assert root.get_attribute("data-sealed") == "true"
    show = root.locator("[data-show]").first
    if not show.is_visible():  # a run comes before the question
        root.get_by_role("button", name="Train").click()
        show.wait_for()
    before = root.evaluate(ALL)
    asked = root.locator(".al-bet, .al-predict").inner_text()
    assert not [mark for mark in root.locator(MARKS).all() if mark.is_visible()]
    assert name in SHOWS_A_RUN or not root.locator(".al-curve").count()
    show.click()
    page.wait_for_function(
        "(name) => document.querySelector(`[data-explorable=${name}]`).dataset.sealed === 'false'",
        arg=name,
    )
    page.wait_for_function(
        """(name) => [...document.querySelectorAll(
          `[data-explorable=${name}] :is(.al-told, .al-verdict p)`
        )].some((told) => told.innerText)""",
        arg=name,
        timeout=30_000,
    )
    for told in root.locator(".al-told, .al-verdict p").all_inner_texts():
        assert told, "an answer that says nothing"
        for sentence in re.split(r"(?<=[.:!?])\s+", told):
            assert len(sentence) < 12 or sentence not in before, f"told before: {sentence}"
        numbers = set(NUMBER.findall(told)) - set(NUMBER.findall(asked)) - GIVEN.get(name, set())
        numbers -= {"100"}  # the end of an axis in per cent
        shown = set(NUMBER.findall(before))
        assert not numbers & shown, f"numbers of the answer were there: {numbers & shown}"


@pytest.mark.parametrize("name", NAMES)
def test_a_link_may_be_sealed_or_open(explorable, name: str) -> None:
    """What was answered is in the address; "Ask me again" seals it."""
    page, root = explorable(name)
    if root.get_attribute("data-sealed") is None:
        return
    assert root.get_attribute("data-sealed") == "false"
    root.get_by_role("button", name="Ask me again").click()
    page.wait_for_function(
        "(name) => document.querySelector(`[data-explorable=${name}]`).dataset.sealed === 'true'",
        arg=name,
    )
