"""Live screens ask with the tag of their last answer: 304 while nothing changed, in every role."""

import re
from typing import Any

import pytest
from quart import Response

from leadline.http.home.console.overview_rail import SCHEDULES_MOST
from leadline.http.home.console.overview_screen import PAGE_ROWS
from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.rows import MonitorRow
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

_KEYS = re.compile(r'id="r-([^"]+)"[^>]* data-key="([^"]+)"')
_RAIL = re.compile(r'<div class="rail" id="rail" data-live="rail".*?</section></div>', re.DOTALL)
_RESULT = """
insert into heartbeats (org, monitor, ts, latency_ms, up)
values (%(org)s, %(id)s, at(%(ts)s), 4, true)
"""
_STATE = """
update monitor_states set status = 'down', version = version + 1
where org = %(org)s and monitor = %(id)s
"""
_PRESENCE = """
insert into presences (process, from_at, through_at, host, roles, regions, version, accepts_pushes)
values (gen_random_uuid(), at(%(now)s), at(%(now)s), 'h', '{worker}', '{core}', '', false)
"""


async def execute(api: Api, statement: str, **given: Any) -> None:
    async with api.pool.transaction("test") as tx:
        await tx.execute(statement, **given)


async def new_result(api: Api, row: MonitorRow, ago_us: int) -> None:
    await make_partitions(
        api.pool, "heartbeats", "ts", from_=Instant(FROZEN_NOW - DAY), through=FROZEN_NOW
    )
    await execute(api, _RESULT, org=row.org, id=row.id, ts=Instant(FROZEN_NOW - ago_us))


async def ask(api: Api, path: str, tag: str, *shown: MonitorRow, who: str = "viewer") -> Response:
    query = {"shown": [str(row.uid) for row in shown]} if shown else None
    return await api.ask(who, "GET", path, headers={"If-None-Match": tag}, query=query)


async def tag_of(api: Api, path: str, *shown: MonitorRow) -> str:
    answer = await ask(api, path, "-", *shown)
    assert answer.status_code == 200
    tag = str(answer.headers["ETag"])
    again = await ask(api, path, tag, *shown)
    assert (again.status_code, again.headers["ETag"]) == (304, tag)
    assert await again.get_data() == b""
    return tag


@pytest.mark.parametrize("place", ["project", "monitor"])
async def test_a_result_a_status_and_an_edit_change_the_tag(api: Api, place: str) -> None:
    row = await api.new_monitor(name="Watched")
    other = await api.new_monitor(name="Not on this page of the list")
    path = f"/projects/{api.project}/rows" if place == "project" else f"/monitors/{row.uid}"
    shown = (row,) if place == "project" else ()
    tag = await tag_of(api, path, *shown)
    await new_result(api, other, 9 * SECOND)
    assert (await ask(api, path, tag, *shown)).status_code == 304
    await new_result(api, row, 9 * SECOND)
    assert (await ask(api, path, tag, *shown)).status_code == 200
    tag = await tag_of(api, path, *shown)
    await execute(api, _STATE, org=other.org, id=other.id)
    assert (await ask(api, path, tag, *shown)).status_code == 200
    tag = await tag_of(api, path, *shown)
    edited = await api.ask("editor", "PATCH", f"/api/v1/monitors/{other.uid}", {"name": "Renamed"})
    assert edited.status_code == 200
    assert (await ask(api, path, tag, *shown)).status_code == 200
    tag = await tag_of(api, path, *shown)
    await execute(api, _PRESENCE, now=FROZEN_NOW)
    assert (await ask(api, path, tag, *shown)).status_code == 200


@pytest.mark.parametrize("place", ["", "/services"])
async def test_an_incident_changes_the_tag_and_another_caller_has_another(
    api: Api, place: str
) -> None:
    row = await api.new_monitor(name="Watched")
    path = f"/projects/{api.project}{place or '/rows'}"
    tag = await tag_of(api, path, row)
    assert (await ask(api, path, tag, row, who="editor")).status_code == 200
    incident = {"title": "Slow", "impact": "minor"}
    made = await api.ask("editor", "POST", f"/api/v1/projects/{api.project}/incidents", incident)
    assert made.status_code == 201
    assert (await ask(api, path, tag, row)).status_code == 200


async def test_a_page_that_is_opened_has_no_tag(api: Api) -> None:
    row = await api.new_monitor(name="Watched")
    for path in (f"/projects/{api.project}/rows", f"/monitors/{row.uid}"):
        assert "ETag" not in (await api.ask("viewer", "GET", path)).headers


