"""Problem sets: variants, a sandbox for student code, and verdicts formed outside it.

Student code never decides: it is asked questions in a sandbox and gives plain arrays back; what
they are worth is judged here. ``import attnlab`` does not import this room.
"""

from attnbook.course._author import review, template
from attnbook.course._course import Course
from attnbook.course._grade import Verdict, grade
from attnbook.course._handin import Finding, look_over, preflight
from attnbook.course._sandbox import Limits, NoSandboxError, Sandbox
from attnbook.course._source import ProblemSet, problem_set
from attnbook.course._submission import Submission, read_submission

__all__ = [
    "Course",
    "Finding",
    "Limits",
    "NoSandboxError",
    "ProblemSet",
    "Sandbox",
    "Submission",
    "Verdict",
    "grade",
    "look_over",
    "preflight",
    "problem_set",
    "read_submission",
    "review",
    "template",
]
