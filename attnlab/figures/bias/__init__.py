"""Figures of the bias paper."""

from attnlab.figures.bias import _directions as _directions
from attnlab.figures.bias import _joint as _joint
from attnlab.figures.bias import _race as _race
