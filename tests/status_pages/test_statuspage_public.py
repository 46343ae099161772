"""The Statuspage-compatible JSON has the data of the status page and nothing else."""

import json
import re
from typing import Any

from hypothesis import given

from leadline.http.status_pages.public.statuspage_v2 import FORMS
from leadline.http.status_pages.public.urls import Addresses
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.status_pages.rules.status_page import (
    Audience,
    ComponentStatus,
    Page,
    PageSummaryState,
    render,
)
from tests.status_pages.test_html_public import shop
from tests.support.worlds import page_world
from tests.support.worlds.page_world import SECRET

PLACES = Addresses("https://status.example", "shop")
# The indicators of the format, plus Leadline's "unknown".
COMPONENT = {
    "operational",
    "degraded_performance",
    "partial_outage",
    "major_outage",
    "under_maintenance",
    "no_data",
}
INDICATOR = ["none", "maintenance", "minor", "major", "critical"]
pages = page_world.facts().map(lambda facts: render(facts, Audience.PUBLIC))
_UIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def json_of(page: Page, form: str) -> Any:
    return json.loads(json.dumps(FORMS[form](page, PLACES)))


@given(pages)
def test_the_json_has_the_components_and_incidents_of_the_page(page: Page) -> None:
    found = json_of(page, "summary.json")
    assert [(one["id"], one["name"]) for one in found["components"]] == [
        (str(one.uid), one.name) for one in page.components
    ]
    assert {one["status"] for one in found["components"]} <= COMPONENT
    unmeasured = [one for one in found["components"] if one["status"] == "no_data"]
    assert len(unmeasured) == page.summary.unmeasured
    assert [one["id"] for one in found["incidents"]] == [str(one.uid) for one in page.active]
    assert len(found["scheduled_maintenances"]) == len(page.maintenance)
    every = json_of(page, "incidents.json")["incidents"]
    assert [one["name"] for one in every] == [one.title for one in [*page.active, *page.recent]]
    for one, incident in zip(every, [*page.active, *page.recent], strict=True):
        found = [(update["status"], update["body"]) for update in one["incident_updates"]]
        if incident.postmortem is not None:
            assert found.pop(0) == ("postmortem", incident.postmortem.body)
        assert [body for _, body in found] == [update.body for update in reversed(incident.updates)]


@given(pages)
def test_the_json_has_no_private_id_or_text(page: Page) -> None:
    known = {str(one.uid) for one in page.components}
    known |= {str(one.uid) for one in [*page.active, *page.recent]}
    for form in FORMS:
        text = json.dumps(json_of(page, form), ensure_ascii=False)
        assert SECRET not in text
        assert set(_UIDS.findall(text)) <= known


@given(pages)
def test_the_indicator_is_unknown_without_data(page: Page) -> None:
    said = json_of(page, "status.json")["status"]["indicator"]
    nothing_known = page.summary.state in (PageSummaryState.EMPTY, PageSummaryState.NO_DATA)
    assert (said == "unknown") == (nothing_known and not page.active)
    if said == "none":
        assert page.summary.status in (ComponentStatus.OPERATIONAL, ComponentStatus.NO_DATA)
        assert all(one.impact == "none" for one in page.active)
    for one in page.active:
        if one.impact != "none":
            assert INDICATOR.index(said) >= INDICATOR.index(one.impact.value)


@given(pages)
def test_maintenance_is_either_active_or_upcoming(page: Page) -> None:
    every = json_of(page, "scheduled-maintenances.json")["scheduled_maintenances"]
    parts = [
        *json_of(page, "scheduled-maintenances/active.json")["scheduled_maintenances"],
        *json_of(page, "scheduled-maintenances/upcoming.json")["scheduled_maintenances"],
    ]
    key = ["id", "name"]
    assert sorted([one[k] for k in key] for one in every) == sorted(
        [one[k] for k in key] for one in parts
    )


@given(pages)
def test_unresolved_lists_the_open_incidents(page: Page) -> None:
    found = json_of(page, "incidents/unresolved.json")["incidents"]
    assert all(one["resolved_at"] is None for one in found)
    assert all(one["status"] != IncidentStatus.RESOLVED for one in found)
    assert len(found) == len(page.active)


def test_each_component_status_has_its_statuspage_value() -> None:
    page = render(
        shop(ComponentStatus.OPERATIONAL, ComponentStatus.DEGRADED, ComponentStatus.MAINTENANCE),
        Audience.PUBLIC,
    )
    found = json_of(page, "summary.json")
    assert [one["status"] for one in found["components"]] == [
        "operational",
        "degraded_performance",
        "under_maintenance",
    ]
    assert found["status"] == {"indicator": "minor", "description": "Degraded performance"}
    assert found["page"]["url"] == "https://status.example/status/shop"
