"""Joint training: Theorems 2 to 4 of the text and 8 to 10 of the appendix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most
from attnbook.claims.bias import _joint_instances as joint
from attnbook.claims.bias._instances import JOINT, inner, length, seed_of
from attnbook.claims.bias._joint_instances import DELTA, FIGURE, LARGE, JointRun
from attnlab import svm

PROVED = 1.0 / (16.0 * np.sqrt(1.5))


def _runs(rng: np.random.Generator, instances: int) -> Iterator[tuple[str, JointRun]]:
    for name, at in (
        ("inside Condition 2, n=2", joint.conditioned(2)),
        ("inside Condition 2 with C_0 = 1, n=4", joint.conditioned(4, 1.0)),
        ("larger steps", LARGE),
    ):
        yield name, joint.joint_run(seed_of(rng), instances, at)


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
        bound = theory.bias.joint_loss_bound(t, at.step, speed)
        yield at_most(f"loss, {name}", np.exp(log_loss), bound)


def _direction(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, run in _runs(rng, instances):
        at = run.at
        log_time = theory.bias.joint_log_waiting_time(
            0.999, at.step, at.B, run.margin.norm, n=at.n, d=at.d, delta=DELTA
        )
        beyond = np.log(run.times[-1])
        yield at_least(f"log t_eps against log t of the run, {name}", log_time, beyond)
        if run.at is not LARGE:
            yield at_least(f"log t_eps for eps close to 1, {name}", log_time, 1e4)
        t = run.times[2:, None]
        least = theory.bias.joint_norm_bound(t, at.step, at.B, run.margin.norm)
        yield at_least(f"norm of W (55), {name}", length(run.W[2:]), least)
        bound = theory.bias.alignment_bound(at.B, run.margin.norm)
        for k in (1, -2):
            params = {"W": run.W[k], "v": run.v[k]}
            G = -JOINT.scaled_grad(params, run.problem)[1]["W"]
            cosine = svm.correlation(G, run.margin.W)
            yield at_least(f"Lemma 4 at t={run.times[k]:.0f}, {name}", cosine, bound)
    start, end = (svm.correlation(run.W[k], run.margin.W) for k in (5, -1))
    yield at_least("cosine at the end, larger steps", end, 0.9)
    yield at_least("the same against early in the run", end, start)
    figure = joint.joint_run(seed_of(rng), instances, FIGURE)
    log_time = theory.bias.joint_log_waiting_time(
        0.999, FIGURE.step, FIGURE.B, figure.margin.norm, n=10, d=100, delta=DELTA
    )
    yield at_least("log t_eps, Figure 3", log_time, 1e4)


@measures("bias.theorem-9", instances=10)
def theorem_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _direction(rng, instances)
    for name, run in _runs(rng, instances):
        at, width = run.at, run.margin.norm
        for eps in (0.1, 0.9):
            settings: dict[str, Any] = {"n": at.n, "d": at.d, "delta": DELTA}
            log_time = theory.bias.joint_log_waiting_time(eps, at.step, at.B, width, **settings)
            reached = at.step * log_time / (4.0 * at.B**2 * width)
            wanted = theory.bias.joint_norm_threshold(eps, at.B, width, **settings)
            yield at_least(f"norm at t_eps against R_eps, eps={eps}, {name}", reached, wanted)


def _decoder(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    for name, run in _runs(rng, instances):
        at, t = run.at, run.times[1:, None]
        largest = 1.0 / run.decoder.norm
        smallest, size = (part[1:] for part in run.decoder_margins())
        numbers = (np.log(t), largest, at.step, at.B, run.margin.norm)
        bound = theory.bias.decoder_margin_bound(*numbers, noise=at.noise)
        yield at_least(f"margin of the unit decoder, {name}", smallest / size, bound)
        share = smallest / size / largest
        yield at_least(f"share of the largest margin, {name}", share, 1.0 / 12.0)
        gradient = np.linalg.norm(
            [JOINT.value_and_grad(p, run.problem)[1]["v"] for _, p in run.points()], axis=-1
        )
        loss = np.exp(run.log_loss())
        where = f"gradient over loss against gamma/3, {name}"
        yield at_least(where, gradient / loss, largest / 3.0)
        if run.at is LARGE:
            printed = theory.bias.decoder_margin_bound(*numbers, printed=True)
            where = f"margin of u_t itself, as printed, {name}"
            yield at_least(where, smallest, printed, role="step")


@measures("bias.theorem-10", instances=10)
def theorem_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    yield from _decoder(rng, instances)
    for name, run in _runs(rng, instances):
        at, t = run.at, run.times[1:, None]
        rate = at.step / (4.0 * run.decoder.norm) * t ** (1.0 / 3.0)
        yield at_least(
            f"-log loss against (eta gamma/4) t^(1/3), {name}", -run.log_loss()[1:], rate
        )
        size = np.linalg.norm(run.v[1:], axis=-1)
        bound = theory.bias.decoder_norm_bound(t, at.step)
        yield at_most(f"length of the decoder, {name}", size, bound)
        lead = inner(run.W[-1], run.margin.W)
        yield at_least(f"component of W along W_mm at the end, {name}", lead, 0.0, strictly=True)
