"""Stored sweeps of the encoder's explorables: ``python -m attnbook.widgets.sweeps_encoder``.

About ten minutes on one core renew them. Each file says which seed and version made it.
"""

from __future__ import annotations

import io
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import attnlab
from attnbook import figures, theory
from attnbook.files import atomically
from attnlab import curvature, models, problems
from attnlab.checks import Array

SEED = 0
INITS = ("lecun", "ntk")
SCALINGS = {"sqrt": "encoder.2", "linear": "encoder.9"}
REPLAY: dict[str, Any] = {"width": (10, 100, 1000, 4000), "trials": 3, "epochs": 400}
HESSIAN: dict[str, Any] = {
    "width": (8, 16, 32, 64, 128, 256, 512),
    "radius": (0.0, 1.0, 3.0),
    "trials": 40,
}
PAIRS = (
    ("W_Q", "W_Q"),
    ("W_K", "W_K"),
    ("W_Q", "W_K"),
    ("W_Q", "W_V"),
    ("W_K", "W_V"),
    ("W_Q", "w_O"),
    ("W_K", "w_O"),
    ("W_V", "w_O"),
)


def lazy_replay(**changes: Any) -> dict[str, Array]:
    """Figures 2 and 9 of the encoder paper at its own sizes, for two initialisations.

    Axes: initialisation, scaling, width, trial, then recorded epoch (and parameter).
    """
    settings = {**REPLAY, **changes}
    inits, scalings = settings.pop("init", INITS), settings.pop("scaling", tuple(SCALINGS))
    found: dict[str, list[Array]] = {"loss": [], "moved": [], "distance": [], "stable_below": []}
    step = np.zeros(0)
    for init in inits:
        for scaling in scalings:
            data = figures.get(SCALINGS[scaling]).run("paper", SEED, init=init, **settings)
            for name, values in found.items():
                values.append(data[name].astype(np.float32))
            step = data["step"][0, 0]
    lead = (len(inits), len(scalings))
    stacked = {name: np.stack(values) for name, values in found.items()}
    return {
        "width": np.array(settings["width"]),
        "step": step,
        **{name: array.reshape(*lead, *array.shape[1:]) for name, array in stacked.items()},
    }


def sample(trials: int) -> problems.SequenceProblem:
    """Six tokens of one feature with $C_x=1$, the same at every width."""
    drawn = problems.gaussian_regression(n=1, T=6, d=1, trials=trials, rng=SEED)
    X = drawn.X / np.sqrt((drawn.X**2).mean(axis=(-2, -1), keepdims=True))
    return problems.SequenceProblem(X, drawn.y)


def hessian_cell(init: str, radius: float, width: int, trials: int) -> tuple[Array, Array]:
    """Norms of eight blocks and of the whole Hessian, and bounds of the blocks, for each trial."""
    rng = np.random.default_rng([SEED, INITS.index(init), int(10 * radius), width])
    drawn, model = sample(trials), models.Encoder(width, init, "linear", "sum")
    params = model.init(drawn, rng)
    noise = {name: rng.standard_normal(array.shape) for name, array in params.items()}
    size = np.sqrt(sum((a**2).reshape(trials, -1).sum(axis=-1) for a in noise.values()))
    params = {
        name: array + radius * noise[name] / size.reshape(-1, *(1,) * (array.ndim - 1))
        for name, array in params.items()
    }
    bars = theory.encoder.bars(model, drawn, params)
    bounds = theory.encoder.hessian_block_bounds(drawn.X[:, 0, :, 0], bars)
    norms = []
    for k in range(trials):
        at = {name: array[k] for name, array in params.items()}
        found = curvature.hessian(model, at, drawn.trial(k), of="output")
        low, high = found.extremes
        blocks = [np.linalg.norm(found.blocks[pair][0], 2) for pair in PAIRS]
        norms.append([*blocks, max(-float(low[0]), float(high[0]))])
    return np.array(norms), np.stack([bounds[pair] for pair in PAIRS], axis=-1)


def hessian_map(**changes: Any) -> dict[str, Array]:
    """Block norms at a random point at distance R: axes initialisation, R, width, trial, block."""
    settings = {**HESSIAN, **changes}
    inits = settings.get("init", INITS)
    norms, bounds = [], []
    for init in inits:
        for radius in settings["radius"]:
            for width in settings["width"]:
                norm, bound = hessian_cell(init, radius, width, settings["trials"])
                norms.append(norm.astype(np.float32))
                bounds.append(bound.astype(np.float32))
    lead = (len(inits), len(settings["radius"]), len(settings["width"]))
    return {
        "width": np.array(settings["width"]),
        "radius": np.array(settings["radius"]),
        "norm": np.reshape(np.stack(norms), (*lead, *norms[0].shape)),
        "bound": np.reshape(np.stack(bounds), (*lead, *bounds[0].shape)),
    }


SWEEPS = {"hessian_map": hessian_map, "lazy_replay": lazy_replay}


def stored(name: str) -> dict[str, Any]:
    """A sweep as it was stored."""
    place = resources.files("attnbook.widgets").joinpath("data", f"{name}.npz")
    with place.open("rb") as file, np.load(file) as archive:
        return {key: archive[key] for key in archive.files}


def main() -> None:
    """Renew the stored sweeps."""
    for name, sweep in SWEEPS.items():
        buffer = io.BytesIO()
        arrays: dict[str, Any] = sweep()
        np.savez_compressed(
            buffer, seed=np.array(SEED), version=np.array(attnlab.__version__), **arrays
        )
        path = Path(__file__).with_name("data") / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        atomically(path, buffer.getvalue())
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
