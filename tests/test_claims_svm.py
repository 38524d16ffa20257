"""The checks of the svm paper notice a broken formula, and its constants refuse bad input."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnbook import theory
from attnbook.claims._measure import slope
from attnbook.claims.svm import _cases as cases
from attnbook.claims.svm import _long
from attnbook.claims.svm import _paths as paths
from attnlab import curvature, models, optim, problems, svm

Function = Callable[..., Any]


def times(factor: float, entry: int | None = None) -> Callable[[Function], Function]:
    """The answer, or one entry of it, multiplied."""

    def mutant(true: Function) -> Function:
        def broken(*args: Any, **kwargs: Any) -> Any:
            found = true(*args, **kwargs)
            if entry is None:
                return factor * found
            return tuple(factor * f if k == entry else f for k, f in enumerate(found))

        return broken

    return mutant


def changed(**entries: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """A record with entries computed from the true record."""

    def mutant(true: Function) -> Function:
        def broken(*args: Any, **kwargs: Any) -> Any:
            found = true(*args, **kwargs)
            made = {name: entry(found) for name, entry in entries.items()}
            return found._replace(**made) if hasattr(found, "_replace") else replace(found, **made)

        return broken

    return mutant


def swapped(true: Function) -> Function:
    """The two answers in each other's place."""
    return lambda *args, **kwargs: true(*args, **kwargs)[::-1]


def transposed(true: Function) -> Function:
    """Matrices transposed: key and query side mistaken for each other."""
    return lambda *args, **kwargs: np.swapaxes(true(*args, **kwargs), -1, -2)


def one_less(true: Function) -> Function:
    return lambda *args, **kwargs: true(*args, **kwargs) - 1


def half_as_far(true: Function) -> Function:
    return lambda model, problem, radii, **k: true(model, problem, np.asarray(radii) / 2.0, **k)


def other_norm(true: Function) -> Function:
    def broken(problem: Any, tokens: Any = None, norm: str = "fro", method: str = "auto") -> Any:
        return true(problem, tokens, "fro" if norm == "nuc" else "nuc", method)

    return broken


def without_the_flag(true: Function) -> Function:
    """The corrected form replaced by the printed one."""
    return lambda *args, **kwargs: true(*args, **{**kwargs, "printed": True})


