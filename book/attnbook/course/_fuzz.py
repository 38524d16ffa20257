"""Answers that nobody worked for, put before every judge: what they earn.

Each is made from the shapes alone, from what is given, or from the true answer by a change that
may make it wrong. A part that does not look at an entry is not asked about that entry. A judge
that pays for one of them is too generous; `python -m attnbook.course._fuzz 3` lists those of a set.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnbook.course._grade import Judge
from attnbook.course._source import Problem, ProblemSet, fill, variant

ALONE = 4  # entries of an answer that are changed one by one
FAR = 12  # answers whose arrays differ in size by up to 1e117
POWERS = (-300, -200, -150, -100, -60, -50, -20, 20, 50, 60, 100, 150, 200, 300)
Change = Callable[[Any, tuple[Any, ...], np.random.Generator], Any]


@dataclass(frozen=True)
class Paid:
    """A part that a fuzzed answer earned."""

    problem: str
    part: str
    points: float
    answers: tuple[str, ...]


def each(value: Any, change: Callable[[np.ndarray], Any], only: int = -1) -> Any:
    """The same form with every number and array changed, or the one that is counted."""
    count = -1

    def walk(entry: Any) -> Any:
        nonlocal count
        if isinstance(entry, dict):
            return {key: walk(one) for key, one in entry.items()}
        if isinstance(entry, list | tuple):
            return [walk(one) for one in entry]
        if isinstance(entry, str) or entry is None:
            return entry
        count += 1
        if only not in (-1, count):
            return entry
        found = change(np.asarray(entry))
        alone = not isinstance(entry, np.ndarray) and isinstance(found, np.ndarray)
        return found.item() if alone and found.size == 1 else found

    return walk(value)


def leaves(value: Any) -> list[np.ndarray]:
    """Its numbers and arrays, in order."""
    found: list[np.ndarray] = []
    each(value, lambda one: found.append(one))
    return found


def scaled(power: float) -> Callable[[np.ndarray], np.ndarray]:
    """Times a power of ten."""

    def change(one: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(one * 10.0**power) if one.dtype.kind in "fiuc" else one

    return change


def filled(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """The same everywhere."""
    return lambda one: np.full(one.shape, value)


def drawn(rng: np.random.Generator, size: float) -> Callable[[np.ndarray], np.ndarray]:
    """Random numbers of the same kind and shape."""

    def change(one: np.ndarray) -> np.ndarray:
        if one.dtype.kind == "b":
            return np.asarray(rng.random(one.shape) < 0.5)
        if one.dtype.kind in "iu":
            return np.asarray(rng.integers(0, max(2, int(np.max(one, initial=1)) + 1), one.shape))
        return np.asarray(size * rng.normal(size=one.shape))

    return change


def turned(one: np.ndarray) -> np.ndarray:
    """Another order: rolled along the last axis."""
    return np.roll(one, 1, axis=-1) if one.ndim else one


def echoed(given: tuple[Any, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """What was given, where its shape fits."""
    stock = leaves(list(given))

    def change(one: np.ndarray) -> np.ndarray:
        return next((g for g in stock if g.shape == one.shape and one.ndim), one * 0)

    return change


def changed(change: Callable[[np.ndarray], Any], only: int = -1) -> Change:
    """The true answer with its numbers changed."""
    return lambda true, _given, _rng: each(true, change, only)


def always(thing: Any) -> Change:
    """The same answer to every question."""
    return lambda _true, _given, _rng: copy.deepcopy(thing)


def given_back(k: int) -> Change:
    """One of the arguments."""
    return lambda _true, given, _rng: given[k] if k < len(given) else None


def at_random(size: float, only: int = -1) -> Change:
    """Random numbers in the true answer's form."""
    return lambda true, _given, rng: each(true, drawn(rng, size), only)


def far_apart(zeros: float) -> Change:
    """Random numbers in the true answer's form, each array with a size of its own in the range."""

    def change(true: Any, _given: tuple[Any, ...], rng: np.random.Generator) -> Any:
        def one(value: np.ndarray) -> Any:
            if value.dtype.kind not in "fc":
                return drawn(rng, 1.0)(value)
            size = 10.0 ** rng.uniform(-59, 58)
            return np.where(rng.random(value.shape) < zeros, 0.0, drawn(rng, size)(value))

        return each(true, one)

    return change


