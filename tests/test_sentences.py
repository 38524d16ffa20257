"""Sentences of the pages that a number decides: the number is computed again, in another way.

Where a sentence changes, its number is looked at again: each test quotes the words that it guards.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import figures, theory, widgets
from attnlab import models, optim, problems, svm

ROOT = Path(__file__).resolve().parents[1]
WIDGETS = ROOT / "book" / "attnbook" / "widgets"
NUMERALS = ["Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]


def says(page: str, *quotations: str) -> str:
    """The words of a page, which must hold these, however its lines are broken."""
    text = " ".join((ROOT / "book" / f"{page}.md").read_text("utf-8").split())
    for words in quotations:
        assert words in text, f"{page}.md does not say: {words}"
    return text


def script(name: str) -> str:
    return (WIDGETS / f"{name}.js").read_text("utf-8")


def degrees(A: Any, B: Any) -> float:
    return float(np.degrees(np.arccos(np.clip(svm.correlation(A, B), -1, 1))))


def test_near_zero_attention_is_nearly_a_mean() -> None:
    """By attention itself: a small error of the tangent may be errors that cancel."""
    says("one-picture", "no weight is further than a tenth from one quarter")
    picture = widgets.OnePicture()
    problem = problems.sphere(n=4, T=4, d=6, min_gap=0.2, rng=6)
    model, rule = models.Attention(start="zero"), optim.NormalizedGD(0.05)
    ends = []
    for steps in (picture.near, 5 * picture.near, picture.far):
        run = optim.train(model, problem, rule, steps, every=steps)
        ends.append(model.attention(run.params, problem))
    off = [float(np.abs(s - 0.25).max()) for s in ends]
    assert off[0] <= 0.1 < off[1]
    best = [np.take_along_axis(s, problem.optimal[:, None], axis=1).mean() for s in ends]
    says("one-picture", "between them, where most of the choosing is done")
    assert best[0] < 0.3 < 0.99 < best[2]
    assert picture.error < 0.1


@pytest.mark.parametrize(("step", "least"), [(0.1, 2.6), (0.005, 2.3)])
def test_how_long_a_first_step_must_be_depends_on_the_next_ones(step: float, least: float) -> None:
    problem = widgets.FirstStep().problem
    F, gain = problem.X[:, 0] - problem.X[:, 1], problem.scores[:, 0] - problem.scores[:, 1]

    def downhill(u: Any) -> tuple[Any, Any]:
        s = 1 / (1 + np.exp(-u @ F.T))
        mean = problem.scores[:, 1] + s * gain
        weights = s * (1 - s) * gain / (1 + np.exp(mean))
        return weights @ F, s

    first = downhill(np.zeros((1, 2)))[0][0]
    lengths = np.arange(2.0, 3.2, 0.01)
    u = lengths[:, None] * first / np.linalg.norm(first)
    for _ in range(round(40 / step)):
        way, s = downhill(u)
        u += step * way / np.linalg.norm(way, axis=1, keepdims=True)
    assert round(float(lengths[s[:, 1] > 0.5].min()), 1) == least
    says(
        "svm/descent",
        "With the further steps of the picture, of length 0.1<!-- given -->, a first step of "
        "{glue:text}`needed` is enough",
        "with further steps as short as the theorem wants them, {glue:text}`needed-flow` will do",
        "asks for {glue:text}`sure` where {glue:text}`needed-flow` was enough",
    )


def test_that_factors_arrive_is_not_said_to_be_certain() -> None:
    """Two factors that start equal are far from their max-margin direction after any run here."""
    says("svm/index", "is measured for the start of this picture, and it is not proven")
    assert "if training never stops" not in says("svm/index")
    problem, model = widgets.TwoForms().problem, models.Attention(factors=2)
    goal = svm.attention_svm(problem, norm="nuc").W
    off = {}
    for name, second in (("equal", 0.1), ("unequal", 0.05)):
        start = {"K": 0.1 * np.eye(2), "Q": second * np.eye(2)}
        rule = optim.NormalizedGD(0.1)
        run = optim.train(model, problem, rule, 5000, params=start, every=5000)
        off[name] = degrees(run.params["K"] @ run.params["Q"].T, goal)
    assert off["equal"] > 9
    assert off["unequal"] < 0.5
    assert "they stay apart if each reaches" in script("two_forms")


def test_a_short_start_on_the_direction_loses_its_token_first() -> None:
    says("svm/tokens", "close enough to the direction and long enough", "Close alone is not enough")
    problem, model = widgets.TokenBoard().problem, models.Attention()
    goal = svm.attention_svm(problem)
    least = []
    for length in (0.01, 8.0):
        record = [{"s": lambda params, _: model.attention(params, problem)[0, 0]}]
        start = {"W": length * goal.W / goal.norm}
        run = optim.train(model, problem, optim.NormalizedGD(0.1), 200, params=start, record=record)
        least.append(run.history["s"].min())
    assert least[0] < 0.01
    assert least[1] > 0.99


def test_at_length_zero_far_rivals_are_the_loudest_rivals_only() -> None:
    says("svm/tokens", "The loudest rivals are {mark}`far ones <other>`")
    problem = widgets.TokenBoard().problem
    scores = problem.scores
    pull = np.abs(scores - scores.mean(axis=1, keepdims=True)) / problem.T
    rival = np.arange(problem.T) != problem.optimal[:, None]
    near = svm.attention_svm(problem).support
    for i in range(problem.n):
        assert pull[i][rival[i] & ~near[i]].max() > pull[i][near[i]].max()
    assert pull[1].argmax() == problem.optimal[1], "not a rival: the best token of sequence 2"


def test_the_front_page_asks_about_a_loss_that_still_falls() -> None:
    problem, model = widgets.FirstRun().problem, models.Attention(start="zero")
    run = optim.train(model, problem, optim.NormalizedGD(0.1), 60, record=["loss"])
    falls = -np.diff(np.asarray(run.history["loss"], float))
    assert (falls > 0).all()
    assert falls[-1] < 0.01 * falls.max()
    assert "the loss hardly falls any more" in script("first_run")
    assert "stopped falling" not in script("first_run")


def test_weight_decay_of_which_kind() -> None:
    """Decoupled decay shrinks K and Q alike, whatever their gradients: no sum has that gradient."""
    says("svm/norms", "the classical weight decay, puts exactly this price on them")
    says("svm/norms", "The decoupled decay of AdamW shrinks the weights at each step")
    rng = np.random.default_rng(0)
    U, sizes, V = np.linalg.svd(rng.standard_normal((4, 4)))
    K, Q = U * np.sqrt(sizes), V.T * np.sqrt(sizes)
    assert (K**2).sum() / 2 + (Q**2).sum() / 2 == pytest.approx(sizes.sum())


def test_theorem_2_needs_no_margin_left_on_long_paths() -> None:
    """Both bounds of step 4: beyond log N no delta above 1 fits between them; below, some do."""
    says("svm/norms", "Let $R\\,\\Xi$ exceed the logarithm in the line above. Then $\\delta\\le1$")
    N = 50.0
    delta, x = np.meshgrid(np.linspace(0, 3, 601), np.linspace(0.05, 30, 600))
    fits = 1 + np.exp((1 - delta) * x) >= 2 * np.exp(x) / N
    late = x > math.log(N)
    assert (delta[fits & late] <= 1).all()
    assert (delta[fits & late] <= math.log(N) / x[fits & late] + 1e-12).all()
    assert (delta[fits & ~late] > math.log(N) / x[fits & ~late]).any()


CROWD = re.compile(
    r"(?:everybody|everyone|anyone|anybody|most (?:readers|people|students)"
    r"|many (?:readers|people))(?:[’']s)?[ ,]+(?:\w+ )?"
    r"(?:answers?|draws?|does|do|would|expects?|guess(?:es)?|thinks?|says?|gets?)\b",
    re.I,
)


def test_nothing_is_said_of_what_readers_answer() -> None:
    """There are no data about it."""
    paths = [*sorted(WIDGETS.rglob("*.js")), *sorted((ROOT / "book").rglob("*.md"))]
    found = {path.name: CROWD.findall(path.read_text("utf-8")) for path in paths}
    assert not {name: words for name, words in found.items() if words}
    assert CROWD.search("Everybody’s answer.")
    assert CROWD.search("as nearly everybody does")
    assert CROWD.search("what anyone would: the better token")


def test_where_a_winner_is_stored_as_one() -> None:
    """By NumPy's own 32 bits; the weight rounded once would become 1 later."""
    gaps = np.linspace(16, 18, 20_001)
    one = np.float32(1)
    computed = one / (one + np.exp(-gaps).astype(np.float32)) == one
    once = (1 / (1 + np.exp(-gaps))).astype(np.float32) == one
    assert gaps[computed].min() == pytest.approx(24 * np.log(2), abs=1e-3)
    assert gaps[once].min() == pytest.approx(25 * np.log(2), abs=1e-3)
    says("svm/numbers", "is computed as $1/(1+e^{-g})$ in 32-bit arithmetic, where each operation")
    # bfloat16 stores a weight that was computed with more digits: rounded once, 8 digits
    gap = 9 * np.log(2)
    below = 1 - 2.0**-9
    assert 1 / (1 + np.exp(-gap - 1e-3)) > below > 1 / (1 + np.exp(-gap + 5e-3))
    says("svm/numbers", "stored as 1 from a gap of {glue:text}`num-half` on")


