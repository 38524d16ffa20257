"""A small NumPy library for the theory of attention; the book attnlab runs on it.

Data flow up, imports point down: `problems` are what goes in, `models` what is trained, `optim`
what happens, `svm` where it goes. Leading axes are trials, everywhere.

What goes in
    `problems.TokenProblem`, `problems.SequenceProblem`
        the two kinds of data: one query a sample, or every token a query
    `problems.selection`
        one token a sample, checked against the data and its mask
    `problems.sphere`, `problems.sequence`, `problems.causal`
        random tokens of the svm paper; sequence-to-sequence and causal forms
    `problems.orthogonal`, `problems.gaussian`, `problems.bad_direction`, `problems.two_token`
        the data of the bias paper
    `problems.tokenized_mixture`, `problems.planted`, `problems.gaussian_regression`
        the data of the multihead and the encoder paper
    `problems.Mixture`, `problems.Teacher`, `problems.Source`
        what a problem was drawn from
    `problems.source`, `problems.sources`
        a source of one's own, registered so that its runs can be saved; all that are known

What is trained
    `models.Attention`, `models.MultiHead`, `models.Encoder`
        the networks of the four papers
    `models.LinearHead`, `models.ReLUHead`, `models.ConcaveHead`, `models.Head`
        prediction heads of `Attention`
    `models.Evaluation`, `models.Model`, `models.Params`
        what the training loop asks of a model, and what comes back
    `models.fit`
        parameters as clean arrays of the model's shapes
    `models.softmax`, `models.centred`
        attention, and its derivative
    `models.losses`, `models.Loss`
        classification losses of the margin, free of cancellation

How it bends
    `curvature.hessian`, `curvature.Hessian`, `curvature.product`, `curvature.extremes`
        exact second derivatives, products with them, and their extreme eigenvalues
    `curvature.weak_convexity`
        how negative curvature compares with the loss
    `curvature.loss_constants`, `curvature.smoothness`, `curvature.Smoothness`
        Lipschitz constants of a loss (the svm paper's M_0, M_1) and of the gradient

What it looks like from its start
    `ntk.empirical`, `ntk.jacobian`, `ntk.distance`
        tangent kernels of every model, block by block, and how far apart two of them are
    `ntk.limiting_encoder`, `ntk.arc_cosine`
        the infinite-width kernel of the encoder in closed form
    `ntk.margin`, `ntk.TangentMargin`
        the largest margin in tangent features, certified

What happens
    `optim.train`, `optim.Run`, `optim.load`
        the one training loop, its result, and a result read from a file
    `optim.GD`, `optim.NormalizedGD`, `optim.PolyakStep`, `optim.Momentum`, `optim.Adam`
        step rules
    `optim.DecayedNormalizedGD`, `optim.JointNormalizedGD`
        step rules for head and attention together
    `optim.Rule`, `optim.declare`
        what the training loop asks of a step rule

Where it goes
    `svm.attention_svm`, `svm.rank_limited_svm`, `svm.decoder_svm`
        max-margin directions in the Frobenius and the nuclear norm, certified
    `svm.least_norm`
        the same for plain vectors
    `svm.general_svm`, `svm.finite_component`, `svm.svm_equivalent`
        several tokens a sample: the infinite part, the finite part, and both
    `svm.regularization_path`, `svm.in_cone`
        minimisers over growing balls, globally and inside the cone of a selection
    `svm.classify`, `svm.correlation`
        did a run go to the global, a local, or no max-margin direction?
    `svm.locally_optimal`, `svm.feasibility`
        may training stay at a selection, and can it be separated at all?
    `svm.assumption_b1`, `svm.assumption_b2`, `svm.assumption_c`, `svm.assumption_d`
        the svm paper's assumptions, as what was found
    `svm.Margin`, `svm.Path`, `svm.Classification`, `svm.LocalOptimality`, `svm.Finding`
        the answers; `svm.InfeasibleMargin` is the error that carries one

What complains
    `checks.fail`, `checks.frozen`, `checks.seal`, `checks.shape`, `checks.count`, `checks.number`,
    `checks.choice`, `checks.flag`, `checks.generator`, `checks.trials_shape`, `checks.expand`
        arguments become clean arrays at the door, or an error that names them
    `checks.Array`, `checks.IntArray`, `checks.BoolArray`, `checks.Rng`
        types
    `checks.GAP`, `checks.UNRESOLVED`
        from where on a certificate counts, and below which margin float64 may fail to decide
"""

import importlib
from types import ModuleType

__all__ = ["checks", "curvature", "models", "ntk", "optim", "problems", "svm"]
__version__ = "0.2.0"


def __getattr__(name: str) -> ModuleType:
    """Rooms are imported when they are first asked for."""
    if name in __all__:
        return importlib.import_module(f"attnlab.{name}")
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The rooms, also before they are asked for."""
    return [*globals(), *__all__]
