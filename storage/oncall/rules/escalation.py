"""Due times of escalation steps, so that a late pass neither skips nor repeats steps.

A step is due `after_us` after the start of the escalation. A late pass takes all due steps in
order, because each has other targets. The last step can repeat: the interval is the distance of the
last two steps, at least REPEAT_SHORTEST_US, and a late pass takes all missed repeats as one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...core.instant import SECOND, Instant

STEPS = (1, 20)
TARGETS = (1, 20)
AFTER_SECONDS = (0, 604_800)
REPEAT_SHORTEST_US = 60 * SECOND
# Bounds of the time after which an acknowledgement expires.
ACK_TIMEOUT_SECONDS = (300, 604_800)
# Policies below each other, counted from the one that is used.
NESTED_MOST = 3
EXPANDED_STEPS_MOST = 100


class TargetKind(StrEnum):
    """Kind of a target: a channel, a person, the participant on call by a schedule, or a policy.

    A stored target of a person is the channel of the person in the project.
    """

    CHANNEL = "channel"
    SCHEDULE = "schedule"
    PERSON = "person"
    POLICY = "policy"


@dataclass(frozen=True, slots=True)
class EscalationTarget:
    """Target of a step. `key` is the id of the channel, schedule or policy."""

    kind: TargetKind
    key: int


@dataclass(frozen=True, slots=True)
class EscalationStep:
    """Step of a policy. `after_us` counts from the start of the escalation."""

    after_us: int
    targets: tuple[EscalationTarget, ...] = ()


@dataclass(frozen=True, slots=True)
class EscalationPolicy:
    """Steps in ascending order of their delay. Step numbers begin at 1.

    `ack_timeout_us` is the time after which an acknowledgement expires, 0 for never.
    """

    steps: tuple[EscalationStep, ...]
    repeat_last: bool = False
    ack_timeout_us: int = 0

    @property
    def repeat_us(self) -> int | None:
        """Returns the interval of repeats of the last step, None without repeats."""
        if not self.repeat_last:
            return None
        before = self.steps[-2].after_us if len(self.steps) > 1 else 0
        return max(self.steps[-1].after_us - before, REPEAT_SHORTEST_US)


def nested_in(policy: EscalationPolicy) -> set[int]:
    """Returns the keys of the policies that the steps name."""
    targets = (target for step in policy.steps for target in step.targets)
    return {target.key for target in targets if target.kind is TargetKind.POLICY}


def expanded(policies: Mapping[int, EscalationPolicy], root: int) -> EscalationPolicy:
    """Returns a policy with the steps of the policies that it names, without such targets.

    The steps of a named policy count from the step that names it. Steps at the same instant become
    one. Of the named policies, only the steps count, and not what is deeper than NESTED_MOST.
    """
    whole = policies[root]
    if not nested_in(whole):
        return whole
    merged: dict[int, dict[EscalationTarget, None]] = {}
    for after_us, target in _flat(policies, root, 0, NESTED_MOST):
        merged.setdefault(after_us, {})[target] = None
    steps = tuple(EscalationStep(after, tuple(merged[after])) for after in sorted(merged))
    steps = steps or (EscalationStep(0),)
    return EscalationPolicy(steps, whole.repeat_last, whole.ack_timeout_us)


def _flat(
    policies: Mapping[int, EscalationPolicy], key: int, from_us: int, depth: int
) -> Iterator[tuple[int, EscalationTarget]]:
    """Yields (delay, target) of a policy and of those that it names."""
    for step in policies[key].steps:
        after_us = from_us + step.after_us
        for target in step.targets:
            if target.kind is not TargetKind.POLICY:
                yield after_us, target
            elif depth and target.key in policies:
                yield from _flat(policies, target.key, after_us, depth - 1)


def nesting_fault(policies: Mapping[int, EscalationPolicy]) -> str | None:
    """Returns why the policies of a project cannot name each other so, None if they can.

    A circle comes first, because a policy that leads into one is too deep as well.
    """
    if any(key in _below(policies, key) for key in policies):
        return "must not lead back to this policy"
    for key in policies:
        below, depth = nested_in(policies[key]), 0
        while below:
            depth += 1
            if depth > NESTED_MOST:
                return f"must name at most {NESTED_MOST} policies below each other"
            below = set().union(*(nested_in(policies[one]) for one in below if one in policies))
        if len(expanded(policies, key).steps) > EXPANDED_STEPS_MOST:
            return f"must lead to at most {EXPANDED_STEPS_MOST} steps"
    return None


def _below(policies: Mapping[int, EscalationPolicy], root: int) -> set[int]:
    """Returns the policies that the steps of a policy lead to."""
    found: set[int] = set()
    wanted = nested_in(policies[root])
    while wanted:
        found |= wanted
        wanted = {
            key for one in wanted if one in policies for key in nested_in(policies[one])
        } - found
    return found


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


def resumed(policy: EscalationPolicy, taken: int, now: Instant) -> tuple[Instant, int]:
    """Returns the start and the taken steps of an escalation that continues now.

    The next step is due now and the later ones keep their distances. Without a next step the last
    one is taken again.
    """
    taken = min(taken, len(policy.steps) - 1)
    return Instant(now - policy.steps[taken].after_us), taken


def ack_timeout_fault(seconds: int) -> str | None:
    least, most = ACK_TIMEOUT_SECONDS
    if seconds == 0 or least <= seconds <= most:
        return None
    return f"must be 0, or {least} to {most} seconds"


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
