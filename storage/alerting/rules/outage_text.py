"""What people are told of a monitor's outage, in words: what it is, and how long it lasted."""

from typing import Final

from ...core.instant import Instant

_MINUTE_US: Final = 60_000_000
_HOUR_US: Final = 60 * _MINUTE_US
_DAY_US: Final = 24 * _HOUR_US
TITLE_LONGEST: Final = 200

DOWN_TAIL: Final = " is down"
OPENED_BODY: Final = "Automatic checks fail."
RECOVERED_BODY: Final = "Automatic checks succeed again."


def clipped_title(name: str, tail: str) -> str:
    """A name, cut where it is long, and what is said of it."""
    return _clipped(name, tail)


def down_title(name: str) -> str:
    return _clipped(name, DOWN_TAIL)


def still_down_title(name: str, began_at: Instant, now: Instant) -> str:
    return _clipped(name, f" is still down after {lasted(now - began_at)}")


def recovered_title(name: str, began_at: Instant, ended_at: Instant) -> str:
    return _clipped(name, f" is up again after {lasted(ended_at - began_at)}")


def lasted(us: int) -> str:
    """A length of time to two units, cut and not rounded: never longer than it was."""
    us = max(us, 0)
    if us < _MINUTE_US:
        return f"{us // 1_000_000} s"
    if us < _HOUR_US:
        return f"{us // _MINUTE_US} min"
    if us < _DAY_US:
        return _two(us // _HOUR_US, "h", us % _HOUR_US // _MINUTE_US, "min")
    return _two(us // _DAY_US, "d", us % _DAY_US // _HOUR_US, "h")


def _two(many: int, unit: str, rest: int, less: str) -> str:
    return f"{many} {unit} {rest} {less}" if rest else f"{many} {unit}"


def _clipped(name: str, tail: str) -> str:
    room = TITLE_LONGEST - len(tail)
    return (name if len(name) <= room else name[: room - 1] + "…") + tail
