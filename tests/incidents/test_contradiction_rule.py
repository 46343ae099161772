"""A status is compared with states only, and an unknown state never counts as up or down.

The model is written from the documentation: a table of the statuses, and counts of the states.
"""

from collections import Counter
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.incidents.rules.contradiction import (
    STEADY_US,
    MeasuredObject,
    MeasuredState,
    ObjectKind,
    compare,
)
from leadline.storage.incidents.rules.incident import IncidentStatus
from tests.conftest import FROZEN_NOW

NOW = FROZEN_NOW
STATUSES = st.sampled_from([None, *IncidentStatus])
SINCE = st.none() | st.integers(NOW - 2 * STEADY_US, NOW).map(Instant)
OBJECTS = st.builds(
    MeasuredObject,
    kind=st.sampled_from(ObjectKind),
    uid=st.uuids(),
    name=st.text(min_size=1, max_size=20),
    state=st.sampled_from(MeasuredState),
    since=SINCE,
)
LISTS = st.lists(OBJECTS, max_size=6)


@given(STATUSES, LISTS)
def test_the_comparison_is_that_of_the_documented_table(
    status: IncidentStatus | None, objects: list[MeasuredObject]
) -> None:
    states = Counter(one.state.value for one in objects)
    found = compare(status, objects, NOW)
    match status:
        case "resolved" | "monitoring":
            assert len(found.against) == states["down"] + states["degraded"]
            assert len(found.unknown) == states["unknown"]
        case "investigating":
            lasting = [o for o in objects if o.since is not None and NOW - o.since >= STEADY_US]
            are_all_up = len(objects) == states["up"] == len(lasting)
            assert list(found.against) == (objects if are_all_up else [])
            assert not found.unknown
        case _:
            assert not found.against
            assert not found.unknown


@given(STATUSES, LISTS)
def test_an_unknown_state_or_maintenance_is_never_against_a_status(
    status: IncidentStatus | None, objects: list[MeasuredObject]
) -> None:
    neither = (MeasuredState.UNKNOWN, MeasuredState.MAINTENANCE)
    found = compare(status, objects, NOW)
    assert all(one.state not in neither for one in found.against)
    veiled = [replace(one, state=MeasuredState.UNKNOWN) for one in objects]
    assert not compare(status, veiled, NOW).against


@given(LISTS, OBJECTS)
def test_one_object_that_is_not_up_ends_the_objection_to_investigating(
    objects: list[MeasuredObject], other: MeasuredObject
) -> None:
    if other.state is not MeasuredState.UP:
        found = compare(IncidentStatus.INVESTIGATING, [*objects, other], NOW)
        assert not found.against


@given(LISTS, OBJECTS)
def test_a_further_object_removes_no_objection_to_the_end(
    objects: list[MeasuredObject], other: MeasuredObject
) -> None:
    before = compare(IncidentStatus.RESOLVED, objects, NOW)
    after = compare(IncidentStatus.RESOLVED, [*objects, other], NOW)
    assert list(after.against)[: len(before.against)] == list(before.against)


@pytest.mark.parametrize(("ago_us", "objects"), [(STEADY_US - 1, 0), (STEADY_US, 1)])
def test_a_recovery_counts_from_the_fifteenth_minute(ago_us: int, objects: int) -> None:
    since = Instant(NOW - ago_us)
    one = MeasuredObject(ObjectKind.MONITOR, UUID(int=1), "shop", MeasuredState.UP, since)
    assert STEADY_US == 15 * MINUTE
    assert len(compare(IncidentStatus.INVESTIGATING, [one], NOW).against) == objects


@given(STATUSES, STATUSES, LISTS, LISTS)
def test_two_warnings_have_one_key_only_if_they_state_the_same(
    status: IncidentStatus | None,
    other: IncidentStatus | None,
    objects: list[MeasuredObject],
    others: list[MeasuredObject],
) -> None:
    def stated(
        status: IncidentStatus | None, objects: list[MeasuredObject]
    ) -> tuple[str, object] | None:
        against = compare(status, objects, NOW).against
        found = Counter((one.kind, one.uid, one.state) for one in against)
        return (str(status), found) if found else None

    for pair in ((status, objects), (status, objects[::-1]), (other, objects), (status, others)):
        is_same = stated(status, objects) == stated(*pair)
        first, second = compare(status, objects, NOW), compare(*pair, NOW)
        assert (first.key == second.key) is is_same
        assert bool(second.key) is bool(second.against)
