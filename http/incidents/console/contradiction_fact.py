"""Warning that a public message contradicts the measurements, before it is posted.

The form shows it in the preview. A submission is repeated with the key of the warning, which states
that the user has read it; another status or another contradicting state has another key.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....storage.core.instant import Instant
from ....storage.incidents.rules.contradiction import (
    Comparison,
    MeasuredObject,
    MeasuredState,
    ObjectKind,
)
from ...ui.formatting import Moment, moment

NAMED_MOST: Final = 5
# Field of the form with the key of the warning that the user has read.
READ: Final = "warned"

_PATHS: Final = {ObjectKind.MONITOR: "/monitors/", ObjectKind.SERVICE: "/services/"}
_STATES: Final = {
    MeasuredState.DOWN: "is still down",
    MeasuredState.DEGRADED: "is still degraded",
    MeasuredState.UP: "has been up",
}


@dataclass(frozen=True, slots=True)
class FactLine:
    """Object with its state. `path` is empty for a component, `since` None if not known."""

    name: str
    path: str
    state: str
    since: Moment | None


@dataclass(frozen=True, slots=True)
class ContradictionFact:
    """Facts beside the claim of the message. Without `against` only unknown states are listed."""

    mark: str
    against: Sequence[FactLine]
    more: int
    claim: str
    unknown: Sequence[FactLine]
    more_unknown: int
    key: str


def fact_of(found: Comparison, now: Instant) -> ContradictionFact | None:
    """Returns the fact to show, None if no object contradicts the status or is unknown."""
    if not found.against and not found.unknown:
        return None
    assert found.status is not None, "a note is compared with no object"
    states = {one.state for one in found.against}
    return ContradictionFact(
        mark="down" if MeasuredState.DOWN in states else "degraded",
        against=[_line(one, now) for one in found.against[:NAMED_MOST]],
        more=max(len(found.against) - NAMED_MOST, 0),
        claim=f"The new status is {found.status.value}.",
        unknown=[_line(one, now) for one in found.unknown[:NAMED_MOST]],
        more_unknown=max(len(found.unknown) - NAMED_MOST, 0),
        key=key_of(found),
    )


def key_of(found: Comparison) -> str:
    """Returns the key of a warning, empty without a contradiction."""
    return hashlib.sha256(found.key.encode()).hexdigest()[:16] if found.key else ""


def is_unread(found: Comparison, read: str) -> bool:
    """Returns whether the user must confirm the contradiction. `read` is the submitted key."""
    return bool(found.against) and read != key_of(found)


def _line(one: MeasuredObject, now: Instant) -> FactLine:
    path = _PATHS.get(one.kind)
    # The instant of a service is that of a member, not of its health.
    known = one.since if one.kind is ObjectKind.MONITOR else None
    state = _STATES.get(one.state, "")
    if one.state is MeasuredState.UP and known is None:
        state = "is healthy"
    return FactLine(
        one.name,
        f"{path}{one.uid}" if path else "",
        state,
        None if known is None else moment(known, now),
    )
