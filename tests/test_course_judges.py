"""What judges pay for too easily, and what they say: neither the optimum nor a hidden input."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnbook import course
from attnbook.course._fuzz import each, leaves, plain
from attnbook.course._grade import Judge
from attnbook.course._source import Problem, ProblemSet, fill, variant

BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
Answer = Callable[..., Any]


def problem(name: str, which: str) -> tuple[ProblemSet, Problem]:
    source = course.problem_set(name, BOOK)
    return source, next(one for one in source.problems if one.id == which)


def earned(source: ProblemSet, one: Problem, seed: int, answer: Answer) -> float:
    """The points of a function, without a sandbox: it is a test's own."""
    judge, wrong = Judge(source, one, seed), set()
    for part, given in judge.cases():
        if part not in wrong and judge.why_not(part, given, plain(answer(*copy.deepcopy(given)))):
            wrong.add(part)
    return sum(points for part, points in one.parts.items() if part not in wrong)


def reference(source: ProblemSet, one: Problem, seed: int, text: str) -> Any:
    """What is asked for, as the source of a solution or of a mistake defines it."""
    space: dict[str, Any] = {}
    exec(source.setup, space)
    exec(fill(text, variant(one, source.name, seed)), space)
    return space[one.answer]


def library(method: str) -> Answer:
    def intervals(successes: np.ndarray, trials: int, level: float) -> np.ndarray:
        found = [
            stats.binomtest(int(k), trials).proportion_ci(level, method=method) for k in successes
        ]
        return np.array([(one.low, one.high) for one in found])

    return intervals


@pytest.mark.parametrize("method", ["exact", "wilson", "wilsoncc"])
def test_one_call_of_a_library_is_no_answer(method: str) -> None:
    """`binomtest(...).proportion_ci` earned all four points; now none of its methods earns one."""
    assert [earned(*problem("project", "intervals"), seed, library(method)) for seed in (0, 1)] == [
        0,
        0,
    ]


PAIRS = [(p, level) for p in (1e-6, 0.001, 0.013, 0.2, 0.5, 0.7, 0.987)
         for level in (1e-9, 0.2, 0.6, 0.85, 0.95, 0.99, 0.9999, 0.999999)]  # fmt: skip


def test_one_pair_for_all_numbers_of_coins_is_no_answer() -> None:
    """(0.013, 0.999999) refuted the bound for each number of coins that was asked."""
    source, one = problem("1", "one-sided")
    for pair in PAIRS:
        assert earned(source, one, 0, lambda _, pair=pair: pair) == 0, pair
    assert earned(source, one, 0, reference(source, one, 0, one.solution)) == one.points


def test_one_pattern_for_all_mixtures_is_no_answer() -> None:
    """(1000, 0) broke the order for attention whatever the other numbers were."""
    source, one = problem("1", "margins")
    for S in (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0):
        for Z in (0.0, 0.01, 0.05, 0.3, 1.0, 10.0, 1e5):
            assert earned(source, one, 0, lambda *_, pair=(S, Z): pair) == 0, (S, Z)
    assert earned(source, one, 0, reference(source, one, 0, one.solution)) == one.points


@pytest.mark.parametrize("which", ["all equal", "one sequence of equal tokens"])
def test_equal_tokens_are_no_certificate(which: str) -> None:
    """Weights on a sequence whose tokens are equal combine features to 0, and say nothing."""

    def exceptional(n: int, d: int) -> dict[str, np.ndarray]:
        first = np.eye(n, d) + 1
        second = first.copy() if which == "all equal" else first - np.ones(d)
        second[0] = first[0]
        return {"X": np.stack([first, second], axis=1), "weights": np.eye(n)[0]}

    source, one = problem("4", "almost-all")
    assert earned(source, one, 0, exceptional) == 0
    assert earned(source, one, 0, reference(source, one, 0, one.solution)) == one.points


# -- messages --------------------------------------------------------------------------------------
NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:e[-+]?\d+)?")


def figures(word: str) -> int:
    """How many figures of a number say something."""
    return len(re.sub(r"e.*|[-.]", "", word).strip("0"))


