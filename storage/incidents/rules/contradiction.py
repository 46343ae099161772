"""Comparison of the status that pages show after an update with the measurements.

The comparison uses the status only, and does not interpret the text:

- `resolved` and `monitoring` state that the problem is over. An object of the incident that is down
  or degraded contradicts them.
- `investigating` states that the problem continues. It is contradicted if every object of the
  incident is up, and has been for STEADY_US. A problem that ended a moment ago is still
  investigated.
- `identified` and a note state neither.

An object without a known state counts neither as up nor as down, and neither does an object in
maintenance. Without objects, no status is contradicted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from ...core.instant import MINUTE, Instant
from .incident import IncidentStatus

STEADY_US: Final = 15 * MINUTE


class ObjectKind(StrEnum):
    MONITOR = "monitor"
    SERVICE = "service"
    # Component of a status page without a measured object.
    COMPONENT = "component"


class MeasuredState(StrEnum):
    """Present state of an object. A paused monitor is unknown."""

    DOWN = "down"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"
    MAINTENANCE = "maintenance"
    UP = "up"


@dataclass(frozen=True, slots=True)
class MeasuredObject:
    """Object of an incident with its present state.

    The state has not changed since `since`, which is None if that instant is not known.
    """

    kind: ObjectKind
    uid: UUID
    name: str
    state: MeasuredState
    since: Instant | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Objects that contradict a status, and objects whose state is not known, in given order."""

    status: IncidentStatus | None
    against: Sequence[MeasuredObject] = ()
    unknown: Sequence[MeasuredObject] = ()

    @property
    def key(self) -> str:
        """Returns a text that is equal while the status and the contradicting states are equal."""
        found = sorted(f"{one.kind.value}.{one.uid}.{one.state.value}" for one in self.against)
        return " ".join([self.status.value, *found]) if self.status and found else ""


_OVER: Final = frozenset({IncidentStatus.MONITORING, IncidentStatus.RESOLVED})
_UNHEALTHY: Final = frozenset({MeasuredState.DOWN, MeasuredState.DEGRADED})


def compare(
    status: IncidentStatus | None, objects: Sequence[MeasuredObject], now: Instant
) -> Comparison:
    """Returns the comparison of a status, None for a note, with the objects of its incident."""
    if status in _OVER:
        return Comparison(
            status,
            [one for one in objects if one.state in _UNHEALTHY],
            [one for one in objects if one.state is MeasuredState.UNKNOWN],
        )
    if status is IncidentStatus.INVESTIGATING and all(_is_steady(one, now) for one in objects):
        return Comparison(status, list(objects))
    return Comparison(status)


def _is_steady(one: MeasuredObject, now: Instant) -> bool:
    """Returns whether the object is known to have been up for STEADY_US."""
    if one.state is not MeasuredState.UP or one.since is None:
        return False
    return now - one.since >= STEADY_US
