"""Reference figures of the papers, each test named after its figure or table.

Numbers are means over seeds of independent programs; a figure may differ from them by four
standard errors of the difference, or by the tolerance stated beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from attnlab import models, optim, problems

Arrays: TypeAlias = dict[str, np.ndarray]
MaxMargin = Callable[..., np.ndarray | None]


def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Of matrices, for each trial."""
    lengths = np.linalg.norm(A, axis=(-1, -2)) * np.linalg.norm(B, axis=(-1, -2))
    return (A * B).sum(axis=(-1, -2)) / np.where(lengths > 0, lengths, np.inf)


def at(run: optim.Run, name: str, step: int) -> np.ndarray:
    """One recorded row."""
    (row,) = np.flatnonzero(run.history["step"] == step)
    return np.asarray(run.history[name][row])


# --- multihead, Figures 2 and 3: model DM1

DM1 = problems.tokenized_mixture(n=100, trials=20, rng=0)
GAMMA_ATTN = 2.0 * np.sqrt(10 / 2)  # S sqrt(T / 2)


def margin(run: optim.Run) -> np.ndarray:
    """min_i y_i f_i / |U|_F."""
    size = np.sqrt((run.params["U"] ** 2).sum(axis=(-1, -2, -3)))
    return (run.problem.y * run.predict()).min(axis=-1) / size


DM1_TABLE: dict[int, dict[str, tuple[float, float]]] = {  # mean and sd over 20 seeds at K = 1000
    1: {
        "train": (5.77e-5, 0.08e-5),
        "test": (5.89e-5, 0.16e-5),
        "attention": (0.894, 0.011),
        "margin": (3.85, 0.07),
    },
    4: {
        "train": (6.26e-5, 0.13e-5),
        "test": (6.41e-5, 0.31e-5),
        "attention": (0.769, 0.017),
        "margin": (3.21, 0.09),
    },
}


@pytest.fixture(scope="module")
def dm1() -> dict[int, optim.Run]:
    """GD with step 1 from zero, by number of heads."""
    return {
        heads: optim.train(
            models.MultiHead(heads=heads),
            DM1,
            optim.GD(1.0),
            1_000,
            record=["loss", "attention", "accuracy"],
            every=[1, 2, 10, 100, 200, 500],
        )
        for heads in (1, 4, 16)
    }


@pytest.mark.parametrize("heads", [1, 4])
def test_multihead_dm1_table_of_gd_at_a_thousand_steps(
    heads: int, dm1: dict[int, optim.Run]
) -> None:
    run = dm1[heads]
    found = {
        "train": run.loss(),
        "test": run.loss(DM1.fresh(300, rng=1)),
        "attention": run.history["attention"][-1].mean(axis=-1),
        "margin": margin(run),
    }
    for name, (mean, sd) in DM1_TABLE[heads].items():
        assert found[name].shape == (20,)
        four_errors = 4.0 * sd * np.sqrt(2.0 / 20.0)
        assert abs(found[name].mean() - mean) < four_errors, name
        assert sd / 2.5 < found[name].std(ddof=1) < sd * 2.5, name
        assert (abs(found[name] - mean) < 6.0 * sd).all(), name
    assert (found["margin"] < GAMMA_ATTN).all()


def test_multihead_figure_2_more_heads_at_a_constant_step_are_slower(
    dm1: dict[int, optim.Run],
) -> None:
    """From zero, W is slowed by 1 / H: higher loss, less attention, smaller margin."""
    for few, many in ((1, 4), (4, 16)):
        assert (dm1[few].loss() < dm1[many].loss()).all()
        assert (margin(dm1[few]) > margin(dm1[many])).all()
        attention = [dm1[h].history["attention"][-1].mean(axis=-1) for h in (few, many)]
        assert (attention[0] > attention[1]).all()
    assert abs(dm1[16].loss().mean() - 9.2e-5) < 0.5e-5


