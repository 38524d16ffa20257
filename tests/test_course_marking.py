"""What people mark: schemes, blanks, markers who differ, new submissions, reports."""

from __future__ import annotations

import dataclasses
import http.client
import importlib.metadata
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from handed import HERE, NAME, PROBLEM, hand_in, made_course

from attnbook import course
from attnbook.cli import main
from attnbook.course import _make
from attnbook.course import _marking as marking
from attnbook.course import _report as reports
from attnbook.course import _statistics as statistics
from attnbook.course._desk import Desk, mathjax
from attnbook.course._grade import Mark, Verdict
from attnbook.course._notebook import PROSE
from attnbook.course._prose import render
from attnbook.course._rubric import rubric
from attnbook.course._server import Server, serve

BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"
WORDS = {
    "s01": "The margin is a *mean* of scores, $\\sum_t s_t\\gamma_t$.",
    "s02": "Because $s_t>0$.",
    "s03": PROSE,
    "s04": " \n\u200c \n",
    "s05": "I do not know <script>alert(1)</script>",
    "s06": "The loss is monotone.",
}


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of six, graded: made once, then copied."""
    return made_course(tmp_path_factory.mktemp("six") / "fall27", WORDS)


@pytest.fixture
def place(six: Path, tmp_path: Path) -> Path:
    """The course of this test."""
    return Path(shutil.copytree(six, tmp_path / "fall27"))


def give(place: Path, who: str, student: str, *items: float, comment: str = "", **more) -> None:
    """A mark, as the page saves it."""
    found = course.Course.open(place, HERE)
    schemes = marking.by_hand(found)
    answer = marking.answers(found, schemes)[student, NAME, PROBLEM]
    scheme = schemes[NAME, PROBLEM][1]
    given = marking.Given(list(items), None, comment, answer.of, scheme.shape, **more)
    marking.keep(found, who, answer.place, given, settle="over" in more)


def states(place: Path) -> dict[str, str]:
    found = marking.outcomes(course.Course.open(place, HERE))
    return {student: one.state for (student, _, _), one in sorted(found.items())}


def earned(place: Path) -> dict[str, tuple[float, str]]:
    found = reports.rows(course.Course.open(place, HERE))
    marks = {row.student.id: row.verdicts[NAME].marks[-1] for row in found}
    return {who: (mark.points, mark.told) for who, mark in marks.items()}


# -- schemes -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
def test_every_scheme_is_items_that_add_up(name: str) -> None:
    found = [one for one in course.problem_set(name, BOOK).problems if not one.answer]
    assert len(found) >= 2
    for one in found:
        scheme = rubric(one.scheme, one.points, one.id)
        assert sum(scheme.shape) == one.points
        assert 2 <= len(scheme.items) <= 9
        assert len(scheme.answer) > 100
        assert not re.search(r"^ *- ", scheme.note, re.M), "a line that is no item"


def test_a_scheme_has_levels_and_must_add_up() -> None:
    text = "Model.\n\n**Marks.** At most 2.\n\n- (2) all\n  - (1) half of it\n- (1) the end"
    found = rubric(text, 3, "x")
    assert [item.levels for item in found.items] == [[0, 1, 2], [0, 1]]
    assert found.items[0].told == {1: "half of it"}
    assert (found.answer, found.note) == ("Model.", "At most 2.")
    assert rubric("**Marks.** 3 for all of it.", 3, "x").shape == [3]
    with pytest.raises(ValueError, match="add up to 4"):
        rubric(text, 4, "x")
    with pytest.raises(ValueError, match="lesser levels below 2"):
        rubric(text.replace("  - (1)", "  - (2)"), 3, "x")


# -- prose -------------------------------------------------------------------------------------
class Look(HTMLParser):
    """Elements and attributes, and whether all are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[tuple[str, ...]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


PLAIN = {
    *(("p",), ("ul",), ("ol", "start"), ("li",), ("em",), ("strong",), ("code",), ("pre",)),
    *(("blockquote",), ("span", "class", "translate")),
}
HOSTILE = [
    "<script>alert(1)</script> <img src=x onerror=alert(1)>",
    "[a](javascript:alert(1)) ![b](http://there/x.png) <http://there>",
    "$</span><script>alert(1)</script>$ $$<img src=x>$$ \\[</p>\\]",
    "`</code><b>` **<i>** *<u>*\n\n```\n</pre><script>\n```",
    "\ue000 0\ue001 \ue0000\ue001 \ue0001\ue002",
    "- <a>\n  - <b>\n    1. `<c>`\n\n> <d>\n| <e> |",
    "```\nnever closed <x>",
    "*a **b* c** `d $e` f$",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_of_the_writers_is_an_element(text: str) -> None:
    look = Look()
    look.feed(html := render(text))
    assert not look.open
    assert look.seen <= PLAIN
    assert "<script" not in html
    assert "<img" not in html


def test_words_and_formulas_are_kept() -> None:
    told = "A *b*, **c** and `d*e*`:\n\n1. $a_1*b*c$\n   more\n2. \\$5 and $x$\n\n$$\ny<z\n$$"
    told = render(told)
    assert "<em>b</em>" in told
    assert "<strong>c</strong>" in told
    assert "<code>d*e*</code>" in told
    assert r"\(a_1*b*c\)</span> more" in told
    assert r"$5 and" in told
    assert r"\[y&lt;z\]" in told
    assert told.count("<li>") == 2
    assert r"\begin{align*}a&amp;b\end{align*}" in render(r"\begin{align*}a&b\end{align*}")
    many = ["$$ $" * 9000, "[" * 40_000, "  " * 6 + "- x\n" * 9000, "\\[" * 20_000, "1. " * 13_000]
    assert all(render(text) for text in many), "and none takes long"


# -- marks -------------------------------------------------------------------------------------
def test_blanks_are_0_by_themselves(place: Path) -> None:
    assert states(place) == dict.fromkeys(WORDS, "open") | {"s03": "blank", "s04": "blank"}
    assert earned(place)["s03"] == (0, "nothing was written")
    assert sum(row.open for row in reports.rows(course.Course.open(place, HERE))) == 4


def test_a_mark_counts_when_every_item_is_decided(place: Path) -> None:
    give(place, "ana", "s01", 2, 1, 0, 1, comment="=why?")
    give(place, "ana", "s02", 2, 2, None, 1)
    give(place, "ana", "s03", 1, 0, 0, 0, comment="in a cell of its own")
    assert states(place)["s01"] == "marked"
    assert states(place)["s02"] == "open"
    assert earned(place)["s01"] == (4, "=why?")
    assert earned(place)["s03"] == (1, "in a cell of its own"), "a person may know better"
    found = reports.rows(course.Course.open(place, HERE))[0].verdicts[NAME].marks[-1]
    assert [(part.points, part.most) for part in found.parts] == [(2, 2), (1, 2), (0, 1), (1, 1)]


def test_a_new_answer_is_marked_again(place: Path) -> None:
    give(place, "ana", "s01", 2, 2, 1, 1)
    hand_in(place, "s01", WORDS["s01"], machine=3)
    assert states(place)["s01"] == "marked", "only the code is new"
    hand_in(place, "s01", "Another proof.")
    assert states(place)["s01"] == "changed"
    assert earned(place)["s01"] == (0, reports.NOT_YET)


def test_two_markers_who_differ_wait_until_it_is_settled(place: Path) -> None:
    give(place, "ana", "s01", 2, 2, 1, 1, comment="fine")
    give(place, "bo", "s01", 2, 2, 1, 1, comment="agreed")
    assert earned(place)["s01"] == (6, "fine\nagreed")
    give(place, "bo", "s01", 2, 0, 1, 1)
    assert states(place)["s01"] == "differ"
    give(place, "bo", "s01", 2, 1, 1, 1, over={"ana": 6, "bo": 4}, comment="half")
    assert earned(place)["s01"] == (5, "half")
    give(place, "bo", "s01", 1, 0, 1, 1)
    assert states(place)["s01"] == "differ", "what was settled was another difference"


def test_what_is_typed_into_the_table_goes_first(place: Path) -> None:
    give(place, "ana", "s01", 2, 2, 1, 1)
    assert main(["course", "report", str(place), "--sources", str(HERE)]) == 0
    path = place / "by-hand.csv"
    lines = path.read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["s02", "s05", "s06"], "what waits"
    lines[1] = f"s02,{NAME},{PROBLEM},6,3.5,by table"
    path.write_text("\n".join([*lines, f"s01,{NAME},{PROBLEM},6,1,see me", ""]))
    give(place, "ana", "s02", 0, 0, 0, 0)
    assert earned(place)["s01"] == (1, "see me")
    assert earned(place)["s02"] == (3.5, "by table")
    path.write_text(path.read_text().replace("6,1,see me", "6,,see me"))
    assert earned(place)["s01"] == (6, "see me")


def test_a_marker_is_forgotten_a_student_too(place: Path) -> None:
    give(place, "ana", "s01", 2, 2, 1, 1)
    give(place, "ana", "s02", 2, 2, 1, 1)
    gone = course.Course.open(place, HERE).forget("s01")
    assert "marking/ana.json" in gone
    assert list(json.loads((place / "marking" / "ana.json").read_text())["marks"]) == [
        f"s02/{NAME}/{PROBLEM}"
    ]


def test_a_damaged_file_is_named_and_left(place: Path) -> None:
    give(place, "ana", "s01", 2, 2, 1, 1)
    path = place / "marking" / "ana.json"
    path.write_text(path.read_text()[:-20])
    before = path.read_text()
    with pytest.raises(ValueError, match=r"marking/ana\.json: expected marks"):
        give(place, "ana", "s02", 2, 2, 1, 1)
    assert path.read_text() == before
    with pytest.raises(ValueError, match="a name of letters"):
        marking.marker_file(course.Course.open(place, HERE), "../x")


def test_names_say_nothing_and_orders_differ(place: Path) -> None:
    for k in range(7, 40):
        hand_in(place, f"s{k:02d}", f"answer {k}")
    found = course.Course.open(place, HERE)
    called = marking.aliases(found)
    assert len(set(called.values())) == len(called) == 39
    assert called == marking.aliases(found)
    order = [one.student for one in marking.answers(found, marking.by_hand(found)).values()]
    assert order != sorted(order)
    other = dataclasses.replace(found, seed=8)
    assert marking.aliases(other)["s01"] != called["s01"]


# -- reports -----------------------------------------------------------------------------------
def test_a_distribution_knows_what_waits() -> None:
    told = statistics.histogram([(1.0, False), (0.98, True), (0.31, True), (0.0, False)], 57)
    assert "by tenths: [1, 0, 0, 1, 0, 0, 0, 0, 0, 2]" in told
    assert "answers that wait: [0, 0, 0, 1, 0, 0, 0, 0, 0, 1]" in told
    assert told.count('class="open"') == 2
    assert "Light: 2 of 4 submissions" in told
    whole = statistics.histogram([(1.0, False), (0.5, False)], 57)
    assert "Light" not in whole
    assert 'class="open"' not in whole
    assert "median 75 % of 57 points" in whole


def never(_: Mark) -> bool:
    return False


def made(points: np.ndarray) -> tuple[course.ProblemSet, list[Verdict]]:
    """Verdicts with these points, by submission and problem."""
    source = course.problem_set("4", HERE)
    some = [
        Verdict(NAME, [Mark(str(k), "", float(p), 4.0) for k, p in enumerate(line)], [])
        for line in points
    ]
    return source, some


def test_statistics_of_problems(place: Path) -> None:
    rng = np.random.default_rng(0)
    source = course.problem_set("4", HERE)
    points = rng.integers(0, 5, (40, len(source.problems))).astype(float)
    points[:, 1] = 4
    found = statistics.statistics(*made(points), never)
    for k, one in enumerate(found):
        rest = np.delete(points, k, axis=1).sum(axis=1)
        assert one.difficulty == pytest.approx(points[:, k].mean() / 4)
        if k != 1:
            assert one.discrimination == pytest.approx(np.corrcoef(points[:, k], rest)[0, 1])
            assert one.interval[0] < one.discrimination < one.interval[1]
    assert statistics.cells(found[1])[1] == "all alike"
    few = statistics.statistics(*made(points[:9]), never)
    assert statistics.cells(few[0]) == ["too few", "too few", "9"]
    assert "too few" in statistics.plot(few)
    assert statistics.plot(found).count("<circle") == len(found) - 1
    left = statistics.statistics(*made(points), lambda mark: mark.id == "0")
    assert left[0].count == 0
    rest = np.delete(points, [0, 2], axis=1).sum(axis=1)
    assert left[2].discrimination == pytest.approx(np.corrcoef(points[:, 2], rest)[0, 1])


def test_the_page_of_marks(place: Path) -> None:
    assert main(["course", "report", str(place), "--sources", str(HERE)]) == 0
    told = (place / "reports" / "marks.html").read_text()
    assert "4 answers wait for a person" in told
    assert "Light: 4 of 6 submissions" in told
    assert "too few" in told
    for k in range(7, 20):
        hand_in(place, f"s{k:02d}", "", machine=k % 8)
    assert main(["course", "report", str(place), "--sources", str(HERE)]) == 0
    told = (place / "reports" / "marks.html").read_text()
    assert "<b>Discrimination</b> is the correlation" in told
    assert "<circle" in told
    assert (place / "reports" / f"by-hand-{NAME}.html").read_text().count("<h3>") == 4


# -- the page ----------------------------------------------------------------------------------
Ask = tuple[int, str]


class Browser:
    """Asks a server as a browser would, or as somebody else would."""

    def __init__(self, server: Server) -> None:
        self.server, self.base = server, urlsplit(server.address).path

    def ask(self, path: str = "", body: object = None, **headers: str | None) -> Ask:
        """A page of ours where the path does not begin with a slash."""
        link = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        sent = {"Host": f"127.0.0.1:{self.server.server_port}", **headers}
        sent = {key.replace("_", "-"): value for key, value in sent.items() if value is not None}
        where = path if path.startswith("/") else self.base + path
        if body is None:
            link.request("GET", where, headers=sent)
        else:
            data = body if isinstance(body, str) else json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
            link.request("POST", where, data.encode(), headers=sent)
        reply = link.getresponse()
        self.headers = reply.headers
        told = reply.status, reply.read().decode("utf-8", "replace")
        link.close()
        return told

    def first(self) -> str:
        """The address of the answer that comes first."""
        found = re.search(rf'href="{self.base}([^"]+)" class="go"', self.ask()[1])
        assert found, "nothing to mark"
        return found[1]

    def click(self, where: str, given: list[float | None], **more: object) -> tuple[int, dict]:
        """What the page sends."""
        name, problem, who = where.removeprefix("settle/").split("/")
        shown = re.search(r'data-of="(\w+)"', self.ask(where)[1])
        assert shown
        told = {"set": name, "problem": problem, "who": who, "of": shown[1], "items": given}
        status, text = self.ask("save", told | {"settle": where.startswith("settle/")} | more)
        return status, json.loads(text)


@pytest.fixture
def open_desk(place: Path) -> Iterator[Callable[..., Browser]]:
    """`open_desk("ana")`: a marker's page."""
    running: list[Server] = []

    def begin(who: str = "ana", **how: bool) -> Browser:
        server = serve(Desk(course.Course.open(place, HERE), who, **how))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return Browser(server)

    yield begin
    for server in running:
        server.shutdown()
        server.server_close()


def test_nobody_else_is_answered(open_desk: Callable[..., Browser], place: Path) -> None:
    page = open_desk()
    port = page.server.server_port
    assert page.server.server_address[0] == "127.0.0.1"
    assert page.ask()[0] == 200
    for name in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        assert page.ask(Host=name)[0] == 403, name
    assert page.ask(Host=f"localhost:{port}")[0] == 200
    assert page.ask(Origin="http://evil.example")[0] == 403
    token = page.base.strip("/")
    for path in ("/", "/favicon.ico", f"/{token[:-1]}/", f"/{token}x/", "/save", "//", "/../"):
        assert page.ask(path)[0] == 403, path
    where = page.first()
    told = {"set": NAME, "problem": PROBLEM, "who": where.split("/")[-1]}
    assert page.ask("/save", told)[0] == 403
    assert page.ask("save", told, Content_Type="text/plain")[0] == 404, "no form of another site"
    assert page.ask("save", told, Origin="null")[0] == 403
    assert page.ask("save", "x" * 70_000)[0] == 413
    assert page.ask("save", "{")[0] == page.ask("save", [1])[0] == 400
    assert not (place / "marking").exists()


def test_nothing_else_of_the_machine_is_shown(open_desk: Callable[..., Browser]) -> None:
    page = open_desk()
    for path in ("marking.js", "marking.css", "mathjax/tex-mml-chtml.js"):
        assert page.ask(path)[0] == 200, path
    for path in (
        *("_desk.py", "../_desk.py", "mathjax/../marking.js", "mathjax/../../__init__.py"),
        *("mathjax/..%2f..%2f__init__.py", "mathjax//etc/passwd", "mathjax/", "roster.csv"),
        *("mathjax/%2e%2e/%2e%2e/__init__.py", "a/b/c", "settle", "settle/a/b/c", "%00", "save"),
    ):
        assert page.ask(path)[0] == 404, path


def test_a_page_asks_nobody_and_runs_nothing_of_an_answer(
    open_desk: Callable[..., Browser], place: Path
) -> None:
    page = open_desk()
    seen = ""
    where = page.first()
    for _ in range(4):
        seen += page.ask(where)[1]
        policy = page.headers["Content-Security-Policy"]
        where = page.click(where, [0, 0, 0, 0])[1]["next"].removeprefix(page.base)
    assert "default-src 'none'; script-src 'self';" in policy
    assert "script-src 'self' " not in policy
    assert "http" not in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert "&lt;script&gt;alert(1)" in seen
    assert re.findall(r"<script[^>]*>", seen) == 4 * [f'<script src="{page.base}marking.js" defer>']
    assert not re.search(r"https?://", seen)
    assert '<span class="math" translate="no">\\(\\sum_t s_t\\gamma_t\\)</span>' in seen


def test_marking_from_first_to_last(open_desk: Callable[..., Browser], place: Path) -> None:
    page, where, seen = open_desk(), "", []
    told = page.ask()[1]
    assert ">0</span> of 4 marked" in told
    assert "Begin" in told
    where = page.first()
    while where:
        seen.append(where)
        status, said = page.click(where, [2, 1, 0, None], comment="a\nb")
        assert (status, said["points"], said["done"]) == (200, 3, False)
        status, said = page.click(where, [2, 1, 0, 1])
        assert (status, said["points"], said["done"]) == (200, 4, True)
        assert said["finished"] == len(seen)
        where = said["next"].removeprefix(page.base)
    assert len(set(seen)) == 4, "blanks do not come up"
    assert "All is marked" in page.ask()[1]
    assert set(states(place).values()) == {"blank", "marked"}
    again = open_desk()
    assert 'value="1" checked' in again.ask(seen[0])[1], "what was given is there tomorrow"
    assert page.click(seen[0], [None] * 4)[0] == 200
    assert "Go on" in page.ask()[1]
    assert sorted(states(place).values()).count("open") == 1
    assert page.click(seen[0], [None] * 4, otherwise=2.5, comment="at most")[1]["done"]
    assert 2.5 in {points for points, _ in earned(place).values()}


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"items": [2, 2, 1]}, "items: expected 4 entries"),
        ({"items": [3, 0, 0, 0]}, "items: expected one of"),
        ({"items": [True, 0, 0, 0]}, "items: expected one of"),
        ({"items": ["2", 0, 0, 0]}, "items: expected one of"),
        ({"otherwise": 6.5}, "points: expected a number from 0 to 6"),
        ({"otherwise": -1}, "points: expected"),
        ({"otherwise": "3"}, "points: expected"),
        ({"otherwise": float("nan")}, "points: expected"),
        ({"of": "0" * 64}, "load this page again"),
        ({"who": "nobody"}, "answer: expected one of this course"),
        ({"settle": True}, "one whose markers differ"),
    ],
)
def test_bad_clicks_are_refused(
    open_desk: Callable[..., Browser], place: Path, change: dict[str, object], wanted: str
) -> None:
    page = open_desk()
    status, said = page.click(page.first(), [0, 0, 0, 0], **change)
    assert status == 400
    assert wanted in said["error"]
    assert not (place / "marking").exists()


