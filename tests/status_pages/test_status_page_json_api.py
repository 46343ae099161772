"""The JSON of a status page has the rendered components, incidents and figures in their order."""

from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given

from leadline.http.status_pages.routes.status_page_json import page_json
from leadline.http.status_pages.schemas.status_pages import StatusPageRender
from leadline.storage.core.instant import to_text
from leadline.storage.status_pages.rules.status_page import (
    Audience,
    Incident,
    Page,
    PageFacts,
    render,
)
from tests.support.worlds.page_world import SECRET, facts, leaves


def json_of(page: Page) -> Any:
    """Returns the page as JSON types. Lone surrogates are kept: they are no valid JSON."""
    return msgspec.to_builtins(page_json(page))


@given(facts())
def test_public_json_has_only_ids_of_components_and_incidents(found: PageFacts) -> None:
    body = json_of(render(found, Audience.PUBLIC))
    known = {one.uid for one in found.components} | {one.uid for one in found.incidents}
    for text in leaves(body):
        assert SECRET not in str(text)
        if _is_id(text):
            assert UUID(text) in known


def _is_id(text: Any) -> bool:
    try:
        UUID(text)
    except (ValueError, AttributeError, TypeError):
        return False
    return True


@given(facts())
def test_json_has_the_rendered_page_in_its_order(found: PageFacts) -> None:
    for audience in Audience:
        page = render(found, audience)
        body = json_of(page)
        summary = (body["summary"], body["summary_state"], body["unmeasured_count"])
        assert summary == (page.summary.status, page.summary.state, page.summary.unmeasured)
        assert [UUID(one["id"]) for one in body["components"]] == [c.uid for c in page.components]
        assert [_of_incident(one) for one in body["active_incidents"]] == list(
            map(_of, page.active)
        )
        assert [_of_incident(one) for one in body["recent_incidents"]] == list(
            map(_of, page.recent)
        )
        assert body["recent_incidents_more"] is page.recent_more
        assert [one["starts_at"] for one in body["maintenance"]] == [
            to_text(one.starts_at) for one in page.maintenance
        ]
        assert msgspec.convert(body, StatusPageRender) == page_json(page)


def _of_incident(one: Any) -> tuple[Any, ...]:
    return (
        UUID(one["id"]),
        one["title"],
        one["status"],
        one["seq"],
        [(update["seq"], update["body"]) for update in one["updates"]],
        "postmortem" in one,
    )


def _of(one: Incident) -> tuple[Any, ...]:
    said = [(update.seq, update.body) for update in one.updates]
    return one.uid, one.title, one.status, one.seq, said, one.postmortem is not None


@given(facts())
def test_a_component_has_a_figure_or_a_reason(found: PageFacts) -> None:
    page = render(found, Audience.PUBLIC)
    for one, shown in zip(page.components, json_of(page)["components"], strict=True):
        assert ("reason" in shown) is (shown["status"] == "no_data")
        assert ("unavailable" in shown) is (shown.get("reason") == "not_bound")
        assert shown.get("unavailable", True) is True
        if one.measured is None:
            assert {"uptime_90d", "withheld_reason"}.isdisjoint(shown)
            assert shown["daily"] == []
            continue
        assert ("uptime_90d" in shown) is not ("withheld_reason" in shown)
        for day, measured in zip(shown["daily"], one.measured.days, strict=True):
            assert day["day"] == to_text(measured.day)[:10]
            split = measured.split
            assert ("uptime_percent" in day) is (split.good_us + split.bad_us > 0)
            if "uptime_percent" in day:
                whole = split.good_us / (split.good_us + split.bad_us)
                assert abs(day["uptime_percent"] - 100 * whole) < 1e-9
                assert (day["uptime_percent"] == 100) is (split.bad_us == 0)
