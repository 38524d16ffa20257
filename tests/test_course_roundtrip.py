"""What goes back to a platform, read as the platform reads it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._grade import Mark

HERE = Path(__file__).parent / "coursework"
SEED = 11
NAME = "set4-svm"
ROSTER = """id,first_name,last_name,email,platform
s1,Ana,Mora,ana@example.org,
s2,Bo,Li,bo@example.org,moodle:812 canvas:72
s3,伟,李,wei@example.org,
s4,Zoë,O’Neill,zoe@example.org,
s5,Cem,Ak,cem@example.org,
"""
# as Moodle's "Download all submissions" names them, for each in folders or not
MOODLE = {
    "Ana Mora_811_assignsubmission_file_/hw.ipynb": 3.5,
    "Bo Li_812_assignsubmission_file/hw.ipynb": 1,  # from 4.1 on
    "李  伟_813_assignsubmission_file_/hw_2.ipynb": 0,
    "Group-A-Zoë O’Neill_814_assignsubmission_file_hw.ipynb": 3.5,  # not in folders
}
CANVAS = {
    "moraana_71_901_hw.ipynb": 3.5,
    "libo_LATE_72_902_hw-1.ipynb": 1,
    "李伟_73_903_hw.ipynb": 0,
}
# a grading worksheet: marks at its beginning, both ends of lines, quotes, a comma and a line in one
WORKSHEET = (
    "\ufeffIdentifier,\"Full name\",\"ID number\",\"Email address\",Status,Grade,\"Maximum Grade\","
    "\"Grade can be changed\",\"Last modified (submission)\",\"Last modified (grade)\","
    "\"Feedback comments\"\r\n"
    "\"Participant 811\",\"Ana Mora\",,ana@example.org,\"Submitted for grading - \",,14.00,Yes,"
    "\"Monday, 4 October 2027, 9:00 AM\",-,\"so \"\"far\"\", so\r\ngood\"\r\n"
    "\"Participant 812\",\"Bo Li\",,,\"Submitted for grading - \",\"3.00\",14.00,Yes,"
    "\"Monday, 4 October 2027, 9:00 AM\",-,\r\n"
    "\"Participant 813\",\"李 伟\",,,Submitted,,14.00,Yes,-,-,\r\n"
    "\"Participant 814\",\"Zoë O’Neill\",,,Submitted,7.00,14.00,No,-,-,\r\n"
    "\"Participant 815\",\"Cem Ak\",,,\"No submission\",,14.00,Yes,-,-,\r\n"
    "\"Participant 899\",\"Nobody Here\",,,\"No submission\",,14.00,Yes,-,-,\r\n"
)  # fmt: skip
GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Essay (55),Set 4 (56),Final Score\n"
    ",,,,,Manual Posting,,\n"
    "    Points Possible,,,,,10.00,14.00,(read only)\n"
    "\"Mora, Ana\",71,s1,ana,A,9.00,,88.0\n"
    "\"Li, Bo\",72,,,A,8.50,1.00,\n"
    "\"李, 伟\",73,,,A,,,\n"
    "\"Ak, Cem\",75,s5,cem,A,,,\n"
    "\"Student, Test\",99,,fa1ce,A,,,\n"
)  # fmt: skip


def graded(place: Path, files: dict[str, float]) -> Path:
    """A course from its downloads to its verdicts, as `grade` writes them."""
    there = place / "c"
    run = ["course", "new", "c", "--seed", str(SEED), "--sets", "4", "--out", str(there)]
    assert main([*run, "--sources", str(HERE)]) == 0
    (place / "roster.csv").write_text(ROSTER, "utf-8")
    assert main(["course", "add", str(there), "--roster", str(place / "roster.csv")]) == 0
    blank = notebooks.write(notebooks.build(course.problem_set("4", HERE), SEED))
    with zipfile.ZipFile(place / "all.zip", "w") as archive:
        for name in files:
            archive.writestr(name, blank)
    assert main(["course", "collect", str(there), str(place / "all.zip")]) == 0
    for k, got in enumerate(files.values(), 1):
        verdict(there, f"s{k}", got)
    return place


def verdict(there: Path, student: str, points: float) -> None:
    """A verdict of so many points."""
    problems = course.problem_set("4", HERE).problems
    marks = [Mark(one.id, one.title, 0.0, one.points, not one.answer) for one in problems]
    marks[0].points = points
    found = course.Verdict(NAME, marks, [])
    path = there / "verdicts" / student / f"{NAME}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dataclasses.asdict(found) | {"of": "", "prose": {}}), "utf-8")


@pytest.fixture(scope="module")
def moodle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graded(tmp_path_factory.mktemp("moodle"), MOODLE)


@pytest.fixture(scope="module")
def canvas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graded(tmp_path_factory.mktemp("canvas"), CANVAS)


def points(place: Path) -> dict[str, float]:
    found = course.Course.open(place / "c").verdicts()
    return {student: verdict.points for (student, _), verdict in found.items()}


def read(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def as_moodle_reads(name: str, participants: set[int]) -> tuple[int, str, str] | None:
    """Whose a file of a feedback archive is, by the rules of Moodle's importer."""
    if Path(name).name.startswith((".", "~")):
        return None
    parts = name.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) < 4 or not info[1].isdigit() or int(info[1]) not in participants:
            continue
        rest = [info[4] if len(info) > 4 else "", *parts]
        return int(info[1]), "_".join(info[2:4]), "/".join(rest)
    return None


