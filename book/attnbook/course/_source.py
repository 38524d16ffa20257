"""Problem sets as their authors write them: text notebooks with solutions, read into records."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from attnbook.course._numbers import SIZES
from attnlab import checks as check

SETS = {
    "1": "set1-multihead",
    "2": "set2-encoder",
    "3": "set3-bias",
    "4": "set4-svm",
    "project": "project",
}
NEEDED = ("id", "title", "goal", "points", "difficulty", "minutes")
DIFFICULTIES = ("easy", "medium", "hard")
NUMPY = "import numpy as np"
HELP = '''
def expect(found, wanted, what, like=(), near=1e-5):
    """Stop at a value that is not the wanted one; say what came, and which mistake gives it."""

    def shape(value):
        try:
            return np.shape(value)
        except ValueError:  # lists of several lengths
            return None

    def same(value):
        try:
            return shape(found) == shape(value) and np.allclose(found, value, near, near)
        except TypeError:  # words
            return False

    good, why = same(wanted), [why for why, value in dict(like).items() if same(value)]
    hint = f" (that is what you get if {why[0]})" if why else ""
    if not good and shape(found) == shape(wanted) and np.size(wanted) > 9:
        at = np.unravel_index(np.abs(np.subtract(found, wanted)).argmax(), np.shape(wanted))
        what = f"{what}, entry {tuple(map(int, at))}"
        wanted, found = np.asarray(wanted)[at], np.asarray(found)[at]
    assert good, f"{what}: expected {wanted}, got {found}{hint}"
'''.strip()
HOLE = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True)
class Wrong:
    """A subtly wrong submission, and what it still earns."""

    source: str
    earns: float
    about: str


@dataclass(frozen=True, eq=False)
class Problem:
    """One problem: its words, its solution, what is shown, and what judges."""

    id: str
    title: str
    goal: str
    points: float
    difficulty: str
    minutes: int
    text: str
    answer: str  # the name that is asked for; empty where a person marks
    parts: dict[str, float]  # points by hidden test
    value: bool = False  # a variable, not a function
    solution: str = ""
    visible: str = ""
    judge: str = ""
    variant: str = ""
    scheme: str = ""  # model answer and marking scheme, where a person marks
    wrong: tuple[Wrong, ...] = ()
    sizes: tuple[float, float] = SIZES  # of the numbers of an answer that are not 0
    infinite: bool = False  # infinity, or NaN, can be an answer
    underflow: bool = False  # its judge may underflow; over and by 0 it never may
    about: dict[str, str] = field(default_factory=dict)  # what each part is about, for feedback
    read: str = ""  # a page of the book, without its ending


@dataclass(frozen=True, eq=False)
class ProblemSet:
    r"""A problem set as written: for all seeds.

    Args:
        name: of its file.
        title: for people.
        rooms: of attnlab that answers may import when they are marked.
        text: the introduction.
        setup: the code that every notebook begins with.
        problems: the problems, in order.
        halves: ids of two parts that can be assigned alone, by name, where the author sees them.

    Returns:
        A problem set.

    Examples:
        >>> from attnbook import course
        >>> course.ProblemSet("set4-svm", "Set 4", ("problems",), "", "", ()).points
        0
    """

    name: str
    title: str
    rooms: tuple[str, ...]
    text: str
    setup: str
    problems: tuple[Problem, ...]
    halves: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """Of all problems."""
        return sum(problem.points for problem in self.problems)

    @property
    def minutes(self) -> int:
        """A student's expected time."""
        return sum(problem.minutes for problem in self.problems)

    def part(self, ids: Sequence[str]) -> ProblemSet:
        """The problems with these ids, in the order of the set; all of them where none is named."""
        known = [problem.id for problem in self.problems]
        wrong = [one for one in ids if one not in known or ids.count(one) > 1]
        if wrong:
            expected = f"some of {', '.join(known)}, each once"
            raise check.fail(f"problems of {self.name}", expected, ", ".join(wrong))
        asked = tuple(problem for problem in self.problems if problem.id in ids or not ids)
        return dataclasses.replace(self, problems=asked)

    def __repr__(self) -> str:
        told = f"{len(self.problems)} problems, {self.points:g} points, {self.minutes} minutes"
        return f"ProblemSet({self.name}: {told})"


