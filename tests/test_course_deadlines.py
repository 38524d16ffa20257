"""When a set is due: zones, clocks that change, extensions, what lateness costs, what drops."""

from __future__ import annotations

import csv
import json
import os
import shutil
import struct
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from downloads import canvas

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._counting import lateness, worst
from attnbook.course._deadlines import Late, deadlines, policy
from attnbook.course._grade import Mark, Verdict
from attnbook.course._report import rows

HERE = Path(__file__).parent / "coursework"
BERLIN = {"zone": "Europe/Berlin"}
ANA, BO = 2, 3  # as Canvas calls them


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    there = tmp_path_factory.mktemp("due") / "c"
    start = ["course", "new", "c", "--seed", "1", "--sets", "4", "--out", str(there)]
    assert main([*start, "--sources", str(HERE)]) == 0
    (there.parent / "r.csv").write_text("id,platform\nana,moodle:1 canvas:2\nbo,canvas:3\n")
    assert main(["course", "add", str(there), "--roster", str(there.parent / "r.csv")]) == 0
    return there


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "c")
    (tmp_path / "downloads").mkdir()
    return tmp_path / "c"


def told(place: Path, **words: object) -> course.Course:
    """The course with more in its course.json."""
    path = place / "course.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | words))
    return course.Course.open(place)


def blank(place: Path) -> str:
    return (place / "release/set4-svm/set4-svm.ipynb").read_text()


def collected(there: course.Course) -> list[dict[str, str]]:
    there.collect(there.place.parent / "downloads")
    with (there.place / "collected.csv").open() as lines:
        return list(csv.DictReader(lines))


# -- zones ---------------------------------------------------------------------------------------
# due in Berlin, what Canvas writes into an archive, the zone it writes in, late
MOMENTS = [
    ("2027-10-04T23:59", "2027-10-04-23-59-00", "", False),
    ("2027-10-04T23:59", "2027-10-04-23-59-01", "", True),
    ("2027-10-04", "2027-10-04-23-59-59", "", False),  # a date alone is the end of that day
    ("2027-10-04", "2027-10-05-00-00-00", "", True),
    ("2027-10-05T00:00", "2027-10-05-00-00-00", "", False),  # midnight is the end of the fourth
    ("2027-10-05T00:00", "2027-10-05-00-00-01", "", True),
    ("2027-10-04T23:59", "2027-10-04-21-59-00", "UTC", False),  # summer: two hours behind
    ("2027-10-04T23:59", "2027-10-04-22-00-00", "UTC", True),
    ("2027-11-15T23:59", "2027-11-15-22-59-00", "UTC", False),  # winter: one
    ("2027-11-15T23:59", "2027-11-15-23-00-00", "UTC", True),
    ("2027-10-04T23:59", "2027-10-04-17-59-00", "America/New_York", False),
    ("2027-10-04T23:59", "2027-10-04-18-00-00", "America/New_York", True),
    ("2027-10-04T23:59", "2027-10-05-03-29-00", "+05:30", False),
    ("2027-10-04T23:59", "2027-10-05-03-30-00", "+05:30", True),
    ("2027-10-04T23:59+09:00", "2027-10-04-16-59-00", "", False),  # a due date's own offset
    ("2027-10-04T23:59+09:00", "2027-10-04-17-00-00", "", True),
    # 31 October, three o'clock becomes two: half past two comes twice
    ("2027-10-31T02:30", "2027-10-31-02-59-00", "", False),  # first time or second: not known
    ("2027-10-31T02:30", "2027-10-31-00-59-00", "UTC", False),  # 02:59, the first time
    ("2027-10-31T02:30", "2027-10-31-01-30-00", "UTC", False),  # 02:30, the second
    ("2027-10-31T02:30", "2027-10-31-01-31-00", "UTC", True),
    ("2027-10-31T02:30", "2027-10-31-03-00-00", "", True),
    # 28 March, two o'clock becomes three: half past two does not come
    ("2027-03-28T02:30", "2027-03-28-03-30-00", "", False),
    ("2027-03-28T02:30", "2027-03-28-03-31-00", "", True),
]


