"""An entry without its default values is read as the same entry."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.bundles.rules.bundle import AlertingEntry, MonitorEntry, ServiceEntry
from leadline.storage.bundles.rules.bundle_default import brief_monitor, brief_service
from leadline.storage.services.rules.service_health import Policies
from leadline.storage.services.rules.service_policy import ServicePolicies, written_policies

DECIDED = {"interval_seconds", "timeout_seconds", "retries", "failure_threshold"} | {
    "renotify_seconds",
    "auto_incident",
}


@given(
    st.fixed_dictionaries(
        {"name": st.just("Web"), "type": st.just("http")},
        optional={
            "description": st.sampled_from(["", "x"]),
            "target": st.sampled_from(["", "http://x/"]),
            "tags": st.sampled_from([[], ["a"]]),
            "grace_seconds": st.sampled_from([60, 0]),
            "interval_seconds": st.sampled_from([60, 30]),
            "enabled": st.booleans(),
            "config": st.sampled_from([{}, {"body": ""}]),
        },
    )
)
def test_a_brief_monitor_is_read_as_the_same_monitor(given_: dict[str, Any]) -> None:
    whole = msgspec.convert(given_, MonitorEntry)
    said = brief_monitor(msgspec.to_builtins(whole))
    assert msgspec.convert(said, MonitorEntry) == whole
    assert DECIDED & given_.keys() <= said.keys()
    assert len(said) <= len(given_)


def test_a_schedule_stands_in_place_of_the_interval() -> None:
    said = {"name": "Job", "type": "push", "schedule": "0 3 * * *", "interval_seconds": 86_400}
    assert "interval_seconds" not in brief_monitor(said)


def test_a_service_of_defaults_is_only_its_name() -> None:
    settings = msgspec.to_builtins(ServiceEntry(name="Shop"))
    settings["policies"] = msgspec.to_builtins(written_policies(Policies()))
    settings["alerting"] = msgspec.to_builtins(AlertingEntry())
    assert brief_service(settings) == {"name": "Shop"}
    settings["alerting"]["owns_paging"] = True
    settings["policies"]["missing_data"] = "bad"
    said = brief_service(settings)
    assert said["alerting"] == {"owns_paging": True}
    assert said["policies"] == {"missing_data": "bad"}
    read = msgspec.convert(said, ServiceEntry)
    assert read.alerting.owns_paging
    assert read.policies.freshness == ServicePolicies().freshness
