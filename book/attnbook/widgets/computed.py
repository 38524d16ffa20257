"""Explorables whose trajectories attnlab computes when the page is built."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook.widgets import stored
from attnbook.widgets._base import Explorable
from attnlab import models, optim, problems, svm


def product(params: dict[str, np.ndarray], _: Any) -> np.ndarray:
    """The matrix of the logits, of either form."""
    return params["W"] if "W" in params else params["K"] @ params["Q"].swapaxes(-1, -2)


class FinitePart(Explorable):
    r"""Gen-SVM: selected tokens keep their shares while masked ones die.

    Args:
        rng: seed of the data.

    Returns:
        A widget.

    Reference: svm, Section 6, equations 6 and 7.
    """

    name = "finite_part"

    def __init__(self, rng: int = 0) -> None:
        problem = problems.sphere(n=2, T=4, d=8, rng=rng)
        selected = np.array([[True, True, False, False], [False, True, True, False]])
        shares = np.array([[0.7, 0.3, 0.0, 0.0], [0.0, 0.4, 0.6, 0.0]])
        general = svm.general_svm(problem, selected=selected)
        single = svm.attention_svm(problem, shares.argmax(axis=1))
        arrays = {
            "X": problem.X,
            "z": problem.z,
            "finite": svm.finite_component(problem, shares, selected=selected),
            "direction": general.W / general.norm,
            "single": single.W / single.norm,
            "selected": selected,
        }
        super().__init__({"R": 4.0}, arrays)


class HowOften(Explorable):
    r"""How often training goes to the global direction, over d, n and T.

    Returns:
        A widget; its sweep is stored and renewed by ``python -m attnbook.widgets.sweeps``.

    Reference: svm, Figures 2, 5 and 6.
    """

    name = "how_often"

    def __init__(self) -> None:
        found = stored.load("how_often")
        kind = found["kind"]  # (n, T, d, trials, forms): 0 none, 1 local, 2 global
        share = np.stack([(kind == code).mean(axis=3) for code in (2, 1, 0)], axis=-1)
        arrays = {
            "n": found["n"],
            "T": found["T"],
            "d": found["d"],
            "share": share,
            "support": found["support"].mean(axis=-1),
            "exact": found["exact"].mean(axis=-1),
            "trials": np.array([kind.shape[3]]),
        }
        super().__init__({"n": 5, "T": 5}, arrays)


class TwoNorms(Explorable):
    r"""Correlation with both max-margin directions while W, or K and Q, are trained.

    Args:
        trials: how many instances the curves average.
        rng: seed of data and starts.
        steps: how many.

    Returns:
        A widget.

    Reference: svm, Figure 7, Theorem 2.
    """

    name = "two_norms"

    def __init__(self, trials: int = 100, rng: int = 0, steps: int = 2000) -> None:
        problem = problems.sphere(n=6, T=8, d=10, trials=trials, rng=rng)
        rule = optim.NormalizedGD(0.1, recipe="paper")
        found = []
        step = np.zeros(0)
        for factors in (None, 10):
            model = models.Attention(factors=factors)
            run = optim.train(
                model, problem, rule, steps, rng=rng, record=[{"W": product}], every="log"
            )
            tokens = svm.classify(run).tokens
            goals = [svm.attention_svm(problem, tokens, norm=norm) for norm in ("fro", "nuc")]
            shown = [np.nan_to_num(goal.W) for goal in goals]  # a selection without one counts 0
            near = [svm.correlation(run.history["W"], goal) for goal in shown]  # (steps, trials)
            step = run.history["step"]
            found.append(np.nanmean(near, axis=2))  # (norms, steps)
        arrays = {
            "step": step.astype(int),
            "correlation": np.stack(found),
            "trials": np.array([trials]),
        }
        super().__init__({"k": len(step) - 1}, arrays)
