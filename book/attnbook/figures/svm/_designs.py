"""Sweeps over n with T fixed, and over T with n fixed, as in Figures 4, 6 and 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.figures._record import Arrays, Data


def designs(settings: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Pairs (n, T): every n with the base T, then the base n with every T, each once."""
    base = settings["base"]
    pairs = [(n, base) for n in settings["n"]] + [(base, T) for T in settings["T"]]
    return list(dict.fromkeys(pairs))


def cells(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One cell a design and dimension (a design alone where the dimension is not swept)."""
    d = settings["d"]
    dims = d if isinstance(d, tuple) else (d,)
    return [{**settings, "n": n, "T": T, "d": k} for n, T in designs(settings) for k in dims]


def finish(settings: Mapping[str, Any], arrays: Arrays) -> Arrays:
    """Designs and dimensions as two axes, with their coordinates."""
    pairs = designs(settings)
    found: Arrays = {"design": np.array(pairs)}
    swept = isinstance(settings["d"], tuple)
    if swept:
        found["d"] = np.array(settings["d"])
    for name, array in arrays.items():
        lead = (len(pairs), len(settings["d"])) if swept else (len(pairs),)
        found[name] = array.reshape(lead + array.shape[1:])
    return found


def sides(data: Data) -> list[list[tuple[int, str]]]:
    """For the two panels: which designs, and how each is called there."""
    base = data.settings["base"]
    pairs = [(k, int(n), int(T)) for k, (n, T) in enumerate(data["design"])]
    by_n = [(k, f"n = {n}") for k, n, T in pairs if base == T and n in data.settings["n"]]
    by_T = [(k, f"T = {T}") for k, n, T in pairs if n == base and T in data.settings["T"]]
    return [by_n, by_T]


def titles(data: Data) -> tuple[str, str]:
    """Of the two panels."""
    base = data.settings["base"]
    return f"T = {base}, n varies", f"n = {base}, T varies"
