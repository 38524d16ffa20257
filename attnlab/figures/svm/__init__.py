"""Figures of the svm paper."""

from attnlab.figures.svm import _cartoon as _cartoon
from attnlab.figures.svm import _columns as _columns
from attnlab.figures.svm import _concave as _concave
from attnlab.figures.svm import _global as _global
from attnlab.figures.svm import _lemma as _lemma
from attnlab.figures.svm import _local as _local
from attnlab.figures.svm import _many as _many
from attnlab.figures.svm import _plane as _plane
from attnlab.figures.svm import _ranks as _ranks
from attnlab.figures.svm import _rates as _rates
