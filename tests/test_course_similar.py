"""Looking before anything is placed, and code that is alike."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from downloads import canvas

from attnbook import course
from attnbook.cli import main
from attnbook.course import _notebook as notebooks
from attnbook.course import _similar
from attnbook.course._preview import far
from attnbook.course._prints import CODE, RUN, WINDOW, names, prints, tokens
from attnbook.course._similar import FEW, LEAST, MOST, PROVES, SHARED, Answer, alike

HERE = Path(__file__).parent / "coursework"
NAME = "set4-svm"
STUDENTS = [f"s{k:02d}" for k in range(10)]


def new(place: Path, *words: str, students: list[str] = STUDENTS) -> course.Course:
    start = ["course", "new", "c", "--seed", "5", "--sets", "4", "--out", str(place)]
    assert main([*start, "--sources", str(HERE), *words]) == 0
    lines = [f"{one},canvas:{100 + k}\n" for k, one in enumerate(students)]
    (place.parent / "r.csv").write_text("id,platform\n" + "".join(lines))
    assert main(["course", "add", str(place), "--roster", str(place.parent / "r.csv")]) == 0
    return course.Course.open(place)


# -- preview -------------------------------------------------------------------------------------
def state(place: Path) -> dict[str, tuple[bytes, float]]:
    return {
        str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mtime)
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


def test_a_look_before_anything_is_placed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that is odd is said, each with its reason, and not a byte is written."""
    there = new(tmp_path / "c", "--each")
    path = there.place / "course.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"due": {"4": "2024-10-05"}}))
    own = {who: there.place / "release" / NAME / f"{who}.ipynb" for who in STUDENTS}
    texts = {who: file.read_text() for who, file in own.items()}
    texts["s01"] = texts["s00"]  # another's variant, byte for byte
    more = json.loads(texts["s02"])
    more["cells"] += [{"cell_type": "code", "id": f"x{k}", "source": "1"} for k in range(40)]
    texts["s02"] = json.dumps(more)
    wide = json.loads(texts["s03"])
    wide["cells"][0]["outputs"] = ["x" * 900_000]
    texts["s03"] = json.dumps(wide)
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    days = {"s04": "06-10-00-00", "s05": "04-09-00-00"}
    for who in STUDENTS[:8]:
        day = days.get(who, f"05-09-{who[1:]}-00")
        when = "2024-08-01-11-00-00" if who == "s07" else f"2024-10-{day}"
        canvas(downloads, 100 + int(who[1:]), when, texts[who])
    canvas(downloads, 105, "2024-10-05-11-00-00", texts["s05"] + "\n")
    canvas(downloads, 999, "2024-10-05-11-00-00", texts["s08"])
    (downloads / "notes.pdf").write_text("x")
    before = state(tmp_path)
    capsys.readouterr()
    assert main(["course", "preview", str(there.place), str(downloads)]) == 0
    assert state(tmp_path) == before
    said = sections(capsys.readouterr().out)
    assert said["would be placed"] == ["set4-svm: 8 of 10 students"]
    assert said["late"] == ["s04, set4-svm: 10 hours 1 minute late (2024-10-06T10:00:00)"]
    assert said["students without a file"] == ["set4-svm: s08, s09"]
    (doubt,) = said["in doubt, and not placed"]
    assert "nobody of the roster" in doubt
    (tries,) = said["several attempts"]
    assert tries == "s05, set4-svm: 2, of 2024-10-04T09:00:00, 2024-10-05T11:00:00"
    assert said["the same file"] == ["s00 (set4-svm), s01 (set4-svm)"]
    (foreign,) = said["another student's variant"]
    assert foreign.startswith("s01, set4-svm: the variant of s00: ")
    assert said["not used"] == ["notes.pdf: not a notebook: not used"]
    odd = said["unlike the others"]
    assert [one for one in odd if one.startswith("s02") and "cells" in one]
    assert [one for one in odd if one.startswith("s03") and "bytes" in one]
    assert "s07, set4-svm: its time is 2024-08-01T11:00:00" in odd
    assert {one.split(",")[0] for one in odd} == {"s02", "s03", "s07"}
    assert main(["course", "collect", str(there.place), str(downloads)]) == 0
    assert "8 notebooks placed, 1 of them late" in capsys.readouterr().out


