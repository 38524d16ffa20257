"""Figures of the multihead paper."""

from attnbook.figures.multihead import _mixture as _mixture
from attnbook.figures.multihead import _planted as _planted
from attnbook.figures.multihead import _sentences as _sentences
