"""Assigning parts of sets, and variants of a student's own."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._assign import foreign, whose
from attnbook.course._grade import Judge
from attnbook.course._source import own_seed
from attnbook.course._words import digest

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
SEED = 2027
NAME = "set4-svm"


def new(place: Path, *words: str, students: tuple[str, ...] = ("ana", "bo", "cy")) -> course.Course:
    """A course of the small set, with students."""
    start = ["course", "new", "fall27", "--seed", str(SEED), "--sets", "4", "--out", str(place)]
    assert main([*start, "--sources", str(HERE), *words]) == 0
    sheet = place.parent / "students.csv"
    sheet.write_text("id\n" + "".join(f"{one}\n" for one in students))
    assert main(["course", "add", str(place), "--roster", str(sheet)]) == 0
    return course.Course.open(place)


def hand_in(there: course.Course, student: str, notebook: str) -> Path:
    path = there.place / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook)
    return path


def solved(there: course.Course, student: str) -> str:
    built = notebooks.submission(there.source(NAME), there.seed_of(student))
    return notebooks.write(built)


def rows(there: course.Course) -> dict[str, dict[str, str]]:
    with (there.place / "reports" / "marks.csv").open() as lines:
        return {row["id"]: row for row in csv.DictReader(lines)}


# -- parts ---------------------------------------------------------------------------------------
@pytest.mark.usefixtures("sandbox")
def test_a_part_of_a_set_is_all_there_is(tmp_path: Path) -> None:
    """Notebooks, points, reports, the list of what people mark, and feedback."""
    whole = course.problem_set("4", HERE)
    ids = [one.id for one in whole.problems]
    first, proof = whole.problems[0], next(one for one in whole.problems if not one.answer)
    there = new(tmp_path / "c", "--problems", f"4:{proof.id},{first.id}")
    asked = [one.id for one in there.source(NAME).problems]
    assert asked == [one for one in ids if one in (first.id, proof.id)]
    assert json.loads((there.place / "course.json").read_text())["problems"]["4"]
    for kind in ("release", "source"):
        cells = json.loads((there.place / kind / NAME / f"{NAME}.ipynb").read_text())["cells"]
        names = {cell["id"] for cell in cells if not cell["id"].startswith("hand-in")}
        names -= {"intro", "install", "setup"}
        assert names == {f"{first.id}-text", first.id, f"{first.id}-check", f"{proof.id}-text", proof.id}  # fmt: skip  # noqa: E501
    hand_in(there, "ana", solved(there, "ana"))
    hand_in(there, "bo", notebooks.write(notebooks.submission(whole, SEED)))  # all of the set
    assert main(["course", "grade", str(there.place), "--workers", "1"]) == 0
    assert main(["course", "report", str(there.place), "--format", "canvas"]) == 0
    found = rows(there)
    columns = {key for key in found["ana"] if key.startswith(NAME)}
    assert columns == {f"{NAME}:{first.id}", f"{NAME}:{proof.id}"}
    assert {one: found[one]["total"] for one in ("ana", "bo")} == {"ana": "4", "bo": "4"}
    possible = f"{first.points + proof.points:g}"
    assert (there.place / "reports" / "canvas.csv").read_text().split("\n")[1].split(",")[5].strip() == possible  # fmt: skip  # noqa: E501
    listed = (there.place / "by-hand.csv").read_text()
    assert proof.id in listed
    page = (there.place / "feedback" / "ana" / NAME / f"{NAME}.html").read_text()
    assert f"of {possible} points" in page
    other = next(one for one in whole.problems if one.id not in asked)
    assert other.title not in page
    path = there.place / "course.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"problems": {"4": [first.id]}}))
    assert there.unmarked() == 0
    assert course.Course.open(there.place).unmarked() == 2, "another part: verdicts are stale"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("4:steepest", "problems of set4-svm: expected some of stable-weights, scores"),
        ("4:scores,scores", "each once, got scores, scores"),
        ("1:scores", "problems: expected SET:ID,ID with a set of 4"),
        ("4:", "problems: expected SET:ID,ID"),
    ],
)
def test_wrong_parts(
    words: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "c"
    start = ["course", "new", "c", "--seed", "1", "--sets", "4", "--out", str(there)]
    assert main([*start, "--sources", str(HERE), "--problems", words]) == 2
    assert says in capsys.readouterr().err
    assert not there.exists()


@pytest.mark.usefixtures("sandbox")
def test_a_part_that_went_wrong_later_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = new(tmp_path / "c")
    path = there.place / "course.json"
    for problems, says in ({"4": ["x"]}, "got x"), ({"9": ["scores"]}, "ids of sets 4"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"problems": problems}))
        hand_in(there, "ana", "{}")
        assert main(["course", "grade", str(there.place)]) == 2
        assert says in capsys.readouterr().err


# -- variants ------------------------------------------------------------------------------------
def released(there: course.Course) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (there.place / "release" / NAME).iterdir()}


def test_each_has_a_variant(tmp_path: Path) -> None:
    """Derived from the seed and the id alone: the same whoever else is there, and in any order."""
    there = new(tmp_path / "a", "--each", "--install", "attnlab[course] @ file:///w.whl")
    first = released(there)
    assert set(first) == {"ana.ipynb", "bo.ipynb", "cy.ipynb"}
    assert len(set(first.values())) == 3
    assert b"w.whl" in first["ana.ipynb"]
    again = new(
        tmp_path / "b", "--each", "--install", "attnlab[course] @ file:///w.whl",
        students=("bo", "dee", "ana", "cy"),
    )  # fmt: skip
    assert {name: data for name, data in released(again).items() if name in first} == first
    index = (there.place / "variants.json").read_bytes()
    roster = str(tmp_path / "students.csv")
    assert main(["course", "add", str(there.place), "--roster", roster]) == 0
    assert main(["course", "forget", str(there.place), "dee"]) == 0
    assert released(there) == first
    assert (there.place / "variants.json").read_bytes() == index
    assert own_seed(1, "ana") == 8143323109726330535
    assert own_seed(1, "ana") != own_seed(2, "ana") != own_seed(1, "bo")


@pytest.mark.usefixtures("sandbox")
def test_each_is_graded_with_their_own(tmp_path: Path) -> None:
    """Another's notebook is named, and decides nothing: not whose it is, and no points."""
    there = new(tmp_path / "c", "--each")
    for student, of in (("ana", "ana"), ("bo", "ana"), ("cy", "cy")):
        hand_in(there, student, solved(there, of))
    there.grade(say=print, workers=1)
    told = {student: verdict.notices for (student, _), verdict in there.verdicts().items()}
    assert not [words for words in told["ana"] + told["cy"] if "variant" in words]
    assert told["bo"][0].startswith("the variant of ana: ")
    assert {one.points for one in there.verdicts().values()} == {8}, "right for every input"
    one = there.source(NAME).problems[0]
    seeds = [there.seed_of(student) for student in ("ana", "bo")]
    cases = []
    for seed in seeds:
        judge = Judge(there.source(NAME), one, seed)
        cases.append(next(iter(judge.cases()))[1][0].tolist())
    assert cases[0] != cases[1], "hidden inputs are the student's own, too"


