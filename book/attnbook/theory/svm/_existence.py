"""When a selection can be separated, and how large the rank of the answer can be."""

from __future__ import annotations

import math

from attnlab import checks as check


def enough_dimension(n: int, T: int) -> int:
    r"""$\max(T-1,n)$, from which almost every dataset can be separated (svm, Theorems 1 and 8).

    Sufficient, not necessary: see `counting_dimension`.

    >>> from attnbook import theory
    >>> [theory.svm.enough_dimension(n, T) for n, T in ((3, 4), (4, 3), (2, 5))]
    [3, 4, 4]
    """
    return max(check.count("T", T, least=2) - 1, check.count("n", n))


def counting_dimension(n: int, T: int) -> int:
    r"""$\lceil\sqrt{n(T-1)}\rceil$, the least $d$ for independent features
    (svm, Appendix E, by counting).

    All $n(T-1)$ features are $d\times d$ matrices: $n(T-1)\le d^2$. Below it their independence, on
    which the proof rests, is impossible; feasibility may still hold by luck.

    >>> from attnbook import theory
    >>> theory.svm.counting_dimension(4, 3), theory.svm.enough_dimension(4, 3)  # d = 3 will do
    (3, 4)
    """
    rows = check.count("n", n) * (check.count("T", T, least=2) - 1)
    return math.isqrt(rows - 1) + 1


def rank_bound(n: int, T: int, d: int) -> int:
    r"""$\min(n,d,n(T-1))$, the rank of a max-margin solution at most (svm, Lemma 1 and Figure 4).

    Its rows lie in the span of the queries, its columns in that of the token differences. The
    paper's text and figure say $\max(n,d)$; its lemma says $n$.

    >>> from attnbook import theory
    >>> theory.svm.rank_bound(n=5, T=2, d=20), theory.svm.rank_bound(n=5, T=2, d=3)
    (5, 3)
    """
    n, T, d = check.count("n", n), check.count("T", T, least=2), check.count("d", d)
    return min(n, d, n * (T - 1))
