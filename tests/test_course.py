"""A course from its seed to its marks: folder, roster, downloads, verdicts, reports, nbgrader."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from downloads import canvas

import attnlab
from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course import _verify, wire
from attnbook.course._library import needs

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
SEED = 2027
STUDENTS = [(f"s{k:02d}", f"First{k}", f"Last{k}") for k in range(10)]


@pytest.fixture
def mini() -> course.ProblemSet:
    return course.problem_set("4", HERE)


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with ten students and what a platform handed back: made once, then copied."""
    tmp_path = tmp_path_factory.mktemp("course")
    there = tmp_path / "fall27"
    sources = ["--sources", str(HERE)]
    run = ["course", "new", "fall27", "--seed", str(SEED), "--sets", "4", "--out", str(there)]
    assert main([*run, *sources]) == 0
    (tmp_path / "students.csv").write_text(
        "Student ID,First name,Last name,Email,platform\n"
        + "".join(f"{i},{a},{b},{i}@example.org,canvas:{i[-1]}\n" for i, a, b in STUDENTS),
        "utf-8",
    )
    assert main(["course", "add", str(there), "--roster", str(tmp_path / "students.csv")]) == 0
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    problems = course.problem_set("4", HERE)
    good = notebooks.write(notebooks.submission(problems, SEED))
    blank = notebooks.write(notebooks.build(problems, SEED))
    half = {"stable-weights": problems.problems[0].wrong[0].source}
    part = notebooks.write(notebooks.submission(problems, SEED, half))
    with zipfile.ZipFile(downloads / "moodle.zip", "w") as archive:
        for k in range(4):
            name = f"First{k} Last{k}_{100 + k}_assignsubmission_file_/My homework ({k}).ipynb"
            archive.writestr(name, [good, part, blank, "{not json"][k])
        archive.writestr("../../outside.ipynb", good)
        archive.writestr("__MACOSX/._x.ipynb", "junk")
    (downloads / "last4first4_555_777_set4-svm.ipynb").write_text(blank)
    (downloads / "last4first4_LATE_555_778_set4-svm-1.ipynb").write_text(good)
    for k, hour in ((5, 9), (5, 12), (6, 10)):
        canvas(downloads, k, f"2027-10-04-{hour:02d}-00-00", part if hour == 9 else good)
    (downloads / "s07").mkdir()
    (downloads / "s07" / "Untitled.ipynb").write_text(good)
    (downloads / "Last8, First8.ipynb").write_text(part)
    (downloads / "s09@example.org set4.ipynb").write_text(good.replace("return y *", "return 2 *"))
    (downloads / "nobody.ipynb").write_text(good)
    (downloads / "strangerann_90_10_set4.ipynb").write_text(good)
    (downloads / "damaged.zip").write_bytes(b"PK not a zip")
    assert main(["course", "collect", str(there), str(downloads)]) == 0
    for name, who in (("Last8, First8.ipynb", "s08"), ("s09@example.org set4.ipynb", "s09")):
        assert main(["course", "place", str(there), str(downloads / name), who, "4"]) == 0
    return tmp_path


