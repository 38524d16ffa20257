"""Bad input to problems and models gets a ValueError that names the argument, what was expected
and what came."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnlab import curvature, models, ntk, optim, problems, svm

Row = tuple[Callable[[], Any], str, str, str]


def refuses(rows: dict[str, Row]) -> Any:
    """A test for each row: the call, the argument named, what was expected, what came."""
    return pytest.mark.parametrize(
        ("call", "argument", "expected", "given"), rows.values(), ids=rows.keys()
    )


def assert_refused(call: Callable[[], Any], argument: str, expected: str, given: str) -> None:
    pattern = rf"^{re.escape(argument)}: expected .*{expected}.*, got .*{given}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=pattern) as caught:
            call()
    assert len(str(caught.value)) < 400


# --- records -----------------------------------------------------------------------------------

X, Z, Y, V = np.ones((3, 4, 2)), np.ones((3, 2)), np.ones(3), np.ones(2)
NAN, INF = np.full((3, 4, 2), np.nan), np.where(np.arange(2) == 1, np.inf, X)


def token(**changed: Any) -> problems.TokenProblem:
    return problems.TokenProblem(**{"X": X, "z": Z, "y": Y, "v": V, **changed})


def sequences(**changed: Any) -> problems.SequenceProblem:
    return problems.SequenceProblem(**{"X": X, "y": Y, **changed})


def nothing_selected() -> Any:
    mask = np.ones((3, 4), bool)
    mask[1] = False
    return mask


RECORDS: dict[str, Row] = {
    "X with two axes": (lambda: token(X=X[0]), "X", "at least 3 axes", r"shape \(4, 2\)"),
    "X a number": (lambda: token(X=1.0), "X", "at least 3 axes", r"shape \(\)"),
    "T = 1": (lambda: token(X=X[:, :1]), "X", "T >= 2", r"T = 1 in shape \(3, 1, 2\)"),
    "n = 0": (
        lambda: token(X=X[:0], z=Z[:0], y=Y[:0]),
        "X",
        "at least one sample",
        r"shape \(0, 4, 2\)",
    ),
    "d = 0": (
        lambda: token(X=X[..., :0], z=Z[:, :0], v=V[:0]),
        "X",
        "one feature",
        r"shape \(3, 4, 0\)",
    ),
    "X NaN": (lambda: token(X=NAN), "X", "finite", "24 NaN or infinite"),
    "X infinite": (lambda: token(X=INF), "X", "finite", "12 NaN or infinite"),
    "X None": (lambda: token(X=None), "X", "real numbers", "dtype object"),
    "X text": (lambda: token(X="tokens"), "X", "real numbers", "dtype <U6"),
    "X complex": (lambda: token(X=X + 1j), "X", "real numbers", "dtype complex128"),
    "X ragged": (lambda: token(X=[[[1.0, 2.0], [1.0]]]), "X", "an array of real numbers", "list"),
    "z of another n": (lambda: token(z=Z[:2]), "z", r"shape \(3, 2\)", r"shape \(2, 2\)"),
    "z of another d": (lambda: token(z=np.ones((3, 5))), "z", r"\(3, 2\)", r"shape \(3, 5\)"),
    "z NaN": (lambda: token(z=Z * np.nan), "z", "finite", "6 NaN or infinite"),
    "y of another n": (lambda: token(y=np.ones(5)), "y", r"shape \(3,\)", r"shape \(5,\)"),
    "y a column": (lambda: token(y=Y[:, None]), "y", r"shape \(3,\)", r"shape \(3, 1\)"),
    "y NaN": (lambda: token(y=Y * np.nan), "y", "finite", "3 NaN or infinite"),
    "y infinite": (lambda: token(y=[np.inf, 1, 1]), "y", "finite", "1 NaN or infinite"),
    "v of another d": (lambda: token(v=np.ones(3)), "v", r"shape \(2,\)", r"shape \(3,\)"),
    "v with trials X lacks": (lambda: token(v=np.ones((5, 2))), "v", r"\(2,\)", r"\(5, 2\)"),
    "v infinite": (lambda: token(v=[np.inf, 0.0]), "v", "finite", "1 NaN or infinite"),
    "v without the trials": (
        lambda: token(X=X[None], z=Z[None], y=Y[None]),
        "v",
        r"shape \(1, 2\) \(to fit X of shape \(1, 3, 4, 2\)\)",
        r"shape \(2,\)",
    ),
    "mask of numbers": (lambda: token(mask=np.ones((3, 4))), "mask", "booleans", "dtype float64"),
    "mask of another T": (
        lambda: token(mask=np.ones((3, 5), bool)),
        "mask",
        r"shape \(3, 4\)",
        r"shape \(3, 5\)",
    ),
    "mask that selects nothing": (
        lambda: token(mask=nothing_selected()),
        "mask",
        "at least one True in every row",
        "a row that selects nothing",
    ),
    "relevant that selects nothing": (
        lambda: token(relevant=nothing_selected()),
        "relevant",
        "at least one True in every row",
        "a row that selects nothing",
    ),
    "sequence_index too short": (
        lambda: token(sequence_index=[0, 1]),
        "sequence_index",
        r"shape \(3,\)",
        r"shape \(2,\)",
    ),
    "sequence_index of fractions": (
        lambda: token(sequence_index=[0.5, 1.0, 2.0]),
        "sequence_index",
        "whole numbers",
        "dtype float64",
    ),
    "sequences with two axes": (lambda: sequences(X=X[0]), "X", "at least 3 axes", r"\(4, 2\)"),
    "sequences n = 0": (
        lambda: sequences(X=X[:0], y=Y[:0]),
        "X",
        "at least one sample, token and feature",
        r"shape \(0, 4, 2\)",
    ),
    "sequences T = 0": (lambda: sequences(X=X[:, :0]), "X", "at least one", r"\(3, 0, 2\)"),
    "sequences NaN": (lambda: sequences(X=NAN), "X", "finite", "24 NaN or infinite"),
    "sequences of another n": (lambda: sequences(y=Y[:2]), "y", r"shape \(3,\)", r"shape \(2,\)"),
    "sequences y NaN": (lambda: sequences(y=Y * np.nan), "y", "finite", "3 NaN"),
    "sequences relevant of numbers": (
        lambda: sequences(relevant=np.ones((3, 4), int)),
        "relevant",
        "booleans",
        "dtype int64",
    ),
    "fresh on a problem made by hand": (
        lambda: token().fresh(5, rng=0),
        "fresh",
        "drawn from a source",
        "made by hand",
    ),
    "fresh on a worked example": (
        lambda: problems.two_token().fresh(5, rng=0),
        "fresh",
        "drawn from a source",
        "made by hand",
    ),
    "fresh with n = 0": (
        lambda: problems.planted(n=2, rng=0).fresh(0, rng=0),
        "n",
        "at least 1",
        "0",
    ),
    "fresh without rng": (
        lambda: problems.planted(n=2, rng=0).fresh(3, rng=None),  # type: ignore[arg-type]
        "rng",
        "non-negative int",
        "None",
    ),
    "trial of a single instance": (
        lambda: token().trial(0),
        "trial",
        "a problem with leading axes",
        r"TokenProblem\(n=3, T=4, d=2\)",
    ),
}


@refuses(RECORDS)
def test_records(call: Callable[[], Any], argument: str, expected: str, given: str) -> None:
    assert_refused(call, argument, expected, given)


# --- constructors ------------------------------------------------------------------------------

CONSTRUCTORS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "sphere": (problems.sphere, {"n": 3, "T": 3, "d": 4}),
    "sequence": (problems.sequence, {"n": 2, "T": 3, "d": 4}),
    "causal": (problems.causal, {"n": 2, "T": 3, "d": 4}),
    "orthogonal": (problems.orthogonal, {"n": 3, "T": 3, "d": 4, "rho": 0.1}),
    "gaussian": (problems.gaussian, {"n": 3, "T": 3, "d": 4, "rho": 0.1, "alpha": 2.0}),
    "tokenized_mixture": (problems.tokenized_mixture, {"n": 3}),
    "planted": (problems.planted, {"n": 3}),
    "gaussian_regression": (problems.gaussian_regression, {"n": 3, "T": 3, "d": 4}),
}
BAD_RNG = {"None": None, "a float": 0.0, "negative": -1, "a bool": True, "text": "0", "a list": [1]}
BAD_COUNT = {"zero": 0, "negative": -2, "a float": 2.0, "a bool": True, "None": None, "text": "3"}
WHOLE = "a whole number of at least"


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.parametrize("rng", BAD_RNG.values(), ids=BAD_RNG.keys())
def test_rng_must_be_a_seed_or_a_generator(name: str, rng: Any) -> None:
    make, settings = CONSTRUCTORS[name]
    expected = "a non-negative int or a numpy.random.Generator"
    assert_refused(lambda: make(**settings, rng=rng), "rng", expected, re.escape(repr(rng)))


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_rng_has_no_default_and_no_position(name: str) -> None:
    make, settings = CONSTRUCTORS[name]
    with pytest.raises(TypeError, match="rng"):
        make(**settings)
    with pytest.raises(TypeError, match="positional"):
        make(3, rng=0)


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.parametrize("argument", ["n", "T", "d"])
@pytest.mark.parametrize("value", BAD_COUNT.values(), ids=BAD_COUNT.keys())
def test_sizes_are_whole_numbers(name: str, argument: str, value: Any) -> None:
    make, settings = CONSTRUCTORS[name]
    bad = {**settings, argument: value}
    assert_refused(lambda: make(**bad, rng=0), argument, WHOLE, re.escape(repr(value)))


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.parametrize(
    ("trials", "given"),
    [
        (0, "0"),
        (-1, "-1"),
        (2.0, "2.0"),
        (True, "True"),
        ("2", "'2'"),
        ((2, 0), "0"),
        ([None], "N"),
    ],
)
def test_trials_are_whole_numbers(name: str, trials: Any, given: str) -> None:
    make, settings = CONSTRUCTORS[name]
    assert_refused(lambda: make(**settings, trials=trials, rng=0), "trials", WHOLE, given)


ONE_TOKEN = ["sphere", "sequence", "causal", "orthogonal", "gaussian", "tokenized_mixture"]


@pytest.mark.parametrize("name", ONE_TOKEN)
def test_a_choice_needs_two_tokens(name: str) -> None:
    make, settings = CONSTRUCTORS[name]
    assert_refused(lambda: make(**{**settings, "T": 1}, rng=0), "T", f"{WHOLE} 2", "1")


NUMBERS: dict[str, tuple[str, str, list[Any], str]] = {
    "sphere min_gap": ("sphere", "min_gap", [-0.1, 2.0, np.nan, np.inf, "0.1"], "finite number"),
    "sequence min_gap": ("sequence", "min_gap", [-0.1, 2.0, np.nan], "finite number"),
    "causal min_gap": ("causal", "min_gap", [-0.1, 2.0, np.nan], "finite number"),
    "orthogonal U": ("orthogonal", "U", [0.0, -1.0, np.nan, np.inf, None], "above 0"),
    "orthogonal rho": ("orthogonal", "rho", [-0.1, np.nan, np.inf, True], "at least 0"),
    "orthogonal sigma": ("orthogonal", "sigma", [-0.1, np.nan, "x"], "at least 0"),
    "gaussian rho": ("gaussian", "rho", [0.0, -0.1, np.nan], "above 0"),
    "gaussian alpha": ("gaussian", "alpha", [1.0, 0.5, np.nan, np.inf], "above 1"),
    "mixture S": ("tokenized_mixture", "S", [0.0, -2.0, np.nan], "above 0"),
    "mixture sigma": ("tokenized_mixture", "sigma", [-0.1, np.nan], "at least 0"),
    "mixture zeta": ("tokenized_mixture", "zeta", [0.0, 1.0, -0.1, np.nan], "above 0 and below 1"),
    "mixture M": ("tokenized_mixture", "M", [0, 1.5, True], WHOLE),
    "planted margin": ("planted", "margin", [-0.1, np.nan, np.inf], "at least 0"),
}


@pytest.mark.parametrize(
    ("name", "argument", "value", "expected"),
    [
        (name, argument, value, expected)
        for name, argument, values, expected in NUMBERS.values()
        for value in values
    ],
)
def test_numbers_out_of_bounds(name: str, argument: str, value: Any, expected: str) -> None:
    make, settings = CONSTRUCTORS[name]
    bad = {**settings, argument: value}
    assert_refused(lambda: make(**bad, rng=0), argument, expected, re.escape(repr(value)))


UNSUITABLE: dict[str, Row] = {
    "zeta * T not whole": (
        lambda: problems.tokenized_mixture(n=3, T=10, zeta=0.15, rng=0),
        "zeta",
        r"zeta \* T is whole \(T = 10\)",
        "0.15",
    ),
    "zeta * T below 1": (
        lambda: problems.tokenized_mixture(n=3, T=4, zeta=0.1, rng=0),
        "zeta",
        r"zeta \* T is whole \(T = 4\)",
        "0.1",
    ),
    "more patterns than features": (
        lambda: problems.tokenized_mixture(n=3, d=4, M=3, rng=0),
        "d",
        f"{WHOLE} 5",
        "4",
    ),
    "two means in a plane leave no room for noise": (
        lambda: problems.orthogonal(n=3, T=3, d=2, rho=0.1, rng=0),
        "d",
        f"{WHOLE} 3",
        "2",
    ),
    "antipodal means on a line": (
        lambda: problems.orthogonal(n=3, T=3, d=1, rho=0.1, antipodal=True, rng=0),
        "d",
        f"{WHOLE} 2",
        "1",
    ),
    "a gap random sequences do not reach": (
        lambda: problems.sphere(n=2, T=5, d=30, min_gap=1.5, rng=0),
        "min_gap",
        "a gap that random sequences reach",
        r"1.5, reached by a share of 0 of \d+ draws",
    ),
    "a gap no causal sequence reaches": (
        lambda: problems.causal(n=2, T=5, d=30, min_gap=1.0, rng=0),
        "min_gap",
        "a gap that random sequences reach",
        "1, reached by a share of 0",
    ),
    "a margin random samples do not reach": (
        lambda: problems.planted(n=2, T=2, d=2, margin=50.0, rng=0),
        "margin",
        "a margin that random samples reach",
        "50",
    ),
}


@refuses(UNSUITABLE)
def test_settings_no_data_can_meet(
    call: Callable[[], Any], argument: str, expected: str, given: str
) -> None:
    assert_refused(call, argument, expected, given)


# --- hyper-parameters of models ----------------------------------------------------------------

HYPER: dict[str, Row] = {
    "loss misspelt": (
        lambda: models.Attention(loss="logistik"),
        "loss",
        "one of 'logistic', 'exponential', 'correlation'",
        "'logistik'; did you mean 'logistic'",
    ),
    "loss abbreviated": (
        lambda: models.MultiHead(2, loss="exponentail"),
        "loss",
        "one of",
        "'exponentail'; did you mean 'exponential'",
    ),
    "loss None": (lambda: models.Attention(loss=None), "loss", "one of", "None"),  # type: ignore[arg-type]
    "loss of the encoder": (
        lambda: models.Encoder(4, loss="halfmean"),
        "loss",
        "one of 'mean', 'half_mean', 'half_sum'",
        "'halfmean'; did you mean 'half_mean'",
    ),
    "start misspelt": (
        lambda: models.Attention(start="zeros"),
        "start",
        "one of 'uniform', 'zero'",
        "'zeros'; did you mean 'zero'",
    ),
    "start of another model": (
        lambda: models.MultiHead(2, start="uniform"),
        "start",
        "one of 'zero', 'gaussian'",
        "'uniform'",
    ),
    "output misspelt": (
        lambda: models.MultiHead(2, output="pool"),
        "output",
        "one of 'full', 'pooled', 'last'",
        "'pool'; did you mean 'pooled'",
    ),
    "init misspelt": (
        lambda: models.Encoder(4, init="LeCun"),
        "init",
        "one of 'lecun', 'he', 'ntk'",
        "'LeCun'; did you mean 'lecun'",
    ),
    "scaling misspelt": (
        lambda: models.Encoder(4, scaling="lin"),
        "scaling",
        "one of 'sqrt', 'linear'",
        "'lin'",
    ),
    "scaling zero": (lambda: models.Encoder(4, scaling=0.0), "scaling", "above 0", "0.0"),
    "scaling NaN": (lambda: models.Encoder(4, scaling=np.nan), "scaling", "finite", "nan"),
    "scaling None": (lambda: models.Encoder(4, scaling=None), "scaling", "finite", "None"),  # type: ignore[arg-type]
    "pooling misspelt": (
        lambda: models.Encoder(4, pooling="average"),
        "pooling",
        "one of 'mean', 'sum'",
        "'average'",
    ),
    "width 0": (lambda: models.Encoder(0), "width", WHOLE, "0"),
    "width a float": (lambda: models.Encoder(4.0), "width", WHOLE, "4.0"),  # type: ignore[arg-type]
    "heads 0": (lambda: models.MultiHead(0), "heads", WHOLE, "0"),
    "heads a bool": (lambda: models.MultiHead(True), "heads", WHOLE, "True"),
    "factors 0": (lambda: models.Attention(factors=0), "factors", WHOLE, "0"),
    "factors a float": (
        lambda: models.Attention(factors=2.5),  # type: ignore[arg-type]
        "factors",
        WHOLE,
        "2.5",
    ),
    "scale 0": (
        lambda: models.MultiHead(2, start="gaussian", scale=0.0),
        "scale",
        "above 0",
        "0.0",
    ),
    "head by name": (
        lambda: models.Attention(head="relu"),  # type: ignore[arg-type]
        "head",
        r"LinearHead\(\), ReLUHead\(V\) or ConcaveHead\(penalty\)",
        "relu",
    ),
    "head a class": (
        lambda: models.Attention(head=models.ReLUHead),  # type: ignore[arg-type]
        "head",
        r"LinearHead\(\), ReLUHead\(V\) or ConcaveHead\(penalty\)",
        "ReLUHead",
    ),
    "head a matrix": (
        lambda: models.Attention(head=np.eye(3)),  # type: ignore[arg-type]
        "head",
        "LinearHead",
        "array",
    ),
    "train a head that is not linear": (
        lambda: models.Attention(head=models.ConcaveHead(0.3), train_head=True),
        "train_head",
        "a linear head to train",
        "ConcaveHead",
    ),
    "penalty negative": (lambda: models.ConcaveHead(-0.1), "penalty", "at least 0", "-0.1"),
    "penalty NaN": (lambda: models.ConcaveHead(np.nan), "penalty", "finite", "nan"),
    "hidden layer a vector": (
        lambda: models.ReLUHead(np.ones(3)),
        "V",
        r"shape \(hidden, d\)",
        r"shape \(3,\)",
    ),
    "hidden layer NaN": (lambda: models.ReLUHead(np.full((2, 2), np.nan)), "V", "finite", "4 NaN"),
}


@refuses(HYPER)
def test_hyper_parameters(
    call: Callable[[], Any], argument: str, expected: str, given: str
) -> None:
    assert_refused(call, argument, expected, given)


# --- a model and its problem -------------------------------------------------------------------

ATTENTION, JOINT, KQ = models.Attention(), models.Attention(train_head=True), models.Attention(2)
HEADS, ENCODER = models.MultiHead(2), models.Encoder(5)
TOKENS = problems.sphere(n=3, T=4, d=2, rng=0)
BATCH = problems.sphere(n=3, T=4, d=2, trials=6, rng=0)
SEQUENCES = problems.planted(n=3, T=4, d=2, margin=0.0, rng=0)
METHODS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "init": lambda model, _, p: model.init(p, rng=0),
    "forward": lambda model, params, p: model.forward(params, p),
    "attention": lambda model, params, p: model.attention(params, p),
    "value_and_grad": lambda model, params, p: model.value_and_grad(params, p),
}
every_method = pytest.mark.parametrize("method", METHODS)
with_params = pytest.mark.parametrize("method", ["forward", "attention", "value_and_grad"])


@every_method
@pytest.mark.parametrize(
    ("model", "p", "wanted"),
    [
        (ATTENTION, SEQUENCES, "TokenProblem for Attention"),
        (HEADS, TOKENS, "SequenceProblem for MultiHead"),
        (ENCODER, TOKENS, "SequenceProblem for Encoder"),
        (ATTENTION, None, "TokenProblem for Attention"),
        (HEADS, np.ones((3, 4, 2)), "SequenceProblem for MultiHead"),
    ],
    ids=["sequences", "tokens", "tokens to the encoder", "None", "an array"],
)
def test_the_wrong_kind_of_problem(method: str, model: Any, p: Any, wanted: str) -> None:
    assert_refused(
        lambda: METHODS[method](model, {}, p), "problem", f"a {wanted}", type(p).__name__
    )


@every_method
@pytest.mark.parametrize("label", [0.0, 2.0, -1.5])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "correlation"])
def test_classification_losses_want_signs(method: str, label: float, loss: str) -> None:
    tokens = problems.TokenProblem(TOKENS.X, TOKENS.z, [1.0, label, -1.0], TOKENS.v)
    rows = problems.SequenceProblem(SEQUENCES.X, [1.0, label, -1.0])
    for model, p in ((models.Attention(loss=loss), tokens), (models.MultiHead(2, loss=loss), rows)):
        for _ in range(2):  # a refusal is not remembered as a pass
            assert_refused(
                lambda model=model, p=p: METHODS[method](model, {}, p),  # type: ignore[misc]
                "y",
                rf"labels \+1 or -1 for the {loss} loss",
                f"{label:g}",
            )


def test_the_encoder_takes_real_targets() -> None:
    p = problems.SequenceProblem(SEQUENCES.X, [0.0, 2.0, -1.5])
    assert np.isfinite(ENCODER.value_and_grad(ENCODER.init(p, rng=0), p)[0])


@pytest.mark.parametrize(
    ("model", "p", "start"),
    [
        (ATTENTION, TOKENS, "uniform"),
        (models.MultiHead(2, start="gaussian"), SEQUENCES, "gaussian"),
        (ENCODER, SEQUENCES, "lecun"),
        (models.Encoder(3, init="ntk"), SEQUENCES, "ntk"),
    ],
    ids=repr,
)
def test_a_start_that_draws_needs_rng(model: Any, p: Any, start: str) -> None:
    expected = f"a seed or generator, because the start '{start}' draws"
    assert_refused(lambda: model.init(p), "rng", expected, "None")
    for rng in (1.5, -1, True, "0"):
        assert_refused(
            lambda rng=rng: model.init(p, rng=rng),  # type: ignore[misc]
            "rng",
            "a non-negative int",
            re.escape(repr(rng)),
        )


def test_a_start_at_zero_needs_none() -> None:
    zero = models.Attention(start="zero", train_head=True)
    for model, p in ((zero, BATCH), (HEADS, SEQUENCES)):
        for name, array in model.init(p).items():  # type: ignore[attr-defined]
            assert array.shape == p.trials + model.shapes(p)[name]  # type: ignore[attr-defined]
            assert (array == 0.0).all()


W = np.ones((2, 2))
PARAMS: dict[str, tuple[Any, Any, Any, str, str, str]] = {
    "no dict": (ATTENTION, TOKENS, W, "params", "a dict of arrays", "ndarray"),
    "None": (ATTENTION, TOKENS, None, "params", "a dict of arrays", "NoneType"),
    "empty": (ATTENTION, TOKENS, {}, "params", r"the keys \['W'\]", r"\[\]"),
    "K and Q for W": (
        ATTENTION,
        TOKENS,
        {"K": W, "Q": W},
        "params",
        r"the keys \['W'\]",
        r"\['K', 'Q'\]",
    ),
    "W for K and Q": (KQ, TOKENS, {"W": W}, "params", r"the keys \['K', 'Q'\]", r"\['W'\]"),
    "v missing": (JOINT, TOKENS, {"W": W}, "params", r"the keys \['W', 'v'\]", r"\['W'\]"),
    "v where no head is trained": (
        ATTENTION,
        TOKENS,
        {"W": W, "v": W[0]},
        "params",
        r"the keys \['W'\]",
        r"\['W', 'v'\]",
    ),
    "W of another d": (
        ATTENTION,
        TOKENS,
        {"W": np.ones((3, 3))},
        "params['W']",
        r"shape \(2, 2\)",
        r"shape \(3, 3\)",
    ),
    "W of other trials": (
        ATTENTION,
        BATCH,
        {"W": np.ones((5, 2, 2))},
        "params['W']",
        r"shape \(6, 2, 2\)",
        r"shape \(5, 2, 2\)",
    ),
    "W with trials the problem lacks": (
        ATTENTION,
        TOKENS,
        {"W": np.ones((5, 2, 2))},
        "params['W']",
        r"shape \(2, 2\)",
        r"shape \(5, 2, 2\)",
    ),
    "W text": (ATTENTION, TOKENS, {"W": "zero"}, "params['W']", "real numbers", "dtype <U4"),
    "W None": (ATTENTION, TOKENS, {"W": None}, "params['W']", "real numbers", "dtype object"),
    "K of other factors": (
        KQ,
        TOKENS,
        {"K": np.ones((2, 3)), "Q": np.ones((2, 3))},
        "params['K']",
        r"shape \(2, 2\)",
        r"shape \(2, 3\)",
    ),
    "U of other heads": (
        HEADS,
        SEQUENCES,
        {"U": np.ones((3, 4, 2)), "W": np.ones((2, 2, 2))},
        "params['U']",
        r"shape \(2, 4, 2\)",
        r"shape \(3, 4, 2\)",
    ),
    "W without heads": (
        HEADS,
        SEQUENCES,
        {"U": np.ones((2, 4, 2)), "W": W},
        "params['W']",
        r"shape \(2, 2, 2\)",
        r"shape \(2, 2\)",
    ),
    "encoder of another width": (
        ENCODER,
        SEQUENCES,
        models.Encoder(7).init(SEQUENCES, rng=0),
        "params['W_Q']",
        r"shape \(5, 2\)",
        r"shape \(7, 2\)",
    ),
    "encoder without w_O": (
        ENCODER,
        SEQUENCES,
        {"W_Q": np.ones((5, 2)), "W_K": np.ones((5, 2)), "W_V": np.ones((5, 2))},
        "params",
        r"the keys \['W_K', 'W_Q', 'W_V', 'w_O'\]",
        r"\['W_K', 'W_Q', 'W_V'\]",
    ),
    "an unknown extra key": (
        HEADS,
        SEQUENCES,
        {"U": np.ones((2, 4, 2)), "W": np.ones((2, 2, 2)), "b": W},
        "params",
        r"the keys \['U', 'W'\]",
        r"\['U', 'W', 'b'\]",
    ),
}


@with_params
@pytest.mark.parametrize(
    ("model", "p", "params", "argument", "expected", "given"), PARAMS.values(), ids=PARAMS.keys()
)
def test_parameters(
    method: str, model: Any, p: Any, params: Any, argument: str, expected: str, given: str
) -> None:
    assert_refused(lambda: METHODS[method](model, params, p), argument, expected, given)


@pytest.mark.parametrize("case", ["None", "K and Q for W", "W of another d", "W text"])
def test_parameters_of_the_scaled_gradient(case: str) -> None:
    model, p, params, argument, expected, given = PARAMS[case]
    assert_refused(lambda: model.scaled_grad(params, p), argument, expected, given)


@with_params
def test_parameters_may_be_nested_lists(method: str) -> None:
    # lists have no shape to compare; they are turned into arrays at the door like everything else
    found = METHODS[method](ATTENTION, {"W": [[1, 2], [3, 4]]}, TOKENS)
    same = METHODS[method](ATTENTION, {"W": np.array([[1.0, 2.0], [3.0, 4.0]])}, TOKENS)
    if method == "value_and_grad":
        found, same = found[0], same[0]
    assert np.array_equal(found, same)


def test_a_hidden_layer_for_other_tokens() -> None:
    model = models.Attention(head=models.ReLUHead(np.eye(3)))
    for call in (
        lambda: model.forward({"W": W}, TOKENS),
        lambda: model.value_and_grad({"W": W}, TOKENS),
        lambda: model.scaled_grad({"W": W}, TOKENS),
        lambda: model.scores(TOKENS),
    ):
        assert_refused(call, "V", r"shape \(hidden, 2\)", r"shape \(3, 3\)")


FLOORS: dict[str, Row] = {
    "of a head that is not linear": (
        lambda: models.Attention(head=models.ConcaveHead(0.3)).floor(TOKENS),
        "floor",
        "a linear head",
        "ConcaveHead",
    ),
    "of the correlation loss with a trained head": (
        lambda: models.Attention(loss="correlation", train_head=True).floor(TOKENS),
        "floor",
        "a loss that is bounded below",
        "correlation",
    ),
    "of the correlation loss with heads": (
        lambda: models.MultiHead(2, loss="correlation").floor(SEQUENCES),
        "floor",
        "a loss that is bounded below",
        "correlation",
    ),
}


@refuses(FLOORS)
def test_a_floor_that_is_not_known(
    call: Callable[[], Any], argument: str, expected: str, given: str
) -> None:
    assert_refused(call, argument, expected, given)


# --- found by handing twenty odd values to every argument of every public class -------------------

ONE = problems.sphere(n=3, T=4, d=5, rng=0)
ODD: dict[str, Row] = {
    "a step of 400 digits": (
        lambda: optim.GD(10**400),
        "step_size",
        "a finite number above 0",
        "1",
    ),
    "averaged in words": (
        lambda: optim.NormalizedGD(0.1, averaged="no"),  # type: ignore[arg-type]
        "averaged",
        "True or False",
        "'no'",
    ),
    "decay as a number": (
        lambda: optim.DecayedNormalizedGD(0.1, decay=1),  # type: ignore[arg-type]
        "decay",
        "True or False",
        "1",
    ),
    "train_head as None": (
        lambda: models.Attention(train_head=None),  # type: ignore[arg-type]
        "train_head",
        "True or False",
        "None",
    ),
    "fast as a word": (
        lambda: optim.train(models.Attention(), ONE, optim.GD(0.1), 1, rng=0, fast="no"),  # type: ignore[arg-type]
        "fast",
        "True or False",
        "'no'",
    ),
    "antipodal as a word": (
        lambda: problems.orthogonal(n=3, T=3, d=20, rho=0.1, antipodal="no", rng=0),  # type: ignore[arg-type]
        "antipodal",
        "True or False",
        "'no'",
    ),
    "trials as bytes": (
        lambda: problems.sphere(n=3, T=4, d=5, trials=b"1", rng=0),  # type: ignore[arg-type]
        "trials",
        "a whole number",
        "b'1'",
    ),
    "record as a number": (
        lambda: optim.train(models.Attention(), ONE, optim.GD(0.1), 1, rng=0, record=3),
        "record",
        "names, or a dict of names and functions",
        "3",
    ),
    "every as an array without axes": (
        lambda: optim.train(models.Attention(), ONE, optim.GD(0.1), 1, rng=0, every=np.array(0.5)),
        "every",
        "a whole number",
        "array",
    ),
    "cosine of words": (
        lambda: svm.correlation("exact", np.eye(2)),  # type: ignore[arg-type]
        "A",
        "a matrix of real numbers",
        "exact",
    ),
    "cosine of complex numbers": (
        lambda: svm.correlation(np.eye(2), 1j * np.eye(2)),
        "B",
        "a matrix of real numbers",
        "array",
    ),
    "kernels by group, said by an array": (
        lambda: ntk.empirical(
            models.Attention(),
            {"W": np.zeros((5, 5))},
            ONE,
            by_group=np.ones(2),  # type: ignore[call-overload]
        ),
        "by_group",
        "True or False",
        "array",
    ),
    "a seed that is not needed": (
        lambda: svm.regularization_path(models.Attention(), ONE, [1.0], rng="x"),  # type: ignore[arg-type]
        "rng",
        "a non-negative int",
        "'x'",
    ),
    "parameters that are not needed": (
        lambda: curvature.smoothness(models.Attention(), ONE, "x"),  # type: ignore[arg-type]
        "params",
        "a dict of arrays",
        "str",
    ),
}


@refuses(ODD)
def test_odd_values(call: Callable[[], Any], argument: str, expected: str, given: str) -> None:
    assert_refused(call, argument, expected, given)


@pytest.mark.parametrize("kind", [np.int8, np.float32, np.float64])
def test_small_numbers_of_numpy_are_numbers(kind: Any) -> None:
    """The logarithm of an int8 has three digits: settings are kept as Python's own numbers."""
    p = problems.sphere(n=3, T=4, d=5, rng=0)
    for make in (
        lambda t: optim.PolyakStep(max_step=t(100), floor=t(-100)),
        lambda t: optim.NormalizedGD(t(100)),
        lambda t: optim.DecayedNormalizedGD(t(3), attention_power=t(1)),
    ):
        ours, theirs = (
            optim.train(models.Attention(), p, make(t), 10, rng=0) for t in (kind, float)
        )
        np.testing.assert_array_equal(ours.params["W"], theirs.params["W"])