def folder(given: str | Path | None = None) -> Path:
    """Where the sources are: named, or in a checkout or an instructor archive around us."""
    places = [Path(given)] if given else []
    if not given:
        for base in (Path.cwd(), *Path.cwd().parents):
            places += [base / "book" / "coursework", base / "coursework"]
    for place in places:
        if any((place / f"{name}.md").is_file() for name in SETS.values()):
            return place
    raise check.fail(
        "sources",
        "a folder with the sources of the problem sets: run this inside a checkout or the "
        "unpacked instructor archive, or name it with --sources",
        str(given) if given else "none around " + str(Path.cwd()),
    )


def read(path: Path) -> ProblemSet:
    """A problem set from its text notebook."""
    import jupytext

    notebook: Any = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    about = notebook.metadata.get("course") or {}
    if not {"title", "rooms"} <= set(about):
        raise check.fail(path.name, "course: {title, rooms} in its front matter", sorted(about))
    intro: list[str] = []
    setup: list[str] = []
    found: list[dict[str, Any]] = []
    for cell in notebook.cells:
        if "problem" in cell.metadata:
            found.append(
                {"about": dict(cell.metadata["problem"]), "text": cell.source, "wrong": []}
            )
        elif not found:
            (setup if cell.cell_type == "code" else intro).append(cell.source)
        else:
            take(found[-1], cell, path)
    problems = tuple(record(entry, path) for entry in found)
    names = [problem.id for problem in problems]
    if len(set(names)) != len(names):
        raise check.fail(path.name, "each id once", names)
    return ProblemSet(
        name=path.stem,
        title=about["title"],
        rooms=tuple(about["rooms"]),
        text="\n\n".join(intro),
        setup="\n\n".join([*setup, *(() if NUMPY in "\n".join(setup) else (NUMPY,)), HELP]),
        problems=problems,
        halves=halves(about.get("halves") or {}, names, path),
    )


def halves(told: Any, names: list[str], path: Path) -> dict[str, tuple[str, ...]]:
    """The two parts that an author recommends: every problem is in exactly one of them."""
    found = {str(name): tuple(map(str, ids)) for name, ids in dict(told).items()}
    together = [one for ids in found.values() for one in ids]
    if found and (len(found) != 2 or sorted(together) != sorted(names)):
        off = sorted({*together} ^ {*names}) or sorted({one for one in together if together.count(one) > 1})  # fmt: skip  # noqa: E501
        raise check.fail(path.name, "two halves, and every problem in one of them", off or found)
    return found


def take(entry: dict[str, Any], cell: Any, path: Path) -> None:
    """Put a cell where its tag says."""
    where = f"{path.name}, {entry['about'].get('id')}"
    if cell.cell_type != "code":
        if "scheme" in cell.metadata:
            entry["scheme"] = cell.source
        else:
            entry["text"] += "\n\n" + cell.source
        return
    tags = [t for t in cell.metadata.get("tags", []) if t in (*KINDS, "wrong")]
    if len(tags) != 1:
        raise check.fail(where, f"one tag of {', '.join(KINDS)}, wrong", tags)
    if tags[0] != "wrong":
        if tags[0] in entry:
            raise check.fail(where, f"one cell {tags[0]}", "two")
        entry[tags[0]] = cell.source
        return
    first = re.match(r"# earns ([\d.]+): (.+)\n", cell.source)
    if not first:
        raise check.fail(where, "a wrong cell that begins '# earns 2: why'", cell.source[:60])
    entry["wrong"].append(Wrong(cell.source[first.end() :], float(first[1]), first[2]))


KINDS = ("variant", "solution", "visible", "judge")


