"""Errata of the multihead paper that are measured: as printed, and as it should read."""

from attnbook.claims.multihead._errata import _calculus as _calculus
from attnbook.claims.multihead._errata import _margins as _margins
from attnbook.claims.multihead._errata import _training as _training