def sections(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.endswith(":") and not line.startswith(" "):
            found[line[:-1]] = last = []
        elif line.startswith("  "):
            last.append(line.strip())
    assert text.endswith("nothing was written\n")
    return found


def test_archives_that_were_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their files all have one time; a zip without times says 1980."""
    there = new(tmp_path / "c")
    blank = (there.place / "release" / NAME / f"{NAME}.ipynb").read_text()
    downloads = tmp_path / "downloads"
    stamp = datetime(2024, 10, 4, 12).timestamp()
    for number, who in enumerate(STUDENTS[:6]):
        file = downloads / who / "x.ipynb"
        file.parent.mkdir(parents=True)
        file.write_text(blank + " " * number)
        os.utime(file, (stamp, stamp))
    assert main(["course", "preview", str(there.place), str(downloads), "--set", "4"]) == 0
    said = capsys.readouterr().out
    assert "all have the same time; were the archives unpacked?" in said
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("lees_1_2_x.ipynb"), blank)
        archive.writestr(zipfile.ZipInfo("lees_1_3_x.zip"), b"PK")
    (tmp_path / "r2.csv").write_text("id,platform\ns00,canvas:1\n")
    assert main(["course", "add", str(there.place), "--roster", str(tmp_path / "r2.csv")]) == 0
    assert main(["course", "preview", str(there.place), str(tmp_path / "d.zip")]) == 0
    assert "s00, set4-svm: its time is 1980-01-01T00:00:00" in capsys.readouterr().out


def test_far_from_the_others() -> None:
    some = dict(enumerate([1.0, 1.1, 0.9, 1.0, 9.0]))
    assert far(some, 0.5) == [4]
    assert far(some, 20.0) == [], "what is never odd"
    assert far(dict(enumerate([1.0, 9.0, 1.0, 1.0])), 0.5) == [], "too few"
    assert far(dict(enumerate([1.0, 2.0, 3.0, 4.0, 9.0])), 0.5) == [], "they all differ"


# -- alike code ----------------------------------------------------------------------------------
# eight ways to one function; ida has gus' with other names, comments, spaces and brackets, and jo
# has dee's with other names, another order and lines in between
ANSWERS = {
    "ana": """\
def log_weights(logits):
    '''Logarithms of softmax weights along the last axis.'''
    top = logits.max(axis=-1, keepdims=True)
    shifted = logits - top
    total = np.exp(shifted).sum(axis=-1, keepdims=True)
    return shifted - np.log(total)
""",
    "bo": """\
def log_weights(logits):
    from scipy.special import logsumexp
    x = np.asarray(logits, dtype=float)
    return x - logsumexp(x, axis=-1, keepdims=True)
""",
    "cy": """\
def log_weights(logits):
    m = np.max(logits, axis=-1)[..., None]
    return logits - m - np.log(np.sum(np.exp(logits - m), axis=-1))[..., None]
""",
    "dee": """\
def log_weights(logits):
    out = np.empty(logits.shape)
    for index in np.ndindex(logits.shape[:-1]):
        row = logits[index]
        big = row.max()
        s = 0.0
        for value in row:
            s += np.exp(value - big)
        out[index] = row - big - np.log(s)
    return out
""",
    "eli": """\
def log_weights(logits):
    flat = np.reshape(logits, (-1, logits.shape[-1]))
    answers = []
    for line in flat:
        acc = line[0]
        for other in line[1:]:
            acc = np.logaddexp(acc, other)
        answers.append(line - acc)
    return np.array(answers).reshape(logits.shape)
""",
    "fay": """\
def log_weights(logits):
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
""",
    "gus": """\
def log_weights(logits):
    if np.ndim(logits) > 1:
        return np.stack([log_weights(part) for part in logits])
    order = np.argsort(logits)
    largest = logits[order[-1]]
    rest = logits[order[:-1]] - largest
    correction = np.log1p(np.exp(rest).sum())
    return (logits - largest) - correction
""",
    "hal": """\
def log_weights(logits):
    z = np.array(logits, dtype=np.float64)
    z -= z.max(-1, keepdims=True)
    e = np.exp(z)
    denominator = np.einsum("...i->...", e)
    return z - np.log(denominator)[..., np.newaxis]
""",
    "ida": """\
def log_weights(logits):
    '''My own solution!'''
    # handle batches by recursion
    if np.ndim(logits)>1:
        return np.stack( [ log_weights(p) for p in logits ] )
    idx = np.argsort(logits)   # sort
    big = logits[ idx[-1] ]
    others = ( logits[idx[:-1]]
               - big )
    c = np.log1p(np.exp(others).sum())
    return (logits - big) - c
""",
    "jo": """\
def log_weights(logits):
    result = np.empty(logits.shape)
    print("start")
    for i in np.ndindex(logits.shape[:-1]):
        vec = logits[i]
        total = 0.0
        maximum = vec.max()
        for v in vec:
            total += np.exp(v - maximum)
        result[i] = vec - maximum - np.log(total)
    print("done")
    return result
""",
}
COPIES = {("gus", "ida"), ("dee", "jo")}
STUB = "import numpy as np\ndef log_weights(logits):\n    raise NotImplementedError\n"


def group(texts: dict[str, str]) -> dict[str, Answer]:
    known = names(STUB)
    return {who: Answer(text, tuple(prints(text, known))) for who, text in texts.items()}


def test_copies_are_found_and_honest_work_is_not() -> None:
    """Far apart: copies share more than half, and no others a fifth."""
    given = frozenset(one.mark for one in prints(STUB))
    found = {pair: share for pair, share, *_ in alike(group(ANSWERS), given)}
    copies = {pair: share for pair, share in found.items() if share >= LEAST}
    assert set(copies) == COPIES
    assert min(copies.values()) > 0.6
    assert max((found[pair] for pair in set(found) - COPIES), default=0.0) < 0.2


def test_the_winnowing_keeps_its_promise() -> None:
    """What two have in common for RUN + WINDOW - 1 tokens leaves a common fingerprint."""
    words = " ".join(f"np.f{k} +" for k in range(9)).split(" ")
    common = [text for text, _, _ in tokens(" ".join(words))][: RUN + WINDOW - 1]
    assert len(common) == RUN + WINDOW - 1
    text = " ".join(common)
    marks = {one.mark for one in prints(text)}
    for before in ("", "y = 3\n", "for a in b:\n    print(a, a, a)\n"):
        for after in ("", " * 7 - z[0]", "\nreturn [q, q, {}]"):
            assert marks & {one.mark for one in prints(before + text + after)}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("total = first + second", "s=a+b  # the sum"),
        ("def f(x):\n    return x", "def g( y ) :\n\n    'what it does'\n    return y"),
        ("x = np.exp(1234.5)", "x = np.exp(999.25)"),
        ("print('hello')", 'print("good bye")'),
        ("a = (b +\n     c)", "a = (b + c)"),
        ("x = 'a'", "x = '''a\nb'''"),
    ],
)
def test_what_makes_no_difference(text: str, other: str) -> None:
    assert [one for one, _, _ in tokens(text)] == [one for one, _, _ in tokens(other)]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("np.exp(x)", "np.log(x)"),
        ("x[0]", "x[1]"),
        ("a + b", "a - b"),
        ("a ** b", "a * b"),
        ("for x in y: z", "while x in y: z"),
        ("'a' + x", "+ x"),
        ("len(x)", "sum(x)"),
    ],
)
def test_what_makes_a_difference(text: str, other: str) -> None:
    assert [one for one, _, _ in tokens(text)] != [one for one, _, _ in tokens(other)]


HOSTILE = {
    "quotes that are escaped": "'''\\" * (CODE // 4),
    "quotes": "'" * CODE,
    "backslashes": "\\" * CODE,
    "prefixes": "rb'" * (CODE // 3),
    "exponents": "1e+" * (CODE // 3),
    "brackets": "(" * CODE,
    "f-strings": "f'{" * (CODE // 3),
    "two kinds of quotes": "'''a\"\"\"b" * (CODE // 8),
    "lines": "\n" * CODE,
    "joined lines": "x\\\n" * (CODE // 3),
    "no Python": "def f(:\n  ]]] §§ \x0c é",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_cut_like_others(name: str) -> None:
    """Nothing is parsed, and lines stay in the text."""
    text = HOSTILE[name]
    last = text.count("\n")
    assert all(0 <= first <= end <= last for _, first, end in tokens(text))
    assert all(0 <= one.first <= one.last <= last for one in prints(text))


def test_what_most_write_says_nothing() -> None:
    """A dozen students with the book's way, and two with a rare piece besides."""
    rare = "    odd = [np.gcd(k, 7) ** 3 - k % 11 for k in range(99) if k & 5]\n"
    text = ANSWERS["ana"]
    texts = {f"s{k}": text for k in range(12)} | {"p": text + rare, "q": text + rare}
    assert MOST * len(texts) < SHARED < 12
    assert {pair for pair, *_ in alike(group(texts), frozenset())} == {("p", "q")}
    some = dict(list(texts.items())[:SHARED])
    assert len(list(alike(group(some), frozenset()))) == SHARED * (SHARED - 1) // 2
    own = frozenset(one.mark for one in prints(text, names(STUB)))
    assert list(alike(group(some), own)) == [], "what was handed out"


def test_too_short_to_tell() -> None:
    one = "x = np.dot(a, b) + c\n"
    assert 0 < len({mark.mark for mark in prints(one)}) < FEW
    assert list(alike(group({"a": one, "b": one}), frozenset())) == []
    assert prints("x = 1") == []
    assert list(alike({}, frozenset())) == []


def hand_in(there: course.Course, student: str, code: str | None, extra: str = "") -> None:
    built = notebooks.build(there.source(NAME), there.seed_of(student))
    for cell in built["cells"]:
        if cell["id"] == "stable-weights" and code is not None:
            cell["source"] = code
    if extra:
        built["cells"].append({"cell_type": "code", "id": "x", "source": extra, "metadata": {}})
    path = there.place / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(built))