@pytest.fixture(scope="module")
def marked(sandbox: None, collected: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, graded once."""
    there = tmp_path_factory.mktemp("marked")
    shutil.copytree(collected, there, dirs_exist_ok=True)
    assert main(["course", "grade", str(there / "fall27")]) == 0
    return there


@pytest.fixture
def place(collected: Path, tmp_path: Path) -> Path:
    """The course of this test, not yet graded."""
    shutil.copytree(collected, tmp_path, dirs_exist_ok=True)
    return tmp_path / "fall27"


@pytest.fixture
def graded(marked: Path, tmp_path: Path) -> Path:
    """The course of this test, with all verdicts."""
    shutil.copytree(marked, tmp_path, dirs_exist_ok=True)
    return tmp_path / "fall27"


def points(place: Path) -> dict[str, str]:
    with (place / "reports" / "marks.csv").open() as lines:
        return {row["id"]: row["total"] for row in csv.DictReader(lines)}


@pytest.mark.usefixtures("sandbox")
def test_from_downloads_to_marks(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = (place / "collected.csv").read_text()
    assert "its name leads outside" in told
    assert "nobody of the roster" in told
    assert "an earlier attempt" in told
    assert "not a zip file" in told
    assert main(["course", "grade", str(place)]) == 0
    said = capsys.readouterr().out
    assert "[10/10]" in said
    assert main(["course", "report", str(place), "--format", "moodle"]) == 0
    found = points(place)
    full, some = "8", "7"
    assert found == {
        "s00": full, "s01": some, "s02": "0", "s03": "0", "s04": full,
        "s05": full, "s06": full, "s07": full, "s08": some, "s09": "5",
    }  # fmt: skip
    page = (place / "reports" / "marks.html").read_text()
    assert "not valid JSON" in page
    assert "http" not in page.replace("http-equiv", ""), "the page asks nobody"
    assert "assert np.allclose" not in page
    own = (place / "feedback" / "s01" / "set4-svm" / "set4-svm.html").read_text()
    assert "extreme: 0 of 1" in own
    assert "ID number" in (place / "reports" / "moodle.csv").read_text()
    late = {row["id"]: row["late"] for row in rows(place)}
    assert late["s04"] == "set4-svm"
    assert late["s00"] == ""


def rows(place: Path) -> list[dict[str, str]]:
    with (place / "reports" / "marks.csv").open() as lines:
        return list(csv.DictReader(lines))


def test_twice_the_same_and_only_what_changed(
    graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = graded
    first = {p: p.read_bytes() for p in (place / "verdicts").rglob("*.json")}
    capsys.readouterr()
    assert main(["course", "grade", str(place), "--workers", "1"]) == 0
    assert capsys.readouterr().out.count("unchanged") == 10
    assert main(["course", "grade", str(place), "--again"]) == 0
    assert "unchanged" not in capsys.readouterr().out
    assert {p: p.read_bytes() for p in (place / "verdicts").rglob("*.json")} == first
    changed = place / "submitted" / "s02" / "set4-svm" / "set4-svm.ipynb"
    shutil.copy(place / "submitted" / "s00" / "set4-svm" / "set4-svm.ipynb", changed)
    assert main(["course", "grade", str(place)]) == 0
    assert capsys.readouterr().out.count("unchanged") == 9


@pytest.mark.usefixtures("sandbox")
def test_killed_half_way_it_goes_on(place: Path) -> None:
    """Kill -9 at its first verdict: what is there stays, the rest follows, nothing is half."""
    environment = {**os.environ, "PYTHONPATH": str(Path(attnlab.__file__).parents[1])}
    command = [sys.executable, "-m", "attnbook", "course", "grade", str(place), "--workers", "1"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    left = list((place / "verdicts").rglob("*.json"))
    assert 1 <= len(left) < 10
    for path in left:
        json.loads(path.read_text())
    time.sleep(0.3)
    assert main(["course", "grade", str(place)]) == 0
    assert len(list((place / "verdicts").rglob("*.json"))) == 10


def test_points_by_hand(graded: Path) -> None:
    place = graded
    assert main(["course", "report", str(place)]) == 0
    path = place / "by-hand.csv"
    lines = path.read_text().splitlines()
    lines = [f"{x[:-1]}5,well argued" if x.startswith("s00,") else x for x in lines]
    path.write_text("\n".join(lines) + "\n")
    assert main(["course", "report", str(place)]) == 0
    assert points(place)["s00"] == "13"
    assert "well argued" in path.read_text()
    path.write_text(path.read_text().replace(",5,well", ",500,well"))
    assert main(["course", "report", str(place)]) == 2


def test_a_student_is_forgotten(graded: Path) -> None:
    place = graded
    assert main(["course", "report", str(place)]) == 0
    assert main(["course", "forget", str(place), "s00"]) == 0
    for path in place.rglob("*"):
        assert "s00" not in path.name
        if path.is_file() and path.suffix in (".csv", ".json", ".html"):
            assert "s00" not in path.read_text()


@pytest.mark.usefixtures("sandbox")
def test_nbgrader_takes_these_verdicts_and_no_others(place: Path) -> None:
    """generate_assignment gives our student version; autograde gives our points."""
    tools = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(attnlab.__file__).parents[1]),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "JUPYTER_CONFIG_DIR": str(place / ".jupyter"),
    }
    ours = json.loads((place / "release" / "set4-svm" / "set4-svm.ipynb").read_text())

    def nbgrader(*words: str) -> subprocess.CompletedProcess[str]:
        command = [str(tools / "nbgrader"), *words]
        return subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )

    made = nbgrader("generate_assignment", "set4-svm", "--force")
    assert made.returncode == 0, made.stderr[-2000:]
    theirs = json.loads((place / "release" / "set4-svm" / "set4-svm.ipynb").read_text())
    text = [["".join(cell["source"]) for cell in each["cells"]] for each in (ours, theirs)]
    assert text[0] == text[1]
    nbgrader("autograde", "set4-svm", "--force")
    exported = nbgrader("export")
    assert exported.returncode == 0, exported.stderr[-2000:]
    with (place / "grades.csv").open() as lines:
        found = {row["student_id"]: float(row["score"]) for row in csv.DictReader(lines)}
    assert found["s00"] == 8.0
    assert found["s01"] == 7.0
    assert found["s02"] == 0.0


def test_a_second_collection_keeps_the_first(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Newer ones are used, older ones are not; who was late stays late; other files are told."""
    kept = place / "submitted" / "s05" / "set4-svm" / "set4-svm.ipynb"
    before = kept.read_bytes()
    more = tmp_path / "more"
    more.mkdir()
    (more / "students.csv").write_text("id,platform\ns10,\ns11,canvas:11\n")
    assert main(["course", "add", str(place), "--roster", str(more / "students.csv")]) == 0
    canvas(more, 5, "2027-10-01-09-00-00", "{older")
    (more / "s10 homework.pdf").write_bytes(b"%PDF")
    with zipfile.ZipFile(more / "odd.zip", "w") as archive:
        month_zero = zipfile.ZipInfo("leeann_11_12_s01.ipynb.txt")
        month_zero.date_time = (1980, 0, 0, 0, 0, 0)
        archive.writestr(month_zero, before)
        archive.writestr("s11/.ipynb_checkpoints/set4-svm-checkpoint.ipynb", "{a copy")
    capsys.readouterr()
    assert main(["course", "collect", str(place), str(more)]) == 0
    said = capsys.readouterr().out
    assert "1 notebooks placed" in said
    assert "s10 homework.pdf: not a notebook" in said
    assert kept.read_bytes() == before
    assert (place / "submitted/s11/set4-svm/set4-svm.ipynb").read_bytes() == before
    assert main(["course", "report", str(place)]) == 0
    assert "without a verdict" in capsys.readouterr().out
    assert {row["id"] for row in rows(place) if row["late"]} == {"s04"}


def test_what_a_person_wrote_survives(graded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Semicolons and a comma from a spreadsheet; comments without points; a lost verdict."""
    place = graded
    assert main(["course", "report", str(place)]) == 0
    path = place / "by-hand.csv"
    lines = path.read_text().replace(",", ";").splitlines()
    lines = [f"{x[:-1]}2,5;by half" if x.startswith("s00;") else x for x in lines]
    lines = [f"{x}look again" if x.startswith("s01;") else x for x in lines]
    path.write_text("\n".join(lines) + "\n", "utf-8-sig")
    (place / "verdicts" / "s00" / "set4-svm.json").unlink()
    capsys.readouterr()
    assert main(["course", "report", str(place)]) == 0
    assert "7 answers wait for a person" in capsys.readouterr().out
    assert main(["course", "grade", str(place)]) == 0
    assert main(["course", "report", str(place)]) == 0
    assert points(place)["s00"] == "10.5"
    assert "look again" in path.read_text()
    path.write_text("student,mark\ns00,5\n")
    assert main(["course", "report", str(place)]) == 2


def test_forgetting_leaves_the_others(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with commas stay whole; nbgrader's grade book forgets too."""
    from nbgrader.api import Gradebook, MissingEntry

    more = tmp_path / "more.csv"
    more.write_text('id,first_name,last_name\ns10,Ann,"Lee, Jr."\n')
    assert main(["course", "add", str(place), "--roster", str(more)]) == 0
    tools = Path(sys.executable).parent  # nbgrader makes its grade book by a program there
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    with Gradebook(f"sqlite:///{place / 'gradebook.db'}", "fall27") as book:
        book.add_student("s03")
        book.add_student("s04")
    assert main(["course", "forget", str(place), "s03"]) == 0
    assert course.Course.open(place).students()[-1].last_name == "Lee, Jr."
    with Gradebook(f"sqlite:///{place / 'gradebook.db'}", "fall27") as book:
        assert book.find_student("s04")
        with pytest.raises(MissingEntry):
            book.find_student("s03")


def test_a_roster_from_canvas(place: Path, tmp_path: Path) -> None:
    export = tmp_path / "canvas.csv"
    export.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
        '"Doe, Jane",7,u77,jane,1\n"Student, Test",9,,,\n'
    )
    assert main(["course", "add", str(place), "--roster", str(export)]) == 0
    found = course.Course.open(place).students()[-1]
    assert (found.id, found.first_name, found.last_name) == ("u77", "Jane", "Doe")


def test_due_dates_are_checked(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = place / "course.json"
    for due, says in ({"set 4": "2027-10-04"}, "some of 4, got"), ({"4": "soon"}, "an ISO date"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "due": due}))
        assert main(["course", "collect", str(place), str(place.parent / "downloads")]) == 2
        assert says in capsys.readouterr().err


