"""Explorables of the bias paper's last sections: joint training, bad directions, saturation."""

from __future__ import annotations

import numpy as np

from attnbook import theory
from attnbook.widgets._base import Explorable
from attnbook.widgets.bias_rates import misses
from attnlab import models, optim, problems, svm
from attnlab.checks import Array

FIXED = models.Attention(loss="exponential", start="zero")
START = ((0.1, 0.3), (-0.2, 0.4))  # of the runs at saturation


def figure_3(rng: int = 0) -> problems.TokenProblem:
    """One draw of model DM in the sizes of Figure 3."""
    return problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, rng=rng)


def span_of(problem: problems.TokenProblem) -> dict[str, Array]:
    r"""Joint training on two tokens a sample, in coordinates of the tokens' own span.

    From zero the head is a combination of tokens, and $W$ one of the features
    $F_i=(x_{i\,\mathrm{opt}_i}-x_{i\tau})z_i^\top$. Their Gram matrices ``K`` and ``G``, the
    labels, and the products with both unit max-margin solutions are all that descent sees.
    """
    marked = np.asarray(problem.relevant)
    order = np.argsort(~marked, axis=-1, kind="stable")  # the deciding token first
    X = np.take_along_axis(problem.X, order[..., None], axis=-2)
    tokens = X.reshape(-1, problem.d)
    F = (X[:, 0] - X[:, 1])[:, :, None] * problem.z[:, None, :]
    flat = F.reshape(problem.n, -1)
    goal = svm.attention_svm(problem, tokens=marked.argmax(axis=-1))
    head = svm.decoder_svm(x=X[:, 0], y=problem.y)
    return {
        "K": tokens @ tokens.T,
        "G": flat @ flat.T,
        "y": problem.y,
        "head": tokens @ (head.W.ravel() / head.norm),
        "goal": flat @ (goal.W.ravel() / goal.norm),
    }


class JointTraining(Explorable):
    r"""Head and attention trained together: equation 10 and its powers against constant steps.

    Args:
        rng: seed of the data.

    Returns:
        A widget; training runs in the browser, on the tokens' Gram matrices.

    Reference: bias, equation 10, Theorem 8, Lemma 10, Figure 3.
    """

    name = "joint_training"

    def __init__(self, rng: int = 0) -> None:
        rate = theory.bias.omega_1(3.0, 0.1, n=10, d=100)
        super().__init__({}, span_of(figure_3(rng)) | {"rate": np.array([rate])})


class BadBasin(Explorable):
    r"""Where normalized descent ends, by direction and length of the start, on Figure 8's data.

    Returns:
        A widget; the map and the path are computed in the browser.

    Reference: bias, Appendix C.1 and Figure 8, Theorem 1, Lemma 2, Remark 2.
    """

    name = "bad_basin"

    def __init__(self) -> None:
        super().__init__()


class NaiveExact(Explorable):
    r"""The textbook gradient at saturation, beside the one formed without cancellation.

    Args:
        steps: how many.

    Returns:
        A widget.

    Reference: bias, equation 2; svm, Appendix F.
    """

    name = "naive_exact"

    def __init__(self, steps: int = 5000) -> None:
        found: list[Array] = []
        times = np.zeros(0)
        for problem in (problems.two_token(), board()):
            goal = svm.attention_svm(problem)
            for rule in recipes():
                run = optim.train(
                    FIXED,
                    problem,
                    rule,
                    steps,
                    params={"W": np.array(START)},
                    record=["norm", {"miss": misses(goal)}],
                    every="log",
                )
                times = run.history["step"]
                found.append(np.stack([run.history["miss"], run.history["norm_W"]]))
        arrays = {
            "step": times.astype(int),
            "runs": np.stack(found),  # (problems and rules, [miss, norm], times)
        }
        super().__init__({"k": int((times < 200).sum())}, arrays)


def recipes() -> list[optim.Rule]:
    """The exact gradient, the textbook one, and the textbook one with epsilon in the norm."""
    return [
        optim.NormalizedGD(0.1),
        optim.NormalizedGD(0.1, recipe="paper", eps=0.0),
        optim.NormalizedGD(0.1, recipe="paper"),
    ]


def board() -> problems.TokenProblem:
    """Two sequences of three tokens in the plane, those of chapter 4's first board."""
    X = np.array([[[-1.0, 0.4], [1.4, 1.5], [1.0, 0.3]], [[-1.0, 0.6], [-0.4, -1.4], [-0.3, -0.5]]])
    z = np.array([[-0.4, 1.1], [0.9, -0.1]])
    return problems.TokenProblem(X, z, np.ones(2), np.array([0.1, 1.0]))
