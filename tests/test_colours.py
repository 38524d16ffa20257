"""One colour, one meaning: legible on both grounds, and told apart by colour-blind readers."""

from __future__ import annotations

import itertools
import re
from importlib import resources

import numpy as np
import pytest

CSS = resources.files("attnbook.widgets").joinpath("kit/kit.css").read_text("utf-8")
MEANINGS = [
    "best",
    "rival",
    "other",
    "query",
    "trained",
    "fro",
    "nuc",
    "bound",
    "violation",
    "you",
    "loss",
    "yes",
]
GROUNDS = {"light": "#ffffff", "dark": "#14181e"}
# What stands side by side in a picture.
TOGETHER = [
    ("best", "rival", "other"),
    ("trained", "fro", "nuc", "query"),
    ("bound", "violation", "trained"),
    ("you", "best"),
]
# Machado, Oliveira and Fernandes (2009), full severity, on linear RGB.
BLIND = {
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def palette(theme: str) -> dict[str, str]:
    """Colours by meaning; the dark theme stands second."""
    found = re.findall(r"--al-([a-z]+): (#[0-9a-f]{6})", CSS)
    colours: dict[str, list[str]] = {}
    for name, colour in found:
        colours.setdefault(name, []).append(colour)
    return {name: colours[name][theme == "dark"] for name in MEANINGS}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear RGB."""
    to = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.clip(np.array(to) @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089], 1e-6, None))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("name", MEANINGS)
def test_words_in_a_colour_are_legible(theme: str, name: str) -> None:
    """Contrast of at least 4.5 on the page's ground: WCAG AA for small text."""
    sizes = sorted([luminance(palette(theme)[name]), luminance(GROUNDS[theme])])
    assert (sizes[1] + 0.05) / (sizes[0] + 0.05) >= 4.5


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("kind", BLIND)
@pytest.mark.parametrize("group", TOGETHER, ids="-".join)
def test_neighbours_differ_for_everybody(theme: str, kind: str, group: tuple[str, ...]) -> None:
    """What stands side by side differs by 10 in L*a*b* or more, for each kind of vision."""
    colours = palette(theme)
    seen = {name: lab(np.array(BLIND[kind]) @ linear(colours[name])) for name in group}
    for a, b in itertools.combinations(group, 2):
        assert np.linalg.norm(seen[a] - seen[b]) >= 10, (a, b)
