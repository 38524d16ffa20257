"""Errata of the bias paper that are measured: as printed, and as it should read."""

from attnbook.claims.bias._errata import _gradient as _gradient
from attnbook.claims.bias._errata import _joint as _joint
from attnbook.claims.bias._errata import _scale as _scale
from attnbook.claims.bias._errata import _setting as _setting
