"""Changes as pipelines record them: repeatedly, concurrently, out of order, and during the deletion
of the service."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.accounts.rules.access import CredentialKind as Credential
from leadline.storage.accounts.rules.access import Membership, Principal, Role
from leadline.storage.changes.rules.change import ChangeKind, ChangePhaseName, Record
from leadline.storage.changes.transactions import RecordedChange, record_change
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.partitions import drop_partitions
from leadline.storage.engine.pools import Rejected, Tx
from leadline.storage.retirement.transactions.delete_service import delete_service
from leadline.storage.services.rows import ServiceRow
from tests.monitors.test_secrets_while_monitors_are_saved_storage import both
from tests.support.run.effort import examples
from tests.support.worlds.change_records import decide, make_service, record, say
from tests.support.worlds.databases import Databases
from tests.support.worlds.world import START, World, small_world

Write = Callable[[World, Tx], Awaitable[object]]


async def phases(world: World) -> list[tuple[Any, ...]]:
    return await world.rows(
        "select c.external_id, p.phase, p.occurred_at, p.ref from change_phases p "
        "join changes c on c.org = p.org and c.id = p.change "
        "order by c.external_id, p.occurred_at, p.phase <> 'started'"
    )


async def times(world: World) -> list[tuple[Instant, Instant]]:
    return await world.rows("select started_at, latest_at from changes order by id")


async def refused(world: World, service: ServiceRow, *args: str, **given: Any) -> str:
    with pytest.raises(Refused) as caught:
        await say(world, service, *args, **given)
    return ": ".join(word for word in (caught.value.code, caught.value.field) if word)


async def test_a_change_begins_and_ends_and_can_be_recorded_again(world: World) -> None:
    service = await make_service(world, "shop")
    begun = await say(world, service, ref="v1")
    assert (begun.is_replay, begun.change.external_id, begun.phase.ref) == (False, "1", "v1")
    assert begun.phase.actor_label == world.editor.label
    world.now = Instant(START + MINUTE)
    again = await say(world, service)
    assert again.is_replay
    assert again.phase == begun.phase
    ended = await say(world, service, "succeeded")
    assert not ended.is_replay
    assert await phases(world) == [
        ("1", "started", START, "v1"),
        ("1", "succeeded", START + MINUTE, ""),
    ]
    assert await times(world) == [(START, START + MINUTE)]
    assert await refused(world, service, "failed") == "phase_order"
    assert await refused(world, service, ref="v2") == "phase_exists: ref"
    assert await refused(world, service, kind=ChangeKind.FLAG) == "kind_mismatch"


async def test_a_change_that_is_recorded_after_its_end_began_at_its_end(world: World) -> None:
    service = await make_service(world, "shop")
    at = Instant(START - HOUR)
    await say(world, service, "cancelled", occurred_at=at)
    assert await times(world) == [(at, at)]
    assert await refused(world, service, occurred_at=Instant(at - SECOND)) == "phase_order"


async def test_a_refused_record_leaves_no_row(world: World) -> None:
    service = await make_service(world, "shop")
    late = Instant(START + HOUR)
    assert (
        await refused(world, service, occurred_at=late) == "occurred_at_out_of_bounds: occurred_at"
    )
    unknown = UUID(int=7)
    assert await refused(world, service, decision=unknown) == "decision_unknown: decision_id"
    assert await world.rows("select from changes") == []


async def test_an_identity_is_the_services_own(world: World) -> None:
    one, two = await make_service(world, "one"), await make_service(world, "two")
    for service in (one, two):
        for source in ("ci", "cd"):
            assert not (await say(world, service, source=source)).is_replay
    assert len(await world.rows("select from changes")) == 4


async def test_one_of_many_concurrent_equal_records_is_new(
    world: World,
) -> None:
    service = await make_service(world, "shop")
    for phase in ("started", "succeeded"):
        found: list[RecordedChange] = []

        async def one(phase: str, found: list[RecordedChange]) -> None:
            found.append(await say(world, service, phase, ref="v1"))

        async with trio.open_nursery() as nursery:
            for _ in range(24):
                nursery.start_soon(one, phase, found)
        assert sorted(each.is_replay for each in found) == [False] + [True] * 23
        assert len({each.phase.uid for each in found}) == 1
    assert len(await phases(world)) == 2


async def test_one_of_several_concurrent_final_phases_is_accepted(world: World) -> None:
    service = await make_service(world, "shop")
    told: list[str] = []

    async def end(phase: str) -> None:
        try:
            await say(world, service, phase)
            told.append("done")
        except Refused as refused:
            told.append(refused.code)

    async with trio.open_nursery() as nursery:
        for phase in ("succeeded", "failed", "cancelled"):
            nursery.start_soon(end, phase)
    assert sorted(told) == ["done", "phase_order", "phase_order"]


_RECORDS = st.lists(
    st.builds(
        record,
        st.sampled_from([phase.value for phase in ChangePhaseName]),
        st.sampled_from(["1", "2"]),
        kind=st.sampled_from([ChangeKind.DEPLOY, ChangeKind.DEPLOY, ChangeKind.FLAG]),
        ref=st.sampled_from([None, "v1", "v2"]),
        occurred_at=st.sampled_from([None, Instant(START - HOUR), START]),
    ),
    min_size=2,
    max_size=14,
)


@settings(max_examples=examples(75))
@given(records=_RECORDS)
async def test_concurrent_records_leave_valid_changes_and_each_gets_its_outcome(
    databases: Databases, world_template: str, records: list[Record]
) -> None:
    dsn = databases.lend(world_template)
    async with small_world(dsn) as world:
        service = await make_service(world, "shop")
        told: list[tuple[Record, RecordedChange]] = []
        refusals: set[str] = set()

        async def one(each: Record) -> None:
            try:
                async with world.pool.transaction("record_change") as tx:
                    where = (tx, world.editor, world.project_uid, service.uid)
                    told.append((each, await record_change(*where, each)))
            except Refused as refused:
                refusals.add(refused.code)

        async with trio.open_nursery() as nursery:
            for each in records:
                nursery.start_soon(one, each)
        late = "occurred_at_before_start"
        assert refusals <= {"kind_mismatch", "phase_order", "phase_exists", late}
        found = await world.rows("select uid from change_phases")
        new = [said.phase.uid for _, said in told if not said.is_replay]
        assert sorted(new) == sorted(uid for (uid,) in found)
        for each, said in told:
            assert (said.change.external_id, said.change.kind) == (each.external_id, each.kind)
            assert said.phase.phase is each.phase
            assert each.ref in (None, said.phase.ref)
            assert each.occurred_at in (None, said.phase.occurred_at)
        # Each change that was begun is one: a start at most, an end at most, and in that order.
        rows = await world.rows(
            "select c.started_at, c.latest_at, array_agg(p.phase order by p.phase <> 'started'), "
            "min(p.occurred_at), max(p.occurred_at) from changes c "
            "join change_phases p on p.org = c.org and p.change = c.id group by c.org, c.id"
        )
        assert len(rows) == len(await world.rows("select from changes"))
        for started_at, latest_at, names, first, last in rows:
            assert (started_at, latest_at) == (first, last)
            assert len(names) == 1 or (names[0] == "started" != names[1] and len(names) == 2)
    databases.give_back(dsn)


def saying(service: ServiceRow, *args: str, **given: Any) -> Write:
    one: Record = record(*args, **given)

    async def write(world: World, tx: Tx) -> None:
        await record_change(tx, world.editor, world.project_uid, service.uid, one)

    return write


async def test_a_record_that_waited_for_another_sees_it(world: World) -> None:
    service = await make_service(world, "shop")
    assert await both(world, saying(service), saying(service)) == ["done", "done"]
    assert await both(world, saying(service, "failed"), saying(service, "cancelled")) == [
        "done",
        "phase_order",
    ]
    flag = saying(service, external_id="2", kind=ChangeKind.FLAG)
    assert await both(world, saying(service, external_id="2"), flag) == ["done", "kind_mismatch"]
    assert len(await phases(world)) == 3


@pytest.mark.parametrize("said_first", [True, False])
async def test_a_service_that_is_being_deleted_gets_no_change(
    world: World, said_first: bool
) -> None:
    service = await make_service(world, "shop")

    async def drop(world: World, tx: Tx) -> None:
        await delete_service(tx, world.editor, world.project_uid, service.uid)

    if said_first:
        assert await both(world, saying(service), drop) == ["done", "done"]
    else:
        assert await both(world, drop, saying(service)) == ["done", "not_found"]
    assert await world.rows("select from changes") == []


async def test_a_record_does_not_wait_for_a_seal_or_an_edit_of_the_service(world: World) -> None:
    service = await make_service(world, "shop")
    async with world.pool.transaction("seal") as tx:
        await tx.rows("select from services for no key update")
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(say, world, service)
    assert len(await phases(world)) == 1


async def test_a_decision_is_of_the_service_and_still_kept(world: World) -> None:
    shop, mill = await make_service(world, "shop"), await make_service(world, "mill")
    ours = await decide(world.pool, shop, START)
    old = await decide(world.pool, shop, Instant(START - 3 * DAY))
    theirs = await decide(world.pool, mill, START)
    await drop_partitions(world.pool, "gate_decisions", before=Instant(START - DAY))
    for uid in (theirs, old, UUID(int=0), UUID(int=(1 << 128) - 1)):
        assert await refused(world, shop, decision=uid) == "decision_unknown: decision_id", uid
    recorded = await say(world, shop, decision=ours)
    assert recorded.phase.decision == ours
    # The decision existed when it was named, so a repetition is accepted after its deletion.
    await drop_partitions(world.pool, "gate_decisions", before=Instant(START + 9 * DAY))
    assert (await say(world, shop, decision=ours)).is_replay


async def test_a_caller_without_the_right_is_refused(world: World) -> None:
    service = await make_service(world, "shop")
    viewer = Principal(Credential.SESSION, (Membership(world.org, None, Role.VIEWER),))
    stranger = Principal(Credential.SESSION, (Membership(world.org + 1, None, Role.ORG_ADMIN),))
    for principal, code in ((viewer, "forbidden"), (stranger, "not_found")):
        with pytest.raises(Refused, match=code):
            async with world.pool.transaction("record_change") as tx:
                await record_change(tx, principal, world.project_uid, service.uid, record())
    with pytest.raises(Refused, match="not_found"):
        async with world.pool.transaction("record_change") as tx:
            await record_change(tx, world.editor, UUID(int=1), service.uid, record())


async def test_the_database_does_not_change_or_delete_single_phases(world: World) -> None:
    """Phases are deleted with the service or its project, and not alone."""
    service = await make_service(world, "shop")
    await say(world, service)
    for statement in (
        "update change_phases set ref = 'v2'",
        "delete from change_phases",
        "truncate change_phases",
    ):
        with pytest.raises(Rejected, match="only ever added"):
            async with world.pool.transaction("edit") as tx:
                await tx.execute(statement)
    with pytest.raises(Rejected):
        async with world.pool.transaction("add") as tx:
            await tx.execute(
                "insert into change_phases select org, change, gen_random_uuid(), phase, "
                "occurred_at, ref, url, decision, actor_label, actor_user, via_token, recorded_at "
                "from change_phases"
            )
