"""The limits of the fields of a monitor: the limit is accepted, the next value is refused by
name."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from leadline.storage.core.naming import text_rule_broken
from leadline.storage.monitors.rules.monitor import (
    MonitorDraft,
    MonitorType,
    faults,
    manner_of,
)
from leadline.storage.scheduling.rules.run_schedule import ResultMode

GOOD = MonitorDraft(name="API", type=MonitorType.HTTP, target="https://api.example.com/")


def changed(**changes: Any) -> MonitorDraft:
    return replace(GOOD, **changes)


def fields(draft: MonitorDraft) -> list[str]:
    return [fault.field for fault in faults(draft)]


@pytest.mark.parametrize(
    ("field", "least", "most"),
    [
        ("interval_seconds", 10, 86_400),
        ("retries", 0, 10),
        ("failure_threshold", 1, 100),
        ("confirm_interval_seconds", 0, 86_400),
        ("renotify_seconds", 60, 86_400),
        ("grace_seconds", 0, 86_400),
        ("timeout_seconds", 1, 60),
    ],
)
def test_a_number_is_good_at_its_ends_and_named_beyond_them(
    field: str, least: int, most: int
) -> None:
    for value in (least, most):
        assert faults(changed(**{field: value})) == []
    for value in (least - 1, most + 1):
        assert fields(changed(**{field: value})) == [
            field if field != "interval_seconds" or value > 10 else "timeout_seconds"
        ]


def test_the_interval_reaches_from_five_seconds_to_a_day() -> None:
    assert faults(replace(GOOD, interval_seconds=5, timeout_seconds=5)) == []
    assert fields(replace(GOOD, interval_seconds=4, timeout_seconds=4)) == ["interval_seconds"]


def test_no_renotification_is_zero() -> None:
    assert faults(replace(GOOD, renotify_seconds=0)) == []
    assert fields(replace(GOOD, renotify_seconds=1)) == ["renotify_seconds"]


def test_a_timeout_is_never_above_the_interval_and_a_canary_has_more_of_it() -> None:
    long = replace(GOOD, interval_seconds=3_600, timeout_seconds=301)
    assert fields(long) == ["timeout_seconds"]
    canary = replace(long, type=MonitorType.ASYNC_CANARY, timeout_seconds=3_600)
    assert faults(canary) == []
    assert fields(replace(canary, interval_seconds=3_599)) == ["timeout_seconds"]


@pytest.mark.parametrize("field", ["name", "description", "target", "region"])
@pytest.mark.parametrize("bad", ["a\x00b", "a\x1b[31m", "a\x85b", "a\ud800b"])
def test_control_characters_are_refused_by_field(field: str, bad: str) -> None:
    assert fields(changed(**{field: bad})) == [field]


def test_a_description_has_two_hundred_code_points_and_may_have_lines() -> None:
    assert faults(replace(GOOD, description="😀" * 200)) == []
    assert fields(replace(GOOD, description="😀" * 201)) == ["description"]
    assert text_rule_broken("one\ntwo", multiline=True) is None
    assert text_rule_broken("one\ntwo") is not None


def test_a_name_is_required_and_a_target_if_the_type_has_one() -> None:
    assert fields(replace(GOOD, name="  ")) == ["name"]
    assert fields(replace(GOOD, target="")) == ["target"]
    assert faults(replace(GOOD, target="", type=MonitorType.PUSH)) == []
    assert faults(replace(GOOD, target="", type=MonitorType.COMPOSITE)) == []


@pytest.mark.parametrize("field", ["tags", "conditions"])
def test_lists_are_bounded_in_count_and_in_length(field: str) -> None:
    most, longest = {"tags": (32, 64), "conditions": (20, 512)}[field]
    good = [str(number) for number in range(most - 1)] + ["x" * longest]
    assert faults(changed(**{field: good})) == []
    for bad in ([*good, "one too many"], ["x" * (longest + 1)], [""], [" "], ["a", "a"], ["\x07"]):
        assert fields(changed(**{field: bad})) == [field]


def test_all_faults_are_reported_together() -> None:
    twice = [UUID(int=1), UUID(int=1)]
    bad = changed(name="", slug="No", method="PATCH", retries=99, depends_on=twice)
    assert sorted(fields(bad)) == ["depends_on", "method", "name", "retries", "slug"]


def test_a_canary_has_no_retries() -> None:
    canary = changed(type="async_canary", retries=1)
    assert [str(fault) for fault in faults(canary)] == ["retries: must be 0"]
    assert faults(changed(type="async_canary", retries=0)) == []


def test_each_type_has_its_manner() -> None:
    manners = {kind: manner_of(kind) for kind in MonitorType}
    assert manners.pop(MonitorType.PUSH) is ResultMode.PUSH
    assert manners.pop(MonitorType.COMPOSITE) is ResultMode.COMPOSITE
    assert set(manners.values()) == {ResultMode.PROBE}
