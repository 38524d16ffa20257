"""Problem sets of an instructor's own: a template, what a set misses, and a course made of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from attnbook import course, theory
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course._author import on_paper
from attnbook.course._source import read
from attnlab import models, problems

HERE = Path(__file__).parent / "coursework"
BOOK = Path(__file__).resolve().parents[1] / "book" / "coursework"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the template in it."""
    assert main(["course", "template", str(tmp_path / "mine" / "hw1.md")]) == 0
    return tmp_path / "mine"


@pytest.mark.usefixtures("sandbox")
def test_the_template_keeps_its_word(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["course", "verify", str(own / "hw1.md"), "--seeds", "1"]) == 0
    assert "nothing to mend, nothing to look at" in capsys.readouterr().out
    assert main(["course", "template", str(own / "hw1.md")]) == 2  # it is there
    assert "a new file such as hw1.md" in capsys.readouterr().err


PAPER = {
    "an unknown room": ("rooms: [problems, models]", "rooms: [problems, cli]", "no room cli"),
    "nothing expected": ("**Expected.** For", "For", "say under **Expected.**"),
    "no marks": ("**Marks.**", "Marks:", "write **Marks.** into its scheme"),
    "marks that miss one": ("- (2) the", "- (1) the", "marks that add up to 3"),
    "parts that are one": ("# earns 2:", "# earns 0:", "its parts are one part"),
}


@pytest.mark.parametrize("what", PAPER)
def test_what_is_missing_on_paper_is_a_sentence(own: Path, what: str) -> None:
    old, new, words = PAPER[what]
    path = own / "hw1.md"
    assert not list(on_paper(read(path)))
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    (told,) = on_paper(read(path))
    assert words in told
    assert told.endswith(".")


