"""How the loss bends: exact Hessians, their products and extremes, smoothness, weak convexity.

Every second derivative is a closed form: under the attention map the gradient is a covariance
of tokens and the curvature a third central moment.
"""

from attnlab.curvature._hessian import Hessian, hessian
from attnlab.curvature._product import product
from attnlab.curvature._smoothness import Smoothness, loss_constants, smoothness
from attnlab.curvature._spectrum import extremes, weak_convexity

__all__ = [
    "Hessian",
    "Smoothness",
    "extremes",
    "hessian",
    "loss_constants",
    "product",
    "smoothness",
    "weak_convexity",
]
