"""Figures as part of a page: the page's colours, names of their own, words for those who listen."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from attnbook import figures
from attnbook.figures import _inline, _style

KIT = Path(figures.__file__).parents[1] / "widgets" / "kit" / "kit.css"
ALT = "Two lines that <cross> & part."


def canvas(points: int = 50) -> Figure:
    with figures.style():
        drawn = Figure(figsize=(6, 3))
        axes = drawn.subplots()
        x = np.linspace(0.0, 1.0, points)
        axes.plot(x, np.sin(9.0 * x), "o-", label="a & b")
        axes.plot(x, x**2, color=figures.colour("trained"))
        axes.fill_between(x, 0 * x, x, alpha=0.2, hatch="//")
        axes.set(title=r"$\|W\|_F$ and words", xlabel="step")
        axes.legend()
    return drawn


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_STATIC", "1")


def shown(drawn: Figure, alt: str = ALT) -> str:
    return str(figures.show(drawn, alt)._repr_mimebundle_()["text/html"])


@pytest.mark.usefixtures("static")
def test_colours_are_the_pages() -> None:
    text = shown(canvas())
    assert not re.findall(r"#[0-9a-f]{6}\b(?!-)", re.sub(r"#f[0-9a-f]{8}-", "", text))
    for name in ("--al-0", "--al-trained", "--al-rule", "currentColor"):
        assert name in text, name
    assert "<style" not in text, "it would hold for the whole page"
    assert "<metadata" not in text


@pytest.mark.usefixtures("static")
def test_it_is_well_formed_and_has_its_words() -> None:
    (picture,) = ET.fromstring(shown(canvas()))
    assert picture.get("role") == "img"
    assert picture.get("aria-label") == ALT
    words = "".join(picture.itertext())
    assert "a & b" in words
    assert "step" in words, "text is text"


@pytest.mark.usefixtures("static")
def test_no_two_figures_share_a_name() -> None:
    found = [re.findall(r' id="([^"]+)"', shown(canvas(), alt)) for alt in (ALT, "Another one.")]
    assert found[0]
    assert not set(found[0]) & set(found[1])
    text = shown(canvas())
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert {a or b for a, b in used} <= set(found[0])
    assert text == shown(canvas()), "the same figure is the same text"


@pytest.mark.usefixtures("static")
def test_words_on_coloured_cells_keep_their_colour() -> None:
    drawn = Figure(figsize=(3, 3))
    axes = drawn.subplots()
    axes.imshow(np.eye(2), cmap="Blues")
    axes.text(0, 0, "one", color="white")
    axes.text(1, 0, "zero", color="black")
    text = shown(drawn)
    assert re.search(r'fill: #ffffff[^>]*>one<|style="[^"]*fill: #ffffff', text)
    assert "fill: #000000" in text
    assert axes.texts[0].get_color() == "white"


@pytest.mark.usefixtures("static")
def test_what_has_too_many_parts_stays_a_photograph() -> None:
    drawn = Figure()
    drawn.subplots().plot(*np.random.default_rng(0).normal(size=(2, 3000)), "o")
    text = shown(drawn)
    assert text.startswith('<img class="al-photo" src="data:image/png')
    assert 'alt="Two lines that &lt;cross&gt; &amp; part."' in text


def test_a_notebook_gets_a_photograph() -> None:
    assert shown(canvas()).startswith("<img")


def test_lines_lose_only_what_nobody_sees() -> None:
    x = np.linspace(0.0, 400.0, 3000)
    y = 80.0 * np.sin(x / 40.0)
    path = "M" + "L".join(f"{a:.4f} {b:.4f}" for a, b in zip(x, y, strict=True))
    kept = np.array(re.findall(r"-?[\d.]+", _inline.shorter(path)), float).reshape(-1, 2)
    assert len(kept) < 150
    assert np.abs(np.interp(x, kept[:, 0], kept[:, 1]) - y).max() < 0.5
    assert kept[0] == pytest.approx([x[0], y[0]])
    assert kept[-1] == pytest.approx([x[-1], y[-1]], abs=0.01)
    closed = _inline.shorter("M 0 0 L 1 0 L 1 1 z M 5 5 L 6 5")
    assert closed.count("z") == 1
    assert closed.count("M") == 2
    curve = "M 0 0 C 1 1 2 2 3 3"
    assert _inline.shorter(curve) == curve


def test_meanings_have_the_colours_of_the_explorables() -> None:
    light = KIT.read_text("utf-8").split('html[data-theme="dark"]')[0]
    kit = dict(re.findall(r"--al-([a-z]+): (#[0-9a-f]{6})", light))
    assert {name: kit[name] for name in _style.MEANINGS} == _style.MEANINGS
    with pytest.raises(ValueError, match="meaning: expected one of"):
        figures.colour("blue")
