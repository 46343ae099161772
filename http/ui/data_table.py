"""Table behind a plot, and the time format of its cells."""

from dataclasses import dataclass

from ...storage.core.instant import Instant
from .shown_time import local, time_of_day


@dataclass(frozen=True, slots=True)
class MaintenanceTable:
    caption: str
    heads: list[str]
    rows: list[list[str]]
    further: int


def exact(at: Instant) -> str:
    """Returns the time with weekday and day, without year: Wed 25 November 14:26."""
    moment = local(at)
    return f"{moment:%a} {moment.day} {moment:%B} {time_of_day(moment, seconds=False)}"
