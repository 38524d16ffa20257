"""Ledger of the encoder paper."""
# ruff: noqa: I001  # in the order of the paper

from attnlab.claims.encoder import _setting as _setting
from attnlab.claims.encoder import _convergence as _convergence
from attnlab.claims.encoder import _kernel as _kernel
from attnlab.claims.encoder import _curvature as _curvature
from attnlab.claims.encoder import _vector_input as _vector_input
from attnlab.claims.encoder import _tails as _tails
from attnlab.claims.encoder import _weights as _weights
from attnlab.claims.encoder import _layers as _layers
from attnlab.claims.encoder import _kinks as _kinks
from attnlab.claims.encoder import _eigenvalues as _eigenvalues
from attnlab.claims.encoder import _many_samples as _many_samples
from attnlab.claims.encoder import _discussions as _discussions
from attnlab.claims.encoder import _identities as _identities
from attnlab.claims.encoder import _errata as _errata
