"""What goes back to a platform, read as the platform reads it."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

from attnbook import course
from attnbook.cli import main
from attnbook.course import _alone, _autograder, _sandbox
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


# -- Gradescope --------------------------------------------------------------------------------
def container(place: Path, archive: Path, notebook: str) -> Path:
    """The folders of Gradescope's container, with one submission in it."""
    root = place / "autograder"
    for name in ("source", "submission", "results"):
        (root / name).mkdir(parents=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(root / "source")
    (root / "submission" / "mine.ipynb").write_text(notebook, "utf-8")
    return root


def run(root: Path, **told: str) -> subprocess.CompletedProcess[str]:
    """As Gradescope does, with this Python in place of the image's."""
    environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
    environment |= {"PATH": os.environ["PATH"]} | told
    command = ["bash", str(root / "source" / "run_autograder")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)  # fmt: skip  # noqa: E501


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An autograder of the small set."""
    there = tmp_path_factory.mktemp("scope")
    new = ["course", "new", "c", "--seed", str(SEED), "--sets", "4", "--sources", str(HERE)]
    assert main([*new, "--out", str(there / "c")]) == 0
    out = there / "set4.zip"
    assert main(["course", "gradescope", str(there / "c"), "4", "--out", str(out)]) == 0
    return out


def cheated(root: Path) -> str:
    """A notebook that wants the judge and all points, and answers one problem badly."""
    built = notebooks.submission(course.problem_set("4", HERE), SEED)
    for cell in built["cells"]:
        if cell["id"] == "stable-weights":
            cell["source"] = f"""
import os
def log_weights(logits):
    found = []
    for place in ("{root}/source/{NAME}.md", "{root}/source/about.json"):
        try:
            found.append(open(place).read())
        except OSError:
            pass
    if found:
        exec(found[0].split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0])
    return 0 * logits + len(found)
for place in ("{root}/results/results.json", "{root}/source/about.json", "{root}/run_autograder"):
    try:
        open(place, "w").write('{{"score": 1000}}')
    except OSError:
        pass
try:
    os.fork()
except OSError:
    pass
