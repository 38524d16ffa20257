"""A figure on a page: an image that carries its own alternative text."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any

from attnlab import checks as check


class Shown:
    """What a notebook shows: the picture, and for those who cannot see it, its words."""

    def __init__(self, canvas: Any, alt: str) -> None:
        self.canvas, self.alt = canvas, alt

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        buffer = io.BytesIO()
        self.canvas.savefig(buffer, format="png", dpi=110)
        data = base64.b64encode(buffer.getvalue()).decode()
        image = f'<img src="data:image/png;base64,{data}" alt="{escape(self.alt, quote=True)}">'
        return {"text/html": image, "text/plain": self.alt}


def show(canvas: Any, alt: str = "") -> Shown:
    """Show a Matplotlib figure with its alternative text.

    Args:
        canvas: a Matplotlib figure, such as `Figure.draw` gives.
        alt: what it shows, in words; a figure of the papers brings its own.

    Returns:
        What a notebook displays: an image with its alternative text.

    Examples:
        >>> from attnbook import figures
        >>> figure = figures.get("svm.7")
        >>> shown = figures.show(figure.draw(figure.run(trials=2, steps=20, seed=0)))
        >>> "W" in shown.alt
        True
    """
    if not hasattr(canvas, "savefig"):
        raise check.fail("canvas", "a Matplotlib figure", type(canvas).__name__)
    words = alt or str(canvas.get_label())
    if not words:
        raise check.fail("alt", "words that say what the figure shows", "none")
    return Shown(canvas, words)
