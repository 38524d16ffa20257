"""For nbgrader: `autograde` takes our verdicts instead of running cells in a kernel of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbgrader.preprocessors import NbGraderPreprocessor

from attnbook.course._course import Course
from attnbook.course._grade import Verdict
from attnbook.course._marker import Markers, load_verdict


class Verdicts(NbGraderPreprocessor, Preprocessor):  # type: ignore[misc]
    """Writes each problem's points as the output of its test cell, where nbgrader reads them."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Form the verdict of the submission at hand."""
        about = resources["nbgrader"]
        verdict = verdict_of(about["student"], about["assignment"])
        marks = {f"{mark.id}-check": mark for mark in verdict.marks}
        for cell in nb.cells:
            if cell.cell_type != "code":
                continue
            cell.outputs = []
            mark = marks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if mark is None:
                continue
            told = "\n".join(
                f"{part.name}: {part.points:g} of {part.most:g} {part.told}".rstrip()
                for part in mark.parts
            )
            cell.outputs = [output("stream", name="stdout", text=told or mark.told)]
            data = {"text/plain": f"{mark.points:g}"}
            cell.outputs.append(
                output("execute_result", data=data, metadata={}, execution_count=None)
            )
        return nb, resources


def output(kind: str, **told: Any) -> Any:
    """A notebook's output."""
    from nbformat.notebooknode import from_dict

    return from_dict({"output_type": kind, **told})  # type: ignore[no-untyped-call]


def verdict_of(student: str, name: str) -> Verdict:
    """Kept, if the submission is the same; formed in the sandbox otherwise."""
    course = Course.open(Path.cwd())
    path = course.place / "submitted" / student / name / f"{name}.ipynb"
    kept = load_verdict(course.verdict_path(student, name), course.digest(path, name))
    if kept is not None:
        return kept
    with Markers(1) as markers, markers.one() as marker:
        sheet = course.sheet(name)
        return marker.mark(path, sheet, course.seed_of(student), **course.asked(student, name))[0]


def forget(course: Course, student: str) -> bool:
    """Take a student out of nbgrader's grade book; whether they were in it."""
    from nbgrader.api import Gradebook, MissingEntry

    address = f"sqlite:///{(course.place / 'gradebook.db').absolute()}"
    with Gradebook(address, course.name) as book:
        try:
            book.remove_student(student)
        except MissingEntry:
            return False
    return True
