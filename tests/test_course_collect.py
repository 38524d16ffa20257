"""Whose, which set, which attempt, when: by what a platform wrote, not by what a student chose."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import time
import zipfile
from pathlib import Path

import pytest
from downloads import canvas

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._schemes import Path as Written
from attnbook.course._schemes import Sign, owners, read_paths
from attnbook.course._tables import Student
from attnbook.course._unpack import unpack
from attnbook.course._words import cell, clean, uncell

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
PEOPLE = [
    Student("20280001", "Ana", "Mora", "ana.mora@example.org", "moodle:811"),
    Student("20280002", "Ana Mora", "Paz", "ana@example.org"),
    Student("s3", "Bo", "Li", "bo.li@example.org", "canvas:3"),
    Student("s4", "Bo", "Li", "bo.li2@example.org", "canvas:77"),
    Student("s5", "伟", "李", "liwei@example.org", "canvas:5"),
    Student("s6", "Zoë", "O’Neill-Ødegård", "zoe@example.org"),
    Student("s7", "مریم", "میرزاخانی", "maryam@example.org"),
    Student("eve", "Eve", "Hacker", "eve@example.org"),
    Student("li", "Lin", "Chu"),
    Student("bo_li", "Bea", "Oli"),
]
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
    # an instructor's own folder
    "s3/20280001.ipynb": ["s3"],
    "s3/Eve Hacker_1_assignsubmission_file_.ipynb": ["s3"],
    "s3/hackereve_1_2_x.ipynb": ["s3"],
    "s3/h.zip/hackereve_1_2_x.ipynb": ["s3"],
    # the files of a platform that is not known any more, and one that pretends to be of one
    "submissions.zip/moraana_4711_99_x_20280002_attempt_2026-09-28-12-00-00.ipynb": ["20280001"],
    "submissions.zip/moraana_4711_99_1-5 - Bo Li - Oct 4, 2027 1122 PM - x.ipynb": ["20280001"],
    # an archive that was unpacked and packed again has a folder around it
    "again.zip/Set 1/Ana Mora_4711_assignsubmission_file_/x.ipynb": ["20280001"],
    "all.zip/moodle.zip/Ana Mora_4711_assignsubmission_file_/x.ipynb": ["20280001"],
    "Set 1/Ana Mora_4711_assignsubmission_file_/x.ipynb": ["20280001"],
}  # fmt: skip


def read_one(path: str, ids: frozenset[str]) -> Sign | str:
    """What is read from one path: its folders are on disk unless there is an archive."""
    parts = path.split("/")
    folders = next((k for k, part in enumerate(parts) if part.endswith(".zip")), len(parts) - 1)
    (found,), _ = read_paths([Written(tuple(parts), folders)], ids)
    return found


@pytest.mark.parametrize("path", PATHS)
def test_only_the_platforms_part_says_whose_it_is(path: str) -> None:
    sign = read_one(path, frozenset(one.id for one in PEOPLE))
    assert isinstance(sign, Sign)
    assert {one.id for one in owners(sign, PEOPLE)[0]} == set(PATHS[path])


@pytest.mark.parametrize(
    "path",
    [
        "20280001.ipynb",
        "Ana Mora.ipynb",
        "ana.mora@example.org/set1.ipynb",
        "h.zip/s3/x.ipynb",
        "set1/s3_set1.ipynb",
        # a name that the platform's rule does not know: what the student wrote below is not read
        "m.zip/Ana_Mora_4711_assignsubmission_file_/libo_77_99_x.ipynb",
        "m.zip/Ana_Mora_4711_assignsubmission_file_/h.zip/libo_77_99_x.ipynb",
        "submissions.zip/mora_ana_4711_99_h.zip/libo_77_99_x.ipynb",
        # Blackboard's and Brightspace's forms, which are not read
        "g.zip/Set 1_s3_attempt_2027-10-04-12-00-00_x.ipynb",
        "d2l.zip/12345-5004 - Bo Li - Oct 4, 2027 1122 PM/x.ipynb",
    ],
)
def test_what_no_platform_wrote_belongs_to_nobody(path: str) -> None:
    assert "belongs to nobody yet" in str(read_one(path, frozenset({"s3"})))


@pytest.mark.parametrize(
    ("path", "late"),
    [("libo_LATE_1_2_2020-01-01-10-00.ipynb", True), ("libo_1_2_LATE_2020-01-01.ipynb", False)],
)
def test_only_the_platforms_part_says_that_it_is_late(path: str, late: bool) -> None:
    sign = read_one(f"s.zip/{path}", frozenset())
    assert isinstance(sign, Sign)
    assert sign.late is late


ARCHIVES = {
    "one platform": (
        ["s.zip/moraana_1_2_x.ipynb", "s.zip/hackereve_3_4_x.ipynb"],
        ["canvas:1", "canvas:3"],
        "s.zip/: 2 notebooks, read as Canvas writes names",
    ),
    "two platforms": (
        ["s.zip/moraana_1_2_x.ipynb", "s.zip/Bo Li_2_assignsubmission_file_/x.ipynb"],
        ["", ""],
        "has names as Moodle and as Canvas write them: none was read",
    ),
    "two archives of two platforms": (
        ["a.zip/moraana_1_2_x.ipynb", "b.zip/Bo Li_2_assignsubmission_file_/x.ipynb"],
        ["canvas:1", "moodle:2"],
        "b.zip/: 1 notebook, read as Moodle writes names",
    ),
    "one level of an archive": (
        ["s.zip/moraana_1_2_x.ipynb", "s.zip/h.zip/hackereve_3_4_x.ipynb"],
        ["canvas:1", ""],
        "s.zip/: 1 notebook",
    ),
    "anonymous, all of them": (
        ["s.zip/anon_12345_7_x.ipynb", "s.zip/anon_x7Yz2_8_x.ipynb"],
        ["canvas:12345", "canvas:x7Yz2"],
        "read as Canvas (anonymous) writes names",
    ),
    "somebody called anon": (
        ["s.zip/anon_12345_7_x.ipynb", "s.zip/libo_77_8_x.ipynb"],
        ["canvas:12345", "canvas:77"],
        "read as Canvas writes names",
    ),
    "a platform's archive in the folder of one student": (
        ["s3/m.zip/Ana Mora_1_assignsubmission_file_/x.ipynb",
         "s3/m.zip/Bo Li_2_assignsubmission_file_/x.ipynb"],
        ["", ""],
        "s3/: 2 notebooks, a folder named by an id",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_read_by_one_platforms_rules(name: str) -> None:
    paths, keys, says = ARCHIVES[name]
    written = []
    for path in paths:
        parts = tuple(path.split("/"))
        written.append(Written(parts, next(k for k, one in enumerate(parts) if ".zip" in one)))
    found, told = read_paths(written, frozenset({"s3"}))
    assert [one.key if isinstance(one, Sign) else "" for one in found] == keys
    assert any(says in line for line in told)


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
            out.writestr(zipfile.ZipInfo(name, (2027, 10, 4, 9, 0, 0)), text)


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
        canvas(downloads, 3, f"2027-10-04-{hour:02d}-00-00", good(words))
    archive(downloads / "two.zip", {"libo_77_1_a.ipynb": good("a"), "libo_77_2_b.ipynb": good("b")})
    archive(
        downloads / "other.zip",
        {"x_5_1_a.ipynb": good("a"), "x_5_2_scratch.ipynb": '{"cells": []}'},
    )
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    assert "last" in handed(place, "s3").read_text()
    assert not handed(place, "s4").exists()
    assert "2 notebooks of the same time" in said(place)["two.zip/libo_77_1_a.ipynb"][1]
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


def times(place: Path, *downloads: Path) -> dict[str, str]:
    """Collect, and give each student's time."""
    for path in downloads:
        assert main(["course", "collect", str(place), str(path)]) == 0
    with (place / "collected.csv").open() as lines:
        return {row["student"]: row["time"] for row in csv.DictReader(lines)}


