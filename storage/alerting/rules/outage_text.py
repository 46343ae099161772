"""Titles and bodies of the notifications of a monitor's outage."""

from typing import Final

from ...core.instant import DAY, Instant, to_datetime
from ...incidents.rules.incident import _clipped_outage_text as _clipped
from ...incidents.rules.incident import lasted

DOWN_TAIL: Final = " is down"
OPENED_BODY: Final = "Our monitoring detected a problem. We are investigating."
RECOVERED_BODY: Final = "Our monitoring shows recovery."
STAYS_DOWN_BODY: Final = "The monitor was flapping and now stays down. It is announced again."


def down_title(name: str) -> str:
    return _clipped(name, DOWN_TAIL)


def slow_title(name: str) -> str:
    return _clipped(name, " is slow")


def slow_ended_title(name: str) -> str:
    return _clipped(name, " is no longer slow")


def slow_text(latency_ms: int, above_ms: int) -> str:
    return f"The last check took {latency_ms} ms, with a threshold of {above_ms} ms."


def certificate_title(name: str, ends_at: Instant, now: Instant) -> str:
    days = max(ends_at - now, 0) // DAY
    if ends_at <= now:
        return _clipped(name, " has an expired certificate")
    within = "within a day" if not days else "in 1 day" if days == 1 else f"in {days} days"
    return _clipped(name, f": the certificate expires {within}")


def certificate_ended_title(name: str) -> str:
    return _clipped(name, ": the certificate warning ended")


def certificate_text(ends_at: Instant, seen_at: Instant, days: int) -> str:
    return (
        f"The certificate expires at {_minute(ends_at)}. A check saw it at {_minute(seen_at)}."
        f" The warning begins {days} day{'s' if days > 1 else ''} before the end."
    )


def _minute(at: Instant) -> str:
    return f"{to_datetime(at):%Y-%m-%d %H:%M} UTC"


def still_down_title(name: str, began_at: Instant, now: Instant) -> str:
    return _clipped(name, f" is still down after {lasted(now - began_at)}")


def recovered_title(name: str, began_at: Instant, ended_at: Instant) -> str:
    return _clipped(name, f" recovered after {lasted(ended_at - began_at)}")