def record(entry: dict[str, Any], path: Path) -> Problem:
    """A checked record."""
    about = entry["about"]
    where = f"{path.name}, {about.get('id')}"
    missing = [name for name in NEEDED if name not in about]
    if missing:
        raise check.fail(where, "all of " + ", ".join(NEEDED), f"without {missing}")
    if about["difficulty"] not in DIFFICULTIES:
        raise check.fail(where, f"difficulty of {DIFFICULTIES}", about["difficulty"])
    answer = about.get("answer", "")
    parts = {str(k): float(v) for k, v in about.get("parts", {}).items()}
    if answer and (not parts or abs(sum(parts.values()) - about["points"]) > 1e-9):
        raise check.fail(where, "parts that add up to its points", parts)
    for name in ("solution", "visible", "judge") if answer else ("scheme",):
        if not entry.get(name):
            raise check.fail(where, f"a cell {name}", "none")
    told = {str(k): str(v) for k, v in about.get("about", {}).items()}
    if told and list(told) != list(parts):
        raise check.fail(where, f"about for each of {', '.join(parts)}", list(told))
    least, most = (float(size) for size in about.get("sizes", SIZES))
    eased = sorted({"sizes", "infinite", "underflow"} & set(about))
    if eased and not about.get("why"):
        raise check.fail(where, f"a reason (why) for {', '.join(eased)}", "none")
    if not 0 < least < 1 < most < float("inf"):
        raise check.fail(where, "sizes from below 1 to above it", [least, most])
    return Problem(
        **{name: about[name] for name in NEEDED},
        sizes=(least, most),
        infinite=bool(about.get("infinite", False)),
        underflow=bool(about.get("underflow", False)),
        text=entry["text"],
        answer=answer,
        value=bool(about.get("value", False)),
        parts=parts,
        about=told,
        read=str(about.get("read", "")),
        scheme=entry.get("scheme", ""),
        wrong=tuple(entry["wrong"]),
        **{kind: entry.get(kind, "") for kind in KINDS},
    )


def problem_set(name: str, sources: str | Path | None = None) -> ProblemSet:
    r"""A problem set by its short name.

    Args:
        name: ``"1"`` to ``"4"``, or ``"project"``.
        sources: the folder of the sources; the one of this checkout or archive where None.

    Returns:
        The set, with its problems.

    Examples:
        >>> from attnbook import course
        >>> course.problem_set("7")
        Traceback (most recent call last):
            ...
        ValueError: name: expected one of 1, 2, 3, 4, project, got '7'
    """
    if str(name) not in SETS:
        raise check.fail("name", f"one of {', '.join(SETS)}", repr(name))
    return read(folder(sources) / f"{SETS[str(name)]}.md")


# -- variants ----------------------------------------------------------------------------------
def generator(seed: int, *words: str) -> np.random.Generator:
    """Randomness that hangs on the course's seed and the problem, and on nothing else."""
    codes = [int.from_bytes(word.encode(), "little") % (1 << 64) for word in words]
    return np.random.default_rng([int(seed), *codes])


def own_seed(seed: int, student: str) -> int:
    """A student's own seed: of the course's seed and the id, by sha256."""
    return int.from_bytes(hashlib.sha256(f"{seed} {student}".encode()).digest()[:8], "big")


def variant(one: Problem, name: str, seed: int) -> dict[str, Any]:
    """The numbers of a problem in a course."""
    if not one.variant:
        return {}
    space: dict[str, Any] = {}
    exec(compile(one.variant, f"{name} {one.id} variant", "exec"), space)
    return dict(space["variant"](generator(seed, name, one.id, "variant")))


def fill(text: str, values: dict[str, Any]) -> str:
    """Text with its holes filled; a hole without a value is an error of the author's."""

    def put(hole: re.Match[str]) -> str:
        if hole[1] not in values:
            raise check.fail("variant", f"a value for {hole[1]}", sorted(values))
        return str(values[hole[1]])

    return HOLE.sub(put, text)
