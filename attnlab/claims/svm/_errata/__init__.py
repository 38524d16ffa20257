"""Errata of the svm paper: as printed, as it should read, the number that shows it."""
# ruff: noqa: I001  # in the order of the catalogue

from attnlab.claims.svm._errata import _factors as _factors
from attnlab.claims.svm._errata import _descent as _descent
from attnlab.claims.svm._errata import _cones as _cones
from attnlab.claims.svm._errata import _local as _local
from attnlab.claims.svm._errata import _words as _words
from attnlab.claims.svm._errata import _concave as _concave
from attnlab.claims.svm._errata import _paths as _paths
from attnlab.claims.svm._errata import _sequences as _sequences
from attnlab.claims.svm._errata import _separability as _separability
from attnlab.claims.svm._errata import _experiments as _experiments
from attnlab.claims.svm._errata import _support as _support
from attnlab.claims.svm._errata import _products as _products
