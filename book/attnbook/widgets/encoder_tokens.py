"""Explorables of the encoder chapter: races of starts and scalings, tokens and features."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import theory
from attnbook.widgets._base import Explorable
from attnlab import models, ntk, optim, problems
from attnlab.checks import Array
from attnlab.problems import SequenceProblem

CEILING = 1e6  # a loss above this multiple of its start is drawn, and told, as diverged


def times(last: int, count: int = 40) -> list[int]:
    """Recorded steps, about evenly spaced on a logarithmic scale."""
    return [0, *np.unique(np.geomspace(1, last, count).round().astype(int)).tolist()]


def spectrum(model: models.Encoder, params: Any, problem: SequenceProblem) -> Array:
    """Eigenvalues of the tangent kernel, largest first."""
    values = np.linalg.eigvalsh(ntk.empirical(model, params, problem))[..., ::-1]
    return np.asarray(np.maximum(values, 0.0))


def losses(
    model: models.Encoder, problem: SequenceProblem, params: Any, step: float, last: int
) -> Array:
    """Loss at `times`, cut at `CEILING` times its start; what stopped early stays there."""
    every = times(last)
    run = optim.train(model, problem, optim.GD(step), last, params=params, every=every)
    found = np.asarray(run.history["loss"])
    share = np.nan_to_num(found / found[0], nan=CEILING, posinf=CEILING)
    out = np.full(len(every), CEILING)
    out[: len(share)] = np.minimum(share, CEILING)
    return out


class InitRace(Explorable):
    r"""LeCun, He and NTK starts at one step size, and at one step relative to each limit.

    Args:
        rng: seed of data and starts.

    Returns:
        A widget.

    Reference: encoder, Appendix C.5, Figure 5.
    """

    name = "init_race"
    inits = ("lecun", "he", "ntk")
    widths = (20, 80, 240)
    steps = ((0.25, 0.5, 1.0), (0.125, 0.25, 0.5))  # step sizes; shares of the largest stable one
    last = 200

    def __init__(self, rng: int = 0) -> None:
        problem = problems.gaussian_regression(n=20, T=4, d=20, unit_tokens=True, rng=rng)
        cells = (len(self.inits), len(self.widths))
        loss = np.zeros((2, 3, *cells, len(times(self.last))))
        values = np.zeros((*cells, problem.n))
        alpha = np.zeros(cells)
        for i, init in enumerate(self.inits):
            for w, width in enumerate(self.widths):
                model = models.Encoder(width, init=init)
                start = model.init(problem, rng)
                values[i, w] = spectrum(model, start, problem)
                alpha[i, w] = float(theory.encoder.alpha(model, start, problem)) ** 2
                limit = float(theory.encoder.stability_limit(values[i, w, 0], problem.n))
                for mode, unit in enumerate((1.0, limit)):
                    for s, share in enumerate(self.steps[mode]):
                        step = share * unit
                        loss[mode, s, i, w] = losses(model, problem, start, step, self.last)
        arrays = {
            "step": np.array(times(self.last)),
            "loss": loss,
            "values": values,
            "alpha": alpha,
            "widths": np.array(self.widths),
        }
        super().__init__({"k": len(times(self.last)) - 2}, arrays)


class ScaleRace(Explorable):
    r"""$\tau_0=d_m^{-1/2}$ against $d_m^{-1}$, at one step size and at equal relative steps.

    Args:
        draws: how many draws of data and start the reader may look at.

    Returns:
        A widget.

    Reference: encoder, Appendix C.6, Figures 4, 7 and 8.
    """

    name = "scale_race"
    scalings = ("sqrt", "linear")
    widths = (80, 240)
    share = 0.5  # of the largest stable step: the smaller of both limits, or each one's own
    last = 200

    def __init__(self, draws: int = 3) -> None:
        n, T, d = 20, 5, 20
        cells = (2, draws, len(self.scalings), len(self.widths))  # raw or unit tokens first
        loss = np.zeros((2, *cells, len(times(self.last))))
        values = np.zeros((*cells, n))
        alpha, weight = np.zeros(cells), np.zeros(cells)
        for unit in (0, 1):
            for seed in range(draws):
                problem = problems.gaussian_regression(
                    n=n, T=T, d=d, unit_tokens=bool(unit), rng=seed
                )
                for w, width in enumerate(self.widths):
                    starts = []
                    for s, scaling in enumerate(self.scalings):
                        model = models.Encoder(width, scaling=scaling)
                        start = model.init(problem, seed)  # the same weights for both
                        starts.append((model, start))
                        at = (unit, seed, s, w)
                        values[at] = spectrum(model, start, problem)
                        alpha[at] = float(theory.encoder.alpha(model, start, problem)) ** 2
                        weight[at] = (model.attention(start, problem) ** 2).sum(axis=-1).mean()
                    limit = theory.encoder.stability_limit(values[unit, seed, :, w, 0], n)
                    for s, (model, start) in enumerate(starts):
                        for mode, top in enumerate((limit.min(), limit[s])):
                            cell = (mode, unit, seed, s, w)
                            if mode and limit[s] == limit.min():  # the same run
                                loss[cell] = loss[0, unit, seed, s, w]
                                continue
                            step = self.share * float(top)
                            loss[cell] = losses(model, problem, start, step, self.last)
        arrays = {
            "step": np.array(times(self.last)),
            "loss": loss,
            "values": values,
            "alpha": alpha,
            "weight": weight,
            "widths": np.array(self.widths),
        }
        super().__init__({"k": len(times(self.last)) - 2}, arrays)


class TokenOrFeature(Explorable):
    r"""A vector of 24 numbers as $d_s$ tokens of $d$ features: kernel and training by shape.

    Args:
        rng: seed of data and starts.

    Returns:
        A widget.

    Reference: encoder, Corollary 1, Figure 3.
    """

    name = "token_or_feature"
    tokens = (1, 2, 3, 4, 6, 8, 12, 24)
    widths = (24, 120)
    scalings = ("sqrt", "linear")
    share = 0.25  # of the largest stable step
    last = 150

    def __init__(self, rng: int = 0) -> None:
        size = self.tokens[-1]
        drawn = problems.gaussian_regression(n=size, T=1, d=size, unit_tokens=True, rng=rng)
        cells = (len(self.tokens), len(self.widths), len(self.scalings))
        loss = np.zeros((*cells, len(times(self.last))))
        values, squares = np.zeros((*cells, size)), np.zeros((*cells, size))
        for t, T in enumerate(self.tokens):
            problem = SequenceProblem(drawn.X.reshape(size, T, size // T), drawn.y)
            for w, width in enumerate(self.widths):
                for s, scaling in enumerate(self.scalings):
                    model = models.Encoder(width, scaling=scaling)
                    start = model.init(problem, rng)
                    values[t, w, s] = spectrum(model, start, problem)
                    F = np.linalg.svd(model.features(start, problem), compute_uv=False)
                    squares[t, w, s, : len(F)] = F**2
                    top = theory.encoder.stability_limit(values[t, w, s, 0], size)
                    step = self.share * float(top)
                    begun = float(model.value_and_grad(start, problem)[0])
                    curve = losses(model, problem, start, step, self.last)
                    loss[t, w, s] = curve * begun / (drawn.y**2).mean()
        many = SequenceProblem(drawn.X.reshape(size, size, 1), drawn.y)
        kappa = np.linspace(-150.0, 150.0, 601)
        floor = theory.encoder.effective_floor(kappa, many).min() / (drawn.y**2).mean()
        arrays = {
            "step": np.array(times(self.last)),
            "loss": loss,
            "values": values,
            "squares": squares,
            "tokens": np.array(self.tokens),
            "widths": np.array(self.widths),
            "floor": np.array([floor]),
        }
        super().__init__({"t": 3}, arrays)


class ThreeNumbers(Explorable):
    r"""One feature a token: the whole network as $\kappa$, $p$ and $q$, to drag and to train.

    Args:
        rng: seed of data and starts.

    Returns:
        A widget; `problem` is its data.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.ThreeNumbers().problem.X.shape
        (12, 5, 1)

    Reference: encoder, Corollary 1 (Identity 4).
    """

    name = "three_numbers"
    samples = (2, 3, 6, 12)
    widths = (8, 64, 512)
    last = 300

    def __init__(self, rng: int = 4) -> None:
        drawn = problems.gaussian_regression(n=self.samples[-1], T=5, d=1, rng=rng)
        every = times(self.last, 30)
        shape = (len(self.samples), len(self.widths), len(every))
        path, loss = np.zeros((*shape, 3)), np.zeros(shape)
        for k, n in enumerate(self.samples):
            problem = SequenceProblem(drawn.X[:n], drawn.y[:n])
            for w, width in enumerate(self.widths):
                model = models.Encoder(width)
                start = model.init(problem, rng + w)
                top = spectrum(model, start, problem)[0]

                def numbers(params: Any, _: Any, model: Any = model) -> Array:
                    return np.stack(theory.encoder.effective_scalars(model, dict(params)))

                run = optim.train(
                    model,
                    problem,
                    optim.GD(0.25 * float(theory.encoder.stability_limit(top, n))),
                    self.last,
                    params=start,
                    record=["loss", {"numbers": numbers}],
                    every=every,
                )
                path[k, w], loss[k, w] = run.history["numbers"], run.history["loss"]
        arrays = {
            "X": drawn.X[..., 0],
            "y": drawn.y,
            "step": np.array(every),
            "path": path,
            "loss": loss,
        }
        super().__init__({"N": 12, "k": len(every) - 1}, arrays)
        self._problem = drawn

    @property
    def problem(self) -> SequenceProblem:
        """The samples the reader chose."""
        n = int(self.now("N"))
        return SequenceProblem(self._problem.X[:n], self._problem.y[:n])


class TailMeter(Explorable):
    r"""How alike two samples are, against the tail $\exp(-t^{\hat c})$ of Assumption 3.

    Args:
        rng: seed of the data.

    Returns:
        A widget.

    Reference: encoder, Assumption 3, Figures 1 and 6.
    """

    name = "tail_meter"
    kinds = ("paper", "unit", "number", "onehot")
    kept = 400  # order statistics of the similarity of numbers; of the paper's data all pairs

    def __init__(self, rng: int = 0) -> None:
        generator = np.random.default_rng(rng)
        found = {}
        for kind, unit in (("paper", False), ("unit", True)):
            own = problems.gaussian_regression(n=100, T=10, d=100, unit_tokens=unit, rng=generator)
            alike = theory.encoder.similarity(own.X)
            found[kind] = np.sort(alike[np.triu_indices(100, 1)])
        pairs = generator.standard_normal((40_000, 2, 1, 1))
        shares = (np.arange(self.kept) + 0.5) / self.kept
        numbers = theory.encoder.similarity(pairs)[:, 0, 1]
        found["number"] = np.quantile(numbers, shares, method="inverted_cdf")
        found["onehot"] = np.zeros(self.kept)
        found["onehot"][-self.kept // 20 :] = 1.0  # two of 20 one-hot tokens are the same
        super().__init__({}, found)
