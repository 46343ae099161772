"""Titles and bodies of the notifications of a monitor's outage."""

from typing import Final

from ...core.instant import Instant
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


def still_down_title(name: str, began_at: Instant, now: Instant) -> str:
    return _clipped(name, f" is still down after {lasted(now - began_at)}")


def recovered_title(name: str, began_at: Instant, ended_at: Instant) -> str:
    return _clipped(name, f" recovered after {lasted(ended_at - began_at)}")
