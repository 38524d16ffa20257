"""The theory's own heads on real words: frozen features, heads that share parameters, training."""

from attnbook.real._heads import Course, Cut, Features, features, fit, start, width

__all__ = ["Course", "Cut", "Features", "features", "fit", "start", "width"]