def answers() -> dict[str, Change]:
    """All kinds, by name."""
    kinds: dict[str, Change] = {}
    for power in POWERS:
        kinds[f"times 1e{power:+d}"] = changed(scaled(power))
        for k in range(ALONE if abs(power) <= 60 else 0):
            kinds[f"entry {k} times 1e{power:+d}"] = changed(scaled(power), k)
    for value in (0.0, 1.0, -1.0, 0.5, 1e-9, 1e9, 1e-59, 1e59, 1e300, np.nan, np.inf, -np.inf):
        kinds[f"all {value:g}"] = changed(filled(value))
        kinds[f"the number {value:g}"] = always(value)
    things: dict[str, Any] = {
        "nothing": None, "an empty word": "", "True": True, "False": False, "an empty list": [],
        "an empty dict": {}, "an empty array": np.zeros(0), "no rows": np.zeros((0, 3)),
        "a billion of nothing": np.zeros((3, 10**8, 0)), "a big integer": 10**50,
        "a word": "yes",
    }  # fmt: skip
    kinds |= {name: always(thing) for name, thing in things.items()}
    kinds["rolled"] = changed(turned)
    kinds["reversed"] = changed(lambda one: one[::-1] if one.ndim else one)
    kinds["transposed"] = changed(lambda one: one.T)
    kinds["things in reverse"] = lambda true, _given, _rng: (
        list(true)[::-1] if isinstance(true, list | tuple) else true
    )
    kinds["the other sign"] = changed(lambda one: ~one if one.dtype.kind == "b" else -one)
    kinds["an imaginary part beside it"] = changed(
        lambda one: one + 1e9j if one.dtype.kind in "fiu" else one * 0
    )
    kinds["its numbers as words"] = changed(
        lambda one: one.astype(str).tolist() if one.dtype.kind in "fiu" else one * 0
    )
    kinds["what was given"] = lambda _true, given, _rng: list(given)
    kinds |= {f"given {k}": given_back(k) for k in range(5)}
    kinds["given arrays"] = lambda true, given, _rng: each(true, echoed(given))
    kinds |= {f"entry {k} at random": at_random(1.0, k) for k in range(ALONE)}
    for size in (1e-8, 1.0, 1e8):
        kinds |= {f"random {size:g}, {again}": at_random(size) for again in range(3)}
    for zeros in (0.0, 0.5, 0.9):
        kinds |= {f"random sizes, {zeros:g} zeros, {k}": far_apart(zeros) for k in range(FAR)}
    return kinds


def kind(name: str) -> str:
    """What sort of answer it is: of the true one's making, or nobody's work."""
    if name.startswith("entry"):
        return "entry"
    words = {"times": "length", "the other sign": "sign", "random": "random"}
    words |= dict.fromkeys(("rolled", "reversed", "transposed", "things in reverse"), "order")
    words |= dict.fromkeys(("what was", "given"), "echo")
    return next((sort for word, sort in words.items() if name.startswith(word)), "constant")


def same(found: Any, wanted: Any) -> bool:
    """Whether a changed answer is the true one after all."""
    a, b = leaves(found), leaves(wanted)
    if len(a) != len(b):
        return False
    with np.errstate(all="ignore"):
        return all(
            x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-6, atol=1e-9))
            for x, y in zip(a, b, strict=True)
        )


def fuzz(source: ProblemSet, one: Problem, seed: int) -> Iterator[Paid]:
    """Parts of a problem that answers nobody worked for do earn."""
    space: dict[str, Any] = {}
    exec(compile(source.setup, "setup", "exec"), space)
    exec(compile(fill(one.solution, variant(one, source.name, seed)), "solution", "exec"), space)
    judge = Judge(source, one, seed)
    cases = list(judge.cases())
    true = [
        copy.deepcopy(space[one.answer] if one.value else space[one.answer](*copy.deepcopy(given)))
        for _, given in cases
    ]
    paid: dict[str, list[str]] = {}
    for name, change in answers().items():
        rng = np.random.default_rng([seed, *name.encode()])
        wrong: set[str] = set()
        honest = dict.fromkeys(one.parts, True)
        for (part, given), wanted in zip(cases, true, strict=True):
            if part in wrong:
                continue
            try:
                found = change(copy.deepcopy(wanted), copy.deepcopy(given), rng)
            except (ValueError, TypeError, IndexError, OverflowError):
                wrong.add(part)  # there is no such answer
                continue
            honest[part] = honest[part] and same(found, wanted)
            if judge.why_not(part, given, plain(found)):
                wrong.add(part)
        for part in set(one.parts) - wrong:
            if not honest[part]:
                paid.setdefault(part, []).append(name)
    for part, names in sorted(paid.items()):
        free = {name.split()[1] for name in names if name.endswith("at random")}
        numbers = range(len([x for x in leaves(true[0]) if x.dtype.kind in "fiuc"]))
        names = [
            name
            for name in names
            if not (name.startswith("entry") and name.split()[1] in free)
            and not (name.startswith("times") and free >= set(map(str, numbers)))
        ]
        if names:
            yield Paid(one.id, part, one.parts[part], tuple(names))


def plain(value: Any) -> Any:
    """As it comes out of the sandbox."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return np.asarray(value) if isinstance(value, np.generic) else value


def main(arguments: list[str]) -> None:
    """``python -m attnbook.course._fuzz 3 [seed]``."""
    import time

    from attnbook.course._source import problem_set

    source, seed = problem_set(arguments[0]), int((*arguments, "0")[1])
    for one in source.problems:
        if one.answer:
            began = time.perf_counter()
            for paid in fuzz(source, one, seed):
                sorts = sorted({kind(name) for name in paid.answers})
                print(f"{one.id}/{paid.part} {paid.points:g}: {' '.join(sorts)} {paid.answers}")
            print(f"  {one.id}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