# -- what is handed out ------------------------------------------------------------------------
def test_courses_differ_and_a_course_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        command = ["course", "new", name, "--seed", str(seed), "--sets", "4"]
        assert main([*command, "--out", str(tmp_path / name), "--sources", str(HERE)]) == 0
    a, b, c = ((tmp_path / n / "release/set4-svm/set4-svm.ipynb").read_bytes() for n in "abc")
    assert a == c != b


def test_the_first_cell_installs_what_the_instructor_says(tmp_path: Path) -> None:
    there, wheel = tmp_path / "c", "attnlab[course] @ file:///somewhere/attnlab.whl"
    command = ["course", "new", "c", "--seed", "1", "--sets", "4", "--out", str(there)]
    assert main([*command, "--sources", str(HERE), "--install", wheel]) == 0
    for kind in ("release", "source"):
        cells = json.loads((there / kind / "set4-svm" / "set4-svm.ipynb").read_text())["cells"]
        (first,) = [cell["source"] for cell in cells if cell["id"] == "install"]
        assert f'%pip install --quiet "{wheel}"' in first
    problems = course.problem_set("4", HERE)
    path = there / "release" / "set4-svm" / "set4-svm.ipynb"
    assert course.read_submission(path, problems, 1).notices == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["new", "x", "--seed", "1", "--sets", "9"], "sets: expected some of 1, 2, 3, 4, project"),
        (["new", "x", "--seed", "1", "--sets", "4,4"], "each once"),
        (["new", "../x", "--seed", "1"], "name: expected letters and digits"),
        (["new", "x", "--seed", "-1"], "seed: expected a number from 0 on"),
        (["add", "nowhere", "--roster", "x.csv"], "course: expected a folder made by"),
        (["grade", "nowhere"], "course: expected a folder made by"),
    ],
)
def test_bad_commands(
    words: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["course", *words, "--sources", str(HERE)]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "nothing half-done is left"


def test_a_course_is_closed_to_others(place: Path) -> None:
    assert place.stat().st_mode & 0o077 == 0


def test_a_course_is_never_overwritten(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["course", "new", "fall27", "--seed", "1", "--sets", "4", "--out", str(place)]
    assert main([*command, "--sources", str(HERE)]) == 2
    assert "a folder that is new or empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name\nx\n", "expected a column id"),
        ("id\na\na\n", "each id once"),
        ("id\n../x\n", "an id of letters and digits"),
        ("", "an empty file"),
    ],
)
def test_bad_rosters(
    text: str, says: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (place / "roster.csv").read_bytes()
    (tmp_path / "bad.csv").write_text(text)
    assert main(["course", "add", str(place), "--roster", str(tmp_path / "bad.csv")]) == 2
    assert says in capsys.readouterr().err
    assert (place / "roster.csv").read_bytes() == before


# -- what crosses ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "value",
    [None, True, 3, -2.5, float("inf"), "word", [1, [2.0]], {"a": [1]}, 10**40, 1e-320],
)
def test_plain_values_cross(value: object) -> None:
    assert wire.unpack(json.loads(wire.line({"x": wire.pack(value)}))["x"]) == value


