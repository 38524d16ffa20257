"""Explorables of chapter 2's first sections: where softmax sits, and what a step may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnbook.widgets._base import Explorable
from attnlab import models, problems
from attnlab.checks import Array
from attnlab.models import Encoder, Params
from attnlab.problems import SequenceProblem

Network = tuple[Encoder, Params, SequenceProblem]


def flat(params: Mapping[str, Array]) -> Array:
    """All parameters in one row, in the order of the JavaScript kernel."""
    return np.concatenate([np.ravel(params[k]) for k in ("W_Q", "W_K", "W_V", "w_O")])


def rounded(params: Params) -> Params:
    """What is left of parameters after their way to the page as 32-bit numbers."""
    return {name: array.astype(np.float32).astype(float) for name, array in params.items()}


class SoftmaxSits(Explorable):
    r"""Where attention starts, between a mean of all tokens and a choice of one.

    Returns:
        A widget; ``network()`` is the model, its start and the data of its present state.

    Examples:
        >>> from attnbook import widgets
        >>> model, params, problem = widgets.SoftmaxSits().network()
        >>> model.attention(params, problem).shape
        (8, 10, 10)

    Reference: encoder, Section 3 and the remark after Lemma 1.
    """

    name = "softmax_sits"
    widths = (10, 30, 100, 300, 1000, 3000)

    def __init__(self) -> None:
        data = self._data()
        logits = []
        for width in self.widths:
            model = models.Encoder(width, "ntk")
            params = model.init(data, rng=1)
            M = model.tau0 * params["W_Q"].T @ params["W_K"]  # entries of variance 1
            logits.append(data.X @ M @ data.X.mT)
        start = {"init": "lecun", "a": 0.5, "r": 1.0, "width": 1000}
        super().__init__(start, {"logits": np.stack(logits), "widths": np.array(self.widths)})

    def network(self) -> Network:
        """The model, its parameters and the data at the present state."""
        data, width = self._data(), int(self.now("width"))
        model = models.Encoder(width, self.now("init"), scaling=float(width ** -self.now("a")))
        scaled = SequenceProblem(10.0 ** self.now("r") * data.X, data.y)
        return model, model.init(scaled, rng=1), scaled

    @staticmethod
    def _data() -> SequenceProblem:
        return problems.gaussian_regression(n=8, T=10, d=100, unit_tokens=True, rng=0)


class StepDial(Explorable):
    r"""A small encoder trained at a multiple of its stability limit.

    Returns:
        A widget; ``network()`` is the model, its start and the data of its present state.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.StepDial().network()[0]
        Encoder(width=64, init='lecun', scaling='sqrt', pooling='mean', loss='mean')

    Reference: encoder, Section 5.1: what "step size 1" means.
    """

    name = "step_dial"
    widths = (16, 64, 200)

    def __init__(self) -> None:
        data = self._data()
        starts = {
            f"{init}{width}": flat(models.Encoder(width, init).init(data, rng=0))
            for init in ("lecun", "ntk")  # a start of He's is twice as wide as LeCun's
            for width in self.widths
        }
        start = {"init": "lecun", "width": 64, "ratio": 0.6}
        super().__init__(start, {"X": data.X, "y": data.y, **starts})

    def network(self) -> Network:
        """The model, its start and the data, rounded as on the page."""
        model = models.Encoder(int(self.now("width")), self.now("init"))
        if model.init == "ntk":
            return model, rounded(model.init(self._data(), rng=0)), self._data()
        lecun = rounded(models.Encoder(model.width).init(self._data(), rng=0))
        gain = 2.0**0.5 if model.init == "he" else 1.0
        return model, {name: gain * array for name, array in lecun.items()}, self._data()

    @staticmethod
    def _data() -> SequenceProblem:
        drawn = problems.gaussian_regression(n=8, T=3, d=6, unit_tokens=True, rng=0)
        X, y = (array.astype(np.float32).astype(float) for array in (drawn.X, drawn.y))
        return SequenceProblem(X, y)


class GaugeOne(Explorable):
    r"""Proposition 1 on one network: its conditions, its step, and what a step really does.

    Returns:
        A widget; ``network()`` is the model, its start and the data of its present state.

    Examples:
        >>> from attnbook import widgets
        >>> model, params, problem = widgets.GaugeOne().network()
        >>> gap = model.forward(params, problem) - problem.y
        >>> bool(abs(gap).max() < 1e-5)  # labels are the outputs, but for an offset
        True

    Reference: encoder, Proposition 1.
    """

    name = "gauge_one"
    widths = (20, 100, 500)

    def __init__(self) -> None:
        data = self._data()
        starts = {
            f"start{width}": flat(models.Encoder(width).init(data, rng=0)) for width in self.widths
        }
        start = {"width": 100, "offset": -6.0, "multiple": 0.0, "pooling": "sum"}
        super().__init__(start, {"X": data.X, "xi": data.y, **starts})

    def network(self) -> Network:
        """The model, its start and the data, rounded as on the page."""
        data = self._data()
        pooling = self.now("pooling")
        model = models.Encoder(int(self.now("width")), pooling=pooling, loss="half_sum")
        params = rounded(model.init(data, rng=0))
        y = model.forward(params, data) + 10.0 ** self.now("offset") * data.y
        return model, params, SequenceProblem(data.X, y)

    @staticmethod
    def _data() -> SequenceProblem:
        drawn = problems.gaussian_regression(n=4, T=2, d=6, unit_tokens=True, rng=0)
        X, y = (array.astype(np.float32).astype(float) for array in (drawn.X, drawn.y))
        return SequenceProblem(X, y)


class KinkMicroscope(Explorable):
    r"""Proposition 1 as printed fails where a neuron sits at its kink.

    Returns:
        A widget; ``instance()`` is the network with the neuron where you want it.

    Examples:
        >>> from attnbook import widgets
        >>> model, params, problem = widgets.KinkMicroscope.instance()
        >>> params["W_V"][0].tolist()
        [-1e-17, 0.4]

    Reference: encoder, Proposition 1 and Lemma 14, both as printed.
    """

    name = "kink_microscope"

    def __init__(self) -> None:
        super().__init__({"power": -17, "multiple": 1.0, "w": 12.0})

    @staticmethod
    def instance(
        p: float = -1e-17, *, q: float = 0.4, w: float = 12.0, cos: float = 0.6, e: Any = None
    ) -> Network:
        r"""Two samples of one token; the first neuron's pre-activation at sample 1 is ``p``.

        Args:
            p: that pre-activation.
            q: the second weight of the neuron.
            w: its output weight.
            cos: cosine of the two tokens.
            e: errors $f-y$ at the start; small ones of opposite sign unless told.

        Returns:
            Model, parameters and problem.
        """
        errors = np.array([1e-7, -0.5e-7 * cos]) if e is None else np.asarray(e, float)
        X = np.array([[1.0, 0.0], [cos, np.sqrt(1.0 - cos**2)]])
        dual = np.linalg.inv(X).T
        own = dual - 0.1 * dual[::-1]  # two neurons that see one sample each, without a say
        model = models.Encoder(3, pooling="sum", loss="half_sum")
        params = {
            "W_Q": np.zeros((3, 2)),
            "W_K": np.zeros((3, 2)),
            "W_V": np.vstack([[p, q], own]),
            "w_O": np.array([w, 0.0, 0.0]),
        }
        tokens = SequenceProblem(X[:, None], np.zeros(2))
        y = model.forward(params, tokens) - errors
        return model, params, SequenceProblem(X[:, None], y)
