"""Limits of an organization: the load of a monitor, and which changes they refuse."""

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.monitors.rules.monitor import MonitorType
from leadline.storage.monitors.rules.organization_limits import (
    LIMIT_BOUNDS,
    RUN_LOAD,
    OrganizationLimits,
    OrganizationUse,
    OwnLimits,
    interval_fault,
    is_faster,
    limits_fault,
    load_of,
    raised_field,
    use_fault,
    use_of,
)
from leadline.storage.results.transactions.state_update import UNCONFIRMED
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm, confirm_at

MINUTE_SECONDS = 60


@dataclass(frozen=True)
class Made:
    type: str = "http"
    enabled: bool = True
    interval_seconds: int = 60
    schedule: str = ""
    failure_threshold: int = 1
    confirm_interval_seconds: int = 10


made = st.builds(
    Made,
    type=st.sampled_from([kind.value for kind in MonitorType]),
    enabled=st.booleans(),
    interval_seconds=st.integers(5, 90) | st.sampled_from([300, 3_600, 86_399, 86_400]),
    failure_threshold=st.integers(1, 100),
    confirm_interval_seconds=st.integers(0, 90) | st.sampled_from([3_600, 86_400]),
)
limits = st.builds(
    OrganizationLimits,
    monitors=st.integers(1, 6),
    shortest_interval_seconds=st.sampled_from([5, 30, 60]),
    runs_per_minute=st.integers(1, 60),
)


def runs_while_failing(monitor: Made) -> int:
    """The runs of one interval whose target fails at once, by the rule of confirming runs."""
    interval_us = monitor.interval_seconds * SECOND
    term = ScheduleTerm(
        from_=Instant(-interval_us),
        anchor=Instant(0),
        interval_us=interval_us,
        timeout_us=SECOND,
        grace_us=0,
        enabled=True,
        shard=1,
    )
    runs, at = 1, Instant(0)
    while True:
        wait_us = monitor.confirm_interval_seconds * SECOND
        found = confirm_at(at, runs, monitor.failure_threshold, wait_us, term)
        if found is None:
            return runs
        runs, at = runs + 1, found


@given(made)
def test_the_load_is_that_of_a_failing_target(monitor: Made) -> None:
    # A composite evaluates its children again, which is no run.
    confirms = monitor.type not in {*UNCONFIRMED, MonitorType.COMPOSITE}
    runs = runs_while_failing(monitor) if confirms else 1
    exact = Fraction(MINUTE_SECONDS * runs * RUN_LOAD, monitor.interval_seconds)
    assert load_of(monitor) == (int(exact) if monitor.enabled else 0)


@given(limits, st.lists(st.tuples(st.integers(0, 3), made), max_size=30))
def test_a_use_within_the_limits_stays_within_them(
    limit: OrganizationLimits, steps: list[tuple[int, Made]]
) -> None:
    """Each step creates a monitor or edits one of the first three."""
    monitors: list[Made] = []
    for at, after in steps:
        before = monitors[at] if at < len(monitors) else None
        now = [one for one in monitors if one is not before]
        use = sum(map(use_of, [*now, after]), OrganizationUse())
        more = use_of(after) - use_of(before)
        slow = is_faster(before, after) and interval_fault(limit, after)
        fault = use_fault(limit, use, more, "x")
        exceeds = len(now) + 1 > limit.monitors or use.load > limit.runs_per_minute * RUN_LOAD
        assert bool(fault) == (exceeds and (more.monitors > 0 or more.load > 0))
        if not slow and not fault:
            monitors = [*now, after]
        total = sum(map(use_of, monitors), OrganizationUse())
        assert total.monitors == len(monitors) <= limit.monitors
        assert total.load <= limit.runs_per_minute * RUN_LOAD


@given(limits, made, made)
def test_a_slower_or_paused_monitor_is_always_accepted(
    limit: OrganizationLimits, before: Made, other: Made
) -> None:
    after = Made(
        type=before.type,
        enabled=before.enabled and other.enabled,
        interval_seconds=before.interval_seconds + other.interval_seconds,
        failure_threshold=1,
        confirm_interval_seconds=other.confirm_interval_seconds,
    )
    assert not is_faster(before, after)
    above = OrganizationUse(1_000, 10**12)
    assert use_fault(limit, above, use_of(after) - use_of(before), "x") is None


@given(limits, made, made)
def test_the_raised_field_differs(limit: OrganizationLimits, before: Made, after: Made) -> None:
    after = Made(**{**vars(after), "type": before.type})
    if load_of(after) > load_of(before):
        field = raised_field(before, after)
        assert getattr(before, field) != getattr(after, field)
    assert raised_field(None, after) == "interval_seconds"


@given(st.integers(1, 10**6), st.integers(0, 10**12))
def test_a_refusal_states_a_use_above_the_limit(runs: int, above: int) -> None:
    limit = OrganizationLimits(runs_per_minute=runs)
    after = OrganizationUse(1, runs * RUN_LOAD + above + 1)
    fault = use_fault(limit, after, OrganizationUse(0, above + 1), "interval_seconds")
    assert fault is not None
    assert after.runs_per_minute > runs
    assert f"its limit is {runs} (now {runs})" in fault[1]


def test_refusals_name_the_limit_and_the_present_use() -> None:
    limit = OrganizationLimits(monitors=2, shortest_interval_seconds=30, runs_per_minute=10)
    slow = Made(interval_seconds=20)
    assert interval_fault(limit, slow) == (
        "must be at least 30 seconds, the shortest interval of the organization"
    )
    more = OrganizationUse(1, RUN_LOAD)
    assert use_fault(limit, OrganizationUse(3, RUN_LOAD), more, "interval_seconds") == (
        "monitors",
        "would be 3 in the organization, whose limit is 2 (now 2)",
    )
    use = OrganizationUse(2, 10 * RUN_LOAD + 1)
    assert use_fault(limit, use, OrganizationUse(0, RUN_LOAD), "enabled") == (
        "enabled",
        "would make 10.01 runs per minute in the organization with confirming runs, and its limit"
        " is 10 (now 9.01)",
    )


@given(
    st.builds(
        OwnLimits,
        **{name: st.none() | st.integers(-1, 2_000_000) for name in OwnLimits.__struct_fields__},
    )
)
def test_own_limits_replace_those_of_the_installation(own: OwnLimits) -> None:
    base = OrganizationLimits(monitors=7, shortest_interval_seconds=8, runs_per_minute=9)
    found = own.over(base)
    wrong = []
    for name in OwnLimits.__struct_fields__:
        given_ = getattr(own, name)
        assert getattr(found, name) == (getattr(base, name) if given_ is None else given_)
        if given_ is not None and LIMIT_BOUNDS[name].fault(given_):
            wrong.append(name)
    fault = limits_fault(own)
    assert (fault[0] if fault else None) == (wrong[0] if wrong else None)


@pytest.mark.parametrize("kind", [OrganizationLimits, OwnLimits])
def test_the_defaults_are_valid(kind: type[OrganizationLimits] | type[OwnLimits]) -> None:
    assert limits_fault(kind()) is None
    assert kind.__struct_fields__ == tuple(LIMIT_BOUNDS)
