"""What numbers can and cannot see: two programs for one formula, stored weights, both labs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from attnbook import widgets
from attnlab import models, optim, svm

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"


def given(problem) -> dict[str, object]:
    return {name: getattr(problem, name).tolist() for name in ("X", "z", "y", "v")}


def away(problem, W) -> float:
    return float(np.degrees(np.arccos(svm.correlation(W, svm.attention_svm(problem).W))))


def test_both_programs(kernel) -> None:
    """Step for step as attnlab until the winner is 1; exact ones for good."""
    problem, times = widgets.Arithmetic().problem, [0, 50, 300, 2000]
    for how, recipe, until in (("textbook", "paper", 3), ("exact", "exact", 4)):
        spec = {"how": how, "eta": 0.1, "times": times}
        if how == "textbook":
            spec["eps"] = np.finfo(float).eps
        (found,) = kernel("saturation", "train", [[given(problem), spec]])
        rule = optim.NormalizedGD(0.1, recipe=recipe)
        model = models.Attention(start="zero")
        for W, steps in list(zip(found, times, strict=True))[1:until]:
            own = optim.train(model, problem, rule, steps, every=steps).params["W"]
            assert np.allclose(W, own, atol=1e-4 if how == "textbook" else 1e-8)
    paper = optim.NormalizedGD(0.1, recipe="paper")
    late = optim.train(models.Attention(start="zero"), problem, paper, 6000, every=6000)
    assert away(problem, late.params["W"]) > 15, "the published update leaves its direction"


def test_numbers_of_a_format(kernel) -> None:
    rng = np.random.default_rng(0)
    numbers = (rng.standard_normal(300) * 10.0 ** rng.integers(-40, 30, 300)).tolist()
    single = kernel("saturation", "rounded", [[x, 24] for x in numbers])
    assert [float(x) for x in single] == [float(np.float32(x)) for x in numbers]
    double = kernel("saturation", "rounded", [[x, 53] for x in numbers])
    assert [float(x) for x in double] == numbers
    bits = kernel("saturation", "bits", [[1.0], [-0.1]])
    assert bits == [f"{np.float64(x).view(np.uint64):064b}" for x in (1.0, -0.1)]
    gaps = (30, 36, 37, 700)
    for gap, told in zip(gaps, kernel("saturation", "pair", [[g] for g in gaps]), strict=True):
        assert told["winner"] == 1 / (1 + np.exp(-float(gap)))
        assert told["loser"] == pytest.approx(np.exp(-gap), rel=1e-12)
        assert (told["textbook"][0] == 0) == (gap > 36)


def test_the_picture_tells_nothing_before(explorable) -> None:
    page, root = explorable("arithmetic", sealed=True)
    assert root.get_attribute("data-step") == "300"
    root.locator('.al-knobkey[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    root.locator("[data-go]").click()
    page.wait_for_selector('[data-explorable="arithmetic"][data-step="6000"]', timeout=30_000)
    published, exact = json.loads(root.get_attribute("data-angles"))
    assert exact < 0.1 < 15 < published
    textbook, right, cosine = json.loads(root.get_attribute("data-gradients"))
    assert cosine < 0.5
    assert textbook < right
    assert "turns round" in root.locator(".al-verdict").inner_text()


def test_the_stored_weight(explorable) -> None:
    page, root = explorable("stored_weight", {"gap": 36})
    assert json.loads(root.get_attribute("data-pair"))[0] < 1
    root.locator('input[data-key="gap"]').focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => JSON.parse(document.querySelector('[data-explorable]').dataset.pair)[0] === 1"
    )
    assert json.loads(root.get_attribute("data-pulls"))[0] == 0


def test_the_lab_trains_as_attnlab(explorable) -> None:
    state = {"n": 3, "T": 5, "d": 9, "steps": 1000, "seed": 1}
    page, root = explorable("training_lab", state)
    page.wait_for_selector('[data-explorable="training_lab"][data-done="true"]', timeout=60_000)
    problem = widgets.TrainingLab().drawn(n=3, T=5, d=9, seed=1)
    model = models.Attention(start="zero")
    run = optim.train(model, problem, optim.NormalizedGD(0.1), 1000, every=1000)
    tokens = model.attention(run.params, problem).argmax(axis=-1)
    goal = svm.attention_svm(problem, tokens)
    own = 1 - svm.correlation(run.params["W"], goal.W)
    assert float(root.get_attribute("data-away")) == pytest.approx(own, rel=1e-4)


def test_the_lab_of_ranks(explorable) -> None:
    page, root = explorable("rank_lab", {"n": 5, "T": 3, "d": 8, "m": 5, "seed": 2})
    page.wait_for_selector('[data-explorable="rank_lab"][data-done="true"]', timeout=60_000)
    lab = widgets.RankLab()
    problem, model = lab.drawn(n=5, T=3, d=8, seed=2), models.Attention(factors=5)
    start = lab.start(d=8, m=5, seed=2)
    run = optim.train(model, problem, optim.NormalizedGD(0.1), 2000, every=2000, params=start)
    product = run.params["K"] @ run.params["Q"].T
    tokens = model.attention(run.params, problem).argmax(axis=-1)
    goal = svm.attention_svm(problem, tokens, norm="nuc")
    rank, nuclear = json.loads(root.get_attribute("data-ranks"))
    values = np.linalg.svd(product)[1]
    assert rank == (values > 1e-4 * values[0]).sum()
    assert nuclear == goal.rank
    cosine = float(root.get_attribute("data-cosine"))
    assert cosine == pytest.approx(svm.correlation(product, goal.W), abs=0.01)


def test_nuclear_margins(kernel) -> None:
    lab, cases = widgets.RankLab(), []
    for n, T, d, seed in ((6, 4, 10, 0), (6, 4, 10, 1), (4, 4, 8, 0), (3, 6, 6, 1)):
        cases.append(lab.drawn(n, T, d, seed))
    told = kernel("lab", "nuclearOf", [[given(p), p.optimal.tolist()] for p in cases])
    for problem, W in zip(cases, told, strict=True):
        W = np.array(list(W.values()) if isinstance(W, dict) else W).reshape(problem.d, problem.d)
        goal = svm.attention_svm(problem, norm="nuc")
        assert np.linalg.norm(W, "nuc") == pytest.approx(goal.norm, rel=1e-3)
        values = np.linalg.svd(W)[1]
        assert (values > 1e-4 * values[0]).sum() == goal.rank


@pytest.mark.parametrize(
    ("eps", "said"), [(None, "program A is about 30 degrees off"), (0, "about 55 degrees away")]
)
def test_the_page_says_where_the_pictures_program_ends(
    explorable, eps: float | None, said: str
) -> None:
    """In round figures: the last digits of sums decide, and browsers may add otherwise."""
    state = {"open": 2} if eps is None else {"open": 2, "eps": eps}
    _, root = explorable("arithmetic", state)
    angle = json.loads(root.get_attribute("data-angles"))[0]
    assert angle == pytest.approx(float(re.search(r"\d+", said)[0]), abs=5)
    text = (HTML / "book" / "svm" / "numbers.html").read_text("utf-8")
    assert said in " ".join(re.sub(r"<[^>]+>", "", text).split())
