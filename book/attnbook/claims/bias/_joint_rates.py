"""Joint training: Theorems 2 to 4 of the text and 8 to 10 of the appendix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import (
    Measurement,
    at_least,
    at_most,
    equal,
    exponent,
    slope,
    vanishes,
)
from attnbook.claims.bias import _joint_instances as joint
from attnbook.claims.bias import _joint_limit as far
from attnbook.claims.bias._instances import JOINT, inner, length, seed_of
from attnbook.claims.bias._joint_instances import DELTA, FIGURE, LARGE, JointRun, Sizes
from attnbook.claims.bias._joint_limit import Limit
from attnlab.checks import Array

PROVED = 1.0 / (16.0 * np.sqrt(1.5))


def _runs(rng: np.random.Generator, instances: int) -> Iterator[tuple[str, JointRun]]:
    for name, at in (
        ("inside Condition 2, n=2", joint.conditioned(2)),
        ("inside Condition 2 with C_0 = 1, n=4", joint.conditioned(4, 1.0)),
        ("larger steps", LARGE),
    ):
        yield name, joint.joint_run(seed_of(rng), instances, at)


def _limits(rng: np.random.Generator, instances: int) -> Iterator[tuple[str, Limit]]:
    for name, at in (
        ("inside Condition 2, n=2", joint.conditioned(2)),
        ("inside Condition 2 with C_0 = 1, n=4", joint.conditioned(4, 1.0)),
    ):
        yield name, far.limit(seed_of(rng), instances, at)


def _far_losses(name: str, run: Limit, rate: float, role: str) -> Iterator[Measurement]:
    """The loss while it falls, against exp(-eta rate t^(1/3) / 2): nine decades of t."""
    at = run.at
    t = (far.WAYS / (3.0 * at.step)) ** 3.0
    moved = at.step * (1.0 + np.log(t[-1])) * at.B**2
    where = f"{name}, log10 t from {np.log10(t[0]):.0f} to {np.log10(t[-1]):.0f}"
    yield at_most(f"change of a logit by then, {where}", moved, 1e-7, role="premise")
    lost = far.losses(run)[0]
    bound = theory.bias.joint_loss_bound(t[:, None], at.step, rate)
    yield at_most(f"loss, {where}", np.exp(-lost), bound, role=role)


def _exponents(name: str, run: Limit, rate: float, role: str) -> Iterator[Measurement]:
    t = (far.WAYS / (3.0 * run.at.step)) ** 3.0
    lost = far.losses(run)[0]
    bound = theory.bias.joint_loss_bound(t, run.at.step, rate)
    promised = slope(t, -np.log(np.maximum(bound, 1e-300)))
    slowest = min(lost.T, key=lambda column: slope(t, column))
    words = f"exponent of -log loss in t, nine decades, {name}"
    yield exponent(words, t, slowest, promised, within=0.01, relation=">=", role=role)


def _taken(rng: np.random.Generator, instances: int) -> Measurement:
    """The flow against steps that are taken: long tokens, so that a thousand of them will do."""
    d, long = 100_000, 8.0
    at = Sizes(2, 6.0, long / (6.0 * (1.5 * d) ** 0.5), d, 0.1)
    seed = seed_of(rng)
    steps, run = joint.joint_run(seed, instances, at, 1000), far.limit(seed, instances, at)
    way = at.step * float((1.0 / np.arange(2.0, 1001.0)).sum())
    flow = far.turning(run, (way,))[0]
    off = length(steps.W[-1] - flow) / length(flow)
    return at_most("W after 1000 steps of 0.1, off the flow", off, 0.05, role="premise")


@measures("bias.theorem-2", instances=10)
def theorem_2(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, run in _runs(rng, instances):
        at, log_loss, t = run.at, run.log_loss()[1:], run.times[1:, None]
        root = at.step * t ** (1.0 / 3.0)
        proved = theory.bias.joint_exponent(at.B, n=at.n, constant=PROVED)
        where = f"-log loss over eta t^(1/3), {name}"
        yield at_least(where, -log_loss / root, proved, role="correction")
        printed = theory.bias.joint_exponent(at.B, n=at.n, constant=6.0)
        yield at_least(f"{where}, C_0 = 6", -log_loss / root, printed)
        signed = run.problem.y[..., None] * run.deciding
        others = run.problem.y[..., None] * (run.problem.X.sum(axis=-2) - run.deciding)
        widest = np.linalg.norm(signed, 2, axis=(-2, -1))
        widest += np.linalg.norm(others, 2, axis=(-2, -1)) / 2.0
        # the loss is at least exp(-mean margin), the mean margin at most |u| times this
        most = 3.0 * widest / np.sqrt(at.n)
        yield at_least(f"what the path's length allows at any time, C_0 = 6, {name}", most, printed)
    for name, flow in _limits(rng, instances):
        for constant, role in ((6.0, "statement"), (PROVED, "correction")):
            rate = theory.bias.joint_exponent(flow.at.B, n=flow.at.n, constant=constant)
            yield from _far_losses(f"C_0 = {constant:.2g}, {name}", flow, 2.0 * rate, role)
        yield from _exponents(name, flow, 2.0 * rate, "correction")


@measures("bias.theorem-8", instances=10)
def theorem_8(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, run in (
        *_runs(rng, instances),
        ("Figure 3", joint.joint_run(seed_of(rng), instances, FIGURE)),
    ):
        at = run.at
        speed = theory.bias.omega_1(at.alpha, at.rho, n=at.n, d=at.d)
        log_loss, t = run.log_loss()[1:], run.times[1:, None]
        rate = at.step * speed / 2.0 * t ** (1.0 / 3.0)
        yield at_least(f"-log loss, {name}", -log_loss, rate)
    found = []
    for name, flow in _limits(rng, instances):
        at = flow.at
        speed = theory.bias.omega_1(at.alpha, at.rho, n=at.n, d=at.d)
        yield from _far_losses(name, flow, speed, "statement")
        yield from _exponents(name, flow, speed, "statement")
        found.append(far.losses(flow)[0][-1] / (far.WAYS[-1] / 3.0 * speed))
        # tokens that are orthogonal in the limit have the largest margin |x_opt + x| / (2 sqrt(n))
        found[-1] /= 12.0 * np.sqrt(1.0 + at.alpha**-2)
    what = "-log loss over 12 sqrt(1 + 1/alpha^2) eta omega_1 t^(1/3), late"
    yield equal(what, np.concatenate(found), 1.0, within=0.02)


@dataclass(frozen=True, eq=False)
class Late:
    """W at late times, along W_mm and beside it; times first, then trials."""

    log_t: Array
    along: Array
    off: Array

    @property
    def norm(self) -> Array:
        """Its length."""
        return np.hypot(self.along, self.off)

    @property
    def miss(self) -> Array:
        """1 - cosine with W_mm."""
        return np.asarray(theory.bias.two_token_miss(self.along, self.off**2))


def _late(run: Limit, log_t: Array) -> Late:
    """The flow while it turns, and along W_mm from there on, at these logarithms of t."""
    W, toward = far.turning(run), run.margin.W / run.margin.norm[:, None, None]
    along = inner(W, toward)
    off = length(W - along[..., None, None] * toward)
    ways = np.broadcast_to(np.array(far.TURNS)[:, None], along.shape)
    on = along[-1] + run.at.step * log_t - far.TURNS[-1]
    return Late(
        np.concatenate([ways / run.at.step, np.broadcast_to(log_t, on.shape)]),
        np.concatenate([along, on]),
        np.concatenate([off, np.broadcast_to(off[-1], on.shape)]),
    )


def _settled(name: str, run: Limit) -> Iterator[Measurement]:
    """The decoder has the largest margin before W moves; W's flow becomes a straight line."""
    share = far.losses(run)[1]
    what = f"share of the largest margin after the decoder's way of {far.WAYS[-1]:g}, {name}"
    yield at_least(what, share, 0.99, role="premise")
    (before, after), (first, last) = far.turning(run)[-2:], far.TURNS[-2:]
    toward = run.margin.W / run.margin.norm[:, None, None]
    off = length(after - before - (last - first) * toward) / (last - first)
    what = f"way of W from {first:g} to {last:g}, off the direction of W_mm, {name}"
    yield vanishes(what, off, within=1e-6, role="premise")


