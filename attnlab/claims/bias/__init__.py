"""Ledger of the bias paper."""
# ruff: noqa: I001  # in the order of the paper

from attnlab.claims.bias import _setting as _setting
from attnlab.claims.bias import _rate as _rate
from attnlab.claims.bias import _descent as _descent
from attnlab.claims.bias import _growth as _growth
from attnlab.claims.bias import _remarks as _remarks
from attnlab.claims.bias import _joint_setting as _joint_setting
from attnlab.claims.bias import _joint_rates as _joint_rates
from attnlab.claims.bias import _joint_lemmas as _joint_lemmas
from attnlab.claims.bias import _errata as _errata
