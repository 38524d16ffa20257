"""For who writes a problem set: one to begin with, and what is still missing, in sentences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from attnbook.course import _fuzz, _verify
from attnbook.course._library import LOWER
from attnbook.course._private import OWN
from attnbook.course._sandbox import NoSandboxError, available
from attnbook.course._source import SETS, Problem, ProblemSet, read
from attnbook.course._words import clean
from attnlab import checks as check

NOBODYS = {"constant", "echo", "random"}  # kinds of answers that no true answer went into
MISTAKES = 3
SEEDS = 3


def template(path: str | Path) -> Path:
    r"""Write a small problem set that keeps its word, to be changed into one's own.

    Args:
        path: a new file that ends in ``.md``; its name is the set's.

    Returns:
        The file.

    Examples:
        >>> from attnbook import course
        >>> course.template("homework.txt")
        Traceback (most recent call last):
            ...
        ValueError: file: expected a new file such as hw1.md, got homework.txt
    """
    place = Path(path)
    good = place.suffix == ".md" and OWN.fullmatch(place.stem) and place.stem not in SETS
    if not good or place.exists():
        raise check.fail("file", "a new file such as hw1.md", str(place))
    place.parent.mkdir(parents=True, exist_ok=True)
    text = (Path(__file__).parent / "template.txt").read_text("utf-8")
    place.write_text(text, "utf-8")
    return place


def review(path: str | Path, seeds: int = SEEDS) -> tuple[list[str], list[str]]:
    r"""Play a problem set: its solutions, blanks, mistakes, and answers that nobody worked for.

    Args:
        path: its text notebook.
        seeds: how many variants are tried.

    Returns:
        What is missing or wrong, and what is worth a look, each in sentences.

    Examples:
        >>> from attnbook import course
        >>> course.review("none.md")
        (['There is no file none.md.'], [])
    """
    place = Path(path)
    if not place.is_file():
        return [f"There is no file {place}."], []
    if seeds < 1:
        raise check.fail("seeds", "a number from 1 on", seeds)
    try:
        source = read(place)
    except ModuleNotFoundError:
        raise
    except Exception as error:
        return [f"It could not be read: {clean(error)} ({type(error).__name__})."], []
    available()
    missing = list(dict.fromkeys([*on_paper(source), *played(source, seeds)]))
    looks = []
    for one in _verify.coded(source):
        bad, odd = unearned(source, one)
        missing += bad
        looks += odd
    return missing, looks


def on_paper(source: ProblemSet) -> Iterator[str]:
    """What can be seen without running anything."""
    if not OWN.fullmatch(source.name):
        yield "Name the file with small letters, digits and -, such as hw1.md."
    unknown = [room for room in source.rooms if room not in LOWER]
    if unknown:
        yield f"There is no room {', '.join(unknown)}: rooms are {', '.join(LOWER)}."
    if not source.problems:
        yield 'It has no problem: a cell of words that begins +++ {"problem": …} starts one.'
    for one in source.problems:
        for words in machine(one) if one.answer else by_hand(one):
            yield f"{one.id}: {words}"


def by_hand(one: Problem) -> Iterator[str]:
    """Of a problem that a person marks."""
    if "**Marks.**" not in one.scheme:
        yield "write **Marks.** into its scheme: what each step of a proof is worth."
    elif told := _verify.scheme(one):
        yield f"{told}."


def machine(one: Problem) -> Iterator[str]:
    """Of a problem that a program marks."""
    if "**Expected.**" not in one.text:
        yield "say under **Expected.** what one answer is, so that students can check."
    if not one.variant:
        yield "give it a variant, so that next year's numbers are others."
    if len(one.wrong) < MISTAKES:
        yield (
            f"it has {len(one.wrong)} wrong answers, and {MISTAKES} are wanted: what a good "
            "student gets nearly right, each in a cell that begins '# earns 2: why'."
        )
    elif len(one.parts) > 1 and not any(wrong.earns for wrong in one.wrong):
        yield "every wrong answer earns 0, so its parts are one part. Add one that keeps some."


ADVICE: dict[str, tuple[Callable[[ProblemSet, int], Iterable[str]], str]] = {
    "leaks": (_verify.leaks, "Take it out of the text or the visible test, or change it."),
    "reference": (
        _verify.reference,
        "A solution earns all points with every seed, and without its lines it earns none.",
    ),
    "shown": (
        _verify.shown_tests,
        "The visible test passes with the solution and fails with a blank, or it helps nobody.",
    ),
    "mistakes": (
        _verify.mistakes,
        "Either the number after 'earns' is wrong, or the judge is: the parts in brackets say why.",
    ),
}


def played(source: ProblemSet, seeds: int) -> Iterator[str]:
    """What shows when it is run."""
    try:
        for line in _verify.variants_differ(source, list(range(seeds))):
            yield f"{line}. Draw something from rng."
    except Exception as error:
        yield f"A variant ended in {type(error).__name__}: {clean(error)}."
        return
    for seed in range(seeds):
        for play, advice in ADVICE.values():
            try:
                for line in play(source, seed):
                    if "wrong submissions, not three" not in line:  # said already
                        yield f"{clean(line, 500)}. {advice}"
            except NoSandboxError:
                raise
            except Exception as error:
                told = f"{type(error).__name__}: {clean(error)}"
                yield f"With seed {seed}, a judge or another cell of the set ended in {told}."


def unearned(source: ProblemSet, one: Problem) -> tuple[list[str], list[str]]:
    """Parts that nobody's work earns, and parts that a changed true answer earns."""
    bad, odd = [], []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(_fuzz.fuzz(source, one, 0))
    except Exception as error:
        return [f"{one.id}: trying answers ended in {type(error).__name__}: {clean(error)}."], []
    for paid in found:
        free = [answer for answer in paid.answers if _fuzz.kind(answer) in NOBODYS]
        some = ", ".join(f"'{answer}'" for answer in (free or paid.answers)[:4])
        part = f"{one.id}: the part {paid.part} pays {paid.points:g} points"
        if free:
            bad.append(
                f"{part} for {some}. Nobody worked for that: give it a case with another true "
                "answer, or let the judge ask for more."
            )
        else:
            odd.append(f"{part} for the true answer changed by {some}. Is that a true answer, too?")
    return bad, odd
