"""The datasets obey the laws the papers give them, and records keep what they promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from attnlab import problems

Trials = int | tuple[int, ...] | None
Make = Callable[..., Any]

# every constructor that draws, with the shape (n, T, d) of what it gives
DRAWN: dict[str, tuple[Make, dict[str, Any], tuple[int, int, int]]] = {
    "sphere": (problems.sphere, {"n": 3, "T": 4, "d": 5, "min_gap": 0.1}, (3, 4, 5)),
    "sphere self-attention": (
        problems.sphere,
        {"n": 3, "T": 4, "d": 5, "self_attention": True},
        (3, 4, 5),
    ),
    "sequence": (problems.sequence, {"n": 2, "T": 3, "d": 5, "min_gap": 0.02}, (6, 3, 5)),
    "causal": (problems.causal, {"n": 2, "T": 3, "d": 5, "min_gap": 0.02}, (6, 3, 5)),
    "orthogonal": (problems.orthogonal, {"n": 4, "T": 3, "d": 6, "rho": 0.1}, (4, 3, 6)),
    "orthogonal antipodal": (
        problems.orthogonal,
        {"n": 4, "T": 3, "d": 6, "rho": 0.1, "antipodal": True},
        (4, 3, 6),
    ),
    "gaussian": (problems.gaussian, {"n": 4, "T": 2, "d": 6, "rho": 0.1, "alpha": 3.0}, (4, 2, 6)),
    "tokenized_mixture": (problems.tokenized_mixture, {"n": 5}, (5, 10, 4)),
    "planted": (problems.planted, {"n": 6}, (6, 10, 5)),
    "gaussian_regression": (problems.gaussian_regression, {"n": 4, "T": 3, "d": 5}, (4, 3, 5)),
}
LEADS: list[tuple[Trials, tuple[int, ...]]] = [(None, ()), (2, (2,)), ((2, 3), (2, 3))]
every_constructor = pytest.mark.parametrize("name", DRAWN)


def draw(name: str, rng: int | np.random.Generator = 0, trials: Trials = None) -> Any:
    make, settings, _ = DRAWN[name]
    return make(**settings, trials=trials, rng=rng)


def arrays(problem: Any) -> dict[str, Any]:
    found = {entry.name: getattr(problem, entry.name) for entry in dataclasses.fields(problem)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def same(a: Any, b: Any) -> bool:
    left, right = arrays(a), arrays(b)
    return left.keys() == right.keys() and all(np.array_equal(left[k], right[k]) for k in left)


def gaps(problem: problems.TokenProblem) -> Any:
    """Lead of the best score over the second best among the tokens that may be attended to."""
    scores = problem.scores
    if problem.mask is not None:
        scores = np.where(problem.mask, scores, -np.inf)
    top = np.sort(scores, axis=-1)[..., -2:]
    return top[..., 1] - top[..., 0]


# --- every constructor -------------------------------------------------------------------------


@every_constructor
@pytest.mark.parametrize(("trials", "lead"), LEADS)
def test_leading_axes_are_trials(name: str, trials: Trials, lead: tuple[int, ...]) -> None:
    n, T, d = DRAWN[name][2]
    p = draw(name, trials=trials)
    assert (p.trials, p.n, p.T, p.d) == (lead, n, T, d)
    assert p.X.shape == (*lead, n, T, d)
    assert p.y.shape == (*lead, n)
    if isinstance(p, problems.TokenProblem):
        assert p.z.shape == (*lead, n, d)
        assert p.v.shape == (*lead, d)
        assert p.scores.shape == (*lead, n, T)
        assert p.optimal.shape == (*lead, n)
    for marks in (getattr(p, "mask", None), p.relevant):
        assert marks is None or (marks.shape == (*lead, n, T) and marks.dtype == np.bool_)


@every_constructor
def test_the_same_seed_gives_the_same_arrays(name: str) -> None:
    assert same(draw(name, 3, trials=2), draw(name, 3, trials=2))
    assert same(draw(name, 3, trials=2), draw(name, np.random.default_rng(3), trials=2))
    assert same(draw(name, 3), draw(name, np.int64(3)))
    assert not np.array_equal(draw(name, 3).X, draw(name, 4).X)


@every_constructor
def test_a_generator_moves_on(name: str) -> None:
    rng = np.random.default_rng(0)
    assert not np.array_equal(draw(name, rng).X, draw(name, rng).X)


@every_constructor
def test_trials_are_different_instances(name: str) -> None:
    p = draw(name, trials=(2, 3))
    flat = p.X.reshape(6, -1)
    assert len({row.tobytes() for row in flat}) == 6


@every_constructor
@pytest.mark.parametrize("trials", [None, (2, 3)])
def test_fresh_draws_other_samples_of_the_same_source(name: str, trials: Trials) -> None:
    p = draw(name, 0, trials)
    sequences = 7 * (p.T if name in ("sequence", "causal") else 1)
    q, again = p.fresh(7, rng=1), p.fresh(n=7, rng=1)
    drawn, too = (p.fresh(7, rng=np.random.default_rng(1)) for _ in range(2))
    assert same(drawn, too)
    assert type(q) is type(p)
    assert (q.trials, q.n, q.T, q.d) == (p.trials, sequences, p.T, p.d)
    assert q.source is p.source
    assert same(q, again)
    assert not np.array_equal(q.X[..., :2, :, :], p.X[..., :2, :, :])
    if isinstance(p, problems.TokenProblem):
        assert np.array_equal(q.v, p.v)
    assert same(q.fresh(7, rng=1), q)  # fresh problems can be asked again


@every_constructor
def test_records_are_read_only(name: str) -> None:
    p = draw(name, trials=2)
    held = list(arrays(p).values())
    if isinstance(p, problems.TokenProblem):
        held += [p.scores, p.optimal]
    for array in held:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.X = np.zeros(p.X.shape)


@every_constructor
def test_trial_picks_instances(name: str) -> None:
    p = draw(name, trials=(2, 3))
    one, row, part = p.trial((1, 2)), p.trial(1), p.trial((slice(None), [2, 0]))
    assert (one.trials, row.trials, part.trials) == ((), (3,), (2, 2))
    whole = {k: v for k, v in arrays(p).items() if k != "sequence_index"}
    for key, value in whole.items():
        assert np.array_equal(arrays(one)[key], value[1, 2])
        assert np.array_equal(arrays(row)[key], value[1])
        assert np.array_equal(arrays(part)[key], value[:, [2, 0]])
    if "sequence_index" in arrays(p):
        assert np.array_equal(one.sequence_index, p.sequence_index)
    if isinstance(p, problems.TokenProblem):
        # a product of two matrices may be summed in another order than one of three
        np.testing.assert_allclose(one.scores, p.scores[1, 2], rtol=0, atol=1e-15)
        assert np.array_equal(one.optimal, p.optimal[1, 2])


@every_constructor
def test_records_compare_by_identity(name: str) -> None:
    p, twin = draw(name), draw(name)
    assert p == p
    assert p != twin
    assert len({p, twin, p}) == 2


@every_constructor
def test_repr_shows_shapes_and_no_arrays(name: str) -> None:
    n, T, d = DRAWN[name][2]
    kind = type(draw(name)).__name__
    assert repr(draw(name)) == f"{kind}(n={n}, T={T}, d={d})"
    assert repr(draw(name, trials=(2, 3))) == f"{kind}(trials=(2, 3), n={n}, T={T}, d={d})"


# --- records made by hand ----------------------------------------------------------------------


def test_definition_1_scores_and_optimal_token() -> None:
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 5))
    y, v = rng.choice([-1.0, 1.0], (2, 3)), rng.standard_normal((2, 5))
    p = problems.TokenProblem(X=X, z=z, y=y, v=v)
    expected = np.einsum("bn,bntd,bd->bnt", y, X, v)
    np.testing.assert_allclose(p.scores, expected, rtol=0, atol=1e-14)
    assert np.array_equal(p.optimal, expected.argmax(-1))


def test_the_optimal_token_is_one_that_may_be_attended_to() -> None:
    X, v = [[[1.0], [3.0], [2.0]]], [1.0]
    free = problems.TokenProblem(X=X, z=[[1.0]], y=[1.0], v=v)
    hidden = problems.TokenProblem(X=X, z=[[1.0]], y=[1.0], v=v, mask=[[True, False, True]])
    assert (free.optimal.tolist(), hidden.optimal.tolist()) == ([1], [2])
    assert hidden.scores.tolist() == [[1.0, 3.0, 2.0]]


def test_records_keep_their_own_copy() -> None:
    X, y = np.ones((2, 3, 4)), np.ones(2)
    p = problems.SequenceProblem(X=X, y=y)
    X[...] = np.nan
    y[...] = np.nan
    assert (p.X == 1.0).all()
    assert (p.y == 1.0).all()


def test_a_read_only_view_of_a_writable_array_is_copied_too() -> None:
    base = np.ones((3, 4))
    view = np.broadcast_to(base, (2, 3, 4))
    p = problems.SequenceProblem(X=view, y=np.ones(2))
    base[...] = 7.0
    assert (p.X == 1.0).all()


def test_lists_integers_and_single_precision_become_float64() -> None:
    p = problems.TokenProblem(
        X=[[[1, 0], [0, 1]]], z=np.ones((1, 2), np.float32), y=np.array([-1]), v=(2, 3)
    )
    assert {array.dtype for array in (p.X, p.z, p.y, p.v)} == {np.dtype(np.float64)}
    assert p.scores.tolist() == [[-2.0, -3.0]]


def test_a_sequence_may_be_one_token_long() -> None:
    assert problems.SequenceProblem(X=np.ones((2, 1, 3)), y=[1.0, -1.0]).T == 1
    assert problems.gaussian_regression(n=2, T=1, d=3, rng=0).T == 1


# --- sphere (svm, Section 5.1) -------------------------------------------------------------------


def test_sphere_tokens_queries_and_heads_are_unit_vectors() -> None:
    p = problems.sphere(n=5, T=5, d=8, trials=200, rng=0)
    for array in (p.X, p.z, p.v):
        np.testing.assert_allclose(np.linalg.norm(array, axis=-1), 1.0, rtol=0, atol=1e-14)
        # uniform on the sphere: mean 0 and covariance I / d
        flat = array.reshape(-1, 8)
        assert np.abs(flat.mean(0)).max() < 5 / np.sqrt(8 * len(flat))
        assert np.abs(flat.T @ flat / len(flat) - np.eye(8) / 8).max() < 1 / np.sqrt(len(flat))
    assert set(np.unique(p.y)) == {-1.0, 1.0}
    assert abs(p.y.mean()) < 0.1


@pytest.mark.parametrize(
    ("make", "gap"), [(problems.sphere, 0.1), (problems.sequence, 0.05), (problems.causal, 0.05)]
)
def test_every_sample_reaches_the_score_gap(make: Make, gap: float) -> None:
    settings = {"n": 4, "T": 3, "d": 5, "trials": 60, "rng": 0}
    assert gaps(make(**settings)).min() < gap  # the filter has something to do
    p = make(**settings, min_gap=gap)
    assert gaps(p).min() >= gap - 1e-14
    assert gaps(p.fresh(4, rng=1)).min() >= gap - 1e-14


def test_the_score_gap_leaves_labels_fair_and_tokens_on_the_sphere() -> None:
    p = problems.sphere(n=5, T=5, d=8, trials=200, min_gap=0.2, rng=0)
    assert abs(p.y.mean()) < 0.1
    np.testing.assert_allclose(np.linalg.norm(p.X, axis=-1), 1.0, rtol=0, atol=1e-14)


def test_self_attention_asks_with_the_first_token() -> None:
    p = problems.sphere(n=3, T=4, d=5, trials=2, self_attention=True, rng=0)
    assert np.array_equal(p.z, p.X[..., 0, :])
    q = problems.sphere(n=3, T=4, d=5, trials=2, rng=0)
    assert not np.isclose(q.z[..., None, :], q.X).all(-1).any()


# --- sequences (svm, Section 7) ------------------------------------------------------------------


@pytest.mark.parametrize("make", [problems.sequence, problems.causal])
@pytest.mark.parametrize("self_attention", [True, False])
def test_rows_are_positions_that_share_their_sequence(make: Make, self_attention: bool) -> None:
    n, T = 3, 4
    p = make(n=n, T=T, d=5, trials=2, self_attention=self_attention, rng=0)
    assert p.sequence_index.tolist() == [i for i in range(n) for _ in range(T)]
    X, z = p.X.reshape(2, n, T, T, 5), p.z.reshape(2, n, T, 5)
    assert (X[:, :, :1] == X).all()
    assert not (X[:, 0] == X[:, 1]).any()
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1.0, rtol=0, atol=1e-14)
    own = np.isclose(z[:, :, :, None, :], X).all(-1)
    assert np.array_equal(own, np.broadcast_to(self_attention & np.eye(T, dtype=bool), own.shape))
    assert set(np.unique(p.y)) == {-1.0, 1.0}


def test_causal_positions_see_their_past() -> None:
    n, T = 2, 4
    p = problems.causal(n=n, T=T, d=5, trials=3, rng=0)
    assert p.mask is not None
    past = np.tril(np.ones((T, T), bool))
    assert np.array_equal(p.mask, np.broadcast_to(np.tile(past, (n, 1)), (3, n * T, T)))
    assert (p.optimal <= np.tile(np.arange(T), n)).all()
    assert problems.sequence(n=n, T=T, d=5, rng=0).mask is None


# --- orthogonal: bias, Example 1 -----------------------------------------------------------------


@pytest.mark.parametrize("antipodal", [False, True])
@pytest.mark.parametrize("U", [0.5, 1.0, 2.0])
def test_example_1_scores_are_exactly_one_and_zero(antipodal: bool, U: float) -> None:
    p = problems.orthogonal(
        n=30, T=4, d=7, U=U, rho=0.3, sigma=0.2, antipodal=antipodal, trials=5, rng=0
    )
    assert p.relevant is not None
    assert (p.scores[p.relevant] == 1.0).all()
    assert (p.scores[~p.relevant] == 0.0).all()
    assert (p.relevant.sum(-1) == 1).all()
    assert np.array_equal(p.relevant.argmax(-1), p.optimal)
    assert np.array_equal(p.z, p.X[..., 0, :])


@pytest.mark.parametrize("U", [0.1, 0.7, 3.0, 49.0])
def test_example_1_scores_for_other_lengths_up_to_rounding(U: float) -> None:
    p = problems.orthogonal(n=30, T=4, d=7, U=U, rho=0.3, rng=0)
    assert p.relevant is not None
    np.testing.assert_allclose(p.scores[p.relevant], 1.0, rtol=0, atol=3e-16)
    assert (p.scores[~p.relevant] == 0.0).all()


@pytest.mark.parametrize("antipodal", [False, True])
def test_example_1_means_and_noise(antipodal: bool) -> None:
    rho, sigma, U, d = 0.3, 0.2, 2.0, 7
    p = problems.orthogonal(n=4000, T=3, d=d, U=U, rho=rho, sigma=sigma, antipodal=antipodal, rng=0)
    plus, minus = p.source.means  # type: ignore[union-attr]
    assert np.linalg.norm(plus) == np.linalg.norm(minus) == U
    assert plus @ minus == (-(U**2) if antipodal else 0.0)
    head = plus / U**2 if antipodal else (plus - minus) / U**2
    assert np.array_equal(p.v, head)
    best = p.X[p.relevant]
    means = np.where(p.y[:, None] > 0, plus, minus)
    span = np.flatnonzero((plus != 0) | (minus != 0))
    off = np.setdiff1d(np.arange(d), span)
    assert np.array_equal(best[:, span], means[:, span])  # the noise is off the means' span
    assert (p.X[~p.relevant][:, span] == 0.0).all()
    assert abs((best - means)[:, off].std() - sigma) < 0.01
    assert abs(p.X[~p.relevant][:, off].std() - rho) < 0.01
    assert abs(p.y.mean()) < 0.06
    assert np.abs(p.relevant.mean(0) - 1 / 3).max() < 0.04  # opt is uniform


def test_example_1_of_figure_2_has_the_label_mean_itself_at_sigma_zero() -> None:
    p = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
    assert p.relevant is not None
    assert np.array_equal(p.X[p.relevant][:, :2], np.where(p.y[:, None] > 0, [1, 0], [0, 1]))
    assert (p.X[p.relevant][:, 2:] == 0.0).all()


# --- gaussian: bias, model DM --------------------------------------------------------------------


def test_model_dm_labels_by_the_larger_token() -> None:
    rho, alpha, d = 0.1, 3.0, 100
    p = problems.gaussian(n=400, T=3, d=d, rho=rho, alpha=alpha, trials=3, rng=0)
    assert p.relevant is not None
    assert (p.relevant.sum(-1) == 1).all()
    marked = (p.X * p.relevant[..., None]).sum(-2)
    assert np.array_equal(p.y, np.where(np.einsum("bnd,bd->bn", marked, p.v) >= 0, 1.0, -1.0))
    np.testing.assert_allclose(np.linalg.norm(p.v, axis=-1), 1.0, rtol=0, atol=1e-14)
    assert np.array_equal(p.z, p.X[..., 0, :])
    assert abs(p.X[p.relevant].std() / (alpha * rho) - 1) < 0.02
    assert abs(p.X[~p.relevant].std() / rho - 1) < 0.02
    assert np.abs(p.relevant.mean((0, 1)) - 1 / 3).max() < 0.06


# --- the two examples in closed form -------------------------------------------------------------


def test_bad_direction_is_the_data_of_figure_8() -> None:
    p = problems.bad_direction()
    assert p.X.tolist() == [[[1.0, 0.2], [-1.0, -0.2]], [[-2.5, 0.5], [2.5, -0.5]]]
    assert p.z.tolist() == [[1.0, 0.2], [-2.5, 0.5]]
    assert (p.y.tolist(), p.v.tolist()) == ([-1.0, 1.0], [0.0, 1.0])
    assert p.scores.tolist() == [[-0.2, 0.2], [0.5, -0.5]]
    assert p.optimal.tolist() == [1, 0]


def test_bad_direction_has_the_printed_max_margin_solution() -> None:
    p = problems.bad_direction()
    W = np.array([[-0.2097, -0.7250], [-0.7250, -0.0084]])
    rows, best = np.arange(2), p.optimal
    lead = p.X[rows, best] - p.X[rows, 1 - best]
    margins = np.einsum("nd,de,ne->n", lead, W, p.z)
    np.testing.assert_allclose(margins, 1.0, rtol=0, atol=5e-4)
    np.testing.assert_allclose(np.linalg.norm(W), 1.04656, rtol=0, atol=2e-4)


def test_two_token_is_the_example_of_section_3_3() -> None:
    p = problems.two_token()
    assert (p.n, p.T, p.d) == (1, 2, 2)
    assert p.X.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]
    assert (p.z.tolist(), p.y.tolist(), p.v.tolist()) == ([[1.0, 0.0]], [1.0], [1.0, 0.0])
    assert (p.scores.tolist(), p.optimal.tolist()) == ([[1.0, 0.0]], [0])


# --- tokenized mixture: multihead, DM1 -----------------------------------------------------------


@pytest.mark.parametrize(("T", "zeta", "count"), [(10, 0.1, 1), (10, 0.3, 3), (8, 0.5, 4)])
def test_dm1_has_zeta_T_relevant_tokens(T: int, zeta: float, count: int) -> None:
    p = problems.tokenized_mixture(n=200, T=T, zeta=zeta, trials=3, rng=0)
    assert p.relevant is not None
    assert (p.relevant.sum(-1) == count).all()
    assert np.abs(p.relevant.mean((0, 1)) - zeta).max() < 0.1  # drawn anew for each sample


def test_dm1_relevant_tokens_are_the_label_pattern_and_the_others_noisy_patterns() -> None:
    S, M, d, sigma = 3.0, 3, 6, 0.1
    p = problems.tokenized_mixture(n=2000, d=d, M=M, S=S, zeta=0.2, sigma=sigma, rng=0)
    assert p.relevant is not None
    mu, nu = p.source.mu, p.source.nu  # type: ignore[union-attr]
    patterns = np.concatenate([mu, nu])
    assert np.array_equal(patterns @ patterns.T, S**2 * np.eye(M + 2))
    label = np.where(p.y[:, None] > 0, mu[0], mu[1])[:, None, :]
    assert (label == p.X)[p.relevant].all()
    rest = p.X[~p.relevant]
    distance = np.linalg.norm(rest[:, None] - nu, axis=-1)
    nearest = distance.argmin(-1)
    assert abs((rest - nu[nearest]).std() - sigma) < 0.002
    assert np.abs(np.bincount(nearest) / len(rest) - 1 / M).max() < 0.02
    assert abs(p.y.mean()) < 0.1


def test_dm1_without_noise_is_made_of_patterns() -> None:
    p = problems.tokenized_mixture(n=20, sigma=0.0, rng=0)
    assert set(np.unique(p.X)) == {0.0, 2.0}
    assert ((p.X != 0).sum(-1) == 1).all()


# --- planted: multihead, DM2 ---------------------------------------------------------------------


def planted_output(teacher: Any, X: Any) -> Any:
    """The teacher of DM2, written out for one trial: <U, softmax(X W^T X^T) X>."""
    logits = np.einsum("nsi,ij,ntj->nts", X, teacher.W, X)
    P = np.exp(logits - logits.max(-1, keepdims=True))
    P /= P.sum(-1, keepdims=True)
    return np.einsum("td,nts,nsd->n", teacher.U, P, X)


def test_dm2_labels_and_margin_are_the_teachers() -> None:
    p = problems.planted(n=300, rng=0)
    assert p.teacher is p.source
    for q in (p, p.fresh(n=300, rng=1)):
        f = planted_output(p.teacher, q.X)
        np.testing.assert_allclose(p.teacher(q.X), f, rtol=0, atol=1e-12)
        assert np.abs(f).min() > 0.2
        assert np.array_equal(np.sign(f), q.y)
        assert q.teacher is p.teacher
    np.testing.assert_allclose(np.linalg.norm(p.teacher.U), 1.0, rtol=0, atol=1e-14)


def test_dm2_has_a_teacher_for_every_trial() -> None:
    p = problems.planted(n=20, T=6, d=3, margin=0.1, trials=(2, 2), rng=0)
    assert p.teacher.W.shape == (2, 2, 3, 3)
    assert p.teacher.U.shape == (2, 2, 6, 3)
    np.testing.assert_allclose((p.teacher.U**2).sum((-1, -2)), 1.0, rtol=0, atol=1e-14)
    f = p.teacher(p.X)
    assert np.abs(f).min() > 0.1
    assert np.array_equal(np.sign(f), p.y)


def test_dm2_keeps_about_83_percent_of_the_samples() -> None:
    p = problems.planted(n=1, trials=60, rng=0)
    X = np.random.default_rng(1).standard_normal((60, 200, 10, 5))
    kept = (np.abs(p.teacher(X)) > 0.2).mean()
    assert abs(kept - 0.83) < 0.02


def test_dm2_filter_leaves_gaussian_tokens() -> None:
    p = problems.planted(n=2000, margin=0.0, rng=0)
    assert abs(p.X.mean()) < 0.01
    assert abs(p.X.std() - 1.0) < 0.01


def test_only_planted_problems_have_a_teacher() -> None:
    assert problems.tokenized_mixture(n=3, rng=0).teacher is None
    assert problems.gaussian_regression(n=3, T=2, d=2, rng=0).teacher is None
    assert problems.SequenceProblem(X=np.ones((1, 2, 2)), y=[1.0]).teacher is None


# --- regression: encoder, Section 5.1 ------------------------------------------------------------


def test_regression_tokens_and_targets_are_independent_standard_normals() -> None:
    p = problems.gaussian_regression(n=2000, T=3, d=4, rng=0)
    for array in (p.X, p.y):
        assert abs(array.mean()) < 0.06
        assert abs(array.std() - 1.0) < 0.04
    correlation = np.corrcoef(p.X.reshape(2000, -1).T, p.y)[-1, :-1]
    assert np.abs(correlation).max() < 0.1


def test_regression_on_unit_tokens() -> None:
    p = problems.gaussian_regression(n=50, T=3, d=4, unit_tokens=True, trials=2, rng=0)
    np.testing.assert_allclose(np.linalg.norm(p.X, axis=-1), 1.0, rtol=0, atol=1e-14)


@every_constructor
def test_a_picked_trial_keeps_its_own_source(name: str) -> None:
    p = draw(name, trials=(3, 2))
    one, some = p.trial((2, 1)), p.trial(slice(1, 3))
    fresh = one.fresh(4, rng=0)
    assert (fresh.trials, fresh.T, fresh.d) == ((), p.T, p.d)
    assert some.fresh(4, rng=0).trials == (2, 2)
    if hasattr(p, "v"):
        np.testing.assert_array_equal(fresh.v, p.v[2, 1])
    if getattr(p, "teacher", None) is not None:
        np.testing.assert_array_equal(one.teacher.W, p.teacher.W[2, 1])


@every_constructor
def test_one_seed_in_two_places_gives_unrelated_draws(name: str) -> None:
    """With rng=0 for the data, rng=0 for new samples must not give the old ones back."""
    p = draw(name, 0)
    q = (
        p.fresh(p.n if p.sequence_index is None else p.n // p.T, rng=0)
        if (isinstance(p, problems.TokenProblem))
        else p.fresh(p.n, rng=0)
    )
    noisy = (p.X != q.X) & (p.X != 0.0)
    a, b = p.X[noisy] - p.X[noisy].mean(), q.X[noisy] - q.X[noisy].mean()
    assert noisy.mean() > 0.1
    assert abs(float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))) < 0.6
