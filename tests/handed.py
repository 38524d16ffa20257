"""A graded course without grading: for tests of what people do afterwards."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

from attnbook import course
from attnbook.course._grade import Mark, Verdict

HERE = Path(__file__).parent / "coursework"
NAME, PROBLEM = "set4-svm", "no-floor"


def hand_in(place: Path, student: str, words: str, machine: float = 8) -> None:
    """A submission and its verdict, as `grade` writes it."""
    found = course.Course.open(place, HERE)
    path = place / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(words))
    marks = []
    for one in found.source(NAME).problems:
        most = one.points if one.answer else 0.0
        points, machine = min(most, machine), max(0.0, machine - most)
        marks.append(Mark(one.id, one.title, points, one.points, not one.answer))
    told = dataclasses.asdict(Verdict(NAME, marks, [])) | {
        "of": found.digest(path, NAME),
        "prose": {PROBLEM: words},
    }
    target = found.verdict_path(student, NAME)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(told))


def made_course(place: Path, words: Mapping[str, str]) -> Path:
    """A course whose students have handed in these words."""
    course.Course(place, place.name, 7, ("4",), HERE).create()
    path = place.with_suffix(".csv")
    path.write_text("id\n" + "".join(f"{who}\n" for who in words))
    course.Course.open(place, HERE).add(path)
    for who, told in words.items():
        hand_in(place, who, told)
    return place