@pytest.mark.parametrize(("due", "written", "zone", "late"), MOMENTS)
def test_moments(due: str, written: str, zone: str, late: bool, place: Path) -> None:
    zones = {"canvas": zone} if zone else {}
    limits = deadlines(told(place, **BERLIN, zones=zones, due={"4": due}))
    when = limits.clock.read(datetime.strptime(written, "%Y-%m-%d-%H-%M-%S"), "Canvas")
    assert (limits.late("ana", "set4-svm", when, word=False) is not None) is late


def test_a_zone_changes_what_is_late(place: Path) -> None:
    """The same file, through collect: the time in Canvas' archive is of the zone that is told."""
    canvas(place.parent / "downloads", ANA, "2027-10-04-22-30-00", blank(place))
    for zones, when, late in (
        ({}, "2027-10-04T22:30:00+02:00", "False"),
        ({"canvas": "UTC"}, "2027-10-05T00:30:00+02:00", "True"),
    ):
        shutil.rmtree(place / "submitted", ignore_errors=True)
        (place / "collected.csv").unlink(missing_ok=True)
        (row,) = collected(told(place, **BERLIN, zones=zones, due={"4": "2027-10-04"}))
        assert (row["time"], row["late"]) == (when, late)
    stamp = (place / "submitted/ana/set4-svm/timestamp.txt").read_text()
    assert stamp == "2027-10-04 22:30:00 UTC\n", "nbgrader is told the moment"


def test_archives_that_know_the_moment(place: Path) -> None:
    """Field 0x5455 of a zip, and a file's time, are moments; a zip's clock is the platform's."""
    exact = int(datetime(2027, 10, 4, 22, 30, tzinfo=UTC).timestamp())
    path = place.parent / "downloads" / "moodle.zip"
    name = "X_1_assignsubmission_file_/x.ipynb"
    wanted = {
        struct.pack("<HHBi", 0x5455, 5, 1, exact): "2027-10-05T00:30:00+02:00",
        struct.pack("<HHBiHH", 0x5455, 5, 2, exact, 7, 0): "2027-10-04T20:30:00+02:00",
        b"": "2027-10-04T20:30:00+02:00",
    }
    there = told(place, **BERLIN, zones={"moodle": "UTC"})
    for extra, when in wanted.items():
        with zipfile.ZipFile(path, "w") as archive:
            entry = zipfile.ZipInfo(name, (2027, 10, 4, 18, 30, 0))
            entry.extra = extra
            archive.writestr(entry, blank(place))
        (place / "collected.csv").unlink(missing_ok=True)
        assert [row["time"] for row in collected(there)] == [when]
    path.unlink()
    own = place.parent / "downloads" / "bo"
    own.mkdir()
    (own / "x.ipynb").write_text(blank(place))
    os.utime(own / "x.ipynb", (exact, exact))
    (place / "collected.csv").unlink(missing_ok=True)
    assert [row["time"] for row in collected(there)] == ["2027-10-05T00:30:00+02:00"]


def test_attempts_of_before_there_was_a_zone(place: Path) -> None:
    """A zone that comes later, or goes, does not lose what was collected."""
    downloads = place.parent / "downloads"
    canvas(downloads, ANA, "2027-10-04-12-00-00", blank(place))
    collected(told(place))
    canvas(downloads, ANA, "2027-10-04-13-00-00", blank(place) + "\n")
    for words in (BERLIN, {"zone": ""}):
        used = [row["time"] for row in collected(told(place, **words)) if not row["remark"]]
        assert [when[:19] for when in used] == ["2027-10-04T13:00:00"]


