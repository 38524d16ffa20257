"""An exercise: what its script needs, and its words as HTML that reads without one."""

from __future__ import annotations

import base64
import json
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import anywidget
import numpy as np
import traitlets

from attnbook.widgets._base import STATIC, bundle, plain, source
from attnlab import checks as check

MODULE = "kit/exercise"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TESTS = ("is", "not", "above", "below", "near", "among", "count")


class Exercise(anywidget.AnyWidget):
    """A question with its answer and with what is said to each answer.

    Args:
        task: what the page's script needs: kind, answer, named wrong answers, responses.
        markup: question, options, hint and solution as HTML that reads without a script.

    Returns:
        A widget, in a notebook; on the static page, HTML that its host brings to life.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> exercise.power("demo-rate", "How does $1/t^2$ fall?", -2.0).task["answer"]
        -2.0
    """

    if not os.environ.get(STATIC):  # a static page serves the files apart
        _esm = bundle(MODULE)
        _css = source("kit/kit.css") + source("kit/exercise.css")
    task = traitlets.Dict().tag(sync=True)
    markup = traitlets.Unicode().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, task: dict[str, Any], markup: str) -> None:
        super().__init__(task=plain(task), markup=markup, state={})

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(STATIC):
            return {"text/html": self.html(), "text/plain": repr(self)}
        return super()._repr_mimebundle_(**kwargs)

    def html(self) -> str:
        """The exercise as the static page has it."""
        name, told = self.task["id"], json.dumps(self.task, ensure_ascii=False)
        title = escape(self.task["title"] or "Exercise", quote=True)
        return (
            f'<div data-exercise="{name}" id="exercise-{name}" role="group" aria-label="{title}" '
            f'class="al-exercise mathjax_process"><script type="application/json">'
            + told.replace("</", "<\\/")
            + f"</script>{self.markup}</div>"
        )

    def packed(self) -> str:
        """The exercise as one line of text that nobody reads by accident (see ``unpack``)."""
        told = json.dumps([self.task, self.markup], ensure_ascii=False)
        return base64.b64encode(zlib.compress(told.encode(), 9)).decode()

    def __repr__(self) -> str:
        return f"Exercise({self.task['id']!r})"


def unpack(packed: str) -> Exercise:
    """The exercise that a line of a notebook holds: question, answer, hint and solution.

    Notebooks made from the book's pages hold exercises packed, so that no cell shows an answer
    before it is asked for. Packing hides nothing from whoever wants to know: ``.task`` has it all.

    Args:
        packed: what ``Exercise.packed()`` gave.

    Returns:
        The exercise, to be shown by the cell.

    Examples:
        >>> from attnbook.widgets import exercise
        >>> line = exercise.power("demo-fall", "How does $1/t^2$ fall?", -2.0).packed()
        >>> exercise.unpack(line)
        Exercise('demo-fall')
    """
    try:
        task, markup = json.loads(zlib.decompress(base64.b64decode(packed, validate=True)))
        task["id"]
    except (ValueError, TypeError, KeyError, zlib.error):
        shown = packed if isinstance(packed, str) and len(packed) < 40 else f"{str(packed)[:40]}..."
        raise check.fail("packed", "what Exercise.packed() gave, whole", repr(shown)) from None
    return Exercise(task, markup)


# -- arguments ---------------------------------------------------------------------------------
def real(answer: object) -> float:
    return check.number("answer", answer.item() if isinstance(answer, np.ndarray) else answer)


def amount(
    kind: str,
    answer: object,
    tolerance: object,
    wrong: Mapping[float, str] | None,
    small: str,
    large: str,
    *,
    absolute: bool,
) -> dict[str, Any]:
    """What number and power share: a value, how near is near, and what misses it."""
    value = real(answer)
    near = check.number("tolerance", tolerance, above=0.0)
    relative = not absolute and value != 0.0
    named = []
    for given, words in (wrong or {}).items():
        other = check.number("wrong", given)
        if abs(other - value) <= 2.0 * near * (abs(value) if relative else 1.0):
            raise check.fail("wrong", f"values apart from the answer {value:.6g}", f"{other:.6g}")
        named.append({"value": other, "say": words_of(f"wrong[{other:.6g}]", words, needed=True)})
    said = {"small": small, "large": large}
    task = {"kind": kind, "answer": value, "tolerance": near, "relative": relative}
    task |= {key: words_of(key, words, needed=True) for key, words in said.items()}
    return task | {"wrong": named}


