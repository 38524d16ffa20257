"""How many tokens a concave head selects: Figure 9 of the svm paper, and what replaces it."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnbook import theory
from attnbook.figures._record import Arrays, Cell, Data
from attnbook.figures._registry import figure
from attnbook.figures._style import ink, mark, tone
from attnlab import models, optim, problems, svm


def draw(trials: int, T: int, rng: np.random.Generator) -> problems.TokenProblem:
    """One sample of T orthonormal tokens; query and head on the sphere, label +1."""
    X = np.linalg.qr(rng.standard_normal((trials, 1, T, T)))[0]
    z, v = rng.standard_normal((trials, 1, T)), rng.standard_normal((trials, T))
    z /= np.linalg.norm(z, axis=-1, keepdims=True)
    v /= np.linalg.norm(v, axis=-1, keepdims=True)
    return problems.TokenProblem(X=X, z=z, y=np.ones((trials, 1)), v=v)


def scaled(problem: problems.TokenProblem, penalty: np.ndarray) -> problems.TokenProblem:
    """The same tokens with the head over its penalty: with one sample and the loss -x, normalized
    steps do not see the scale, so that every trial may have a penalty of its own.
    """
    v = problem.v / penalty[..., None]
    return problems.TokenProblem(X=problem.X, z=problem.z, y=problem.y, v=v)


def train(
    cell: Cell, problem: problems.TokenProblem, recipe: str, steps: int, start: models.Params
) -> tuple[np.ndarray, np.ndarray]:
    """W and attention (of the only sample) at the end."""
    model = models.Attention(head=models.ConcaveHead(1.0), loss="correlation", start="zero")
    rule = optim.NormalizedGD(cell["step_size"], recipe=recipe)
    run = optim.train(model, problem, rule, steps, params=start, record=(), every=steps)
    return run.params["W"], model.attention(run.params, problem)[..., 0, :]


def predict(
    problem: problems.TokenProblem, W: np.ndarray, s: np.ndarray, selected: np.ndarray
) -> np.ndarray:
    """Cosine of W with W^mm and with W^SVMeq of the given shares, ``(trials, 2)``; NaN where all
    tokens are selected.
    """
    found = np.full((len(s), 2), np.nan)
    some = np.flatnonzero(~selected.all(axis=-1) & selected.any(axis=-1))
    if not some.size:
        return found
    part, chosen = problem.trial(some), selected[some][:, None]
    shares = np.where(selected, s, 0.0)[some][:, None]
    shares /= shares.sum(axis=-1, keepdims=True)
    general = svm.general_svm(part, selected=chosen)
    finite = svm.finite_component(part, shares, selected=chosen)
    both = svm.svm_equivalent(W[some], finite, general)
    found[some] = np.stack([svm.correlation(W[some], M) for M in (general.W, both)], axis=-1)
    return found


def compute(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """Every penalty on the same tokens, from the same start."""
    penalty, T = np.array(cell["penalty"]), cell["T"]
    count = len(penalty)
    base = draw(trials, T, rng)
    every = base.trial(np.repeat(np.arange(trials), count))
    bound = T**-0.5
    start = np.repeat(rng.uniform(-bound, bound, (trials, T, T)), count, axis=0)
    problem = scaled(every, np.tile(penalty, trials))
    # as published
    W, s = train(cell, problem, "paper", cell["steps"], {"W": start})
    selected = s > cell["selected_above"]
    kept = (selected | (s < cell["masked_below"])).all(axis=-1)
    published = np.where(kept, selected.sum(axis=-1), np.nan)
    told = np.full((len(s), 2), np.nan)
    if kept.any():
        at = np.flatnonzero(kept)
        told[at] = predict(problem.trial(at), W[at], s[at], selected[at])
    # the substitutes: exact and longer, without a filter, held against the closed form
    W, s = train(cell, problem, "exact", cell["long_steps"], {"W": start})
    closed = theory.svm.water_filling(every.scores[:, 0], np.tile(penalty, trials))
    found = {
        "published": published,
        "published_cosine": told,
        "count": (s > cell["selected_above"]).sum(axis=-1),
        "closed": (closed > 0.0).sum(axis=-1),
        "cosine": predict(problem, W, closed, closed > 0.0),
    }
    return {name: a.reshape(trials, count, *a.shape[1:]) for name, a in found.items()}


def finish(settings: Any, arrays: Arrays) -> Arrays:
    """With the penalties."""
    return {**arrays, "penalty": np.array(settings["penalty"])}


def average(values: np.ndarray) -> np.ndarray:
    """Mean over trials of what is there; NaN where nothing is."""
    held = np.isfinite(values)
    count = held.sum(axis=0)
    total = np.where(held, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def by_count(data: Data, counts: np.ndarray) -> np.ndarray:
    """Mean of 1 - cosine (margin alone, both parts) by the closed form's count, (counts, 2)."""
    rows = [
        average(
            np.where((data["closed"] == k)[..., None], 1.0 - data["cosine"], np.nan).reshape(-1, 2)
        )
        for k in counts
    ]
    return np.array(rows)


