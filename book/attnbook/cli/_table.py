"""A table for any terminal: fixed columns, the last as wide as there is room; cells wrap."""

from __future__ import annotations

import shutil
import textwrap


class Table:
    """Columns by name and width; width 0 stands for the room that is left."""

    def __init__(self, names: tuple[str, ...], widths: tuple[int, ...]) -> None:
        room = shutil.get_terminal_size((140, 24)).columns
        left = max(30, room - sum(widths) - 2 * (len(widths) - 1))
        self.names, self.widths = names, tuple(width or left for width in widths)

    def head(self) -> str:
        """The names of the columns, underlined."""
        return self.row(*self.names) + "\n" + "  ".join("-" * width for width in self.widths)

    def row(self, *cells: str) -> str:
        """One row, on as many lines as its longest cell needs."""
        wrapped = [
            textwrap.wrap(cell, width) or [""]
            for cell, width in zip(cells, self.widths, strict=True)
        ]
        lines = []
        for k in range(max(map(len, wrapped))):
            parts = [column[k] if k < len(column) else "" for column in wrapped]
            padded = (f"{part:{width}}" for part, width in zip(parts, self.widths, strict=True))
            lines.append("  ".join(padded).rstrip())
        return "\n".join(lines)