def words_of(name: str, value: object, needed: bool = False) -> str:
    if not isinstance(value, str) or (needed and not value.strip()):
        raise check.fail(name, "words", repr(value))
    if value.count("$") % 2:
        raise check.fail(name, "dollars in pairs", value)
    return value


def keys_of(name: str, options: Mapping[str, str], least: int) -> list[str]:
    keys = list(options)
    if len(keys) < least or not all(isinstance(key, str) and NAME.fullmatch(key) for key in keys):
        raise check.fail(name, f"{least} options or more, by lower-case keys", repr(keys))
    return keys


def each(name: str, say: Mapping[str, str], keys: Sequence[str]) -> dict[str, str]:
    """Words for every key, and for no other."""
    for key in say:
        check.choice(name, key, keys)
    if silent := [key for key in keys if key not in say]:
        raise check.fail(name, "a response to each option", f"none to {', '.join(silent)}")
    return {key: words_of(f"{name}[{key!r}]", say[key], needed=True) for key in keys}


def tests_of(key: str, value: Any) -> dict[str, Any]:
    tests = dict(value) if isinstance(value, Mapping) else {"is": value}
    for name in tests:
        check.choice(f"goal[{key!r}]", name, TESTS)
    return tests


# -- words -------------------------------------------------------------------------------------
def figures(value: object) -> str:
    """A number with three figures, as people write it."""
    return f"{real(value):.3g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


def rich(words: str) -> str:
    """Formulas, emphasis and code as HTML; MathJax sets the formulas."""

    def say(found: re.Match[str]) -> str:
        formula, code, strong, lean = found.groups()
        if formula is not None:
            return rf"\({formula}\)"
        if code is not None:
            return f"<code>{code}</code>"
        return f"<strong>{strong}</strong>" if strong is not None else f"<em>{lean}</em>"

    text = escape(words, quote=False)
    return re.sub(r"\$([^$]+)\$|`([^`]+)`|\*\*(.+?)\*\*|\*(.+?)\*", say, text)


def paragraphs(words: str) -> str:
    """Words with empty lines between them."""
    return "".join(f"<p>{rich(part)}</p>" for part in re.split(r"\n\s*\n", words.strip()) if part)


def made(
    task: dict[str, Any],
    name: str,
    question: str,
    title: str,
    hint: str,
    solution: str,
    options: Sequence[tuple[str, str]] = (),
) -> Exercise:
    """The exercise, and its page without a script."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise check.fail("name", "lower-case words with hyphens, such as 'svm-length'", repr(name))
    words_of("question", question, needed=True)
    given = {"title": title, "hint": hint, "solution": solution}
    task = {"id": name, "question": question} | task
    task |= {key: words_of(key, words) for key, words in given.items()}
    head = f": {rich(title)}" if title else ""
    parts = [f'<p class="al-ask-head"><strong>Exercise{head}</strong></p>']
    parts.append(f'<div class="al-ask-question">{paragraphs(question)}</div>')
    if options:
        kind = "ol" if task["kind"] == "false_line" else "ul"
        items = "".join(f'<li data-option="{key}"><span>{rich(words)}</span></li>'
                        for key, words in options)  # fmt: skip
        parts.append(f'<{kind} class="al-ask-options">{items}</{kind}>')
    for part, words in (("hint", hint), ("solution", solution)):
        if words:
            parts.append(
                f'<details class="al-ask-{part}"><summary>{part.capitalize()}</summary>'
                f"{paragraphs(words)}</details>"
            )
    return Exercise(task, "".join(parts))
