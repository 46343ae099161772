"""Due times of escalation steps, so that a late pass neither skips nor repeats steps.

A step is due `after_us` after the start of the escalation. A late pass takes all due steps in
order, because each has other targets. The last step can repeat: the interval is the distance of the
last two steps, at least REPEAT_SHORTEST_US, and a late pass takes all missed repeats as one.
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
    """Kind of a target: a channel, a person, or the participant on call by a schedule.

    A stored target of a person is the channel of the person in the project.
    """

    CHANNEL = "channel"
    SCHEDULE = "schedule"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class EscalationTarget:
    """Target of a step. `key` is the id of the channel or schedule."""

    kind: TargetKind
    key: int


@dataclass(frozen=True, slots=True)
class EscalationStep:
    """Step of a policy. `after_us` counts from the start of the escalation."""

    after_us: int
    targets: tuple[EscalationTarget, ...] = ()


@dataclass(frozen=True, slots=True)
class EscalationPolicy:
    """Steps in ascending order of their delay. Step numbers begin at 1."""

    steps: tuple[EscalationStep, ...]
    repeat_last: bool = False

    @property
    def repeat_us(self) -> int | None:
        """Returns the interval of repeats of the last step, None without repeats."""
        if not self.repeat_last:
            return None
        before = self.steps[-2].after_us if len(self.steps) > 1 else 0
        return max(self.steps[-1].after_us - before, REPEAT_SHORTEST_US)


def due_steps(
    ladder: EscalationPolicy, began_at: Instant, taken: int, last_at: Instant | None, now: Instant
) -> tuple[list[int], int]:
    """Returns the step numbers to take now, in order, and the number of steps taken by then.

    Args:
        taken: number of steps that earlier passes have taken.
        last_at: instant of the last step, None before the first.
    """
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
    """Returns when the next step is due, possibly in the past; None after the last step."""
    if taken < len(ladder.steps):
        return Instant(began_at + ladder.steps[taken].after_us)
    repeat = ladder.repeat_us
    if repeat is None:
        return None
    # If a policy became shorter, its last step may never have been taken.
    base = began_at + ladder.steps[-1].after_us if last_at is None else last_at
    return Instant(base + repeat)


def ladder_fault(after_seconds: Sequence[int], targets: Sequence[int]) -> tuple[str, str] | None:
    """Returns the first invalid field and its rule, for the delays and target counts."""
    if not STEPS[0] <= len(after_seconds) <= STEPS[1]:
        return "steps", f"must have {STEPS[0]} to {STEPS[1]} entries"
    for index, (after, many) in enumerate(zip(after_seconds, targets, strict=True)):
        field = f"steps[{index}].after_seconds"
        if not AFTER_SECONDS[0] <= after <= AFTER_SECONDS[1]:
            return field, f"must be {AFTER_SECONDS[0]} to {AFTER_SECONDS[1]} seconds"
        if index and after < after_seconds[index - 1]:
            return field, "must be at least that of the previous step"
        if not TARGETS[0] <= many <= TARGETS[1]:
            return f"steps[{index}].targets", f"must have {TARGETS[0]} to {TARGETS[1]} entries"
    return None
