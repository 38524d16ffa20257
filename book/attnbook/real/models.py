"""Real encoders in plain NumPy: what every head sees, and with which weights."""

from attnbook.real._encoder import Encoder, Trace, hub, minilm, random
from attnbook.real._weights import Head

__all__ = ["Encoder", "Head", "Trace", "hub", "minilm", "random"]
