"""A figure on a page: an image that carries its own alternative text."""

from __future__ import annotations

import base64
import io
import os
from html import escape
from typing import Any

from attnbook.figures._inline import inline
from attnlab import checks as check

STATIC = "ATTNLAB_STATIC"  # set while the static site is built


class Shown:
    """What a notebook shows: the picture, and for those who cannot see it, its words."""

    def __init__(self, canvas: Any, alt: str) -> None:
        self.canvas, self.alt = canvas, alt

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        if os.environ.get(STATIC) and (drawn := inline(self.canvas, self.alt)):
            return {"text/html": drawn, "text/plain": self.alt}
        buffer = io.BytesIO()
        self.canvas.savefig(buffer, format="png", dpi=110)
        data = base64.b64encode(buffer.getvalue()).decode()
        words = escape(self.alt, quote=True)
        image = f'<img class="al-photo" src="data:image/png;base64,{data}" alt="{words}">'
        return {"text/html": image, "text/plain": self.alt}


def show(canvas: Any, alt: str = "") -> Shown:
    """Show a Matplotlib figure with its alternative text.

    Args:
        canvas: a Matplotlib figure, such as `Figure.draw` gives.
        alt: what it shows, in words; a figure of the papers brings its own.

    Returns:
        What a notebook displays: an image with its alternative text; on the static page, a
        picture in the page's own colours.

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
