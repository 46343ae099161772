"""Actions in the background: several processes, failures of the database, and every undo."""

from dataclasses import replace
from uuid import UUID

import pytest
import trio

from leadline.http.home.console.monitor_bulk import result_of
from leadline.storage.accounts.rules.access import Principal
from leadline.storage.bulk import transactions
from leadline.storage.bulk.queries import select_report
from leadline.storage.bulk.rows import BulkReport
from leadline.storage.bulk.rules import UNDO, BulkAct, ObjectState
from leadline.storage.bulk.transactions import (
    BulkContext,
    begin_action,
    begin_undo,
    perform_next,
)
from leadline.storage.core.refusal import Refused, Unavailable
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from tests.support.app.cast import Api

COUNT = 6


def ground(api: Api) -> BulkContext:
    return BulkContext(keyring=api.context.keyring, raw_days=30)


async def author(api: Api) -> Principal:
    """The editor with the account that the runner reads again."""
    ((uid,),) = await api.rows(
        "select u.uid from users u join memberships m on m.user_id = u.id"
        " join projects p on p.org = m.org and (m.project is null or m.project = p.id)"
        " where m.role = 'editor' and p.uid = %(project)s order by u.id limit 1",
        project=api.project,
    )
    return replace(api.editor, uid=uid)


async def begun(api: Api, act: BulkAct, **values: str) -> UUID:
    objects = []
    for n in range(COUNT):
        row = await api.new_monitor(name=f"m{n}", tags=["old"] if act is BulkAct.UNTAG else [])
        objects.append((row.uid, row.name))
    who = await author(api)
    async with api.pool.transaction("begin") as tx:
        return await begin_action(tx, who, api.project, act, values, objects)


async def report(api: Api, uid: UUID) -> BulkReport:
    async with api.pool.transaction("report", read_only=True) as tx:
        org, project = await tx.row("select org, project from operations") or (0, 0)
        found = await select_report(tx, org, project, uid, 20)
    assert found is not None
    return found


async def state_of_monitors(api: Api) -> list[tuple[object, ...]]:
    return await api.rows(
        "select m.name, m.enabled, m.tags, array(select c.channel from monitor_channels c"
        " where c.org = m.org and c.monitor = m.id), (select count(*) from maintenances x"
        " where x.org = m.org and x.monitor = m.id and x.archived_at is null)"
        " from monitors m order by m.name"
    )


async def test_two_processes_change_each_monitor_once(api: Api) -> None:
    uid = await begun(api, BulkAct.PAUSE)

    async def perform() -> None:
        while (await report(api, uid)).finished_at is None:
            await perform_next(api.pool, uid, ground(api))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(perform)
            nursery.start_soon(perform)
    assert (await report(api, uid)).counts[ObjectState.CHANGED] == COUNT
    edits = "select count(*) from audit_entries where action = 'monitor.update'"
    assert await api.rows(edits) == [(COUNT,)]


async def test_a_failure_of_the_database_changes_nothing_and_is_repeated(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    uid = await begun(api, BulkAct.PAUSE)
    perform = transactions.act_on

    async def interrupted(tx: Tx, *given: object) -> UUID | None:
        await perform(tx, *given)  # type: ignore[arg-type]
        raise Unavailable("the connection is lost")

    with monkeypatch.context() as patched:
        patched.setattr(transactions, "act_on", interrupted)
        with pytest.raises(Unavailable):
            await perform_next(api.pool, uid, ground(api))
    assert (await report(api, uid)).counts[ObjectState.WAITING] == COUNT
    assert await api.rows("select count(*) from monitors where not enabled") == [(0,)]
    while await perform_next(api.pool, uid, ground(api)):
        pass
    assert (await report(api, uid)).counts[ObjectState.CHANGED] == COUNT


@pytest.mark.parametrize("act", [act for act in BulkAct if act in UNDO and act is not BulkAct.END])
async def test_an_undo_restores_what_the_action_changed(api: Api, act: BulkAct) -> None:
    channel = await api.new_channel()
    values = {"tag": "old" if act is BulkAct.UNTAG else "new", "channel": str(channel)}
    values |= {"minutes": "60", "reason": "Move"}
    uid = await begun(api, act, **values)
    if act in (BulkAct.RESUME, BulkAct.DETACH):
        async with api.pool.transaction("prepare") as tx:
            await tx.execute("update monitors set enabled = %(on)s", on=act is not BulkAct.RESUME)
        if act is BulkAct.DETACH:
            for (monitor,) in await api.rows("select uid from monitors"):
                await api.attach(monitor, channel)
    before = await state_of_monitors(api)
    while await perform_next(api.pool, uid, ground(api)):
        pass
    found = await report(api, uid)
    assert (found.counts[ObjectState.CHANGED], found.error) == (COUNT, None)
    assert await state_of_monitors(api) != before
    who = await author(api)
    async with api.pool.transaction("undo") as tx:
        undo = await begin_undo(tx, who, api.project, found.row)
    while await perform_next(api.pool, undo, ground(api)):
        pass
    assert (await report(api, undo)).counts[ObjectState.CHANGED] == COUNT
    if act is not BulkAct.MAINTAIN:
        assert await state_of_monitors(api) == before


async def test_a_deletion_has_no_undo(api: Api) -> None:
    uid = await begun(api, BulkAct.DELETE)
    while await perform_next(api.pool, uid, ground(api)):
        pass
    found, who = await report(api, uid), await author(api)
    with pytest.raises(Refused, match="has no undo"):
        async with api.pool.transaction("undo") as tx:
            await begin_undo(tx, who, api.project, found.row)


async def undone(api: Api, uid: UUID) -> UUID:
    found, who = await report(api, uid), await author(api)
    async with api.pool.transaction("undo") as tx:
        return await begin_undo(tx, who, api.project, found.row)


async def test_an_action_is_undone_once_after_its_end(api: Api) -> None:
    uid = await begun(api, BulkAct.PAUSE)
    assert await perform_next(api.pool, uid, ground(api))
    with pytest.raises(Refused, match="the action has not ended"):
        await undone(api, uid)
    while await perform_next(api.pool, uid, ground(api)):
        pass
    undo = await undone(api, uid)
    while await perform_next(api.pool, undo, ground(api)):
        pass
    with pytest.raises(Refused, match="the action was undone before"):
        await undone(api, uid)
    assert (result_of(await report(api, uid)).undo, result_of(await report(api, undo)).undo) == (
        "",
        "pause",
    )


async def test_an_undo_skips_the_monitors_that_were_changed_after_the_action(api: Api) -> None:
    uid = await begun(api, BulkAct.PAUSE)
    while await perform_next(api.pool, uid, ground(api)):
        pass
    who = await author(api)
    for (monitor,) in await api.rows("select uid from monitors where name in ('m1', 'm3')"):
        async with api.pool.transaction("edit") as tx:
            given = {"tags": ["later"]}
            await edit_monitor(tx, who, monitor, given, api.context.keyring, frozenset())
    undo = await undone(api, uid)
    while await perform_next(api.pool, undo, ground(api)):
        pass
    paused = await api.rows("select name from monitors where not enabled order by name")
    assert paused == [("m1",), ("m3",)]
    said = "4 monitors resumed. 2 monitors were skipped: changed after the action."
    assert result_of(await report(api, undo)).text == said
