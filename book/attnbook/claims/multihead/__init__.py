"""Ledger of the multihead paper."""
# ruff: noqa: I001  # in the order of the paper

from attnbook.claims.multihead import _formulas as _formulas
from attnbook.claims.multihead import _loss as _loss
from attnbook.claims.multihead import _training as _training
from attnbook.claims.multihead import _few_heads as _few_heads
from attnbook.claims.multihead import _descent as _descent
from attnbook.claims.multihead import _generalization as _generalization
from attnbook.claims.multihead import _good as _good
from attnbook.claims.multihead import _first_phase as _first_phase
from attnbook.claims.multihead import _margin as _margin
from attnbook.claims.multihead import _expressivity as _expressivity

from attnbook.claims.multihead import _errata as _errata
