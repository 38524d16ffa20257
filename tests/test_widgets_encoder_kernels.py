"""Explorables of the encoder's kernel: stored sweeps are not stale, limits are the library's."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import widgets
from attnbook.widgets import stored, sweeps_encoder
from attnbook.widgets.encoder_kernels import limits
from attnlab import ntk, problems


def test_the_blocks_add_up_to_the_limiting_kernel() -> None:
    problem = problems.gaussian_regression(n=6, T=5, d=8, unit_tokens=True, rng=0)
    corrected, printed, proof = limits(problem).sum(axis=1)
    assert np.allclose(corrected, ntk.limiting_encoder(problem))
    assert np.allclose(proof, ntk.limiting_encoder(problem, pooling="sum"))
    assert not np.allclose(printed, printed.T)


def test_the_stored_hessians_are_not_stale() -> None:
    found = stored.load("hessian_map")
    assert str(found["version"])
    trials = sweeps_encoder.HESSIAN["trials"]
    norms, bounds = sweeps_encoder.hessian_cell("ntk", 1.0, 16, trials)
    assert np.allclose(norms, found["norm"][1, 1, 1], rtol=1e-4, atol=1e-7)
    assert np.allclose(bounds, found["bound"][1, 1, 1], rtol=1e-5)


def test_the_stored_replay_is_not_stale() -> None:
    """One run of one cell; training amplifies rounding, so the last digits may differ."""
    found = stored.load("lazy_replay")
    assert str(found["version"])
    again = sweeps_encoder.lazy_replay(width=(10,), trials=1, init=("lecun",), scaling=("sqrt",))
    for name in ("loss", "moved", "distance"):
        assert np.allclose(again[name][0, 0, 0, 0], found[name][0, 0, 0, 0], rtol=1e-3, atol=1e-9)
    assert np.array_equal(again["step"], found["step"])


@pytest.mark.parametrize("name", ["KernelBlocks", "HessianMap", "LazyReplay", "CancelledWidth"])
def test_data_are_small(name: str) -> None:
    data = getattr(widgets, name)().data
    assert sum(len(entry["bytes"]) for entry in data.values()) < 100_000
    assert json.dumps(getattr(widgets, name)().state)
