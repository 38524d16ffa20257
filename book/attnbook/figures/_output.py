"""What a figure leaves behind: pictures, arrays, and how they came about."""

from __future__ import annotations

import io
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import attnlab
from attnbook.figures._record import Data, Figure
from attnbook.figures._registry import get
from attnbook.figures._store import code
from attnbook.files import atomically, folder


def write(data: Data, out: str | Path, *, seconds: float | None = None) -> list[Path]:
    r"""Write ``<id>.svg``, ``.png``, ``.npz`` and ``.json``, each whole or not at all.

    Args:
        data: what a figure's ``run`` gave.
        out: the folder; made where it is missing.
        seconds: how long the run took, for the record.

    Returns:
        The four paths.

    Examples:
        >>> import tempfile
        >>> from attnbook import figures
        >>> with tempfile.TemporaryDirectory() as out:
        ...     [path.name for path in figures.write(figures.get("svm.3").run(), out)]
        ['svm.3.svg', 'svm.3.png', 'svm.3.npz', 'svm.3.json']
    """
    place, figure = folder(out), get(data.figure)
    canvas = figure.draw(data)
    words = {"Title": f"{figure.id}: {figure.words}", "Description": canvas.get_label()}
    contents = {"svg": _svg(canvas, words), "png": _png(canvas, words)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **data.arrays)  # type: ignore[arg-type]
    contents["npz"] = buffer.getvalue()
    contents["json"] = _json(data, words["Description"], seconds)
    paths = []
    for kind, content in contents.items():
        paths.append(place / f"{figure.id}.{kind}")
        atomically(paths[-1], content)
    return paths


def _svg(canvas: Any, words: dict[str, str]) -> bytes:
    """The SVG with its title and description where assistive technology looks for them."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "attnlab", "svg.fonttype": "path"}):
        canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue().decode()
    head, rest = text[: text.index("<svg")], text[text.index("<svg") :]
    tag, body = rest.split(">", 1)
    names = "".join(
        f"\n <{name}>{_escape(words[key])}</{name}>"
        for name, key in (("title", "Title"), ("desc", "Description"))
    )
    return f'{head}{tag} role="img">{names}{body}'.encode()


def _png(canvas: Any, words: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    canvas.savefig(buffer, format="png", dpi=160, metadata={**words, "Software": None})
    return buffer.getvalue()


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _json(data: Data, alt: str, seconds: float | None) -> bytes:
    figure = get(data.figure)
    record = {
        "figure": data.figure,
        "number": figure.number,
        "shows": figure.words,
        "status": figure.status,
        "reading": figure.reading,
        **_measured(figure, data),
        "claims": list(figure.claims),
        "alternative text": alt,
        "preset": data.preset,
        "seed": data.seed,
        "settings": data.settings,
        "arrays": {
            name: {"shape": list(array.shape), "dtype": str(array.dtype), "is": figure.arrays[name]}
            for name, array in data.arrays.items()
        },
        "seconds": None if seconds is None else round(seconds, 3),
        "versions": versions(),
        "code": code(),
    }
    return (json.dumps(record, indent=2, default=str) + "\n").encode()


def _measured(figure: Figure, data: Data) -> dict[str, Any]:
    """What is said of a figure of real data, and of no other."""
    if figure.verdict is None:
        return {}
    verdict = figure.verdict(data)
    told = {"word": verdict.word, "numbers": verdict.numbers}
    return {"reduced stand-in": figure.stand_in, "verdict": told}


def versions() -> dict[str, str]:
    """Of all that a number depends on."""
    found = {"attnlab": attnlab.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "matplotlib", "joblib", "torch"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
