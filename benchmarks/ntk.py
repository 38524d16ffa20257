"""Tangent kernels: the encoder's against automatic differentiation, its limit against draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.linalg.blas import dgemm, dsyrk
from torch.func import grad, vmap

from attnlab import models, ntk, problems
from benchmarks.timing import Contender, Row, side_by_side

LEAST = {10: 0.5, 1000: 4, 4000: 12}
FLOOR = 1 / 1.4  # ours may take 1.4 times as long
ACCURACY = 1e-2  # of the Monte Carlo estimate, relative, in the Frobenius norm


def _per_sample_gradients(model: models.Encoder, params: dict, p: problems.SequenceProblem):
    """vmap(grad) of one sample's output, as a torch user writes it."""
    X = torch.tensor(np.array(p.X))
    held = {name: torch.tensor(array) for name, array in params.items()}

    def output(params: dict, x: torch.Tensor) -> torch.Tensor:
        logits = model.tau0 * (x @ params["W_Q"].T) @ (x @ params["W_K"].T).T
        attended = torch.softmax(logits, dim=-1) @ (x @ params["W_V"].T)
        return (model.tau1 * torch.relu(attended)).mean(dim=0) @ params["w_O"]

    gradients = vmap(grad(output), in_dims=(None, 0))
    return lambda: [g.flatten(1) for g in gradients(held, X).values()]


def _products(
    model: models.Encoder, params: dict, p: problems.SequenceProblem
) -> Callable[[], object]:
    """The large products of a kernel over all pairs of tokens: the floor of one that does not look
    at its gates. Pre-activations, what comes back through the gates, and the gates' own dsyrk.
    """
    tokens = (model.attention(params, p) @ p.X).reshape(-1, p.d)
    W, back = np.asfortranarray(params["W_V"]), np.asfortranarray(params["W_V"].T)
    gates = np.asfortranarray(((tokens @ params["W_V"].T > 0.0) * params["w_O"]).T)
    moved = np.asfortranarray(tokens.T)
    return lambda: (dgemm(1.0, W, moved), dgemm(1.0, back, gates), dsyrk(1.0, gates, trans=1))


def _draws_needed(phi: np.ndarray, limit: np.ndarray) -> int:
    """The least power of two of draws that is within ACCURACY on the average of ten estimates."""
    draws, size = 64, np.linalg.norm(limit)
    while True:
        errors = [np.linalg.norm(_estimate(phi, draws, rng) - limit) / size for rng in range(10)]
        if np.mean(errors) <= ACCURACY:
            return draws
        draws *= 2


def _estimate(phi: np.ndarray, draws: int, rng: int) -> np.ndarray:
    """Both expectations of Lemma 1 by sampling, a few thousand draws at a time."""
    generator, done = np.random.default_rng(rng), 0
    relu, step = np.zeros((len(phi), len(phi))), np.zeros((len(phi), len(phi)))
    while done < draws:
        block = min(4096, draws - done)
        pre = phi @ generator.standard_normal((phi.shape[1], block))
        gate = (pre > 0.0).astype(float)
        pre *= gate
        relu += pre @ pre.T
        step += gate @ gate.T
        done += block
    return relu / draws + step / draws * (phi @ phi.T)


def _against_products(work: str, found: dict[str, float]) -> Row:
    """At a linear scaling ours may be below: gates that a sample's tokens share cost nothing."""
    against = "dsyrk of all gates, and the products before and behind them (floor)"
    return Row(work, against, "ms per kernel", 1e3 * found["ours"], 1e3 * found["floor"], FLOOR)


def kernels() -> list[Row]:
    """The encoder's kernel (100 samples, T=10, d=100) by width, and its limit."""
    torch.set_num_threads(1)
    rows = []
    p = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=True, rng=0)
    for width, least in LEAST.items():
        model = models.Encoder(width=width, init="ntk", scaling="linear")
        params = model.init(p, rng=0)
        gradients = _per_sample_gradients(model, params, p)

        def whole(gradients=gradients) -> torch.Tensor:
            J = torch.cat(gradients(), dim=1)
            return J @ J.T

        def by_parameter(gradients=gradients) -> torch.Tensor:
            return sum(g @ g.T for g in gradients())

        ours = ntk.empirical(model, params, p)
        assert np.abs(whole().numpy() - ours).max() < 1e-10 * np.abs(ours).max()
        found = side_by_side(
            {
                "ours": Contender(
                    lambda model=model, params=params: ntk.empirical(model, params, p), 1
                ),
                "whole": Contender(whole, 1),
                "by parameter": Contender(by_parameter, 1),
                "floor": Contender(_products(model, params, p), 1),
            }
        )
        work = f"encoder kernel, n=100, T=10, d=100, width={width}"
        for name, against in (
            ("whole", "one Jacobian"),
            ("by parameter", "parameter by parameter"),
        ):
            rows.append(
                Row(
                    work,
                    f"torch.func vmap(grad), {against}",
                    "ms per kernel",
                    1e3 * found["ours"],
                    1e3 * found[name],
                    least,
                )
            )
        if width == max(LEAST):
            rows.append(_against_products(f"{work}, linear scaling", found))
    sharp = models.Encoder(width=max(LEAST), init="ntk", scaling="sqrt")
    params = sharp.init(p, rng=0)
    found = side_by_side(
        {
            "ours": Contender(lambda: ntk.empirical(sharp, params, p), 1),
            "floor": Contender(_products(sharp, params, p), 1),
        }
    )
    rows.append(_against_products(f"{work}, sqrt scaling", found))
    limit = ntk.limiting_encoder(p)
    phi = p.X.mean(axis=-2)
    draws = _draws_needed(phi, limit)
    found = side_by_side(
        {
            "ours": Contender(lambda: [ntk.limiting_encoder(p) for _ in range(20)], 20),
            "draws": Contender(lambda: _estimate(phi, draws, 0), 1),
        }
    )
    rows.append(
        Row(
            "limiting encoder kernel, n=100, d=100",
            f"Monte Carlo to {ACCURACY:g}, {draws} draws",
            "ms per kernel",
            1e3 * found["ours"],
            1e3 * found["draws"],
            1000,
        )
    )
    return rows
