"""Figures of the encoder paper."""

from attnbook.figures.encoder import _accuracy as _accuracy
from attnbook.figures.encoder import _images as _images
from attnbook.figures.encoder import _schemes as _schemes
from attnbook.figures.encoder import _tails as _tails
from attnbook.figures.encoder import _vector as _vector
from attnbook.figures.encoder import _widths as _widths
