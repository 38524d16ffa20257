"""When a set is due, for whom, in which zone; and what it costs to be late.

Times without an offset are of the zone that their platform writes in (`zones` of course.json),
else of the course's own (`zone`). A time that a clock shows twice is read in the student's favour.
Where the course has no zone, times are compared as they are written.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from attnbook.course._source import SETS
from attnbook.course._tables import replace, table
from attnlab import checks as check

if TYPE_CHECKING:
    from attnbook.course._course import Course

EXTENSIONS = "extensions.csv"
COLUMNS = ("student", "set", "until")
PLATFORMS = ("moodle", "canvas")
UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
POLICY = re.compile(
    r"(\d+(?:\.\d+)?)\s*(%?)\s*/\s*(hour|day|week)(?:\s*,\s*max\s*(\d+)(\s*,\s*then\s*0)?)?"
)
NONE = "none"  # takes an extension back


# -- clocks ------------------------------------------------------------------------------------
def zone_named(name: str, where: str) -> tzinfo | None:
    """``Europe/Berlin``, or an offset such as ``+02:00``; nothing where empty."""
    if not name:
        return None
    if found := re.fullmatch(r"([+-])(\d\d):?(\d\d)", name):
        ahead = timedelta(hours=int(found[2]), minutes=int(found[3]))
        if ahead < timedelta(hours=24):
            return timezone(ahead if found[1] == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        expected = "an IANA name such as Europe/Berlin, or an offset such as +02:00"
        raise check.fail(where, expected, name) from None


@dataclass(frozen=True)
class Clock:
    """How times are read: as they are written, or as moments, each with an offset of its own."""

    zone: tzinfo | None = None
    platforms: dict[str, tzinfo] = field(default_factory=dict)

    def read(self, when: datetime, platform: str = "", exact: float | None = None) -> datetime:
        """When something came: ``when`` as it is written, ``exact`` in seconds where known."""
        if self.zone is None:
            return when.replace(tzinfo=None)
        if exact is not None:
            return self.here(datetime.fromtimestamp(exact, UTC))
        zone = self.platforms.get(platform.casefold(), self.zone)
        return self.here(min(moments(when, zone)))

    def limit(self, when: datetime) -> datetime:
        """A time by which something is due."""
        if self.zone is None:
            return when
        return self.here(max(moments(when, self.zone)))

    def here(self, when: datetime) -> datetime:
        """On the course's clock; its offset stays with it, so that moments can be compared."""
        there = when.astimezone(self.zone)
        return there.replace(tzinfo=timezone(there.utcoffset() or timedelta(0)), fold=0)


def moments(when: datetime, zone: tzinfo) -> list[datetime]:
    """What a time can mean: two moments an hour apart, where the clock is changed."""
    if when.tzinfo is not None:
        return [when.astimezone(UTC)]
    return [when.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]


# -- what lateness costs -----------------------------------------------------------------------
@dataclass(frozen=True)
class Late:
    """By how much something is late: 0 where only the platform's word says so."""

    passed: timedelta  # what has passed
    shown: timedelta  # what the course's clock says has passed

    def __str__(self) -> str:
        if not self.passed:
            return "late by the platform's word, by how much is not known"
        minutes = math.ceil(self.passed / timedelta(minutes=1))
        days, hours, left = minutes // 1440, minutes // 60 % 24, minutes % 60
        words = [(days, "day"), (hours, "hour"), (left, "minute")]
        told = [f"{n} {word}{'s' * (n > 1)}" for n, word in words if n]
        return f"{' '.join(told[:2])} late"


@dataclass(frozen=True)
class Policy:
    """``10%/day,max 3,then 0``: what is taken from a set's points for each unit that has begun."""

    rate: float
    share: bool  # of what was earned; points otherwise
    unit: str
    most: int | None = None  # units; later costs no more
    then: bool = False  # later than that earns nothing

    def lost(self, points: float, late: Late) -> float:
        """Of points that were earned."""
        if not late.passed:
            return 0.0
        wait = late.passed if self.unit == "hour" else late.shown  # a day may have 25 hours
        units = max(1, math.ceil(wait / UNITS[self.unit]))
        if self.most is not None and units > self.most:
            if self.then:
                return points
            units = self.most
        return min(points, units * self.rate * (points / 100 if self.share else 1.0))