def test_multihead_figure_2_overshoots_first_and_then_decays_like_one_over_k(
    dm1: dict[int, optim.Run],
) -> None:
    for run in dm1.values():
        early = np.maximum(at(run, "loss", 1), at(run, "loss", 2))
        assert early.mean() > np.log(2.0)
        np.testing.assert_allclose(at(run, "loss", 0), np.log(2.0), rtol=1e-14)
        assert (at(run, "accuracy", 10) == 1.0).mean() > 0.9
        assert (at(run, "accuracy", 100) == 1.0).all()
    for first, last in ((100, 200), (500, 1_000)):
        ratio = at(dm1[1], "loss", first) / at(dm1[1], "loss", last)
        np.testing.assert_allclose(ratio, last / first, rtol=0.15)
    fresh = DM1.fresh(300, rng=2)
    assert (dm1[1].accuracy(fresh) == 1.0).all()


@pytest.mark.parametrize(
    "rule",
    [lambda heads: optim.GD(float(np.sqrt(heads))), lambda _: optim.Adam(0.06)],
    ids=["gd-sqrt-heads", "adam"],
)
def test_multihead_figure_3_more_heads_are_faster_and_lose_margin(
    rule: Callable[[int], Any],
) -> None:
    p = problems.tokenized_mixture(n=100, trials=5, rng=0)
    runs = [
        optim.train(models.MultiHead(heads=heads), p, rule(heads), 1_000, every=[])
        for heads in (1, 4, 16)
    ]
    losses, margins = [r.loss() for r in runs], [margin(r) for r in runs]
    for few, many in ((0, 1), (1, 2)):
        assert (losses[few] > losses[many]).all()
        assert np.median(margins[few]) > np.median(margins[many]) + 0.05
    assert all((m > 0).all() for m in margins)


# --- multihead, Figures 4 and 5: model DM2

DM2 = problems.planted(n=1_000, trials=5, rng=0)


@pytest.fixture(scope="module")
def dm2() -> dict[str, optim.Run]:
    """Six hundred steps from zero, step sqrt(H)."""
    settings: dict[str, tuple[int, Any]] = {
        "gd-1": (1, optim.GD(1.0)),
        "gd-16": (16, optim.GD(4.0)),
        "momentum-1": (1, optim.Momentum(1.0, 0.9)),
        "adam-1": (1, optim.Adam(0.01)),
        "adam-16": (16, optim.Adam(0.01)),
    }
    return {
        name: optim.train(models.MultiHead(heads=heads), DM2, rule, 600, every=[])
        for name, (heads, rule) in settings.items()
    }


def test_multihead_figures_4_and_5_more_heads_are_faster_and_momentum_is_far_ahead(
    dm2: dict[str, optim.Run],
) -> None:
    loss = {name: float(np.median(run.loss())) for name, run in dm2.items()}
    assert loss["gd-16"] < 0.8 * loss["gd-1"]
    assert loss["adam-16"] < 0.8 * loss["adam-1"]
    assert loss["momentum-1"] < 0.3 * loss["gd-1"]


def test_multihead_figures_4_and_5_the_planted_model_is_found(dm2: dict[str, optim.Run]) -> None:
    """In the median: with large steps some seeds are stuck."""
    W = DM2.teacher.W
    for name in ("gd-1", "gd-16", "momentum-1", "adam-16"):
        run = dm2[name]
        alignment = cosine(run.params["W"].mean(axis=-3), W)
        assert np.median(alignment) > 0.99, name
        assert np.median(margin(run)) > 0.08, name
        assert np.median(run.accuracy(DM2.fresh(3_000, rng=1))) > 0.99, name


def test_multihead_dm2_keeps_83_percent_of_samples() -> None:
    """The reading with W* ~ N(0, 1) and |U*|_F = 1."""
    X = np.random.default_rng(0).standard_normal((5, 4_000, 10, 5))
    kept = (np.abs(DM2.teacher(X)) > 0.2).mean()
    assert abs(kept - 0.83) < 0.04


# --- bias, Figure 2: Example 1, eight seeds, W_0 = 0

FIGURE_2 = problems.orthogonal(n=20, T=6, d=100, U=1.0, rho=0.05, sigma=0.0, trials=8, rng=0)
BIAS = models.Attention(loss="exponential", start="zero")
SEEN = [200, 500, 1_000, 2_000]
RACE: dict[str, Any] = {
    "gd": optim.GD(0.25),
    "ngd": optim.NormalizedGD(0.025),
    "polyak": optim.PolyakStep(max_step=10.0),
    "heavy ball": optim.NormalizedGD(0.025, momentum=0.9),
    "averaged": optim.NormalizedGD(0.025, momentum=0.9, averaged=True),
}


