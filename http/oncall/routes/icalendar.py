"""iCalendar of an on-call schedule, one event per shift.

It covers four weeks back and half a year ahead, with at most EVENTS_MOST events.

The UID of an event is stable as long as its shift is unchanged.
"""

from typing import Final
from uuid import UUID

import trio

from ....storage.core.instant import DAY, SECOND, Instant, to_datetime
from ....storage.oncall.queries.oncall_schedules import ScheduleRoster
from ....storage.oncall.rules.oncall_schedule import Duty, stretch

BACK_US: Final = 28 * DAY
AHEAD_US: Final = 182 * DAY
# Five weeks ahead for hourly shifts.
EVENTS_MOST: Final = 1_500
# Octets per line. A longer line continues in the next one, after a blank (RFC 5545).
_LINE_LONGEST: Final = 75
# Control characters except line feed, which is escaped. They are illegal in a text value.
_CONTROLS: Final = {number: None for number in (*range(32), 127) if number != 10}
_SPELT: Final = str.maketrans({"\\": "\\\\", ";": "\\;", ",": "\\,", "\n": "\\n"})


async def calendar_of(standing: ScheduleRoster, now: Instant) -> bytes:
    """Returns the calendar. `standing` has all overrides that overlap or border its range."""
    roster, overrides = standing.roster, standing.overrides
    uids = {row.id: row.uid for row in standing.override_rows}
    made = {row.id: row.created_at for row in standing.override_rows}
    events: list[bytes] = []
    at = Instant(now - BACK_US)
    while at < now + AHEAD_US and len(events) < EVENTS_MOST:
        duty = stretch(roster, overrides, at)
        at = duty.until
        await trio.lowlevel.checkpoint()
        if duty.is_gap or _calendar(duty.from_at) == _calendar(duty.until):
            # A gap is no event. A shift of the same start and end second cannot be represented.
            continue
        uid, changed = standing.schedule.uid, standing.schedule.updated_at
        if duty.override is not None:
            uid = uids[duty.override.number]
            changed = max(changed, made[duty.override.number])
        events.append(_event(standing, duty, uid, changed))
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
    how, by = ("", "rotation") if duty.override is None else (" (override)", "by an override")
    return _lines(
        "BEGIN:VEVENT",
        f"UID:{uid}-{duty.from_at}@leadline",
        f"DTSTAMP:{_time(changed)}",
        f"DTSTART:{_time(duty.from_at)}",
        f"DTEND:{_time(duty.until)}",
        # On-call time does not block other appointments.
        "TRANSP:TRANSPARENT",
        f"SUMMARY:{who} is on call{how}",
        f"DESCRIPTION:{schedule}\\, {by}.",
        "END:VEVENT",
    )


def _text(given: str) -> str:
    """Returns escaped text, so that a name cannot end its line or start a property."""
    plain = given.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)
    return plain.translate(_SPELT)


def _time(at: Instant) -> str:
    return f"{to_datetime(_calendar(at)):%Y%m%dT%H%M%SZ}"


def _lines(*lines: str) -> bytes:
    return b"".join(_folded(line.encode()) for line in lines)


def _folded(line: bytes) -> bytes:
    """Returns the line folded and terminated. No fold is inside a UTF-8 character."""
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
    """Returns whole seconds, as iCalendar has no fractions. Adjacent shifts stay adjacent."""
    return Instant(at // SECOND * SECOND)
