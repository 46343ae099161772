"""The screen of workers and agents shows regions without probers and live processes, and a new
token once."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from uuid_utils.compat import uuid7

from leadline.storage.agents.queries.agent_tokens import select_live_agent_token
from leadline.storage.agents.transactions import edit_agent_tokens
from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.token import digest
from leadline.storage.results.tables.packing_failures import insert_failure
from leadline.storage.scheduling.tables import presences
from tests.support.app.cast import Api

PATH = "/admin/fleet"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def seen(api: Api) -> str:
    answer = await api.ask("global_admin", "GET", PATH)
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


async def send(api: Api, form: str) -> Any:
    return await api.ask("global_admin", "POST", PATH, data=form.encode(), headers=FORM)


async def present(api: Api, host: str, version: str = "0.3.8", *regions: str) -> None:
    async with api.pool.transaction("present") as tx:
        await presences.begin_presence(
            tx, uuid7(), tx.now, host, ["worker"], regions, version, accepts_pushes=False
        )


async def hear(api: Api, name: str, region: str, ago_seconds: int, **given: Any) -> None:
    values = {"version": "0.3.8", "kinds": list[str](), "credential": "catch-all", **given}
    async with api.pool.transaction("hear") as tx:
        await tx.execute(
            "insert into agents (credential, region, instance, name, version, workflow_kinds,"
            " carrier, holder, first_seen_at, last_seen_at) values (%(credential)s, %(region)s,"
            " %(instance)s, %(name)s, %(version)s, %(kinds)s::text[], 3, %(holder)s, at(%(at)s),"
            " at(%(at)s))",
            name=name,
            region=region,
            instance=uuid4(),
            holder=uuid4(),
            at=Instant(tx.now - ago_seconds * SECOND),
            **values,
        )


async def test_the_screen_says_which_days_are_packed(api: Api) -> None:
    assert "packed" not in await seen(api)
    await api.new_monitor()
    async with api.pool.transaction("pack") as tx:
        await tx.execute(
            "update packing set packed_through = at(%(t)s)", t=Instant(tx.now - 5 * DAY)
        )
        await tx.execute("update shards set settled_through = at(%(t)s)", t=tx.now)
    async with api.pool.transaction("fail") as tx:
        await insert_failure(tx, MonitorKey((1, 1)), Instant(tx.now - 6 * DAY), "a cause")
    assert "1 day of single monitors could not be packed as usual (see the log)." in await seen(api)
    assert "Results before 2025-12-31 (UTC) are packed. 3 days must still be packed." in await seen(
        api
    )


async def test_a_region_without_probers_is_shown_with_its_monitors(api: Api) -> None:
    assert "No probers, no monitors" in await seen(api)
    for _ in range(2):
        await api.new_monitor(region="eu")
    await api.new_monitor(region="eu", enabled=False)
    await api.new_monitor(region="core", type="push", target="")
    page = await seen(api)
    assert "No prober in eu</h1>" in page
    assert "Region eu has no live prober: 2 monitors are not checked" in page
    await present(api, "a", "0.3.8", "core", "eu")
    page = await seen(api)
    assert "2 regions probed</h1>" in page
    assert "no live prober" not in page


async def test_an_agent_makes_a_region_live_until_its_heartbeats_stop(api: Api) -> None:
    await api.new_monitor(region="eu")
    await hear(api, "attic", "eu", 46)
    page = await seen(api)
    assert "No prober in eu</h1>" in page
    assert "no heartbeat" in page
    await hear(api, "cellar", "eu", 44)
    assert "1 region probed</h1>" in await seen(api)


async def test_a_long_pending_job_is_shown(api: Api) -> None:
    row = await api.new_monitor(region="eu")
    await present(api, "a", "0.3.8", "eu")
    async with api.pool.transaction("wait") as tx:
        await tx.execute(
            "update jobs set due_at = due_at - interval '30 seconds' where monitor = %(m)s",
            m=row.id,
        )
    page = await seen(api)
    assert "Runs wait in eu</h1>" in page
    assert "Region eu: the oldest unclaimed run waits for 30\u202fs" in page


async def test_processes_and_agents_of_another_version_are_marked(api: Api) -> None:
    await present(api, "<b>old</b>", "0.3.7", "core", "eu")
    await present(api, "new", "0.3.8", "core")
    page = await seen(api)
    assert "&lt;b&gt;old&lt;/b&gt;" in page
    assert "core, eu" in page
    assert page.count("differs") == 1
    await hear(api, "attic", "eu", 0, version="0.3.6", kinds=["async_transaction@1"])
    page = await seen(api)
    assert page.count("differs") == 2
    assert "async_transaction@1" in page
    assert "token for all regions" in page


async def test_a_token_is_shown_in_the_answer_and_never_again(api: Api) -> None:
    answer = await send(api, "act=make&name=+The+attic+&region=eu")
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    token = page.partition('data-copy="')[2].partition('"')[0]
    async with api.pool.transaction("find", read_only=True) as tx:
        row = await select_live_agent_token(tx, digest(token))
    assert row is not None
    assert (row.name, row.region) == ("The attic", "eu")
    assert token not in await seen(api)
    answer = await send(api, f"act=revoke&token={row.uid}")
    assert (answer.status_code, answer.headers["Location"]) == (303, PATH)
    async with api.pool.transaction("find", read_only=True) as tx:
        assert await select_live_agent_token(tx, digest(token)) is None
    page = await seen(api)
    assert "revoked <time" in page
    assert "Revoke The attic" not in page
    again = await send(api, f"act=revoke&token={row.uid}")
    assert again.status_code == 400
    assert "The token was deleted or revoked" in await again.get_data(as_text=True)


@pytest.mark.parametrize(
    ("form", "said", "kept"),
    [
        ("act=make&name=++&region=eu", "Name: must not be blank.", ""),
        ("act=make&name=A+long+name&region=moon", "Region: is not a region", "A long name"),
        ("act=revoke&token=nonsense", "was deleted or revoked", ""),
    ],
)
async def test_an_error_is_shown_and_the_typed_text_kept(
    api: Api, form: str, said: str, kept: str
) -> None:
    answer = await send(api, form)
    page = await answer.get_data(as_text=True)
    assert answer.status_code == 400
    assert said in page
    assert f'value="{kept}"' in page
    assert await api.rows("select 1 from agent_tokens") == []


async def test_a_full_list_explains_how_to_continue(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_agent_tokens, "LIVE_MOST", 0)
    answer = await send(api, "act=make&name=attic&region=eu")
    assert answer.status_code == 400
    assert "Revoke one first" in await answer.get_data(as_text=True)


async def test_the_page_shows_that_agents_are_disabled(api: Api) -> None:
    assert "Agents are off" not in await seen(api)
    options = replace(api.context.options, has_agents=False)
    object.__setattr__(api.context, "options", options)
    assert "Agents are off" in await seen(api)


async def test_only_who_runs_the_installation_is_led_there(api: Api) -> None:
    for who, is_led in (("global_admin", True), ("org_admin", False)):
        answer = await api.ask(who, "GET", f"/projects/{api.project}/settings")
        assert (f'href="{PATH}"' in await answer.get_data(as_text=True)) is is_led