def policy(words: str) -> Policy | None:
    """From the grammar ``RATE[%]/hour|day|week[,max N[,then 0]]``; none where empty."""
    if not words.strip():
        return None
    found = POLICY.fullmatch(words.strip())
    if not found:
        raise check.fail("late", "RATE%/day, such as 10%/day,max 3 or 2/hour,max 5,then 0", words)
    most = int(found[4]) if found[4] else None
    return Policy(float(found[1]), bool(found[2]), found[3], most, bool(found[5]))


def well_ruled(course: Course) -> None:
    """Refuse rules that are none, and to drop all sets there are."""
    zone_named(course.zone, "zone")
    policy(course.late)
    if not 0 <= course.drop < max(1, len(course.sets)):
        raise check.fail("drop", f"a number from 0 to {len(course.sets) - 1}", course.drop)


# -- a course's --------------------------------------------------------------------------------
@dataclass(frozen=True)
class Deadlines:
    """All that a course says about time, read once."""

    clock: Clock
    due: dict[str, datetime]
    extensions: dict[tuple[str, str], datetime]

    def late(self, student: str, name: str, when: datetime, word: bool) -> Late | None:
        """By how much; none where it came in time. An extension outweighs the platform's word."""
        more = self.extensions.get((student, name))
        limits = [one for one in (self.due.get(name), more) if one is not None]
        if limits and when > (limit := max(limits)):
            shown = when.replace(tzinfo=None) - limit.replace(tzinfo=None)
            return Late(when - limit, shown)
        return Late(timedelta(0), timedelta(0)) if word and more is None else None


def clock_of(course: Course) -> Clock:
    """How a course reads times."""
    path = course.place / "course.json"
    told = json.loads(path.read_text("utf-8")).get("zones", {}) if path.is_file() else {}
    zone = zone_named(course.zone, "zone")
    odd = sorted(set(told) - set(PLATFORMS))
    if odd or (told and zone is None):
        expected = f"some of {', '.join(PLATFORMS)}" if odd else "a zone of the course as well"
        raise check.fail("zones in course.json", expected, odd or "none")
    platforms = {key: zone_named(str(name), f"zone of {key}") for key, name in told.items()}
    return Clock(zone, {key: one for key, one in platforms.items() if one is not None})


def deadlines(course: Course) -> Deadlines:
    """Due dates and extensions of a course."""
    clock = clock_of(course)
    long = {short: SETS.get(short, short) for short in course.due()}
    due = {long[key]: moment(f"due of {key}", when, clock) for key, when in course.due().items()}
    given = {}
    for number, row in enumerate(extended(course), 2):
        where = f"{EXTENSIONS}, line {number}"
        if row["set"] not in course.folders:
            raise check.fail(where, f"a set of {', '.join(course.folders)}", row["set"])
        given[row["student"], row["set"]] = moment(where, row["until"], clock)
    return Deadlines(clock, due, given)


def moment(where: str, words: str, clock: Clock) -> datetime:
    """A due date as it was written; a date alone is the end of that day."""
    try:
        when = datetime.fromisoformat(words.strip())
    except ValueError:
        raise check.fail(where, "an ISO date such as 2027-10-04T23:59", words) from None
    if re.fullmatch(r"[\d-]+|\d{4}-W\d\d-?\d", words.strip()):
        when += timedelta(days=1, microseconds=-1)
    if when.tzinfo is not None and clock.zone is None:
        raise check.fail(where, "a zone in course.json, to compare an offset with", words)
    return clock.limit(when)


def extended(course: Course) -> list[dict[str, str]]:
    """The table of extensions."""
    path = course.place / EXTENSIONS
    rows = table(path) if path.is_file() else []
    if rows and set(COLUMNS) - set(rows[0]):
        raise check.fail(EXTENSIONS, f"the columns {', '.join(COLUMNS)}", sorted(rows[0]))
    return rows


def extend(course: Course, student: str, name: str, until: str) -> datetime | None:
    """Give a student more time for a set, or take it back with ``none``."""
    if student not in {one.id for one in course.students()}:
        raise check.fail("id", "a student of the roster", student)
    before = deadlines(course)
    when = None if until == NONE else moment("when", until, before.clock)
    due = before.due.get(name)
    if when is not None and due is not None and when <= due:
        raise check.fail("when", f"a time after the due date, {due.isoformat()}", until)
    rows = [row for row in extended(course) if (row["student"], row["set"]) != (student, name)]
    if when is not None:
        rows.append(dict(zip(COLUMNS, (student, name, until), strict=True)))
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda row: (row["student"], row["set"])))
    replace(course.place / EXTENSIONS, out.getvalue())
    return when