def test_two_attempts_in_the_hour_that_comes_twice(place: Path) -> None:
    """By the clock 02:10 is before 02:50; the moments are the other way round."""
    downloads = place.parent / "downloads"
    canvas(downloads, ANA, "2027-10-31-00-50-00", blank(place))
    canvas(downloads, ANA, "2027-10-31-01-10-00", blank(place) + "\n")
    there = told(place, **BERLIN, zones={"canvas": "UTC"})
    used = [row["time"] for row in collected(there) if not row["remark"]]
    assert used == ["2027-10-31T02:10:00+01:00"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"zone": "Mars/Olympus"}, "zone: expected an IANA name"),
        ({"zone": "+99:00"}, "zone: expected an IANA name"),
        ({"zones": {"canvas": "UTC"}}, "a zone of the course as well"),
        ({**BERLIN, "zones": {"ilias": "UTC"}}, "zones in course.json: expected some of moodle"),
        ({**BERLIN, "zones": {"canvas": "here"}}, "zone of canvas: expected an IANA name"),
        ({"due": {"4": "2027-10-04T23:59Z"}}, "due of 4: expected a zone in course.json"),
        ({"due": {"4": "soon"}}, "due of 4: expected an ISO date"),
        ({"late": "harsh"}, "late: expected RATE%/day"),
        ({"drop": 1}, "drop: expected a number from 0 to 0, got 1"),
    ],
)  # fmt: skip
def test_bad_rules(
    words: dict[str, object], says: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(place, **words)
    assert main(["course", "report", str(place)]) == 2
    assert says in capsys.readouterr().err


def test_rules_are_made_with_the_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = ["course", "new", "c", "--seed", "1", "--sets", "4", "--out", str(tmp_path / "c")]
    for words, says in (("--zone x", "zone: "), ("--late x", "late: "), ("--drop 1", "drop: ")):
        assert main([*start, "--sources", str(HERE), *words.split()]) == 2
        assert f"{says}expected" in capsys.readouterr().err
        assert not (tmp_path / "c").exists()
    rules = ["--zone", "Europe/Berlin", "--late", "10%/day,max 3"]
    assert main([*start, "--sources", str(HERE), *rules]) == 0
    found = course.Course.open(tmp_path / "c")
    assert (found.zone, found.late, found.drop) == ("Europe/Berlin", "10%/day,max 3", 0)


# -- extensions ----------------------------------------------------------------------------------
def test_an_extension(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For one student and one set, after the fact too; it outweighs Canvas' word; it can go."""
    downloads = place.parent / "downloads"
    there = told(place, due={"4": "2027-10-04"})
    canvas(downloads, ANA, "2027-10-05-10-00-00", blank(place))
    canvas(downloads, BO, "2027-10-05-10-00-00", blank(place))
    assert {row["student"]: row["late"] for row in collected(there)} == {
        "ana": "True",
        "bo": "True",
    }
    assert main(["course", "extend", str(place), "ana", "4", "2027-10-05T10:00"]) == 0
    assert "until 2027-10-05 10:00:00" in capsys.readouterr().out
    assert set(lateness(there)) == {("bo", "set4-svm")}
    assert main(["course", "extend", str(place), "ana", "4", "2027-10-05T09:59"]) == 0
    assert set(lateness(there)) == {("ana", "set4-svm"), ("bo", "set4-svm")}
    assert str(lateness(there)["ana", "set4-svm"]) == "1 minute late"
    assert main(["course", "extend", str(place), "ana", "4", "none"]) == 0
    assert str(lateness(there)["ana", "set4-svm"]) == "10 hours 1 minute late"
    assert main(["course", "extend", str(place), "ana", "set4-svm", "2027-10-06"]) == 0
    assert main(["course", "forget", str(place), "ana"]) == 0
    assert "ana" not in (place / "extensions.csv").read_text()


def test_canvas_says_late(place: Path) -> None:
    """Its word counts, by how much is not known, and costs nothing; an extension outweighs it."""
    there = told(place, due={"4": "2027-10-04"}, late="10%/day")
    with zipfile.ZipFile(place.parent / "downloads" / "c.zip", "w") as archive:
        entry = zipfile.ZipInfo("anax_LATE_2_99_x.ipynb", (2027, 10, 3, 10, 0, 0))
        archive.writestr(entry, blank(place))
    assert [(row["late"], row["word"]) for row in collected(there)] == [("True", "True")]
    late = lateness(there)["ana", "set4-svm"]
    assert "by how much is not known" in str(late)
    assert policy("10%/day").lost(50.0, late) == 0
    assert main(["course", "extend", str(place), "ana", "4", "2027-10-08"]) == 0
    assert not lateness(there)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nobody", "4", "2027-10-06"], "id: expected a student of the roster"),
        (["ana", "1", "2027-10-06"], "set: expected one of 4"),
        (["ana", "4", "later"], "when: expected an ISO date"),
        (["ana", "4", "2027-10-01"], "when: expected a time after the due date"),
    ],
)
def test_bad_extensions(
    words: list[str], says: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(place, due={"4": "2027-10-04"})
    assert main(["course", "extend", str(place), *words]) == 2
    assert says in capsys.readouterr().err
    assert not (place / "extensions.csv").exists()


def test_a_table_of_extensions_that_was_damaged(place: Path) -> None:
    there = told(place, due={"4": "2027-10-04"})
    for text, says in (("student,set\n1,2\n", "the columns"), ("student,set,until\nana,9,2027\n", "line 2")):  # fmt: skip  # noqa: E501
        (place / "extensions.csv").write_text(text)
        with pytest.raises(ValueError, match=says):
            deadlines(there)


# -- what it costs -------------------------------------------------------------------------------
def late(**passed: float) -> Late:
    return Late(timedelta(**passed), timedelta(**passed))


@pytest.mark.parametrize(
    ("rule", "passed", "lost"),
    [
        ("10%/day", {"seconds": 1}, 5.0),  # a day that has begun
        ("10%/day", {"hours": 24}, 5.0),
        ("10%/day", {"hours": 24, "seconds": 1}, 10.0),
        ("10%/day", {"days": 30}, 50.0),  # never more than there is
        ("10%/day,max 3", {"days": 30}, 15.0),
        ("10%/day, max 3, then 0", {"days": 3}, 15.0),
        ("10%/day,max 3,then 0", {"days": 3, "seconds": 1}, 50.0),
        ("2/hour,max 5", {"minutes": 61}, 4.0),  # points, not shares
        ("2.5 % / week", {"days": 8}, 2.5),
        ("100/day", {"hours": 1}, 50.0),
    ],
)
def test_what_lateness_costs(rule: str, passed: dict[str, float], lost: float) -> None:
    found = policy(rule)
    assert found is not None
    assert found.lost(50.0, late(**passed)) == pytest.approx(lost)
    assert found.lost(0.0, late(**passed)) == 0


@pytest.mark.parametrize(
    "rule", ["10%", "10%/year", "-1%/day", "10%/day,max", "10%/day,then 0", "x/day", "1%/day max 3"]
)
def test_what_is_no_rule(rule: str) -> None:
    with pytest.raises(ValueError, match="late: expected RATE%/day"):
        policy(rule)


def test_a_day_of_25_hours_is_one(place: Path) -> None:
    """Due on the evening before the clock is set back: the same time next day is one day late."""
    limits = deadlines(told(place, **BERLIN, due={"4": "2027-10-30T20:00"}))
    when = limits.clock.read(datetime(2027, 10, 31, 20))
    found = limits.late("ana", "set4-svm", when, word=False)
    assert found == Late(timedelta(hours=25), timedelta(days=1))
    assert policy("10%/day").lost(50.0, found) == 5.0
    assert policy("1/hour").lost(50.0, found) == 25.0


def test_the_lowest_are_dropped() -> None:
    """By share, not by points; what was not handed in is 0; one always counts; ties: the later."""
    most = {"a": 10.0, "b": 40.0, "c": 20.0}
    assert worst({"a": 5.0, "b": 16.0, "c": 20.0}, most, 1) == {"b"}
    assert worst({"a": 1.0, "b": 16.0}, most, 1) == {"c"}
    assert worst({"a": 5.0, "b": 20.0, "c": 20.0}, most, 1) == {"b"}
    assert worst({}, most, 5) == {"b", "c"}
    assert worst({"a": 5.0}, {"a": 10.0}, 1) == set(), "sets that nobody has handed in wait"
    assert worst({"a": 5.0}, {}, 1) == set()


def test_raw_marks_stand_beside_what_counts(place: Path) -> None:
    """In the table, on the page, in feedback; a platform gets what counts."""
    sets = json.loads((place / "course.json").read_text()) | {"sets": ["4", "3"], "drop": 1}
    (place / "course.json").write_text(json.dumps(sets))
    shutil.copytree(HERE, place.parent / "sets")
    sheet = (HERE / "set4-svm.md").read_text().replace("Problem set 4", "Problem set 3")
    (place.parent / "sets" / "set3-bias.md").write_text(sheet)
    there = told(
        place, sources=str(place.parent / "sets"), due={"4": "2027-10-04"}, late="10%/day,max 3"
    )
    downloads = place.parent / "downloads"
    for name, title, day in (("set4-svm", "Set 4", "06"), ("set3-bias", "Set 3", "04")):
        answer = notebooks.write(notebooks.submission(there.source(name), 1))
        canvas(downloads, ANA, f"2027-10-{day}-10-00-00", answer, title=title)
        path = there.verdict_path("ana", name)
        path.parent.mkdir(parents=True, exist_ok=True)
    collected(there)
    for name, points in (("set4-svm", 6.0), ("set3-bias", 3.0)):
        keep(there, name, points)
    (row,) = [one for one in rows(there) if one.student.id == "ana"]
    assert (row.points, row.lost, row.dropped) == (
        9.0,
        {"set4-svm": pytest.approx(1.2)},
        {"set3-bias"},
    )
    assert (row.total, row.most) == (pytest.approx(4.8), 8.0)
    assert main(["course", "report", str(place), "--format", "moodle"]) == 0
    with (place / "reports" / "marks.csv").open() as lines:
        found = {one["id"]: one for one in csv.DictReader(lines)}["ana"]
    assert found["total"] == "9", "raw"
    assert found["late_by"] == "set4-svm: 1 day 10 hours late"
    assert (found["deducted"], found["dropped"]) == ("1.2", "set3-bias")
    assert (found["counts"], found["counts_of"]) == ("4.8", "8")
    page = (place / "reports" / "marks.html").read_text()
    assert "6 → 4.8" in page
    assert "<td>set4-svm: 1 day 10 hours late</td>" in page
    own = (place / "feedback/ana/set4-svm/set4-svm.html").read_text()
    assert "1 day 10 hours late. By the rule 10%/day,max 3 that costs 1.2 points: 4.8 count." in own
    other = (place / "feedback/ana/set3-bias/set3-bias.html").read_text()
    assert "among the lowest" in other
    assert "late" not in other
    with (place / "reports" / "moodle.csv").open() as lines:
        (sent,) = [one for one in csv.reader(lines) if one[0] == "ana"]
    assert sent[4:] == ["4.8", "3"]


def keep(there: course.Course, name: str, points: float) -> None:
    """A verdict as grading leaves it."""
    import dataclasses

    marks = [Mark(one.id, one.title, 0.0, 0.0) for one in there.source(name).problems]
    marks[0].points, marks[0].most = points, 8.0
    path = there.verdict_path("ana", name)
    told = dataclasses.asdict(Verdict(name, marks, [])) | {"of": "", "prose": {}}
    path.write_text(json.dumps(told))


def test_without_rules_nothing_is_added(place: Path) -> None:
    assert main(["course", "report", str(place)]) == 0
    head = (place / "reports" / "marks.csv").read_text().split("\n")[0].strip()
    assert head.endswith("total,not_marked_yet,late,notices")
