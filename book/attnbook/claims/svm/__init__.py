"""Ledger of the svm paper."""
# ruff: noqa: I001  # in the order of the paper

from attnbook.claims.svm import _existence as _existence
from attnbook.claims.svm import _paths as _paths
from attnbook.claims.svm import _landscape as _landscape
from attnbook.claims.svm import _global as _global
from attnbook.claims.svm import _turning as _turning
from attnbook.claims.svm import _first_step as _first_step
from attnbook.claims.svm import _local as _local
from attnbook.claims.svm import _cones as _cones
from attnbook.claims.svm import _many as _many
from attnbook.claims.svm import _descent as _descent
from attnbook.claims.svm import _neighbourhoods as _neighbourhoods
from attnbook.claims.svm import _sequences as _sequences
from attnbook.claims.svm import _sequence_paths as _sequence_paths
from attnbook.claims.svm import _errata as _errata
