"""The networks of the four papers: frozen hyper-parameters with closed-form gradients.

A model holds no arrays. Its parameters are a plain dict, its loss has one number a trial.
"""

from attnlab.models._attention import Attention
from attnlab.models._base import Evaluation, Model, Params, fit
from attnlab.models._encoder import Encoder
from attnlab.models._heads import ConcaveHead, Head, LinearHead, ReLUHead
from attnlab.models._losses import Loss, losses
from attnlab.models._multihead import MultiHead
from attnlab.models._softmax import centred, softmax

__all__ = [
    "Attention",
    "ConcaveHead",
    "Encoder",
    "Evaluation",
    "Head",
    "LinearHead",
    "Loss",
    "Model",
    "MultiHead",
    "Params",
    "ReLUHead",
    "centred",
    "fit",
    "losses",
    "softmax",
]
