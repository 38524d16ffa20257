"""Slips of notation: squares, transposes, letters used twice; each with what it would mean."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._measure import Measurement, at_most, equal
from attnbook.claims._records import EXTRACTION
from attnbook.claims._registry import erratum
from attnbook.claims.encoder._errata._pieces import Pieces, flip, frobenius, pieces, same
from attnlab.checks import Array


@erratum(
    "encoder.erratum-t12",
    "Lemma 13, proof",
    "three of the four gradient norms have lost their square",
    printed=r"$\sum_n\|\nabla_{w_O}f(X_n)\|_2\le(\rho\bar\lambda_V)^2$, and likewise for $W_Q$ "
    r"and $W_K$.",
    correct=r"$\sum_n\|\nabla_{w_O}f(X_n)\|_2^2\le(\rho\bar\lambda_V)^2$, "
    r"$\sum_n\|\nabla_{W_Q}f(X_n)\|_F^2\le"
    r"(2\rho\tau_0\bar\lambda_K\bar\lambda_V\bar\lambda_Od_sC_x^2)^2$, and so for $W_K$.",
    page="encoder/convergence",
    instances=60,
    status=EXTRACTION,
    reason="Superscripts may have been lost in the text that we read: the first of the four norms "
    "has its square.",
    about=("encoder.lemma-13",),
)
def t12(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(
        rng, max(instances, 10), n=3, size=0.01
    )  # short tokens: a number below 1 and its square
    factors = theory.encoder.gradient_factors(p.bars())
    for name, role in (("w_O", "statement"), ("W_Q", "step"), ("W_K", "step")):
        each = frobenius([p.gradient[name]], trials=2)
        bound = factors[name] ** 2
        yield at_most(f"sum of the norms, {name}", each.sum(axis=-1), bound, role=role)
        what = f"sum of their squares, {name}"
        yield at_most(what, (each**2).sum(axis=-1), bound, role="correction")


@erratum(
    "encoder.erratum-t13",
    "Lemmas 9 and 10, proofs",
    "X for its transpose in (6), and columns stacked where the rows of F_pre are meant",
    printed=r"$\|\mathbf W_V^t\mathbf X(\beta_i^{t'}-\beta_i^t)\|_2$ in (6); in Lemma 10 "
    r"$F_{pre}$ has the blocks $\tau_1\sum_i\sigma_r(W_VX_n^\top\beta_{i,n})\in\mathbb R^{d_m}$.",
    correct=r"$\|\mathbf W_V^t\mathbf X^\top(\beta_i^{t'}-\beta_i^t)\|_2$; the blocks transposed, "
    r"so that $F_{pre}$ is $N\times d_m$.",
    page="encoder/convergence",
    instances=60,
    status=EXTRACTION,
    reason="Superscripts may have been lost in the text that we read: the line before has X's "
    "transpose. The shapes fit in (6) only where d_s = d; there the printed step is false. In "
    "Lemma 10 the Frobenius norm is the same, the spectral norm before it is not.",
    about=("encoder.lemma-9", "encoder.lemma-10"),
)
def t13(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    many = max(instances, 10)
    p = pieces(rng, many, n=1, T=4, d=4)
    q = p.moved({name: rng.standard_normal(p.params[name].shape) for name in ("W_Q", "W_K")})
    turn = (q.beta - p.beta)[:, 0]  # rows i
    X, W_V = p.X[:, 0], p.params["W_V"]
    before = np.linalg.norm(q.pre - p.pre, axis=-1)[:, 0]
    for what, mixed, role in (
        ("(6) with X", turn @ flip(X), "statement"),
        ("(6) with its transpose", turn @ X, "correction"),
    ):
        bound = np.linalg.norm(mixed @ flip(W_V), axis=-1)
        yield at_most(f"|W_V X' beta| changed, {what}", before, bound, role=role)
    r = pieces(rng, many, n=3)
    F = r.model.features(r.params, r.problem)
    stacked = F.reshape(many, -1, 1)
    spectral, of_stack = (np.linalg.norm(a, ord=2, axis=(-2, -1)) for a in (F, stacked))
    yield equal("columns of Lemma 10's matrix", stacked.shape[-1], r.model.width, role="step")
    yield equal("its spectral norm, against F_pre", of_stack, spectral, role="step")
    yield equal("its Frobenius norm, against F_pre", of_stack, frobenius([F]), role="correction")


@erratum(
    "encoder.erratum-t14",
    "Appendix C.7 (f_pre and equation 62)",
    "the hidden layer contains the output weights, and (62) has weights that do not belong",
    printed=r"$\mathbf f_{pre}=\tau_1w_O^\top\sum_i\sigma_r(W_VX^\top\beta_i+(X^{(i,:)})^\top)$; "
    r"$\|F_{pre}-F_{pre}^*\|_2\le\sqrt N\tau_1d_s\|w_O\|_2\|W_V\|_2C_x$.",
    correct=r"No $w_O^\top$ in $\mathbf f_{pre}$; $\|F_{pre}-F_{pre}^*\|_2\le\sqrt N\tau_1d_s"
    r"\max_i\|X^{(i,:)}\|_2$, and a row may be as long as $\sqrt{d_s}C_x$.",
    page="encoder/convergence",
    instances=60,
    reason="The residual encoder asks for d = d_m; it is written out here.",
    about=("encoder.theorem-1", "encoder.lemma-10"),
)
def t14(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d = 6
    p = pieces(rng, instances, n=3, d=d, width=d).scaled(W_V=1e-3, w_O=1e-1)
    with_tokens, without = (
        p.model.tau1 * np.maximum(p.pre + extra, 0.0).sum(axis=-2) for extra in (p.X, 0.0)
    )
    w_O = p.params["w_O"]
    scalar = (with_tokens @ w_O[..., None])[..., 0]
    yield equal("entries of f_pre as printed", scalar[0, 0].size, d, role="step")
    outputs = frobenius([((with_tokens - without) @ w_O[..., None])])
    bars, n, T = p.bars(), p.problem.n, p.problem.T
    printed = np.sqrt(n) * p.model.tau1 * T * bars.O * bars.V * bars.Cx
    change = with_tokens - without
    yield at_most("(62) as printed, |w_O'(f - f*)|", outputs, printed)
    yield at_most("(62) as printed, |F - F*|", frobenius([change]), printed, role="step")
    rows = np.linalg.norm(p.X, axis=-1).max(axis=(-2, -1))
    mended = np.sqrt(n) * p.model.tau1 * T * rows
    yield at_most("(62) with the longest row", frobenius([change]), mended, role="correction")


@erratum(
    "encoder.erratum-t15",
    "Proposition 1 and Lemma 14",
    "one letter z for two quantities",
    printed=r"$z=\bar\lambda_O^2(1+4\tau_0^2C_x^4d_s^2\bar\lambda_V^2(\bar\lambda_Q^2+"
    r"\bar\lambda_K^2))$ (Proposition 1, Table 2) and $z=2\tau_0C_x^2d_s(\bar\lambda_Q+"
    r"\bar\lambda_K)$ (Lemma 14).",
    correct=r"Inside Lemma 14 the second one: it bounds "
    r"$\|\beta_i^{t'}-\beta_i^t\|_2\le z\|\theta^{t'}-\theta^t\|_2$ (18), "
    r"which the first does not.",
    page="encoder/convergence",
    instances=60,
    about=("encoder.proposition-1", "encoder.lemma-14"),
)
def t15(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    p = pieces(rng, instances, n=1).scaled(w_O=1e-3)
    q = p.moved({name: 1e-3 * rng.standard_normal(p.params[name].shape) for name in p.params})
    bars = p.bars(q)
    first, second = theory.encoder.z(bars), theory.encoder.lemma_14_z(bars)
    yield equal("z of Proposition 1, against that of Lemma 14", first, second, role="step")
    turned = np.linalg.norm(q.beta - p.beta, axis=-1).max(axis=(-2, -1))
    ratio = turned / frobenius(q.params[name] - array for name, array in p.params.items())
    yield at_most("(18) with the z of Proposition 1", ratio, first)
    yield at_most("(18) with the z of Lemma 14", ratio, second, role="correction")


@erratum(
    "encoder.erratum-t16",
    "Table 2, Theorem 2, Lemma 12, Proposition 1's proof",
    "a transpose for the step t, a bar over d, a hat for a tilde",
    printed=r"$\theta^\top$ in $\nabla\ell(\theta^\top)$ and $\ell(\theta^\top)$; the dimension "
    r"$\bar d$ of a token (Table 2); $d_m=\hat\Omega(N)$ (Theorem 2).",
    correct=r"$\theta^t$, the weights at step $t$; $d$; $\tilde\Omega(N)$.",
    page="encoder/model",
    instances=40,
    status=EXTRACTION,
    reason="All three are marks on a letter, which the text that we read may have wrong. Of the "
    "three only the first has a number: the loss at transposed weights, which exists where "
    "d_m = d.",
    about=("encoder.lemma-12", "encoder.theorem-2", "encoder.proposition-1"),
)
def t16(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    d = 5
    p = pieces(rng, instances, d=d, width=d)
    down = p.moved(
        {k: -0.05 * g for k, g in p.model.value_and_grad(p.params, p.problem)[1].items()}
    )
    turned = {k: flip(a) if a.ndim == 3 else a for k, a in down.params.items()}
    wide = pieces(rng, 1, d=d, width=d + 1)
    rows = flip(wide.params["W_V"]).shape[-2]
    yield equal("rows of the transpose of W_V, d_m = 6", rows, d + 1, role="step")
    told = half_sum(down)
    read = Pieces(p.model, turned, p.problem).loss
    yield same("loss at step 1, the weights transposed", read, told, 1)
    yield same("loss at step 1", down.loss, told, 1, role="correction")


def half_sum(p: Pieces) -> Array:
    """The loss of Appendix B.1, written out."""
    f = (np.maximum(p.pre, 0.0) @ p.params["w_O"][:, None, :, None])[..., 0].sum(axis=-1)
    return np.asarray(0.5 * ((p.model.tau1 * f - p.problem.y) ** 2).sum(axis=-1))