def test_only_the_platforms_files_say_when(place: Path, tmp_path: Path) -> None:
    """A zip that a student made has times that the student wrote; they are never read."""
    own = tmp_path / "own.zip"
    with zipfile.ZipFile(own, "w") as out:
        out.writestr(zipfile.ZipInfo("x.ipynb", (2020, 1, 1, 0, 0, 0)), good("own"))
    downloads = tmp_path / "d"
    (downloads / "li").mkdir(parents=True)
    for path in (downloads / "li" / "h.zip", downloads / "hackereve_1_2_h.zip"):
        shutil.copy(own, path)
        moment = time.mktime((2027, 10, 8, 10, 0, 0, 0, 0, -1))
        os.utime(path, (moment, moment))
    with zipfile.ZipFile(downloads / "m.zip", "w") as out:
        entry = zipfile.ZipInfo(f"Ana Mora_1{M}/h.zip", (2027, 10, 8, 10, 0, 0))
        out.writestr(entry, own.read_bytes())
    # an instructor's archive around a platform's: the platform's time, and not the instructor's
    inner = tmp_path / "submissions.zip"
    with zipfile.ZipFile(inner, "w") as out:
        out.writestr(zipfile.ZipInfo("libo_77_3_x.ipynb", (2027, 10, 8, 10, 0, 0)), good("bo"))
    with zipfile.ZipFile(downloads / "all.zip", "w") as out:
        out.writestr(zipfile.ZipInfo("s.zip", (2028, 1, 1, 0, 0, 0)), inner.read_bytes())
    found = times(place, downloads)
    assert found == dict.fromkeys(("li", "eve", "20280001", "s4"), "2027-10-08T10:00:00")


