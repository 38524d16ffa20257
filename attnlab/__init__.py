"""A small NumPy library for the theory of attention; the book attnlab runs on it.

Data flow up, imports point down: `problems` are what goes in, `models` what is trained, `optim`
what happens. Leading axes are trials, everywhere.

What goes in
    `problems.TokenProblem`, `problems.SequenceProblem`
        the two kinds of data: one query a sample, or every token a query
    `problems.sphere`, `problems.sequence`, `problems.causal`
        random tokens of the svm paper; sequence-to-sequence and causal forms
    `problems.orthogonal`, `problems.gaussian`, `problems.bad_direction`, `problems.two_token`
        the data of the bias paper
    `problems.tokenized_mixture`, `problems.planted`, `problems.gaussian_regression`
        the data of the multihead and the encoder paper
    `problems.Mixture`, `problems.Teacher`, `problems.Source`
        what a problem was drawn from

What is trained
    `models.Attention`, `models.MultiHead`, `models.Encoder`
        the networks of the four papers
    `models.LinearHead`, `models.ReLUHead`, `models.ConcaveHead`, `models.Head`
        prediction heads of `Attention`
    `models.Evaluation`, `models.Model`, `models.Params`
        what the training loop asks of a model, and what comes back

What happens
    `optim.train`, `optim.Run`, `optim.load`
        the one training loop, its result, and a result read from a file
    `optim.GD`, `optim.NormalizedGD`, `optim.PolyakStep`, `optim.Momentum`, `optim.Adam`
        step rules
    `optim.DecayedNormalizedGD`, `optim.JointNormalizedGD`
        step rules for head and attention together
    `optim.Rule`
        what the training loop asks of a step rule
"""

from attnlab import models, optim, problems

__all__ = ["models", "optim", "problems"]
__version__ = "0.1.0"