def test_under_d_no_wrong_selection_is_locally_optimal() -> None:
    says("svm/global", "so none is locally optimal")
    drawn = problems.sphere(n=2, T=3, d=8, trials=60, min_gap=0.1, rng=3)
    holds = svm.assumption_d(drawn).holds
    assert holds.sum() > 10
    for alpha in np.ndindex(3, 3):
        found = svm.locally_optimal(drawn, np.tile(alpha, (60, 1))).as_printed
        wrong = (np.array(alpha) != drawn.optimal).any(axis=-1)
        assert not (np.asarray(found) & wrong & holds).any()


def test_what_lies_outside_the_span_moves_no_difference() -> None:
    says("svm/real", "outside their span moves no difference of two logits, and so no attention")
    problem = problems.sphere(n=2, T=3, d=4, rng=0)
    X, z = problem.X, problem.z
    span = np.einsum("ntd,nk->ntdk", X - X[:, :1], z)[:, 1:].reshape(4, 16)
    V = np.linalg.svd(span)[2][4:]
    W = (np.random.default_rng(1).standard_normal(12) @ V).reshape(4, 4)
    logits = np.einsum("ntd,dk,nk->nt", X, W, z)
    assert np.abs(logits).max() > 0.01
    assert np.ptp(logits, axis=1).max() < 1e-12


