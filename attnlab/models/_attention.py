"""One attention head with one query a sample: the model of the bias and svm papers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from attnlab import checks as check
from attnlab.checks import Array, Rng
from attnlab.models import _softmax
from attnlab.models._base import Evaluation, Params, draws, fit, kind
from attnlab.models._heads import Head, LinearHead
from attnlab.models._losses import LOSSES, Loss, check_labels
from attnlab.problems import TokenProblem


@dataclass(frozen=True)
class Attention:
    r"""$f(X,z)=h\big(X^\top\mathrm{softmax}(XWz)\big)$, trained on $\ell(y f)$.

    Parameters are ``W (..., d, d)``, or ``K, Q (..., d, factors)`` with $W=KQ^\top$; with
    ``train_head`` also ``v (..., d)``, which starts at zero and replaces the problem's head.

    Args:
        factors: None trains ``W``; a number trains ``K`` and ``Q`` with that many columns.
        head: `LinearHead` (the problem's ``v``), `ReLUHead` or `ConcaveHead`.
        loss: ``"logistic"``, ``"exponential"`` or ``"correlation"`` (which is $-yf$).
        start: ``"uniform"`` draws entries from $\mathcal U(-d^{-1/2},d^{-1/2})$, ``"zero"`` is 0.
        train_head: train ``v`` as well (linear head only).

    Returns:
        A model: frozen hyper-parameters; it holds no arrays of its own.

    Examples:
        >>> from attnlab import models, problems
        >>> p = problems.sphere(n=5, T=5, d=8, trials=100, min_gap=0.1, rng=0)
        >>> model = models.Attention()
        >>> params = model.init(p, rng=1)
        >>> loss, grads = model.value_and_grad(params, p)
        >>> loss.shape, grads["W"].shape, model.attention(params, p).shape
        ((100,), (100, 8, 8), (100, 5, 5))

    Reference: svm, equation 2 (W-ERM, KQ-ERM); bias, equation 1.
    """

    factors: int | None = None
    head: Head = field(default_factory=LinearHead)
    loss: str = "logistic"
    start: str = "uniform"
    train_head: bool = False

    def __post_init__(self) -> None:
        check.choice("loss", self.loss, LOSSES)
        check.choice("start", self.start, ("uniform", "zero"))
        check.flag("train_head", self.train_head)
        if self.factors is not None:
            check.count("factors", self.factors)
        if isinstance(self.head, type) or not hasattr(self.head, "gradient"):
            raise check.fail("head", "LinearHead(), ReLUHead(V) or ConcaveHead(penalty)", self.head)
        if self.train_head and not self.has_linear_head:
            raise check.fail("train_head", "a linear head to train", self.head)

    @property
    def has_linear_head(self) -> bool:
        """Whether the head is `LinearHead` itself; a subclass may compute something else."""
        return type(self.head) is LinearHead

    @property
    def _loss(self) -> Loss:
        return LOSSES[self.loss]

    def shapes(self, problem: TokenProblem) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter of one trial; refuses problems that do not suit the model."""
        kind(problem, TokenProblem, "Attention")
        check_labels(problem, self.loss)
        d = problem.d
        if self.factors is None:
            found: dict[str, tuple[int, ...]] = {"W": (d, d)}
        else:
            found = {"K": (d, self.factors), "Q": (d, self.factors)}
        if self.train_head:
            found["v"] = (d,)
        return found

    def init(self, problem: TokenProblem, rng: Rng | None = None) -> Params:
        """Parameters to start from; ``rng`` is needed where the start draws."""
        shapes = self.shapes(problem)
        params: Params = {name: np.zeros(problem.trials + tail) for name, tail in shapes.items()}
        if self.start == "uniform":
            rng, bound = draws(self.start, rng), problem.d**-0.5
            for name in [name for name in params if name != "v"]:
                params[name] = rng.uniform(-bound, bound, problem.trials + shapes[name])
        return params

    def forward(self, params: Params, problem: TokenProblem) -> Array:
        r"""Outputs $f_i=h(X_i^\top s_i)$, shape ``(..., n)``."""
        o = self._attended(self.attention(params, problem), problem)
        return self.head.value(o, self._v(params, problem))

    def attention(self, params: Params, problem: TokenProblem) -> Array:
        r"""$s_i=\mathrm{softmax}(X_iWz_i)$, shape ``(..., n, T)``."""
        return _softmax.softmax(self._logits(params, problem))

    def scores(self, problem: TokenProblem, params: Params | None = None) -> Array:
        r"""$\gamma_{it}=y_i\,h(x_{it})$ for this head, shape ``(..., n, T)``.

        With ``train_head`` the scores are those of ``params["v"]``.
        """
        kind(problem, TokenProblem, "Attention")
        v = problem.v if params is None else self._v(self._fitted(params, problem), problem)
        n, T = problem.n, problem.T
        flat = problem.X.reshape(*problem.trials, n * T, problem.d)
        values = self.head.value(flat, v).reshape(*problem.trials, n, T)
        return np.asarray(problem.y[..., None] * values)

    def floor(self, problem: TokenProblem) -> Array:
        r"""The infimum $\mathcal L_\star$ of the loss: all attention on the optimal tokens.

        Known for the linear head (0 where the head itself is trained).
        """
        if not self.has_linear_head:
            raise check.fail("floor", "a linear head, whose infimum is known", self.head)
        if self.train_head:
            if not self._loss.bounded:
                raise check.fail("floor", "a loss that is bounded below", self.loss)
            return np.zeros(problem.trials)
        return np.asarray(self._loss.value(problem.best).mean(axis=-1))

    def value_and_grad(self, params: Params, problem: TokenProblem) -> tuple[Array, Params]:
        r"""Mean loss, shape of the trials, and its gradient by the textbook formula.

        $\nabla_W=\frac1n\sum_i\ell'_i\,X_i^\top(\mathrm{diag}(s_i)-s_is_i^\top)\gamma_iz_i^\top$,
        $\nabla_K=\nabla_WQ$, $\nabla_Q=\nabla_W^\top K$. It cancels at saturation, where
        `scaled_grad` does not.
        """
        params = self._fitted(params, problem)
        v, loss = self._v(params, problem), self._loss
        logits = self._logits(params, problem)
        if self.has_linear_head:
            found = _softmax.plain(_tokens_first(logits), self._scores_first(params, problem), loss)
            c, u = _tokens_last(found.c), np.moveaxis(found.margins, 0, -1)
            s = _tokens_last(found.attention) if self.train_head else found.c
        else:
            s = _softmax.softmax(logits)
            o = self._attended(s, problem)
            u = problem.y * self.head.value(o, v)
            token_scores = self._token_scores(o, v, problem)
            moved = s * _softmax.centred(s, token_scores)
            c = moved * (loss.slope(u) / problem.n)[..., None]
        grads = self._pull(np.ascontiguousarray(c), params, problem)
        if self.train_head:
            weight = loss.slope(u) * problem.y / problem.n
            grads["v"] = (weight[..., None, :] @ self._attended(s, problem))[..., 0, :]
        return np.asarray(loss.value(u).mean(axis=-1)), grads

    def evaluate(self, params: Params, problem: TokenProblem) -> Evaluation:
        """Loss and gradient without cancellation, on a scale of their own (`scaled_grad`)."""
        logits, params = self._logits(params, problem), self._fitted(params, problem)
        v, loss = self._v(params, problem), self._loss
        if self.has_linear_head:
            scores = self._scores_first(params, problem)
            found = _softmax.exact(_tokens_first(logits), scores, loss)
        else:
            o = self._attended(_softmax.softmax(logits), problem)
            u = problem.y * self.head.value(o, v)
            scores = self._token_scores(o, v, problem)
            found = _softmax.exact(
                _tokens_first(logits), _tokens_first(scores), loss, np.moveaxis(u, -1, 0)
            )
        c = np.ascontiguousarray(_tokens_last(found.c))
        u = np.moveaxis(found.margins, 0, -1)
        grads = self._pull(c, params, problem)
        assert found.log_scale is not None
        log_scale = dict.fromkeys(grads, found.log_scale)
        value = np.asarray(loss.value(u).mean(axis=-1))
        excess: Array | None = None
        s = _tokens_last(found.attention)
        if self.train_head:
            log_slope = loss.log_slope(u)
            largest = log_slope.max(axis=-1)
            weight = -np.exp(log_slope - largest[..., None]) * problem.y / problem.n
            grads["v"] = (weight[..., None, :] @ self._attended(s, problem))[..., 0, :]
            log_scale["v"] = largest
            if loss.bounded:
                excess = _softmax.log_or_minus_infinity(value)
        elif self.has_linear_head:
            best = np.moveaxis(problem.best, -1, 0)
            excess = _softmax.log_excess(found, best, loss)
        return Evaluation(value, grads, log_scale, excess, attention=s)

    def scaled_grad(self, params: Params, problem: TokenProblem) -> tuple[Array, Params, Array]:
        r"""Excess loss, gradient direction and log scale, free of cancellation.

        The gradient is ``direction * exp(log_scale)``; the excess is the loss above
        $\mathcal L_\star$, formed without subtraction (the loss itself where no floor is known).
        One scale serves all parameters; `evaluate` keeps one for each.

        Returns:
            ``(excess_loss, direction, log_scale)``; the first and last have the trials' shape.
        """
        found = self.evaluate(params, problem)
        assert found.log_scale is not None
        common = np.stack(list(found.log_scale.values())).max(axis=0)
        common = np.where(np.isfinite(common), common, 0.0)  # every gradient is exactly zero
        direction = {
            name: found.times(name, np.exp(found.log_scale[name] - common)) for name in found.grads
        }
        excess = found.loss if found.log_excess is None else np.exp(found.log_excess)
        return excess, direction, common

    def coefficients(
        self, logits: Array, scores: Array, *, exact: bool = True, out: Array | None = None
    ) -> _softmax.Coefficients:
        r"""$c$ in $\nabla_W=\sum_{it}c_{it}\,x_{it}z_i^\top$, from the logits alone (linear head).

        $c_{it}=\frac1n\ell'(u_i)\,s_{it}(\gamma_{it}-u_i)$. Arrays have the tokens first, then the
        samples, then trials: ``(T, n, ...)``. ``exact`` does not cancel where softmax saturates.
        ``out`` is room for the first tokens, where that is all that is asked for; it need not be
        used.
        """
        return (_softmax.exact if exact else _softmax.plain)(logits, scores, self._loss, out=out)

    def coefficients_beside(
        self, logits: Array, above: Array, last: Array, out: Array
    ) -> _softmax.Coefficients:
        """The same by the textbook's formula, for all tokens but one whose logit is 0.

        ``above`` are their scores above ``last``, its own; ``out`` takes the coefficients.
        """
        return _softmax.beside(logits, above, last, self._loss, out)

    def log_excess(self, found: _softmax.Coefficients, best: Array) -> Array:
        """Log of the mean loss above its floor, from exact coefficients and the best scores."""
        return _softmax.log_excess(found, best, self._loss)

    def _fitted(self, params: Params, problem: TokenProblem) -> Params:
        return fit(self, params, problem, copy=False)

    def _v(self, params: Params, problem: TokenProblem) -> Array:
        return params["v"] if self.train_head else problem.v

    def _logits(self, params: Params, problem: TokenProblem) -> Array:
        params = self._fitted(params, problem)
        if self.factors is None:
            r = problem.z @ params["W"].swapaxes(-1, -2)
        else:
            r = (problem.z @ params["Q"]) @ params["K"].swapaxes(-1, -2)
        logits = (problem.X @ r[..., None])[..., 0]
        return logits if problem.mask is None else np.where(problem.mask, logits, -np.inf)

    def _scores_first(self, params: Params, problem: TokenProblem) -> Array:
        """Scores of the linear head with the token axis first, shape ``(T, n, ...)``."""
        if self.train_head:
            return _tokens_first(self.scores(problem, params))
        return problem.memo("scores, tokens first", lambda: _tokens_first(problem.scores))

    def _attended(self, s: Array, problem: TokenProblem) -> Array:
        return np.asarray((s[..., None, :] @ problem.X)[..., 0, :])

    def _token_scores(self, o: Array, v: Array, problem: TokenProblem) -> Array:
        r"""$y_i\,x_{it}^\top\nabla h(o_i)$: what stands for the scores in the gradient."""
        raw = (problem.X @ self.head.gradient(o, v)[..., None])[..., 0]
        return np.asarray(problem.y[..., None] * raw)

    def _pull(self, c: Array, params: Params, problem: TokenProblem) -> Params:
        r"""From coefficients of $x_{it}z_i^\top$ to gradients in the parameters."""
        P = self._attended(c, problem).swapaxes(-1, -2)  # (..., d, n)
        if self.factors is None:
            return {"W": P @ problem.z}
        K, Q = params["K"], params["Q"]
        return {
            "K": P @ (problem.z @ Q),
            "Q": problem.z.swapaxes(-1, -2) @ (P.swapaxes(-1, -2) @ K),
        }


def _tokens_first(array: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(array, (-1, -2), (0, 1)))


def _tokens_last(array: Array) -> Array:
    return np.moveaxis(array, (0, 1), (-1, -2))
