"""The product that Corollary 2 prints (erratum 33)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnbook.claims._checks import measures
from attnbook.claims._measure import Measurement, at_most, slope
from attnbook.claims.svm._errata._paths import RADII
from attnbook.claims.svm._errata._tools import norm
from attnlab import models, problems, svm


@measures("svm.erratum-33", instances=20)
def erratum_33(rng: np.random.Generator, instances: int) -> Iterator[Measurement]:
    drawn = problems.sphere(n=2, T=3, d=4, min_gap=0.1, trials=instances, rng=rng)
    path = svm.regularization_path(models.Attention(factors=4), drawn, RADII, rng=rng)
    nuclear = svm.attention_svm(drawn, norm="nuc")
    goal = nuclear.W / nuclear.norm[:, None, None]
    K, Q, R = path.params["K"], path.params["Q"], np.array(RADII)[:, None, None, None]
    turned = norm(Q @ K.swapaxes(-1, -2) / R - goal)
    straight = norm(K @ Q.swapaxes(-1, -2) / R - goal)
    yield at_most("distance of Q K^T / R at R = 1000", turned[-1], 0.05)
    yield at_most("distance of K Q^T / R at R = 1000", straight[-1], 0.05, role="correction")
    power = slope(RADII, straight.mean(axis=1))
    yield at_most("power of R in its mean", power, -0.5, role="correction")
