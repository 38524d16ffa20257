"""Every answer of the Frobenius SVM is checked from the data alone, in extended precision.

20,000 random and 5,000 deliberately hard instances: whatever the status says is recomputed here
from tokens, queries and what came back, and nothing the solver claims about itself is trusted.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attnlab import problems, svm

EPS = float(np.finfo(float).eps)
UNRESOLVED = 1e-6  # the relative margin below which the library may give up, by contract
CERTIFIED = 1e-9
FARKAS = 1e-12


class Instances(NamedTuple):
    """Problems with leading axis B, a selection, and what is known beforehand."""

    problem: problems.TokenProblem
    tokens: np.ndarray  # (B, n)
    reachable: np.ndarray  # (B,) a relative margin that a known W reaches; 0 where none is known
    contradictory: np.ndarray  # (B,) infeasible by construction


class Features(NamedTuple):
    """(x_selected - x_t) z', never formed: left, right, which count, lengths; long doubles."""

    left: np.ndarray  # (B, n, T, d)
    right: np.ndarray  # (B, n, d)
    counted: np.ndarray  # (B, n, T)
    lengths: np.ndarray  # (B, n, T), 0 where not counted

    def margins(self, W: np.ndarray) -> np.ndarray:
        """<F, W>, not counted ones 0."""
        image = np.einsum("bde,bne->bnd", W.astype(np.longdouble), self.right)
        return np.where(self.counted, np.einsum("bntd,bnd->bnt", self.left, image), 0.0)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """sum of weights F, (B, d, d)."""
        weighted = np.einsum("bnt,bntd->bnd", weights.astype(np.longdouble), self.left)
        return np.einsum("bnd,bne->bde", weighted, self.right)


def features(p: problems.TokenProblem, tokens: np.ndarray) -> Features:
    X, z = p.X.astype(np.longdouble), p.z.astype(np.longdouble)
    left = np.take_along_axis(X, tokens[..., None, None], axis=2) - X
    counted = np.arange(p.T) != tokens[..., None]
    if p.mask is not None:
        counted = counted & p.mask
    sizes = np.sqrt((left**2).sum(axis=-1)) * np.sqrt((z**2).sum(axis=-1))[..., None]
    return Features(left, z, counted, np.where(counted, sizes, 0.0))


def length(W: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt((W.astype(np.longdouble) ** 2).sum(axis=(-1, -2))))


def assert_optimal(F: Features, m: Any, known: np.ndarray) -> None:
    """Feasible, dual bound within 1e-9, and the KKT conditions; ``known`` relative margins."""
    asked = F.counted.any(axis=(1, 2))
    W, lam, size = m.W, m.multipliers, length(m.W)
    assert np.isfinite(W).all()
    assert (lam >= 0.0).all()
    assert (lam[~F.counted] == 0.0).all()
    margins = F.margins(W)
    # W itself is rounded, and its margins with it: a unit of rounding over its d^2 entries
    rounding = 4.0 * EPS * F.lengths * size[:, None, None]
    assert (np.where(F.counted, margins - 1.0 + rounding, 0.0) >= -CERTIFIED).all()
    assert (np.abs(m.margins - margins) <= 1e-12 * np.abs(margins) + 4.0 * rounding).all()
    np.testing.assert_allclose(m.norm, size.astype(float), rtol=1e-12)
    near = np.abs(m.margins - 1.0) <= 1e-6
    assert (m.support == (near & F.counted)).all()
    total, combined = lam.astype(np.longdouble).sum(axis=(1, 2)), F.combine(lam)
    assert ((total > 0.0) == asked).all()
    assert (size[~asked] == 0.0).all()
    bound = total[asked] / length(combined)[asked]
    gap = 1.0 - bound / size[asked]
    assert (gap <= CERTIFIED).all()
    assert (m.gap <= CERTIFIED).all()
    assert (m.gap >= 0.0).all()
    assert (m.residual == 0.0).all()
    # complementarity: what the multipliers spend on margins beyond 1 is within the gap
    slack = (lam * np.where(F.counted, margins - 1.0, 0.0))[asked].sum(axis=(1, 2)) / total[asked]
    charged = (lam * rounding)[asked].sum(axis=(1, 2)) / total[asked]
    assert (np.abs(slack) <= 1e-8 + charged).all()
    assert ((lam * (margins - 1.0))[~m.support & F.counted] <= 1e-8 * lam.max()).all()
    # stationarity: W is the combination itself, and |W|^2 = sum of multipliers
    away = length(W - combined)[asked] / size[asked]
    easy = known[asked] >= 1e-3
    assert (away <= np.where(easy, 1e-8, 1e-4)).all()
    np.testing.assert_allclose(
        (size[asked] ** 2 / total[asked]).astype(float), 1.0, rtol=0, atol=1e-8
    )


