"""The front page's run and the one picture: what they show is what attnlab computes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attnbook import widgets
from attnlab import models, optim


@pytest.fixture(scope="module")
def first() -> np.ndarray:
    """Attention at every step of the front page's run."""
    problem, model = widgets.FirstRun().problem, models.Attention(start="zero")
    record = [{"s": lambda params, _: model.attention(params, problem)[0]}]
    run = optim.train(model, problem, optim.NormalizedGD(0.1), 200, record=record)
    return np.asarray(run.history["s"])


def test_it_seems_settled_and_is_not(first: np.ndarray) -> None:
    """What the question says, and what the answer says."""
    assert first[60].argmax() == 5
    assert first[60, 5] > 0.999
    assert first[200].argmax() == 0
    assert first[200, 0] > 0.999


@pytest.mark.parametrize("step", [0, 20, 60])
def test_the_sealed_part_is_attnlabs(explorable, first: np.ndarray, step: int) -> None:
    _, root = explorable("first_run", {"t": step}, sealed=True)
    shown = json.loads(root.get_attribute("data-attention"))
    assert np.allclose(shown, first[step], atol=1e-9)


def test_no_address_looks_behind_the_seal(explorable, first: np.ndarray) -> None:
    """A later step in the address shows the last step before the question."""
    _, root = explorable("first_run", {"t": 200}, sealed=True)
    assert np.allclose(json.loads(root.get_attribute("data-attention")), first[60], atol=1e-9)


@pytest.mark.parametrize("step", [90, 200])
def test_the_rest_is_attnlabs(explorable, first: np.ndarray, step: int) -> None:
    _, root = explorable("first_run", {"t": step, "open": 1, "then": "stays"})
    shown = json.loads(root.get_attribute("data-attention"))
    assert np.allclose(shown, first[step], atol=1e-8)


def test_the_visit_of_a_minute(explorable, first: np.ndarray) -> None:
    """Train, choose, run on: the answer names the step, and tokens can be moved."""
    page, root = explorable("first_run", sealed=True, reduced_motion="reduce")
    root.get_by_role("button", name="Train").click()
    root.get_by_text("It has settled on F").click()
    root.get_by_role("button", name="Let it run on").click()
    told = root.locator(".al-verdict p")
    told.wait_for()
    overtakes = 60 + int(np.argmax(first[60:, 0] > 0.5))
    assert f"overtakes at step {overtakes}" in told.inner_text()
    grip = root.get_by_role("button", name="token A")
    grip.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => location.search.includes('first_run')")


def test_where_each_paper_speaks() -> None:
    """Both bounds of the picture, from attention and from the tangent model."""
    picture = widgets.OnePicture()
    assert 0 < picture.near < picture.far < 20_000


def test_merging_is_exact_and_leaving_out_is_not() -> None:
    change = widgets.LayerSteps().change
    assert np.all(change[[3, 4, 5, 7]] < 1e-12)
    assert np.all(change[[1, 2, 6]] > 0.3)


def test_a_long_start_keeps_a_locally_optimal_selection_only() -> None:
    """The first selection is not locally optimal: training comes back from every length."""
    ends = widgets.LongStart().ends
    assert np.all(ends[0] > 0.99)
    assert ends[1, 0] > 0.99
    assert ends[1, -1] < 0.01


SAID = "() => [...document.querySelectorAll('.al-predict')].map((box) => box.innerText).join(' ')"
MOVED = [  # what the questions are about, another picture, and words of the answers
    ("first_run", {"t": 200, "then": "stays"}, {"X": [[-1.3, 0.2], [-1.6, -0.8], [-0.9, -0.9],
     [-0.9, 0.2], [0.5, -0.5], [1.6, 0.7]]}, "So it looks."),
    ("token_board", {"k": 200, "bet": "ray", "sketch": [0.5] * 21}, {"X": [[[1.6, 0.9],
     [-0.1, 1.2], [0.2, -0.4], [-0.9, -0.8]], [[1.0, 0.9], [-1, 0.2], [0, -1], [1.5, -0.8]]]},
     "The length of W is"),
    ("pick_token", {"k": 240, "hold": "low", "need": 6}, {"X": [[1.4, -1], [1.9, -0.3],
     [1.9, 0.5], [-1.6, -0.4], [-0.3, -1.0]]}, "Token 4 holds."),
    ("two_forms", {"k": 240, "guess": 30}, {"z": [[0.4, 1.1], [0.9, -0.1]]}, "apart"),
    ("phase_plane", {"k": 120, "decides": "length", "sketch": [0.85] * 13}, {"m": [2.0, 2.0]},
     "keeps both sequences"),
    ("water_filling", {"lambda": 0.45, "enter": 0.1, "sketch": []},
     {"gamma": [1, 0.5, 0.45, 0.43, 0.4, 0.35]}, "Token 2 joins at"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answers", "moved", "words"), MOVED)
def test_verdicts_fold_when_their_picture_is_changed(
    explorable, name: str, answers: dict, moved: dict, words: str
) -> None:
    """No sentence of the answer speaks of a picture that is no longer there; Reset shows both."""
    page, root = explorable(name, {"open": 1, **answers})
    assert words in page.evaluate(SAID).replace("\xa0", " ")
    page, root = explorable(name, {"open": 1, **answers, **moved})
    told = page.evaluate(SAID)
    assert "The picture has been changed since the prediction" in told
    assert len(told) < 120, "question and verdict are folded"
    root.get_by_role("button", name="Reset").click()
    page.wait_for_function(f"() => !({SAID})().includes('has been changed')")
    assert not root.locator(".al-asked").first.is_hidden()
