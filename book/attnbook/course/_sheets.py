"""The pages of ``attnlab course mark``."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from attnbook.course._marking import Answer, Given
from attnbook.course._prose import render
from attnbook.course._rubric import Item, Rubric
from attnbook.course._source import fill, variant

if TYPE_CHECKING:
    from attnbook.course._desk import Desk, View

KEYS = (
    ("1 to 9", "give a mark; again: less of it, then nothing"),
    ("a", "all marks"),
    ("0", "nothing for what is not decided"),
    ("Enter", "nothing for what is not decided, and on to the next that is open"),
    ("n →, p ←", "next, previous"),
    ("c", "comment; Esc leaves it, Ctrl Enter goes on"),
    ("m, t", "model answer; the text of the problem"),
    ("h", "home"),
)
NO_MATHJAX = (
    "Formulas stand as TeX, because MathJax was not found. It comes with the instructor archive "
    "and with a built book, or by <code>pip install sphinx-mathjax-offline</code>."
)


def sheet(desk: Desk, title: str, body: str) -> str:
    """A page of this server."""
    base = desk.address()
    math = f' data-mathjax="{base}mathjax/tex-mml-chtml.js"' if desk.mathjax else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)} · {escape(desk.course.name)}</title>"
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><link rel="stylesheet" href="{base}marking.css">'
        f'<script src="{base}marking.js" defer></script></head>'
        f'<body data-base="{base}"{math}>{body}</body></html>\n'
    )


def top(desk: Desk, words: str, done: int, most: int, word: str = "marked") -> str:
    """Where one is, and how far."""
    return (
        f'<header><nav aria-label="Course"><a href="{desk.address()}" data-key="h">'
        f"{escape(desk.course.name)}</a></nav><span>{words}</span>"
        f'<span class="far"><progress value="{done}" max="{max(1, most)}" '
        f'aria-label="answers {word}"></progress> <span id="far">{done}</span> of {most} {word}'
        "</span></header>"
    )


def refusal(desk: Desk, words: str) -> str:
    """Where something is not as it should be."""
    home = f'<p><a href="{desk.address()}">Back to the list</a></p>'
    return sheet(desk, "Stop", f"<main><h1>Stop</h1><p>{escape(words)}</p>{home}</main>")


def link(desk: Desk, answer: Answer, words: str, settle: bool = False, more: str = "") -> str:
    """To an answer's page."""
    return f'<a href="{escape(desk.address(answer, settle))}"{more}>{words}</a>'


def called(view: View, answer: Answer) -> str:
    """Whose answer it is, as far as the marker wants to know."""
    one = view.names.get(answer.student)
    if one is None:
        return escape(answer.alias)
    return escape(f"{one.first_name} {one.last_name}".strip() or one.id)


# -- the list ----------------------------------------------------------------------------------
def overview(desk: Desk, view: View) -> str:
    """Problems, and what there is to do."""
    done = sum(map(view.done, view.queue))
    parts = [top(desk, f"marked by {escape(desk.marker)}", done, len(view.queue)), "<main>"]
    parts.append("<h1>Answers in words</h1>")
    first = view.after(None)
    if not view.answers:
        parts.append("<p>No verdicts yet: <code>attnlab course grade</code> comes first.</p>")
    elif first:
        words = "Go on" if done else "Begin"
        more = ' class="go" data-key="Enter"'
        parts.append(f"<p>{link(desk, first, f'{words} <kbd>Enter</kbd>', more=more)}</p>")
    else:
        parts.append(
            "<p><strong>All is marked.</strong> Now: <code>attnlab course report</code></p>"
        )
    if left := desk.course.unmarked():
        words = f"{left} submissions have no verdict, or changed since they got one"
        parts.append(f"<p class='told'>{words}: <code>attnlab course grade</code></p>")
    heads = ("problem", "open", "marked by you", "changed since", "blank", "answers", "points")
    parts.append('<div class="wide" tabindex="0" role="group" aria-label="Problems"><table><tr>')
    parts += [f'<th scope="col">{head}</th>' for head in heads]
    parts.append("</tr>")
    for (name, problem), (one, _) in desk.schemes.items():
        every = [a for a in view.answers.values() if (a.name, a.problem) == (name, problem)]
        mine = [a for a in view.queue if a in every]
        todo = [a for a in mine if not view.done(a)]
        title = escape(one.title)
        if mine:
            title = link(desk, (todo or mine)[0], title)
        changed = sum(view.old(a) is not None for a in mine)
        empty = sum(a.blank for a in every)
        cells = (len(todo), len(mine) - len(todo), changed, empty, len(every), one.points)
        head = f"<small>{escape(desk.titles[name])}</small><br>" if len(desk.titles) > 1 else ""
        head += title
        told = "".join(f"<td>{cell:g}</td>" if cell else "<td>–</td>" for cell in cells)
        parts.append(f'<tr><th scope="row">{head}</th>{told}</tr>')
    parts.append("</table></div>")
    parts.append("<p class='told'>Blank answers have 0 by themselves.")
    if view.typed:
        parts.append(f" {len(view.typed)} marks stand in by-hand.csv and go first.")
    parts.append("</p>" + others(desk, view))
    blank = [a for a in view.answers.values() if a.blank]
    if blank:
        told = "".join(
            f"<li>{escape(a.problem)}: {link(desk, a, called(view, a))}</li>" for a in blank
        )
        why = "If somebody answered in another cell, mark it here all the same."
        parts.append(
            f"<details><summary>Blank answers</summary><p>{why}</p><ul>{told}</ul></details>"
        )
    parts.append(keys(KEYS[-1:]) + "</main>")
    return sheet(desk, "Answers in words", "".join(parts))


