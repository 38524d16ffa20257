"""What marks say about problems: distributions, difficulty, discrimination."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape

from attnbook.course._grade import Mark, Verdict
from attnbook.course._source import ProblemSet

ENOUGH = 10  # submissions
READ = (
    "<b>Difficulty</b> is the mean share of the points: 1 where everybody has all of them, 0 where "
    "nobody has any. <b>Discrimination</b> is the correlation of a problem's points with the share "
    "of all other points of the set, with its 95 % interval: above 0.3 those who do well elsewhere "
    "do well here; near 0 the problem tells nothing about them; where it is below 0, look at the "
    "problem and its tests before you look at the students. Blank answers count as 0, and answers "
    "that wait for a person do not count."
)

WAYS = ((1, 0), (-1, 0), (0, -1), (0, 1), (0.8, -0.8), (-0.8, -0.8), (0.8, 0.8), (-0.8, 0.8))
Waits = Callable[[Mark], bool]


@dataclass
class Statistic:
    """Of one problem."""

    number: int
    title: str
    count: int  # submissions in which it is marked
    difficulty: float | None = None
    discrimination: float | None = None
    interval: tuple[float, float] = (-1.0, 1.0)


def share(marks: list[Mark], waits: Waits) -> float | None:
    """Of the points of what is marked; None where nothing is."""
    done = [mark for mark in marks if not waits(mark)]
    most = sum(mark.most for mark in done)
    return sum(mark.points for mark in done) / most if most else None


def correlation(pairs: list[tuple[float, float]]) -> tuple[float, tuple[float, float]] | None:
    """Pearson's, with Fisher's interval; None where one side does not vary."""
    n = len(pairs)
    means = [sum(side) / n for side in zip(*pairs, strict=True)]
    a, b = ([pair[k] - means[k] for pair in pairs] for k in (0, 1))
    squares = sum(x * x for x in a), sum(x * x for x in b)
    if min(squares) < 1e-12 * n:
        return None
    found = sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(squares[0] * squares[1])
    middle = math.atanh(max(-1 + 1e-12, min(1 - 1e-12, found)))
    wide = 1.96 / math.sqrt(n - 3)
    return found, (math.tanh(middle - wide), math.tanh(middle + wide))


def statistics(source: ProblemSet, some: list[Verdict], waits: Waits) -> list[Statistic]:
    """Of all problems of a set; without numbers where there are too few marks."""
    found = []
    for k, one in enumerate(source.problems):
        pairs: list[tuple[float, float]] = []
        own: list[float] = []
        for verdict in some:
            mark = verdict.marks[k]
            if waits(mark) or not mark.most:
                continue
            own.append(mark.points / mark.most)
            rest = share([other for other in verdict.marks if other is not mark], waits)
            if rest is not None:
                pairs.append((own[-1], rest))
        entry = Statistic(k + 1, one.title, len(own))
        if len(own) >= ENOUGH:
            entry.difficulty = sum(own) / len(own)
            told = correlation(pairs) if len(pairs) >= ENOUGH else None
            if told:
                entry.discrimination, entry.interval = told
        found.append(entry)
    return found


def cells(one: Statistic) -> list[str]:
    """For a table: difficulty, discrimination, how many."""
    if one.difficulty is None:
        return ["too few", "too few", str(one.count)]
    told = "all alike"
    if one.discrimination is not None:
        low, high = one.interval
        told = f"{number(one.discrimination)} ({number(low)} to {number(high)})"
    return [number(one.difficulty), told, str(one.count)]


def number(value: float) -> str:
    """With two digits and a proper minus."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def plot(found: list[Statistic]) -> str:
    """Problems by difficulty and discrimination, numbered as in the table."""
    dots = [
        (one, one.difficulty, one.discrimination)
        for one in found
        if one.difficulty is not None and one.discrimination is not None
    ]
    if not dots:
        few = all(one.difficulty is None for one in found)
        told = f"too few: it takes {ENOUGH} submissions" if few else "no problem's points vary"
        return f"<p class='told'>Difficulty and discrimination are not drawn: {told}.</p>"
    least = min(-0.2, *(value for _, _, value in dots))
    wide, high = 420, 240

    def place(x: float, y: float) -> tuple[float, float]:
        return 46 + wide * x, 12 + high * (1 - y) / (1 - least)

    out = []
    for x in (0, 0.25, 0.5, 0.75, 1):
        left, low = place(x, least)
        out.append(f'<text x="{left:.1f}" y="{low + 16:.1f}" text-anchor="middle">{x:g}</text>')
    for y in (0, 0.5, 1):
        left, low = place(0, y)
        out.append(f'<path d="M{left:.1f} {low:.1f}h{wide}" class="rule"/>')
        out.append(f'<text x="{left - 8:.1f}" y="{low + 4:.1f}" text-anchor="end">{y:g}</text>')
    for _, x, y in dots:
        left, low = place(x, y)
        out.append(f'<circle cx="{left:.1f}" cy="{low:.1f}" r="3.5"/>')
    out += numbers([(str(one.number), *place(x, y)) for one, x, y in dots])
    out.append(f'<text x="{46 + wide / 2}" y="{high + 46}" text-anchor="middle">difficulty</text>')
    out.append(
        f'<text transform="translate(12 {12 + high / 2}) rotate(-90)" text-anchor="middle">'
        "discrimination</text>"
    )
    words = "; ".join(f"{one.number} at {number(x)}, {number(y)}" for one, x, y in dots)
    told = f"problems by difficulty and discrimination: {words}"
    return (
        f'<svg viewBox="0 0 490 292" width="560" role="img" aria-label="{escape(told)}">'
        + "".join(out)
        + "</svg>"
    )


