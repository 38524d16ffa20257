"""Ledger of the bias paper."""
# ruff: noqa: I001  # in the order of the paper

from attnbook.claims.bias import _setting as _setting
from attnbook.claims.bias import _rate as _rate
from attnbook.claims.bias import _descent as _descent
from attnbook.claims.bias import _growth as _growth
from attnbook.claims.bias import _remarks as _remarks
from attnbook.claims.bias import _joint_setting as _joint_setting
from attnbook.claims.bias import _joint_rates as _joint_rates
from attnbook.claims.bias import _joint_lemmas as _joint_lemmas
from attnbook.claims.bias import _errata as _errata
