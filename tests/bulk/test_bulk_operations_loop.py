"""Operations of actions on many monitors: deleted projects, and turns of many organizations."""

from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from leadline.daemon.loops.operation_runner import AT_ONCE
from leadline.storage.accounts.queries.operations import select_running
from leadline.storage.accounts.rows import DeletionCounts
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.bulk.rules import BulkAct
from leadline.storage.bulk.transactions import begin_action
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.migrate import FOLDER
from leadline.storage.retirement.transactions.delete_tenant import (
    begin_project_deletion,
    continue_deletion,
)
from tests.support.worlds.background import operation_runner
from tests.support.worlds.world import World

ENDS = "select state, error from operations where kind = 'monitors_edit'"
_INSERT = """
insert into operations (uid, kind, state, org, project, total, created_at)
values (%(uid)s, 'monitors_edit', 'editing', %(org)s, %(project)s, 1, at(%(at)s))
"""


async def begun(world: World) -> UUID:
    row = await world.monitor()
    async with world.pool.transaction("begin") as tx:
        return await begin_action(
            tx, world.editor, world.project_uid, BulkAct.PAUSE, {}, [(row.uid, row.name)]
        )


async def passes(world: World) -> None:
    later = Instant(world.now + MINUTE)
    await operation_runner(world.pool, world.keyring, lambda: later).pass_once()


async def test_the_deletion_of_a_project_ends_its_action(world: World) -> None:
    await begun(world)
    admin = Principal(CredentialKind.SESSION, (Membership(world.org, None, Role.ORG_ADMIN),))
    async with world.pool.transaction("begin") as tx:
        counts = DeletionCounts(1, 1, 0, 0, 0, 0)
        deletion = await begin_project_deletion(tx, admin, world.project_uid, counts)
    while await continue_deletion(world.pool, deletion):
        pass
    assert await world.rows("select from projects") == []
    assert await world.rows(ENDS) == [("failed", "the project was deleted")]


async def test_an_action_that_was_deleted_with_its_project_ends(world: World) -> None:
    """A process of the version before deletes the row of the action alone."""
    await begun(world)
    async with world.pool.transaction("delete") as tx:
        await tx.execute("delete from bulk_actions")
    await passes(world)
    assert await world.rows(ENDS) == [("failed", "the project was deleted")]


async def test_an_organization_with_many_actions_delays_no_other(world: World) -> None:
    other = world.org + 1
    async with world.pool.transaction("insert") as tx:
        for project in range(AT_ONCE + 5):
            values = {"uid": uuid7(), "org": world.org, "project": project}
            await tx.execute(_INSERT, at=world.now, **values)
        last, ending = uuid7(), uuid7()
        at = Instant(world.now + MINUTE)
        await tx.execute(_INSERT, at=at, uid=last, org=other, project=1)
        await tx.execute(
            "insert into operations (uid, kind, org, total, created_at)"
            " values (%(uid)s, 'organization_delete', %(org)s, 1, at(%(at)s))",
            uid=ending,
            org=other + 1,
            at=at,
        )
        found = [uid for uid, _ in await select_running(tx, at, AT_ONCE)]
    assert len(found) == AT_ONCE
    assert last in found[:2]
    assert found[-1] == ending


async def test_a_project_runs_one_action_at_a_time(world: World) -> None:
    await begun(world)
    with pytest.raises(Refused, match="another action on monitors of the project runs"):
        await begun(world)
    await passes(world)
    await begun(world)


async def test_the_upgrade_ends_orphans_and_all_but_the_first_action(world: World) -> None:
    text = (FOLDER / "0036_bulk_action_limits.sql").read_text().partition("create unique")[0]
    orphan, first, second = (uuid7() for _ in range(3))
    place = {"org": world.org, "project": world.project}
    async with world.pool.transaction("upgrade") as tx:
        await tx.execute("drop index operations_editing_alone")
        for number, uid in enumerate((orphan, first, second)):
            await tx.execute(_INSERT, at=Instant(world.now + number), uid=uid, **place)
        await tx.execute(
            "insert into bulk_actions (uid, org, project, act, arguments)"
            " select uid, org, project, 'pause', '{}' from operations where uid <> %(uid)s",
            uid=orphan,
        )
        for statement in text.split(";")[:2]:
            await tx.execute(statement)
        found = dict(await tx.rows("select uid, state from operations"))
        await tx.execute(
            "create unique index operations_editing_alone"
            " on operations (org, project) where state = 'editing'"
        )
    assert found == {orphan: "failed", first: "editing", second: "failed"}
