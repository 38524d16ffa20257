"""A course as a folder: nbgrader's layout, our verdicts."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab
from attnbook.course import _notebook as notebooks
from attnbook.course._assign import VARIANTS, chosen, hand_out, notebooks_of
from attnbook.course._deadlines import well_ruled
from attnbook.course._grade import Verdict
from attnbook.course._marker import load_verdict
from attnbook.course._private import file_of, own_sets, places, well_asked
from attnbook.course._sandbox import Limits
from attnbook.course._source import SETS, ProblemSet, own_seed, read
from attnbook.course._tables import COLUMNS, Student, merged, roster
from attnbook.course._words import cell
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.course._collect import Sorted
    from attnbook.course._return import Returned
    from attnbook.course._server import Server

RULES = {"problems": dict, "each": bool, "zone": str, "late": str, "drop": int}


@dataclass(frozen=True)
class Course:
    r"""A course: a folder, a seed, and the problem sets that it uses.

    Args:
        place: the folder.
        name: of the course.
        seed: of its variants.
        sets: short names of its problem sets.
        sources: where the problem sets are; around the working directory where None.
        install: what the notebooks' first cell installs: a package, or the address of a wheel.
        problems: ids of the problems that are asked, by set; all of a set that is not named.
        each: whether every student has a variant of their own.
        zone: where due dates are meant, as an IANA name; times as they are written where empty.
        late: what lateness costs, such as ``10%/day,max 3``; nothing where empty.
        drop: how many of a student's worst sets do not count.
        private: a folder with sets of the instructor's own, named by their files.

    Returns:
        A course.

    Examples:
        >>> from pathlib import Path
        >>> from attnbook import course
        >>> course.Course(Path("fall27"), "fall27", 2027, ("1", "3")).folders[0]
        'set1-multihead'
    """

    place: Path
    name: str
    seed: int
    sets: tuple[str, ...]
    sources: Path | None = None
    install: str = notebooks.PACKAGE
    problems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    each: bool = False
    zone: str = ""
    late: str = ""
    drop: int = 0
    private: Path | None = None

    @property
    def folders(self) -> list[str]:
        """Names of the sets, as nbgrader's assignments."""
        return [SETS.get(one, one) for one in self.sets]

    def sheet(self, name: str) -> Path:
        """Where a set is written."""
        return file_of(name, self.sources, self.private)

    def source(self, name: str) -> ProblemSet:
        """A problem set of this course: what of it is asked."""
        return read(self.sheet(name)).part(self.ids(name))

    def having(self, *sets: str) -> Course:
        """The same with these sets; where none is named, all of the instructor's, or the book's."""
        own = own_sets(self.private) or ["1", "2", "3", "4"]
        return dataclasses.replace(self, sets=sets or tuple(own))

    def assigning(self, words: Iterable[str]) -> Course:
        """The same, with parts of sets: ``4:rank-gap,reachable``, or ids alone of the one set."""
        return dataclasses.replace(self, problems=chosen(words, self.sets))

    def ids(self, name: str) -> tuple[str, ...]:
        """The problems of a set that are asked; all of them where empty."""
        if odd := sorted(set(self.problems) - set(self.sets)):
            raise check.fail("problems", f"ids of sets {', '.join(self.sets)}", ", ".join(odd))
        return next(
            (ids for short, ids in self.problems.items() if SETS.get(short, short) == name), ()
        )

    def seed_of(self, student: str) -> int:
        """The seed of a student's variants: the course's, or their own."""
        return own_seed(self.seed, student) if self.each else self.seed

    def asked(self, student: str, name: str) -> dict[str, Any]:
        """What a process that marks is told of a submission, besides the seed."""
        told: dict[str, Any] = {"problems": self.ids(name)}
        index = self.place / VARIANTS
        if self.each and index.is_file():
            told |= {"variants": str(index), "student": student}
        return told

    def students(self) -> list[Student]:
        """The roster."""
        path = self.place / "roster.csv"
        return list(roster(path)) if path.is_file() else []

    # -- making and finding ------------------------------------------------------------------------
    def create(self) -> None:
        """Write the folder: all of it, or nothing."""
        well_asked(self)
        well_ruled(self)
        if self.place.exists() and (not self.place.is_dir() or any(self.place.iterdir())):
            raise check.fail("out", "a folder that is new or empty", str(self.place))
        parent = self.place.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".attnlab-") as place:
            draft = Path(place) / "course"
            draft.mkdir(mode=0o700)  # solutions and marks: nobody else on this machine
            notebooks_of(self, draft)
            about = {"name": self.name, "seed": self.seed, "sets": list(self.sets), "due": {}}
            about["install"] = self.install
            about |= {key: value for key in RULES if (value := getattr(self, key))}
            about["version"] = attnlab.__version__
            about |= places(self)
            (draft / "course.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")
            (draft / "roster.csv").write_text(",".join(COLUMNS) + "\n", "utf-8")
            config = (Path(__file__).parent / "nbgrader_config.txt").read_text("utf-8")
            (draft / "nbgrader_config.py").write_text(
                config.replace("COURSE", repr(self.name)), "utf-8"
            )
            if self.place.exists():
                self.place.rmdir()
            draft.rename(self.place)

    @classmethod
    def open(cls, place: str | Path, sources: str | Path | None = None) -> Course:
        """A course that exists."""
        path = Path(place) / "course.json"
        try:
            about = json.loads(path.read_text("utf-8"))
            sets = tuple(str(one) for one in about["sets"])
            kept = Path(about.get("sources", ""))
            where = Path(sources) if sources else kept if kept.is_dir() else None
            told = {key: kind(about.get(key) or kind()) for key, kind in RULES.items()}
            told["problems"] = {str(k): tuple(map(str, v)) for k, v in told["problems"].items()}
            told["install"] = str(about.get("install", notebooks.PACKAGE))
            told["private"] = Path(about["private"]) if "private" in about else None
            return cls(Path(place), str(about["name"]), int(about["seed"]), sets, where, **told)
        except (OSError, ValueError, KeyError, TypeError):
            raise check.fail(
                "course", "a folder made by `attnlab course new`, with its course.json", str(place)
            ) from None

    def due(self) -> dict[str, str]:
        """When sets are due, where the instructor wrote it into course.json (ISO dates)."""
        about = json.loads((self.place / "course.json").read_text("utf-8"))
        due = {str(key): str(value) for key, value in about.get("due", {}).items()}
        unknown = sorted(set(due) - set(SETS) - set(SETS.values()) - set(self.sets))
        if unknown:
            raise check.fail("due in course.json", f"some of {', '.join(self.sets)}", unknown)
        return due

    def add(self, path: str | Path) -> list[Student]:
        """Add the students of a roster; who is there already is brought up to date."""
        known = {student.id: student for student in self.students()}
        fresh = list(roster(Path(path)))
        known |= {one.id: merged(known.get(one.id), one) for one in fresh}
        self.enrol(known.values())
        if self.each:
            hand_out(self)
        return fresh

    def enrol(self, students: Iterable[Student]) -> None:
        """Write the roster."""
        with tempfile.NamedTemporaryFile(
            "w", dir=self.place, delete=False, newline="", encoding="utf-8"
        ) as out:
            writer = csv.writer(out)
            writer.writerow(COLUMNS)
            for student in sorted(students, key=lambda one: one.id):
                writer.writerow([cell(entry) for entry in dataclasses.astuple(student)])
        os.replace(out.name, self.place / "roster.csv")

    def collect(
        self, downloads: str | Path, only: str = "", say: Callable[[str], None] = lambda _: None
    ) -> list[Sorted]:
        """Sort what a platform gave; says of every file where it went, or why it did not."""
        from attnbook.course._collect import collect

        return collect(self, downloads, only, say)

    def preview(self, downloads: str | Path, only: str = "") -> list[tuple[str, list[str]]]:
        """What `collect` would do and what is odd, as sections of lines; writes nothing."""
        from attnbook.course._preview import preview

        return preview(self, downloads, only)

    def settle(self, file: str | Path, student: str, name: str) -> Sorted:
        """Say by hand whose answer to which set a file is."""
        from attnbook.course._collect import place

        return place(self, file, student, name)

    def extend(self, student: str, name: str, until: str) -> datetime | None:
        """Give a student more time for a set; ``none`` takes it back."""
        from attnbook.course._deadlines import extend
        from attnbook.course._which import set_named

        return extend(self, student, set_named(self, name), until)

    def similar(self, least: float = 0.5) -> tuple[Path, list[str], list[str]]:
        """Write the page of alike answers; gives it, the pairs, and what could not be read."""
        from attnbook.course._similar import similar

        return similar(self, least)

    def report(self, form: str = "plain") -> list[Path]:
        """Write marks and feedback; gives the files."""
        from attnbook.course._report import report

        return report(self, form)

    def give_back(self, platform: str, name: str, out: str | Path, **told: Any) -> Returned:
        """Marks and feedback as a platform takes them back; what could not be is told."""
        from attnbook.course._return import give_back

        return give_back(self, platform, name, Path(out), **told)

    def marking(self, marker: str, *, port: int = 0, names: bool = False) -> Server:
        """The page on which a person marks; serves once its ``serve_forever`` is called."""
        from attnbook.course._desk import Desk
        from attnbook.course._server import serve

        return serve(Desk(self, marker, names), port)

    def waiting(self) -> int:
        """How many answers wait for a person."""
        from attnbook.course._report import rows

        return sum(row.open for row in rows(self))

    def forget(self, student: str) -> list[str]:
        """Delete all that is kept about a student; gives what was deleted."""
        from attnbook.course._forget import forget

        return forget(self, student)

    # -- marking -----------------------------------------------------------------------------------
    def submissions(self) -> Iterator[tuple[str, str, Path]]:
        """Student, set and file of everything that was handed in."""
        for student in sorted(path.name for path in (self.place / "submitted").glob("*")):
            for name in self.folders:
                path = self.place / "submitted" / student / name / f"{name}.ipynb"
                if os.path.lexists(path):
                    yield student, name, path

    def verdict_path(self, student: str, name: str) -> Path:
        """Where a verdict is kept."""
        return self.place / "verdicts" / student / f"{name}.json"

    def grade(
        self,
        *,
        say: Callable[[str], None] = print,
        again: bool = False,
        workers: int = 0,
        limits: Limits | None = None,
    ) -> list[Verdict]:
        """Form the verdicts that are missing or stale; one bad submission never stops the rest."""
        from attnbook.course._round import grade

        return grade(self, say, again=again, workers=workers, limits=limits)

    def digest(self, path: Path, name: str) -> str:
        """Of all that a verdict depends on."""
        seed = self.seed_of(path.parents[1].name)
        words = [attnlab.__version__, seed, *self.ids(name)]
        own = hashlib.sha256(" ".join(map(str, words)).encode())
        own.update(self.sheet(name).read_bytes())
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 26:
                own.update(path.read_bytes())
        return own.hexdigest()

    def unmarked(self) -> int:
        """Submissions without a verdict, or changed since."""
        return sum(
            load_verdict(self.verdict_path(student, name), self.digest(path, name)) is None
            for student, name, path in self.submissions()
        )

    def verdicts(self) -> dict[tuple[str, str], Verdict]:
        """All that were formed."""
        found = {}
        for student, name, _ in self.submissions():
            kept = load_verdict(self.verdict_path(student, name))
            if kept is not None:
                found[student, name] = kept
        return found