@pytest.mark.parametrize("chapter", ["multihead", "encoder", "bias", "svm"])
def test_a_chapters_first_page_lists_all_others(chapter: str) -> None:
    toc = (ROOT / "_toc.yml").read_text("utf-8")
    pages = set(re.findall(rf"book/{chapter}/(\w+)", toc)) - {"index"}
    text = (ROOT / "book" / chapter / "index.md").read_text("utf-8")
    listed = re.findall(r"^(?:\||\d+\.) \[[^\]]+\]\((\w+)\.md\)", text, re.M)
    assert sorted(listed) == sorted(pages)
    for word in re.findall(r"^## (\w+) questions", text, re.M):
        assert NUMERALS.index(word) + 5 == len(pages)


def test_the_control_that_is_recommended_does_what_is_said() -> None:
    """At each one's best rate the copies lose their lead, and heads that differ gain."""
    data = figures.kept("multihead.6")
    ends = data["train"][..., -1].mean(axis=0)  # (arms, rates, heads)
    common = data.settings["rates"].index(data.settings["rate"])
    gain = ends[:, common, 0] - ends[:, common, -1]
    left = ends.min(axis=1)[:, 0] - ends.min(axis=1)[:, -1]
    assert left[1] < 0.2 * gain[1]
    assert left[0] > gain[0]
    text = says("multihead/real", "A common rate favours whom it suits.")
    assert "takes most away" not in text
    says("multihead/real", "about as many numbers as one head", "heads split the parameters")
    alone, cut = int(data["parameters"][0, 0]), int(data["parameters"][2, -1])
    assert alone != cut
    assert abs(cut / alone - 1) < 0.15


def test_one_head_alone_gets_stuck_more_often_than_not() -> None:
    says(
        "multihead/heads", "gets stuck from {glue:text}`heads-stuck` of sixty", "16 heads six times"
    )
    hard = problems.planted(n=400, T=5, d=3, trials=12, rng=0).trial(4)
    model, ends = models.MultiHead(heads=1, start="gaussian", scale=0.1), []
    for seed in range(60):
        run = optim.train(model, hard, optim.GD(4.0), 120, rng=seed, every=120)
        ends.append(float(run.history["loss"][-1]))
    found = np.array(ends) < 0.05
    assert found[:6].sum() == 3
    assert found.sum() == 22
    assert not ((np.array(ends) > 0.03) & (np.array(ends) < 0.2)).any(), "no tie at the bar"


def test_how_soon_the_run_of_the_rate_page_is_near() -> None:
    says("bias/rate", "needs about {glue:text}`rate-hundredth` for a miss of a hundredth")
    problem = problems.orthogonal(n=20, T=6, d=100, rho=0.05, rng=0)
    goal = svm.attention_svm(problem)
    model = models.Attention(loss="exponential", start="zero")
    record = [{"miss": lambda params, _: 1 - svm.correlation(params["W"], goal.W)}]
    run = optim.train(model, problem, optim.NormalizedGD(0.025), 1600, record=record, every=10)
    first = run.history["step"][np.argmax(run.history["miss"] < 0.01)]
    assert round(float(first), -2) in (1400, 1500)
    ledger = (ROOT / "book/attnbook/claims/bias/ledger.toml").read_text("utf-8")
    assert "at the slowest" not in ledger, "this run is slower than that for a long while"


