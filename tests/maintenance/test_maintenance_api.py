"""Maintenance over HTTP: shapes, codes, and the preview that the past asks for."""

from typing import Any

import pytest

from leadline.storage.core.instant import DAY, HOUR, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

ALL = "/api/v1/projects/{project}/maintenance"


def at(us: int) -> str:
    return to_text(Instant(FROZEN_NOW + us))


async def request(api: Api, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    given = {} if body is None else {"json": body}
    answer = await api.ask("editor", method, path.format(project=api.project), **given)
    return answer.status_code, await answer.get_json()


async def test_announced_listed_and_taken_back(api: Api) -> None:
    monitor = await api.new_monitor()
    body = {"starts_at": at(HOUR), "ends_at": at(2 * HOUR), "reason": "New disks"}
    status, made = await request(api, "POST", ALL, body | {"monitor_id": str(monitor.uid)})
    assert status == 201
    assert made == {
        "id": made["id"],
        "project_id": str(api.project),
        "monitor_id": str(monitor.uid),
        "starts_at": at(HOUR),
        "ends_at": at(2 * HOUR),
        "reason": "New disks",
        "created_at": at(0),
    }
    assert await request(api, "GET", ALL) == (200, [made])
    assert (await request(api, "DELETE", f"/api/v1/maintenance/{made['id']}"))[0] == 204
    assert await request(api, "GET", ALL) == (200, [])
    archived = {**made, "archived_at": at(0)}
    assert await request(api, "GET", f"{ALL}?archived=true") == (200, [archived])


async def test_the_past_needs_a_preview(api: Api) -> None:
    body = {"starts_at": at(-HOUR), "ends_at": at(HOUR)}
    assert await request(api, "POST", ALL, body) == (409, {"error": "preview_required"})
    status, shown = await request(api, "POST", f"{ALL}/preview", body)
    assert status == 200
    assert shown["coverage"] == "complete"
    assert shown["services"] == []
    preview = {"preview_id": shown["preview_id"]}
    status, made = await request(api, "POST", ALL, body | preview)
    assert status == 201
    one = f"/api/v1/maintenance/{made['id']}"
    assert await request(api, "POST", f"{one}/annul", {}) == (409, {"error": "preview_required"})
    assert await request(api, "POST", f"{one}/annul", preview) == (409, {"error": "preview_stale"})
    again = body | {"mutation": "annul", "maintenance_id": made["id"]}
    _, shown = await request(api, "POST", f"{ALL}/preview", again)
    preview = {"preview_id": shown["preview_id"]}
    assert (await request(api, "POST", f"{one}/annul", preview))[0] == 204
    assert (await request(api, "POST", f"{one}/annul", preview))[0] == 404


async def test_an_active_maintenance_is_ended_now(api: Api) -> None:
    body = {"starts_at": at(0), "ends_at": at(HOUR)}
    _, made = await request(api, "POST", ALL, body)
    assert (await request(api, "DELETE", f"/api/v1/maintenance/{made['id']}"))[0] == 204
    _, (listed,) = await request(api, "GET", ALL)
    assert listed["cancel_effective_at"] == at(0)


@pytest.mark.parametrize(
    ("given", "status", "error"),
    [
        ({"ends_at": at(0)}, 400, "ends_at: must be after starts_at"),
        ({"starts_at": "soon"}, 400, "starts_at: must be an RFC 3339 instant"),
        ({"starts_at": at(800 * DAY), "ends_at": at(801 * DAY)}, 400, "starts_at: must be"),
        ({"reason": "x" * 501}, 400, "reason: "),
        ({"reason": "a\u0007b"}, 400, "reason: must not contain control characters"),
        ({"monitor_id": "00000000-0000-0000-0000-000000000000"}, 400, "monitor_id: names no"),
        ({"starts_at": at(-40 * DAY), "ends_at": at(-39 * DAY)}, 422, "starts_at: must not be"),
        ({"until": at(0)}, 400, "invalid JSON body"),
    ],
)
async def test_bad_input_names_its_field(
    api: Api, given: dict[str, Any], status: int, error: str
) -> None:
    body = {"starts_at": at(HOUR), "ends_at": at(2 * HOUR)} | given
    got, answer = await request(api, "POST", ALL, body)
    assert got == status
    assert answer["error"].startswith(error)
    assert await request(api, "GET", ALL) == (200, [])


async def test_a_preview_of_annulling_names_what_is_annulled(api: Api) -> None:
    body = {"starts_at": at(HOUR), "ends_at": at(2 * HOUR), "mutation": "annul"}
    got, answer = await request(api, "POST", f"{ALL}/preview", body)
    assert got == 400
    assert answer["error"].startswith("maintenance_id: ")


SERIES = "/api/v1/projects/{project}/maintenance-series"


async def test_a_recurring_maintenance_is_announced_ahead_and_can_be_deleted(api: Api) -> None:
    monitor = await api.new_monitor()
    body = {
        "rrule": "FREQ=WEEKLY;BYDAY=TU",
        "starts_at": at(DAY),
        "duration_seconds": 7200,
        "monitor_id": str(monitor.uid),
        "reason": "Patches",
    }
    status, made = await request(api, "POST", SERIES, body)
    assert status == 201
    assert {name: made[name] for name in body} == body
    assert await request(api, "GET", SERIES) == (200, [made])
    _, windows = await request(api, "GET", ALL)
    assert [w["starts_at"] for w in reversed(windows)] == [at((1 + 7 * n) * DAY) for n in range(5)]
    for window in windows:
        assert window["series_id"] == made["id"]
        assert window["monitor_id"] == str(monitor.uid)
    # Each is a window like any other.
    assert (await request(api, "DELETE", f"/api/v1/maintenance/{windows[0]['id']}"))[0] == 204
    assert (await request(api, "DELETE", f"/api/v1/maintenance-series/{made['id']}"))[0] == 204
    assert await request(api, "GET", SERIES) == (200, [])
    assert await request(api, "GET", ALL) == (200, [])
    assert (await request(api, "DELETE", f"/api/v1/maintenance-series/{made['id']}"))[0] == 404


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"rrule": "FREQ=HOURLY"}, "rrule: FREQ must be one of DAILY, WEEKLY, MONTHLY, YEARLY"),
        ({"timezone": "Mars/Base"}, "timezone: is not an IANA time zone"),
        ({"starts_at": at(-DAY)}, "starts_at: must not be before now"),
        (
            {"rrule": "FREQ=WEEKLY;BYDAY=FR"},
            "starts_at: must be an instant at which the rule begins",
        ),
        ({"duration_seconds": 59}, "duration_seconds"),
    ],
)
async def test_an_invalid_recurrence_is_refused_by_its_field(
    api: Api, given: dict[str, Any], error: str
) -> None:
    body = {"rrule": "FREQ=DAILY", "starts_at": at(DAY), "duration_seconds": 3600} | given
    status, told = await request(api, "POST", SERIES, body)
    assert status == 400
    assert told["error"].startswith(error)
    assert await request(api, "GET", ALL) == (200, [])
