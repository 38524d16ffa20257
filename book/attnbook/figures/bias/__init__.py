"""Figures of the bias paper."""

from attnbook.figures.bias import _directions as _directions
from attnbook.figures.bias import _images as _images
from attnbook.figures.bias import _joint as _joint
from attnbook.figures.bias import _patches as _patches
from attnbook.figures.bias import _race as _race
from attnbook.figures.bias import _sentences as _sentences
from attnbook.figures.bias import _watched as _watched
from attnbook.figures.bias import words as words
