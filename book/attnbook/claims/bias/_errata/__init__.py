"""Errata of the bias paper: as printed, as it should read, the number that shows it."""
# ruff: noqa: I001  # in the order of the catalogue

from attnbook.claims.bias._errata import _setting as _setting
from attnbook.claims.bias._errata import _rate as _rate
from attnbook.claims.bias._errata import _gradient as _gradient
from attnbook.claims.bias._errata import _joint as _joint
from attnbook.claims.bias._errata import _steps as _steps
from attnbook.claims.bias._errata import _scale as _scale