async def test_the_rows_are_those_that_are_shown_and_changed(api: Api) -> None:
    for number in range(PAGE_ROWS):
        await api.new_monitor(name=f"a{number:03}")
    first = await api.new_monitor(name="a")
    moved = await api.new_monitor(name="z")
    project = f"/projects/{api.project}"

    async def ask_rows(*shown: str, **query: Any) -> tuple[list[str], list[str], dict[str, str]]:
        # Without a filter, a project with so many monitors shows groups.
        given = {"show": "notup", **query, "shown": [*shown, "no-id~x"]}
        answer = await api.ask("viewer", "GET", f"{project}/rows", query=given)
        text: str = await answer.get_data(as_text=True)
        listed, elsewhere = (
            text.partition(f'data-{name}="')[2].partition('"')[0].split()
            for name in ("listed", "elsewhere")
        )
        return listed, elsewhere, dict(_KEYS.findall(text))

    # A row without a key is answered with one, also if it is on another page of the list.
    listed, elsewhere, keys = await ask_rows(str(moved.uid), str(first.uid))
    assert len(listed) == PAGE_ROWS
    assert (str(first.uid) in listed, elsewhere) == (True, [str(moved.uid)])
    assert keys.keys() == {str(first.uid), str(moved.uid)}
    shown = [f"{uid}~{key}" for uid, key in keys.items()]
    assert await ask_rows(*shown) == (listed, elsewhere, {})
    await new_result(api, moved, 9 * SECOND)
    assert (await ask_rows(*shown))[2].keys() == {str(moved.uid)}
    listed, elsewhere, _ = await ask_rows(str(first.uid), page="2")
    assert (str(moved.uid) in listed, elsewhere) == (True, [str(first.uid)])
    assert (await ask_rows(str(moved.uid), q="zz"))[:2] == ([], [str(moved.uid)])
    gone = await api.ask("editor", "DELETE", f"/api/v1/monitors/{moved.uid}")
    assert gone.status_code == 204
    assert str(moved.uid) not in str(await ask_rows(*shown))
    # The rows of the page itself have the same keys.
    page = await api.ask("viewer", "GET", project, query={"show": "notup"})
    text: str = await page.get_data(as_text=True)
    assert dict(_KEYS.findall(text))[str(first.uid)] == keys[str(first.uid)]


async def test_the_panels_beside_the_overview_are_refreshed(api: Api) -> None:
    await api.new_monitor()
    project = f"/projects/{api.project}"
    for _ in range(SCHEDULES_MOST + 1):
        await api.new_schedule()
    found = []
    for path in (project, f"{project}/rows"):
        text = await (await api.ask("viewer", "GET", path)).get_data(as_text=True)
        rail = _RAIL.search(text)
        assert rail is not None, path
        found.append(rail[0])
    assert found[0] == found[1]
    assert found[0].count("until ") == SCHEDULES_MOST
    assert f'<a href="{project}/on-call">1 more</a>' in found[0]


async def page_of(api: Api, row: MonitorRow) -> str:
    text: str = await (await api.ask("viewer", "GET", f"/monitors/{row.uid}")).get_data(
        as_text=True
    )
    return text


async def test_the_page_of_a_monitor_states_what_is_due(api: Api) -> None:
    probed = await api.new_monitor(name="Probed")
    push = await api.new_monitor(name="Pushed", type="push", target="")
    both = {"children": [str(probed.uid)]}
    made = await api.ask(
        "editor",
        "POST",
        f"/api/v1/projects/{api.project}/monitors",
        {"name": "Composed", "type": "composite", "target": "", "config": both},
    )
    assert made.status_code == 201, await made.get_data(as_text=True)
    composed = f"/monitors/{(await made.get_json())['id']}"
    unserved = "Region core has no live worker or agent; no check runs."
    assert unserved in await page_of(api, probed)
    assert "The first heartbeat starts the deadline." in await page_of(api, push)
    text: str = await (await api.ask("viewer", "GET", composed)).get_data(as_text=True)
    assert "expected at" not in text
    assert unserved not in text
    await execute(api, _PRESENCE, now=FROZEN_NOW)
    assert "Next check at" in await page_of(api, probed)
    await new_result(api, push, 9 * SECOND)
    assert "Next report expected at" in await page_of(api, push)


async def test_the_overview_lists_a_pending_monitor_that_no_check_reaches(api: Api) -> None:
    await api.new_monitor(name="Never checked")
    path = f"/projects/{api.project}"
    text: str = await (await api.ask("viewer", "GET", path)).get_data(as_text=True)
    assert "Region core has no live worker or agent: 1 monitor is not checked." in text
    assert "Region core</b></a> is not reporting" in text
    assert "so 1 monitor cannot be checked" in text
    await execute(api, _PRESENCE, now=FROZEN_NOW)
    text = await (await api.ask("viewer", "GET", path)).get_data(as_text=True)
    assert "no live worker or agent" not in text
