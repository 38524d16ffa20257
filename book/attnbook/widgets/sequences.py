"""Explorables of sequences: a mask to edit, and a mask that is forgotten."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class CausalMask(Explorable):
    r"""A mask to edit: the triangle of attention, the inequalities that it asks, their margin.

    Returns:
        A widget; `problem` is the sequence under its present mask.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.CausalMask().problem.mask.sum()
        np.int64(15)

    Reference: svm, Section 7.
    """

    name = "causal_mask"

    def __init__(self) -> None:
        super().__init__({"X": [list(x) for x in START], "cells": 0, "own": None})

    @property
    def problem(self) -> TokenProblem:
        """The rows of the sequence under the mask of the board."""
        X = np.array(self.now("X"), float)
        own, cells = self.now("own"), int(self.now("cells"))
        pressed = own and own["at"] == cells
        mask = np.array(own["mask"], bool) if pressed else opened(len(X), cells)
        rows = np.repeat(X[None], len(X), axis=0)
        return TokenProblem(rows, X, np.ones(len(X)), np.array([0.0, 1.0]), mask=mask)


START = ((-1.6, -1.0), (-0.7, 0.3), (-0.1, 0.8), (-1.5, 1.2), (-1.1, -0.4))


def opened(T: int, cells: int) -> np.ndarray:
    """The causal mask with its first hidden cells opened, one token ahead first."""
    mask = np.tril(np.ones((T, T), bool))
    hidden = [(k, k + by) for by in range(1, T) for k in range(T - by)]
    for k, t in hidden[:cells]:
        mask[k, t] = True
    return mask


class MaskForgotten(Explorable):
    r"""Attention that was trained behind a causal mask, with the mask taken away.

    Returns:
        A widget.

    Reference: svm, Section 7: the SVM constraints apply over the mask of the softmax.
    """

    name = "mask_forgotten"

    def __init__(self) -> None:
        super().__init__()
