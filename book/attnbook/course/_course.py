"""A course as a folder: nbgrader's layout, our verdicts."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab
from attnbook.course import _notebook as notebooks
from attnbook.course._grade import Mark, Part, Verdict, grade
from attnbook.course._sandbox import Limits, available
from attnbook.course._source import SETS, ProblemSet, folder, read
from attnbook.course._submission import read_submission
from attnbook.course._tables import COLUMNS, NAME, Student, replace, roster, strike
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.course._collect import Sorted

FIRST = (0, 2)  # the version whose rooms notebooks import as they are named today


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

    @property
    def folders(self) -> list[str]:
        """Names of the sets, as nbgrader's assignments."""
        return [SETS[one] for one in self.sets]

    def source(self, name: str) -> ProblemSet:
        """A problem set of this course."""
        return read(folder(self.sources) / f"{name}.md")

    def students(self) -> list[Student]:
        """The roster."""
        path = self.place / "roster.csv"
        return list(roster(path)) if path.is_file() else []

    # -- making and finding ------------------------------------------------------------------------
    def create(self) -> None:
        """Write the folder: all of it, or nothing."""
        unknown = [one for one in self.sets if one not in SETS]
        if unknown or not self.sets or len(set(self.sets)) != len(self.sets):
            raise check.fail("sets", f"some of {', '.join(SETS)}, each once", ",".join(self.sets))
        if not NAME.fullmatch(self.name):
            raise check.fail("name", "letters and digits", self.name)
        if self.seed < 0:
            raise check.fail("seed", "a number from 0 on", self.seed)
        if self.place.exists() and (not self.place.is_dir() or any(self.place.iterdir())):
            raise check.fail("out", "a folder that is new or empty", str(self.place))
        parent = self.place.absolute().parent
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".attnlab-") as place:
            draft = Path(place) / "course"
            draft.mkdir(mode=0o700)  # solutions and marks: nobody else on this machine
            for name in self.folders:
                source = self.source(name)
                for kind, solutions in (("source", True), ("release", False)):
                    target = draft / kind / name
                    target.mkdir(parents=True)
                    built = notebooks.build(
                        source, self.seed, solutions=solutions, install=self.install
                    )
                    (target / f"{name}.ipynb").write_text(notebooks.write(built), "utf-8")
            about = {"name": self.name, "seed": self.seed, "sets": list(self.sets), "due": {}}
            about["version"] = attnlab.__version__
            about["sources"] = str(folder(self.sources).absolute())
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
            return cls(Path(place), str(about["name"]), int(about["seed"]), sets, where)
        except (OSError, ValueError, KeyError, TypeError):
            raise check.fail(
                "course", "a folder made by `attnlab course new`, with its course.json", str(place)
            ) from None

    def made_by(self) -> str:
        """The version that handed the notebooks out; one whose imports have moved is refused."""
        about = json.loads((self.place / "course.json").read_text("utf-8"))
        made = str(about.get("version", "0.1.0"))
        if tuple(int(part) for part in re.findall(r"\d+", made)[:2]) < FIRST:
            expected = (
                f"one made by attnlab {'.'.join(map(str, FIRST))} or newer, because rooms moved to "
                "attnbook since: mark this one with the version that made it"
            )
            raise check.fail("course", expected, f"one made by {made}")
        return made

    def due(self) -> dict[str, str]:
        """When sets are due, where the instructor wrote it into course.json (ISO dates)."""
        about = json.loads((self.place / "course.json").read_text("utf-8"))
        due = {str(key): str(value) for key, value in about.get("due", {}).items()}
        unknown = sorted(set(due) - set(SETS) - set(SETS.values()))
        if unknown:
            raise check.fail("due in course.json", f"some of {', '.join(SETS)}", unknown)
        return due

    def add(self, path: str | Path) -> list[Student]:
        """Add the students of a roster; who is there already is brought up to date."""
        known = {student.id: student for student in self.students()}
        fresh = list(roster(Path(path)))
        known |= {student.id: student for student in fresh}
        self.enrol(known.values())
        return fresh

    def enrol(self, students: Iterable[Student]) -> None:
        """Write the roster."""
        with tempfile.NamedTemporaryFile(
            "w", dir=self.place, delete=False, newline="", encoding="utf-8"
        ) as out:
            writer = csv.writer(out)
            writer.writerow(COLUMNS)
            for student in sorted(students, key=lambda one: one.id):
                writer.writerow(dataclasses.astuple(student))
        os.replace(out.name, self.place / "roster.csv")

    def collect(self, downloads: str | Path) -> list[Sorted]:
        """Sort what a platform gave; says of every file where it went, or why it did not."""
        from attnbook.course._collect import collect

        return collect(self, downloads)

    def report(self, form: str = "plain") -> list[Path]:
        """Write marks and feedback; gives the files."""
        from attnbook.course._report import report

        return report(self, form)

    def waiting(self) -> int:
        """How many answers wait for a person."""
        from attnbook.course._report import rows

        return sum(row.open for row in rows(self))

    def forget(self, student: str) -> list[str]:
        """Delete all that is kept about a student; gives what was deleted."""
        from attnbook.course._collect import match

        who = next((one for one in self.students() if one.id == student), Student(student))
        word = re.compile(rf"(?<![\w.-]){re.escape(student)}(?![\w.-])")
        gone = []
        if (self.place / "gradebook.db").is_file():  # first: without nbgrader, nothing is deleted
            from attnbook.course.hub import forget

            gone += ["gradebook.db"] if forget(self, student) else []

        def theirs(row: dict[str, str]) -> bool:
            if row["student"]:
                return row["student"] == student
            return bool(word.search(row.get("remark", "")) or match(row.get("file", ""), [who]))

        for kind in ("submitted", "verdicts", "feedback", "autograded", "collected"):
            path = self.place / kind / student
            if NAME.fullmatch(student) and path.is_dir():
                shutil.rmtree(path)
                gone.append(f"{kind}/{student}")
        kept = [one for one in self.students() if one.id != student]
        if len(kept) != len(self.students()):
            self.enrol(kept)
            gone.append("roster.csv")
        for name in ("by-hand.csv", "collected.csv"):
            if strike(self.place / name, theirs):
                gone.append(name)
        if gone and (self.place / "reports").is_dir():
            shutil.rmtree(self.place / "reports")
            gone.append("reports")
        return gone

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
        available()  # refuse before anything runs
        self.made_by()
        sources = {name: self.source(name) for name in self.folders}
        work = list(self.submissions())
        found: list[Verdict] = []

        def one(student: str, name: str, path: Path) -> tuple[str, str, Verdict, bool]:
            mark = self.digest(path, name)
            target = self.verdict_path(student, name)
            if not again:
                kept = load_verdict(target, mark)
                if kept is not None:
                    return student, name, kept, True
            submission = read_submission(path, sources[name], self.seed)
            verdict = grade(submission, sources[name], self.seed, limits=limits)
            told = dataclasses.asdict(verdict) | {"of": mark, "prose": submission.prose}
            target.parent.mkdir(parents=True, exist_ok=True)
            replace(target, json.dumps(told, indent=1, sort_keys=True) + "\n")
            return student, name, verdict, False

        with ThreadPoolExecutor(workers or max(1, os.cpu_count() or 1)) as pool:
            waiting = {pool.submit(one, *entry): entry for entry in work}
            try:
                for count, future in enumerate(as_completed(waiting), 1):
                    student, name, _ = waiting[future]
                    where = f"[{count}/{len(work)}] {student} {name}"
                    try:
                        *_, verdict, kept = future.result()
                    except Exception as error:
                        say(f"{where}: could not be marked ({type(error).__name__}: {error})")
                        continue
                    found.append(verdict)
                    odd = f", notices: {len(verdict.notices)}" if verdict.notices else ""
                    word = "unchanged" if kept else verdict.status
                    hand = sum(mark.most for mark in verdict.marks if mark.by_hand)
                    most, more = verdict.most - hand, f" (and {hand:g} by hand)" if hand else ""
                    say(f"{where}: {verdict.points:g} of {most:g}{more}, {word}{odd}")
            except KeyboardInterrupt:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return found

    def digest(self, path: Path, name: str) -> str:
        """Of all that a verdict depends on."""
        own = hashlib.sha256(f"{attnlab.__version__} {self.seed}".encode())
        own.update((folder(self.sources) / f"{name}.md").read_bytes())
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


def load_verdict(path: Path, mark: str = "") -> Verdict | None:
    """A verdict, if it is there and of this submission; a damaged one counts as missing."""
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
        if mark and told["of"] != mark:
            return None
        marks = [
            Mark(**{**entry, "parts": [Part(**part) for part in entry["parts"]]})
            for entry in told["marks"]
        ]
        return Verdict(told["name"], marks, list(told["notices"]), told["status"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
