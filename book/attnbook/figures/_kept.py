"""Kept runs: what pages show of real data without PyTorch and without the data."""

from __future__ import annotations

import io
import json
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from attnbook.figures._output import versions
from attnbook.figures._record import Arrays, Data, Figure
from attnbook.figures._registry import all as every
from attnbook.figures._registry import get
from attnbook.figures._store import digest
from attnbook.figures._verdict import Verdict
from attnbook.files import atomically, folder
from attnlab import checks as check

STAMP = "run of attnlab"
PRESET, SEED = "quick", 0
HOME = "kept"


def kept(id: str) -> Data:  # noqa: A002
    r"""The kept run of a figure: its quick preset, as ``attnlab figure ID --store`` wrote it.

    Args:
        id: of a figure that is ``stored``.

    Returns:
        `Data`, with numbers to seven digits.

    Examples:
        >>> from attnbook import figures
        >>> figures.kept("svm.5")
        Traceback (most recent call last):
        ...
        ValueError: id: expected a figure whose run is kept, got svm.5
    """
    figure = _stored(id)
    return _read(figure, _file(figure))[0]


def store(data: Data, *, seconds: float | None = None, place: str | Path | None = None) -> Path:
    r"""Keep a run, so that pages can show it.

    Args:
        data: of a figure that is ``stored``, with the quick preset as it is and seed 0.
        seconds: what it took, where all of it was computed.
        place: the folder; that of the package unless told.

    Returns:
        The file.

    Examples:
        >>> from attnbook import figures
        >>> figures.store(figures.get("svm.3").run())
        Traceback (most recent call last):
        ...
        ValueError: id: expected a figure whose run is kept, got svm.3
    """
    figure = _stored(data.figure)
    expected = (PRESET, SEED, _plain(figure.settings(PRESET)))
    if (data.preset, data.seed, _plain(data.settings)) != expected:
        raise check.fail("data", "the quick preset as it is, with seed 0", data)
    short = {
        name: array.astype(np.float32) if array.dtype == np.float64 else array
        for name, array in data.arrays.items()
    }
    told = {
        "figure": figure.id,
        "preset": data.preset,
        "seed": data.seed,
        "settings": _plain(data.settings),
        "digest": digest(short),
        "seconds": None if seconds is None else round(seconds, 1),
        "versions": versions(),
    }
    stamp = np.frombuffer(json.dumps(told, sort_keys=True).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{STAMP: stamp}, **short)  # type: ignore[arg-type]
    home = folder(Path(str(_home())) if place is None else place)
    atomically(home / f"{figure.id}.npz", buffer.getvalue())
    return home / f"{figure.id}.npz"


def verdicts() -> dict[str, Verdict]:
    r"""What the kept runs of real data came to.

    Returns:
        `Verdict` by the figure's id, for each that has one and whose run is kept.

    Examples:
        >>> from attnbook import figures
        >>> {type(verdict) for verdict in figures.verdicts().values()} <= {figures.Verdict}
        True
    """
    found = {}
    for figure in every(own=True):
        if figure.verdict is not None and figure.stored and _file(figure).is_file():
            found[figure.id] = figure.verdict(kept(figure.id))
    return found


def seconds(name: str) -> float | None:
    """What a kept run took, as it says itself."""
    figure = get(name)
    if not figure.stored or not _file(figure).is_file():
        return None
    took = _read(figure, _file(figure))[1]["seconds"]
    return None if took is None else float(took)


def _home() -> Any:
    return resources.files("attnbook.figures").joinpath(HOME)


def _file(figure: Figure) -> Any:
    return _home().joinpath(f"{figure.id}.npz")


def _stored(name: str) -> Figure:
    figure = get(name)
    if not figure.stored:
        raise check.fail("id", "a figure whose run is kept", figure.id)
    return figure


def _read(figure: Figure, file: Any) -> tuple[Data, dict[str, Any]]:
    """Arrays and stamp of a kept run; what is not this figure's own is refused."""
    renew = f"attnlab figure {figure.id} --store"
    try:
        told, arrays = _open(file.read_bytes())
    except FileNotFoundError:
        raise check.fail("id", f"a kept run of {figure.id} ({renew})", "none") from None
    except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise check.fail(file.name, f"a whole kept run (renew it: {renew})", str(error)) from None
    settings = figure.settings(PRESET)
    if told["figure"] != figure.id:
        raise check.fail(file.name, f"a run of {figure.id}", f"one of {told['figure']}")
    if (told["preset"], told["seed"], told["settings"]) != (PRESET, SEED, _plain(settings)):
        raise check.fail(
            file.name, f"a run of today's quick preset (renew it: {renew})", "one of other settings"
        )
    if set(arrays) != set(figure.arrays):
        raise check.fail(file.name, f"the arrays {sorted(figure.arrays)}", sorted(arrays))
    return Data(figure.id, PRESET, SEED, settings, arrays), told


def _open(content: bytes) -> tuple[dict[str, Any], Arrays]:
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if STAMP not in arrays:
        raise ValueError("a foreign file")
    told: dict[str, Any] = json.loads(arrays.pop(STAMP).tobytes())
    if told["digest"] != digest(arrays):
        raise ValueError("its numbers were changed")
    full = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array
        for name, array in arrays.items()
    }
    return told, full


def _plain(settings: Any) -> Any:
    """Settings as JSON has them, where tuples are lists."""
    return json.loads(json.dumps(settings, default=lambda value: np.asarray(value).tolist()))