def test_from_submissions_to_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With variants of their own, and hostile notebooks among them; the same page twice."""
    there = new(tmp_path / "c", "--each", students=[*ANSWERS, "eve", "kim", "lou", "mo", "nil"])
    for who, text in ANSWERS.items():
        hand_in(there, who, text)
    attack = "\n".join(
        f"x{k} = '</pre><script>alert({k})</script>' + f(x{k}, {k})" for k in range(9)
    )
    hand_in(there, "eve", "(" * 30_000 + ")" * 30_000, attack)
    hand_in(there, "kim", "f'{" * 9_000, attack.replace("x", "longer_name"))
    hand_in(there, "lou", None)
    hand_in(there, "mo", None)
    (there.place / "submitted" / "mo" / NAME / f"{NAME}.ipynb").write_text("[" * 100_000)
    capsys.readouterr()
    assert main(["course", "similar", str(there.place)]) == 0
    said = capsys.readouterr().out
    assert "dee, jo: stable-weights" in said
    assert "gus, ida: stable-weights" in said
    assert "eve, kim: cells of their own 100 %" in said
    assert "3 pairs of students" in said
    assert "proves nothing" in said
    path = there.place / "reports" / "similar.html"
    page = path.read_text()
    assert PROVES in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<mark>    idx = np.argsort(logits)   # sort</mark>" in page
    assert "http" not in page
    assert main(["course", "similar", str(there.place)]) == 0
    assert path.read_text() == page
    assert main(["course", "similar", str(there.place), "--least", "1.5"]) == 2
    assert main(["course", "forget", str(there.place), "ida"]) == 0
    assert not path.exists()


def test_what_ends_the_process_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file at which it dies is left out and named; one that says nothing is a fault of ours."""
    there = new(tmp_path / "c", students=["ana", "bo", "cy"])
    for who in ("ana", "bo", "cy"):
        hand_in(there, who, ANSWERS["dee"])
    asked, real = [], _similar.ask

    def dying(module: str, job: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
        asked.append(list(job["skip"]))
        return real(module, job) if 1 in job["skip"] else ([], 1)

    monkeypatch.setattr(_similar, "ask", dying)
    _, pairs, unread = there.similar()
    assert asked == [[], [1]]
    assert unread == [f"bo, {NAME}"]
    assert [line.split(":")[0] for line in pairs] == ["ana, cy"]
    monkeypatch.setattr(_similar, "ask", lambda *_: ([], ""))
    with pytest.raises(RuntimeError, match="the process that reads ended"):
        there.similar()
