"""Ledger of the encoder paper."""
# ruff: noqa: I001  # in the order of the paper

from attnbook.claims.encoder import _setting as _setting
from attnbook.claims.encoder import _convergence as _convergence
from attnbook.claims.encoder import _kernel as _kernel
from attnbook.claims.encoder import _curvature as _curvature
from attnbook.claims.encoder import _tails as _tails
from attnbook.claims.encoder import _layers as _layers
from attnbook.claims.encoder import _kinks as _kinks
from attnbook.claims.encoder import _eigenvalues as _eigenvalues
from attnbook.claims.encoder import _many_samples as _many_samples
from attnbook.claims.encoder import _discussions as _discussions
from attnbook.claims.encoder import _identities as _identities
from attnbook.claims.encoder import _errata as _errata
