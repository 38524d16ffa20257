"""A figure as part of a page: its colours are the page's, its text is text."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from attnbook.figures._style import COLOURS, GRID, GROUND, INK, MEANINGS

MOST = 2_000  # corners and marks of an inline picture; one with more stays a photograph
LARGE = 1.15  # of its size in print: type of 10.5 points becomes 12 pixels
FINE = 0.2  # points that a line may be off, of 72 an inch
KEPT = {"#ffffff": "#fefefd", "#000000": "#020201"}  # words on coloured cells keep black and white
TABLEAU = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#7f7f7f")


def variables() -> dict[str, str]:
    """Colours of the light theme by what the page calls them."""
    found = {colour: f"var(--al-{k})" for k, colour in enumerate(TABLEAU)}
    found |= {colour: f"var(--al-{k})" for k, colour in enumerate(COLOURS["light"])}
    found |= {colour: f"var(--al-{name})" for name, colour in MEANINGS.items()}
    found |= {GROUND["light"]: "var(--al-ground)", GRID["light"]: "var(--al-rule)"}
    found |= dict.fromkeys(("#808080", "#7f7f7f", "#555555", "#666666"), "var(--al-quiet)")
    found |= dict.fromkeys(("#cccccc", "#b0b0b0", "#d3d3d3"), "var(--al-rule)")
    found |= {INK["light"]: "currentColor", "#000000": "currentColor"}
    return found | {mark: colour for colour, mark in KEPT.items()}


def inline(canvas: Any, alt: str) -> str:
    """The figure as one ``<svg>``, or nothing where it has too many parts for a page."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "attnlab", "svg.fonttype": "none"}), kept(canvas):
        canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue().decode()
    head, body = text[text.index("<svg") :].split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    assert box is not None
    body = cleaned(body)
    if len(re.findall(r"[ML] ?-?[\d.]|<use ", body)) > MOST:
        return ""
    width, height = (f"{LARGE * float(size):.0f}" for size in box[1].split()[2:])
    words = escape(alt, quote=True)
    return (
        f'<div class="al-figure-frame"><svg class="al-figure" xmlns="http://www.w3.org/2000/svg" '
        f'xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box[1]}" width="{width}" '
        f'height="{height}" role="img" aria-label="{words}">'
        f"{named(body, alt)}</div>"
    )


@contextmanager
def kept(canvas: Any) -> Iterator[None]:
    """Words that stand on a coloured image do not follow the page's theme."""
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import to_hex

    marked = []
    for axes in canvas.axes:
        if axes.images or any(isinstance(each, QuadMesh) for each in axes.collections):
            for words in axes.texts:
                mark = KEPT.get(to_hex(words.get_color()))
                if mark:
                    marked.append((words, words.get_color()))
                    words.set_color(mark)
    try:
        yield
    finally:
        for words, colour in marked:
            words.set_color(colour)


def cleaned(body: str) -> str:
    """Without what a page does not need, with the page's colours."""
    for junk in (
        r"\s*<metadata>.*?</metadata>",
        r"\s*<defs>\s*<style.*?</style>\s*</defs>",
        r"\s*<!--.*?-->",
        r"(?<=<g) id=\"[^\"]*\"",
    ):
        body = re.sub(junk, "", body, flags=re.S)
    body = re.sub(r'(?<= d=")[^"]*(?=")', lambda found: shorter(found[0]), body)
    body = re.sub(r'(?<==")(?!data:)[^"]*(?=")', lambda found: rounded(found[0]), body)
    body = re.sub(r"'DejaVu Sans'(?:, '[^']*')*(?:, sans-serif)?", "var(--al-face)", body)
    names = variables()
    body = re.sub(
        r'(?<=style=")[^"]*(?=")|(?<=fill=")[^"]*(?=")|(?<=stroke=")[^"]*(?=")',
        lambda style: re.sub(r"#[0-9a-f]{6}", lambda c: names.get(c[0], c[0]), style[0]),
        body,
    )
    body = re.sub(r'<path [^>]*style="fill: var\(--al-ground\)"/>', "", body)  # the page is there
    body = re.sub(r">\s+<", "><", body)
    while (less := re.sub(r"<g></g>|<g/>", "", body)) != body:
        body = less
    return body


def rounded(value: str) -> str:
    """Numbers with two decimals."""
    return re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."),
                  value.strip().replace("\n", ""))  # fmt: skip


def shorter(path: str) -> str:
    """A path of straight lines without corners that nobody sees."""
    if re.search(r"[CQAHVS]", path):
        return path
    runs = re.split(r"(?=M)", path.strip())
    return "".join(thinned(run) for run in runs if run.strip())


def thinned(run: str) -> str:
    """One line of a path, by Douglas and Peucker's method."""
    closed = "z" if "z" in run else ""
    points = np.array(re.findall(r"-?[\d.]+(?:e-?\d+)?", run), float).reshape(-1, 2)
    keep = np.zeros(len(points), bool)
    keep[[0, -1]] = True
    todo = [(0, len(points) - 1)]
    while todo:
        a, b = todo.pop()
        if b - a < 2:
            continue
        way, off = points[b] - points[a], points[a + 1 : b] - points[a]
        length = float(np.hypot(*way))
        cross = off[:, 0] * way[1] - off[:, 1] * way[0]
        along = off @ way
        far = np.abs(cross) / length if length else np.hypot(*off.T)
        far = np.where(
            (along < 0) | (along > length**2), np.minimum(
                np.hypot(*off.T), np.hypot(*(points[a + 1 : b] - points[b]).T)), far)  # fmt: skip
        if far.max() > FINE:
            at = a + 1 + int(far.argmax())
            keep[at] = True
            todo += [(a, at), (at, b)]
    shown = points[keep]
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in shown) + closed


def named(body: str, alt: str) -> str:
    """Its names are its own, whatever else is on the page."""
    mark = "f" + hashlib.sha256((alt + body).encode()).hexdigest()[:8]
    body = re.sub(r'(?<= id=")(?=[^"])', f"{mark}-", body)
    return re.sub(r'(?<=url\(#)|(?<=href="#)', f"{mark}-", body)