def _waits(run: Limit, eps: float) -> Array:
    at, width = run.at, run.margin.norm
    sizes: dict[str, Any] = {"n": at.n, "d": at.d, "delta": DELTA}
    return theory.bias.joint_log_waiting_time(eps, at.step, at.B, width, **sizes)


def _promise(name: str, run: Limit, roles: dict[bool, str]) -> Iterator[Measurement]:
    """The cosine from t_eps on, three decades of log t, against the printed and the true C."""
    many = len(far.TURNS)
    for eps in (0.1, 0.5, 0.9):
        first = _waits(run, eps)
        found = _late(run, first * np.geomspace(1.0, 1e3, 20)[:, None])
        late = Late(found.log_t[many:], found.along[many:], found.off[many:])
        cosine = 1.0 - late.miss[0]
        state: dict[str, Any] = {"norm": late.norm[0], "correlation": cosine, "loss": 1e-300}
        for printed, role in roles.items():
            allowed = eps + _constant(eps, run, state, printed=printed) / late.log_t
            which = "printed C" if printed else "C"
            where = f"{name}, eps={eps}, log t_eps from {first.min():.0e}"
            yield at_most(f"1 - cosine, {which}, {where}", late.miss, allowed, role=role)


def _constant(eps: float, run: Limit, state: dict[str, Any], *, printed: bool) -> Array:
    r"""$C=2B^2\Lambda C'/\eta$ with the $C'$ of Theorem 6, by (55) only where that is positive."""
    step = run.at.step
    numbers: dict[str, Any] = {"B": run.at.B, "margin_norm": run.margin.norm}
    if printed:
        return theory.bias.gd_constant(eps, step, **state, **numbers, printed=True)
    front = 2.0 * run.at.B**2 * run.margin.norm / step
    return front * np.maximum(theory.bias.gd_constant(eps, step, **state), 0.0)


