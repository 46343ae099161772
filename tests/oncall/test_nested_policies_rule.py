"""Policies that name policies: the expansion against a model that lists each path."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import MINUTE
from leadline.storage.oncall.rules import escalation
from leadline.storage.oncall.rules.escalation import (
    EXPANDED_STEPS_MOST,
    NESTED_MOST,
    STEPS,
    TARGETS,
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    TargetKind,
    expanded,
    nested_in,
    nesting_fault,
    nesting_faults,
)

CHANNEL, POLICY = TargetKind.CHANNEL, TargetKind.POLICY
targets = st.builds(EscalationTarget, st.sampled_from([CHANNEL, POLICY]), st.integers(1, 4))
steps = st.lists(
    st.tuples(st.integers(0, 4), st.lists(targets, min_size=1, max_size=3)), min_size=1, max_size=3
)
policies = st.builds(
    lambda found: {
        key: EscalationPolicy(
            tuple(
                EscalationStep(after * MINUTE, tuple(named))
                for after, named in sorted(of_key, key=lambda step: step[0])
            )
        )
        for key, of_key in enumerate(found, 1)
    },
    st.lists(steps, min_size=1, max_size=4),
)


def paged(found: dict[int, EscalationPolicy], root: int) -> set[tuple[int, int]]:
    """Returns (delay, channel) of every path of at most NESTED_MOST names."""
    todo, seen = [(root, 0, 0)], set()
    while todo:
        key, began, depth = todo.pop()
        for step in found[key].steps:
            for target in step.targets:
                at = began + step.after_us
                if target.kind is CHANNEL:
                    seen.add((at, target.key))
                elif depth < NESTED_MOST and target.key in found:
                    todo.append((target.key, at, depth + 1))
    return seen


def leads_back(found: dict[int, EscalationPolicy]) -> bool:
    below = {key: nested_in(one) & set(found) for key, one in found.items()}
    for _ in found:
        below = {k: v | set().union(*(below[one] for one in v)) for k, v in below.items()}
    return any(key in names for key, names in below.items())


@given(policies)
def test_each_channel_is_paged_at_the_instants_of_its_paths(
    found: dict[int, EscalationPolicy],
) -> None:
    for key, policy in found.items():
        whole = expanded(found, key)
        got = {(step.after_us, one.key) for step in whole.steps for one in step.targets}
        assert got == paged(found, key)
        assert nested_in(whole) == set()
        delays = [step.after_us for step in whole.steps]
        assert delays == sorted(delays)
        if not nested_in(policy):
            assert whole == policy


@given(policies)
def test_a_circle_is_always_refused(found: dict[int, EscalationPolicy]) -> None:
    if leads_back(found):
        assert nesting_fault(found) is not None


def chain(length: int) -> dict[int, EscalationPolicy]:
    """Returns policies of which each names the next one."""
    last = EscalationPolicy((EscalationStep(0, (EscalationTarget(CHANNEL, 9),)),))
    return {
        key: EscalationPolicy((EscalationStep(MINUTE, (EscalationTarget(POLICY, key + 1),)),))
        for key in range(1, length)
    } | {length: last}


def test_the_depth_and_the_number_of_steps_are_bounded() -> None:
    deepest = chain(NESTED_MOST + 1)
    assert nesting_fault(deepest) is None
    assert expanded(deepest, 1).steps[0].after_us == NESTED_MOST * MINUTE
    assert "below each other" in str(nesting_fault(chain(NESTED_MOST + 2)))
    channel = (EscalationTarget(CHANNEL, 1),)
    many = EscalationPolicy(tuple(EscalationStep(n, channel) for n in range(20)))
    named = (EscalationTarget(POLICY, 2),)
    few = EXPANDED_STEPS_MOST // 20
    fits = EscalationPolicy(tuple(EscalationStep(n * MINUTE, named) for n in range(few)))
    assert nesting_fault({1: fits, 2: many}) is None
    wide = EscalationPolicy(tuple(EscalationStep(n * MINUTE, named) for n in range(few + 1)))
    assert "steps" in str(nesting_fault({1: wide, 2: many}))


@given(policies, st.randoms(use_true_random=False))
def test_the_fault_does_not_depend_on_the_order_of_the_policies(
    found: dict[int, EscalationPolicy], chance: Random
) -> None:
    keys = list(found)
    chance.shuffle(keys)
    assert nesting_fault({key: found[key] for key in keys}) == nesting_fault(found)
    assert (nesting_fault(found) == "must not lead back to this policy") == leads_back(found)


layered = st.lists(
    st.lists(
        st.tuples(st.integers(0, 300), st.sets(st.integers(1, 3), max_size=3)),
        min_size=1,
        max_size=6,
    ),
    min_size=4,
    max_size=4,
)


def graph(layers: list[list[tuple[int, set[int]]]]) -> dict[int, EscalationPolicy]:
    """Returns policies without a circle, each with a channel at its first step."""
    return {
        key: EscalationPolicy(
            tuple(
                EscalationStep(
                    after,
                    (
                        EscalationTarget(CHANNEL, number),
                        *(EscalationTarget(POLICY, key + one) for one in named if key + one <= 4),
                    ),
                )
                for number, (after, named) in enumerate(sorted(of_key, key=lambda step: step[0]))
            )
        )
        for key, of_key in enumerate(layers, 1)
    }


@given(layered)
def test_the_number_of_steps_is_that_of_all_paths(
    layers: list[list[tuple[int, set[int]]]],
) -> None:
    found = graph(layers)
    faults = nesting_faults(found)
    for key in found:
        delays = sorted({at for at, _ in paged(found, key)})
        assert (key in faults) == (len(delays) > EXPANDED_STEPS_MOST)
        steps = expanded(found, key).steps
        if nested_in(found[key]):
            assert [one.after_us for one in steps] == delays[:EXPANDED_STEPS_MOST]
            got = {(one.after_us, to.key) for one in steps for to in one.targets}
            assert got == {
                one for one in paged(found, key) if one[0] <= delays[:EXPANDED_STEPS_MOST][-1]
            }


@pytest.mark.parametrize("apart", [0, 1, MINUTE])
def test_the_widest_graph_costs_a_bounded_number_of_looks(
    apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each path alone would be 400 to the power of the depth."""
    looks = 0
    divided = escalation._divided

    def counted(step: EscalationStep) -> object:
        nonlocal looks
        looks += 1
        return divided(step)

    monkeypatch.setattr(escalation, "_divided", counted)
    last = (EscalationTarget(CHANNEL, 1),) * TARGETS[1]
    width = 25
    found: dict[int, EscalationPolicy] = {}
    for key in range(width * (NESTED_MOST + 1)):
        below = (key // width + 1) * width
        named = tuple(EscalationTarget(POLICY, below + n) for n in range(TARGETS[1]))
        targets = named if below < width * (NESTED_MOST + 1) else last
        steps = tuple(EscalationStep(n * apart, targets) for n in range(STEPS[1]))
        found[key] = EscalationPolicy(steps)
    fault = nesting_fault(found)
    assert looks <= len(found) * STEPS[1]
    # 20 steps below each other at equal distances are 20 + 3 * 19.
    assert fault is None
    looks = 0
    assert len(expanded(found, 0).steps) == (1 if apart == 0 else 77)
    assert looks <= len(found) * STEPS[1] * (NESTED_MOST + 1)
