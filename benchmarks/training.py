"""Training: one head in W and in (K, Q), many heads."""

from __future__ import annotations

import numpy as np
import torch

from attnlab import models, optim, problems
from benchmarks import contenders as them
from benchmarks import numpy_floor
from benchmarks.timing import Contender, Row, side_by_side

TRIALS, STEPS = 500, 2000  # the length of the papers' runs
SIZES = ((5, 5, 4), (5, 5, 8), (5, 5, 16), (6, 8, 10))
JAX = (1.5, 1.5, 1.5, 2.0)
FLOOR = 1.0 / 1.6  # ours may take 1.6 times as long
CALLS = "NumPy's calls alone, all memory at hand (bound)"
LEAST = {"paper": (600, 600, 600, 300), "exact": (350, 350, 350, 180)}


def one_head() -> list[Row]:
    """W: both recipes against the loops, batched autograd and compiled JAX."""
    rows = []
    for index, (n, T, d) in enumerate(SIZES):
        p = problems.sphere(n=n, T=T, d=d, trials=TRIALS, min_gap=0.0, rng=0)
        model, work = models.Attention(), f"train W, n={n}, T={T}, d={d}"
        start = model.init(p, rng=1)

        def ours(
            recipe: str, p: problems.TokenProblem = p, start: dict = start, steps: int = STEPS
        ) -> optim.Run:
            rule = optim.NormalizedGD(0.1, recipe=recipe)
            return optim.train(models.Attention(), p, rule, steps, params=start, every=100)

        torch.manual_seed(0)
        W = start["W"]
        same = ours("paper", steps=100).params["W"]
        assert np.allclose(numpy_floor.one_head(p, W, 100)(), same, atol=1e-9)
        found = side_by_side(
            {
                "paper": Contender(lambda: ours("paper"), TRIALS * STEPS),
                "exact": Contender(lambda: ours("exact"), TRIALS * STEPS),
                "loop": Contender(lambda p=p: them.torch_trial_loop(p, 2, 200, False), 400),
                "batched": Contender(lambda p=p, W=W: them.torch_batched(p, W, 60), TRIALS * 60),
                "jax": Contender(them.jax_compiled(p, W, 400), TRIALS * 400),
                "floor": Contender(them.c_floor(p, W, 1000), TRIALS * 1000),
                "calls": Contender(numpy_floor.one_head(p, W, 400), TRIALS * 400),
            }
        )
        us = {name: 1e6 * seconds for name, seconds in found.items()}
        unit = "µs per trial and step"
        for recipe in ("paper", "exact"):
            rows.append(
                Row(
                    f"{work}, {recipe}",
                    "PyTorch, trial by trial",
                    unit,
                    us[recipe],
                    us["loop"],
                    LEAST[recipe][index],
                )
            )
        rows += [
            Row(f"{work}, paper", "PyTorch, batched", unit, us["paper"], us["batched"], 4),
            Row(f"{work}, paper", "JAX, compiled", unit, us["paper"], us["jax"], JAX[index]),
            Row(
                f"{work}, paper", "C, the floor of one core", unit, us["paper"], us["floor"], FLOOR
            ),
            Row(f"{work}, paper", CALLS, unit, us["paper"], us["calls"], 0.8),
            Row(f"{work}, exact", "our paper recipe", unit, us["exact"], us["paper"], 0.5),
        ]
    return rows


def factors() -> list[Row]:
    """K and Q, normalized separately."""
    rows = []
    for n, T, d in SIZES:
        p = problems.sphere(n=n, T=T, d=d, trials=TRIALS, min_gap=0.0, rng=0)
        model = models.Attention(factors=d)
        start = model.init(p, rng=1)

        def ours(
            recipe: str,
            p: problems.TokenProblem = p,
            model: models.Attention = model,
            start: dict = start,
        ) -> None:
            rule = optim.NormalizedGD(0.1, recipe=recipe)
            optim.train(model, p, rule, 60, params=start, every=60)

        found = side_by_side(
            {
                "paper": Contender(lambda: ours("paper"), TRIALS * 60),
                "exact": Contender(lambda: ours("exact"), TRIALS * 60),
                "loop": Contender(lambda p=p: them.torch_trial_loop(p, 2, 150, True), 300),
            }
        )
        for recipe in ("paper", "exact"):
            rows.append(
                Row(
                    f"train (K, Q), n={n}, T={T}, d={d}, {recipe}",
                    "PyTorch, trial by trial",
                    "µs per trial and step",
                    1e6 * found[recipe],
                    1e6 * found["loop"],
                    150,
                )
            )
    return rows


def many_heads() -> list[Row]:
    """MultiHead from random starts: no two heads coincide, so nothing can be shared."""
    rows = []
    p = problems.planted(n=1000, T=10, d=5, rng=0)
    for heads, steps in ((1, 60), (8, 12), (64, 3)):
        model = models.MultiHead(heads=heads, start="gaussian")
        start = model.init(p, rng=1)
        contenders = {
            "ours": Contender(
                lambda model=model, start=start, steps=steps: optim.train(
                    model, p, optim.GD(0.1), steps, params=start
                ),
                steps,
            ),
            "torch": Contender(them.torch_multihead(p, start["U"], start["W"], steps), steps),
            "jax": Contender(them.jax_multihead(p, start["U"], start["W"], steps), steps),
        }
        if heads == 1:
            products = numpy_floor.products_of_one_head(p, start, steps)
            contenders["products"] = Contender(products, steps)
        found = side_by_side(contenders)
        for name, against, least in (
            ("torch", "PyTorch autograd, matmul-tuned", 4),
            ("jax", "JAX, compiled", 2),
            ("products", "NumPy's products and exponentials alone (bound)", 0.6),
        ):
            if name not in found:
                continue
            rows.append(
                Row(
                    f"MultiHead, H={heads}, n=1000, T=10, d=5",
                    against,
                    "ms per step",
                    1e3 * found["ours"],
                    1e3 * found[name],
                    least,
                )
            )
    return rows
