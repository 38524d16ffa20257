"""Numbers in a page's words come from its cells."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from attnlab import checks as check

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PREFIX = "application/papermill.record/"  # as myst_nb's `glue` marks what no reader sees
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def tell(name: str, value: object, form: str = "") -> None:
    r"""Give a number of this cell to the words of the page, under a name.

    The words say ``{glue:text}`svm-norm:.2f` ``, or ``{glue:text}`svm-norm` `` where ``form`` is
    given here. In a notebook nothing is shown.

    Args:
        name: lower-case words with hyphens, once on a page.
        value: a finite number, or words.
        form: how a number is written, such as ``".2f"``, ``".1%"``; ``".1e"`` gives 3.2 · 10⁻⁷.

    Returns:
        Nothing.

    Examples:
        >>> from attnbook import widgets
        >>> widgets.tell("demo-angle", 43.21)  # the page's words then say it
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise check.fail("name", "lower-case words with hyphens, such as 'svm-norm'", repr(name))
    shown = value if isinstance(value, str) else number(value)
    if form and not isinstance(shown, str):
        shown = written(shown, form)
    data, mark = {f"{PREFIX}text/plain": repr(shown)}, {"name": name, "mime_prefix": PREFIX}
    publish(data, {"scrapbook": mark})


def number(value: object) -> float | int:
    """A number that Python writes as one: arrays without axes, and NumPy's own."""
    plain: Any = value.item() if isinstance(value, np.ndarray | np.generic) else value
    check.number("value", plain)
    return plain  # type: ignore[no-any-return]


def written(value: float, form: str) -> str:
    """A number as words; powers of ten as people write them."""
    try:
        text = format(value, form)
    except ValueError:
        raise check.fail("form", "how a number is written, such as '.2f'", repr(form)) from None
    text = text.replace("%", " %").replace("-", "−")
    found = re.fullmatch(r"(.+)e([+−])0*(\d*)", text)
    if not found:
        return text
    power = ("-" if found[2] == "−" else "") + (found[3] or "0")
    return f"{found[1]} · 10{power.translate(RAISED)}"


def publish(data: dict[str, str], metadata: dict[str, Any]) -> None:
    """To the page's kernel, where there is one."""
    try:
        from IPython.core.getipython import get_ipython
        from IPython.display import publish_display_data
    except ModuleNotFoundError:
        return
    if get_ipython() is not None:
        publish_display_data(data, metadata)  # type: ignore[no-untyped-call]