def stacked(p: problems.TokenProblem, tokens: np.ndarray, max_margin: MaxMargin) -> np.ndarray:
    """The max-margin direction of every trial."""
    found = [max_margin(X, z, t) for X, z, t in zip(p.X, p.z, tokens, strict=True)]
    return np.stack([W for W in found if W is not None])


@pytest.fixture(scope="module")
def margins_2(max_margin: MaxMargin) -> np.ndarray:
    return stacked(FIGURE_2, FIGURE_2.optimal, max_margin)


@pytest.fixture(scope="module")
def race(margins_2: np.ndarray) -> dict[str, optim.Run]:
    record = [
        *("loss", "excess", "norm", "attention"),
        {"align": lambda params, _: cosine(params["W"], margins_2)},
    ]
    return {
        name: optim.train(BIAS, FIGURE_2, rule, 2_000, record=record, every=SEEN)
        for name, rule in RACE.items()
    }


FIGURE_2_TABLE: dict[str, dict[int, tuple[float, float]]] = {  # mean phi and mean alignment
    "gd": {200: (0.205, 0.665), 500: (0.274, 0.667), 1000: (0.346, 0.746), 2000: (0.454, 0.865)},
    "ngd": {200: (0.334, 0.724), 500: (0.526, 0.904), 1000: (0.813, 0.974), 2000: (0.989, 0.9959)},
    "polyak": {
        200: (0.849, 0.979),
        500: (0.954, 0.992),
        1000: (0.980, 0.9948),
        2000: (0.990, 0.9960),
    },
    "heavy ball": {
        200: (0.984, 0.9952),
        500: (1.000, 0.9989),
        1000: (1.0, 0.9995),
        2000: (1.0, 0.9998),
    },
    "averaged": {
        200: (0.328, 0.709),
        500: (0.519, 0.899),
        1000: (0.808, 0.973),
        2000: (0.988, 0.9958),
    },
}


@pytest.mark.parametrize("name", FIGURE_2_TABLE)
def test_bias_figure_2_table(name: str, race: dict[str, optim.Run]) -> None:
    """Seeds differ: |W_mm| has quartiles 8.1 and 8.9, and 1 - align a spread of one half."""
    for step, (phi, align) in FIGURE_2_TABLE[name].items():
        assert abs(at(race[name], "attention", step).mean() - phi) < 0.04
        off = 1.0 - at(race[name], "align", step).mean()
        assert 0.5 < off / (1.0 - align) < 1.8


def test_bias_figure_2_margins(margins_2: np.ndarray) -> None:
    """Lambda is about 8, and nearly every token is a support vector."""
    size = np.linalg.norm(margins_2, axis=(1, 2))
    assert 7.8 < np.median(size) < 8.6
    logits = np.einsum("bntd,bde,bne->bnt", FIGURE_2.X, margins_2, FIGURE_2.z)
    best = np.take_along_axis(logits, FIGURE_2.optimal[..., None], axis=-1)
    others = np.arange(6) != FIGURE_2.optimal[..., None]
    assert (np.abs((best - logits)[others] - 1.0) < 1e-7).mean() > 0.98


def test_bias_figure_2_acceptance(race: dict[str, optim.Run]) -> None:
    """Over two hundred seeds NGD aligns to .93 - .99 in 1000 steps and grows by .92 - .99."""
    ngd, polyak, gd = race["ngd"], race["polyak"], race["gd"]
    assert at(ngd, "align", 1_000).mean() >= 0.95
    assert (at(ngd, "align", 1_000) >= 0.92).all()
    assert at(ngd, "align", 2_000).mean() >= 0.992
    assert at(ngd, "attention", 2_000).mean() >= 0.98
    growth = at(ngd, "norm_W", 2_000) / (0.025 * 2_000)
    assert 0.93 <= growth.mean() <= 1.0
    assert ((growth >= 0.91) & (growth <= 1.0)).all()
    assert at(polyak, "align", 200).mean() >= 0.96
    assert at(gd, "align", 2_000).mean() <= 0.94
    assert (at(gd, "align", 2_000) <= 0.94).all()
    assert at(gd, "attention", 2_000).mean() <= 0.52
    assert abs(at(race["heavy ball"], "norm_W", 2_000).mean() - 494.9) < 5.0
    assert abs(at(gd, "norm_W", 2_000).mean() - 9.25) < 0.7
    excess = {name: at(run, "excess", 2_000).mean() for name, run in race.items()}
    assert 2e-3 < excess["ngd"] < 7e-3
    assert 2e-3 < excess["polyak"] < 6e-3
    assert 0.2 < excess["gd"] < 0.35
    np.testing.assert_allclose(BIAS.floor(FIGURE_2), np.exp(-1.0), rtol=1e-12)


