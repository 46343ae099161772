"""Two concurrent edits of services, of which the second waits for the first: a deleted monitor is
not declared, a stale revision is refused, and two edits cannot close a cycle together.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from leadline.storage.engine.pools import Tx
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    create_policy,
    delete_policy,
)
from leadline.storage.oncall.transactions.edit_schedules import create_schedule, delete_schedule
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.retirement.transactions.delete_service import delete_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from leadline.storage.services.transactions.edit_dependencies import put_dependencies
from leadline.storage.services.transactions.set_paging_target import put_escalation_policy
from tests.monitors.test_secrets_while_monitors_are_saved_storage import both
from tests.oncall.test_oncall_while_deleted_storage import ladder, schedule, uid_of
from tests.support.worlds.world import World

RAW_DAYS = 30
Write = Callable[[World, Tx], Awaitable[object]]


async def make(world: World, slug: str) -> UUID:
    async with world.pool.transaction("make") as tx:
        draft = ServiceDraft(name=slug, slug=slug)
        return (await create_service(tx, world.editor, world.project_uid, draft)).uid


async def service(tx: Tx, slug: str = "one") -> UUID:
    found: UUID = await tx.value("select uid from services where slug = %(slug)s", slug=slug)
    return found


def declaring(expected: int, *places: int) -> Write:
    """Returns a write that declares the created monitors at these positions."""

    async def write(world: World, tx: Tx) -> None:
        members = [world.made[place].uid for place in places]
        draft = DeclarationDraft(expected_revision=expected, monitors=members, sli=members)
        uid = await service(tx)
        await declare(tx, world.editor, world.project_uid, uid, draft, RAW_DAYS)

    return write


async def drop_monitor(world: World, tx: Tx) -> None:
    await delete_monitor(tx, world.editor, world.made[0].uid)


async def drop_service(world: World, tx: Tx) -> None:
    await delete_service(tx, world.editor, world.project_uid, await service(tx))


def depending(slug: str, upstream: str, generation: int) -> Write:
    async def write(world: World, tx: Tx) -> None:
        uid, wanted = await service(tx, slug), [await service(tx, upstream)]
        where = (tx, world.editor, world.project_uid)
        await put_dependencies(*where, uid, wanted, generation)

    return write


async def test_of_two_declarations_of_one_revision_the_second_is_refused(world: World) -> None:
    await make(world, "one")
    for _ in range(2):
        await world.monitor()
    assert await both(world, declaring(0, 0), declaring(0, 1)) == ["done", "revision_conflict"]
    assert await world.rows("select monitors from service_revisions") == [([world.made[0].id],)]


@pytest.mark.parametrize("declared_first", [True, False])
async def test_a_deleted_monitor_is_not_declared(world: World, declared_first: bool) -> None:
    await make(world, "one")
    await world.monitor()
    if declared_first:
        assert await both(world, declaring(0, 0), drop_monitor) == ["done", "in_use"]
    else:
        assert await both(world, drop_monitor, declaring(0, 0)) == ["done", "invalid"]
    assert len(await world.rows("select from service_revisions")) == int(declared_first)


@pytest.mark.parametrize("declared_first", [True, False])
async def test_a_deleted_service_is_not_declared(world: World, declared_first: bool) -> None:
    await make(world, "one")
    await world.monitor()
    first, second = declaring(0, 0), drop_service
    if declared_first:
        assert await both(world, first, second) == ["done", "done"]
    else:
        assert await both(world, second, first) == ["done", "not_found"]
    assert await world.rows("select from services") == []
    assert await world.rows("select from service_revisions") == []


async def test_concurrent_edits_cannot_close_a_cycle(world: World) -> None:
    for slug in ("one", "two"):
        await make(world, slug)
    first, second = depending("one", "two", 0), depending("two", "one", 0)
    assert await both(world, first, second) == ["done", "dependency_cycle"]


async def test_of_two_edits_of_one_graph_generation_one_is_refused(world: World) -> None:
    for slug in ("one", "two", "three"):
        await make(world, slug)
    first, second = depending("one", "two", 0), depending("one", "three", 0)
    assert await both(world, first, second) == ["done", "graph_generation_stale"]


@pytest.mark.parametrize("dropped_first", [True, False])
async def test_no_service_depends_on_a_deleted_service(world: World, dropped_first: bool) -> None:
    for slug in ("one", "two"):
        await make(world, slug)
    depend = depending("two", "one", 0)
    if dropped_first:
        told = await both(world, drop_service, depend)
        assert told == ["done", "dependency_not_in_project"]
    else:
        assert await both(world, depend, drop_service) == ["done", "done"]
    assert await world.rows("select from service_dependencies") == []


async def name_policy(world: World, tx: Tx) -> None:
    uid, policy = await service(tx), await uid_of(tx, "escalation_policies", "ladder")
    await put_escalation_policy(tx, world.editor, world.project_uid, uid, str(policy))


async def name_policy_and_schedule(world: World, tx: Tx) -> None:
    draft = ServiceDraft(
        name="new",
        escalation_policy=str(await uid_of(tx, "escalation_policies", "ladder")),
        oncall_schedule=str(await uid_of(tx, "oncall_schedules", "schedule")),
    )
    await create_service(tx, world.editor, world.project_uid, draft)


async def drop_policy(world: World, tx: Tx) -> None:
    await delete_policy(tx, world.editor, await uid_of(tx, "escalation_policies", "ladder"))


async def drop_schedule(world: World, tx: Tx) -> None:
    await delete_schedule(tx, world.editor, await uid_of(tx, "oncall_schedules", "schedule"))


@pytest.mark.parametrize(
    ("name", "drop"),
    [
        (name_policy, drop_policy),
        (name_policy_and_schedule, drop_policy),
        (name_policy_and_schedule, drop_schedule),
    ],
)
@pytest.mark.parametrize("named_first", [True, False])
async def test_a_paging_target_in_use_is_not_deleted(
    world: World, name: Write, drop: Write, named_first: bool
) -> None:
    await make(world, "one")
    await make_routing(world)
    if named_first:
        assert await both(world, name, drop) == ["done", "in_use"]
    else:
        assert await both(world, drop, name) == ["done", "owner_not_in_project"]


async def make_routing(world: World) -> None:
    where = (world.editor, world.project_uid)
    async with world.pool.transaction("make") as tx:
        config = {"url": "http://127.0.0.1:1/"}
        made = await create_channel(
            tx, *where, "webhook", "channel", config, world.keyring, enabled=True
        )
    async with world.pool.transaction("make") as tx:
        await create_policy(tx, *where, ladder(TargetKind.CHANNEL, made.uid))
    async with world.pool.transaction("make") as tx:
        await create_schedule(tx, *where, schedule(str(made.uid)))