def test_two_wrong_answers_are_not_three(own: Path) -> None:
    path = own / "hw1.md"
    start, mark, end = path.read_text("utf-8").rpartition("```{code-cell} python\n:tags: [wrong]")
    path.write_text(start + end[end.index("+++") :], "utf-8")
    assert mark
    (told,) = on_paper(read(path))
    assert told.startswith("share: it has 2 wrong answers, and 3 are wanted")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"points": 4', '"points": 5', "parts that add up to its points"),
        ("title: \"Homework", "name: \"Homework", "course: {title, rooms}"),
        ("+++ {\"scheme\": true}", "Then:", "a cell scheme"),
        ('"goal": "to keep', '"gaol": "to keep', "without ['goal']"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(own: Path, old: str, new: str, words: str) -> None:
    path = own / "hw1.md"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    (told,), looks = course.review(path)
    assert told.startswith("It could not be read: ")
    assert words in told
    assert looks == []


PLAYED = {
    "a wrong solution": ("np.where(a < b,", "np.where(a > b,", "its solution earns 0 of 4"),
    "a judge that pays for all": (
        "    assert np.abs(answer / true - 1).max() <= 1e-9,", "    assert True,",
        "the part values pays 2 points for 'all 0'",
    ),
    "a mistake that earns more": ("# earns 0: the other", "# earns 4: the other", "not 4"),
    "a judge that fails": (
        'yield "far", gap', 'yield "near", gap', "ended in LookupError: share: a case of",
    ),
}  # fmt: skip


LATER = ("a wrong solution", "a mistake that earns more")


@pytest.mark.parametrize(
    "what", [pytest.param(k, marks=[pytest.mark.long] if k in LATER else []) for k in PLAYED]
)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("sandbox")
def test_what_shows_when_it_is_played_is_a_sentence(own: Path, what: str) -> None:
    old, new, words = PLAYED[what]
    path = own / "hw1.md"
    text = path.read_text("utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), "utf-8")
    missing, _ = course.review(path, seeds=1)
    assert any(words in told for told in missing), missing
    assert all(told[-1] in ".]" for told in missing)


@pytest.mark.usefixtures("sandbox")
def test_a_course_of_ones_own_sets(
    own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a folder of sets to marks; the book's sets may stand beside them."""
    there = tmp_path / "c"
    new = ["course", "new", "c", "--seed", "3", "--private", str(own), "--out", str(there)]
    assert main(new) == 0
    assert json.loads((there / "course.json").read_text("utf-8"))["sets"] == ["hw1"]
    blank = (there / "release" / "hw1" / "hw1.ipynb").read_text("utf-8")
    assert "np.exp(-np.abs(a - b))" not in blank
    assert "np.exp(-np.abs(a - b))" in (there / "source" / "hw1" / "hw1.ipynb").read_text("utf-8")
    (tmp_path / "r.csv").write_text("id,first_name\ns1,Ana\n", "utf-8")
    assert main(["course", "add", str(there), "--roster", str(tmp_path / "r.csv")]) == 0
    answer = notebooks.write(notebooks.submission(read(own / "hw1.md"), 3))
    (tmp_path / "d" / "s1").mkdir(parents=True)
    (tmp_path / "d" / "s1" / "x.ipynb").write_text(answer, "utf-8")
    assert main(["course", "check", str(tmp_path / "d" / "s1" / "x.ipynb")]) == 0
    assert main(["course", "collect", str(there), str(tmp_path / "d")]) == 0
    assert main(["course", "grade", str(there)]) == 0
    assert main(["course", "report", str(there)]) == 0
    (row,) = csv.DictReader((there / "reports" / "marks.csv").read_text("utf-8").splitlines())
    assert (row["hw1:share"], row["not_marked_yet"]) == ("4", "1")
    assert course.Course.open(there).unmarked() == 0
    (own / "hw1.md").write_text((own / "hw1.md").read_text("utf-8") + "\n", "utf-8")
    assert course.Course.open(there).unmarked() == 1  # the set has changed
    (own / "hw1.md").rename(own / "hw2.md")
    capsys.readouterr()
    assert main(["course", "grade", str(there)]) == 2
    assert "private: expected a folder with hw1.md" in capsys.readouterr().err


def test_own_sets_beside_the_books(own: Path, tmp_path: Path) -> None:
    there = tmp_path / "c"
    new = ["course", "new", "c", "--seed", "3", "--private", str(own), "--sources", str(HERE)]
    assert main([*new, "--sets", "4,hw1", "--problems", "hw1:share", "--out", str(there)]) == 0
    found = course.Course.open(there)
    assert found.folders == ["set4-svm", "hw1"]
    assert [one.id for one in found.source("hw1").problems] == ["share"]
    assert len(found.source("set4-svm").problems) == 4
    about = json.loads((there / "course.json").read_text("utf-8"))
    (there / "course.json").write_text(json.dumps(about | {"due": {"hw1": "2027-10-04T23:59"}}))
    assert course.Course.open(there).due() == {"hw1": "2027-10-04T23:59"}


@pytest.mark.parametrize(
    ("names", "more", "words"),
    [
        ([], [], "private: expected a folder of problem sets, such as hw1.md"),
        (["1"], [], "private: expected a folder of problem sets"),
        (["My Set"], [], "named by small letters, digits and -, got My Set"),
        (["hw1"], ["--sets", "hw2"], "sets: expected some of 1, 2, 3, 4, project, hw1, each once"),
    ],
)
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
    names: list[str], more: list[str], words: str,
) -> None:  # fmt: skip
    (tmp_path / "p").mkdir()
    for name in names:
        (tmp_path / "p" / f"{name}.md").write_text("x", "utf-8")
    new = ["course", "new", "c", "--seed", "3", "--private", str(tmp_path / "p"), *more]
    assert main([*new, "--out", str(tmp_path / "c")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


# -- what the book's own sets say about themselves ---------------------------------------------
@pytest.mark.parametrize("name", ["1", "2", "3", "4", "project"])
def test_every_set_has_two_halves(name: str) -> None:
    """With something easy, something hard, something to prove, and about as many points."""
    found = course.problem_set(name, BOOK)
    parts = [found.part(ids) for ids in found.halves.values()]
    assert sum(len(one.problems) for one in parts) == len(found.problems)
    assert abs(parts[0].points - parts[1].points) <= 6
    for one in parts:
        assert {"easy", "hard"} <= {problem.difficulty for problem in one.problems}
        assert name == "project" or any(problem.scheme for problem in one.problems)


def test_halves_that_are_none_are_refused(own: Path) -> None:
    path = own / "hw1.md"
    text = path.read_text("utf-8")
    rooms = "rooms: [problems, models]\n"
    for halves in ("a: [share], b: [share, saddle]", "a: [share], b: []", "a: [share, saddle]"):
        path.write_text(text.replace(rooms, f"{rooms}  halves: {{{halves}}}\n"), "utf-8")
        with pytest.raises(ValueError, match="two halves, and every problem in one of them"):
            read(path)


def test_set_2_computes_proposition_1_as_the_book_does() -> None:
    """The function that its first cell gives to students."""
    space: dict[str, object] = {}
    exec(course.problem_set("2", BOOK).setup, space)
    rng = np.random.default_rng(0)
    for width in (3, 5, 40):
        X, V = rng.normal(size=(3, 4)), rng.normal(size=(width, 4))
        y, w = rng.normal(size=3), rng.normal(size=width)
        V[:3] += 4 * np.eye(3, 4)  # so that no sample is dark
        found = space["proposition_1"](X, y, V, w)  # type: ignore[operator]
        data = problems.SequenceProblem(X[:, None], y)
        at = {"W_Q": 0 * V, "W_K": 0 * V, "W_V": V, "w_O": w}
        model = models.Encoder(width, pooling="sum", loss="half_sum")
        loss, _ = model.value_and_grad(at, data)
        bars = theory.encoder.bars(model, data, at, radius=1.0)
        alpha = theory.encoder.alpha(model, at, data)
        wanted = [
            theory.encoder.condition_2(bars, alpha, loss),
            theory.encoder.condition_3(bars, alpha, loss),
            theory.encoder.smoothness(bars, loss),
        ]
        np.testing.assert_allclose(found, np.array(wanted, dtype=float), rtol=1e-10)