def told_numbers(message: str) -> list[str]:
    """Numbers of a message that have three figures or more: fewer say nothing about an input."""
    return [word for word in NUMBER.findall(message) if figures(word) >= 3]


def secrets(given: tuple[Any, ...], true: Any) -> Iterator[float]:
    """Every number of the hidden inputs and of the true answer, and the sizes of its arrays."""
    for one in [*leaves(list(given)), *leaves(plain(true))]:
        if one.dtype.kind in "fiu" and 0 < one.size < 5000:
            yield from np.ravel(one).astype(float).tolist()
    for one in leaves(plain(true)):
        if one.dtype.kind == "f" and one.size and np.isfinite(one).all():
            yield float(np.linalg.norm(one))
            yield float(np.abs(one).max())
            if one.ndim == 2:
                yield float(np.linalg.norm(one, "nuc"))


def leaked(message: str, known: set[float]) -> list[str]:
    """Numbers of a message that are one of these, to as many figures as the message prints."""
    found = []
    for word in told_numbers(message):
        shape = f".{max(2, len(re.sub(r'e.*|[-.]', '', word).lstrip('0')) - 1)}e"
        if format(abs(float(word)), shape) in {format(abs(x), shape) for x in known}:
            found.append(word)
    return found


def messages(source: ProblemSet, one: Problem, seed: int) -> Iterator[tuple[str, set[float]]]:
    """What a judge says to each mistake, and the numbers that it should not say.

    A number that it says to different answers in one case is not theirs: it belongs to the case.
    """
    solution = reference(source, one, seed, one.solution)
    mistakes = [reference(source, one, seed, wrong.source) for wrong in one.wrong]
    judge = Judge(source, one, seed)
    for part, given in judge.cases():
        true = solution if one.value else solution(*copy.deepcopy(given))
        # what the text or the variant shows is no secret
        known = set(secrets(given, true)) - set(secrets((), list(judge.values.values())))
        said: dict[str, str] = {}  # by answer
        scaled = [lambda *_, true=true, size=size: times(true, size) for size in (0.5, 0.7)]
        for wrong in [*mistakes, *scaled]:
            try:
                found = wrong if one.value and wrong in mistakes else wrong(*copy.deepcopy(given))
            except Exception:  # a mistake may end in an error; nothing is judged then
                continue
            said[repr(found)] = judge.why_not(part, given, plain(found))
        words = [number for message in said.values() for number in told_numbers(message)]
        own = one.judge + fill(one.text, judge.values)
        known |= {float(x) for x in words if words.count(x) > 1 and x not in own}
        yield from ((message, known) for message in said.values())


def times(true: Any, size: float) -> Any:
    """The true answer, smaller: near enough to be told how far it is."""
    return each(true, lambda one: one * size if one.dtype.kind == "f" else one)


SETS = ["4", *(pytest.param(name, marks=pytest.mark.long) for name in ("1", "2", "3", "project"))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SETS)
def test_messages_give_away_neither_input_nor_optimum(name: str) -> None:
    source = course.problem_set(name, BOOK)
    said = 0
    for one in source.problems:
        for message, known in messages(source, one, 3) if one.answer else ():
            said += bool(message)
            assert not leaked(message, known), (one.id, message)
    assert said > 20


@pytest.mark.parametrize(
    ("name", "which", "new", "old"),
    [
        ("4", "log-time", '"another number than h(t)"', 'f"from {h0:.3g} with c = {c:.3g}"'),
        ("4", "better-mixture", '"a larger score is possible"', 'f"{most:.6f} is possible"'),
        ("project", "blocks", '"a smaller maximum is possible"', 'f"{true:.4f} is enough"'),
    ],
)
def test_the_messages_of_before_are_noticed(name: str, which: str, new: str, old: str) -> None:
    """The three that gave it away, put back: what they say is found."""
    source, one = problem(name, which)
    assert new in one.judge
    changed = Problem(**(vars(one) | {"judge": one.judge.replace(new, old)}))
    found = [leaked(message, known) for message, known in messages(source, changed, 3)]
    assert any(found)
