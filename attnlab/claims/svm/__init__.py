"""Ledger of the svm paper."""
# ruff: noqa: I001  # in the order of the paper

from attnlab.claims.svm import _existence as _existence
from attnlab.claims.svm import _paths as _paths
from attnlab.claims.svm import _landscape as _landscape
from attnlab.claims.svm import _global as _global
from attnlab.claims.svm import _local as _local
from attnlab.claims.svm import _cones as _cones
from attnlab.claims.svm import _many as _many
from attnlab.claims.svm import _descent as _descent
from attnlab.claims.svm import _neighbourhoods as _neighbourhoods
from attnlab.claims.svm import _sequences as _sequences
from attnlab.claims.svm import _sequence_paths as _sequence_paths
from attnlab.claims.svm import _independence as _independence
from attnlab.claims.svm import _errata as _errata
