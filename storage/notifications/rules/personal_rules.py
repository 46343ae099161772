"""Personal rules: which contact methods of a person are notified of a page, and when.

Invariants: severity `page` is never delayed by quiet hours. A person with a usable method is
notified by at least one. A delayed method is never earlier than its delay. Quiet hours follow the
wall clock of the person's zone: a notification that falls into them is sent at the first later
instant at which the clock shows a time outside them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from ...core.instant import MINUTE, SECOND, Instant, is_timezone, to_datetime

DAY_MINUTES: Final = 1_440
RULES_MOST: Final = 20
DELAY_SECONDS: Final = (0, 86_400)
# Severities of a notification, by the impact of its incident.
_URGENT: Final = frozenset({"major", "critical"})


class Urgency(StrEnum):
    """Severity that personal rules distinguish: `page` for the impacts major and critical."""

    PAGE = "page"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class PersonalRule:
    """Notification of a contact method (its key) after a delay."""

    method: int
    delay_seconds: int


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Minutes [from_minute, until_minute) of the local day. The end can be on the next day."""

    from_minute: int
    until_minute: int
    zone: str


@dataclass(frozen=True, slots=True)
class PersonalRules:
    """Rules of a person. `methods` are the usable ones: verified and enabled, in their order."""

    methods: Sequence[int]
    rules: Mapping[Urgency, Sequence[PersonalRule]]
    quiet: QuietHours | None = None


@dataclass(frozen=True, slots=True)
class PlannedNotification:
    method: int
    at: Instant


def urgency_of(severity: str) -> Urgency:
    """Returns the urgency of a notification with the severity of an incident's impact."""
    return Urgency.PAGE if severity in _URGENT else Urgency.TICKET


def is_low(severity: str) -> bool:
    """Returns whether a notification of this severity can wait."""
    return urgency_of(severity) is Urgency.TICKET


def planned_notifications(
    person: PersonalRules, urgency: Urgency, now: Instant
) -> list[PlannedNotification]:
    """Returns the notifications of a page that begins now, each method once, in order of time.

    Without a rule for a usable method, all usable methods are notified at once.
    """
    usable = list(dict.fromkeys(person.methods))
    delays: dict[int, int] = {}
    for rule in person.rules.get(urgency, ()):
        if rule.method in usable:
            delays[rule.method] = min(rule.delay_seconds, delays.get(rule.method, DELAY_SECONDS[1]))
    if not delays:
        delays = dict.fromkeys(usable, 0)
    quiet = None if urgency is Urgency.PAGE else person.quiet
    planned = [
        PlannedNotification(method, after_quiet(quiet, Instant(now + delay * SECOND)))
        for method, delay in delays.items()
    ]
    return sorted(planned, key=lambda one: one.at)


def after_quiet(quiet: QuietHours | None, at: Instant) -> Instant:
    """Returns the first instant from `at` on that is outside the quiet hours."""
    if quiet is None or not is_quiet(quiet, at):
        return at
    left = (quiet.until_minute - _minute_of(quiet, at)) % DAY_MINUTES
    # Zones change their offset by whole minutes, so that the local minute begins here.
    begin = at - at % MINUTE
    end = Instant(begin + left * MINUTE)
    if _offset(quiet, at) == _offset(quiet, end):
        return end
    # The clocks change during the quiet hours: look at each minute.
    found = begin
    while is_quiet(quiet, Instant(found)):
        found += MINUTE
    return Instant(found)


def is_quiet(quiet: QuietHours, at: Instant) -> bool:
    minute = _minute_of(quiet, at)
    if quiet.from_minute <= quiet.until_minute:
        return quiet.from_minute <= minute < quiet.until_minute
    return minute >= quiet.from_minute or minute < quiet.until_minute


def quiet_fault(quiet: QuietHours) -> tuple[str, str] | None:
    """Returns the first invalid field and its rule."""
    for name, minute in (("from", quiet.from_minute), ("until", quiet.until_minute)):
        if not 0 <= minute < DAY_MINUTES:
            return f"quiet_hours.{name}", "must be a time from 00:00 to 23:59"
    if quiet.from_minute == quiet.until_minute:
        return "quiet_hours.until", "must differ from the start"
    if not quiet.zone or not is_timezone(quiet.zone):
        return "quiet_hours.time_zone", "must be an IANA time zone such as Europe/Berlin"
    return None


def rules_fault(rules: Sequence[PersonalRule], known: Collection[int]) -> tuple[str, str] | None:
    """Returns the first invalid field, within the rules of a severity, and its rule."""
    if len(rules) > RULES_MOST:
        return "", f"must have at most {RULES_MOST} entries"
    for index, rule in enumerate(rules):
        if rule.method not in known:
            return f"[{index}].method_id", "must be a contact method of yours"
        if not DELAY_SECONDS[0] <= rule.delay_seconds <= DELAY_SECONDS[1]:
            least, most = DELAY_SECONDS
            return f"[{index}].delay_seconds", f"must be {least} to {most} seconds"
    if len({rule.method for rule in rules}) < len(rules):
        return "", "must not name a contact method twice"
    return None


def _minute_of(quiet: QuietHours, at: Instant) -> int:
    local = to_datetime(at).astimezone(_zone(quiet.zone))
    return local.hour * 60 + local.minute


def _offset(quiet: QuietHours, at: Instant) -> timedelta | None:
    return to_datetime(at).astimezone(_zone(quiet.zone)).utcoffset()


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
