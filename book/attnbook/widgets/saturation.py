"""Explorables of floating point: what a saturated softmax keeps, and what training makes of it."""

from __future__ import annotations

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab.problems import TokenProblem


class Arithmetic(Explorable):
    r"""One formula, two programs: the published update against exact steps.

    Returns:
        A widget; `problem` is the data of both runs.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.Arithmetic().problem.X.shape
        (2, 3, 2)

    Reference: svm, Appendix F; what its update does after saturation.
    """

    name = "arithmetic"

    def __init__(self) -> None:
        super().__init__()

    @property
    def problem(self) -> TokenProblem:
        """Two sequences of three tokens, scores their heights."""
        return TokenProblem(np.array(X), np.array(Z), np.ones(2), np.array([0.0, 1.0]))


class StoredWeight(Explorable):
    r"""What floating point keeps of a softmax of two tokens, bit by bit, as their logits part.

    Returns:
        A widget.

    Reference: svm, Appendix F.
    """

    name = "stored_weight"

    def __init__(self) -> None:
        super().__init__()


X = (((0.0, -0.4), (0.9, 0.4), (-0.6, -1.2)), ((-1.3, -0.3), (-1.6, 1.1), (-0.2, -0.4)))
Z = ((-0.82, -0.58), (-0.29, 0.96))


class _Lab(Explorable):
    """Stored numbers out of which a lab cuts problems of any size."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        shapes = {"X": (3, 8, 8, 20), "z": (3, 8, 20), "v": (3, 20)}
        if self.name == "rank_lab":
            shapes |= {"K": (3, 20, 12), "Q": (3, 20, 12)}
        self.numbers = {
            name: (rng.standard_normal(shape) * (0.1 if name in "KQ" else 1.0)).astype(np.float32)
            for name, shape in shapes.items()
        }
        super().__init__({}, self.numbers)

    def drawn(self, n: int, T: int, d: int, seed: int = 0) -> TokenProblem:
        """The problem of these sizes: unit tokens, queries and head, labels in turn."""
        X, z, v = (self.numbers[name][seed].astype(float) for name in "Xzv")
        parts = [X[:n, :T, :d], z[:n, :d], v[:d]]
        X, z, v = (part / np.linalg.norm(part, axis=-1, keepdims=True) for part in parts)
        return TokenProblem(X, z, np.where(np.arange(n) % 2, -1.0, 1.0), v)


class TrainingLab(_Lab):
    r"""A lab: sizes, loss and arithmetic of a run, which trains while one looks on.

    Returns:
        A widget; ``drawn(n, T, d, seed)`` is the problem of given sizes.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.TrainingLab().drawn(n=4, T=3, d=8)
        TokenProblem(n=4, T=3, d=8)

    Reference: svm, Section 4 and Appendix F.
    """

    name = "training_lab"


class RankLab(_Lab):
    r"""A lab for ranks: singular values of a trained product, of the nuclear margin, and a bar.

    Returns:
        A widget; ``drawn(n, T, d, seed)`` is the problem and ``start(d, m, seed)`` where it starts.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.RankLab().start(d=10, m=3)["K"].shape
        (10, 3)

    Reference: svm, Theorem 2, Lemma 1; Figure 10.
    """

    name = "rank_lab"

    def start(self, d: int, m: int, seed: int = 0) -> dict[str, np.ndarray]:
        """K and Q before training."""
        return {name: self.numbers[name][seed, :d, :m].astype(float) for name in "KQ"}
