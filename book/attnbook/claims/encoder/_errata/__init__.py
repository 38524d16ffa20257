"""Errata of the encoder paper that no statement's check shows: the number that refutes each."""

from attnbook.claims.encoder._errata import _counts as _counts  # S15, S16
from attnbook.claims.encoder._errata import _formulas as _formulas  # S1, S8, T1, T3, T4, T11
from attnbook.claims.encoder._errata import _proofs as _proofs  # S7, S11, T12, T13, T14, T16