def test_bias_figure_2_momentum_is_its_ten_times_longer_step(race: dict[str, optim.Run]) -> None:
    """Heavy ball at t is NGD at about 10 t; the averaged form gives nothing."""
    ball, ngd, averaged = race["heavy ball"], race["ngd"], race["averaged"]
    np.testing.assert_allclose(at(ball, "align", 200), at(ngd, "align", 2_000), atol=3e-3)
    np.testing.assert_allclose(at(ball, "attention", 200), at(ngd, "attention", 2_000), atol=2e-2)
    np.testing.assert_allclose(at(ball, "norm_W", 200), at(ngd, "norm_W", 2_000), rtol=0.1)
    for step in SEEN:
        for name in ("align", "attention"):
            lag = at(ngd, name, step) - at(averaged, name, step)
            assert abs(lag.mean()) < 0.025
            assert lag.mean() > -1e-3
        np.testing.assert_allclose(
            at(averaged, "norm_W", step), at(ngd, "norm_W", step), atol=1.6 * 9 * 0.025
        )


def test_bias_figure_2_polyak_leads_and_is_caught(race: dict[str, optim.Run]) -> None:
    ngd, polyak, gd = (race[name] for name in ("ngd", "polyak", "gd"))
    for step in (200, 500, 1_000):
        assert (at(polyak, "excess", step) < at(ngd, "excess", step)).all()
        assert (at(ngd, "excess", step) < at(gd, "excess", step)).all()
    np.testing.assert_allclose(at(polyak, "align", 2_000), at(ngd, "align", 2_000), atol=3e-3)


def test_bias_figure_2_the_cap_binds_only_at_the_end(race: dict[str, optim.Run]) -> None:
    """A cap of 100 is out of reach for a thousand steps, and for most seeds for two."""
    capped = optim.NormalizedGD(0.025, max_step=100.0)
    runs = [optim.train(BIAS, FIGURE_2, rule, 1_000, every=[]) for rule in (RACE["ngd"], capped)]
    np.testing.assert_array_equal(runs[0].params["W"], runs[1].params["W"])
    later = optim.train(BIAS, FIGURE_2, capped, 2_000, every=[]).params["W"]
    same = (later == race["ngd"].params["W"]).all(axis=(1, 2))
    assert same.mean() > 0.5
    apart = np.linalg.norm(later - race["ngd"].params["W"], axis=(1, 2))
    assert (apart < 0.05 * np.linalg.norm(later, axis=(1, 2))).all()


def test_bias_figure_2_long_run(margins_2: np.ndarray) -> None:
    record = ["norm", {"align": lambda params, _: cosine(params["W"], margins_2)}]
    table: dict[str, list[float]] = {
        "ngd": [2.4e-2, 3.8e-3, 1.18e-3, 4.8e-4, 1.9e-4],
        "gd": [0.286, 0.149, 0.055, 0.019, 0.0089],
    }
    for name, expected in table.items():
        run = optim.train(
            BIAS, FIGURE_2, RACE[name], 16_000, record=record, every=[1000, 2000, 4000, 8000]
        )
        off = 1.0 - run.history["align"][1:].mean(axis=1)
        assert (np.abs(np.log(off / expected)) < np.log(2.0)).all(), (name, off)
        if name == "ngd":
            slopes = np.diff(np.log2(off))
            assert (slopes < -1.0).all()  # faster than Theorem 1's (log t)^2 / t
            growth = run.history["norm_W"][1:] / (0.025 * run.history["step"][1:, None])
            printed = [0.944, 0.963, 0.980, 0.990, 0.995]
            np.testing.assert_allclose(growth.mean(axis=1), printed, atol=0.015)


