"""Explorables of the encoder chapter: its kernel by block, its Hessian by block, lazy training."""

from __future__ import annotations

import numpy as np

from attnbook import theory
from attnbook.widgets import stored
from attnbook.widgets._base import Explorable
from attnlab import models, ntk, problems
from attnlab.checks import Array

BLOCKS = ("w_O", "W_V", "W_Q", "W_K")
WIDTHS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
DRAWS = 12  # networks at each width; medians over them
SHOWN = 5  # of these the reader can look at one by one


def many(problem: problems.SequenceProblem, draws: int) -> problems.SequenceProblem:
    """The same samples as trials, one for each draw of the weights."""
    X, y = (np.broadcast_to(a, (draws, *a.shape)).copy() for a in (problem.X, problem.y))
    return problems.SequenceProblem(X, y)


def limits(problem: problems.SequenceProblem) -> Array:
    """Limits of the blocks: corrected, with the matrix product in print, and of (63) and (64)."""
    phi = theory.encoder.mean_tokens(problem)
    relu, step = ntk.arc_cosine(phi)
    gram = phi @ phi.T
    zero = np.zeros_like(gram)
    corrected = np.stack([relu, step * gram, zero, zero])
    printed = np.stack([relu, step @ gram, zero, zero])
    return np.stack([corrected, printed, problem.T**2 * corrected])


class KernelBlocks(Explorable):
    r"""The tangent kernel's four blocks against their limits, over the width.

    Args:
        rng: seed of data and networks.

    Returns:
        A widget.

    Reference: encoder, Lemma 1, Section 4.4.
    """

    name = "kernel_blocks"

    def __init__(self, rng: int = 0) -> None:
        problem = problems.gaussian_regression(n=6, T=5, d=8, unit_tokens=True, rng=rng)
        trials, draw = many(problem, DRAWS), np.random.default_rng(rng + 1)
        goals = limits(problem)
        size = np.linalg.norm(goals[0].sum(axis=0))
        upper = np.triu_indices(problem.n)
        entries, errors, spread = [], [], []
        for scaling in ("linear", "sqrt"):
            for width in WIDTHS:
                model = models.Encoder(width, "ntk", scaling)
                found = ntk.empirical(model, model.init(trials, draw), trials, by_group=True)
                K = np.stack([found[name] for name in BLOCKS])  # (blocks, draws, n, n)
                far = np.linalg.norm(K - goals[:, :, None], axis=(-2, -1)) / size
                errors.append(np.median(far, axis=-1))  # (limits, blocks)
                total = K.sum(axis=0)
                mean, deviation = (np.linalg.norm(f(axis=0)) for f in (total.mean, total.std))
                spread.append(deviation / mean)
                entries.append(K[:, :SHOWN, *upper].swapaxes(0, 1))
        lead = (2, len(WIDTHS))
        arrays = {
            "width": np.array(WIDTHS),
            "error": np.reshape(errors, (*lead, 3, 4)),
            "spread": np.reshape(spread, lead),
            "entry": np.reshape(entries, (*lead, SHOWN, 4, -1)),
            "limit": goals[:, :, *upper],
        }
        super().__init__({"k": 4, "draw": 1, "scaling": "linear", "limit": "corrected"}, arrays)


class HessianMap(Explorable):
    r"""Norms of the blocks of the output's Hessian, over width, initialisation and distance.

    Returns:
        A widget; its sweep is stored, ``python -m attnbook.widgets.sweeps_encoder`` renews it.

    Reference: encoder, Theorem 3 (Appendix D.3).
    """

    name = "hessian_map"

    def __init__(self) -> None:
        found = stored.load("hessian_map")
        norm = found["norm"]
        arrays = {
            "width": found["width"],
            "radius": found["radius"],
            "norm": np.median(norm, axis=3),
            "quarter": np.quantile(norm, [0.25, 0.75], axis=3),
            "bound": np.median(found["bound"], axis=3),
            "trials": np.array([norm.shape[3]]),
        }
        super().__init__({"k": 4, "init": "ntk", "radius": 1, "block": "VO"}, arrays)


class LazyReplay(Explorable):
    r"""A replay of Figures 2 and 9: loss, way of each parameter, kernel distance, by epoch.

    Returns:
        A widget; its sweep is stored, ``python -m attnbook.widgets.sweeps_encoder`` renews it.

    Reference: encoder, Figures 2, 5 and 9, Section 5.1.
    """

    name = "lazy_replay"

    def __init__(self) -> None:
        found = stored.load("lazy_replay")
        arrays = {
            "width": found["width"],
            "step": found["step"].astype(int),
            **{name: np.median(found[name], axis=3) for name in ("loss", "moved", "distance")},
            "stable_below": np.median(found["stable_below"], axis=3),
            "trials": np.array([found["loss"].shape[3]]),
        }
        last = len(found["step"]) - 1
        super().__init__({"k": last, "width": 1000, "scaling": "sqrt", "init": "lecun"}, arrays)


class CancelledWidth(Explorable):
    r"""Conditions (2) and (3) over the width, NTK start, weights that may move by $d_m^a$.

    Returns:
        A widget.

    Reference: encoder, Theorem 2, equations 57 to 61.
    """

    name = "cancelled_width"

    def __init__(self) -> None:
        super().__init__()