@measures("bias.theorem-3", instances=10)
def theorem_3(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield _taken(rng, instances)
    fits = []
    for name, run in _limits(rng, instances):
        yield from _settled(name, run)
        yield from _promise(name, run, {False: "statement"})
        late = _late(run, np.geomspace(1e3, 1e6, 20)[:, None] / run.at.step)
        fits += [(late.log_t[4:, 0], column) for column in late.miss[4:].T]
    words = "exponent of 1 - cosine in log t, four decades"
    times, slowest = max(fits, key=lambda fit: slope(*fit))
    yield exponent(words, times, slowest, -2.0, within=0.05, role="suggests")


@measures("bias.theorem-9", instances=10)
def theorem_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield _taken(rng, instances)
    for name, run in _limits(rng, instances):
        at, width = run.at, run.margin.norm
        yield from _settled(name, run)
        for eps in (0.1, 0.9):
            settings: dict[str, Any] = {"n": at.n, "d": at.d, "delta": DELTA}
            log_t = _waits(run, eps)
            wanted = theory.bias.joint_norm_threshold(eps, at.B, width, **settings)
            least = at.step * log_t / (2.0 * at.B**2 * width)
            where = f"at t_eps, eps={eps}, {name}"
            yield at_least(f"norm that (55) gives {where}", least, 2.0 * wanted, role="premise")
            norm = _late(run, log_t[None]).norm[-1]
            yield at_least(f"norm of W against (55) {where}", norm, least, role="premise")
        yield from _promise(name, run, {True: "statement", False: "correction"})


@measures("bias.theorem-10", instances=10)
def theorem_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield _taken(rng, instances)
    for name, run in _limits(rng, instances):
        at, width, largest = run.at, run.margin.norm, 1.0 / run.decoder.norm
        yield from _settled(name, run)
        # attention is saturated: the decoder is the one of the largest margin
        share = (run.best @ run.decoder.W[..., None])[..., 0].min(axis=-1) * largest
        log_t = _waits(run, 0.9)
        size = (np.log(3.0 * at.step) + log_t / 3.0) / np.log(10.0)
        over = size + np.log10(share / (largest / 4.0))
        yield at_least(f"log10 of u_t's margin over gamma/4 at t_eps, {name}", over, 0.0)
        numbers = (log_t, largest, at.step, at.B, width)
        bound = theory.bias.decoder_margin_bound(*numbers, noise=at.noise)
        what = f"margin of the unit decoder at t_eps, {name}"
        yield at_least(what, share, bound, role="correction")
        t = (far.WAYS[:, None] / (3.0 * at.step)) ** 3.0
        rate = at.step * largest / 4.0 * t ** (1.0 / 3.0)
        what = f"-log loss against (eta gamma/4) t^(1/3), {name}"
        yield at_least(what, far.losses(run)[0], rate, role="correction")
    for name, taken in _runs(rng, instances):
        largest, t = 1.0 / taken.decoder.norm, taken.times[1:, None]
        smallest, size = (part[1:] for part in taken.decoder_margins())
        what = f"share of the largest margin at all times, {name}"
        yield at_least(what, smallest / size / largest, 1.0 / 12.0, role="correction")
        gradient = np.linalg.norm(
            [JOINT.value_and_grad(p, taken.problem)[1]["v"] for _, p in taken.points()], axis=-1
        )
        what = f"gradient over loss against gamma/3, {name}"
        least = gradient / np.exp(taken.log_loss())
        yield at_least(what, least, largest / 3.0, role="correction")
        bound = theory.bias.decoder_norm_bound(t, taken.at.step)
        yield at_most(f"length of the decoder, {name}", size, bound, role="correction")
        if taken.at is LARGE:
            numbers = (np.log(t), largest, taken.at.step, taken.at.B, taken.margin.norm)
            printed = theory.bias.decoder_margin_bound(*numbers, printed=True)
            what = f"margin of u_t itself before t_eps, as printed, {name}"
            yield at_least(what, smallest, printed, role="outside")