def relative(F: Features, lam: np.ndarray) -> np.ndarray:
    """|sum lambda F / |F| |: no unit W has a larger relative margin, when the weights sum to 1."""
    lengths = np.where(F.lengths > 0.0, F.lengths, 1.0)
    return length(F.combine(lam / lengths))


def assert_refuted(F: Features, m: Any) -> None:
    """Weights with sum 1, and W NaN by declaration."""
    lam = m.multipliers
    for declared in (m.W, m.margins[F.counted]):
        assert np.isnan(declared).all()
    assert not m.support.any()
    assert np.isinf(m.norm).all()
    assert np.isinf(m.gap).all()
    assert (lam >= 0.0).all()
    assert (lam[~F.counted] == 0.0).all()
    np.testing.assert_allclose(lam.sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(m.residual, relative(F, lam).astype(float), rtol=1e-6, atol=FARKAS)


class Part(NamedTuple):
    """Some trials of a margin."""

    W: np.ndarray
    margins: np.ndarray
    multipliers: np.ndarray
    support: np.ndarray
    norm: np.ndarray
    gap: np.ndarray
    residual: np.ndarray


def judge(given: Instances, method: str = "auto") -> Counter[str]:
    """Solve, check every answer, and count the statuses."""
    p, tokens = given.problem, given.tokens
    m = svm.attention_svm(p, tokens=tokens, norm="fro", method=method)
    F, status = features(p, tokens), m.status
    assert status.shape == p.trials
    assert np.isin(status, ["optimal", "infeasible", "unresolved"]).all(), Counter(status)
    for name in ("optimal", "infeasible", "unresolved"):
        at = np.flatnonzero(status == name)
        if not at.size:
            continue
        part = Part(*(getattr(m, field)[at] for field in Part._fields))
        some = Features(*(array[at] for array in F))
        if name == "optimal":
            assert_optimal(some, part, given.reachable[at])
            assert not given.contradictory[at].any()
            continue
        assert_refuted(some, part)
        residual = relative(some, part.multipliers)
        assert (residual <= (FARKAS if name == "infeasible" else UNRESOLVED)).all()
        # weak duality: nothing that is known to be feasible may be called the contrary
        assert (given.reachable[at] <= residual + FARKAS).all()
    assert not (status[given.reachable > 1.01 * UNRESOLVED] != "optimal").any()
    assert not (status[given.reachable > FARKAS] == "infeasible").any()
    return Counter(status.tolist())


# --- how instances are made


def made(
    X: np.ndarray,
    z: np.ndarray,
    tokens: np.ndarray | None = None,
    *,
    W: np.ndarray | None = None,
    mask: np.ndarray | None = None,
    contradictory: bool = False,
) -> Instances:
    """Instances of given data; with ``W`` the tokens are those it attends to most."""
    B, n, T, d = X.shape
    rng = np.random.default_rng(B + n + T + d)
    p = problems.TokenProblem(X, z, np.ones((B, n)), rng.standard_normal((B, d)), mask=mask)
    if W is not None:
        logits = np.einsum("bntd,bde,bne->bnt", X, W, z)
        tokens = (logits if mask is None else np.where(mask, logits, -np.inf)).argmax(axis=-1)
    elif tokens is None:
        tokens = p.optimal
    reachable = np.zeros(B)
    if W is not None:
        F = features(p, tokens)
        sizes = np.where(F.lengths > 0.0, F.lengths, 1.0) * length(W)[:, None, None]
        seen = np.where(F.counted, F.margins(W) / sizes, np.inf).min(axis=(1, 2))
        reachable = np.clip(seen.astype(float), 0.0, 1.0)
    return Instances(p, np.asarray(tokens), reachable, np.full(B, contradictory))


def gaussian(rng: np.random.Generator, B: int, n: int, T: int, d: int) -> tuple[Any, Any, Any]:
    """Tokens, queries, and a matrix to select tokens by."""
    draw = rng.standard_normal
    return draw((B, n, T, d)), draw((B, n, d)), draw((B, d, d))


def visible(rng: np.random.Generator, B: int, n: int, T: int, share: float) -> np.ndarray:
    """A mask under which each row sees something."""
    mask = rng.random((B, n, T)) < share
    mask[..., 0] |= ~mask.any(axis=-1)
    return mask


# (n, T, d), instances: many samples, many tokens, one sample, two tokens, one feature, d large
RANDOM_SHAPES = {
    (5, 5, 8): 3000,
    (5, 5, 10): 2000,
    (2, 3, 2): 3000,
    (3, 4, 3): 2000,
    (1, 6, 3): 1000,
    (1, 2, 1): 500,
    (4, 2, 5): 2000,
    (6, 2, 2): 1500,
    (3, 3, 1): 500,
    (6, 6, 2): 500,  # 30 constraints for 4 numbers
    (8, 4, 3): 800,
    (10, 5, 20): 600,
    (20, 10, 100): 20,
    (3, 5, 60): 580,
    (4, 5, 6): 2000,
}


def random_instances(shape: tuple[int, int, int], kind: str) -> Instances:
    """A quarter of the shape's instances: sphere or normal data, masked or not, by ``kind``."""
    (n, T, d), B = shape, RANDOM_SHAPES[shape] // 4
    rng = np.random.default_rng([n, T, d, KINDS.index(kind)])
    if kind == "sphere, optimal tokens":
        p = problems.sphere(n=n, T=T, d=d, trials=B, rng=rng)
        return made(p.X, p.z, p.optimal)
    X, z, W = gaussian(rng, B, n, T, d)
    if kind == "normal, tokens of a known W":
        return made(X, z, W=W)
    if kind == "normal, any tokens":
        return made(X, z, rng.integers(T, size=(B, n)))
    mask = visible(rng, B, n, T, 0.6)
    return made(X, z, mask=mask)


KINDS = [
    "sphere, optimal tokens",
    "normal, tokens of a known W",
    "normal, any tokens",
    "normal, masked",
]


def duplicates(selected: bool) -> Instances:
    """One token appears twice, the selected one (no W can tell them apart) or another."""
    rng = np.random.default_rng(100 + selected)
    X, z, W = gaussian(rng, 250, 3, 4, 4)
    tokens = np.einsum("bntd,bde,bne->bnt", X, W, z).argmax(axis=-1)
    b, i = np.arange(250), rng.integers(3, size=250)
    own = tokens[b, i]
    X[b, i, (own + 1) % 4] = X[b, i, own] if selected else X[b, i, (own + 2) % 4]
    return made(X, z, tokens, contradictory=True) if selected else made(X, z, W=W)


def everything_twice() -> Instances:
    """Whole samples repeated: every constraint comes twice and the Gram matrix is singular."""
    X, z, W = gaussian(np.random.default_rng(102), 150, 3, 4, 4)
    return made(np.concatenate([X, X], axis=1), np.concatenate([z, z], axis=1), W=W)


def collinear() -> Instances:
    """All queries are multiples of one vector, by powers of two and by signs."""
    rng = np.random.default_rng(103)
    X, z, W = gaussian(rng, 300, 4, 4, 5)
    factor = 2.0 ** rng.integers(-20, 20, size=(300, 4)) * rng.choice([-1, 1], size=(300, 4))
    return made(X, factor[..., None] * z[:, :1], W=W)


def opposite() -> Instances:
    """Two samples with the same tokens and selection, and queries z and -2^k z."""
    rng = np.random.default_rng(104)
    X, z, _ = gaussian(rng, 250, 2, 4, 5)
    X[:, 1] = X[:, 0]
    z[:, 1] = -z[:, 0] * 2.0 ** rng.integers(-20, 20, size=(250, 1))
    return made(X, z, np.repeat(rng.integers(4, size=(250, 1)), 2, axis=1), contradictory=True)


def ladder() -> Instances:
    """The same with z_2 = -z_1 + e u: barely feasible, relative margin like e = 1e-2 ... 1e-13."""
    rng = np.random.default_rng(105)
    e = np.repeat(10.0 ** -np.arange(2.0, 14.0), 50)
    X, z, _ = gaussian(rng, len(e), 2, 3, 6)
    X[:, 1] = X[:, 0]
    z[:, 1] = e[:, None] * z[:, 1] - z[:, 0]
    found = made(X, z, np.zeros((len(e), 2), int))
    # a W that works: c (a z' + b u') where c has margins on the differences, both sides e
    difference = X[:, 0, :1] - X[:, 0, 1:]
    c = np.linalg.pinv(difference) @ np.ones((len(e), 2, 1))
    r = np.linalg.pinv(z) @ np.ones((len(e), 2, 1))
    W = c @ r.swapaxes(1, 2)
    F = features(found.problem, found.tokens)
    sizes = np.where(F.counted, F.lengths, 1.0) * length(W)[:, None, None]
    seen = np.where(F.counted, F.margins(W) / sizes, np.inf).min(axis=(1, 2))
    return found._replace(reachable=np.clip(seen.astype(float), 0.0, 1.0))


def integers(d: int) -> Instances:
    """Entries in {-1, 0, 1}: ties, zero differences, zero queries, exact contradictions."""
    rng, B = np.random.default_rng(106 + d), {1: 100, 2: 250}[d]
    X = rng.integers(-1, 2, size=(B, 3, 3, d)).astype(float)
    z = rng.integers(-1, 2, size=(B, 3, d)).astype(float)
    found = made(X, z, np.zeros((B, 3), int))
    F = features(found.problem, found.tokens)
    return found._replace(contradictory=(F.counted & (F.lengths == 0.0)).any(axis=(1, 2)))


def planted_integers() -> Instances:
    """Small integers with the tokens of a known W: many constraints bind at once."""
    rng = np.random.default_rng(109)
    X = rng.integers(-3, 4, size=(300, 4, 4, 3)).astype(float)
    z = rng.integers(-3, 4, size=(300, 4, 3)).astype(float)
    return made(X, z, W=rng.integers(-2, 3, size=(300, 3, 3)).astype(float))


def inside_the_hull() -> Instances:
    """The selected token is the midpoint of two others: no W puts it on top."""
    rng = np.random.default_rng(110)
    X = 2.0 * rng.integers(-50, 51, size=(200, 3, 4, 5))
    X[:, 1, 0] = (X[:, 1, 1] + X[:, 1, 2]) / 2.0
    z = rng.integers(-50, 51, size=(200, 3, 5)).astype(float)
    return made(X, z, np.zeros((200, 3), int), contradictory=True)


def zero_query() -> Instances:
    """A query of zeros gives all tokens the same logit."""
    X, z, _ = gaussian(np.random.default_rng(111), 100, 3, 3, 6)
    z[:, 1] = 0.0
    return made(X, z, contradictory=True)


def more_constraints_than_numbers(shape: tuple[int, int, int]) -> Instances:
    """m > d^2 with the tokens of a known W, whose margin then is small."""
    rng = np.random.default_rng(list(shape))
    X, z, W = gaussian(rng, 150, *shape)
    return made(X, z, W=W)


def global_scale() -> Instances:
    """Tokens and queries of each instance multiplied by 1e-8 to 1e8 each."""
    rng = np.random.default_rng(112)
    X, z, W = gaussian(rng, 250, 4, 4, 5)
    a, b = 10.0 ** rng.uniform(-8, 8, size=(2, 250))
    return made(X * a[:, None, None, None], z * b[:, None, None], W=W)


def mixed_scale(token: bool) -> Instances:
    """Every query, or every token, of its own size between 1e-8 and 1e8 in one instance."""
    rng = np.random.default_rng(113 + token)
    X, z, W = gaussian(rng, 300, 4, 4, 6)
    if token:
        X *= 10.0 ** rng.uniform(-8, 8, size=(300, 4, 4, 1))
    else:
        z *= 10.0 ** rng.uniform(-8, 8, size=(300, 4, 1))
    return made(X, z, W=W)


def near_duplicates() -> Instances:
    """Tokens 1e-6 to 1e-2 away from each other, around a large common part."""
    rng = np.random.default_rng(115)
    X, z, W = gaussian(rng, 200, 3, 4, 6)
    X = 10.0 * X[:, :, :1] + 10.0 ** rng.uniform(-6, -2, size=(200, 1, 1, 1)) * X
    return made(X, z, W=W)


def near_collinear() -> Instances:
    """Queries 1e-9 to 1e-1 away from one vector, so that features are nearly the same."""
    rng = np.random.default_rng(116)
    X, z, W = gaussian(rng, 250, 4, 4, 6)
    z = z[:, :1] + 10.0 ** rng.uniform(-9, -1, size=(250, 1, 1)) * z
    return made(X, z, W=W)


def flat(shape: tuple[int, int, int], uneven: bool = False) -> Instances:
    """All constraints of a known W hold by the same small margin, 1e-1 to 1e-10: a thin cone.

    ``uneven`` lengths, .01 to 100, are harder: the rounding of W moves a long row by more.
    """
    rng = np.random.default_rng([118, *shape])
    X, z, W = gaussian(rng, 100, *shape)
    image = np.einsum("bde,bne->bnd", W, z)
    unit = (image / np.linalg.norm(image, axis=-1, keepdims=True))[:, :, None]
    off = X - (X * unit).sum(axis=-1, keepdims=True) * unit
    e = 10.0 ** -rng.uniform(1.0, 10.0, size=(100, 1, 1, 1))
    X = -off - e * np.linalg.norm(off, axis=-1, keepdims=True) * unit
    X[:, :, 0] = 0.0
    if uneven:
        X *= 10.0 ** rng.uniform(-1, 1, size=(100, *shape[:2], 1))
        z *= 10.0 ** rng.uniform(-1, 1, size=(100, shape[0], 1))
    return made(X, z, W=W)


def hidden_contradictions() -> Instances:
    """Duplicates of the selected tokens and a zero query, all behind the mask."""
    rng = np.random.default_rng(117)
    X, z, W = gaussian(rng, 200, 4, 5, 6)
    mask = np.ones((200, 4, 5), bool)
    mask[:, 0, 3:] = mask[:, 1, 1:] = mask[:, 2, 4] = False
    tokens = np.where(mask, np.einsum("bntd,bde,bne->bnt", X, W, z), -np.inf).argmax(axis=-1)
    own = np.take_along_axis(X, tokens[..., None, None], axis=2)
    X, z[:, 1] = np.where(mask[..., None], X, own), 0.0
    return made(X, z, W=W, mask=mask)


HARD = {
    "the selected token twice": functools.partial(duplicates, True),
    "another token twice": functools.partial(duplicates, False),
    "everything twice": everything_twice,
    "collinear queries": collinear,
    "opposite queries": opposite,
    "barely feasible": ladder,
    "integers, d = 1": functools.partial(integers, 1),
    "integers, d = 2": functools.partial(integers, 2),
    "integers of a known W": planted_integers,
    "inside the hull": inside_the_hull,
    "a zero query": zero_query,
    "140 constraints, 9 numbers": functools.partial(more_constraints_than_numbers, (20, 8, 3)),
    "100 constraints, 4 numbers": functools.partial(more_constraints_than_numbers, (20, 6, 2)),
    "30 constraints, 1 number": functools.partial(more_constraints_than_numbers, (10, 4, 1)),
    "global scale": global_scale,
    "queries of mixed scale": functools.partial(mixed_scale, False),
    "tokens of mixed scale": functools.partial(mixed_scale, True),
    "nearly the same tokens": near_duplicates,
    "nearly the same queries": near_collinear,
    "a thin cone, 12 constraints": functools.partial(flat, (4, 4, 5)),
    "a thin cone, uneven lengths": functools.partial(flat, (6, 5, 2), True),
    "a thin cone, 60 constraints": functools.partial(flat, (12, 6, 3)),
    "contradictions behind the mask": hidden_contradictions,
}


@functools.cache
def outcomes(name: str | tuple[int, int, int], kind: str = "") -> Counter[str]:
    """The table: statuses of one family, every answer checked on the way."""
    if isinstance(name, str):
        return judge(HARD[name]())
    return judge(random_instances(name, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", RANDOM_SHAPES, ids=str)
def test_random_instances(shape: tuple[int, int, int], kind: str) -> None:
    counts = outcomes(shape, kind)
    n, T, d = shape
    if d >= max(T - 1, n, 2) and kind != "normal, masked":
        assert set(counts) == {"optimal"}  # Theorems 1 and 8; on a line the sphere has two points
    if kind == "normal, tokens of a known W":
        assert counts["infeasible"] == 0


@pytest.mark.parametrize("name", HARD)
def test_hard_instances(name: str) -> None:
    outcomes(name)


def test_the_counts() -> None:
    """20,000 and 5,000 instances, and each kind of answer that the contract knows occurs."""
    random = sum((outcomes(s, kind) for s in RANDOM_SHAPES for kind in KINDS), Counter())
    hard = sum((outcomes(name) for name in HARD), Counter())
    assert random.total() == 20_000
    assert hard.total() == 5_000
    assert random["optimal"] > 17_000
    assert random["infeasible"] > 500
    assert random["unresolved"] == 0
    assert hard["optimal"] > 2_500
    assert hard["infeasible"] > 1_000
    assert 0 < hard["unresolved"] < 600  # the ladder below 1e-6 and the thinnest cones


SIZES = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-2.0, 2.0, width=16),
    st.floats(1e-8, 1e8),
    st.floats(-1e8, -1e-8),
)


@st.composite
def small_instances(draw: st.DrawFn) -> Instances:
    """One instance as a batch of one; entries repeat, so ties and contradictions are common."""
    n, T, d = draw(st.integers(1, 4)), draw(st.integers(2, 4)), draw(st.integers(1, 3))
    entries = st.integers(-2, 2).map(float) if draw(st.booleans()) else SIZES
    X = draw(arrays(float, (1, n, T, d), elements=entries))
    z = draw(arrays(float, (1, n, d), elements=entries))
    mask = None
    if draw(st.booleans()):
        mask = draw(arrays(bool, (1, n, T), elements=st.booleans()))
        mask[..., 0] |= ~mask.any(axis=-1)
    if draw(st.booleans()):
        return made(X, z, W=draw(arrays(float, (1, d, d), elements=st.integers(1, 5).map(float))))
    return made(X, z, mask=mask)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(small_instances())
def test_any_small_instance(instance: Instances) -> None:
    judge(instance)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(small_instances())
def test_any_small_instance_by_least_distance(instance: Instances) -> None:
    judge(instance, method="nnls")


def test_least_distance_answers_the_hard_instances_too() -> None:
    for name in (
        "integers, d = 2",
        "barely feasible",
        "queries of mixed scale",
        "everything twice",
    ):
        assert judge(HARD[name](), method="nnls") == outcomes(name)