def test_a_student_with_a_variant_is_forgotten(tmp_path: Path) -> None:
    there = new(tmp_path / "c", "--each")
    hand_in(there, "bo", solved(there, "bo"))
    assert main(["course", "forget", str(there.place), "bo"]) == 0
    for path in there.place.rglob("*"):
        assert "bo.ipynb" not in path.name
    assert '"bo"' not in (there.place / "variants.json").read_text()
    assert '"ana"' in (there.place / "variants.json").read_text()


def test_whose_numbers() -> None:
    index = {
        "a-text": {"1": ["ana"], "2": ["bo", "cy"]},
        "b-check": {"3": ["ana"], "4": ["bo"], "5": ["cy"]},
        "c-text": {"6": ["ana"], "7": ["bo"]},
    }
    own = {"a-text": "1", "b-check": "3", "c-text": "6"}
    assert whose(own, index, "ana") == ""
    assert whose({**own, "a-text": "edited"}, index, "ana") == ""
    assert whose(own, index, "bo") == "the variant of ana: 3 of its 3 texts and checks"
    assert whose({"a-text": "2", "b-check": "5"}, index, "ana").startswith(
        "the variant of cy: 2 of"
    )
    assert whose({"a-text": "2"}, index, "ana") == "", "a third of its cells says nothing"
    assert whose({}, index, "ana") == ""
    assert digest("a\r\n b ") == digest("a\n b")


def test_hostile_notebooks_have_no_variant(tmp_path: Path) -> None:
    there = new(tmp_path / "c", "--each")
    deep = '{"cells": [{"id": ' + "[" * 900 + "]" * 900 + ', "metadata": 3, "source": 7}]}'
    for text in ("{", '{"cells": 3}', deep):
        path = hand_in(there, "ana", text)
        assert foreign({**there.asked("ana", NAME), "path": str(path)}, NAME) == []


@pytest.mark.long  # the small set goes the same way in `make test`
@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
def test_every_set_can_be_given_to_each(name: str, tmp_path: Path) -> None:
    """Variants differ between students, and solutions of one fit the cells of that one only."""
    start = ["course", "new", "c", "--seed", "3", "--sets", name, "--each"]
    assert main([*start, "--out", str(tmp_path / "c"), "--sources", str(BOOK)]) == 0
    (tmp_path / "r.csv").write_text("id\nana\nbo\n")
    assert main(["course", "add", str(tmp_path / "c"), "--roster", str(tmp_path / "r.csv")]) == 0
    (long,) = course.Course.open(tmp_path / "c").folders
    index = json.loads((tmp_path / "c" / "variants.json").read_text())[long]
    assert len(index) >= 8
    data = [(tmp_path / "c/release" / long / f"{one}.ipynb").read_bytes() for one in ("ana", "bo")]
    assert data[0] != data[1]
    shutil.rmtree(tmp_path / "c")
