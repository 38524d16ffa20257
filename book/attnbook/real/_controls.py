"""What a head is compared with: matrices that learned nothing of it, and one that did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from attnbook.real._selection import Selection, Selections, selection
from attnbook.real._weights import Head
from attnlab import checks as check
from attnlab import models, optim, problems
from attnlab.checks import Array, Rng

RANDOM = "random directions"
OTHER = "key of another head"


def scrambled(W: ArrayLike, *, rng: Rng) -> Array:
    """A matrix with the same singular values and random singular vectors.

    Args:
        W: any matrix with as many rows as columns.
        rng: draws the vectors.

    Returns:
        A matrix of the same shape.

    Examples:
        >>> import numpy as np
        >>> from attnbook import real
        >>> other = real.probe.scrambled(np.diag([3.0, 1.0, 0.0]), rng=0)
        >>> np.linalg.svd(other, compute_uv=False).round(12).tolist()
        [3.0, 1.0, 0.0]
    """
    given, draw = check.frozen("W", W, 2), check.generator(rng)
    check.shape("W", given, (len(given), len(given)), "square")
    s = np.linalg.svd(given, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    turns = [np.linalg.qr(draw.standard_normal((len(given), len(s))))[0] for _ in range(2)]
    return np.asarray((turns[0] * s) @ turns[1].T)


def mismatched(one: Head, other: Head) -> Array:
    """Queries of one head with keys of another."""
    return Head(one.W_Q, other.W_K, one.W_V, one.W_O, one.B_Q, other.B_K).W


def controls(
    seen: Selections, head: Head, others: Sequence[Head] = (), *, rng: Rng, draws: int = 3
) -> dict[str, list[Selection]]:
    """The same comparison for matrices that learned nothing of this head's selections.

    Args:
        seen: what the head was asked.
        head: its weights.
        others: heads of the same layer, whose keys meet this head's queries.
        rng: draws directions, and which of the others.
        draws: of each kind, where there are as many.

    Returns:
        By name, a `Selection` for each draw: random singular vectors with the head's singular
        values, and keys of other heads.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = real.probe.traces(model, ["one two three four"] * 3, length=4)
        >>> seen = real.probe.selections(texts, 0, length=4, rng=0)
        >>> told = real.probe.controls(seen, model.head(0, 0), [model.head(0, 1)], rng=0)
        >>> {name: len(some) for name, some in told.items()}
        {'random directions': 3, 'key of another head': 1}
    """
    draw, draws = check.generator(rng), check.count("draws", draws)
    found = {RANDOM: [selection(seen, scrambled(head.W, rng=draw)) for _ in range(draws)]}
    if others:
        picked = draw.permutation(len(others))[:draws]
        found[OTHER] = [selection(seen, mismatched(head, others[int(k)])) for k in picked]
    return found


def chance(own: Selection, controls: Mapping[str, Sequence[Selection]]) -> float:
    """How often a matrix like the controls would be as close to its SVM, inside the span.

    Args:
        own: of the head.
        controls: of `controls`.

    Returns:
        The rank of the head among them and itself, as a share: a p-value by permutation.

    Examples:
        >>> from attnbook import real
        >>> one, two, three = (real.probe.Selection(0, 1, near, 0) for near in (0.5, 0.4, 0.6))
        >>> round(real.probe.chance(one, {"random directions": [two, three]}), 3)
        0.667
    """
    near = [one.inside for some in controls.values() for one in some]
    if not near:
        raise check.fail("controls", "at least one draw", "none")
    return (1 + sum(one >= own.inside for one in near)) / (1 + len(near))


def taught(seen: Selections, *, rng: Rng, steps: int = 300) -> Array:
    """A positive control: a matrix trained as the theory has it, on these very tokens.

    Args:
        seen: tokens and those that ask.
        rng: draws the head that says which tokens are best.
        steps: of normalized gradient descent from zero.

    Returns:
        W: on ``seen`` it lies along the SVM of its selections, or the probe is broken; on other
        texts it shows what the probe can see of such a W.

    Examples:
        >>> from attnbook import real
        >>> model = real.models.random(rng=0)
        >>> texts = real.probe.traces(model, ["one two three four", "a good one"], length=4)
        >>> seen = real.probe.selections(texts, 0, length=4, rng=0)
        >>> real.probe.selection(seen, real.probe.taught(seen, rng=0)).cosine > 0.9
        True

    Reference: svm, Theorem 3.
    """
    v: Array = np.asarray(check.generator(rng).standard_normal(seen.X.shape[-1]))
    v[-1] = 0.0  # every token has this 1
    problem = problems.TokenProblem(
        X=seen.X, z=seen.z, y=np.ones(len(seen.X)), v=v / np.linalg.norm(v)
    )
    model = models.Attention(start="zero")
    run = optim.train(model, problem, optim.NormalizedGD(0.1), check.count("steps", steps))
    return np.asarray(run.params["W"])
