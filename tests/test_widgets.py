"""Explorables from Python: state both ways, bytes, bundles, and what bad input gets."""

import base64
import json
import re

import numpy as np
import pytest

from attnbook import widgets
from attnbook.widgets import stored
from attnbook.widgets._base import pack
from attnbook.widgets.sweeps import SETTINGS, how_often
from attnlab import problems, svm

EXPLORABLES = [name for name in widgets.__all__ if name not in ("Explorable", "tell")]


@pytest.mark.parametrize(("n", "T"), [(2, 3), (1, 4), (3, 2)])
def test_a_board_opens_any_problem_of_the_plane(n: int, T: int) -> None:
    problem = problems.sphere(n=n, T=T, d=2, rng=0)
    board = widgets.TokenBoard(problem)
    assert np.allclose(board.problem.X, problem.X)
    assert svm.attention_svm(board.problem).status == svm.attention_svm(problem).status


def test_python_sees_what_the_reader_dragged() -> None:
    board = widgets.TokenBoard()
    moved = json.loads(json.dumps(board.state))
    moved["X"][0][0] = [0.25, -0.5]
    board.state = moved
    assert board.problem.X[0, 0].tolist() == [0.25, -0.5]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (problems.sphere(n=2, T=3, d=3, rng=0), r"problem: expected a single problem in the plane"),
        (problems.sphere(n=2, T=3, d=2, trials=4, rng=0), r"got \(4, 2, 3, 2\)"),
        (problems.sphere(n=9, T=3, d=2, rng=0), r"up to 6 sequences of 8 tokens"),
        (problems.causal(n=1, T=3, d=2, rng=0), r"problem: expected one without a mask"),
        ([1, 2], r"problem: expected .*got list"),
    ],
)
def test_bad_boards(given: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        widgets.TokenBoard(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", EXPLORABLES)
def test_one_module_without_imports(name: str) -> None:
    """What anywidget loads imports nothing and exports one thing."""
    text = getattr(widgets, name)._esm
    text = getattr(text, "default_value", text)
    assert not re.search(r"^import ", str(text), re.M)
    assert len(re.findall(r"^export ", str(text), re.M)) == 1


def test_arrays_travel_as_bytes() -> None:
    packed = pack("x", np.arange(6.0).reshape(2, 3))
    back = np.frombuffer(packed["bytes"], dtype=packed["dtype"]).reshape(packed["shape"])
    assert np.array_equal(back, np.arange(6.0).reshape(2, 3))
    with pytest.raises(ValueError, match="x: expected numbers or booleans"):
        pack("x", np.array(["a"]))


def test_the_placeholder_carries_state_and_data() -> None:
    text = widgets.FinitePart().html()
    found = re.search(r'<script type="application/json">(.*?)</script>', text, re.S)
    assert found is not None
    traits = json.loads(found[1])
    assert traits["initial"] == {"R": 4.0}
    X = traits["data"]["X"]
    assert len(base64.b64decode(X["bytes"])) == 4 * int(np.prod(X["shape"]))


def test_the_stored_sweep_is_not_stale() -> None:
    """One cell of it, computed anew from the same seeds, gives the same kinds to the last trial."""
    found = stored.load("how_often")
    assert found["kind"].shape[3] == SETTINGS["trials"] >= 200
    again = how_often(n=(3,), T=(3,), d=(4,))
    place = list(found["d"]).index(4)
    assert np.array_equal(again["kind"][0, 0, 0], found["kind"][0, 0, place])
    assert np.array_equal(again["support"][0, 0, 0], found["support"][0, 0, place])
    assert np.array_equal(again["exact"][0, 0, 0], found["exact"][0, 0, place])


def test_the_stored_b1_is_the_assumption_and_not_its_proxy() -> None:
    """Every trial with all margins 1 has a mean of 1, and the share is that of new draws."""
    found = stored.load("how_often")
    assert not (found["exact"] & ~found["support"]).any()
    cell = [list(found[name]).index(value) for name, value in (("n", 3), ("T", 3), ("d", 10))]
    drawn = problems.sphere(n=3, T=3, d=10, trials=500, min_gap=0.1, rng=1)
    share = svm.assumption_b1(drawn).holds.mean()
    assert found["exact"][tuple(cell)].mean() == pytest.approx(share, abs=0.12)
    assert 0.05 < share < found["support"][tuple(cell)].mean() - 0.2
