"""Default settings of new monitors: a monitor that omits fields is valid under every accepted
default."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.monitors.rules.monitor import MonitorDraft, MonitorType, faults
from leadline.storage.monitors.rules.monitor_defaults import (
    BUILT_IN,
    MonitorDefaults,
    completed,
    defaults_fault,
)

numbers = st.integers(-2, 400) | st.sampled_from([3_600, 86_399, 86_400, 86_401, 10**9])
anything = st.builds(
    MonitorDefaults,
    interval_seconds=numbers,
    timeout_seconds=numbers,
    retries=numbers,
    failure_threshold=numbers,
    renotify_seconds=numbers,
    auto_incident=st.booleans(),
)
some = st.fixed_dictionaries(
    {},
    optional={
        "interval_seconds": st.integers(5, 86_400),
        "retries": st.integers(0, 10),
        "failure_threshold": st.integers(1, 100),
        "auto_incident": st.booleans(),
    },
)


def draft(kind: MonitorType, values: dict[str, Any]) -> MonitorDraft:
    common = {name: value for name, value in values.items() if name != "auto_incident"}
    return MonitorDraft(name="x", type=kind, target="http://x.test/", **common)


@given(anything, some, st.sampled_from(MonitorType))
def test_accepted_defaults_give_valid_monitors(
    defaults: MonitorDefaults, values: dict[str, Any], kind: MonitorType
) -> None:
    if kind is MonitorType.ASYNC_CANARY:
        values = {name: value for name, value in values.items() if name != "retries"}
    found = completed(values, kind, defaults)
    assert values.items() <= found.items()
    assert found.keys() == set(MonitorDefaults.__struct_fields__)
    if defaults_fault(defaults) is None:
        assert faults(draft(kind, found)) == []


@given(anything)
def test_refused_defaults_give_invalid_monitors(defaults: MonitorDefaults) -> None:
    wrong = [one.field for one in faults(draft(MonitorType.HTTP, msgspec.structs.asdict(defaults)))]
    fault = defaults_fault(defaults)
    assert (fault is None) == (wrong == [])
    if fault is not None:
        assert fault[0] in wrong


@pytest.mark.parametrize("kind", ["async_canary", "push", "composite"])
def test_a_type_that_is_never_repeated_gets_no_default_retries(kind: str) -> None:
    defaults = MonitorDefaults(retries=3)
    assert completed({}, kind, defaults)["retries"] == 0
    assert completed({}, "http", defaults)["retries"] == 3
    assert completed({"retries": 2}, kind, defaults)["retries"] == 2


def test_a_short_interval_shortens_the_default_timeout() -> None:
    assert completed({"interval_seconds": 5}, "http", BUILT_IN)["timeout_seconds"] == 5
    assert completed({"interval_seconds": 60}, "http", BUILT_IN)["timeout_seconds"] == 10
    given = {"interval_seconds": 5, "timeout_seconds": 9}
    assert completed(given, "http", BUILT_IN)["timeout_seconds"] == 9
