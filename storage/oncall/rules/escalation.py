"""Due times of escalation steps, so that a late pass neither skips nor repeats steps.

A step is due `after_us` after the start of the escalation. A late pass takes all due steps in
order, because each has other targets. The last step can repeat: the interval is the distance of the
last two steps, at least REPEAT_SHORTEST_US, and a late pass takes all missed repeats as one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

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
    one. Of the named policies, only the steps count, and not what is deeper than NESTED_MOST. The
    first EXPANDED_STEPS_MOST steps are kept, which are all of a policy without `nesting_fault`.
    """
    whole = policies[root]
    if not nested_in(whole):
        return whole
    merged: dict[int, dict[EscalationTarget, None]] = {}
    # Delays of each policy of one depth: a policy counts once at an instant, however it is reached.
    level: dict[int, set[int]] = {root: {0}}
    for depth in range(NESTED_MOST + 1):
        below: dict[int, set[int]] = {}
        for key, delays in level.items():
            # An earlier step follows from each earlier delay, so that later ones cannot count.
            for step in policies[key].steps:
                began = [at + step.after_us for at in sorted(delays)[:EXPANDED_STEPS_MOST]]
                named, plain = _divided(step)
                for at in began if plain else ():
                    merged.setdefault(at, {}).update(plain)
                for one in named if depth < NESTED_MOST else ():
                    if one in policies:
                        below.setdefault(one, set()).update(began)
        level = below
    first = sorted(merged)[:EXPANDED_STEPS_MOST]
    steps = tuple(EscalationStep(after, tuple(merged[after])) for after in first)
    steps = steps or (EscalationStep(0),)
    return EscalationPolicy(steps, whole.repeat_last, whole.ack_timeout_us)


def _divided(step: EscalationStep) -> tuple[set[int], dict[EscalationTarget, None]]:
    """Returns the policies that a step names, and its other targets in their order, each once."""
    named = {one.key for one in step.targets if one.kind is TargetKind.POLICY}
    return named, {one: None for one in step.targets if one.kind is not TargetKind.POLICY}


_CIRCLE: Final = "must not lead back to this policy"
_TOO_DEEP: Final = f"must name at most {NESTED_MOST} policies below each other"
_TOO_MANY: Final = f"must lead to at most {EXPANDED_STEPS_MOST} steps"


def nesting_fault(policies: Mapping[int, EscalationPolicy]) -> str | None:
    """Returns why the policies of a project cannot name each other so, None if they can.

    A circle comes first, because a policy that leads into one is too deep as well.
    """
    found = set(nesting_faults(policies).values())
    return next((fault for fault in (_CIRCLE, _TOO_DEEP, _TOO_MANY) if fault in found), None)


def nesting_faults(policies: Mapping[int, EscalationPolicy]) -> dict[int, str]:
    """Returns the fault of each policy that has one, or leads to one that has one.

    Looks at the steps of each policy once, after those of the policies that it names.
    """
    named = {key: nested_in(policy) for key, policy in policies.items()}
    users: dict[int, list[int]] = {}
    for key, below in named.items():
        for one in below:
            users.setdefault(one, []).append(key)
    waiting = {key: len(below & policies.keys()) for key, below in named.items()}
    ready = [key for key, many in waiting.items() if not many]
    depths: dict[int, int] = {}
    delays: dict[int, set[int]] = {}
    faults: dict[int, str] = {}
    while ready:
        key = ready.pop()
        depths[key] = max((1 + depths.get(one, 0) for one in named[key]), default=0)
        if depths[key] > NESTED_MOST:
            faults[key] = _TOO_DEEP
        elif any(one in faults for one in named[key]):
            faults[key] = _TOO_MANY
        else:
            delays[key] = _delays(policies[key], delays)
            if len(delays[key]) > EXPANDED_STEPS_MOST:
                faults[key] = _TOO_MANY
        for user in users.get(key, ()):
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    faults.update({key: _CIRCLE for key in policies if key not in depths})
    return faults


def _delays(policy: EscalationPolicy, below: Mapping[int, set[int]]) -> set[int]:
    """Returns the delays of the expanded policy, not all if they are more than allowed.

    `below` are those of the policies that it names.
    """
    found: set[int] = set()
    for step in policy.steps:
        named, plain = _divided(step)
        if plain:
            found.add(step.after_us)
        of_named = set().union(*(below[one] for one in named if one in below))
        found.update(step.after_us + delay for delay in of_named)
        if len(found) > EXPANDED_STEPS_MOST:
            break
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