def paint(data: Data, canvas: Any) -> None:
    """Counts, what the filter keeps, and the two predictions by penalty and by count."""
    (counts, filtered), (by_penalty, by_tokens) = canvas.subplots(2, 2)
    x = data["penalty"]
    where = np.arange(len(x))
    names = [f"{value:g}" for value in x]
    measured, closed = data["count"].mean(axis=0), data["closed"].mean(axis=0)
    low, high = np.quantile(data["count"], (0.1, 0.9), axis=0)
    counts.fill_between(where, low, high, color=tone(0), alpha=0.15, lw=0)
    counts.plot(where, measured, "-", color=tone(0), marker=mark(0), label="no filter, long run")
    counts.plot(where, closed, "--", color=tone(1), marker=mark(1), label="closed form", mfc="none")
    counts.plot(
        where, average(data["published"]), "*", color=ink(), ms=12, mfc="none", label="kept, filter"
    )
    counts.set(title="selected tokens")
    counts.legend(fontsize=9.5)
    share = np.isfinite(data["published"]).mean(axis=0)
    bars = filtered.bar(where, share, color=tone(3), hatch="//")
    filtered.bar_label(bars, [f"{value:.0%}" for value in share], fontsize=9.5)
    filtered.set(title="runs the published filter keeps", ylim=(0, 1.1))
    filtered.grid(visible=False, axis="x")
    for axes in (counts, filtered, by_penalty):
        axes.set_xticks(where, names)
        axes.set_xlabel("penalty λ")
    tokens = np.arange(1, int(data["closed"].max()) + 1)
    series = (
        (by_penalty, where, average(1.0 - data["cosine"])),
        (by_tokens, tokens, by_count(data, tokens)),
    )
    for axes, at, values in series:
        for j, (label, dash) in enumerate((("margin alone", ":"), ("with finite part", "-"))):
            axes.plot(at, values[:, j], dash, color=tone(4 - 4 * j), marker=mark(j), label=label)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=9.5)
    by_penalty.set(title="1 − cosine, closed-form shares")
    by_tokens.set(title="the same by selected tokens", xlabel="selected tokens (closed form)")


def alt(data: Data) -> str:
    """Counts against the closed form, what is kept, and the predictions."""
    share = np.isfinite(data["published"]).mean(axis=0)
    cosine = average(data["cosine"])
    told = "; ".join(
        f"λ={x:g}: {a:.2f} ({b:.2f}), {k:.0%}"
        for x, a, b, k in zip(
            data["penalty"],
            data["count"].mean(axis=0),
            data["closed"].mean(axis=0),
            share,
            strict=True,
        )
    )
    return (
        "Selected tokens in long runs without a filter (closed form in brackets), and the share of "
        f"runs that the published filter keeps. {told}. The cosine of W with its prediction from "
        f"the closed form is at least {np.nanmin(cosine[:, 1]):.3f} on average, with the margin "
        f"alone at least {np.nanmin(cosine[:, 0]):.3f}."
    )


SETTINGS = {
    "T": 10,
    "step_size": 0.1,
    "selected_above": 1e-3,
    "masked_below": 1e-8,
    "steps": 2000,
}


@figure(
    "svm.9",
    "a concave head selects several tokens: counts and predictions by its penalty",
    status="not as described",
    reading=(
        "The paper keeps runs with no attention between 1e-8 and 1e-3. For penalties from .3 to 1 "
        "just 3 of 1,600 runs pass: masked tokens fade only polynomially while the finite part "
        "circles its optimum. Beside the few that are kept we draw two substitutes: (A) counts at "
        "10,000 exact steps without a filter against the closed form of Lemma 6; (B) cosines of W "
        "with the predictions whose selected tokens and shares come from that closed form. The "
        "list of penalties and the loss are not stated; with one sample the loss does not matter."
    ),
    quick={**SETTINGS, "penalty": (0.1, 0.3, 0.5, 1.0, 2.0), "trials": 12, "long_steps": 6000},
    paper={
        **SETTINGS,
        "penalty": (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
        "trials": 400,
        "long_steps": 10000,
    },
    finish=finish,
    arrays={
        "penalty": "(penalties,) the penalty of the head",
        "published": "(trials, penalties) selected tokens of runs that the published filter keeps; "
        "NaN where it does not",
        "published_cosine": "(trials, penalties, 2) of those, cosine with margin alone, with both; "
        "NaN where not kept, or all tokens are selected",
        "count": "(trials, penalties) tokens above the threshold after the long exact run",
        "closed": "(trials, penalties) tokens selected by the closed form",
        "cosine": "(trials, penalties, 2) cosine of the long run's W with the closed form's margin "
        "alone, and with its finite part; NaN where all tokens are selected",
    },
    no_draws=("step_size", "selected_above", "masked_below", "steps", "long_steps"),
    paint=paint,
    alt=alt,
    chunk=20,
    claims=("svm.lemma-6", "svm.equation-6", "svm.equation-7"),
    size=(9.0, 7.0),
)
def svm_9(cell: Cell, trials: int, rng: np.random.Generator) -> Arrays:
    """See above."""
    return compute(cell, trials, rng)