def others(desk: Desk, view: View) -> str:
    """What other markers have done, and where they differ."""
    told = []
    for who, marks in view.marks.marks.items():
        if who != desk.marker:
            told.append(f"{escape(who)} has marked {sum(one.done for one in marks.values())}")
    if not told:
        return ""
    found = view.differing()
    left = sum(map(view.waits, found))
    where = f'<a href="{desk.address()}differ">where markers differ</a>'
    return f"<p>{', '.join(told)}. {left} to settle: {where}.</p>"


def differences(desk: Desk, view: View) -> str:
    """Where markers differ."""
    found = view.differing()
    left = sum(map(view.waits, found))
    head = top(desk, "where markers differ", len(found) - left, len(found), "settled")
    parts = [head, "<main>"]
    parts.append("<h1>Where markers differ</h1>")
    if not found:
        parts.append("<p>Nowhere, among the answers that more than one of you has marked.</p>")
    else:
        told = "It counts as open until it is settled."
        parts.append(f"<p>An answer opens with all marks beside it. {told}</p><ul class='list'>")
        for one in found:
            marks = view.marks.of(one, view.scheme(one)).items()
            words = ", ".join(f"{escape(who)} {given.points:g}" for who, given in marks)
            result = view.marks.outcome(one, view.scheme(one))
            end = "" if result.waits else f": settled, {result.points:g}"
            more = "" if view.after(None, True) is not one else ' data-key="Enter"'
            told = link(desk, one, called(view, one), True, more)
            parts.append(f"<li>{escape(one.problem)}, {told}: {words}{end}</li>")
        parts.append("</ul>")
    parts.append(keys((("Enter", "the first that is not settled"), KEYS[-1])) + "</main>")
    return sheet(desk, "Where markers differ", "".join(parts))


# -- one answer --------------------------------------------------------------------------------
def answer(desk: Desk, view: View, one: Answer, settle: bool) -> str:
    """An answer beside its rubric."""
    problem, scheme = desk.schemes[one.name, one.problem][0], view.scheme(one)
    values = variant(problem, one.name, desk.course.seed_of(one.student))
    line, word = view.line(one, settle), "settled" if settle else "marked"
    at = line.index(one) if one in line else -1
    where = f"{escape(desk.titles[one.name])} · {escape(problem.title)}"
    parts = [top(desk, where, view.finished(line, settle), len(line), word)]
    parts.append('<main class="desk">')
    parts.append(f'<section class="answer"><h1>{called(view, one)}</h1>')
    told = f"Answer {at + 1} of {len(line)}" if at >= 0 else "An answer that is not in the queue"
    parts.append(f"<p class='told'>{told}</p>")
    if one.place in view.typed:
        words = f"by-hand.csv says {view.typed[one.place]:g}, and that goes first"
        parts.append(f"<p class='note'>{words}: what is marked here does not count.</p>")
    shown = render(one.text) if one.text.strip() else "<p class='told'>Nothing was written.</p>"
    parts.append(f'<div class="prose" id="prose">{shown}</div>')
    if not desk.mathjax:
        parts.append(f"<p class='told'>{NO_MATHJAX}</p>")
    typed = f"<pre>{escape(one.text)}</pre>"
    where = f"submitted/{one.student}/{one.name}/{one.name}.ipynb"
    folds = [
        ("As it was typed", typed, ""),
        ("The problem", render(fill(problem.text, values)), "t"),
        ("Model answer", render(scheme.answer), "m"),
        ("Whose it is", f"<p>{escape(one.student)}: <code>{escape(where)}</code></p>", ""),
    ]
    for head, body, key in folds:
        kbd = f" <kbd>{key}</kbd>" if key else ""
        fold = f' data-fold="{key}" class="ours"' if key else ""
        parts.append(f"<details{fold}><summary>{head}{kbd}</summary><div>{body}</div></details>")
    parts.append("</section>" + marks(desk, view, one, scheme, settle))
    parts.append("</main>")
    return sheet(desk, f"{one.alias}, {one.problem}", "".join(parts))