def test_cosines_are_below_the_line_in_absolute_value() -> None:
    counts = figures.kept("bias.10")["counts"].sum(axis=0)[0, 0]
    negative = counts[: counts.size // 2].sum() / counts.sum()
    assert negative > 0.2, "cosines below a line would be many, and the assumption is about sizes"
    for words in re.findall(
        r"[^.]*cosines[^.]*(?:below a line|below \.1)[^.]*", script("word_angles")
    ):
        assert "absolute value" in words or "//" in words, words
    says("bias/real", "says that cosines stay below $1/(4n\\Upsilon T)$ in absolute value")


def test_one_median_for_verdict_explorable_and_exercise() -> None:
    run = figures.kept("encoder.6")
    verdict = figures.get("encoder.6").verdict(run).numbers
    middle = widgets.RealTails().data["middle"]
    value = float(np.frombuffer(middle["bytes"], middle["dtype"])[1])
    assert value == pytest.approx(float(run["t"][:, 0].mean()), abs=1e-6)
    assert f"{value:.3f}".lstrip("0") in verdict
    says("encoder/real", 'middle = float(runs[6]["t"][:, 0].mean())')


def test_a_local_cone_is_not_said_to_keep_training() -> None:
    """R of (74) excludes places of rest; that training stays needs R of Lemma 14."""
    problem = widgets.PickToken().problem
    cone = theory.svm.local_constants(problem, svm.attention_svm(problem, [3]).W, [3])
    epsilon = float(cone.mu) / 2
    stays = theory.svm.lemma_14_radius(problem, cone, epsilon / (1 - epsilon))
    assert float(stays) == pytest.approx(3.4e8, rel=0.01)
    assert float(cone.radius) == pytest.approx(24.7, abs=0.05)
    says(
        "svm/local",
        "From length {glue:text}`radius` on there is no place of rest in it.",
        "proven only from a length of {glue:text}`stays` on",
        "a length of {glue:text}`stays`, where {glue:text}`need` is enough when measured",
    )


def test_a_longer_w_helps_only_once_the_best_token_is_well_ahead() -> None:
    """A token with a small logit and a good score: at first a longer W costs more than it gives."""
    says("svm/tokens", "once both best tokens are well ahead, a longer $W$ leaves less")
    scores, logits = np.array([1.0, -1.0, 0.9]), np.array([1.0, 0.9, -10.0])

    def mean(length: float) -> float:
        s = np.exp(length * (logits - logits.max()))
        return float(s @ scores / s.sum())

    assert mean(0.2) < mean(0.1), "the best token leads, and the mean score falls"
    assert mean(60.0) > mean(50.0) > mean(40.0)


def test_mixtures_of_tokens_and_their_shares() -> None:
    """Which mean is shorter, and who loses as the level sinks."""
    says("svm/many", "The mean of two orthogonal tokens of one length is shorter than either of")
    short, long = np.array([1.0, 0.0]), np.array([0.0, 10.0])
    assert np.linalg.norm((short + long) / 2) > np.linalg.norm(short)
    says("svm/many", "a token loses while it scores more than the mean of the tokens that are kept")
    found = re.search(r"GAMMA = (\[[^\]]*\])", script("water_filling"))
    assert found
    shown = np.array([float(x) for x in found[1].strip("[]").split(",")])
    for scores in (shown, np.array([1.0, 0.5, 0.45, 0.0])):
        for curvature in np.arange(0.3, 1.0, 0.05):
            now, later = (
                theory.svm.water_filling(scores, c) for c in (curvature, curvature + 1e-4)
            )
            kept = now > 0
            if not ((later > 0) == kept).all():
                continue
            above = scores[kept] > scores[kept].mean()
            assert ((later < now)[kept] == above).all()
    grows = [theory.svm.water_filling([1.0, 0.5, 0.45, 0.0], c)[1] for c in (0.6, 0.7)]
    assert grows[1] > grows[0], "token 2 gains with three kept: it scores less than their mean"


def test_three_tokens_on_a_line_have_no_independent_differences() -> None:
    says("svm/margin", "Tokens in general position have independent differences")
    middle = problems.TokenProblem(
        X=[[[1.0, 0, 0], [0.0, 0, 0], [-1.0, 0, 0]]], z=[[1.0, 0, 0]], y=[1.0], v=[1.0, 0, 0]
    )
    assert middle.d >= middle.T - 1
    with pytest.raises(svm.InfeasibleMargin):
        svm.attention_svm(middle, [1])
    drawn = problems.sphere(n=1, T=3, d=2, trials=50, rng=0)
    for token in range(3):
        assert (svm.attention_svm(drawn, np.full((50, 1), token)).status == "optimal").all()


def test_the_posited_width_is_above_23() -> None:
    assert math.ceil(10 * math.log(10)) == 24
    says("open", "at $n=T=5$ and $d=24$ B.1 holds in")
