"""Slips in the theorems on joint training: margins of the decoder, and sums over steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_least, at_most, equal, slope
from attnbook.claims.bias._instances import JOINT
from attnlab import models, optim, problems, svm
from attnlab.checks import Array


def _marked(drawn: problems.TokenProblem) -> tuple[Array, Array]:
    """The token that decides the label and the other one, of samples of two tokens."""
    assert drawn.relevant is not None
    place = drawn.relevant.argmax(axis=-1)[..., None, None]
    picked = (np.take_along_axis(drawn.X, at, axis=-2)[..., 0, :] for at in (place, 1 - place))
    best, other = picked
    return best, other


@measures("bias.erratum-9", instances=3)
def erratum_9(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    eta, steps = 0.002, 100
    drawn = problems.gaussian(n=3, T=2, d=120, rho=0.6, alpha=6.0, trials=instances, rng=rng)
    best, _ = _marked(drawn)
    decoder = svm.decoder_svm(x=best, y=drawn.y)
    gamma = 1.0 / np.linalg.norm(decoder.W, axis=-1)
    run = optim.train(JOINT, drawn, optim.DecayedNormalizedGD(eta), steps=steps, every=steps)
    u = run.params["v"]
    length = np.linalg.norm(u, axis=-1)
    margin = (drawn.y * (best @ u[..., None])[..., 0]).min(axis=-1)
    what = "smallest margin of the decoder after 100 joint steps"
    B = theory.bias.token_bound(6.0, 0.6, 120)
    assert drawn.relevant is not None
    size = svm.attention_svm(drawn, tokens=drawn.relevant.argmax(axis=-1)).norm
    state = (np.log(float(steps)), gamma, eta, B, size)
    bound = theory.bias.decoder_margin_bound(*state, printed=True)
    yield at_least(f"{what}, u_t as printed, numerator 1", margin, bound, role="step")
    bound = theory.bias.decoder_margin_bound(*state, noise=B / 6.0)
    yield at_least(f"{what}, normalized", margin / length, bound, role="correction")
    yield at_least(f"{what}, share 1/12", margin / length, gamma / 12.0, role="correction")
    longest = theory.bias.decoder_norm_bound(steps, eta)
    proved = eta * gamma / 4.0 * (steps + 1.0) ** (1 / 3) / longest
    what = "margin of the unit decoder that the displayed bounds give"
    yield at_least(f"{what}, against gamma/4", proved, gamma / 4.0)
    yield at_least(f"{what}, against gamma/12", proved, gamma / 12.0, role="correction")

    one = problems.gaussian(n=1, T=2, d=400, rho=1.0, alpha=6.0, trials=instances, rng=rng)
    best, other = (token[:, 0] for token in _marked(one))
    u = one.y * other / np.linalg.norm(other, axis=-1, keepdims=True)
    own = one.y[:, 0] * (best * u).sum(axis=-1)
    rest = 1.0 - 0.9  # attention on the token that does not decide
    mixed = 0.9 * own + rest * one.y[:, 0] * (other * u).sum(axis=-1)
    what = "attended margin without the other token, adverse decoder"
    yield at_least(f"{what}, loss 1 - phi", 0.9 * own, mixed - rest, role="step")
    loss = rest * np.sqrt(1.5 * 400.0)
    yield at_least(f"{what}, loss times its norm", 0.9 * own, mixed - loss, role="correction")

    lead = np.linspace(0.0, 12.0, 25)  # eta log t / (8 B^2 Lambda^2), as the optimal logit's lead
    two = problems.two_token()
    s = np.array([models.Attention().attention({"W": np.diag([x, 0.0])}, two) for x in lead])
    for sign, role in ((-1.0, "step"), (1.0, "correction")):
        bound = 1.0 / (1.0 + np.exp(sign * lead))
        name = "attention off the optimal token, exponent of sign " + "-+"[sign > 0]
        yield equal(name, s[:, 0, 1], bound, role=role)

    x, y = _marked(drawn)[0], drawn.y
    free = rng.standard_normal((instances, 120))
    basis = np.linalg.svd(x, full_matrices=False)[2]
    free -= ((free[:, None] @ basis.mT) @ basis)[:, 0]
    aside = free / np.linalg.norm(free, axis=-1, keepdims=True)
    unit = 0.25 * decoder.W * gamma[:, None] + np.sqrt(1.0 - 0.25**2) * aside
    kept = (y * (x @ unit[..., None])[..., 0]).min(axis=-1)
    yield at_least("margin of a decoder 75 degrees off", kept, gamma / 4.0, role="correction")
    cosine = (unit * decoder.W).sum(axis=-1) * gamma
    yield at_least("its correlation with u_mm, given that margin", cosine, 0.99, role="step")


@measures("bias.erratum-10", instances=3)
def erratum_10(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    n, d, rho, alpha, delta, eta, steps = 2, 100, 0.1, 6.0, 0.1, 0.002, 600
    drawn = problems.gaussian(n=n, T=2, d=d, rho=rho, alpha=alpha, trials=instances, rng=rng)
    best, other = _marked(drawn)
    lead = drawn.y[..., None] * (best - other)
    run = optim.train(
        JOINT,
        drawn,
        optim.DecayedNormalizedGD(eta),
        steps=steps,
        record=[{"v": lambda params, _: params["v"]}],
    )
    u = run.history["v"]
    gaps = (lead @ u[..., None])[..., 0].min(axis=-1)
    logs = np.log(10.0 * n**2 / delta)
    second = theory.bias.omega_2(alpha, rho, n=n, delta=delta)
    t = np.arange(steps)
    travelled = np.linalg.norm(np.diff(u, axis=0), axis=-1).sum(axis=0) / eta
    what = "path length of u over eta, 600 steps, against the sum of Lemma 11"
    printed = theory.bias.power_sum(steps, printed=True)
    yield equal(f"{what} over (t+1)^(-2/3)", travelled, printed)
    summed = theory.bias.power_sum(steps)
    yield equal(f"{what} over (t'+1)^(-2/3)", travelled, summed, role="correction")
    bound = theory.bias.score_gap_bound(t + 1, eta, second)
    yield at_least("score gap over the corrected sum", gaps[1:], bound[:, None], role="correction")
    step = np.diff((lead @ u[..., None])[..., 0], axis=0).min(axis=-1)
    for power, role in ((-1 / 3, "step"), (-2 / 3, "correction")):
        asked = (eta * second * (t + 1.0) ** power)[:, None]
        yield at_least(f"increment of the score gap over (t+1)^{power:.2f}", step, asked, role=role)
    mean = np.exp(np.log(step).mean(axis=-1))
    pace = slope(t[4:] + 1.0, mean[4:])
    yield equal("exponent of the increments in t", pace, -2 / 3, within=0.05, role="correction")
    wide = int(np.ceil((16.0 * 24.0 * n) ** 2 * logs))  # the d that (41) asks for, with C = 24
    first = theory.bias.omega_1(alpha, rho, n=n, d=wide)
    shown = 2.0 * rho * alpha / (np.sqrt(1.5) * n) * np.sqrt(logs)
    yield at_least("what (41) gives, against omega_1", shown, first, role="step")
    yield at_least("what (41) gives, against omega_2", shown, second, role="correction")


@measures("bias.erratum-11")
def erratum_11(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    t = np.unique(rng.integers(1, 2000, size=instances))
    rate = 0.05  # eta omega_1 / 2
    log_product = np.cumsum(np.log(np.exp(-rate * np.arange(1.0, 2002.0) ** (-2 / 3))))[t]
    printed = -rate * (t + 1.0) * (t + 1.0) ** (-2 / 3)
    what = "log of the product of the step factors, to t"
    yield equal(f"{what}, printed sum", log_product, printed)
    last = np.log(theory.bias.joint_loss_bound(t + 1, 0.1, 1.0))  # eta omega_1 = 0.1
    yield at_most(f"{what}, last line", log_product, last, role="correction")
    eta, omega, norm = 0.002, 3.0, rng.uniform(0.0, 1.0, t.size)
    flat = 40.0  # omega_0; omega(theta_t) is at most omega_0 (t+1)^(2/3)
    above = 1.0 - eta * omega * (t + 1.0) ** (-2 / 3)
    line = above + 8.0 * eta**2 * norm * flat * (t + 1.0) ** (2 / 3 - 4 / 3)
    push = 8.0 * eta**2 * flat * (t + 1.0) ** (2 / 3 - 4 / 3)
    what = "factor of one step, against the next line, brackets matched"
    yield at_most(what, line, above + push, role="correction")
