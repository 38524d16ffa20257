"""Small Transformers, trained with PyTorch as the papers train theirs, and watched meanwhile."""

from attnbook.real._checkpoints import Run, load
from attnbook.real._fit import fit
from attnbook.real._padded import Padded, padded, text
from attnbook.real._torch import Rule
from attnbook.real._transformer import Transformer, vit

__all__ = ["Padded", "Rule", "Run", "Transformer", "fit", "load", "padded", "text", "vit"]
