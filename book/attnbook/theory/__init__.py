"""The papers' constants and bounds, one module a paper: what a theorem says, as a number.

Nothing here trains or solves; what a bound needs of a run or of a margin is an argument.
"""

from attnbook.theory import bias, encoder, multihead, svm

__all__ = ["bias", "encoder", "multihead", "svm"]
