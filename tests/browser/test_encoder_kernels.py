"""The encoder's kernel and Hessian by block, the replay: shown is what attnlab finds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import figures, theory
from attnbook.widgets import stored, sweeps_encoder
from attnbook.widgets.encoder_kernels import BLOCKS, DRAWS, WIDTHS, limits, many
from attnlab import models, ntk, problems

NAMES = ("Cx", "tau0", "pool")


def marks(root, name: str):
    return json.loads(root.get_attribute(f"data-{name}"))


def median_distances(scaling: str, k: int, which: int) -> np.ndarray:
    """The medians at one width; the generator has to pass all widths and scalings before it."""
    problem = problems.gaussian_regression(n=6, T=5, d=8, unit_tokens=True, rng=0)
    trials, rng, goals = many(problem, DRAWS), np.random.default_rng(1), limits(problem)
    for name in ("linear", "sqrt"):
        for at, width in enumerate(WIDTHS):
            model = models.Encoder(width, "ntk", name)
            params = model.init(trials, rng)
            if (name, at) == (scaling, k):
                found = ntk.empirical(model, params, trials, by_group=True)
                K = np.stack([found[block] for block in BLOCKS])
                size = np.linalg.norm(ntk.limiting_encoder(problem))
                far = np.linalg.norm(K - goals[which][:, None], axis=(-2, -1)) / size
                return np.median(far, axis=-1)
    raise AssertionError


@pytest.mark.parametrize(
    ("scaling", "k", "limit"),
    [("linear", 0, "corrected"), ("linear", 6, "corrected"), ("sqrt", 3, "corrected")],
)
def test_kernel_blocks_shows_distances(explorable, scaling: str, k: int, limit: str) -> None:
    _, root = explorable("kernel_blocks", {"scaling": scaling, "k": k, "limit": limit})
    assert marks(root, "errors") == pytest.approx(median_distances(scaling, k, 0), rel=1e-5)


def test_two_blocks_fall_like_the_root_and_two_like_the_width(explorable) -> None:
    _, root = explorable("kernel_blocks", {"scaling": "linear"})
    exponents = marks(root, "exponents")
    assert exponents[:2] == pytest.approx([-0.5, -0.5], abs=0.12)
    assert exponents[2:] == pytest.approx([-1.0, -1.0], abs=0.2)
    _, root = explorable("kernel_blocks", {"scaling": "sqrt", "k": 8})
    assert np.abs(marks(root, "exponents")).max() < 0.2
    assert float(root.get_attribute("data-spread")) > 0.1


@pytest.mark.parametrize("limit", ["printed", "proof"])
def test_what_is_printed_is_not_the_limit(explorable, limit: str) -> None:
    _, root = explorable("kernel_blocks", {"k": 8, "limit": limit})
    assert marks(root, "errors")[1] > 0.1


@pytest.mark.parametrize(("init", "radius", "k"), [("ntk", 0, 6), ("ntk", 1, 4), ("lecun", 3, 2)])
def test_hessian_map_is_the_stored_sweep(explorable, init: str, radius: int, k: int) -> None:
    _, root = explorable("hessian_map", {"init": init, "radius": radius, "k": k})
    found = stored.load("hessian_map")
    place = (sweeps_encoder.INITS.index(init), list(found["radius"]).index(radius), k)
    norms, bounds = marks(root, "norms"), marks(root, "bounds")
    assert norms == pytest.approx(np.median(found["norm"][place], axis=0), rel=1e-5)
    assert bounds == pytest.approx(np.median(found["bound"][place], axis=0), rel=1e-5)
    assert np.all(np.array(norms[:8]) < bounds)


def test_the_hessian_shrinks_for_one_start_only(explorable) -> None:
    for init, exponent in (("ntk", -0.5), ("lecun", 0.0)):
        _, root = explorable("hessian_map", {"init": init, "block": "whole"})
        assert float(root.get_attribute("data-exponent")) == pytest.approx(exponent, abs=0.15)


@pytest.mark.parametrize(("init", "scaling"), [("lecun", "sqrt"), ("ntk", "linear")])
def test_lazy_replay_is_the_figure(explorable, init: str, scaling: str) -> None:
    state = {"init": init, "scaling": scaling, "width": 10, "k": 9}
    _, root = explorable("lazy_replay", state)
    name = {"sqrt": "encoder.2", "linear": "encoder.9"}[scaling]
    data = figures.get(name).run("paper", 0, width=(10,), init=init)
    moved = np.median(data["moved"][0], axis=0)[9]
    assert marks(root, "moved") == pytest.approx(moved, rel=1e-3)
    loss = np.median(data["loss"][0], axis=0)[9]
    assert float(root.get_attribute("data-loss")) == pytest.approx(loss, rel=1e-3)


def test_the_bets_tell_the_truth(explorable) -> None:
    _, root = explorable("lazy_replay")
    root.locator("[data-bet]").nth(2).click()
    assert root.locator(".al-told").inner_text().startswith("Yes.")
    way = marks(root, "moved")
    assert way[3] > max(way[:3])


def conditions(bars: dict[str, float], alpha: float, loss: float, C: float) -> list[float]:
    """The library's conditions (2) and (3)."""
    e = theory.encoder
    given = e.Bars(**{k: np.array(v) if k in ("Cx", *"QKVO") else v for k, v in bars.items()})
    return [
        float(e.condition_2(given, alpha, loss, C)),
        float(e.condition_3(given, alpha, loss)),
    ]


def test_the_kernel_of_the_conditions_agrees(kernel) -> None:
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(200):
        sizes = {k: float(v) for k, v in zip("QKVO", rng.uniform(0.1, 9.0, 4), strict=True)}
        bars = {"n": int(rng.integers(1, 50)), "T": int(rng.integers(1, 9)), **sizes}
        bars |= {k: float(v) for k, v in zip(NAMES, rng.uniform(0.01, 2, 3), strict=True)}
        cases.append([bars, *map(float, rng.uniform(0.01, 5.0, 3))])
    found = kernel("encoder_conditions", "conditions", cases)
    expected = [conditions(*case) for case in cases]
    assert np.array(found) == pytest.approx(np.array(expected), rel=1e-9)


def test_the_width_cancels_at_constants_1_and_nowhere_else(explorable) -> None:
    _, root = explorable("cancelled_width", {"a": 0})
    assert marks(root, "power")[0] == pytest.approx(0.0, abs=0.01)
    assert root.get_attribute("data-least") == "Infinity"
    _, root = explorable("cancelled_width", {"a": 0.5, "N": 100})
    assert marks(root, "power") == pytest.approx([0.5, 0.5], abs=0.02)
    assert float(root.get_attribute("data-order")) == pytest.approx(3.0, abs=0.1)
    least = float(root.get_attribute("data-least"))
    size = 2.0 * np.sqrt(least)
    bars = {"n": 100, "T": 2, "Cx": 1.0, "tau0": 1 / least, "pool": least**-0.5}
    bars |= dict.fromkeys("QKVO", size)
    assert min(conditions(bars, 8**-0.5, 50.0, least**0.5)) == pytest.approx(1.0, rel=1e-6)
    _, root = explorable("cancelled_width", {"a": 0, "alpha": "printed"})
    assert float(root.get_attribute("data-order")) == pytest.approx(1.0, abs=0.1)
