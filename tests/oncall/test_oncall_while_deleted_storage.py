"""A channel or schedule is deleted while another transaction refers to it: one of the two waits,
and no reference to a missing object remains."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.notifications.transactions.edit_channels import create_channel, delete_channel
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    create_policy,
    delete_policy,
    replace_policy,
)
from leadline.storage.oncall.transactions.edit_overrides import create_override
from leadline.storage.oncall.transactions.edit_schedules import (
    ScheduleDraft,
    create_schedule,
    delete_schedule,
    replace_schedule,
)
from tests.monitors.test_secrets_while_monitors_are_saved_storage import both
from tests.support.worlds.world import REGIONS, START, World

Write = Callable[[World, Tx], Awaitable[object]]


async def uid_of(tx: Tx, table: str, name: str) -> UUID:
    found: UUID = await tx.value(f"select uid from {table} where name = %(name)s", name=name)
    return found


async def channel(tx: Tx, name: str) -> str:
    return str(await uid_of(tx, "notification_channels", name))


def ladder(kind: TargetKind, uid: object, name: str = "ladder") -> PolicyDraft:
    return PolicyDraft(name, [StepDraft(0, [(kind, str(uid))])])


def schedule(*people: str, name: str = "schedule") -> ScheduleDraft:
    return ScheduleDraft(name, 3_600, START, people)


async def drop_channel(world: World, tx: Tx) -> None:
    await delete_channel(tx, world.editor, UUID(await channel(tx, "going")))


async def drop_schedule(world: World, tx: Tx) -> None:
    await delete_schedule(tx, world.editor, await uid_of(tx, "oncall_schedules", "going"))


async def drop_policy(world: World, tx: Tx) -> None:
    await delete_policy(tx, world.editor, await uid_of(tx, "escalation_policies", "going"))


async def name_in_new_ladder(world: World, tx: Tx) -> None:
    draft = ladder(TargetKind.CHANNEL, await channel(tx, "going"))
    await create_policy(tx, world.editor, world.project_uid, draft)


async def name_in_ladder(world: World, tx: Tx) -> None:
    draft = ladder(TargetKind.CHANNEL, await channel(tx, "going"), "going")
    uid = await uid_of(tx, "escalation_policies", "going")
    await replace_policy(tx, world.editor, uid, draft)


async def take_part(world: World, tx: Tx) -> None:
    draft = schedule(await channel(tx, "staying"), await channel(tx, "going"), name="going")
    uid = await uid_of(tx, "oncall_schedules", "going")
    await replace_schedule(tx, world.editor, uid, draft)


async def override(world: World, tx: Tx) -> None:
    uid = await uid_of(tx, "oncall_schedules", "going")
    ends = Instant(START + HOUR)
    await create_override(tx, world.editor, uid, await channel(tx, "going"), START, ends)


async def name_schedule(world: World, tx: Tx) -> None:
    uid = await uid_of(tx, "oncall_schedules", "going")
    draft = ladder(TargetKind.SCHEDULE, uid)
    await create_policy(tx, world.editor, world.project_uid, draft)


async def name_policy(world: World, tx: Tx) -> None:
    given = {"escalation_policy_id": str(await uid_of(tx, "escalation_policies", "going"))}
    uid = world.made[0].uid
    await edit_monitor(tx, world.editor, uid, given, world.keyring, REGIONS)


@pytest.mark.parametrize(
    ("drop", "name"),
    [
        (drop_channel, name_in_new_ladder),
        (drop_channel, name_in_ladder),
        (drop_channel, take_part),
        (drop_channel, override),
        (drop_schedule, name_schedule),
        (drop_policy, name_policy),
    ],
)
@pytest.mark.parametrize("named_first", [True, False])
async def test_no_reference_to_a_deleted_object_remains(
    world: World, drop: Write, name: Write, named_first: bool
) -> None:
    async with world.pool.transaction("make") as tx:
        for called in ("going", "staying"):
            config = {"url": "http://127.0.0.1:1/"}
            where = (tx, world.editor, world.project_uid)
            await create_channel(*where, "webhook", called, config, world.keyring, enabled=True)
        staying = await channel(tx, "staying")
        target = ladder(TargetKind.CHANNEL, staying, "going")
    async with world.pool.transaction("make") as tx:
        await create_policy(tx, world.editor, world.project_uid, target)
    async with world.pool.transaction("make") as tx:
        await create_schedule(tx, world.editor, world.project_uid, schedule(staying, name="going"))
    await world.monitor()
    if named_first:
        assert await both(world, name, drop) == ["done", "in_use"]
    else:
        told = await both(world, drop, name)
        assert told[0] == "done"
        assert told[1] in ("invalid", "not_found")
