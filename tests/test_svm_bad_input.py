"""Bad input to the room svm gets a ValueError that names the argument, what was expected and what
came."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnlab import models, optim, problems, svm

Row = tuple[Callable[[], Any], str, str, str]

P = problems.sphere(n=2, T=3, d=4, trials=5, rng=0)
ONE = P.trial(0)
MASK = np.ones((5, 2, 3), bool)
MASK[:, 1, 2] = False
MASKED = problems.TokenProblem(P.X, P.z, P.y, P.v, mask=MASK)
SEQUENCES = problems.SequenceProblem(P.X, P.y)
W = np.zeros((5, 4, 4))
PAIR = np.tile([True, True, False], (5, 2, 1))
S = np.tile([0.5, 0.5, 0.0], (5, 2, 1))
GEN = svm.general_svm(P, selected=PAIR)
FIN = svm.finite_component(P, S, selected=PAIR)
RUN = optim.train(models.Attention(), P, optim.NormalizedGD(0.1), 1, rng=0)
OTHER = optim.train(models.MultiHead(heads=2), SEQUENCES, optim.GD(0.1), 1, rng=0)


def tokens(value: int, at: tuple[int, int] = (0, 0)) -> np.ndarray:
    found = np.zeros((5, 2), int)
    found[at] = value
    return found


def pair(value: Any, at: Any) -> np.ndarray:
    found = PAIR.copy()
    found[at] = value
    return found


def probabilities(value: Any, at: Any = (0, 0)) -> np.ndarray:
    found = S.copy()
    found[at] = value
    return found


def rows_of_tokens(call: Callable[..., Any], name: str) -> dict[str, Row]:
    """What every function that takes a selection refuses."""
    return {
        f"{name}, tokens of {what}": (lambda given=given: call(P, given), "tokens", expected, came)
        for what, given, expected, came in (
            ("a number too high", tokens(3), "tokens from 0 to 2", "3"),
            ("a number too low", tokens(-1), "tokens from 0 to 2", "-1"),
            ("fractions", tokens(0) * 0.5, "whole numbers", "dtype float64"),
            ("booleans", tokens(0) > 0, "whole numbers", "dtype bool"),
            ("text", np.full((5, 2), "a"), "whole numbers", "dtype <U1"),
            ("another n", np.zeros((5, 3), int), r"shape \(5, 2\)", r"shape \(5, 3\)"),
            ("one trial", np.zeros(2, int), r"shape \(5, 2\)", r"shape \(2,\)"),
            ("a mask", np.zeros((5, 2, 3), int), r"shape \(5, 2\)", r"shape \(5, 2, 3\)"),
        )
    }


ROWS: dict[str, Row] = {
    **rows_of_tokens(lambda p, t: svm.attention_svm(p, tokens=t), "attention_svm"),
    **rows_of_tokens(lambda p, t: svm.attention_svm(p, tokens=t, norm="nuc"), "nuclear"),
    **rows_of_tokens(lambda p, t: svm.attention_svm(p, tokens=t, method="cvxpy"), "cvxpy"),
    **rows_of_tokens(lambda p, t: svm.locally_optimal(p, tokens=t), "locally_optimal"),
    **rows_of_tokens(lambda p, t: svm.feasibility(p, tokens=t), "feasibility"),
    **rows_of_tokens(lambda p, t: svm.rank_limited_svm(p, 2, tokens=t), "rank_limited_svm"),
    # --- attention_svm
    "a masked token": (
        lambda: svm.attention_svm(MASKED, tokens=tokens(2, (3, 1))),
        "tokens",
        "tokens that the mask allows",
        "a masked token",
    ),
    **{
        f"a masked token, {name}": (call, "tokens", "tokens that the mask allows", "a masked token")
        for name, call in {
            "token_margins": lambda: theory.svm.token_margins(MASKED, W, tokens(2, (3, 1))),
            "features": lambda: theory.svm.features(MASKED, tokens(2, (3, 1))),
            "score_gaps": lambda: theory.svm.score_gaps(MASKED, tokens(2, (3, 1))),
            "selection": lambda: problems.selection(MASKED, tokens(2, (3, 1))),
        }.items()
    },
    "unknown norm": (
        lambda: svm.attention_svm(P, norm="frob"),
        "norm",
        "'fro', 'nuc'",
        r"'frob'; did you mean 'fro'\?",
    ),
    "norm far from any": (lambda: svm.attention_svm(P, norm="2"), "norm", "'fro', 'nuc'", "'2'$"),
    "norm None": (lambda: svm.attention_svm(P, norm=None), "norm", "'fro', 'nuc'", "None"),
    "unknown method": (
        lambda: svm.attention_svm(P, method="pivoting"),
        "method",
        "'auto', 'pivot', 'nnls', 'interior', 'cvxpy'",
        r"'pivoting'; did you mean 'pivot'\?",
    ),
    "interior for Frobenius": (
        lambda: svm.attention_svm(P, method="interior"),
        "method",
        "'auto', 'pivot', 'nnls' or 'cvxpy' for norm 'fro'",
        "interior",
    ),
    "pivot for nuclear": (
        lambda: svm.attention_svm(P, norm="nuc", method="pivot"),
        "method",
        "'interior'.* for norm 'nuc'",
        "pivot",
    ),
    "nnls for nuclear": (
        lambda: svm.attention_svm(P, norm="nuc", method="nnls"),
        "method",
        "'interior'.* for norm 'nuc'",
        "nnls",
    ),
    "cvxpy is offered for nuclear as well": (
        lambda: svm.attention_svm(P, norm="nuc", method="nnls"),
        "method",
        "'cvxpy'.* for norm 'nuc'",
        "nnls",
    ),
    "sequences": (
        lambda: svm.attention_svm(SEQUENCES),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "an array": (lambda: svm.attention_svm(P.X), "problem", "a TokenProblem", "ndarray"),
    # --- general_svm and finite_component
    "a sample that selects nothing": (
        lambda: svm.general_svm(P, selected=pair(False, (2, 1))),
        "selected",
        "a token in every sample",
        "a sample that selects none",
    ),
    "a trial that selects everything": (
        lambda: svm.general_svm(P, selected=pair(True, 2)),
        "selected",
        "a token left out somewhere in every trial",
        "a trial that selects all",
    ),
    "a trial that selects all it may": (
        lambda: svm.general_svm(MASKED, selected=MASK),
        "selected",
        "a token left out somewhere in every trial",
        "a trial that selects all",
    ),
    "selected hidden": (
        lambda: svm.general_svm(MASKED, selected=pair(True, (0, 1, 2))),
        "selected",
        "tokens that the mask allows",
        "a masked token",
    ),
    "selected as numbers": (
        lambda: svm.general_svm(P, selected=PAIR * 1),
        "selected",
        "a boolean mask",
        "dtype int64",
    ),
    "selected of another shape": (
        lambda: svm.general_svm(P, selected=PAIR[0]),
        "selected",
        r"shape \(5, 2, 3\) \(one entry a token\)",
        r"shape \(2, 3\)",
    ),
    "selected None": (
        lambda: svm.general_svm(P, selected=None),
        "selected",
        "a boolean mask",
        "dtype object",
    ),
    "general_svm of sequences": (
        lambda: svm.general_svm(SEQUENCES, selected=PAIR),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "finite_component of sequences": (
        lambda: svm.finite_component(SEQUENCES, S, selected=PAIR),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "finite_component, a sample that selects nothing": (
        lambda: svm.finite_component(P, S, selected=pair(False, (2, 1))),
        "selected",
        "a token in every sample",
        "a sample that selects none",
    ),
    "attention that sums to 2": (
        lambda: svm.finite_component(P, 2.0 * S, selected=PAIR),
        "attention",
        "nonnegative rows that sum to 1",
        "a sum of 2",
    ),
    "attention that sums to .9 in one row": (
        lambda: svm.finite_component(P, probabilities([0.5, 0.4, 0.0]), selected=PAIR),
        "attention",
        "nonnegative rows that sum to 1",
        "a sum of 0.9",
    ),
    "negative attention": (
        lambda: svm.finite_component(P, probabilities([1.2, -0.2, 0.0]), selected=PAIR),
        "attention",
        "nonnegative rows that sum to 1",
        "least -0.2",
    ),
    "attention 0 where selected": (
        lambda: svm.finite_component(P, probabilities([1.0, 0.0, 0.0]), selected=PAIR),
        "attention",
        "positive numbers on the selected tokens",
        "a zero there",
    ),
    "attention NaN": (
        lambda: svm.finite_component(P, probabilities(np.nan), selected=PAIR),
        "attention",
        "finite numbers",
        "3 NaN or infinite",
    ),
    "attention of another shape": (
        lambda: svm.finite_component(P, S[0], selected=PAIR),
        "attention",
        r"shape \(5, 2, 3\)",
        r"shape \(2, 3\)",
    ),
    # --- svm_equivalent and correlation
    "W of another shape": (
        lambda: svm.svm_equivalent(np.ones((5, 3, 3)), FIN, GEN),
        "finite",
        r"shape \(5, 3, 3\)",
        r"shape \(5, 4, 4\)",
    ),
    "W infinite": (
        lambda: svm.svm_equivalent(np.full((5, 4, 4), np.inf), FIN, GEN),
        "W",
        "finite numbers",
        "80 NaN or infinite",
    ),
    "general of another problem": (
        lambda: svm.svm_equivalent(np.ones((4, 4)), np.ones((4, 4)), GEN),
        "general",
        r"directions of shape \(4, 4\)",
        r"shape \(5, 4, 4\)",
    ),
    "general an array": (
        lambda: svm.svm_equivalent(np.ones((5, 4, 4)), FIN, GEN.W),
        "general",
        "a Margin",
        "ndarray",
    ),
    "correlation of vectors": (
        lambda: svm.correlation(np.ones(4), np.ones((4, 4))),
        "A",
        "a matrix",
        r"shape \(4,\)",
    ),
    "correlation of different matrices": (
        lambda: svm.correlation(np.ones((4, 4)), np.ones((3, 3))),
        "B",
        r"matrices of shape \(4, 4\)",
        r"shape \(3, 3\)",
    ),
    "correlation of different trials": (
        lambda: svm.correlation(np.ones((5, 4, 4)), np.ones((3, 4, 4))),
        "B",
        r"leading axes that fit \(5,\)",
        r"\(3, 4, 4\)",
    ),
    # --- decoder_svm
    "labels 0 and 1": (
        lambda: svm.decoder_svm(x=np.eye(2), y=[0.0, 1.0]),
        "y",
        r"labels \+1 or -1",
        r"\[0.0, 1.0\]",
    ),
    "labels of another n": (
        lambda: svm.decoder_svm(x=np.eye(2), y=[1.0]),
        "y",
        r"shape \(2,\)",
        r"shape \(1,\)",
    ),
    "labels NaN": (
        lambda: svm.decoder_svm(x=np.eye(2), y=[np.nan, 1.0]),
        "y",
        "finite numbers",
        "1 NaN or infinite",
    ),
    "x a vector": (
        lambda: svm.decoder_svm(x=[1.0, 2.0], y=[1.0]),
        "x",
        "at least 2 axes",
        r"shape \(2,\)",
    ),
    "x infinite": (
        lambda: svm.decoder_svm(x=[[np.inf]], y=[1.0]),
        "x",
        "finite numbers",
        "1 NaN or infinite",
    ),
    # --- margins, ranks, assumptions, classify
    "fewer factors than the rank": (
        lambda: svm.attention_svm(P).factors(1),
        "m",
        "at least the rank, 2",
        "1",
    ),
    "no factors": (lambda: svm.attention_svm(P).factors(0), "m", "at least 1", "0"),
    "factors of a half": (lambda: svm.attention_svm(P).factors(2.5), "m", "whole number", "2.5"),
    "factors of a decoder": (
        lambda: svm.decoder_svm(x=np.eye(2), y=[1.0, 1.0]).factors(),
        "factors",
        "a matrix W",
        r"shape \(2,\)",
    ),
    "rank 0": (lambda: svm.rank_limited_svm(P, 0), "m", "at least 1", "0"),
    "rank True": (lambda: svm.rank_limited_svm(P, True), "m", "whole number", "True"),
    "no rounds": (lambda: svm.rank_limited_svm(P, 1, rounds=0), "rounds", "at least 1", "0"),
    "locally_optimal of sequences": (
        lambda: svm.locally_optimal(SEQUENCES),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "assumption_b2 of sequences": (
        lambda: svm.assumption_b2(SEQUENCES),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "assumption_d of sequences": (
        lambda: svm.assumption_d(SEQUENCES),
        "problem",
        "a TokenProblem",
        "SequenceProblem",
    ),
    "assumption_c, unknown loss": (
        lambda: svm.assumption_c(P, "logistik"),
        "loss",
        "'logistic'",
        r"did you mean 'logistic'\?",
    ),
    "assumption_d too large": (
        lambda: svm.assumption_d(problems.sphere(n=12, T=3, d=4, rng=0)),
        "problem",
        "at most 100000 selections",
        r"531441",
    ),
    "assumption_d too many trials": (
        lambda: svm.assumption_d(problems.sphere(n=8, T=3, d=4, trials=20, rng=0)),
        "problem",
        "at most 100000 selections",
        r"131220",
    ),
    "assumption_d with a mask": (lambda: svm.assumption_d(MASKED), "problem", "mask", "n=2"),
    "feasibility of any": (
        lambda: svm.feasibility(P, tokens="al"),
        "tokens",
        "'all'",
        r"'al'; did you mean 'all'\?",
    ),
    "feasibility of all, too large": (
        lambda: svm.feasibility(problems.sphere(n=12, T=3, d=4, rng=0), tokens="all"),
        "problem",
        "at most 100000 selections",
        r"531441",
    ),
    "classify, unknown norm": (
        lambda: svm.classify(RUN, P, norm="nuclear"),
        "norm",
        "'auto', 'fro', 'nuc'",
        r"'nuclear'; did you mean 'nuc'\?",
    ),
    "classify, threshold of 1": (
        lambda: svm.classify(RUN, P, threshold=1.0),
        "threshold",
        "above -1 and below 1",
        "1.0",
    ),
    "classify, threshold NaN": (
        lambda: svm.classify(RUN, P, threshold=np.nan),
        "threshold",
        "finite number",
        "nan",
    ),
    "classify, another model": (lambda: svm.classify(OTHER), "run", "a run of Attention", "Run"),
    "classify, no run": (lambda: svm.classify(P), "run", "a run of Attention", "TokenProblem"),
    "classify, share of another kind": (
        lambda: svm.classify(RUN).share("locall"),
        "kind",
        "'global', 'local', 'none'",
        r"did you mean 'local'\?",
    ),
}


@pytest.mark.parametrize(
    ("call", "argument", "expected", "given"), ROWS.values(), ids=list(ROWS.keys())
)
def test_is_refused(call: Callable[[], Any], argument: str, expected: str, given: str) -> None:
    pattern = rf"^{re.escape(argument)}: expected .*{expected}.*, got .*{given}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=pattern) as caught:
            call()
    assert len(str(caught.value)) < 400
    assert not isinstance(caught.value, svm.InfeasibleMargin)


def test_what_is_accepted_though_unusual() -> None:
    """Lists, other integer types, and a problem that is a single instance."""
    zeros = svm.attention_svm(P, tokens=np.zeros((5, 2), int)).W
    for same in (np.zeros((5, 2), np.uint8), [[0, 0]] * 5, np.zeros((5, 2), np.int32)):
        np.testing.assert_array_equal(svm.attention_svm(P, tokens=same).W, zeros)
    np.testing.assert_allclose(svm.attention_svm(ONE, tokens=[0, 0]).W, zeros[0], atol=1e-10)
    assert svm.general_svm(ONE, selected=PAIR[0].tolist()).status == "optimal"
    assert svm.finite_component(P, S, selected=np.ones_like(PAIR) & PAIR).shape == (5, 4, 4)
    exact = np.nextafter(S, 1.0)  # rounding of a softmax is no offence
    assert np.isfinite(svm.finite_component(P, exact, selected=PAIR)).all()


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((2, 3)), r"features: expected shape \(B, m, D\), got shape \(2, 3\)"),
        (np.full((1, 2, 3), np.nan), "features: expected finite numbers"),
    ],
)
def test_plain_vectors(features: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        svm.least_norm(features)
