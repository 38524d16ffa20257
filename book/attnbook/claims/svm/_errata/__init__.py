"""Errata of the svm paper: as printed, as it should read, the number that shows it."""
# ruff: noqa: I001  # in the order of the catalogue

from attnbook.claims.svm._errata import _factors as _factors
from attnbook.claims.svm._errata import _descent as _descent
from attnbook.claims.svm._errata import _cones as _cones
from attnbook.claims.svm._errata import _local as _local
from attnbook.claims.svm._errata import _words as _words
from attnbook.claims.svm._errata import _concave as _concave
from attnbook.claims.svm._errata import _paths as _paths
from attnbook.claims.svm._errata import _sequences as _sequences
from attnbook.claims.svm._errata import _separability as _separability
from attnbook.claims.svm._errata import _experiments as _experiments
from attnbook.claims.svm._errata import _support as _support
from attnbook.claims.svm._errata import _products as _products