def test_bias_figure_5_antipodal_means_rank_the_methods_alike(max_margin: MaxMargin) -> None:
    p = problems.orthogonal(n=20, T=6, d=100, rho=0.05, antipodal=True, trials=4, rng=0)
    S = stacked(p, p.optimal, max_margin)
    record = ["excess", {"align": lambda params, _: cosine(params["W"], S)}]
    rules = {**RACE, "polyak": optim.PolyakStep(max_step=5.0)}
    run = {
        name: optim.train(BIAS, p, rules[name], 500, record=record, every=[])
        for name in ("gd", "ngd", "polyak", "heavy ball")
    }
    for name, order in (("excess", 1.0), ("align", -1.0)):
        ranks = [order * run[rule].history[name][-1] for rule in ("polyak", "ngd", "gd")]
        assert (ranks[0] < ranks[1]).all()
        assert (ranks[1] < ranks[2]).all()


# --- bias, Figure 3: joint training on model DM


def test_bias_figure_3_joint_training_ranks_the_methods(max_margin: MaxMargin) -> None:
    p = problems.gaussian(n=10, T=2, d=100, rho=0.1, alpha=3.0, trials=8, rng=0)
    assert p.relevant is not None
    S = stacked(p, p.relevant.argmax(axis=-1), max_margin)
    model = models.Attention(loss="exponential", start="zero", train_head=True)
    rules: dict[str, Any] = {
        "polyak": optim.PolyakStep(max_step=10.0),
        "ngd": optim.DecayedNormalizedGD(0.002, decay=False),
        "joint ngd": optim.JointNormalizedGD(0.002),
        "gd": optim.GD(0.02),
        "equation 10": optim.DecayedNormalizedGD(0.002),
    }
    record = [
        *("loss", "norm", "attention", "min_attention"),
        {"align": lambda params, _: cosine(params["W"], S)},
    ]
    runs = {
        name: optim.train(model, p, rule, 4_000, record=record, every=[1_000, 2_000])
        for name, rule in rules.items()
    }
    loss = [np.median(at(runs[name], "loss", 4_000)) for name in ("ngd", "joint ngd", "gd")]
    assert loss[0] < loss[1] < loss[2]
    assert np.median(at(runs["polyak"], "loss", 1_000)) < np.median(at(runs["ngd"], "loss", 1_000))
    ngd, joint = runs["ngd"], runs["joint ngd"]
    for name in ("attention", "align"):
        assert np.median(at(ngd, name, 2_000)) > np.median(at(joint, name, 2_000))
    for name in ("ngd", "joint ngd"):  # phi is monotone from 1/2 (Lemma 11)
        lowest = runs[name].history["min_attention"]
        np.testing.assert_allclose(lowest[0], 0.5, rtol=1e-12)
        assert (np.diff(lowest, axis=0) >= 0).all()
    # the analysed update does nothing visible: W moves by at most sum eta / (t + 1)
    slow = runs["equation 10"]
    assert (slow.history["norm_W"][-1] < 0.002 * np.sum(1.0 / np.arange(1.0, 4_001.0))).all()
    assert (slow.history["loss"][-1] > 0.9).all()
    steps = np.sum(np.arange(1.0, 4_001.0) ** (-2.0 / 3.0))
    assert (slow.history["norm_v"][-1] <= 0.002 * steps * (1 + 1e-12)).all()  # Lemma 10


# --- bias, Figure 8: a bad direction

BAD = problems.bad_direction()
W_MM = np.array([[-0.2097, -0.725], [-0.725, -0.0084]])


def bad_run(c: float, rule: Any, max_margin: MaxMargin) -> optim.Run:
    mm, wrong = max_margin(BAD.X, BAD.z, BAD.optimal), max_margin(BAD.X, BAD.z, np.array([1, 1]))
    assert mm is not None
    assert wrong is not None
    record = [
        "loss",
        {
            "phi": lambda params, p: BIAS.attention(params, p)[[0, 1], p.optimal],
            "align": lambda params, _: cosine(params["W"], mm),
            "wrong": lambda params, _: cosine(params["W"], wrong),
        },
    ]
    start = {"W": -c * np.eye(2) / np.sqrt(2.0)}
    every = [100, 1_000, 5_000]
    return optim.train(BIAS, BAD, rule, 20_000, params=start, record=record, every=every)


