"""The public JSON of a status page: status, uptime, incidents, history, feeds and caching, without
private data.
"""

from gzip import decompress
from typing import Any
from uuid import UUID

import pytest
import trio

from leadline.http.wire import response_cache as kept_module
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.paging import measured, new_component, new_page, read, rendered, stands
from tests.support.app.serving import DOWN, UP, call, declared, sealed, uid_of

INCIDENTS = "/projects/{}/incidents"


async def incident(api: Api, **given: Any) -> Any:
    body = {"title": "Payments fail", "body": "We look into it.", **given}
    return await call(api, "POST", INCIDENTS.format(api.project), body, 201)


def texts(found: Any) -> list[str]:
    """Returns all strings of a JSON body."""
    if isinstance(found, dict):
        return [text for value in found.values() for text in texts(value)]
    if isinstance(found, list):
        return [text for value in found for text in texts(value)]
    return [found] if isinstance(found, str) else []


async def test_a_page_without_components_is_empty(api: Api) -> None:
    page = await new_page(api)
    found = await read(api, page)
    assert (found["summary"], found["summary_state"]) == ("no_data", "empty")
    assert (found["components"], found["unmeasured_count"]) == ([], 0)
    assert found["updated_at"] == to_text(FROZEN_NOW)


async def test_an_unmeasured_monitor_is_no_data(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    found = await read(api, page)
    (component,) = found["components"]
    assert (component["status"], component["reason"]) == ("no_data", "no_result_yet")
    assert (found["summary"], found["summary_state"]) == ("no_data", "no_data")
    assert found["unmeasured_count"] == 1
    assert "uptime_90d" not in component
    assert component["withheld_reason"] == "nothing_sealed"
    assert [day for day in component["daily"] if "uptime_percent" in day] == []
    assert len(component["daily"]) == 90


@pytest.mark.parametrize(
    ("status", "shown", "state"),
    [("up", "operational", "operational"), ("down", "major_outage", "impaired")],
)
async def test_a_component_has_the_status_of_its_monitor(
    api: Api, status: str, shown: str, state: str
) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    await new_component(api, page, "Search", monitor_id=str((await api.new_monitor()).uid))
    await stands(api, row, status)
    found = await read(api, page)
    assert [one["status"] for one in found["components"]] == [shown, "no_data"]
    assert (found["summary"], found["summary_state"]) == (shown, state)
    assert found["unmeasured_count"] == 1, "the unmeasured component is counted"


async def test_a_stale_result_is_no_data(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor(interval_seconds=30)
    await new_component(api, page, monitor_id=str(row.uid))
    await stands(api, row, "up", Instant(FROZEN_NOW - HOUR))
    (component,) = (await read(api, page))["components"]
    assert (component["status"], component["reason"]) == ("no_data", "no_fresh_result")


async def test_paused_and_maintained_monitors_have_their_own_status(api: Api) -> None:
    page = await new_page(api)
    paused, worked_on = await api.new_monitor(), await api.new_monitor()
    await new_component(api, page, "Paused", monitor_id=str(paused.uid))
    await new_component(api, page, "Worked on", monitor_id=str(worked_on.uid))
    await stands(api, paused, "up")
    await stands(api, worked_on, "down")
    await call(api, "PATCH", f"/monitors/{paused.uid}", {"enabled": False})
    window = {
        "monitor_id": str(worked_on.uid),
        "starts_at": to_text(FROZEN_NOW),
        "ends_at": to_text(Instant(FROZEN_NOW + HOUR)),
        "reason": "A new index.",
    }
    await call(api, "POST", f"/projects/{api.project}/maintenance", window, 201)
    found = await read(api, page)
    first, second = found["components"]
    assert (first["status"], first["reason"]) == ("no_data", "paused")
    assert second["status"] == "maintenance"
    assert (found["summary"], found["summary_state"]) == ("maintenance", "impaired")
    (shown,) = found["maintenance"]
    assert shown["reason"] == "A new index."
    assert set(shown) == {"starts_at", "ends_at", "reason"}


async def test_days_and_uptime_count_measured_time(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    await measured(api, row, 2, DAY, 0)
    await measured(api, row, 1, DAY // 2, DAY // 4)
    (component,) = (await read(api, page))["components"]
    by_day = {day["day"]: day for day in component["daily"]}
    assert by_day["2026-01-03"]["uptime_percent"] == 100
    assert by_day["2026-01-04"]["uptime_percent"] == pytest.approx(100 * 2 / 3)
    assert "uptime_percent" not in by_day["2026-01-02"]
    assert component["uptime_90d"] == pytest.approx(100 * 6 / 7)
    assert component["uptime_since"] == "2026-01-03T00:00:00.000Z"


async def test_a_service_component_shows_its_sealed_minutes(api: Api) -> None:
    page = await new_page(api)
    path = await declared(api)
    await new_component(api, page, service_id=uid_of(path))
    (component,) = (await read(api, page))["components"]
    assert (component["status"], component["reason"]) == ("no_data", "not_declared"), (
        "a declaration applies from the next minute on"
    )
    await sealed(api, path, (3 * 24 * 60, UP), (60, DOWN), (12 * 60, UP))
    (component,) = (await read(api, page))["components"]
    minutes = 3 * 24 * 60 + 13 * 60
    assert component["uptime_90d"] == pytest.approx(100 * (minutes - 60) / minutes)
    assert sum(day["total"] for day in component["daily"]) == minutes
    worst = min(component["daily"], key=lambda day: day.get("uptime_percent", 100))
    assert worst["uptime_percent"] < 100


async def test_a_service_without_a_declaration_is_no_data(api: Api) -> None:
    page = await new_page(api)
    await new_component(api, page, service_id=str(await api.new_service()))
    (component,) = (await read(api, page))["components"]
    assert (component["status"], component["reason"]) == ("no_data", "not_declared")


async def test_a_component_of_a_deleted_monitor_is_unavailable(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    await stands(api, row, "up")
    await call(api, "DELETE", f"/monitors/{row.uid}", status=204)
    found = await read(api, page)
    (component,) = found["components"]
    assert (component["status"], component["reason"]) == ("no_data", "not_bound")
    assert component["unavailable"] is True
    assert component["daily"] == []
    assert found["summary_state"] == "no_data"


async def test_access_to_internal_and_unlisted_pages(api: Api) -> None:
    internal = await new_page(api, "inside", visibility="internal")
    unlisted = await new_page(api, "quiet", visibility="unlisted")
    for what in ("", "/feed", "/history"):
        await read(api, internal, 404, what)
        await read(api, unlisted, 404, what)
        await read(api, unlisted, 404, what, token="leadline_page_" + "a" * 43)
        await read(api, {"slug": "nowhere"}, 404, what)
    token = unlisted["unlisted_token"]
    assert (await read(api, unlisted, token=token))["visibility"] == "unlisted"
    await read(api, unlisted, what="/history", token=token)
    assert (await rendered(api, internal))["visibility"] == "internal"
    again = {"visibility": "listed"}
    await call(api, "PATCH", f"/status-pages/{unlisted['id']}", again, who="org_admin")
    await read(api, unlisted)
    again = {"visibility": "unlisted"}
    renewed = await call(api, "PATCH", f"/status-pages/{unlisted['id']}", again, who="org_admin")
    await read(api, unlisted, 404, token=token)
    await read(api, unlisted, token=renewed["unlisted_token"])


async def test_an_incident_is_shown_on_the_pages_of_its_components(api: Api) -> None:
    about, other = await api.new_monitor(), await api.new_monitor()
    whole = await new_page(api, "whole")
    of_project = await new_page(api, "of-shop", project_id=str(api.project))
    for page in (whole, of_project):
        await new_component(api, page, monitor_id=str(about.uid))
    mine = await incident(api, title="Of it", monitor_id=str(about.uid))
    await incident(api, title="Of another", monitor_id=str(other.uid))
    general = await incident(api, title="Of nothing")
    found = await read(api, whole)
    assert [one["id"] for one in found["active_incidents"]] == [mine["id"]]
    found = await read(api, of_project)
    shown = {one["id"] for one in found["active_incidents"]}
    assert shown == {mine["id"], general["id"]}


async def test_the_public_sees_no_internal_id_name_or_note(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor(name="shipyard.internal", target="http://10.1.2.3/")
    await new_component(api, page, monitor_id=str(row.uid))
    made = await incident(api, monitor_id=str(row.uid))
    path = f"/incidents/{made['id']}"
    await call(api, "POST", f"{path}/updates", {"body": "A secret note."}, 201)
    await call(api, "POST", f"{path}/updates", {"status": "identified", "body": "A disk."}, 201)
    await call(api, "POST", f"{path}/acknowledge")
    found = await read(api, page)
    (shown,) = found["active_incidents"]
    assert [update["body"] for update in shown["updates"]] == ["We look into it.", "A disk."]
    ids = {text for text in texts(found) if _is_id(text)}
    assert ids == {made["id"], found["components"][0]["id"]}
    words = " ".join(texts(found))
    for hidden in ("secret note", "shipyard", "10.1.2.3", "editor", "example.com"):
        assert hidden not in words
    (known,) = (await rendered(api, page))["active_incidents"]
    assert len(known["updates"]) == 3
    assert known["monitor_id"] == str(row.uid)
    assert known["acknowledged_by_name"]


async def test_a_member_of_one_project_sees_the_public_view_of_other_projects(
    api: Api,
) -> None:
    page = await new_page(api, visibility="internal")
    row = await api.new_monitor(name="shipyard.internal")
    await new_component(api, page, monitor_id=str(row.uid))
    made = await incident(api, monitor_id=str(row.uid))
    await call(api, "POST", f"/incidents/{made['id']}/updates", {"body": "A secret note."}, 201)
    for who, seen in (("neighbour", 1), ("shopkeeper", 1), ("viewer", 2), ("global_admin", 2)):
        (shown,) = (await rendered(api, page, who))["active_incidents"]
        assert len(shown["updates"]) == seen, who
        assert ("monitor_id" in shown) == (seen == 2), who
        path = f"/status-pages/{page['id']}/history"
        (shown,) = (await call(api, "GET", path, who=who))["incidents"]
        assert len(shown["updates"]) == seen, who
    own = await new_page(api, "of-shop", project_id=str(api.project))
    await new_component(api, own, monitor_id=str(row.uid))
    (shown,) = (await rendered(api, own, "shopkeeper"))["active_incidents"]
    assert len(shown["updates"]) == 2
    await call(api, "GET", f"/status-pages/{own['id']}/render", status=404, who="neighbour")


async def test_a_long_incident_is_recent_by_its_end(api: Api) -> None:
    page = await new_page(api, project_id=str(api.project))
    made = await incident(api)
    await call(api, "POST", f"/incidents/{made['id']}/updates", {"status": "resolved"}, 201)
    async with api.pool.transaction("long") as tx:
        await tx.execute("update incidents set started_at = started_at - interval '95 days'")
    (shown,) = (await read(api, page))["recent_incidents"]
    assert shown["id"] == made["id"]
    async with api.pool.transaction("longer") as tx:
        await tx.execute("update incidents set resolved_at = resolved_at - interval '94 days'")
    assert (await read(api, page))["recent_incidents"] == []


def _is_id(text: str) -> bool:
    try:
        return len(text) == 36 and UUID(text) is not None
    except ValueError:
        return False


async def test_an_automatic_incident_is_titled_with_the_component_name(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor(name="checkout-eu-3")
    await new_component(api, page, "Checkout", monitor_id=str(row.uid))
    made = await incident(api, title="checkout-eu-3 is down", monitor_id=str(row.uid))
    async with api.pool.transaction("ours") as tx:
        await tx.execute("update incidents set source = 'auto'")
    (shown,) = (await read(api, page))["active_incidents"]
    assert shown["title"] == "Checkout is down"
    (known,) = (await rendered(api, page))["active_incidents"]
    assert (known["id"], known["title"]) == (made["id"], "checkout-eu-3 is down")


async def test_ten_resolved_incidents_are_shown_with_a_flag_for_more(
    api: Api,
) -> None:
    page = await new_page(api, project_id=str(api.project))
    for n in range(11):
        made = await incident(api, title=f"Number {n}")
        if n < 10:
            path = f"/incidents/{made['id']}/updates"
            await call(api, "POST", path, {"status": "resolved"}, 201)
    found = await read(api, page)
    assert (len(found["recent_incidents"]), found["recent_incidents_more"]) == (10, False)
    path = f"/incidents/{found['active_incidents'][0]['id']}/updates"
    await call(api, "POST", path, {"status": "resolved"}, 201)
    found = await read(api, page)
    assert (len(found["recent_incidents"]), found["recent_incidents_more"]) == (10, True)
    assert found["active_incidents"] == []


async def test_history_is_paged_by_month_and_cursor(api: Api) -> None:
    page = await new_page(api, project_id=str(api.project))
    for n in range(53):
        await incident(api, title=f"Number {n}")
    first = await read(api, page, what="/history")
    assert (first["month"], len(first["incidents"])) == ("2026-01", 50)
    rest = await read(api, page, what="/history", cursor=first["next_cursor"])
    assert (len(rest["incidents"]), rest["next_cursor"]) == (3, None)
    titles = [one["title"] for one in first["incidents"] + rest["incidents"]]
    assert titles == [f"Number {n}" for n in reversed(range(53))]
    before = await read(api, page, what="/history", month="2025-12")
    assert before == {"month": "2025-12", "incidents": [], "next_cursor": None}
    own = await call(api, "GET", f"/status-pages/{page['id']}/history", who="viewer")
    assert len(own["incidents"]) == 50


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"month": "2026-13"}, "invalid_month"),
        ({"month": "January"}, "invalid_month"),
        ({"month": "2025-09"}, "month_outside_history"),
        ({"month": "2026-02"}, "month_outside_history"),
        ({"cursor": "abc"}, "cursor_invalid"),
    ],
)
async def test_an_invalid_month_is_refused(api: Api, query: dict[str, str], code: str) -> None:
    page = await new_page(api)
    assert await read(api, page, 400, "/history", **query) == {"error": code}


async def test_a_cursor_is_bound_to_page_month_and_audience(api: Api) -> None:
    page = await new_page(api, project_id=str(api.project))
    other = await new_page(api, "other", project_id=str(api.project))
    for n in range(51):
        await incident(api, title=f"Number {n}")
    cursor = (await read(api, page, what="/history"))["next_cursor"]
    await read(api, other, 400, "/history", cursor=cursor)
    await read(api, page, 400, "/history", cursor=cursor, month="2025-12")
    own = f"/status-pages/{page['id']}/history"
    await call(api, "GET", own, status=400, who="viewer", query={"cursor": cursor})


async def test_at_most_eight_histories_are_read_concurrently(api: Api) -> None:
    page = await new_page(api)
    histories, now = api.context.histories, api.context.clock()
    async with trio.open_nursery() as nursery:
        done = trio.Event()

        async def hold(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            with histories.permit("somebody", now, takes_token=False):
                task_status.started()
                await done.wait()

        for _ in range(8):
            await nursery.start(hold)
        path = f"/api/v1/public/status-pages/{page['slug']}/history"
        answer = await api.ask("nobody", "GET", path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
        assert await answer.get_json() == {"error": "history_busy"}
        own = f"/status-pages/{page['id']}/history"
        await call(api, "GET", own, who="viewer")
        done.set()
    await read(api, page, what="/history")


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        (None, "application/rss+xml; charset=utf-8"),
        ("rss", "application/rss+xml; charset=utf-8"),
        ("atom", "application/atom+xml; charset=utf-8"),
        ("json", "application/feed+json; charset=utf-8"),
    ],
)
async def test_the_feed_contains_the_incidents_of_the_page(
    api: Api, form: str | None, content_type: str
) -> None:
    page = await new_page(api, project_id=str(api.project))
    made = await incident(api, title="Payments <fail> & more")
    path = f"/api/v1/public/status-pages/{page['slug']}/feed"
    answer = await api.ask("nobody", "GET", path, query={"format": form} if form else None)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)
    text = await answer.get_data(as_text=True)
    assert made["id"] in text
    assert str(api.project) not in text
    own = f"/api/v1/status-pages/{page['id']}/feed"
    answer = await api.ask("viewer", "GET", own, query={"format": form} if form else None)
    assert made["id"] in (await answer.get_data(as_text=True))


async def test_an_unknown_format_is_refused(api: Api) -> None:
    page = await new_page(api)
    found = await read(api, page, 400, "/feed", format="csv")
    assert found["error"].startswith("format: ")


async def test_external_alerts_are_public_after_a_person_posts_an_update(
    api: Api,
) -> None:
    page = await new_page(api, project_id=str(api.project))
    made = await incident(api, title="InstanceDown 10.1.2.3")
    async with api.pool.transaction("alert") as tx:
        await tx.execute("update incidents set external_key = 'abc', source = 'api'")
        await tx.execute("update incident_updates set author = null, author_label = 'token'")
    assert (await read(api, page))["active_incidents"] == []
    assert len((await rendered(api, page))["active_incidents"]) == 1
    path = f"/incidents/{made['id']}/updates"
    await call(api, "POST", path, {"status": "identified", "body": "A disk is full."}, 201)
    (shown,) = (await read(api, page))["active_incidents"]
    assert [update["body"] for update in shown["updates"]] == ["A disk is full."]


async def test_the_history_begins_with_the_first_of_ninety_days(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    await measured(api, row, 90, 0, DAY)
    await measured(api, row, 89, DAY - MINUTE, MINUTE)
    (component,) = (await read(api, page))["components"]
    assert component["daily"][0]["day"] == "2025-10-08"
    assert component["daily"][0]["uptime_percent"] < 100
    assert component["uptime_90d"] == pytest.approx(100 * (DAY - MINUTE) / DAY)


async def test_a_matching_etag_gets_304(api: Api) -> None:
    page = await new_page(api)
    path = f"/api/v1/public/status-pages/{page['slug']}"
    first = await api.ask("nobody", "GET", path)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "public, max-age=1, must-revalidate"
    known = await api.ask("nobody", "GET", path, headers={"If-None-Match": f'"x", W/{tag}'})
    assert (known.status_code, await known.get_data()) == (304, b"")
    assert known.headers["ETag"] == tag
    other = await api.ask("nobody", "GET", path, headers={"If-None-Match": '"x"'})
    assert (other.status_code, other.headers["ETag"]) == (200, tag)


async def test_a_large_answer_is_compressed_if_accepted(api: Api) -> None:
    page = await new_page(api)
    row = await api.new_monitor()
    await new_component(api, page, monitor_id=str(row.uid))
    path = f"/api/v1/public/status-pages/{page['slug']}"
    whole = await api.ask("nobody", "GET", path)
    takes = {"Accept-Encoding": "br;q=1, gzip;q=0.5"}
    packed = await api.ask("nobody", "GET", path, headers=takes)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert packed.headers["ETag"] != whole.headers["ETag"]
    body = await whole.get_data()
    assert decompress(await packed.get_data(as_text=False)) == body
    known = {**takes, "If-None-Match": packed.headers["ETag"]}
    assert (await api.ask("nobody", "GET", path, headers=known)).status_code == 304
    for accepted in ("identity", "gzip;q=0", "*;q=0", "gzip;q=x", "x-gzip"):
        headers = {"Accept-Encoding": accepted}
        answer = await api.ask("nobody", "GET", path, headers=headers)
        assert "Content-Encoding" not in answer.headers, accepted
        assert await answer.get_data() == body
    star = await api.ask("nobody", "GET", path, headers={"Accept-Encoding": "*"})
    assert star.headers["Content-Encoding"] == "gzip"


async def test_an_edit_is_visible_immediately_and_reads_are_cached(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The answer stays fresh on a slow machine.
    monkeypatch.setattr(kept_module, "FRESH_SECONDS", 3_600.0)
    page = await new_page(api)
    path = f"/api/v1/public/status-pages/{page['slug']}"
    kept = api.context.kept
    await api.ask("nobody", "GET", path)
    reads = kept.reads
    for _ in range(5):
        await api.ask("nobody", "GET", path)
    assert kept.reads == reads
    body = {"title": "Harbour, renamed"}
    await call(api, "PATCH", f"/status-pages/{page['id']}", body, who="org_admin")
    answer = await api.ask("nobody", "GET", path)
    assert (await answer.get_json())["title"] == "Harbour, renamed"


async def test_unlisted_answers_are_private_and_need_their_token(
    api: Api,
) -> None:
    page = await new_page(api, visibility="unlisted")
    path = f"/api/v1/public/status-pages/{page['slug']}"
    query = {"token": page["unlisted_token"]}
    answer = await api.ask("nobody", "GET", path, query=query)
    assert answer.headers["Cache-Control"].startswith("private, ")
    assert (await api.ask("nobody", "GET", path)).status_code == 404
    wrong = {"token": page["unlisted_token"][:-1] + "!"}
    assert (await api.ask("nobody", "GET", path, query=wrong)).status_code == 404


async def test_the_statuspage_compatible_api(api: Api) -> None:
    page = await new_page(api, project_id=str(api.project))
    row = await api.new_monitor()
    made = await new_component(api, page, monitor_id=str(row.uid))
    told_of = await incident(api)
    await stands(api, row, "up")
    base = f"/status/{page['slug']}/api/v2"
    answer = await api.ask("nobody", "GET", f"{base}/summary.json")
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    found = await answer.get_json()
    assert [(one["id"], one["status"]) for one in found["components"]] == [
        (made["id"], "operational")
    ]
    assert [one["id"] for one in found["incidents"]] == [told_of["id"]]
    assert found["status"]["indicator"] == "minor"
    for form in ("components", "incidents", "incidents/unresolved", "scheduled-maintenances"):
        assert (await api.ask("nobody", "GET", f"{base}/{form}.json")).status_code == 200
    assert (await api.ask("nobody", "GET", f"{base}/other.json")).status_code == 404
    hidden = await new_page(api, "inside", visibility="internal")
    path = f"/status/{hidden['slug']}/api/v2/summary.json"
    assert (await api.ask("nobody", "GET", path)).status_code == 404


async def test_badges_of_a_page_and_of_a_component(api: Api) -> None:
    page, other = await new_page(api), await new_page(api, "other")
    made = await new_component(api, page, manual_status="degraded")
    foreign = await new_component(api, other, manual_status="operational")
    path = f"/status/{page['slug']}/badge.svg"
    answer = await api.ask("nobody", "GET", path)
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "Harbour Goods: Degraded" in await answer.get_data(as_text=True)
    answer = await api.ask("nobody", "GET", path, query={"component": made["id"]})
    assert "Checkout: Degraded" in await answer.get_data(as_text=True)
    query = {"component": made["id"], "show": "uptime"}
    answer = await api.ask("nobody", "GET", path, query=query)
    assert "Checkout: —" in await answer.get_data(as_text=True)
    for query, status in (
        ({"component": foreign["id"]}, 404),
        ({"component": "x"}, 400),
        ({"show": "uptime"}, 400),
        ({"show": "other"}, 400),
    ):
        assert (await api.ask("nobody", "GET", path, query=query)).status_code == status


async def test_only_the_widget_can_be_framed(api: Api) -> None:
    page = await new_page(api)
    answer = await api.ask("nobody", "GET", f"/status/{page['slug']}/widget")
    assert "frame-ancestors *" in answer.headers["Content-Security-Policy"]
    assert "No components yet" in await answer.get_data(as_text=True)
    answer = await api.ask("nobody", "GET", f"/status/{page['slug']}")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


async def test_an_incident_has_a_permanent_page(api: Api) -> None:
    shown = await api.new_status_page(slug="lasting")
    await api.new_component(shown, name="Payments")
    uid = await api.new_incident(title="Payments fail", body="We are investigating.")
    answer = await api.ask("nobody", "GET", "/status/lasting")
    assert answer.headers["Refresh"] == "60"
    text = str(await answer.get_data(as_text=True))
    assert f'/status/lasting/incidents/{uid}"' in text
    answer = await api.ask("nobody", "GET", f"/status/lasting/incidents/{uid}")
    assert (answer.status_code, answer.headers["Refresh"]) == (200, "60")
    text = str(await answer.get_data(as_text=True))
    for said in ("Payments fail", "Investigating", "We are investigating."):
        assert said in text
    await api.new_status_page(slug="elsewhere", project=api.projects["acme/mill"][1])
    for path in ("/status/elsewhere", "/status/nowhere"):
        assert (await api.ask("nobody", "GET", f"{path}/incidents/{uid}")).status_code == 404
    hidden = await api.new_incident(title="Quiet", public=False)
    answer = await api.ask("nobody", "GET", f"/status/lasting/incidents/{hidden}")
    assert answer.status_code == 404


async def test_the_first_public_text_names_the_component(api: Api) -> None:
    monitor = await api.new_monitor(name="inner-name-1")
    shown = await api.new_status_page(slug="plain")
    await api.new_component(shown, name="Payments", monitor=monitor.uid)
    await api.new_incident(
        title="inner-name-1 is down",
        monitor=monitor.uid,
        body="Our monitoring detected a problem. We are investigating.",
    )
    async with api.pool.transaction("opened by itself") as tx:
        await tx.execute("update incidents set source = 'auto'")
    answer = await api.ask("nobody", "GET", "/status/plain")
    text = str(await answer.get_data(as_text=True))
    assert "Our monitoring shows a problem with Payments. We are investigating." in text
    assert "inner-name-1" not in text