def test_names_are_shown_only_where_they_are_asked_for(
    open_desk: Callable[..., Browser], place: Path
) -> None:
    hidden, shown = open_desk(), open_desk("bo", names=True)
    where = hidden.first()
    heads = [re.search(r"<h1>(.+?)</h1>", page.ask(where)[1]) for page in (hidden, shown)]
    assert heads[0]
    assert heads[1]
    assert heads[0][1].replace(" ", "-") == where.split("/")[-1]
    assert heads[1][1] in WORDS
    assert not any(who in hidden.ask()[1] for who in WORDS)


def test_a_new_submission_comes_back_with_the_old_marks(
    open_desk: Callable[..., Browser], place: Path
) -> None:
    page = open_desk()
    where = page.first()
    assert page.click(where, [2, 0, 1, 1], comment="strict?")[0] == 200
    found = course.Course.open(place, HERE)
    called = {alias.replace(" ", "-"): who for who, alias in marking.aliases(found).items()}
    hand_in(place, called[where.split("/")[-1]], "A better proof.")
    assert page.first() == where
    told = page.ask(where)[1]
    assert "This is new since you marked it. Before: 4 (2, 0, 1, 1), “strict?”" in told
    assert "checked" not in told.split('id="keys"')[0]
    assert ">1</td>" in page.ask()[1]


