"""Errata of the multihead paper: as printed, as it should read, the number that shows it."""
# ruff: noqa: I001  # in the order of the catalogue

from attnbook.claims.multihead._errata import _model as _model
from attnbook.claims.multihead._errata import _calculus as _calculus
from attnbook.claims.multihead._errata import _training as _training
from attnbook.claims.multihead._errata import _first_phase as _first_phase
from attnbook.claims.multihead._errata import _margins as _margins
from attnbook.claims.multihead._errata import _wording as _wording
