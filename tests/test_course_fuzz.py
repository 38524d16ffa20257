"""Every judge against answers that nobody worked for, and numbers against their range."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnbook import course
from attnbook.course._fuzz import answers, fuzz, kind
from attnbook.course._grade import Judge
from attnbook.course._numbers import RangeError, within

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
EXAMPLE = "asks for an example, and this turns one into another"
OTHER = "a part that asks for one entry is not about the order of another"
# Where a changed true answer is another true answer: which changes, and why. Nothing made without
# the true answer (constants, random numbers, what was given) may stand here.
FREE: dict[str, tuple[set[str], str]] = {
    "1/attained": ({"entry", "order", "sign"}, EXAMPLE),
    "1/origin": ({"order", "sign"}, f"eigenvectors have two signs; {OTHER}"),
    "1/push-apart": ({"sign"}, "the mirrored example is one"),
    "1/saturation": ({"order"}, OTHER),
    "1/limit": ({"order"}, OTHER),
    "2/balance": ({"order", "sign"}, f"{OTHER}, nor about a sign that cancels"),
    "2/dropped-tokens": ({"entry", "order", "sign"}, f"{EXAMPLE}: a readout has any length"),
    "2/kinked": ({"order", "sign"}, f"{EXAMPLE}: samples in another order, all signs changed"),
    "2/no-triangle": ({"entry", "length", "order"}, f"{EXAMPLE}: its tokens have any length"),
    "2/translate": ({"entry"}, "a start so small that it is one of the allowed ones"),
    "2/compress": ({"order"}, "neurons in another order are the same network"),
    "3/promise": ({"order", "sign"}, OTHER),
    "3/louder": ({"order"}, OTHER),
    "3/slip": ({"entry", "order", "sign"}, EXAMPLE),
    "3/reach": ({"order", "sign"}, "the two of a pair can be exchanged"),
    "3/give-up": ({"length"}, "the part asks for yes or no, which has no length"),
    "4/almost-all": ({"entry", "length", "order", "sign"}, f"{EXAMPLE}: tokens of any length"),
    "4/rank-gap": ({"entry", "length", "order"}, f"{EXAMPLE}: certified by weights of any length"),
    "4/one-factor": ({"entry", "order", "sign"}, EXAMPLE),
    "4/reachable": ({"entry", "length", "order", "sign"}, "a witness is a direction"),
    "4/longer-mask": ({"entry", "order"}, EXAMPLE),
    "project/draw": (
        {"entry", "length", "order", "sign"},
        "parts on places do not ask for lengths again",
    ),
    "project/gradients": ({"order"}, f"one entry is symmetric there; {OTHER}"),
    "project/kernels": ({"order"}, OTHER),
    "project/certify": ({"entry", "length"}, "multipliers that refute are a direction"),
    "project/blocks": (
        {"entry", "length"},
        "what is larger stays feasible; weights are a direction",
    ),
    "project/hurt": ({"order"}, OTHER),
}
SETS = ["2", *(pytest.param(name, marks=pytest.mark.long) for name in ("1", "3", "4", "project"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETS)
def test_no_judge_pays_for_what_nobody_worked_for(name: str) -> None:
    """About 130 answers a problem; what is paid is listed above, with its reason."""
    source = course.problem_set(name, BOOK)
    seen = set()
    for one in source.problems:
        for paid in fuzz(source, one, 0) if one.answer else ():
            kinds = {kind(answer) for answer in paid.answers}
            free, reason = FREE.get(f"{name}/{one.id}", (set(), ""))
            assert kinds <= free, (paid, reason)
            seen.add(f"{name}/{one.id}")
    assert seen == {key for key in FREE if key.startswith(f"{name}/")}, "an exemption without a use"


def test_the_fuzz_is_wide_and_nobodys_work_is_never_exempt() -> None:
    names = answers()
    assert len(names) > 130
    assert {kind(name) for name in names} == {
        "constant", "echo", "entry", "length", "order", "random", "sign",
    }  # fmt: skip
    assert not {"constant", "echo", "random"} & set().union(*(free for free, _ in FREE.values()))


@pytest.mark.parametrize(
    ("judge", "pays"),
    [
        ("assert np.linalg.norm(answer) ** 2 >= np.linalg.norm(answer * 1e-200) ** 2", False),
        ("assert np.exp(np.abs(answer) * 1e3 + 800) >= 1", False),
        ("assert np.zeros(3) @ np.ones(3) / (answer - answer) == 0", False),
        ("assert [][1]", False),
        ("assert answer is not None", True),
    ],
)
def test_a_judge_that_overflows_pays_nothing_and_says_so(judge: str, pays: bool) -> None:
    """``inf >= inf`` and ``0 >= 0`` are never asked; the instructor hears of every stumble."""
    source = course.problem_set("4", HERE)
    one = source.problems[1]
    held = Judge(source, one, 0)
    body = f"import numpy as np\ndef judge(part, given, answer, v):\n    {judge}\n"
    exec(body, held.space)
    why = held.why_not("values", (), np.ones(3))
    assert (why == "") is pays
    assert bool(held.stumbled) is not pays
    assert pays or "the judge of scores, values, ended in" in held.stumbled[0]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (1e-200, 0.0), (1e-59, 1e-59), (-3, -3), (True, True), ("yes", "yes"), (None, None),
        ("e5", "e5"), ("", ""), ("0x10", "0x10"),
        ([1e-61, {"a": 2.0}], [0.0, {"a": 2.0}]),
    ],
)  # fmt: skip
def test_numbers_below_the_range_are_nothing(value: Any, wanted: Any) -> None:
    assert within(value) == wanted


def test_arrays_below_the_range_are_nothing() -> None:
    found = within(np.array([1e-61, -1.0, 1e-300]))
    assert found.tolist() == [0.0, -1.0, 0.0]
    assert within(np.array([5e-324]), (5e-324, 1e60)).tolist() == [5e-324]
    assert within(np.array([np.inf]), infinite=True).tolist() == [np.inf]


@pytest.mark.parametrize(
    "value",
    [
        1e61, -1e300, float("nan"), float("inf"), 10**61, np.array([1e61]), np.array([np.nan]),
        np.array([1, np.inf * 1j]), np.zeros((3, 10**8, 0)), np.zeros((1,) * 9), [[]] * 100_001,
        "x" * 20_001, {"a": [1e61]}, object(),
        # what NumPy would take for a real number
        "1e200", "1", " 1_000 ", "１", "inf", "-nan", "1\0", "1+2j", np.array([1 + 0j]),
        np.array([1 + 1e9j]), np.array(["1"]), np.array([b"1"]), np.array([object()]), 1j,
        ["3", 4.0], {"a": "5e5"},
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_what_is_beyond_the_range_is_not_judged(value: Any) -> None:
    with pytest.raises(RangeError):
        within(value)


def test_a_range_needs_a_reason(tmp_path: Path) -> None:
    text = (HERE / "set4-svm.md").read_text("utf-8")
    plain = text.replace(', "why": "its judge\'s own softmax underflows far out"', "")
    assert plain != text
    (tmp_path / "set4-svm.md").write_text(plain, "utf-8")
    with pytest.raises(ValueError, match=r"a reason \(why\) for underflow"):
        course.problem_set("4", tmp_path)
    (tmp_path / "set4-svm.md").write_text(
        text.replace('"underflow": true', '"sizes": [2, 1]'), "utf-8"
    )
    with pytest.raises(ValueError, match="sizes from below 1 to above it"):
        course.problem_set("4", tmp_path)
