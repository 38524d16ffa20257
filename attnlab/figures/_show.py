"""A figure on a page: an image that carries its own alternative text."""

from __future__ import annotations

import base64
import io
from html import escape
from typing import Any


class Shown:
    """What a notebook shows: the picture, and for those who cannot see it, its words."""

    def __init__(self, canvas: Any, alt: str = "") -> None:
        self.canvas, self.alt = canvas, alt or str(canvas.get_label())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        buffer = io.BytesIO()
        self.canvas.savefig(buffer, format="png", dpi=110)
        data = base64.b64encode(buffer.getvalue()).decode()
        image = f'<img src="data:image/png;base64,{data}" alt="{escape(self.alt, quote=True)}">'
        return {"text/html": image, "text/plain": self.alt}


def show(canvas: Any, alt: str = "") -> Shown:
    """Show a figure with its alternative text (its own unless told)."""
    return Shown(canvas, alt)
