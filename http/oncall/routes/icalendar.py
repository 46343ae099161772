"""A schedule as calendar software reads it: an event a duty, with an id that stays while the duty
does, from some weeks ago to half a year ahead.
"""

from typing import Final
from uuid import UUID

import trio

from ....storage.core.instant import DAY, SECOND, Instant, to_datetime
from ....storage.oncall.queries.oncall_schedules import ScheduleRoster
from ....storage.oncall.rules.oncall_schedule import Duty, stretch

BACK_US: Final = 28 * DAY
AHEAD_US: Final = 182 * DAY
# Of hourly shifts that is five weeks ahead.
EVENTS_MOST: Final = 1_500
# How often the loop is let go while one is written.
_AT_A_TIME: Final = 20
# A line has at most so many octets; what is longer goes on in the next, behind a blank.
_LINE_LONGEST: Final = 75
# What no text may hold: other controls than a line's end, which is spelt.
_CONTROLS: Final = {number: None for number in (*range(32), 127) if number != 10}
_SPELT: Final = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})


async def calendar_of(standing: ScheduleRoster, now: Instant) -> bytes:
    """The document; `standing` has all overrides that are or border on what is shown."""
    roster, overrides = standing.roster, standing.overrides
    uids = {row.id: row.uid for row in standing.override_rows}
    made = {row.id: row.created_at for row in standing.override_rows}
    events: list[bytes] = []
    at = Instant(now - BACK_US)
    while at < now + AHEAD_US and len(events) < EVENTS_MOST:
        duty = stretch(roster, overrides, at)
        at = duty.until
        if _calendar(duty.from_at) == _calendar(duty.until):
            # A moment that calendars cannot tell from none.
            continue
        uid, changed = standing.schedule.uid, standing.schedule.updated_at
        if duty.override is not None:
            uid = uids[duty.override.number]
            changed = max(changed, made[duty.override.number])
        events.append(_event(standing, duty, uid, changed))
        if len(events) % _AT_A_TIME == 0:
            await trio.lowlevel.checkpoint()
    return b"".join([_head(standing.schedule.name), *events, b"END:VCALENDAR\r\n"])


def _head(name: str) -> bytes:
    return _lines(
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Leadline//On-call//EN",
        f"X-WR-CALNAME:On call: {_text(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
        "X-PUBLISHED-TTL:PT1H",
    )


def _event(standing: ScheduleRoster, duty: Duty, uid: UUID, changed: Instant) -> bytes:
    who, schedule = _text(standing.name_of(duty.channel)), _text(standing.schedule.name)
    how, by = ("", "in turn") if duty.override is None else (" (override)", "by an override")
    return _lines(
        "BEGIN:VEVENT",
        f"UID:{uid}-{duty.from_at}@leadline",
        f"DTSTAMP:{_time(changed)}",
        f"DTSTART:{_time(duty.from_at)}",
        f"DTEND:{_time(duty.until)}",
        # Being on call leaves room for other things that day.
        "TRANSP:TRANSPARENT",
        f"SUMMARY:{who} is on call{how}",
        f"DESCRIPTION:{schedule}\\, {by}.",
        "END:VEVENT",
    )


def _text(given: str) -> str:
    """So that no name ends its line or begins another."""
    plain = given.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)
    return plain.translate(_SPELT)


def _time(at: Instant) -> str:
    return f"{to_datetime(_calendar(at)):%Y%m%dT%H%M%SZ}"


def _lines(*lines: str) -> bytes:
    return b"".join(_folded(line.encode()) for line in lines)


def _folded(line: bytes) -> bytes:
    """With its end; nothing is parted within a character."""
    parts: list[bytes] = []
    room = _LINE_LONGEST
    while len(line) > room:
        cut = room
        while line[cut] & 0xC0 == 0x80:
            cut -= 1
        parts.append(line[:cut])
        line, room = line[cut:], _LINE_LONGEST - 1
    return b"\r\n ".join([*parts, line]) + b"\r\n"


def _calendar(at: Instant) -> Instant:
    """Calendars count whole seconds; both ends of neighbours fall alike."""
    return Instant(at // SECOND * SECOND)