def test_bias_figure_8_max_margin_directions(max_margin: MaxMargin) -> None:
    mm = max_margin(BAD.X, BAD.z, BAD.optimal)
    wrong = max_margin(BAD.X, BAD.z, np.array([1, 1]))
    assert mm is not None
    assert wrong is not None
    np.testing.assert_allclose(mm, W_MM, atol=5e-5)
    assert abs(np.linalg.norm(mm) - 1.04656) < 1e-5
    assert abs(cosine(wrong, mm) - 0.4594) < 5e-5
    assert abs(float(BIAS.floor(BAD)) - 0.71263) < 1e-5


@pytest.mark.parametrize("c", [0.1, 0.3])
def test_bias_figure_8_a_small_start_recovers(c: float, max_margin: MaxMargin) -> None:
    gd = bad_run(c, optim.GD(0.1), max_margin)
    ngd = bad_run(c, optim.NormalizedGD(0.025), max_margin)
    assert at(gd, "align", 1_000) >= 0.99
    assert at(ngd, "align", 100) >= 0.99
    assert at(ngd, "align", 1_000) >= 0.9999
    np.testing.assert_allclose(at(ngd, "loss", 20_000), 0.71263, atol=1e-5)
    np.testing.assert_allclose(at(gd, "loss", 20_000), 0.71263, atol=1e-3)
    if c == 0.1:
        np.testing.assert_allclose(at(gd, "phi", 0), [0.537, 0.285], atol=5e-4)
        table = {100: 0.916, 1_000: 0.998, 5_000: 0.9993, 20_000: 0.9996}
        for step, value in table.items():
            assert abs(at(gd, "align", step) - value) < 6e-4
        assert abs(at(ngd, "align", 100) - 0.996) < 6e-4
    else:
        assert abs(at(gd, "phi", 0)[1] - 0.06) < 5e-3


@pytest.mark.parametrize("c", [1.0, 3.0])
def test_bias_figure_8_a_large_start_never_recovers(c: float, max_margin: MaxMargin) -> None:
    gd = bad_run(c, optim.GD(0.1), max_margin)
    ngd = bad_run(c, optim.NormalizedGD(0.025), max_margin)
    for run in (gd, ngd):
        assert at(run, "phi", 20_000)[1] < 1e-3
        np.testing.assert_allclose(at(run, "loss", 20_000), 1.23373, atol=3e-4)
        assert (np.diff(run.history["wrong"]) > 0).all()
    assert at(ngd, "wrong", 20_000) > 0.9999  # the direction of alpha = (2, 2)
    np.testing.assert_allclose(at(ngd, "align", 20_000), 0.4594, atol=2e-3)
    assert (np.diff(gd.history["align"]) > 0).all()  # towards .4594, and slowly
    assert at(gd, "align", 20_000) < 0.4594


# --- bias, Section 3.3: two tokens in closed form

TWO = problems.two_token()
W_0 = np.array([[0.1, 0.3], [-0.2, 0.4]])
OFF_AXIS = 0.29  # |W_0|^2 - (W_0^11)^2
E_1 = np.diag([1.0, 0.0])
TWO_RECORD = [
    {"w": lambda params, _: params["W"].copy(), "align": lambda params, _: cosine(params["W"], E_1)}
]


def test_bias_section_3_3_gradient_descent_grows_like_a_logarithm() -> None:
    printed = {100: 3.542, 1_000: 5.896, 3_000: 7.002, 10_000: 8.2087, 100_000: 10.5127}
    run = optim.train(
        BIAS, TWO, optim.GD(1.0), 100_000, params={"W": W_0}, record=TWO_RECORD, every=printed
    )
    laws = [3.635, 5.911, 7.007, 8.2106, 10.5130]  # log(e^W_0 + t / e), which it approaches
    for (step, value), law in zip(printed.items(), laws, strict=True):
        W = at(run, "w", step)
        assert abs(W[0, 0] - value) < (6e-4 if step <= 3_000 else 6e-5)
        assert abs(np.log(np.exp(0.1) + step / np.exp(1.0)) - law) < 6e-4
        assert 0.0 < law - W[0, 0] < 3.0 * np.log(step) / step
        np.testing.assert_array_equal(W.ravel()[1:], W_0.ravel()[1:])  # only W^11 moves
        exact = W[0, 0] / np.sqrt(W[0, 0] ** 2 + OFF_AXIS)  # equation 3
        np.testing.assert_allclose(at(run, "align", step), exact, rtol=1e-14)
    assert abs(1.0 - at(run, "align", 100_000) - 1.31e-3) < 5e-6