def test_a_folder_named_by_an_id_belongs_to_that_student(place: Path, tmp_path: Path) -> None:
    """What a student wrote as the name of a file in it does not give it to another."""
    folder = tmp_path / "d" / "eve"
    folder.mkdir(parents=True)
    (folder / f"Bo Li_1{M}.ipynb").write_text(good("eve"))
    assert main(["course", "collect", str(place), str(tmp_path / "d")]) == 0
    assert "eve" in handed(place, "eve").read_text()
    assert [path.name for path in (place / "submitted").iterdir()] == ["eve"]


def test_a_loose_file_that_is_placed_brings_no_address_for_its_feedback(
    place: Path, tmp_path: Path
) -> None:
    """Else `return` would send Eve's page to whom Eve named the file after."""
    loose = tmp_path / f"Bo Li_1{M}.ipynb"
    loose.write_text(good("eve"))
    archive(tmp_path / "m.zip", {f"Evi Hacker_2{M}/x.ipynb": good("li")})
    assert main(["course", "place", str(place), str(loose), "eve", "4"]) == 0
    inside = str(tmp_path / "m.zip" / f"Evi Hacker_2{M}" / "x.ipynb")
    assert main(["course", "place", str(place), inside, "li", "4"]) == 0
    with (place / "collected.csv").open() as lines:
        found = {row["student"]: (row["source"], row["folder"]) for row in csv.DictReader(lines)}
    assert found == {"eve": ("", ""), "li": ("moodle:2", f"Evi Hacker_2{M}")}


