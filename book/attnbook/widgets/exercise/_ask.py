"""The kinds of exercises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from attnbook.widgets.exercise._record import (
    Exercise,
    amount,
    each,
    figures,
    keys_of,
    made,
    real,
    tests_of,
    words_of,
)
from attnlab import checks as check


def number(
    name: str,
    question: str,
    answer: float,
    *,
    tolerance: float = 0.02,
    unit: str = "",
    wrong: Mapping[float, str] | None = None,
    right: str = "",
    small: str = "Too small.",
    large: str = "Too large.",
    hint: str = "",
    solution: str = "",
    title: str = "",
) -> Exercise:
    r"""Ask for a number.

    Readers may type a formula, such as ``ln(100)/0.88``, a fraction, or a decimal comma.

    Args:
        name: its name, once in the whole book, such as ``"svm-length"``.
        question: what is asked.
        answer: the right number, computed.
        tolerance: how far off counts as right, relative to the answer (absolute where it is 0).
        unit: what stands behind the number; with ``"%"`` the answer is in percent.
        wrong: what is said to a wrong number that one can foresee, by its value.
        right: what is said to the right one.
        small: what is said to a number that is too small for a reason nobody foresaw.
        large: the same for one that is too large.
        hint: what helps, before the solution.
        solution: how it is done; the bare answer where none is given.
        title: its name in lists; the question's beginning where none is given.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> import numpy as np
        >>> from attnbook.widgets import exercise
        >>> margin = 0.884
        >>> exercise.number("demo-length", "How long must $W$ be?", np.log(100) / margin,
        ...                 wrong={np.log(100): "Divide by the margin."}).task["wrong"][0]["say"]
        'Divide by the margin.'
    """
    told = f"{escape(figures(answer))} {unit}".strip() if np.isfinite(real(answer)) else ""
    task = amount("number", answer, tolerance, wrong, small, large, absolute=False)
    task |= {"unit": words_of("unit", unit), "right": right or f"Yes: {told}."}
    return made(task, name, question, title, hint, solution or f"{told}.")


def power(
    name: str,
    question: str,
    answer: float,
    *,
    tolerance: float = 0.05,
    wrong: Mapping[float, str] | None = None,
    right: str = "",
    small: str = "The exponent is larger than that.",
    large: str = "The exponent is smaller than that.",
    hint: str = "",
    solution: str = "",
    title: str = "",
) -> Exercise:
    r"""Ask for the exponent of a power law; ``-2``, ``1/2``, ``t^-2`` and ``1/sqrt(t)`` are read.

    Args:
        name: its name, once in the whole book.
        question: what is asked.
        answer: the right exponent, computed, such as a fitted slope.
        tolerance: how far off counts as right, absolute.
        wrong: what is said to a wrong exponent that one can foresee, by its value.
        right: what is said to the right one.
        small: what is said to any other that is too small.
        large: the same for one that is too large.
        hint: what helps, before the solution.
        solution: how it is done; the bare answer where none is given.
        title: its name in lists; the question's beginning where none is given.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> slope = -1.98
        >>> exercise.power("demo-slope", "The loss falls like $t^?$", slope).task["solution"]
        'The exponent is −2.'
    """
    task = amount("power", answer, tolerance, wrong, small, large, absolute=True)
    near = Fraction(real(answer)).limit_denominator(4)
    shown = (
        str(near).replace("-", "−") if abs(near - real(answer)) <= tolerance else figures(answer)
    )
    task |= {"unit": "", "right": right or f"Yes: the exponent is {shown}."}
    return made(task, name, question, title, hint, solution or f"The exponent is {shown}.")


def choice(
    name: str,
    question: str,
    options: Mapping[str, str],
    *,
    right: str,
    say: Mapping[str, str],
    hint: str = "",
    solution: str = "",
    title: str = "",
) -> Exercise:
    r"""Ask for one of several answers; each has its own response.

    Args:
        name: its name, once in the whole book.
        question: what is asked.
        options: the answers in words, by key.
        right: the key of the right one; computed where a computation decides it.
        say: what is said to each, by key.
        hint: what helps, before the solution.
        solution: how it is done; the right answer and its response where none is given.
        title: its name in lists; the question's beginning where none is given.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> exercise.choice("demo-norm", "Which norm decides?", {"fro": "Frobenius", "nuc":
        ...     "nuclear"}, right="fro", say={"fro": "Yes.", "nuc": "That is for K and Q."})
        Exercise('demo-norm')
    """
    keys = keys_of("options", options, least=2)
    check.choice("right", right, keys)
    task = {"kind": "choice", "answer": right, "say": each("say", say, keys)}
    return made(
        task, name, question, title, hint,
        solution or f"{options[right]}. {say[right]}",
        [(key, words_of(f"options[{key!r}]", options[key])) for key in keys],
    )  # fmt: skip


def false_line(
    name: str,
    question: str,
    lines: Sequence[str],
    wrong: int,
    *,
    say: Mapping[int, str] | None = None,
    right: str = "",
    hint: str = "",
    solution: str = "",
    title: str = "",
) -> Exercise:
    r"""Ask which line of a proof does not follow.

    Args:
        name: its name, once in the whole book.
        question: what is asked.
        lines: the proof, a line of TeX each.
        wrong: the place of the false line, from 0.
        say: what is said to other lines, by place.
        right: what is said to the false one: what should stand there.
        hint: what helps, before the solution.
        solution: how it is done; the false line and ``right`` where none is given.
        title: its name in lists; the question's beginning where none is given.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> exercise.false_line("demo-line", "One line is false.", ["a = b", "a^2 = b", "a = b"],
        ...                     1, right="$a^2 = b^2$.").task["answer"]
        '1'
    """
    if isinstance(lines, str) or len(lines) < 2:
        raise check.fail("lines", "two lines of TeX or more", repr(lines))
    place, last = check.count("wrong", wrong, least=0), len(lines) - 1
    if place > last:
        raise check.fail("wrong", f"a place from 0 to {last}", repr(wrong))
    said = {str(check.count("say", key, least=0)): words for key, words in (say or {}).items()}
    if str(place) in said:
        raise check.fail("say", "words for lines that follow; `right` has the false one's", place)
    if unknown := sorted(set(said) - {str(k) for k in range(len(lines))}):
        raise check.fail("say", f"places from 0 to {last}", ", ".join(unknown))
    follows = "That line follows from what is above it."
    every = {str(k): said.get(str(k), follows) for k in range(len(lines))}
    every[str(place)] = right or "Yes: that line does not follow."
    task = {"kind": "false_line", "answer": str(place), "say": every}
    told = solution or f"Line {place + 1}. {right}".strip()
    shown = [(str(k), f"${line.strip('$ ')}$") for k, line in enumerate(lines)]
    return made(task, name, question, title, hint, told, shown)


def reach(
    name: str,
    question: str,
    *,
    explorable: str,
    goal: Mapping[str, Any],
    reached: Mapping[str, Any],
    say: Mapping[str, str] | None = None,
    right: str = "There you are.",
    missed: str = "Not there yet.",
    hint: str = "",
    solution: str = "",
    title: str = "",
) -> Exercise:
    r"""Ask to bring an explorable of the page into a state.

    ``goal`` maps what the explorable says of itself (its ``data-*`` attributes, in camel case, or
    a key of its state; ``"support.0.2"`` looks into a list) to what it must be: a value, or tests
    such as ``{"above": 0.5}``, ``{"near": [1, 0.05]}``, ``{"count": 3}`` (true entries),
    ``{"not": 2}``, ``{"among": ["optimal", "unresolved"]}``.

    Args:
        name: its name, once in the whole book.
        question: what is asked.
        explorable: the explorable's name, such as ``"token_board"``.
        goal: what must hold, by name; checked in this order.
        reached: a state that does it, for the button "Show me" and for the tests.
        say: what is said while a condition of the goal is the first that fails, by its name.
        right: what is said when all hold.
        missed: what is said to a failing condition without words of its own.
        hint: what helps, before the solution.
        solution: how it is done.
        title: its name in lists; the question's beginning where none is given.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> exercise.reach("demo-reach", "Make it infeasible.", explorable="token_board",
        ...     goal={"status": "infeasible"}, reached={"v": [0.0, -1.0]}).task["goal"]
        [['status', {'is': 'infeasible'}]]
    """
    wanted = [(key, tests_of(key, value)) for key, value in goal.items()]
    if not wanted:
        raise check.fail("goal", "one condition or more", "none")
    if not reached:
        raise check.fail("reached", "a state that does it", "none")
    for key in say or {}:
        check.choice("say", key, goal)
    task = {
        "kind": "reach",
        "explorable": words_of("explorable", explorable, needed=True),
        "goal": wanted,
        "reached": dict(reached),
        "say": dict(say or {}),
        "right": words_of("right", right, needed=True),
        "missed": words_of("missed", missed, needed=True),
    }
    return made(task, name, question, title, hint, solution)
