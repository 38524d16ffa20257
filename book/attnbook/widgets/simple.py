"""Explorables whose whole state lives in the page: nothing is computed ahead."""

from __future__ import annotations

from attnbook.widgets._base import Explorable


class PhasePlane(Explorable):
    r"""Two sequences of two tokens: the plane of both leads, and the starts that lose a sequence.

    Returns:
        A widget.

    Reference: svm, Theorem 4; bias, Appendix C.1.
    """

    name = "phase_plane"

    def __init__(self) -> None:
        super().__init__()


class WaterFilling(Explorable):
    r"""Softmax weights of a concave head, with both thresholds of Lemma 6.

    Returns:
        A widget.

    Reference: svm, Lemma 6.
    """

    name = "water_filling"

    def __init__(self) -> None:
        super().__init__()