def marks(desk: Desk, view: View, one: Answer, scheme: Rubric, settle: bool) -> str:
    """The rubric, with what was given so far."""
    most = sum(scheme.shape)
    old = None if settle else view.old(one)
    settled = view.marks.settlement(one, scheme)
    now = (settled if settle else view.own(one)) or Given([None] * len(scheme.items))
    about = {"set": one.name, "problem": one.problem, "who": one.alias.replace(" ", "-")}
    data = "".join(f' data-{key}="{escape(word)}"' for key, word in about.items())
    data += f' data-of="{one.of}" data-most="{most:g}"' + (' data-settle="1"' if settle else "")
    parts = [f'<form class="rubric ours" aria-label="Marks"{data}><h2>Marks</h2>']
    if settle:
        parts.append(both(view, one, scheme))
    if old:
        parts.append(f"<p class='note'>{before(old, scheme)}</p>")
    if scheme.note:
        parts.append(render(scheme.note))
    for k, item in enumerate(scheme.items):
        parts.append(row(k, item, now.items[k]))
    value = "" if now.otherwise is None else f"{now.otherwise:g}"
    parts.append(
        f'<label for="comment">Comment, for the student <kbd>c</kbd></label>'
        f'<textarea id="comment" rows="3" maxlength="4000">{escape(now.comment)}</textarea>'
        f'<label class="else">Other points than the sum <input id="otherwise" '
        f'inputmode="decimal" size="3" autocomplete="off" value="{value}"></label> '
        '<button type="button" data-do="clear">Clear</button>'
    )
    parts.append(
        '<div class="act"><output id="sum"></output>'
        '<button type="button" data-do="done" class="go">Done, next <kbd>Enter</kbd></button>'
        '<button type="button" data-do="all">All <kbd>a</kbd></button>'
        '<button type="button" data-do="rest">Rest 0 <kbd>0</kbd></button>'
        '<p id="said" role="status"></p></div>'
    )
    return "".join(parts) + steps(desk, view, one, settle) + keys(KEYS) + "</form>"


def row(k: int, item: Item, given: float | None) -> str:
    """One item: its words, and a button for each level."""
    told = []
    for level in reversed(item.levels):
        words = item.told.get(level, "")
        more = f" <span>{render_line(words)}</span>" if words else ""
        on = " checked" if given == level else ""
        told.append(
            f'<label><input type="radio" name="item{k}" value="{level:g}"{on}>'
            f"<b>{level:g}</b>{more}</label>"
        )
    return (
        f'<fieldset data-item="{k}"><legend><kbd>{k + 1}</kbd> {render_line(item.words)}</legend>'
        f'<div class="levels">{"".join(told)}</div></fieldset>'
    )


def render_line(words: str) -> str:
    """Words without a paragraph around them."""
    return render(words).removeprefix("<p>").removesuffix("</p>")


def before(old: Given, scheme: Rubric) -> str:
    """What this marker gave to an earlier version."""
    items = ", ".join("open" if item is None else f"{item:g}" for item in old.items)
    told = f"This is new since you marked it. Before: {old.points:g} ({items})"
    if old.shape != scheme.shape:
        told = f"The scheme is new since you marked this. Before: {old.points:g} ({items})"
    return escape(told + (f", “{old.comment}”" if old.comment else "") + ".")


def both(view: View, one: Answer, scheme: Rubric) -> str:
    """All marks of an answer, to be taken or not."""
    told = []
    for who, given in view.marks.of(one, scheme).items():
        items = ", ".join("–" if item is None else f"{item:g}" for item in given.items)
        values = ",".join("" if item is None else f"{item:g}" for item in given.items)
        other = "" if given.otherwise is None else f"{given.otherwise:g}"
        words = f"<q>{escape(given.comment)}</q>" if given.comment else ""
        told.append(
            f"<li><strong>{escape(who)}: {given.points:g}</strong> ({items}) {words} "
            f'<button type="button" data-take="{values}" data-otherwise="{other}" '
            f'data-comment="{escape(given.comment)}">Take {escape(who)}’s</button></li>'
        )
    return f"<ul class='list'>{''.join(told)}</ul>"


def steps(desk: Desk, view: View, one: Answer, settle: bool) -> str:
    """To the answers before and after."""
    line = view.differing() if settle else view.queue
    at = line.index(one) if one in line else -1
    parts = []
    if at > 0:
        parts.append(link(desk, line[at - 1], "← previous", settle, ' data-key="p"'))
    if 0 <= at < len(line) - 1:
        parts.append(link(desk, line[at + 1], "next →", settle, ' data-key="n"'))
    return f'<nav class="steps" aria-label="Answers">{" ".join(parts)}</nav>'


def keys(which: tuple[tuple[str, str], ...]) -> str:
    """What keys do, and a switch for them."""
    told = "".join(f"<dt><kbd>{escape(key)}</kbd></dt><dd>{escape(w)}</dd>" for key, w in which)
    return (
        f"<details><summary>Keys</summary><dl>{told}</dl>"
        '<label><input type="checkbox" id="keys" checked> keys are on</label></details>'
    )