@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "u1", "?", "c16"])
def test_arrays_cross(kind: str) -> None:
    given = np.arange(6).reshape(2, 3).astype(kind)
    back = wire.unpack(json.loads(json.dumps(wire.pack(given))))
    assert np.array_equal(back, given)
    assert back.dtype.kind == ("i" if given.dtype.kind == "u" else given.dtype.kind)


@pytest.mark.parametrize(
    "value", [object(), np.array(["x"]), np.array([object()]), {1: 2}, (lambda: 0), b"x", {1, 2}]
)
def test_nothing_else_crosses(value: object) -> None:
    with pytest.raises(wire.NotPlainError):
        wire.pack(value)


@pytest.mark.parametrize(
    "told",
    [
        7,
        [],
        {"array": [2], "dtype": "O", "data": ""},
        {"array": [3], "dtype": "<f8", "data": "AA=="},
        {"dict": [[1]]},
        {"number": "x"},
        {"list": 3},
    ],
)
def test_forged_messages_are_refused(told: object) -> None:
    with pytest.raises(wire.NotPlainError):
        wire.unpack(told)


@pytest.mark.usefixtures("sandbox")
def test_the_sandbox_has_the_allowed_rooms_only() -> None:
    assert needs(("models",)) == {"_blas", "checks", "models", "problems"}
    with course.Sandbox(rooms=("problems", "models")).open() as session:
        assert session.cell("from attnlab import models, problems").error == ""
        assert "may not be used" in session.cell("from attnlab import svm").error
        assert "No module" in session.cell("import attnlab.svm").error
        listed = session.cell("import os\nfound = sorted(os.listdir('/library/attnlab'))")
        assert listed.error == ""
        found = session.value("found").answer
    assert "course" not in found
    assert "svm" not in found


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx = 3",
        "for k in range(2):\n    %time print(k)\nx = 3",
        "!pip install something\nx = 3",
        "%%time\nx = 3",
        "x = (13\n    % 5\n)",
        "import matplotlib.pyplot as plt\nfrom IPython.display import display\nx = display(3)",
        "from tqdm.auto import tqdm\nx = sum(k for k in tqdm(range(3), leave=False))",
        'word = """\n%s\n!a\n"""\nx = len(word)\nassert x == 7\nx = 3',
    ],
)
@pytest.mark.usefixtures("sandbox")
def test_what_a_notebook_shows_costs_no_answer(cell: str) -> None:
    with course.Sandbox().open() as session:
        assert session.cell(cell).error == ""
        assert session.value("x").answer == 3
        told = session.cell("import matplotlib as m\ndef f():\n    return list(m.use())").error
        assert told == ""
        assert "not there when this is marked" in session.call("f").error