"""
        if cell["id"] == "stable-weights-check":
            cell["source"] = "print(1000)"
            cell["metadata"]["nbgrader"]["points"] = 1000
    return notebooks.write(built)


@pytest.mark.parametrize("name", ["hostile", pytest.param("honest", marks=pytest.mark.long)])
@pytest.mark.usefixtures("sandbox")
def test_gradescope_marks_honest_and_hostile_work(packed: Path, tmp_path: Path, name: str) -> None:
    """The archive's own script, in the container's folders: points are for work alone."""
    good = notebooks.write(notebooks.submission(course.problem_set("4", HERE), SEED))
    root = container(tmp_path / name, packed, good)
    if name == "hostile":
        (root / "submission" / "mine.ipynb").write_text(cheated(root), "utf-8")
    done = run(root)
    assert done.returncode == 0, done.stderr
    told = json.loads((root / "results" / "results.json").read_text("utf-8"))
    tests = {one["name"]: one for one in told["tests"]}
    assert told["score"] == (8 if name == "honest" else 4)
    assert tests["Weights that survive"]["score"] == (4 if name == "honest" else 0)
    assert tests["Weights that survive"]["max_score"] == 4
    assert tests["Scores"]["score"] == 3
    assert "Marked by a person: The floor" in told["output"]
    assert told["stdout_visibility"] == "hidden"
    notices = tests.get("Notices, for staff", {"output": ""})
    assert (notices.get("visibility") == "hidden") is (name == "hostile")
    assert ("stable-weights-check was edited" in notices["output"]) is (name == "hostile")
    assert not (root / "results").stat().st_mode & 0o077
    assert not (root / "source").stat().st_mode & 0o077


def test_gradescope_is_told_of_no_notebook_and_of_two(packed: Path, tmp_path: Path) -> None:
    root = container(tmp_path, packed, "{}")
    (root / "submission" / "other.ipynb").write_text("{}", "utf-8")
    told = _autograder.mark(root)
    assert told["score"] == 0
    assert "hand in one notebook, a file that ends in .ipynb: there are 2" in told["output"]


@pytest.mark.parametrize("nobody", [True, False])
def test_without_bubblewrap_another_user_does_or_nothing_is_marked(
    packed: Path, tmp_path: Path, nobody: bool
) -> None:
    """No result at all, and not 0, where it cannot be: Gradescope says that it failed."""
    root = container(tmp_path, packed, "{}")
    (root / "submission" / "mine.ipynb").write_text(cheated(root), "utf-8")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "chmod", "env", *(["setpriv"] if nobody else [])):
        (tools / name).symlink_to(str(shutil.which(name)))
    start = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env"]
    code = "import os, sys; sys.exit(not os.access(sys.argv[1], os.R_OK))"
    python = [str(Path(sys.executable).resolve()), "-I", "-S", "-c", code]
    packages = str(_sandbox.packages()["numpy"].parent)  # of a checkout that may be root's alone
    able = nobody and subprocess.run([*start, *python, packages], check=False).returncode == 0
    done = run(root, PATH=str(tools))
    assert done.returncode == (0 if able else 3)
    if able:
        told = json.loads((root / "results" / "results.json").read_text("utf-8"))
        assert (told["score"], "sandbox: user" in done.stdout) == (4, True)
    else:
        assert "could not be marked: no sandbox" in done.stderr
        assert not list((root / "results").iterdir())


def test_an_autograder_is_the_same_twice_and_has_what_gradescope_asks_for(
    packed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = packed.parent / "c"
    again = tmp_path / "again.zip"
    assert main(["course", "gradescope", str(there), "4", "--out", str(again)]) == 0
    assert again.read_bytes() == packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        names = archive.namelist()
        assert {"setup.sh", "run_autograder", f"{NAME}.md"} <= set(names)
        for name in ("setup.sh", "run_autograder"):
            assert archive.getinfo(name).external_attr >> 16 == 0o755
            assert archive.read(name).startswith(b"#!/usr/bin/env bash\n")
        assert f"numpy=={version('numpy')}" in archive.read("setup.sh").decode()
    assert not [name for name in names if "coursework" in name or name.endswith(".js")]
    capsys.readouterr()
    assert main(["course", "gradescope", str(there), "4", "--out", str(tmp_path / "x")]) == 2
    assert "out: expected a file that ends in .zip" in capsys.readouterr().err
    each = ["course", "new", "e", "--seed", "1", "--sets", "4", "--each", "--sources", str(HERE)]
    assert main([*each, "--out", str(tmp_path / "e")]) == 0
    pack = ["course", "gradescope", str(tmp_path / "e"), "4", "--out", str(tmp_path / "e.zip")]
    assert main(pack) == 2
    assert "students have the same numbers" in capsys.readouterr().err


def test_packages_that_another_user_cannot_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a checkout below /root; there is no other user where we are not root."""
    (tmp_path / "closed" / "numpy").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    monkeypatch.setenv(_alone.SAID, "1")
    monkeypatch.setattr(_sandbox, "packages", lambda: {"numpy": tmp_path / "closed" / "numpy"})
    why = _sandbox.why_not("user")
    if os.geteuid() != 0:
        assert why == _sandbox.MISSING
    elif "Permission denied" not in why:  # Python itself may be root's alone, too
        assert why == f"user 65534 cannot read {tmp_path / 'closed'}"[:200]


def test_nobody_is_only_chosen_where_it_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    """`grade` on a desk never falls back to a process with less around it."""
    monkeypatch.delenv(_alone.SAID, raising=False)
    with pytest.raises(LookupError):
        _sandbox.command("user", Path("x"), course.Limits())
    assert _sandbox.why_not("user") == _sandbox.MISSING
    monkeypatch.setattr(_sandbox, "why_not", lambda _: _sandbox.MISSING)
    with pytest.raises(course.NoSandboxError):
        _sandbox.available.__wrapped__()
    monkeypatch.setattr(_sandbox, "why_not", lambda kind: "" if kind == "user" else "x")
    with pytest.raises(course.NoSandboxError):
        _sandbox.available.__wrapped__()
    monkeypatch.setenv(_alone.SAID, "1")
    assert _sandbox.available.__wrapped__() == "user"
