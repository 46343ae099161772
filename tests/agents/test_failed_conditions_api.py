"""Failed conditions from an agent to a member: what the server accepts, and what the API shows."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from leadline.daemon.loops.alert_processor import AlertProcessor
from leadline.http.auth.passwords import Passwords
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from tests.support.app.edge import Edge, open_edge, result
from tests.support.app.paging import new_component, new_page

STATUS, BODY = "[STATUS] == 200", "[BODY].state == UP"
MSG = "condition_failed shop.example"


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        yield made


async def monitor(edge: Edge, **given: Any) -> MonitorRow:
    return await edge.monitor(conditions=[STATUS, BODY], **given)


async def bring(edge: Edge, row: MonitorRow, condition: str, measured: str | None) -> None:
    failed = {"condition": condition} | ({} if measured is None else {"measured": measured})
    item = result(row, await edge.due(row), up=False, msg=MSG, failed_condition=failed)
    assert (await edge.bring(item))["accepted"] == 1


async def newest(edge: Edge, row: MonitorRow) -> dict[str, Any]:
    answer = await edge.api.ask("viewer", "GET", f"/api/v1/monitors/{row.uid}/heartbeats?limit=1")
    (beat,) = await answer.get_json()
    assert beat["msg"] == MSG
    return dict(beat)


async def test_a_member_reads_the_failed_condition_with_its_value(edge: Edge) -> None:
    row = await monitor(edge)
    await bring(edge, row, STATUS, "503")
    assert (await newest(edge, row))["conditions"] == ["[STATUS] == 200 (503)"]


async def test_content_is_stored_only_if_the_monitor_shows_values(edge: Edge) -> None:
    row = await monitor(edge)
    await bring(edge, row, BODY, '"DOWN"')
    assert (await newest(edge, row))["conditions"] == [BODY]
    assert await edge.api.rows("select measured from heartbeats") == [(None,)]
    shown = await monitor(edge, show_values=True)
    await bring(edge, shown, BODY, '"DOWN"')
    assert (await newest(edge, shown))["conditions"] == ['[BODY].state == UP ("DOWN")']


@pytest.mark.parametrize(
    ("condition", "measured"),
    [
        ("[BODY].other == 1", "2"),
        ("not a condition", None),
        ("[STATUS] == \x07", None),
    ],
)
async def test_a_condition_that_is_not_of_the_monitor_is_not_stored(
    edge: Edge, condition: str, measured: str | None
) -> None:
    row = await monitor(edge, show_values=True)
    await bring(edge, row, condition, measured)
    assert "conditions" not in await newest(edge, row)


async def test_a_value_of_another_form_is_not_stored(edge: Edge) -> None:
    row = await monitor(edge)
    await bring(edge, row, STATUS, '"a secret"')
    assert (await newest(edge, row))["conditions"] == [STATUS]


async def test_a_good_result_and_another_failure_have_no_conditions(edge: Edge) -> None:
    row = await monitor(edge)
    failed = {"condition": STATUS, "measured": "503"}
    await edge.bring(result(row, await edge.due(row), failed_condition=failed))
    due = await edge.due(row)
    await edge.bring(result(row, due, up=False, msg="timeout a.b", failed_condition=failed))
    answer = await edge.api.ask("viewer", "GET", f"/api/v1/monitors/{row.uid}/heartbeats")
    assert all("conditions" not in beat for beat in await answer.get_json())


async def test_a_late_result_of_an_earlier_definition_keeps_its_condition(edge: Edge) -> None:
    row = await monitor(edge)
    due = await edge.due(row)
    async with edge.api.pool.transaction("edit") as tx:
        await edit_monitor(
            tx,
            edge.api.editor,
            row.uid,
            {"conditions": ["[STATUS] == 201"]},
            edge.api.context.keyring,
            edge.api.context.options.regions,
        )
    failed = {"condition": STATUS, "measured": "503"}
    item = result(row, due, up=False, msg=MSG, failed_condition=failed)
    assert (await edge.bring(item, route="backfill"))["accepted"] == 1
    assert (await newest(edge, row))["conditions"] == ["[STATUS] == 200 (503)"]


async def test_a_job_has_show_values_only_if_the_monitor_sets_it(edge: Edge) -> None:
    plain, shown = await monitor(edge), await monitor(edge, show_values=True)
    found: dict[str, Any] = {}
    for row in (plain, shown):
        await edge.due(row)
        answer = await edge.ask("GET", "jobs?wait=0&max=10&region=eu", None)
        found |= {job["monitor_id"]: job for job in answer["jobs"]}
    assert found[str(shown.uid)]["show_values"] is True
    assert "show_values" not in found[str(plain.uid)]


PUBLIC = ("", "/feed", "/feed?format=atom", "/feed?format=json", "/history")


async def test_the_console_shows_the_condition_and_no_public_route_does(edge: Edge) -> None:
    api = edge.api
    row = await monitor(edge, show_values=True)
    page = await new_page(api, visibility="listed")
    await new_component(api, page, monitor_id=str(row.uid))
    await bring(edge, row, BODY, '"DOWN <b>"')
    await AlertProcessor(api.pool, edge.clock, lambda: None, lambda: None).pass_once()
    ((incident,),) = await api.rows("select uid from incidents")
    escaped = "[BODY].state == UP (&#34;DOWN &lt;b&gt;&#34;)"
    for path in (f"/monitors/{row.uid}", f"/incidents/{incident}"):
        answer = await api.ask("viewer", "GET", path)
        assert answer.status_code == 200, path
        assert escaped in await answer.get_data(as_text=True), path
    for path in [f"/api/v1/public/status-pages/{page['slug']}{what}" for what in PUBLIC] + [
        f"/status/{page['slug']}"
    ]:
        answer = await api.ask("nobody", "GET", path)
        assert answer.status_code == 200, path
        told = await answer.get_data(as_text=True)
        assert "[BODY]" not in told, path
        assert "DOWN" not in told, path
