"""Errata of the encoder paper: as printed, as it should read, the number that shows it."""
# ruff: noqa: I001  # in the order of the catalogue

from attnbook.claims.encoder._errata import _pooling as _pooling  # S1, S2
from attnbook.claims.encoder._errata import _smoothness as _smoothness  # S3
from attnbook.claims.encoder._errata import _eigenvalues as _eigenvalues  # S4, S5
from attnbook.claims.encoder._errata import _width as _width  # S6, S7
from attnbook.claims.encoder._errata import _hessian as _hessian  # S8
from attnbook.claims.encoder._errata import _rates as _rates  # S9 to S11
from attnbook.claims.encoder._errata import _comparisons as _comparisons  # S12 to S14
from attnbook.claims.encoder._errata import _counts as _counts  # S15, S16
from attnbook.claims.encoder._errata import _constants as _constants  # S17, S18
from attnbook.claims.encoder._errata import _gradients as _gradients  # T1 to T4
from attnbook.claims.encoder._errata import _factors as _factors  # T5 to T7
from attnbook.claims.encoder._errata import _second_order as _second_order  # T8 to T11
from attnbook.claims.encoder._errata import _notation as _notation  # T12 to T16
