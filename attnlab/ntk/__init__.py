"""Tangent kernels: of every model at any point, in the limit of infinite width, and their margin.

The tangent features of a sample are the gradient of the model's output, not of its loss.
"""

from attnlab.ntk._kernel import distance, empirical, jacobian
from attnlab.ntk._limit import arc_cosine, limiting_encoder
from attnlab.ntk._margin import TangentMargin, margin

__all__ = [
    "TangentMargin",
    "arc_cosine",
    "distance",
    "empirical",
    "jacobian",
    "limiting_encoder",
    "margin",
]
