"""Figures of the multihead paper."""

from attnlab.figures.multihead import _mixture as _mixture
from attnlab.figures.multihead import _planted as _planted