@pytest.mark.usefixtures("sandbox")
def test_the_sandbox_hides_other_packages() -> None:
    """Another attnlab, installed beside a Python that the sandbox shows, is not there."""
    look = """
    import glob, sys
    roots = ["/usr", "/usr/local", "/", sys.base_prefix]
    found = [p for r in roots for p in glob.glob(f"{r}/lib*/python3*/*-packages/*")]
    """
    with course.Sandbox().open() as session:
        assert session.cell("\n".join(line.strip() for line in look.split("\n"))).error == ""
        assert session.value("found").answer == []


# -- the sets ----------------------------------------------------------------------------------
@pytest.mark.usefixtures("sandbox")
def test_the_small_set_keeps_its_word(mini: course.ProblemSet) -> None:
    assert _verify.verify(mini, [0, 1]) == []


@pytest.mark.long  # the small set goes the same way in `make test`
@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
@pytest.mark.usefixtures("sandbox")
def test_the_sets_keep_their_word(name: str) -> None:
    """One seed, all problems, all mistakes; ``make course`` tries five seeds."""
    assert _verify.verify(course.problem_set(name, BOOK), [3]) == []


@pytest.mark.parametrize("name", ["1", "2", "3", "4"])
def test_the_sets_are_as_large_as_promised(name: str) -> None:
    found = course.problem_set(name, BOOK)
    assert len(found.problems) >= 12
    assert {one.difficulty for one in found.problems} == {"easy", "medium", "hard"}
    assert sum(bool(one.variant) for one in found.problems) >= 6
    for one in found.problems:
        assert one.goal
        assert one.minutes > 0
        assert "**Expected.**" in one.text or not one.answer
        assert one.scheme or one.answer


@pytest.mark.usefixtures("sandbox")
def test_a_course_of_another_age_is_not_marked_wrongly(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its notebooks import rooms that have moved: a sentence, and not zero points for everybody."""
    path = place / "course.json"
    about = json.loads(path.read_text())
    assert about["version"] == attnlab.__version__
    path.write_text(json.dumps(about | {"version": "0.1.0"}))
    assert main(["course", "grade", str(place)]) == 2
    told = capsys.readouterr().err
    assert "mark this one with the version that made it, got one made by 0.1.0" in told
    assert not list((place / "verdicts").rglob("*.json"))
