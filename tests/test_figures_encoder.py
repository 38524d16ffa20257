"""Figures of the encoder paper show what its text says, in the reading that makes step 1 stable."""

import numpy as np
import pytest

from attnbook import figures
from attnbook.figures import Data


@pytest.fixture(scope="module")
def widths() -> Data:
    return figures.get("encoder.2").run(
        n=100, T=10, d=100, width=(10, 100, 1000), trials=1, epochs=100
    )


def test_figure_2_reference_losses(widths: Data) -> None:
    """Loss over its start after 100 epochs, by width; a network of width 10 varies most."""
    drop = widths["loss"][:, 0, -1] / widths["loss"][:, 0, 0]
    for found, expected, factor in zip(drop, (0.21, 0.05, 0.0086), (3.5, 2.4, 2.7), strict=True):
        assert expected / factor <= found <= expected * factor
    assert (np.diff(drop) < 0).all(), "wider networks train faster"


def test_figure_2_stability_limits(widths: Data) -> None:
    """n over the kernel's top eigenvalue: about 57 at width 100 and 6.0 at width 1000."""
    limits = widths["stable_below"][:, 0]
    assert limits[1] == pytest.approx(57, abs=5)
    assert limits[2] == pytest.approx(6.0, abs=0.5)
    assert (limits > 1.0).all(), "step 1 is stable at every width"


def test_figure_2_the_output_layer_moves_most(widths: Data) -> None:
    """Not lazy: w_O moves by several times its length at the start, W_Q and W_K hardly at all."""
    moved = widths["moved"][1:, 0, -1]
    assert (moved[:, 3] > 5 * moved[:, 0]).all()
    assert (moved[:, 3] > 1.0).all()
    assert (moved[:, :2] < 0.2).all()


def test_figure_2_the_kernel_moves_early(widths: Data) -> None:
    distance, step = widths["distance"][:, 0], widths["step"][0, 0]
    assert np.allclose(distance[:, 0], 0.0)
    half = int(np.abs(step - 50).argmin())
    for row in distance[1:]:
        assert row[half] > 0.45 * row[-1], (
            "half of the change comes in the first half, and nothing before step 5"
        )
        assert row[5] < 0.02
    assert (distance[:, -1] > 0.02).all()


def test_figure_9_similar_with_the_other_scaling() -> None:
    data = figures.get("encoder.9").run(seed=1)
    drop = data["loss"][:, :, -1] / data["loss"][:, :, 0]
    assert (np.median(drop, axis=1)[1:] < 0.01).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_figure_5_schemes(seed: int) -> None:
    """At step 1 NTK trails LeCun and He, at step 10 it does not; its stability limit is larger."""
    data = figures.get("encoder.5").run(seed=seed, trials=1)
    lecun, he, ntk, long = (data["loss"][1, 0, :, -1] / data["loss"][1, 0, :, 0]).tolist()
    assert ntk > 3 * lecun
    assert ntk > 3 * he
    assert long < ntk / 10
    limit = data["stable_below"][1, 0]
    assert limit[2] > limit[0]
    assert limit[1] == pytest.approx(limit[0] / 2, rel=0.25)


def test_figure_3_one_token_or_one_feature() -> None:
    data = figures.get("encoder.3").run(n=40, features=100, epochs=200, trials=1)
    one, many, two_layer = (data["loss"][0, :, -1] / data["energy"][0]).tolist()
    assert one < 1e-8
    assert two_layer < 1e-8
    assert many > 0.93
    tops = data["eigenvalues"][0, 1]
    assert abs(tops[3]) < 1e-10 * tops[0]
    assert data["eigenvalues"][0, 0][5] > 1e-4 * data["eigenvalues"][0, 0][0]


@pytest.mark.parametrize("name", ["encoder.2", "encoder.3", "encoder.5", "encoder.9"])
def test_both_themes_draw_and_say_what_they_show(name: str) -> None:
    figure = figures.get(name)
    data = figure.run(epochs=30, trials=1)
    for theme in ("light", "dark"):
        canvas = figure.draw(data, theme)
        words = canvas.get_label()
        assert "e-" in words or "0." in words
        assert len(words) > 80
