"""Steps of a planned maintenance in the notices to subscribers: each once, and in order."""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from ...core.instant import Instant


class MaintenanceStep(StrEnum):
    SCHEDULED = "scheduled"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


# No step follows these.
LAST: Final = frozenset({MaintenanceStep.COMPLETED, MaintenanceStep.CANCELLED})


def due_step(
    told: Collection[MaintenanceStep],
    now: Instant,
    starts_at: Instant,
    over_at: Instant,
    *,
    is_archived: bool,
) -> MaintenanceStep | None:
    """Returns the step of the next notice, None if the present state needs none.

    A step whose time has passed without a notice is left out. An end needs an earlier step.
    """
    if any(step in LAST for step in told):
        return None
    if is_archived:
        return MaintenanceStep.CANCELLED if told else None
    if now >= over_at:
        return MaintenanceStep.COMPLETED if told else None
    step = MaintenanceStep.IN_PROGRESS if now >= starts_at else MaintenanceStep.SCHEDULED
    return None if step in told else step
