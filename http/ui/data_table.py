"""Data table."""

from dataclasses import dataclass

from ...storage.core.instant import Instant, to_datetime


@dataclass(frozen=True, slots=True)
class MaintenanceTable:
    caption: str
    heads: list[str]
    rows: list[list[str]]
    further: int


def exact(at: Instant) -> str:
    moment = to_datetime(at)
    return f"{moment:%a} {moment.day} {moment:%B} {moment:%H:%M}"