def test_it_is_said_by_which_rules_an_archive_was_read(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive(tmp_path / "d" / "m.zip", {f"Ana Mora_1{M}/a.ipynb": good()})
    for step in ("preview", "collect"):
        assert main(["course", step, str(place), str(tmp_path / "d")]) == 0
        said = capsys.readouterr().out
        assert "m.zip/: 1 notebook, read as Moodle writes names" in said


def names_in_zips(path: Path, zips: int, names: int) -> None:
    """A small archive of archives of many empty files."""
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as out:
        for k in range(names):
            out.writestr(f"{'x' * 150}{k}.txt", "")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for k in range(zips):
            out.writestr(f"{k}.zip", inner.getvalue())


@pytest.mark.parametrize("where", ["m.zip", "loose", "folder"])
def test_names_of_one_student_crowd_nobody_out(
    where: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive of 24,000 names gives a few lines, and the others are placed."""
    downloads = tmp_path / "d"
    downloads.mkdir()
    names_in_zips(tmp_path / "h.zip", 12, 2000)
    entries = {f"Ana Mora_1{M}/a.ipynb": good("ana"), f"Lin Chu_9{M}/a.pdf": "x"}
    archive(downloads / "m.zip", entries)
    with zipfile.ZipFile(downloads / "m.zip", "a") as out:
        if where == "m.zip":
            out.write(tmp_path / "h.zip", f"Eve Hacker_2{M}/h.zip")
    if where == "loose":
        shutil.copy(tmp_path / "h.zip", downloads / "hackereve_1_2_h.zip")
    if where == "folder":
        (downloads / "eve").mkdir()
        shutil.copy(tmp_path / "h.zip", downloads / "eve" / "h.zip")
    assert main(["course", "collect", str(place), str(downloads)]) == 0
    out = capsys.readouterr().out
    assert "1 notebooks placed" in out
    assert f"Lin Chu_9{M}/a.pdf: not a notebook" in out
    assert "more files: not used" in out
    assert len(out.splitlines()) < 220
    assert (place / "collected.csv").stat().st_size < 1_000_000
    assert "ana" in handed(place, "20280001").read_text()


def test_notebooks_of_one_student_crowd_nobody_out(place: Path, tmp_path: Path) -> None:
    files = {f"{k}.ipynb": good(str(k)) for k in range(60)}
    archive(tmp_path / "d" / "h.zip", files)
    own = (tmp_path / "d" / "h.zip").read_bytes()
    (tmp_path / "d" / "h.zip").unlink()
    archive(tmp_path / "d" / "m.zip", {f"Ana Mora_1{M}/a.ipynb": good("ana")})
    with zipfile.ZipFile(tmp_path / "d" / "m.zip", "a") as out:
        out.writestr(f"Eve Hacker_2{M}/h.zip", own)
    assert main(["course", "collect", str(place), str(tmp_path / "d")]) == 0
    told = said(place)
    assert sum("more than 50 notebooks" in remark for _, remark in told.values()) == 5
    assert told[f"m.zip/Eve Hacker_2{M}"][1] == "and 5 more files: not used"
    assert "ana" in handed(place, "20280001").read_text()


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


FORMULAS = [
    "=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "＝1", "\r=1", " =1", "'=1", "''=1",
    "a;=1+1", "a; =1", "a;'=1", "a;b;-2+3", "a\n=1", "a;\"=1\";+1",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_only_words_in_a_table(text: str) -> None:
    """Also where a spreadsheet cuts lines at semicolons, as many do outside of English."""
    for part in re.split(r"[;\n]", cell(text)):
        assert not part.strip(" ").startswith(("=", "+", "-", "@", "＝"))
    assert uncell(cell(text)) == clean(text, 4000, lines=True)


@pytest.mark.parametrize("text", ["a;b", "O'Neill; Zoë", "a-b", "x=1", "' a", "it's; 5"])
def test_other_words_stay_as_they_are(text: str) -> None:
    assert cell(text) == text == uncell(text)


@pytest.mark.long
def test_a_formula_as_a_name_stays_words(place: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text('id,first_name,last_name\nx1,"=HYPERLINK(""http://x"")",@SUM\nx2,a;=1+1,b\n')
    assert main(["course", "add", str(place), "--roster", str(more)]) == 0
    assert course.Course.open(place).students()[-2].last_name == "@SUM"
    assert course.Course.open(place).students()[-1].first_name == "a;=1+1"
    assert main(["course", "report", str(place), "--format", "canvas"]) == 0
    for name in ("roster.csv", "reports/marks.csv", "reports/canvas.csv"):
        with (place / name).open() as lines:
            cells = [entry for row in csv.reader(lines) for entry in row]
        assert not [entry for entry in cells if entry.startswith(("=", "@", "+"))]
        assert ";=" not in (place / name).read_text()


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