def where_printed(mutant: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """The printed form broken and the corrected one left as it is."""

    def chosen(true: Function) -> Function:
        broken = mutant(true)
        return lambda *args, **kwargs: (broken if kwargs.get("printed") else true)(*args, **kwargs)

    return chosen


def without_its_own_square(true: Function) -> Function:
    """The threshold without the term |F_1|^2."""
    return lambda gram: float(-gram[0, 1] / (gram[1, 1] + gram[0, 1]))


def ties(*, low: bool) -> Callable[[Function], Function]:
    """Tokens that score as much as the selected one are not high."""

    def mutant(true: Function) -> Function:
        def broken(problem: Any, tokens: Any) -> Any:
            below, above = true(problem, tokens)
            own = np.take_along_axis(problem.scores, np.asarray(tokens)[..., None], axis=-1)
            tied = above & (problem.scores == own)
            return (below | tied if low else below), above & ~tied

        return broken

    return mutant


W_TRANSPOSED = changed(W=lambda margin: np.swapaxes(margin.W, -1, -2))
THEORY = "attnbook.theory.svm."
MUTANTS = [
    ("definition-1", "attnlab.svm.attention_svm", W_TRANSPOSED, "transposed W"),
    ("theorem-1", THEORY + "enough_dimension", one_less, "d one too small"),
    ("lemma-1", "attnlab.svm.attention_svm", W_TRANSPOSED, "transposed W"),
    (
        "assumption-a",
        "attnlab.curvature.loss_constants",
        changed(lipschitz=lambda c: c.lipschitz / 2),
        "M_0",
    ),
    (
        "assumption-a",
        "attnlab.curvature.loss_constants",
        changed(steepest=lambda c: 0.9 * c.steepest),
        "M_1",
    ),
    ("lemma-2", THEORY + "excess_above", times(0.1), "the factor T B"),
    ("theorem-2", "attnlab.svm.attention_svm", other_norm, "the norms swapped"),
    ("lemma-4", "attnlab.curvature.smoothness", changed(K=lambda c: c.K_printed), "a square"),
    (
        "assumption-b",
        "attnlab.svm.assumption_b1",
        changed(holds=lambda found: np.ones_like(found.holds)),
        "B.1 taken to hold everywhere",
    ),
    ("assumption-b", THEORY + "features", transposed, "a swapped index"),
    ("theorem-4", THEORY + "opposing_threshold", without_its_own_square, "a dropped term"),
    ("lemma-15", "attnlab.svm.regularization_path", half_as_far, "R for 2 R"),
    ("theorem-6", THEORY + "lemma_12_radius", times(0.01), "the radius"),
    ("definition-2", THEORY + "token_margins", times(2.0), "a factor 2"),
    (
        "theorem-7",
        THEORY + "local_constants",
        changed(mu=lambda c: np.minimum(0.9, 4.0 * c.mu)),
        "the opening four times as wide",
    ),
    ("theorem-8", THEORY + "enough_dimension", one_less, "d one too small"),
    ("definition-3", THEORY + "cone_margins", times(-1.0), "low and high swapped"),
    ("definition-3", THEORY + "_paths.low_high", ties(low=True), "ties are low"),
    ("definition-3", THEORY + "_paths.low_high", ties(low=False), "ties are in neither set"),
    ("proposition-1", THEORY + "safe_excess", times(1.5), "a level half as high again"),
    ("theorem-6", THEORY + "first_step_radius", times(0.5), "a first step half as long"),
    (
        "lemma-5",
        "attnlab.svm.locally_optimal",
        changed(corrected=lambda found: found.as_printed),
        "the correction forgotten",
    ),
    ("theorem-9", THEORY + "cone_distance", times(0.0), "the counterexample gone"),
    ("equation-6", THEORY + "equivalent_correlation", lambda f: lambda *a: f(*a) ** 2, "a root"),
    ("equation-7", "attnlab.svm.finite_component", transposed, "transposed W"),
    ("equation-7", "attnlab.svm.finite_component", times(2.0), "a factor 2"),
    (
        "lemma-6",
        THEORY + "water_filling",
        lambda f: lambda g, c: f(g, 2 * np.asarray(c)),
        "2 lambda",
    ),
    ("lemma-6", THEORY + "thresholds", times(1.02, entry=0), "lower threshold"),
    ("lemma-6", THEORY + "thresholds", times(0.98, entry=1), "upper threshold"),
    ("lemma-6", THEORY + "thresholds", where_printed(times(1.5, entry=1)), "the paper's range"),
    ("lemma-7", THEORY + "lemma_7_bound", times(0.99), "the constant 2 is sharp"),
    ("lemma-7", THEORY + "lemma_7_residual", times(-1.0), "a sign"),
    ("lemma-7", THEORY + "lemma_7_sum", times(2.0), "a factor 2"),
    ("lemma-8", THEORY + "descent_step", without_the_flag, "2 / L for 1 / L"),
    ("lemma-9", THEORY + "lemma_9_bound", times(1.01), "tight where scores are equal"),
    ("lemma-9", THEORY + "equal_score_form", times(0.5), "a factor 2"),
    ("lemma-10", "attnlab.svm.attention_svm", W_TRANSPOSED, "transposed W"),
    ("lemma-12", THEORY + "lemma_12_bounds", times(4.0, entry=0), "lower bound"),
    ("lemma-13", THEORY + "lemma_13_bounds", times(0.25, entry=1), "upper bound"),
    ("lemma-13", THEORY + "lemma_13_bounds", swapped, "the printed order"),
    ("definition-5", THEORY + "cone_margins", times(-1.0), "a sign"),
    ("assumption-e", THEORY + "score_constants", times(1.01, entry=1), "c is sharp"),
    ("assumption-e", THEORY + "score_constants", times(0.9, entry=0), "B is nearly sharp"),
    ("theorem-10", THEORY + "crossing_radius", without_the_flag, "4 for 8"),
    ("theorem-10", THEORY + "excess_above", times(0.1), "the factor T B"),
    ("corollary-2", "attnlab.svm.attention_svm", other_norm, "the norms swapped"),
    ("claim-e2", THEORY + "features", transposed, "a swapped index"),
]


@pytest.mark.parametrize(
    ("claim", "target", "mutant"),
    [entry[:3] for entry in MUTANTS],
    ids=[f"{claim}: {word}" for claim, _, _, word in MUTANTS],
)
def test_a_broken_formula_is_noticed(
    verdict: Callable[..., bool], claim: str, target: str, mutant: Callable[[Function], Function]
) -> None:
    assert verdict(f"svm.{claim}", target, mutant) is False


WIDE = problems.sphere(n=2, T=3, d=4, rng=0)
EYE = np.eye(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: theory.svm.token_margins(WIDE, EYE, [0, 3]),
            "tokens: expected tokens from 0 to 2",
        ),
        (lambda: theory.svm.token_margins(WIDE, EYE, [0.0, 1.0]), "tokens: expected whole numbers"),
        (lambda: theory.svm.token_margins(WIDE, np.eye(3)), "W: expected shape"),
        (lambda: theory.svm.token_margins(WIDE, np.full((4, 4), np.nan)), "W: expected finite"),
        (lambda: theory.svm.features("data"), "problem: expected a TokenProblem"),
        (lambda: theory.svm.enough_dimension(0, 3), "n: expected a whole number"),
        (lambda: curvature.loss_constants("hinge"), "loss: expected one of"),
        (lambda: curvature.loss_constants("exponential"), "low: expected a finite number"),
        (lambda: curvature.loss_constants("logistic", 1.0, 0.0), "low: expected at most"),
        (lambda: theory.svm.descent_step(0.0), "smoothness: expected numbers above 0"),
        (lambda: theory.svm.lemma_7_bound([1.0], [0.5, 0.5], [1.0, 0.0]), "scores: expected rows"),
        (
            lambda: theory.svm.lemma_7_bound([1, 0], [0.5, 0.4], [1, 0]),
            "attention: expected nonneg",
        ),
        (lambda: theory.svm.equal_score_form([1, 0], [1, 0], [1, 0]), "attention: expected weight"),
        (lambda: theory.svm.lemma_10_radius(WIDE, EYE, 1.0), "problem: expected one sample"),
        (lambda: theory.svm.lemma_11_radius(WIDE, EYE, 1.0, 2.0), "pi: expected a finite number"),
        (lambda: theory.svm.lemma_12_radius(WIDE, EYE, 0.0), "mu: expected numbers above 0"),
        (lambda: theory.svm.local_constants(WIDE, EYE), "W_mm: expected matrices whose least"),
        (lambda: theory.svm.cone_radius(0.0, 3, 1.0, 1.0), "epsilon: expected numbers above 0"),
        (lambda: theory.svm.opposing_threshold(np.eye(3)), "gram: expected shape"),
        (lambda: theory.svm.thresholds([1.0, 0.5, 0.2], 3), "tokens: expected at most"),
        (lambda: theory.svm.water_filling([1.0, 0.5], -1.0), "curvature: expected numbers above 0"),
    ],
)
def test_constants_say_what_they_expected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_scores_that_tie_have_no_gap_to_divide_by() -> None:
    tied = problems.TokenProblem(np.ones((1, 2, 3)), np.ones((1, 3)), [1.0], np.ones(3))
    with pytest.raises(ValueError, match="one optimal token in every sample"):
        theory.svm.lemma_12_radius(tied, np.eye(3), 1.0)