def test_bias_section_3_3_gradient_descent_follows_its_scalar_recursion() -> None:
    """dw = eta e^-phi phi (1 - phi), with phi the sigmoid of w."""
    w, expected = 0.1, [0.1]
    for _ in range(200):
        phi = 1.0 / (1.0 + np.exp(-w))
        w += np.exp(-phi) * phi * (1.0 - phi)
        expected.append(w)
    run = optim.train(BIAS, TWO, optim.GD(1.0), 200, params={"W": W_0}, record=TWO_RECORD)
    np.testing.assert_allclose(run.history["w"][:, 0, 0], expected, rtol=1e-12)


def test_bias_section_3_3_normalized_steps_grow_linearly() -> None:
    """1 - corr = (|W_0|^2 - (W_0^11)^2) / (2 |W_t|^2), also far past where exp underflows."""
    printed = {100: 1.42e-3, 1_000: 1.447e-5, 3_000: 1.61e-6}
    run = optim.train(
        BIAS,
        TWO,
        optim.NormalizedGD(0.1),
        20_000,
        params={"W": W_0},
        record=TWO_RECORD,
        every=[1, *printed],
    )
    for step in run.history["step"]:
        W = at(run, "w", step)
        np.testing.assert_allclose(W[0, 0], 0.1 + 0.1 * step, rtol=1e-11)
        np.testing.assert_array_equal(W.ravel()[1:], W_0.ravel()[1:])
    for step, value in printed.items():
        assert abs(1.0 - at(run, "align", step) - value) < 0.005 * value
        law = OFF_AXIS / (2.0 * np.linalg.norm(at(run, "w", step)) ** 2)
        np.testing.assert_allclose(1.0 - at(run, "align", step), law, rtol=5e-3)


# --- encoder, Section 5.1: acceptance figures A1, A7, A8 (unit tokens, mean pooling, mean loss)


@pytest.mark.parametrize("pooling", ["mean", "sum"])
@pytest.mark.parametrize("scheme", ["lecun", "he", "ntk"])
def test_encoder_a1_gradients_by_central_differences(scheme: str, pooling: str) -> None:
    p = problems.gaussian_regression(n=6, T=4, d=5, unit_tokens=True, rng=1)
    model = models.Encoder(width=9, init=scheme, pooling=pooling)
    params = model.init(p, rng=2)
    grads = model.value_and_grad(params, p)[1]
    h = 1e-6
    for name, array in params.items():
        numeric = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for sign in (1.0, -1.0):
                moved = {k: a.copy() for k, a in params.items()}
                moved[name][index] += sign * h
                ends.append(float(model.value_and_grad(moved, p)[0]))
            numeric[index] = (ends[0] - ends[1]) / (2 * h)
        assert np.abs(numeric - grads[name]).max() < 1e-6, name


ENCODER_DATA = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, trials=3, rng=0)


def encoder_run(width: int, steps: int) -> optim.Run:
    model = models.Encoder(width=width, init="lecun", scaling="sqrt", pooling="mean")
    return optim.train(model, ENCODER_DATA, optim.GD(1.0), steps, rng=0, every=[100])


@pytest.mark.parametrize(
    ("width", "expected", "factor"), [(10, 0.21, 2.0), (1_000, 0.0086, 2.5)], ids=["10", "1000"]
)
def test_encoder_a7_relative_loss_at_epoch_100(width: int, expected: float, factor: float) -> None:
    """Figure 2a: step 1 is stable, and wider networks are faster."""
    run = encoder_run(width, 100)
    ratio = np.median(run.history["loss"][-1] / run.history["loss"][0])
    assert expected / factor < ratio < expected * factor
    assert (run.status == "completed").all()


def test_encoder_a7_and_a8_width_100_at_epochs_100_and_400() -> None:
    run = encoder_run(100, 400)
    ratio = np.median(run.history["loss"] / run.history["loss"][0], axis=1)
    assert 0.05 / 2.2 < ratio[1] < 0.05 * 2.2
    assert ratio[2] < 1e-4
    assert (run.history["loss"][-1] / run.history["loss"][0] < 1e-3).all()
