"""Two parameterisations, two balls: runs and answers of the page against attnlab."""

from __future__ import annotations

import json
from urllib.parse import quote

import numpy as np
import pytest

from attnbook import widgets
from attnlab import models, optim, problems, svm

PAGE = "book/svm/norms.html"


def start(open_page, name: str, state: dict[str, object]):
    page = open_page(f"{PAGE}?{name}={quote(json.dumps(state))}", typeset=False, only=name)
    page.wait_for_selector(f'[data-explorable="{name}"][data-ready]')
    return page, page.locator(f'[data-explorable="{name}"]').first


def mirrored(X: object) -> problems.TokenProblem:
    tokens, mirror = np.array(X, float), np.array([1.0, -1.0])
    return problems.TokenProblem(
        X=np.stack([tokens, tokens * mirror]),
        z=np.stack([np.ones(2), mirror]),
        y=np.ones(2),
        v=np.array([1.0, 0.0]),
    )


def test_the_plane_holds_both_answers(kernel) -> None:
    """By symmetry: no matrix off the diagonal is shorter, in either norm."""
    rng = np.random.default_rng(0)
    cases = [rng.uniform(-1.2, 1.2, (4, 2)) for _ in range(40)]
    rows = [one["rows"] for one in kernel("balls", "rivals", [[X.tolist()] for X in cases])]
    found = kernel("balls", "answers", [[f] for f in rows])
    kept = 0
    for X, one in zip(cases, found, strict=True):
        if one is None or max(map(abs, one["fro"] + one["nuc"])) > 50:
            continue
        kept += 1
        problem = mirrored(X)
        fro, nuc = (svm.attention_svm(problem, norm=norm) for norm in ("fro", "nuc"))
        assert np.abs(np.diag(one["fro"]) - fro.W).max() < 1e-6 * fro.norm
        assert np.abs(one["nuc"]).sum() == pytest.approx(float(nuc.norm), rel=1e-5)
    assert kept > 20


def test_both_runs_are_those_of_attnlab(kernel) -> None:
    problem, steps = widgets.TwoBalls().problem, 400
    given = kernel("balls", "rivals", [[widgets.TwoBalls().now("X")]])[0]
    found = kernel("balls", "train", [[given, steps]])[0]
    rule = optim.NormalizedGD(0.1)
    starts = ({"W": np.zeros((2, 2))}, {"K": 0.1 * np.eye(2), "Q": 0.05 * np.eye(2)})
    for start_at, shown in zip(starts, (found["W"], found["KQ"]), strict=True):
        model = models.Attention(factors=2 if "K" in start_at else None)
        run = optim.train(model, problem, rule, steps, params=start_at)
        W = run.params["W"] if "W" in run.params else run.params["K"] @ run.params["Q"].T
        assert np.abs(W - np.diag(shown[-1])).max() < 1e-9 * np.abs(W).max()


def test_the_surprise_is_there(kernel) -> None:
    """The wrong axis leads at first; in the end it is left behind, while W keeps both."""
    given = kernel("balls", "rivals", [[widgets.TwoBalls().now("X")]])[0]
    run = kernel("balls", "train", [[given, 1500]])[0]
    a, b = np.array(run["KQ"]).T
    assert (a / b)[5:20].max() > 2.5
    assert (a / b)[-1] < 0.05
    a, b = np.array(run["W"]).T
    assert 0.55 < a[-1] / b[-1] < 0.7


def test_sealed_it_tells_nothing(open_page) -> None:
    _, root = start(open_page, "two_balls", {"values": "one"})
    assert root.get_attribute("data-sealed") == "true"
    inside = root.inner_html()
    for told in ("0.91", "al-fill-nuc", "al-stroke-nuc", "data-rank", "al-stroke-trained"):
        assert told not in inside
    assert root.get_attribute("data-ratios") is None


def test_answers_open_it(open_page) -> None:
    page, root = start(open_page, "two_balls", {"values": "one", "end": [0.41, 0.65]})
    root.locator("[data-go]").click()
    words = root.locator(".al-verdict").inner_text()
    assert "not the one that fell behind first" in words
    assert "You left it with W" in words
    norms = json.loads(root.get_attribute("data-norms"))
    goals = [svm.attention_svm(widgets.TwoBalls().problem, norm=n).norm for n in ("fro", "nuc")]
    assert norms == pytest.approx([float(goal) for goal in goals], rel=1e-5)
    assert root.get_attribute("data-rank") == "1"
    grip = root.locator('[data-handle="x2"]')
    grip.focus()
    for key in ["ArrowLeft"] * 9 + ["ArrowUp"] * 13:
        page.keyboard.press(key)
    page.wait_for_selector('[data-explorable="two_balls"][data-rank="2"]')  # off the corner
