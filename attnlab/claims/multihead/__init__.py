"""Ledger of the multihead paper."""
# ruff: noqa: I001  # in the order of the paper

from attnlab.claims.multihead import _formulas as _formulas
from attnlab.claims.multihead import _loss as _loss
from attnlab.claims.multihead import _training as _training
from attnlab.claims.multihead import _descent as _descent
from attnlab.claims.multihead import _generalization as _generalization
from attnlab.claims.multihead import _good as _good
from attnlab.claims.multihead import _first_phase as _first_phase
from attnlab.claims.multihead import _margin as _margin
from attnlab.claims.multihead import _expressivity as _expressivity

from attnlab.claims.multihead import _errata as _errata