def test_limits_of_the_constants() -> None:
    assert theory.svm.rank_bound(1, 2, 9) == 1
    assert theory.svm.counting_dimension(1, 2) == 1
    wide = curvature.loss_constants("logistic", -1e3, 1e3)
    assert wide.lipschitz == 0.25
    assert (wide.steepest, wide.flattest) == (1.0, 0.0)
    far = curvature.loss_constants("logistic", 5.0, 6.0)  # l'' is largest at the near end
    assert far.lipschitz == pytest.approx(np.exp(-5.0) / (1.0 + np.exp(-5.0)) ** 2)
    assert theory.svm.cone_radius(0.1, 2, spread=1.0, gap=10.0) == 0.0
    uniform = theory.svm.water_filling([1.0, 0.9, 0.8], 1e9)
    assert uniform == pytest.approx(np.full(3, 1.0 / 3.0), abs=1e-9)


def test_hidden_tokens_do_not_count() -> None:
    p = problems.causal(n=1, T=3, d=4, rng=0)
    assert (theory.svm.token_margins(p, EYE)[~p.mask] == 0.0).all()
    low, high = theory.svm.low_high(p, p.optimal)
    assert not ((low | high) & ~p.mask).any()
    assert theory.svm.cone_margins(p, EYE, p.optimal)[0] == np.inf


