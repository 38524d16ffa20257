"""Digits from our own hand, as strokes: what a trained network is watched on, in no data set."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

SIDE = 28
WIDTH = 1.15  # of the pen, in pixels, and half a pixel of soft edge on either side
# strokes as corners (x to the right, y downwards) in a square of 28
STROKES: dict[int, tuple[tuple[tuple[float, float], ...], ...]] = {
    0: (((14, 5), (10, 7), (8, 12), (8, 17), (11, 22), (15, 23), (19, 20), (20, 14), (18, 7),
         (14, 5)),),
    2: (((8, 9), (11, 5), (16, 5), (19, 9), (17, 14), (12, 19), (8, 22), (14, 22), (20, 23)),),
    3: (((9, 6), (15, 5), (19, 8), (17, 12), (13, 13), (18, 15), (19, 19), (15, 23), (9, 22)),),
    4: (((12, 5), (9, 11), (8, 15), (14, 15), (21, 14)), ((18, 7), (17, 14), (16, 24))),
    6: (((17, 4), (12, 8), (9, 14), (9, 19), (12, 23), (17, 22), (19, 18), (16, 15), (10, 18)),),
    7: (((8, 6), (14, 6), (20, 5), (17, 12), (13, 18), (12, 24)),),
}  # fmt: skip
DIGITS = tuple(STROKES)


def drawn(digit: int) -> np.ndarray:
    """A digit as grey values in [0, 1], shape (28, 28), its mass in the middle as in MNIST."""
    corners = [np.array(stroke, dtype=float) for stroke in STROKES[digit]]
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    first = _ink(corners, x, y)
    off = [SIDE / 2 - (first * axis).sum() / first.sum() for axis in (x, y)]
    return _ink([stroke + off for stroke in corners], x, y)


def _ink(corners: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How much of the pen covers each pixel, from 0 to 1."""
    near = np.full(x.shape, np.inf)
    for stroke in corners:
        for (ax, ay), (bx, by) in pairwise(stroke):
            wide, tall = bx - ax, by - ay
            along = np.clip(((x - ax) * wide + (y - ay) * tall) / (wide**2 + tall**2), 0.0, 1.0)
            near = np.minimum(near, np.hypot(x - ax - along * wide, y - ay - along * tall))
    return np.asarray(np.clip(WIDTH + 0.5 - near, 0.0, 1.0))


def hand() -> np.ndarray:
    """All of them, shape (digits, 28, 28)."""
    return np.stack([drawn(digit) for digit in DIGITS])
