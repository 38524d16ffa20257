"""Whose, which set, which attempt, when: by what a platform wrote, not by what a student chose."""

from __future__ import annotations

import csv
import json
import os
import shutil
import time
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._schemes import owners, read_path
from attnbook.course._tables import Student
from attnbook.course._unpack import unpack
from attnbook.course._words import cell, clean, uncell

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
PEOPLE = [
    Student("20280001", "Ana", "Mora", "ana.mora@example.org", "moodle:811"),
    Student("20280002", "Ana Mora", "Paz", "ana@example.org"),
    Student("s3", "Bo", "Li", "bo.li@example.org"),
    Student("s4", "Bo", "Li", "bo.li2@example.org", "canvas:77 brightspace:5004"),
    Student("s5", "伟", "李", "liwei@example.org"),
    Student("s6", "Zoë", "O’Neill-Ødegård", "zoe@example.org"),
    Student("s7", "مریم", "میرزاخانی", "maryam@example.org"),
    Student("eve", "Eve", "Hacker", "eve@example.org"),
    Student("li", "Lin", "Chu"),
    Student("bo_li", "Bea", "Oli"),
]
ATTEMPT = "_attempt_2027-10-04-12-00-00_"
SHEET = {
    "e/assignment_1_export/submission_5": {
        "submitters": [{"name": "Bo Li", "sid": "s3", "email": ""}],
        "created_at": datetime(2027, 10, 4, 12),
    },
    "e/assignment_1_export/submission_6": {
        "submitters": [{"name": "A", "sid": "s3"}, {"name": "B", "sid": "s4"}],
    },
}
# a path, and who it can belong to
PATHS = {
    # Moodle: a folder, or the beginning of a file's name
    "moodle.zip/Ana Mora_4711_assignsubmission_file_/x.ipynb": ["20280001"],
    "moodle.zip/Ana Mora_4711_assignsubmission_file_x.ipynb": ["20280001"],
    "moodle.zip/Mora Ana_4711_assignsubmission_file/x.ipynb": ["20280001"],
    "moodle.zip/Ana Mora Paz_4711_assignsubmission_file_/x.ipynb": ["20280002"],
    "moodle.zip/Group A-Eve Hacker_4711_assignsubmission_file_/x.ipynb": ["eve"],
    "moodle.zip/Eve Hacker_4711_assignsubmission_file_/20280001.ipynb": ["eve"],
    "moodle.zip/Eve Hacker_20280001_assignsubmission_file_/x.ipynb": ["eve"],
    "m.zip/Eve Hacker_1_assignsubmission_file_/Ana Mora_2_assignsubmission_file_/x.ipynb": ["eve"],
    "moodle.zip/Eve Hacker_1_assignsubmission_file_/h.zip/s3/x.ipynb": ["eve"],
    "moodle.zip/Bo Li_4711_assignsubmission_file_/x.ipynb": ["s3", "s4"],
    "moodle.zip/李伟_4711_assignsubmission_file_/x.ipynb": ["s5"],
    "moodle.zip/伟 李_4711_assignsubmission_file_/x.ipynb": ["s5"],
    "moodle.zip/ZOE O'Neill-Ødegård_4711_assignsubmission_file_/x.ipynb": ["s6"],
    "moodle.zip/مریم میرزاخانی_4711_assignsubmission_file_/x.ipynb": ["s7"],
    "moodle.zip/Participant_811_assignsubmission_file_/x.ipynb": ["20280001"],
    "moodle.zip/Participant_4711_assignsubmission_file_/Ana Mora.ipynb": [],
    "moodle.zip/Eve Hacker_811_assignsubmission_file_/x.ipynb": ["20280001", "eve"],
    "moodle.zip/Nobody Here_4711_assignsubmission_file_/s3.ipynb": [],
    # Canvas: family name first, all in one
    "submissions.zip/moraana_4711_99_set1.ipynb": ["20280001"],
    "submissions.zip/moraana_LATE_4711_99_set1.ipynb": ["20280001"],
    "submissions.zip/hackereve_4711_99_moraana_1_2_set1.ipynb": ["eve"],
    "submissions.zip/hackereve_4711_99_h.zip/moraana_1_2_set1.ipynb": ["eve"],
    "submissions.zip/libo_77_99_set1.ipynb": ["s4"],
    "submissions.zip/libo_78_99_set1.ipynb": ["s3", "s4"],
    "submissions.zip/李伟_78_99_set1.ipynb": ["s5"],
    "submissions.zip/anon_x7Yz2_99_s3.ipynb": [],
    # Blackboard: the user's name; an underscore in it, or in the assignment's
    f"gradebook.zip/Set 1_s3{ATTEMPT}x.ipynb": ["s3"],
    f"gradebook.zip/Set_1_eve{ATTEMPT}s3_attempt_2020-01-01-00-00-00_x.ipynb": ["eve"],
    f"gradebook.zip/Set 1_20280002{ATTEMPT}20280001.ipynb": ["20280002"],
    f"gradebook.zip/Set 1_bo_li{ATTEMPT}x.ipynb": ["li", "bo_li"],
    f"gradebook.zip/Set 1_bo.li{ATTEMPT}x.ipynb": ["s3"],
    # Brightspace: a folder with a name and a time
    "d2l.zip/12345-5004 - Bo Li - Oct 4, 2027 1122 PM/x.ipynb": ["s4"],
    "d2l.zip/12345-6 - Eve Hacker - Oct 4, 2027 1122 PM/s3.ipynb": ["eve"],
    "d2l.zip/12345-6 - Eve Hacker- Oct 4, 2027 11:22 PM - s3.ipynb": ["eve"],
    "d2l.zip/12345-6 - Bo Li - Oct 4, 2027 1122 PM/x.ipynb": ["s3", "s4"],
    # Gradescope: its own list beside the folders
    "e/assignment_1_export/submission_5/20280001.ipynb": ["s3"],
    "e/assignment_1_export/submission_6/x.ipynb": ["s3", "s4"],
    "e/assignment_1_export/submission_7/s3.ipynb": [],
    # an instructor's own folder
    "s3/20280001.ipynb": ["s3"],
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_only_the_platforms_part_says_whose_it_is(path: str) -> None:
    parts = path.split("/")
    ids = frozenset(one.id for one in PEOPLE)
    sign = read_path(parts, folders=len(parts) - 1, ids=ids, sheet=SHEET)
    assert sign is not None
    assert {one.id for one in owners(sign, PEOPLE)[0]} == set(PATHS[path])


@pytest.mark.parametrize(
    "path",
    ["20280001.ipynb", "Ana Mora.ipynb", "ana.mora@example.org/set1.ipynb", "h.zip/s3/x.ipynb",
     "set1/s3_set1.ipynb"],
)  # fmt: skip
def test_what_no_platform_wrote_belongs_to_nobody(path: str) -> None:
    parts = path.split("/")
    folders = 0 if ".zip" in path else len(parts) - 1
    assert read_path(parts, folders=folders, ids=frozenset({"s3"})) is None


@pytest.mark.parametrize(
    ("path", "when", "late"),
    [
        (f"Set 1_s3{ATTEMPT}set4 2020-01-01 10-00.ipynb", datetime(2027, 10, 4, 12), False),
        ("1-6 - Bo Li - Oct 4, 2027 122 PM/2020-01-01.ipynb", datetime(2027, 10, 4, 13, 22), False),
        ("1-6 - Bo Li - Oct 4, 2027 1205 AM/x.ipynb", datetime(2027, 10, 4, 0, 5), False),
        ("libo_LATE_1_2_2020-01-01-10-00.ipynb", None, True),
        ("libo_1_2_LATE_2020-01-01-10-00.ipynb", None, False),
        ("e/assignment_1_export/submission_5/2020-01-01.ipynb", datetime(2027, 10, 4, 12), False),
    ],
)  # fmt: skip
def test_only_the_platforms_part_says_when(path: str, when: datetime | None, late: bool) -> None:
    sign = read_path(path.split("/"), sheet=SHEET)
    assert sign is not None
    assert (sign.when, sign.late) == (when, late)


# -- whole collections -------------------------------------------------------------------------
@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with its students: made once, then copied."""
    tmp_path = tmp_path_factory.mktemp("made")
    there = tmp_path / "c"
    command = ["course", "new", "c", "--seed", "1", "--sets", "4", "--out", str(there)]
    assert main([*command, "--sources", str(HERE)]) == 0
    with (tmp_path / "students.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "first_name", "last_name", "email", "platform"])
        for one in PEOPLE:
            if one.id != "bo_li":
                writer.writerow([one.id, one.first_name, one.last_name, one.email, one.platform])
    assert main(["course", "add", str(there), "--roster", str(tmp_path / "students.csv")]) == 0
    return there


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "c")
    return tmp_path / "c"


def good(words: str = "") -> str:
    built = notebooks.build(course.problem_set("4", HERE), 1)
    built["cells"].append(notebooks.code_cell("more", f"x = {words!r}"))
    return notebooks.write(built)


def archive(path: Path, entries: dict[str, str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as out:
        for name, text in entries.items():
            out.writestr(name, text)


def said(place: Path) -> dict[str, tuple[str, str]]:
    with (place / "collected.csv").open(encoding="utf-8") as lines:
        return {row["file"]: (row["student"], row["remark"]) for row in csv.DictReader(lines)}


def handed(place: Path, student: str) -> Path:
    return place / "submitted" / student / "set4-svm" / "set4-svm.ipynb"


M = "_assignsubmission_file_"


def test_nobody_takes_anothers_place(place: Path, tmp_path: Path) -> None:
    """The attack that cost 57 points: a file named by another student's id, and later."""
    downloads = tmp_path / "d"
    files = {f"Ana Mora_1{M}/a.ipynb": good("ana"), f"Eve Hacker_2{M}/20280001.ipynb": good("eve")}
    archive(downloads / "m.zip", files)
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    assert "ana" in handed(place, "20280001").read_text("utf-8")
    assert "eve" in handed(place, "eve").read_text("utf-8")
    # somebody who calls herself Ana Mora on the platform: both are shown, nothing is replaced
    archive(downloads / "n.zip", {f"Ana Mora_9{M}/b.ipynb": good("another")})
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    assert "another" not in handed(place, "20280001").read_text("utf-8")
    doubt = said(place)[f"n.zip/Ana Mora_9{M}/b.ipynb"]
    assert "2 sources for one student" in doubt[1]


def test_two_of_one_name_stop_until_they_are_placed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    downloads = tmp_path / "d"
    files = {f"Bo Li_1{M}/a.ipynb": good("one"), f"Bo Li_2{M}/a b.ipynb": good("two")}
    archive(downloads / "m.zip", files)
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    out = capsys.readouterr().out
    assert "0 notebooks placed" in out
    assert "which fits s3 or s4" in out
    (command,) = [
        line.split() for line in out.splitlines() if "a b.ipynb" in line and "place" in line
    ]
    assert command[:3] == ["attnlab", "course", "place"]
    path = str(downloads / "m.zip" / f"Bo Li_2{M}" / "a b.ipynb")
    assert main(["course", "place", str(place), path, "s4", "4"]) == 0
    assert (
        main(
            ["course", "place", str(place), path.replace("_2", "_1").replace("a b", "a"), "s3", "4"]
        )
        == 0
    )
    for student, words in (("s3", "one"), ("s4", "two")):
        assert words in handed(place, student).read_text("utf-8")
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    assert "two" in handed(place, "s4").read_text("utf-8")


@pytest.mark.parametrize(
    ("student", "file", "name", "says"),
    [
        ("nobody", "m.zip/x.ipynb", "4", "id: expected a student of the roster"),
        ("s3", "m.zip/x.ipynb", "1", "set: expected one of 4"),
        ("s3", "m.zip/y.ipynb", "4", "file: expected one notebook"),
        ("s3", "z.zip", "4", "file: expected one notebook"),
        ("s3", ".", "4", "file: expected a notebook"),
    ],
)
def test_bad_places(
    student: str, file: str, name: str, says: str, place: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    archive(tmp_path / "d" / "m.zip", {"x.ipynb": good()})
    assert main(["course", "place", str(place), str(tmp_path / "d" / file), student, name]) == 2
    assert says in capsys.readouterr().err
    assert not (place / "submitted").exists()


def test_the_last_attempt_counts_and_two_of_a_time_stop(place: Path, tmp_path: Path) -> None:
    downloads = tmp_path / "d"
    downloads.mkdir()
    for hour, words in ((9, "first"), (11, "last"), (10, "middle")):
        name = f"Set 4_s3_attempt_2027-10-04-{hour:02d}-00-00_2029-01-01-00-00.ipynb"
        (downloads / name).write_text(good(words))
    two = "Set 4_s4_attempt_2027-10-04-09-00-00_"
    (downloads / f"{two}a.ipynb").write_text(good("a"))
    (downloads / f"{two}b.ipynb").write_text(good("b"))
    other = "Set 4_s5_attempt_2027-10-04-09-00-00_"
    (downloads / f"{other}a.ipynb").write_text(good("a"))
    (downloads / f"{other}scratch.ipynb").write_text('{"cells": []}')
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    assert "last" in handed(place, "s3").read_text()
    assert not handed(place, "s4").exists()
    assert "2 notebooks of the same time" in said(place)[f"{two}a.ipynb"][1]
    assert len(json.loads(handed(place, "s5").read_text())["cells"]) > 3


def test_a_stamp_in_a_students_name_moves_no_time(place: Path, tmp_path: Path) -> None:
    """The attack that made four days late into on time."""
    path = place / "course.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "due": {"4": "2027-10-04T23:59"}}))
    downloads = tmp_path / "d"
    downloads.mkdir()
    for who, file in (("hackereve_1_2_", "set4 2027-10-01 10-00.ipynb"), ("libo_77_3_", "x.ipynb")):
        late = downloads / f"{who}{file}"
        late.write_text(good(who))
        moment = time.mktime((2027, 10, 8, 10, 0, 0, 0, 0, -1))
        os.utime(late, (moment, moment))
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    with (place / "collected.csv").open() as lines:
        assert {row["student"]: row["late"] for row in csv.DictReader(lines)} == {
            "eve": "True", "s4": "True",
        }  # fmt: skip


@pytest.mark.long
def test_a_set_is_told_by_the_platform_or_by_most(tmp_path: Path) -> None:
    there, downloads = tmp_path / "c", tmp_path / "d"
    command = ["course", "new", "c", "--seed", "1", "--sets", "1,3", "--out", str(there)]
    assert main([*command, "--sources", str(BOOK)]) == 0
    (tmp_path / "s.csv").write_text("id,first_name,last_name\n" + "".join(
        f"s{k},First{k},Last{k}\n" for k in range(6)))  # fmt: skip
    assert main(["course", "add", str(there), "--roster", str(tmp_path / "s.csv")]) == 0
    one, three = (
        notebooks.write(notebooks.build(course.problem_set(name, BOOK), 1)) for name in ("1", "3")
    )
    who = {k: f"First{k} Last{k}_{k}{M}/set 3.ipynb" for k in range(6)}
    archive(downloads / "m.zip", {who[k]: three if k == 4 else one for k in range(5)})
    archive(downloads / "CS-Set 3-4711.zip", {who[5]: three})
    archive(downloads / "n.zip", {who[0]: one, who[1]: three})
    assert main(["course", "collect", str(there), str(downloads)]) == 0
    assert (
        sorted(path.name for path in (there / "submitted").glob("s[0123]/*"))
        == ["set1-multihead"] * 4
    )
    assert not (there / "submitted" / "s4").exists()
    assert (there / "submitted" / "s5" / "set3-bias").exists()
    told = said(there)
    assert "its cells are those of set3-bias" in told[f"m.zip/{who[4]}"][1]
    assert "which set?" in told[f"n.zip/{who[1]}"][1]
    archive(tmp_path / "e" / "n.zip", {who[4]: three})
    assert main(["course", "collect", str(there), str(tmp_path / "e"), "--set", "3"]) == 0
    assert (there / "submitted" / "s4" / "set3-bias").exists()


@pytest.mark.long
def test_a_gradescope_export(place: Path, tmp_path: Path) -> None:
    """Its list says whose; a list in a student's own archive says nothing."""
    root = "assignment_1_export"
    listed = "\n".join(
        f"submission_{n}:\n  :submitters:\n  - :name: {name}\n    :sid: '{sid}'\n"
        f"    :email: {mail}\n"
        f"  :created_at: 2027-10-04 1{n}:00:00.000000000 Z"
        for n, name, sid, mail in (
            (5, "Bo Li", "s3", "x@example.org"), (6, "Eve", "", "eve@example.org"),
        )
    )  # fmt: skip
    forged = tmp_path / "forged.zip"
    archive(
        forged,
        {f"{root}/submission_metadata.yml": listed, f"{root}/submission_5/x.ipynb": good("eve")},
    )
    with zipfile.ZipFile(tmp_path / "e.zip", "w") as out:
        out.writestr(f"{root}/submission_metadata.yml", listed)
        out.writestr(f"{root}/submission_5/20280001.ipynb", good("bo"))
        out.write(forged, f"{root}/submission_6/h.zip")
    assert main(["course", "collect", str(place), str(tmp_path / "e.zip")]) == 0
    assert "bo" in handed(place, "s3").read_text()
    assert "eve" in handed(place, "eve").read_text()
    assert "2027-10-04 15:00" in (handed(place, "s3").parent / "timestamp.txt").read_text()


# -- archives that hurt, and words -------------------------------------------------------------
@pytest.mark.long
def test_archives_that_hurt_are_told_and_the_others_go_on(tmp_path: Path) -> None:
    downloads, spool = tmp_path / "d", tmp_path / "spool"
    spool.mkdir()
    archive(downloads / "many.zip", {f"{k}.txt": "" for k in range(20_001)})
    with zipfile.ZipFile(downloads / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("x.ipynb", "0" * (30 << 20))
    with zipfile.ZipFile(downloads / "liar.zip", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("x.ipynb", "0" * (30 << 20))
    liar = (downloads / "liar.zip").read_bytes()
    size = (30 << 20).to_bytes(4, "little")
    (downloads / "liar.zip").write_bytes(liar.replace(size, (9).to_bytes(4, "little")))
    archive(downloads / "long.zip", {"x" * 3000 + ".ipynb": "{}"})
    archive(downloads / "deep.zip", {"x.ipynb": '{"cells": [' + "[" * 100_000})
    archive(downloads / "wide.zip", {"x.ipynb": '{"cells": [' + "[]," * 6_000_000 + "[]]}"})
    (downloads / "z\x1b[2J\u202e.ipynb").write_text(good())
    told = unpack(downloads, spool, {"set4-svm": {"scores"}})
    by_file = {line["file"]: line for line in told if "file" in line}
    assert "more than 20,000" in by_file["many.zip"]["told"]
    assert by_file["bomb.zip/x.ipynb"]["told"] == "too large"
    assert "told" in by_file["liar.zip/x.ipynb"]
    assert any("3,00" in line.get("told", "") for line in told)
    for name in ("deep.zip/x.ipynb", "wide.zip/x.ipynb"):
        assert not any(by_file[name].get("hits", {}).values())
    odd = next(name for name in by_file if name.startswith("z"))
    assert odd == "z\ufffd[2J\ufffd.ipynb"
    assert by_file[odd]["hits"] == {"set4-svm": 1}


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "＝1", "\r=1"])
def test_a_formula_is_only_words_in_a_table(text: str) -> None:
    assert cell(text).startswith("'") or cell(text)[0] == " "
    assert uncell(cell(text)).strip() == clean(text, lines=True).strip()


@pytest.mark.long
def test_a_formula_as_a_name_stays_words(place: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text('id,first_name,last_name\nx1,"=HYPERLINK(""http://x"")",@SUM\n')
    assert main(["course", "add", str(place), "--roster", str(more)]) == 0
    assert course.Course.open(place).students()[-1].last_name == "@SUM"
    assert main(["course", "report", str(place), "--format", "canvas"]) == 0
    for name in ("roster.csv", "reports/marks.csv", "reports/canvas.csv"):
        with (place / name).open() as lines:
            cells = [entry for row in csv.reader(lines) for entry in row]
        assert not [entry for entry in cells if entry.startswith(("=", "@", "+"))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\x1b[2Jb", "a\ufffd[2Jb"),
        ("a\ud800b", "a\ufffdb"),
        ("a\u202eb\u2066c", "a\ufffdb\ufffdc"),
        ("e" + "\u0301" * 900, "e" + "\u0301" * 4),
        ("two\nlines", "two lines"),
        ("李伟 می‌خواهم", "李伟 می‌خواهم"),
        ("x" * 500, "x" * 299 + "…"),
    ],
)
def test_words_are_cleaned(text: str, wanted: str) -> None:
    assert clean(text) == wanted


def test_an_unbroken_line_is_broken() -> None:
    assert max(map(len, clean("x" * 5000, 9000).split())) <= 400
