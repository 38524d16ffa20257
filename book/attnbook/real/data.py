"""Real images and texts, from archives of package registries; nothing is passed on by us."""

from attnbook.real._datasets import Images, Texts, hub, images, sources, texts
from attnbook.real._sources import Source

__all__ = ["Images", "Source", "Texts", "hub", "images", "sources", "texts"]
