"""Figures of the encoder paper."""

from attnlab.figures.encoder import _schemes as _schemes
from attnlab.figures.encoder import _vector as _vector
from attnlab.figures.encoder import _widths as _widths
