"""What we compare with: the code that a user of PyTorch or JAX would write."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import nn

from attnlab.problems import SequenceProblem, TokenProblem

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
jax.config.update("jax_enable_x64", True)
EPS = 2.220446049250313e-16


class OneHead(nn.Module):
    """The attention model of the svm paper for a single trial, W or (K, Q)."""

    def __init__(self, d: int, factored: bool) -> None:
        super().__init__()
        bound = d**-0.5
        names = ("K", "Q") if factored else ("W",)
        self.factored = factored
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.empty(d, d).uniform_(-bound, bound)))

    def forward(self, X: Any, z: Any, v: Any) -> Any:
        """Outputs for tokens (n, T, d), queries (n, d)."""
        W = self.K @ self.Q.T if self.factored else self.W
        logits = torch.einsum("ntd,de,ne->nt", X, W, z)
        attended = torch.einsum("nt,ntd->nd", torch.softmax(logits, dim=-1), X)
        return attended @ v


def torch_trial_loop(problem: TokenProblem, trials: int, steps: int, factored: bool) -> None:
    """One trial after the other: model, loss, backward, normalized step."""
    for k in range(trials):
        X, z, y, v = (
            torch.from_numpy(np.array(a[k])) for a in (problem.X, problem.z, problem.y, problem.v)
        )
        model = OneHead(problem.d, factored)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.log1p(torch.exp(-y * model(X, z, v))).mean()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.grad /= parameter.grad.norm() + EPS
            optimizer.step()


def torch_batched(problem: TokenProblem, start: np.ndarray, steps: int) -> None:
    """All trials in one autograd graph; the losses are summed, so gradients stay apart."""
    X, z, y, v = (
        torch.from_numpy(np.array(a)) for a in (problem.X, problem.z, problem.y, problem.v)
    )
    W = torch.from_numpy(start.copy()).requires_grad_()
    for _ in range(steps):
        r = z @ W.transpose(-1, -2)
        s = torch.softmax((X @ r[..., None])[..., 0], dim=-1)
        o = (s[..., None, :] @ X)[..., 0, :]
        f = (o @ v[..., None])[..., 0]
        loss = nn.functional.softplus(-y * f).mean(-1).sum()
        (grad,) = torch.autograd.grad(loss, W)
        with torch.no_grad():
            W -= 0.1 * grad / (grad.flatten(1).norm(dim=1)[:, None, None] + EPS)


def jax_compiled(problem: TokenProblem, start: np.ndarray, steps: int) -> Callable[[], None]:
    """Jit of a scan over steps of vmap(grad): nothing of Python is left in the loop."""

    def loss(W: Any, X: Any, z: Any, y: Any, v: Any) -> Any:
        s = jax.nn.softmax(jnp.einsum("ntd,de,ne->nt", X, W, z), axis=-1)
        f = jnp.einsum("nt,ntd,d->n", s, X, v)
        return jax.nn.softplus(-y * f).mean()

    gradient = jax.vmap(jax.grad(loss))
    data = tuple(jnp.asarray(a) for a in (problem.X, problem.z, problem.y, problem.v))

    @jax.jit
    def run(W: Any) -> Any:
        def step(W: Any, _: Any) -> Any:
            g = gradient(W, *data)
            norm = jnp.sqrt((g * g).sum((1, 2), keepdims=True))
            return W - 0.1 * g / (norm + EPS), None

        return jax.lax.scan(step, W, None, length=steps)[0]

    return lambda: run(jnp.asarray(start)).block_until_ready()


def torch_multihead(
    problem: SequenceProblem, U: np.ndarray, W: np.ndarray, steps: int
) -> Callable[[], None]:
    """Autograd on matrix products throughout (the fastest of the forms tried)."""
    X, y = torch.from_numpy(np.array(problem.X)), torch.from_numpy(np.array(problem.y))
    keys, heads = X[:, None], U.shape[0]
    turned = keys.transpose(-1, -2).contiguous()

    def run() -> None:
        u = torch.from_numpy(U.copy()).requires_grad_()
        w = torch.from_numpy(W.swapaxes(-1, -2).copy()).requires_grad_()
        for _ in range(steps):
            P = torch.softmax((keys @ w) @ turned, dim=-1)
            f = (u * (P @ keys)).sum((-1, -2, -3)) / heads**0.5
            loss = nn.functional.softplus(-y * f).mean()
            gu, gw = torch.autograd.grad(loss, (u, w))
            with torch.no_grad():
                u -= 0.1 * gu
                w -= 0.1 * gw

    return run


def jax_multihead(
    problem: SequenceProblem, U: np.ndarray, W: np.ndarray, steps: int
) -> Callable[[], None]:
    """The same as a compiled scan of gradient steps."""
    X, y, share = jnp.asarray(problem.X), jnp.asarray(problem.y), U.shape[0] ** -0.5
    keys = X[:, None]

    def loss(at: Any) -> Any:
        u, w = at
        P = jax.nn.softmax((keys @ w) @ keys.swapaxes(-1, -2), axis=-1)
        f = (u * (P @ keys)).sum((-1, -2, -3)) * share
        return jax.nn.softplus(-y * f).mean()

    @jax.jit
    def run(at: Any) -> Any:
        def step(at: Any, _: Any) -> Any:
            return jax.tree.map(lambda p, g: p - 0.1 * g, at, jax.grad(loss)(at)), None

        return jax.lax.scan(step, at, None, length=steps)[0]

    start = (jnp.asarray(U), jnp.asarray(W.swapaxes(-1, -2)))
    return lambda: jax.block_until_ready(run(start))


FLOOR = Path(__file__).with_name("floor.c")


def c_floor(problem: TokenProblem, start: np.ndarray, steps: int) -> Callable[[], np.ndarray]:
    """``floor.c``, compiled for this processor by the system's compiler: W after the steps."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError("the floor of one core needs a C compiler (cc) on the PATH")
    folder = tempfile.mkdtemp()
    made = Path(folder) / "floor.so"
    n, T, d = problem.n, problem.T, problem.d
    sizes = [f"-DN={n}", f"-DT={T}", f"-DD={d}"]
    flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run([compiler, *flags, *sizes, str(FLOOR), "-o", str(made), "-lm"], check=True)
    call = ctypes.CDLL(str(made)).train
    shutil.rmtree(folder)
    pointer = ctypes.POINTER(ctypes.c_double)
    X, z, scores = (
        np.ascontiguousarray(np.moveaxis(a, 0, -1)) for a in (problem.X, problem.z, problem.scores)
    )

    def run() -> np.ndarray:
        W = np.ascontiguousarray(np.moveaxis(start, 0, -1))
        arrays = [a.ctypes.data_as(pointer) for a in (X, z, scores, W)]
        call(W.shape[-1], steps, ctypes.c_double(0.1), *arrays)
        return np.moveaxis(W, -1, 0)

    return run
