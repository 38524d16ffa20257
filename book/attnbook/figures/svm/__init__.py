"""Figures of the svm paper."""

from attnbook.figures.svm import _cartoon as _cartoon
from attnbook.figures.svm import _columns as _columns
from attnbook.figures.svm import _concave as _concave
from attnbook.figures.svm import _global as _global
from attnbook.figures.svm import _lemma as _lemma
from attnbook.figures.svm import _local as _local
from attnbook.figures.svm import _many as _many
from attnbook.figures.svm import _plane as _plane
from attnbook.figures.svm import _ranks as _ranks
from attnbook.figures.svm import _rates as _rates
from attnbook.figures.svm import _real as _real
