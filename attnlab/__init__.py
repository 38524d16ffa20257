"""attnlab: a small NumPy library for the theory of attention."""

from attnlab import models, optim, problems

__all__ = ["models", "optim", "problems"]
__version__ = "0.1.0"
