"""Explorables of the bias chapter's first three sections: twins, assumptions, the meter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.widgets._base import Explorable
from attnlab import models, optim, problems, svm
from attnlab.checks import Array, IntArray

MODEL = models.Attention(loss="exponential", start="zero")
SAMPLES, TOKENS, NOISE = 20, 6, 0.05  # Figure 2 of the paper


class LogisticTwin(Explorable):
    r"""Logistic regression and attention on the same vectors in the plane.

    Sample $i$ has the tokens $f_i$ and 0, all samples ask with the query $e_1$, so that attention
    decides by $w^\top f_i$ with $w=We_1$, as logistic regression does.

    Returns:
        A widget; `problem` is attention's data.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.LogisticTwin().problem.X.shape
        (3, 2, 2)

    Reference: bias, Sections 1 and 3.3.
    """

    name = "logistic_twin"

    def __init__(self) -> None:
        super().__init__({"f": [[0.9, 0.3], [0.6, 0.9], [-2.4, 0.6]], "w": [0.0, 0.0]})

    @property
    def problem(self) -> problems.TokenProblem:
        """The vectors on the board as samples of two tokens."""
        f = np.array(self.now("f"), float)
        X = np.stack([f, np.zeros_like(f)], axis=1)
        query = np.tile([1.0, 0.0], (len(f), 1))
        return problems.TokenProblem(X=X, z=query, y=np.ones(len(f)), v=np.array([0.0, 1.0]))


class LemmaFour(Explorable):
    r"""Both sides of Lemma 4 while tokens and $W$ are dragged.

    Returns:
        A widget; `problem` is the data and `W` the matrix.

    Examples:
        >>> from attnbook import theory, widgets
        >>> meter = widgets.LemmaFour()
        >>> float(theory.bias.split_scores(meter.problem)[2].max())  # Assumption 2
        0.0

    Reference: bias, Lemma 4.
    """

    name = "lemma_four"

    def __init__(self) -> None:
        tokens = [
            [[-1.0, -0.2], [0.4, 1.1], [0.9, -0.2]],
            [[0.8, 0.9], [-0.9, -0.5], [0.3, -0.5]],
        ]
        super().__init__({"X": tokens, "D": [[1.0, -0.5], [0.4, 0.8]], "s": 1.0, "level": "yes"})

    @property
    def problem(self) -> problems.TokenProblem:
        """The sequences on the board; each asks with its first token."""
        X = np.array(self.now("X"), float)
        return problems.TokenProblem(X=X, z=X[:, 0], y=np.ones(len(X)), v=np.array([0.0, 1.0]))

    @property
    def W(self) -> Array:
        """The matrix on the board."""
        return float(self.now("s")) * np.array(self.now("D"), float)


class AssumptionOne(Explorable):
    r"""How far Example 1 is from Assumption 1, and whether training converges all the same.

    Args:
        draws: how many data sets, of the seeds 0, 1, ...
        steps: of normalized descent, each as long as Lemma 3 allows.

    Returns:
        A widget.

    Reference: bias, Assumption 1, Example 1 and Figure 2.
    """

    name = "assumption_one"
    sizes = (0.02, 0.05, 0.15, 0.4, 0.8)  # rho
    widths = (10, 20, 40, 100, 300, 1000)  # d

    def __init__(self, draws: int = 3, steps: int = 500) -> None:
        found: dict[str, list[Array]] = {"factor": [], "cosine": [], "least": [], "margin": []}
        step = np.zeros(0)
        for d in self.widths:
            cells = [
                problems.orthogonal(n=SAMPLES, T=TOKENS, d=d, rho=rho, rng=seed)
                for rho in self.sizes
                for seed in range(draws)
            ]
            found["factor"].append(np.array([theory.bias.orthogonality(p) for p in cells]))
            together = in_span(cells)
            goal = svm.attention_svm(together)
            found["margin"].append(np.asarray(goal.norm))
            rule = optim.NormalizedGD(float(theory.bias.largest_step(1.0, TOKENS)))
            run = optim.train(
                MODEL,
                together,
                rule,
                steps,
                record=["min_attention", {"cosine": toward(goal.W)}],
                every=moments(steps),
            )
            step = run.history["step"]
            found["cosine"].append(np.moveaxis(run.history["cosine"], 0, -1))
            found["least"].append(run.history["min_attention"][-1])
        shape = (len(self.widths), len(self.sizes), draws)
        arrays = {name: np.stack(values) for name, values in found.items()}
        arrays = {name: x.reshape(*shape, *x.shape[2:]) for name, x in arrays.items()}
        arrays["step"] = step.astype(int)
        arrays["rho"], arrays["d"] = np.array(self.sizes), np.array(self.widths)
        needed = theory.bias.orthogonality_needed(SAMPLES, TOKENS, math.e)
        super().__init__({"rho": 1, "d": 3}, {**arrays, "needed": np.array([needed])})


class Antipodal(Explorable):
    r"""The class means of Example 1 turned from nearly equal to orthogonal to opposite.

    Args:
        steps: of gradient descent, and of normalized descent.
        draws: how many data sets the curves average.

    Returns:
        A widget.

    Reference: bias, Figures 2 and 5.
    """

    name = "antipodal"
    angles = tuple(range(15, 181, 15))
    rules = (optim.NormalizedGD(0.025), optim.GD(0.25))  # those of the figures

    def __init__(self, steps: int = 2000, draws: int = 1) -> None:
        drawn = [
            turned(problems.orthogonal(n=SAMPLES, T=TOKENS, d=100, rho=NOISE, rng=seed), angle)
            for angle in self.angles
            for seed in range(draws)
        ]
        lead = (len(self.angles), draws)
        arrays: dict[str, Any] = {"angle": np.array(self.angles), "factor": [], "margin": []}
        arrays.update({"cosine": [], "attention": []})
        for own in (False, True):  # the query: the first token, or the optimal one
            cells = [asked(p, p.optimal) if own else p for p in drawn]
            together = in_span(cells)
            factor = np.array([theory.bias.orthogonality(p) for p in cells])
            arrays["factor"].append(factor.reshape(lead).mean(axis=1))
            goal = svm.attention_svm(together)
            arrays["margin"].append(goal.norm.reshape(lead).mean(axis=1))
            for rule in self.rules:
                run = optim.train(
                    MODEL,
                    together,
                    rule,
                    steps,
                    record=["attention", {"cosine": toward(goal.W)}],
                    every=moments(steps),
                )
                for name in ("cosine", "attention"):
                    values = run.history[name].reshape(-1, *lead).mean(axis=2).T
                    arrays[name].append(values)
                arrays["step"] = run.history["step"].astype(int)
        for name in ("factor", "margin"):
            arrays[name] = np.stack(arrays[name])  # (query, angles)
        for name in ("cosine", "attention"):
            shape = (2, len(self.rules), *arrays[name][0].shape)
            arrays[name] = np.stack(arrays[name]).reshape(shape)  # (query, rules, angles, steps)
        super().__init__({"angle": 135, "query": "first"}, arrays)


def toward(goal: Array) -> Any:
    """What a run records: the cosine of its W with ``goal``."""
    return lambda params, _: svm.correlation(params["W"], goal)


def in_span(cells: list[problems.TokenProblem]) -> problems.TokenProblem:
    """Problems side by side, with coordinates in the span of their tokens and largest norm 1.

    Scores stay, and so do angles of W along normalized descent with steps in units of 1/B^2.
    """
    parts = []
    for p in cells:
        size = np.linalg.norm(p.X, axis=-1).max()
        flat, v = p.X.reshape(-1, p.d) / size, p.v * size
        basis = np.linalg.qr(flat.T)[0] if p.d > len(flat) else np.eye(p.d)
        X = (flat @ basis).reshape(p.n, p.T, -1)
        parts.append((X, p.z @ basis / size, p.y, v @ basis))
    X, z, y, v = (np.stack(part) for part in zip(*parts, strict=True))
    return problems.TokenProblem(X, z, y, v)


def moments(steps: int) -> list[int]:
    """Some fifty steps to record, close together at first."""
    return sorted({round(t) for t in np.geomspace(1, steps, 50)})


def asked(problem: problems.TokenProblem, where: IntArray) -> problems.TokenProblem:
    """The same samples with another of their tokens as query."""
    z = problem.X[np.arange(problem.n), where]
    return problems.TokenProblem(problem.X, z, problem.y, problem.v)


def turned(problem: problems.TokenProblem, degrees: float) -> problems.TokenProblem:
    """Example 1 with the second class mean at an angle to the first; scores stay 1 and 0."""
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    X, v = problem.X.copy(), np.zeros(problem.d)
    X[np.asarray(problem.relevant) & (problem.y[:, None] < 0), :2] = c, s
    v[:2] = 1.0, -(1.0 + c) / s if degrees < 180 else 0.0
    return problems.TokenProblem(X, X[:, 0], problem.y, v)
