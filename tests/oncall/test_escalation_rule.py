"""Escalation policies, compared with a model of the rules that advances second by second."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.oncall.rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    due_steps,
    ladder_fault,
    next_at,
)

BEGAN = Instant(1_767_571_200_000_000)
afters = st.lists(st.integers(0, 400), min_size=1, max_size=5).map(sorted)


def ladder_of(seconds: list[int], *, repeats: bool = False) -> EscalationPolicy:
    return EscalationPolicy(tuple(EscalationStep(after * SECOND) for after in seconds), repeats)


def steps_taken(ladder: EscalationPolicy, offsets: list[int]) -> list[tuple[int, list[int]]]:
    """The steps that the rule takes at each of the given seconds after the beginning."""
    taken, last_at, found = 0, None, []
    for look in offsets:
        now = Instant(BEGAN + look * SECOND)
        expected = next_at(ladder, BEGAN, taken, last_at)
        steps, taken = due_steps(ladder, BEGAN, taken, last_at, now)
        assert bool(steps) == (expected is not None and expected <= now)
        if steps:
            last_at = now
            found.append((look, steps))
    return found


def walk(seconds: list[int], repeats: bool, offsets: list[int]) -> list[tuple[int, list[int]]]:
    """Advances second by second; a due step waits until the next evaluation."""
    gap = seconds[-1] - seconds[-2] if len(seconds) > 1 else seconds[0]
    gap = max(gap, 60)
    waiting: list[int] = []
    counted_from = None
    found = []
    for second in range(max(offsets) + 1):
        waiting += [number for number, after in enumerate(seconds, 1) if after == second]
        if repeats and counted_from is not None and second == counted_from + gap:
            waiting.append(len(seconds))
        if second not in offsets or not waiting:
            continue
        found.append((second, waiting))
        if waiting[-1] == len(seconds):
            counted_from = second
        waiting = []
    return found


@given(afters, st.booleans(), st.sets(st.integers(0, 1_500), min_size=1, max_size=40).map(sorted))
@example([0, 0, 300], True, [0, 1_500])
@example([0], True, list(range(200)))
def test_an_evaluation_takes_the_steps_that_fell_due_since_the_last_one(
    seconds: list[int], repeats: bool, offsets: list[int]
) -> None:
    assert steps_taken(ladder_of(seconds, repeats=repeats), offsets) == walk(
        seconds, repeats, offsets
    )


@given(afters, st.booleans())
def test_evaluations_at_the_computed_instants_take_every_step_on_time(
    seconds: list[int], repeats: bool
) -> None:
    ladder = ladder_of(seconds, repeats=repeats)
    taken, last_at, found = 0, None, []
    for _ in range(len(seconds) + 3):
        at = next_at(ladder, BEGAN, taken, last_at)
        if at is None:
            break
        early, _ = due_steps(ladder, BEGAN, taken, last_at, Instant(at - 1))
        assert early == []
        steps, taken = due_steps(ladder, BEGAN, taken, last_at, at)
        found += [((at - BEGAN) // SECOND, step) for step in steps]
        last_at = at
    in_time = [(after, number) for number, after in enumerate(seconds, 1)]
    assert found[: len(seconds)] == in_time
    again = found[len(seconds) :]
    assert bool(again) == repeats
    assert all(step == len(seconds) for _, step in again)
    assert all(after - before >= 60 for (before, _), (after, _) in pairwise(found[-3:]) if repeats)


@given(afters, st.integers(1, 8), st.booleans(), st.integers(0, 5_000))
def test_a_shortened_policy_pages_no_target_twice(
    seconds: list[int], beyond: int, repeats: bool, later: int
) -> None:
    ladder = ladder_of(seconds, repeats=repeats)
    taken = len(seconds) + beyond
    last_at = Instant(BEGAN + later * SECOND)
    assert due_steps(ladder, BEGAN, taken, last_at, last_at) == ([], taken)
    at = next_at(ladder, BEGAN, taken, last_at)
    assert (at is not None) == repeats
    if at is not None:
        assert due_steps(ladder, BEGAN, taken, last_at, at) == ([len(seconds)], taken)
        unseen = next_at(ladder, BEGAN, taken, None)
        assert unseen is not None
        assert unseen >= BEGAN + seconds[-1] * SECOND + 60 * SECOND


@given(
    st.lists(st.tuples(st.integers(-2, 604_802), st.integers(0, 22)), max_size=22),
    st.booleans(),
)
def test_the_first_fault_is_named_with_its_place(
    steps: list[tuple[int, int]], in_order: bool
) -> None:
    if in_order:
        steps = sorted(steps)
    fault = ladder_fault([after for after, _ in steps], [many for _, many in steps])
    fine = (
        1 <= len(steps) <= 20
        and all(0 <= after <= 604_800 and 1 <= many <= 20 for after, many in steps)
        and all(one[0] <= two[0] for one, two in pairwise(steps))
    )
    assert (fault is None) == fine
    if fault is not None and fault[0] != "steps":
        index = int(fault[0].partition("[")[2].partition("]")[0])
        held = steps[:index]
        assert ladder_fault([a for a, _ in held], [m for _, m in held]) is None or not held


@pytest.mark.parametrize(
    ("after", "targets", "field"),
    [
        ([], [], "steps"),
        ([0] * 21, [1] * 21, "steps"),
        ([-1], [1], "steps[0].after_seconds"),
        ([604_801], [1], "steps[0].after_seconds"),
        ([5, 4], [1, 1], "steps[1].after_seconds"),
        ([0, 0], [1, 0], "steps[1].targets"),
        ([0], [21], "steps[0].targets"),
    ],
)
def test_the_limits_of_policies_are_checked(
    after: list[int], targets: list[int], field: str
) -> None:
    fault = ladder_fault(after, targets)
    assert fault is not None
    assert fault[0] == field


@pytest.mark.parametrize(
    ("after", "targets"),
    [([0], [1]), ([604_800], [20]), ([0] * 20, [1] * 20), ([0, 0, 604_800], [20, 1, 20])],
)
def test_the_limits_themselves_are_accepted(after: list[int], targets: list[int]) -> None:
    assert ladder_fault(after, targets) is None