def test_moodle_takes_the_feedback_back_under_its_own_names(moodle: Path, tmp_path: Path) -> None:
    out = tmp_path / "feedback.zip"
    back = ["course", "return", str(moodle / "c"), "--platform", "moodle", "--out", str(out)]
    assert main(back) == 0
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        assert names == [
            "Ana Mora_811_assignsubmission_file_/set4-svm.html",
            "Bo Li_812_assignsubmission_file/set4-svm.html",
            "李  伟_813_assignsubmission_file_/set4-svm.html",
            "Group-A-Zoë O’Neill_814_assignsubmission_file_/set4-svm.html",
        ]
        told = [as_moodle_reads(name, {811, 812, 813, 814}) for name in names]
        plugin = "assignsubmission_file"
        assert told == [(k, plugin, "/set4-svm.html") for k in (811, 812, 813, 814)]
        for name, who in zip(names, ("s1", "s2", "s3", "s4"), strict=True):
            assert f"<p>{who}: " in archive.read(name).decode()


def test_moodles_worksheet_keeps_every_byte_but_the_grades(
    moodle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "Grades-ML-Set 4.csv"
    sheet.write_bytes(WORKSHEET.encode())
    back = ["course", "return", str(moodle / "c"), "--platform", "moodle"]
    back += ["--worksheet", str(sheet), "--out", str(tmp_path / "f.zip")]
    assert main(back) == 0
    said = capsys.readouterr().out
    assert "feedback of 4 students, marks of 3 in the table" in said
    assert "s4: left alone, for the platform says it cannot be changed" in said
    assert "Participant 899, Nobody Here: left alone, for it fits nobody of the roster" in said
    got = points(moodle)
    assert got["s1"] > got["s2"] > got["s3"] == 0
    wanted = WORKSHEET.replace(' - ",,14.00', f' - ",{got["s1"]:g},14.00', 1)
    wanted = wanted.replace('"3.00"', f'"{got["s2"]:g}"').replace("Submitted,,", "Submitted,0,", 1)
    assert (tmp_path / "Grades-ML-Set 4-filled.csv").read_bytes() == wanted.encode()
    assert sheet.read_bytes() == WORKSHEET.encode()


def test_a_worksheet_in_another_language_and_with_another_maximum(
    moodle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "w.csv"
    sheet.write_text(
        'ID,"Vollständiger Name","Bewertung","Maximum Grade"\n"Teilnehmer/in811",Ana,-,"140,00"\n',
        "utf-8",
    )
    back = ["course", "return", str(moodle / "c"), "--platform", "moodle"]
    back += ["--worksheet", str(sheet), "--out", str(tmp_path / "f.zip")]
    assert main(back) == 2
    assert "in another language: --column" in capsys.readouterr().err
    assert main([*back, "--column", "Bewertung"]) == 2
    assert "a maximum of 14 points, as the set has (or --scale), got 140" in capsys.readouterr().err
    assert not (tmp_path / "f.zip").exists()
    assert main([*back, "--column", "Bewertung", "--scale"]) == 0
    assert read(tmp_path / "w-filled.csv")[1][2] == f"{10 * points(moodle)['s1']:g}"


def test_canvas_takes_its_grade_book_back(
    canvas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet, out = tmp_path / "Grades.csv", tmp_path / "f.zip"
    sheet.write_text(GRADEBOOK, "utf-8")
    back = ["course", "return", str(canvas / "c"), "--platform", "canvas", "--set", "4"]
    back += ["--worksheet", str(sheet), "--out", str(out)]
    assert main(back) == 0
    assert "marks of 3 in the table" in capsys.readouterr().out
    before, after, got = read(sheet), read(tmp_path / "Grades-filled.csv"), points(canvas)
    marks = {row[0]: row[6] for row in after}
    assert marks == {
        "Student": "Set 4 (56)", "": "", "    Points Possible": "14.00", "Student, Test": "",
        "Mora, Ana": f"{got['s1']:g}", "Li, Bo": f"{got['s2']:g}", "李, 伟": "0", "Ak, Cem": "",
    }  # fmt: skip
    assert [row[:6] + row[7:] for row in after] == [row[:6] + row[7:] for row in before]
    with zipfile.ZipFile(out) as archive:
        told = {}
        for name in archive.namelist():  # as Canvas finds user and file: the first two numbers
            user, attachment = [part for part in name.split("_") if part.isdigit()][:2]
            told[user, attachment] = archive.read(name).decode()
    assert sorted(told) == [("71", "901"), ("72", "902"), ("73", "903")]
    assert "<p>s2: " in told["72", "902"]
    for column in ("56", "Set 4 (56)"):
        assert main([*back, "--column", column]) == 0
    assert main([*back, "--column", "Essay (99)"]) == 2
    assert main([*back, "--column", "55"]) == 2  # ten points, not fourteen


def test_two_students_on_one_line_and_two_lines_of_one_are_left_alone(
    canvas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = tmp_path / "g.csv"
    book = GRADEBOOK.replace('"Li, Bo",72,,', '"Li, Bo",72,s1,').replace("71,s1", "171,")
    sheet.write_text(book + '"李, 伟",173,s3,,A,,,\n', "utf-8")
    back = ["course", "return", str(canvas / "c"), "--platform", "canvas"]
    assert main([*back, "--worksheet", str(sheet), "--out", str(tmp_path / "f.zip")]) == 0
    said = capsys.readouterr().out
    assert "Li, Bo, 72: left alone, for it fits s1 or s2" in said
    assert "s3: left alone, for 2 lines are theirs" in said
    assert "s1: is not in the table" in said
    assert (tmp_path / "g-filled.csv").read_bytes() == sheet.read_bytes()


def test_what_came_by_hand_is_named_and_not_sent(
    moodle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(moodle, tmp_path / "m")
    there = tmp_path / "m" / "c"
    shutil.copy(there / "release" / NAME / f"{NAME}.ipynb", tmp_path / "mail.ipynb")
    assert main(["course", "place", str(there), str(tmp_path / "mail.ipynb"), "s5", "4"]) == 0
    verdict(there, "s5", 2)
    back = ["course", "return", str(there), "--platform", "moodle"]
    assert main([*back, "--out", str(tmp_path / "f.zip")]) == 0
    assert "s5: did not come from moodle" in capsys.readouterr().out
    assert len(zipfile.ZipFile(tmp_path / "f.zip").namelist()) == 4


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            ["--platform", "blackboard", "--out", "f.zip"],
            "platform: expected one of moodle, canvas",
        ),
        (["--platform", "moodle", "--out", "f"], "out: expected a file that ends in .zip"),
        (["--platform", "moodle", "--out", "f.zip", "--worksheet", "none.csv"], "worksheet:"),
        (["--platform", "canvas", "--out", "f.zip", "--worksheet", "one"], "worksheet: expected"),
        (["--platform", "canvas", "--out", "f.zip", "--worksheet", "open"], "worksheet: expected"),
        (["--platform", "moodle", "--out", "f.zip", "--set", "1"], "set: expected one of 4"),
    ],
)
def test_what_cannot_go_back_is_refused(
    moodle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], more: list[str], words: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").write_text("Student,ID,Essay (1)\n", "utf-8")
    (tmp_path / "open").write_text('Student,ID,Essay (1)\n"a,1,\n', "utf-8")
    assert main(["course", "return", str(moodle / "c"), *more]) == 2
    assert words in re.sub(r"\s+", " ", capsys.readouterr().err)
    assert not (tmp_path / "f.zip").exists()


def test_collected_remembers_who_the_platform_said(moodle: Path) -> None:
    text = (moodle / "c" / "collected.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    told = {row["student"]: (row["source"], row["folder"]) for row in rows}
    assert told["s3"] == ("moodle:813", "李  伟_813_assignsubmission_file_")
    assert json.loads((moodle / "c" / "course.json").read_text("utf-8"))["sets"] == ["4"]
