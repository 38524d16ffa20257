"""The explorables on one head: what they carry, and that their code runs."""

import numpy as np
import pytest

from attnbook import theory, widgets
from attnbook.widgets import single_head
from attnlab import curvature, models


def read(widget: widgets.Explorable, name: str) -> np.ndarray:
    entry = widget.data[name]
    return np.frombuffer(entry["bytes"], dtype=entry["dtype"]).reshape(entry["shape"])


def test_weak_convexity_carries_shares_of_its_bound() -> None:
    widget = widgets.WeakConvexity(rng=0, trials=1)
    ratio, heads, sizes = (read(widget, name) for name in ("ratio", "heads", "sizes"))
    assert ratio.shape == (2, sizes.size, heads.size, 1)
    bound = theory.multihead.beta3(sizes[:, None], T=4, d=3, R=1.0, sharp=True) / np.sqrt(heads)
    assert (ratio[..., 0] > 0.0).all()
    assert (ratio[..., 0] < bound).all()
    assert (read(widget, "readout") < sizes[:, None, None]).all()
    assert (np.diff(ratio[..., 0], axis=-1) < 0.0).all(), "more heads, less negative curvature"


@pytest.mark.parametrize("H", [4, 8])
def test_opposite_pairs_halve_with_four_times_the_heads(H: int) -> None:
    rng = np.random.default_rng(H)
    problem = single_head.unit_tokens(rng, n=4)
    drawn = {"U": rng.standard_normal((4 * H, 4, 3)), "W": rng.standard_normal((4 * H, 3, 3))}
    found = []
    for count in (H, 4 * H):
        params = single_head.of_length(single_head.opposite_pairs(drawn, count), 2.0)
        model = models.MultiHead(heads=count)
        assert np.abs(model.forward(params, problem)).max() < 1e-12, "outputs cancel"
        found.append(float(curvature.weak_convexity(model, params, problem)))
    assert found[1] == pytest.approx(found[0] / 2.0, rel=1e-9)


def test_the_meters_pairs_are_one_head_for_every_number() -> None:
    """So the power of H is what is shown, and not how draws differ."""
    widget = widgets.WeakConvexity(rng=0, trials=2)
    ratio, heads = read(widget, "ratio")[1], read(widget, "heads")
    four = list(heads).index(4)
    scaled = ratio * np.sqrt(heads)[:, None]
    assert scaled[:, four:] == pytest.approx(scaled[:, [four] * (heads.size - four)])
    assert np.ptp(scaled[0, four], axis=-1) > 1e-4, "two heads"


def test_segments_start_at_trained_networks() -> None:
    problem, points = single_head.trained(4)
    assert np.allclose(np.linalg.norm(problem.X, axis=-1), 1.0)
    assert points["U"].shape == (4, 4, 4, 3)
    losses = [
        float(
            models.MultiHead(heads=4).value_and_grad({k: v[i] for k, v in points.items()}, problem)[
                0
            ]
        )
        for i in range(4)
    ]
    assert max(losses[1:]) < 0.01 < losses[0]