def numbers(dots: list[tuple[str, float, float]]) -> Iterator[str]:
    """A number beside each dot; where there is no room, further off with a line to it."""
    taken = [(x, y) for _, x, y in dots]
    for told, x, y in dots:
        around = [(x + far * a, y + far * b) for far in (11, 17, 24, 32, 42) for a, b in WAYS]
        others = [spot for spot in taken if spot != (x, y)]
        free = (
            (a, b) for a, b in around if all(abs(a - c) > 13 or abs(b - d) > 9 for c, d in others)
        )
        spot = next(free, around[0])
        taken.append(spot)
        if math.dist(spot, (x, y)) > 18:
            yield f'<path d="M{x:.1f} {y:.1f}L{spot[0]:.1f} {spot[1]:.1f}" class="lead"/>'
        yield f'<text x="{spot[0]:.1f}" y="{spot[1] + 4:.1f}" text-anchor="middle">{told}</text>'


def histogram(scores: list[tuple[float, bool]], most: float) -> str:
    """Submissions by tenths of what is marked; those with answers that wait are drawn light."""
    if not scores:
        return "<p class='told'>Nothing handed in.</p>"
    whole, part = [0] * 10, [0] * 10
    for value, waits in scores:
        (part if waits else whole)[min(9, int(10 * value + 1e-9))] += 1
    both = [a + b for a, b in zip(whole, part, strict=True)]
    tall, left = max(both), sum(part)
    values = sorted(value for value, _ in scores)
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    words = f"{len(scores)} submissions, median {100 * middle:.0f} % "
    words += "of the points that are marked" if left else f"of {most:g} points"
    words += f"; by tenths: {both}"
    if left:
        words += f", of these with answers that wait: {part}"
    bars = ""
    for k, (sure, light) in enumerate(zip(whole, part, strict=True)):
        at, ends = 30 * k, (80 * sure / tall, 80 * (sure + light) / tall)
        bars += f'<rect x="{at + 4}" y="{100 - ends[0]:.1f}" width="24" height="{ends[0]:.1f}"/>'
        if light:
            bars += (
                f'<rect class="open" x="{at + 4.5}" y="{100.5 - ends[1]:.1f}" width="23" '
                f'height="{ends[1] - ends[0] - 0.5:.1f}"/>'
            )
        for y, told in ((94 - ends[1], both[k] or ""), (114, f"{10 * k}%")):
            bars += f'<text x="{at + 16}" y="{y:.1f}" text-anchor="middle">{told}</text>'
    drawn = f'<svg viewBox="0 0 308 120" width="400" role="img" aria-label="{words}">{bars}</svg>'
    if left:
        drawn += (
            f"<p class='told'>Light: {left} of {len(scores)} submissions have answers that wait "
            "for a person. All are drawn by their share of the points that are marked.</p>"
        )
    return drawn
