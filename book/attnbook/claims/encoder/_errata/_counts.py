"""How many neurons the theorems ask for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook import theory
from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, equal, slope


@measures("encoder.erratum-s16", instances=1)
def s16(_rng: np.random.Generator, _instances: int) -> Iterator[Measurement]:
    sizes = np.logspace(2, 6, 5)
    sharp, flat, ntk_width = (
        slope(sizes, [theory.encoder.least_width(float(n), init, scaling) for n in sizes])
        for init, scaling in (("lecun", "sqrt"), ("lecun", "linear"), ("ntk", "linear"))
    )
    yield equal("exponent of the width in N, Theorem 1, against Table 3", sharp, 1.0, within=0.1)
    yield equal("the same, against the introduction", sharp, 2.0, role="step", within=0.1)
    yield equal("the same", sharp, 3.0, role="correction", within=0.05)
    what = "exponent for LeCun with tau_0 = 1/d_m"
    yield equal(f"{what}, against Table 3", flat, 1.0, role="step", within=0.1)
    yield equal(what, flat, 2.0, role="correction", within=0.05)
    what = "exponent for NTK with C = sqrt(d_m)"
    yield equal(f"{what}, against Theorem 2", ntk_width, 1.0, role="step", within=0.1)
    yield equal(what, ntk_width, 3.0, role="correction", within=0.05)