def test_steps_taken_together_are_the_steps_one_by_one() -> None:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.2, trials=6, rng=0)
    start = np.zeros((6, 4, 4))
    early, late = _long.descent(drawn, start, (20, 32))
    k = np.exp(late.log_steps)
    assert k.round() == pytest.approx(k)  # whole numbers of steps
    assert (k > 300.0).all()
    scale = 1.0 / cases.norm(theory.svm.features(drawn)).max(axis=(-1, -2))
    for j in range(6):
        one = drawn.trial(j)
        L = curvature.smoothness(models.Attention(), cases.in_units(drawn, scale).trial(j)).W
        rule = optim.GD(float(scale[j] ** 2 / L))
        run = optim.train(models.Attention(), one, rule, int(k[j].round()), params={"W": start[j]})
        gone = np.linalg.norm(run.params["W"] - late.W[j])
        assert gone < 3e-3 * np.linalg.norm(late.W[j] - early.W[j])


@pytest.mark.long
@pytest.mark.parametrize(("n", "T", "d"), [(5, 5, 8), (10, 4, 10), (4, 10, 9), (10, 10, 10)])
def test_paths_of_larger_problems(n: int, T: int, d: int) -> None:
    """Theorem 2 beyond the sizes of its check."""
    for row in paths.of_size(n, T, d, None, 2, np.random.default_rng(0)):
        assert row.holds, str(row)


@pytest.mark.long
@pytest.mark.parametrize(("n", "T", "d", "trials"), [(5, 5, 8, 4), (10, 10, 10, 2)])
def test_nuclear_paths_of_larger_problems(n: int, T: int, d: int, trials: int) -> None:
    drawn = problems.sphere(n=n, T=T, d=d, min_gap=0.05, trials=trials, rng=0)
    gone = paths.distances(drawn, d)
    assert gone.shape == (5, trials)  # certified at every radius
    typical = np.exp(np.log(gone).mean(axis=-1))
    assert -1.1 < slope(paths.RADII, typical) < -0.85


def share_with_b1(n: int, d: int, trials: int) -> float:
    """The share of problems of two tokens in which every other token is a support token."""
    drawn = problems.sphere(n=n, T=2, d=d, trials=trials, rng=0)
    F = theory.svm.features(drawn)
    F = np.take_along_axis(F, 1 - drawn.optimal[..., None, None, None], axis=2)
    F = F.reshape(trials, n, d * d)
    multipliers = np.linalg.solve(F @ F.swapaxes(1, 2), np.ones((trials, n, 1)))
    return float((multipliers > 0.0).all(axis=(1, 2)).mean())


def test_the_width_for_b1_depends_on_the_number_of_sequences() -> None:
    # 2 T^2 log(nT) would be 33 and 49, sqrt(2 n log n) is 14 and 53
    assert share_with_b1(30, 22, 20) > 0.8
    assert share_with_b1(250, 40, 20) < 0.2


def test_a_start_of_rank_one_keeps_rank_one() -> None:
    """Also where the nuclear solution has rank two: the open question asks for full rank."""
    drawn = problems.sphere(n=3, T=4, d=6, min_gap=0.2, trials=8, rng=3)
    assert (svm.attention_svm(drawn, norm="nuc").rank > 1).any()
    model = models.Attention(factors=6)
    start = {name: part * (np.arange(6) == 0) for name, part in model.init(drawn, rng=0).items()}
    end = optim.train(model, drawn, optim.NormalizedGD(0.1), 300, params=start, record=()).params
    values = np.linalg.svd(end["K"] @ end["Q"].swapaxes(-1, -2), compute_uv=False)
    assert values[:, 1].max() < 1e-12 * values[:, 0].min()
