"""Step rules and the one training loop."""

from attnlab.optim._descent import GD, NormalizedGD, PolyakStep
from attnlab.optim._joint import DecayedNormalizedGD, JointNormalizedGD
from attnlab.optim._memory import Adam, Momentum
from attnlab.optim._rules import Rule, declare
from attnlab.optim._run import Run, load
from attnlab.optim._training import train

__all__ = [
    "GD",
    "Adam",
    "DecayedNormalizedGD",
    "JointNormalizedGD",
    "Momentum",
    "NormalizedGD",
    "PolyakStep",
    "Rule",
    "Run",
    "declare",
    "load",
    "train",
]
