"""How many neurons conditions (2) and (3) ask for, in orders of magnitude."""

from __future__ import annotations

import numpy as np

from attnbook.theory.encoder._bars import Bars
from attnbook.theory.encoder._convergence import condition_2, condition_3
from attnlab import checks as check

T, FEATURES = 2, 4  # of the sequences; exponents do not depend on them
TOP = 80.0  # log of the largest width that is tried


def least_width(N: float, init: str, scaling: str) -> float:
    r"""The width at which (2) and (3) are first met, by bisection in the logarithm.

    Norms are of their order of magnitude, with $C_\bullet=1$ ($\sqrt{d_m}$ for NTK), constants 1,
    $\alpha$ by Lemma 15 and a loss of $N/2$: only the exponent in $N$ means something. It is 3 for
    LeCun and $\tau_0=d_m^{-1/2}$, 2 with $\tau_0=d_m^{-1}$, and 3 for NTK.

    Args:
        N: samples.
        init: ``"lecun"``, ``"he"`` or ``"ntk"``.
        scaling: ``"sqrt"`` or ``"linear"``.

    Returns:
        $d_m$, not rounded.

    Examples:
        >>> import numpy as np
        >>> from attnbook import theory
        >>> small, large = (theory.encoder.least_width(N, "lecun", "sqrt") for N in (1e3, 1e6))
        >>> round(float(np.log10(large / small)) / 3, 2)
        3.0

    Reference: encoder, Theorems 1 and 2, Table 3.
    """
    N = check.number("N", N, least=1.0)
    check.choice("init", init, ("lecun", "he", "ntk"))
    check.choice("scaling", scaling, ("sqrt", "linear"))
    low, high = 0.0, TOP
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _met(np.exp(middle), N, init, scaling) else (middle, high)
    return float(np.exp(high))


def _met(width: float, N: float, init: str, scaling: str) -> bool:
    """Both conditions, in orders of magnitude."""
    tau0 = width**-0.5 if scaling == "sqrt" else 1.0 / width
    ntk = init == "ntk"
    radius = float(np.sqrt(width)) if ntk else 1.0
    matrix, last = (2.0 * radius, 2.0 * radius) if ntk else ((width / FEATURES) ** 0.5, 2.0)
    pool, eta = (width**-0.5, 1.0) if ntk else (1.0, 1.0 / FEATURES)
    norms = dict.fromkeys("QKV", np.array(matrix)) | {"O": np.array(last)}
    bars = Bars(int(N), T, np.array(1.0), tau0, pool, **norms)
    alpha = np.sqrt(pool**2 * width * eta / T / 4.0)  # Lemma 15 and equation 48
    second = condition_2(bars, alpha, N / 2.0, radius)
    return bool(second >= 1.0 and condition_3(bars, alpha, N / 2.0) >= 1.0)
