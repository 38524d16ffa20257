"""Figures of the bias paper show what its text says, within the tolerances of several seeds."""

import numpy as np
import pytest

from attnbook import figures
from attnbook.figures import Data
from attnbook.figures.bias._race import METHODS, alignment_at

GD, NGD, MOMENTUM, POLYAK = range(4)


@pytest.fixture(scope="module")
def race() -> Data:
    return figures.get("bias.2").run(seed=0, trials=6, steps=2000)


def at(data: Data, name: str, step: int) -> np.ndarray:
    """Trials by methods, at a recorded step near ``step``."""
    return data[name][:, :, int(np.abs(data["step"][0] - step).argmin())]


def test_figure_2_order_of_the_rules(race: Data) -> None:
    """Adaptive steps lead in loss, attention and alignment; gradient descent trails."""
    for step in (500, 2000):
        excess = at(race, "excess", step)
        assert (excess[:, [NGD, MOMENTUM, POLYAK]] < excess[:, [GD]]).all()
        assert (at(race, "alignment", step)[:, NGD] > at(race, "alignment", step)[:, GD]).all()
    early = at(race, "excess", 200)
    assert (early[:, POLYAK] < early[:, NGD]).all(), "the Polyak step leads first"


def test_figure_2_reference_values(race: Data) -> None:
    end = at(race, "alignment", 2000)
    assert (end[:, NGD] >= 0.985).all()
    assert end[:, NGD].mean() >= 0.99
    assert (end[:, GD] <= 0.95).all()
    assert (at(race, "attention", 2000)[:, NGD] >= 0.96).all()
    assert (at(race, "attention", 2000)[:, GD] <= 0.56).all()
    assert (at(race, "alignment", 200)[:, POLYAK] >= 0.94).all()
    grown = at(race, "norm", 2000)[:, NGD] / (0.025 * 2000)
    assert ((grown >= 0.92) & (grown <= 1.0)).all()


def test_figure_2_momentum_is_a_longer_step(race: Data) -> None:
    """Heavy ball at t stands where plain normalized steps stand at about 10 t."""
    early, late = at(race, "attention", 100)[:, MOMENTUM], at(race, "attention", 1000)[:, NGD]
    assert np.abs(early - late).max() < 0.12


def test_figure_2_losses_never_pass_their_floor(race: Data) -> None:
    assert (race["excess"] > 0).all()


def test_figure_5_same_order_with_opposite_tokens() -> None:
    data = figures.get("bias.5").run(seed=1, trials=4, steps=1500)
    excess = at(data, "excess", 1500)
    assert (excess[:, [NGD, MOMENTUM, POLYAK]] < excess[:, [GD]]).all()
    assert (at(data, "alignment", 1500)[:, NGD] > 0.9).all()


@pytest.mark.parametrize(("name", "cap"), [("bias.2", 10.0), ("bias.5", 5.0)])
def test_capped_polyak_step_is_a_constant_step(name: str, cap: float) -> None:
    """The cap binds from the first step on, as the reading of both figures says."""
    excess = figures.get(name).run(seed=0, trials=3, steps=500, gd_step=cap)["excess"]
    assert excess[:, POLYAK] == pytest.approx(excess[:, GD], rel=1e-9)


def test_figure_3_joint_training() -> None:
    """Polyak is fastest; normalized steps beat joint normalization, both beat descent."""
    data = figures.get("bias.3").run(seed=0, trials=6)
    loss = at(data, "loss", 4000)
    gd, ngd, joint, polyak = loss.T
    assert polyak.mean() < ngd.mean() < joint.mean() < 0.3 * gd.mean()
    assert (at(data, "attention", 4000)[:, 1] > at(data, "attention", 4000)[:, 2]).all()
    assert at(data, "align_W", 4000)[:, 1].mean() > at(data, "align_W", 4000)[:, 2].mean()
    assert (at(data, "align_v", 4000)[:, 1:] > 0.97).all()
    share = data["attention"]
    assert np.allclose(share[:, :, 0], 0.5)
    assert share.min() > 0.45


def test_figure_8_the_basin_has_an_edge() -> None:
    data = figures.get("bias.8").run(steps=20000)
    alignment = data["alignment"][0]
    short, long = alignment[:, :2, -1], alignment[:, 2:, -1]
    assert (short > 0.999).all()
    assert (long < 0.47).all()
    assert data["weights"][0, :, 2:, -1, 1].max() < 1e-3
    loss = data["loss"][0, :, :, -1]
    assert loss[:, :2] == pytest.approx(0.5 * (np.exp(-0.2) + np.exp(-0.5)), abs=2e-3)
    assert loss[1, 2:] == pytest.approx(0.5 * (np.exp(-0.2) + np.exp(0.5)), abs=2e-3)


def test_alternative_texts_carry_the_numbers(race: Data) -> None:
    words = figures.get("bias.2").draw(race).get_label()
    for name, value in zip(METHODS, alignment_at(race, 2000), strict=True):
        assert f"{name} {value:.4f}" in words


@pytest.mark.parametrize("name", ["bias.2", "bias.3", "bias.5", "bias.8"])
def test_both_themes_draw(name: str) -> None:
    figure = figures.get(name)
    data = figure.run(steps=40)
    for theme in ("light", "dark"):
        canvas = figure.draw(data, theme)
        assert len(canvas.axes) == 4
        assert len(canvas.get_label()) > 80
