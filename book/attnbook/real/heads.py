"""The theory's own heads on real words: frozen features, heads that share parameters, training."""

from attnbook.real._heads import Course, Cut, fit, start, width
from attnbook.real._sentences import Features, Sentences, sentences, words

__all__ = [
    "Course",
    "Cut",
    "Features",
    "Sentences",
    "fit",
    "sentences",
    "start",
    "width",
    "words",
]