def test_differences_are_listed_and_settled(open_desk: Callable[..., Browser], place: Path) -> None:
    ana, bo = open_desk("ana"), open_desk("bo")
    where = ana.first()
    ana.click(where, [2, 2, 1, 1], comment="good")
    assert "Nowhere" in bo.ask("differ")[1]
    assert "good" not in bo.ask(where)[1], "the second marker does not see the first's marks"
    bo.click(where, [2, 0, 1, 1])
    told = ana.ask("differ")[1]
    assert "ana 6, bo 4" in told
    assert "1 to settle" in bo.ask()[1]
    told = bo.ask(f"settle/{where}")[1]
    assert "Take ana" in told
    assert "<q>good</q>" in told
    status, said = bo.click(f"settle/{where}", [2, 1, 1, 1], comment="half")
    assert (status, said["finished"], said["next"]) == (200, 1, bo.base)
    assert "settled, 5" in ana.ask("differ")[1]
    assert (5, "half") in earned(place).values()
    assert "0 to settle" in bo.ask()[1]


def test_what_is_wrong_is_said_on_the_page(
    open_desk: Callable[..., Browser], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnbook.course._desk.mathjax", lambda _: None)
    page = open_desk()
    told = page.ask(page.first())[1]
    assert "Formulas stand as TeX" in told
    assert "data-mathjax" not in told
    assert page.ask("mathjax/tex-mml-chtml.js")[0] == 404
    (place / "marking").mkdir()
    (place / "marking" / "bo.json").write_text("[]")
    status, told = page.ask()
    assert status == 500
    assert "marking/bo.json: expected marks" in told


def test_the_command_says_what_is_wrong(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["course", "mark", str(place), "--sources", str(HERE), "--no-open"]
    assert main([*run, "--as", "../ana"]) == 2
    assert "as: expected a name of letters and digits" in capsys.readouterr().err
    assert main([*run, "--port", "99999"]) == 2
    assert "port: expected a port that is free" in capsys.readouterr().err


def test_the_archive_has_what_sets_formulas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = tmp_path / "draft"
    for name in ("solutions", "student"):
        (draft / name).mkdir(parents=True)
    (draft / "guide.md").write_text("")
    _make.archive(tmp_path / "a.tar.gz", HERE, draft, None, "1")
    # not tarfile: its filter came with Python 3.11.4, and without one 3.12 warns
    subprocess.run(["tar", "-xzf", tmp_path / "a.tar.gz", "-C", tmp_path], check=True)
    there = tmp_path / "attnlab-instructor"

    def missing(_: str) -> None:
        raise importlib.metadata.PackageNotFoundError

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert mathjax(there / "coursework") == there / "mathjax"
    assert list((there / "mathjax").rglob("*.woff"))
    assert mathjax(tmp_path) is None
