"""When the steps of a ladder are due, so that whoever looks late skips nobody and piles nothing up.

A step is due so long after its incident began. Those that came due while nobody looked are taken at
once and in order, since each has other people. After the last one it may be repeated, so long after
it was taken as lies between the last two; repeats that nobody looked at are one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...core.instant import SECOND, Instant

STEPS = (1, 20)
TARGETS = (1, 20)
AFTER_SECONDS = (0, 604_800)
REPEAT_SHORTEST_US = 60 * SECOND


class TargetKind(StrEnum):
    """Whom a step pages: one channel, or who is on call by a schedule at that time."""

    CHANNEL = "channel"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class EscalationTarget:
    """`key` is that of the channel or of the schedule."""

    kind: TargetKind
    key: int


@dataclass(frozen=True, slots=True)
class EscalationStep:
    """`after_us` counts from the incident's beginning."""

    after_us: int
    targets: tuple[EscalationTarget, ...] = ()


@dataclass(frozen=True, slots=True)
class EscalationPolicy:
    """Steps in order, each due no earlier than the one before; steps are numbered from 1."""

    steps: tuple[EscalationStep, ...]
    repeat_last: bool = False

    @property
    def repeat_us(self) -> int | None:
        """From one taking of the last step to the next; None where it is taken once."""
        if not self.repeat_last:
            return None
        before = self.steps[-2].after_us if len(self.steps) > 1 else 0
        return max(self.steps[-1].after_us - before, REPEAT_SHORTEST_US)


def due_steps(
    ladder: EscalationPolicy, began_at: Instant, taken: int, last_at: Instant | None, now: Instant
) -> tuple[list[int], int]:
    """The steps to take now, in order, and how many are taken then. `taken` is that number of the
    look before, and `last_at` when any was taken last."""
    most = len(ladder.steps)
    if taken < most:
        due = [
            number
            for number in range(taken + 1, most + 1)
            if began_at + ladder.steps[number - 1].after_us <= now
        ]
        return due, taken + len(due)
    at = next_at(ladder, began_at, taken, last_at)
    return ([most], taken) if at is not None and at <= now else ([], taken)


def next_at(
    ladder: EscalationPolicy, began_at: Instant, taken: int, last_at: Instant | None
) -> Instant | None:
    """When a step is due next, perhaps long ago; None when there is none to come."""
    if taken < len(ladder.steps):
        return Instant(began_at + ladder.steps[taken].after_us)
    repeat = ladder.repeat_us
    if repeat is None:
        return None
    # A ladder that became shorter may never have taken its last step under our eyes.
    base = began_at + ladder.steps[-1].after_us if last_at is None else last_at
    return Instant(base + repeat)


def ladder_fault(after_seconds: Sequence[int], targets: Sequence[int]) -> tuple[str, str] | None:
    """The field and the rule that steps break, given when each is due and how many it pages."""
    if not STEPS[0] <= len(after_seconds) <= STEPS[1]:
        return "steps", f"must have {STEPS[0]} to {STEPS[1]} entries"
    for index, (after, many) in enumerate(zip(after_seconds, targets, strict=True)):
        field = f"steps[{index}].after_seconds"
        if not AFTER_SECONDS[0] <= after <= AFTER_SECONDS[1]:
            return field, f"must be {AFTER_SECONDS[0]} to {AFTER_SECONDS[1]} seconds"
        if index and after < after_seconds[index - 1]:
            return field, "must not be below that of the step before"
        if not TARGETS[0] <= many <= TARGETS[1]:
            return f"steps[{index}].targets", f"must have {TARGETS[0]} to {TARGETS[1]} entries"
    return None
