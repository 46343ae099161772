"""Limits of an organization: no transaction passes them, also not two at the same time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables import projects
from leadline.storage.bundles.transactions.apply_bundle import apply_bundle, plan_bundle
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.queries.organization_limits import limits_in_force, select_use
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.rules.organization_limits import (
    OrganizationLimits,
    OrganizationUse,
    OwnLimits,
    use_of,
)
from leadline.storage.monitors.tables.organization_limits import lock_use
from leadline.storage.monitors.transactions.create_monitor import create_monitor
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.put_organization_limits import (
    put_limits_of_organization,
    put_organization_limits,
)
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.retirement.transactions.set_successor import reactivate, retire, set_successor
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from tests.bundles.test_bundle_locks_storage import bundle, context
from tests.monitors.test_secrets_while_monitors_are_saved_storage import Write, both
from tests.support.worlds.world import REGIONS, World

WEB: dict[str, Any] = {"type": "http", "target": "https://example.org/"}
ADMIN = Principal(CredentialKind.SESSION, is_global_admin=True, label="admin")


async def limit(world: World, **given: int) -> None:
    async with world.pool.transaction("limit") as tx:
        await put_organization_limits(tx, ADMIN, OrganizationLimits(**given))


async def use(world: World) -> OrganizationUse:
    async with world.pool.transaction("use", read_only=True) as tx:
        return await select_use(tx, world.org)


async def project_of(world: World, org: int, slug: str) -> UUID:
    uid = uuid7()
    async with world.pool.transaction("project") as tx:
        assert await projects.insert_project(tx, org, uid, slug, slug) is not None
    return uid


async def edit(world: World, row: MonitorRow, **given: Any) -> MonitorRow:
    async with world.pool.transaction("edit") as tx:
        return await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)


async def refused(world: World, row: MonitorRow, **given: Any) -> tuple[str, str]:
    with pytest.raises(Refused) as found:
        await edit(world, row, **given)
    assert found.value.code == "invalid"
    return found.value.field, found.value.message


def creating(name: str, project: UUID | None = None, **given: Any) -> Write:
    async def write(world: World, tx: Tx) -> None:
        values = {"name": name, "target": "http://127.0.0.1/", "type": "http", **given}
        where = (tx, world.editor, project or world.project_uid)
        await create_monitor(*where, MonitorDraft(**values), world.keyring, REGIONS)

    return write


def editing(row: MonitorRow, **given: Any) -> Write:
    async def write(world: World, tx: Tx) -> None:
        await edit_monitor(tx, world.editor, row.uid, given, world.keyring, REGIONS)

    return write


def applying(**monitors: dict[str, Any]) -> Write:
    async def write(world: World, tx: Tx) -> None:
        await apply_bundle(tx, world.project_uid, bundle(monitors, {}), *context(world))

    return write


async def test_the_use_is_counted_by_the_rule(world: World) -> None:
    kinds: tuple[dict[str, Any], ...] = (
        {"confirm_interval_seconds": 0},
        {"confirm_interval_seconds": 1},
        {"confirm_interval_seconds": 11},
        {"type": "push"},
        {"enabled": False},
    )
    rows = [
        await world.monitor(
            interval_seconds=every, failure_threshold=most, timeout_seconds=5, **kind
        )
        for every in (5, 7, 60, 3_599, 86_400)
        for most in (1, 3, 100)
        for kind in kinds
    ]
    config = {"mode": "all", "children": [str(rows[0].uid)]}
    rows.append(
        await world.monitor(type="composite", target="", failure_threshold=5, config=config)
    )
    assert await use(world) == sum(map(use_of, rows), OrganizationUse())


async def test_a_full_organization_gets_no_monitor_in_any_project(world: World) -> None:
    await limit(world, monitors=2)
    await world.monitor(enabled=False)
    await world.monitor(type="push")
    other = replace(world, project_uid=await project_of(world, world.org, "other"))
    for made in (world, other):
        with pytest.raises(Refused) as found:
            await made.monitor(enabled=False)
        assert (found.value.code, found.value.field) == ("invalid", "monitors")
        assert found.value.message == "would be 3 in the organization, whose limit is 2 (now 2)"
    assert (await use(world)).monitors == 2


async def test_runs_are_limited_for_every_way_to_raise_them(world: World) -> None:
    await limit(world, runs_per_minute=3)
    row = await world.monitor(interval_seconds=30)
    paused = await world.monitor(interval_seconds=30, enabled=False)
    said = "would make 4 runs per minute in the organization with confirming runs, and its limit"
    assert await refused(world, paused, enabled=True) == ("enabled", f"{said} is 3 (now 2)")
    assert await refused(world, row, failure_threshold=3) == (
        "failure_threshold",
        "would make 6 runs per minute in the organization with confirming runs, and its limit is"
        " 3 (now 2)",
    )
    assert (await refused(world, row, interval_seconds=15))[0] == "interval_seconds"
    silent = await edit(world, row, failure_threshold=3, confirm_interval_seconds=0)
    assert (await refused(world, silent, confirm_interval_seconds=10))[0] == (
        "confirm_interval_seconds"
    )
    with pytest.raises(Refused) as found:
        await world.monitor(interval_seconds=30)
    assert found.value.field == "interval_seconds"
    await edit(world, paused, interval_seconds=60)
    assert (await edit(world, paused, enabled=True)).enabled
    assert (await use(world)).runs_per_minute == 3


async def test_an_interval_has_a_least_value(world: World) -> None:
    fast = await world.monitor(interval_seconds=10, timeout_seconds=5)
    await limit(world, shortest_interval_seconds=30)
    broken = (
        "interval_seconds",
        "must be at least 30 seconds, the shortest interval of the organization",
    )
    assert await refused(world, fast, interval_seconds=9) == broken
    # Neither a slower interval that is still too short nor another field raises the use.
    assert (await edit(world, fast, interval_seconds=20)).interval_seconds == 20
    assert (await edit(world, fast, name="renamed")).name == "renamed"
    assert not (await edit(world, fast, enabled=False)).enabled
    assert await refused(world, fast, enabled=True) == broken
    assert (await edit(world, fast, enabled=True, interval_seconds=30)).enabled
    for given in ({}, {"enabled": False}, {"type": "push"}):
        with pytest.raises(Refused) as found:
            await world.monitor(**{"interval_seconds": 29, **given})
        assert (found.value.field, found.value.message) == broken


async def test_a_lower_limit_stops_no_monitor(world: World) -> None:
    rows = [await world.monitor(interval_seconds=5, timeout_seconds=5) for _ in range(3)]
    await limit(world, monitors=1, runs_per_minute=1, shortest_interval_seconds=60)
    assert (await use(world)).runs_per_minute == 36
    kept = await world.rows("select enabled, interval_seconds from monitors")
    assert kept == [(True, 5)] * 3
    await edit(world, rows[0], target="http://127.0.0.1/other", tags=["x"])
    await edit(world, rows[0], interval_seconds=6)
    await edit(world, rows[1], enabled=False)
    async with world.pool.transaction("delete") as tx:
        await delete_monitor(tx, world.editor, rows[2].uid)
    assert (await use(world)).runs_per_minute == 10
    with pytest.raises(Refused):
        await world.monitor(interval_seconds=60)


async def test_own_limits_go_before_those_of_the_installation(world: World) -> None:
    await limit(world, monitors=1)
    ((uid,),) = await world.rows("select uid from organizations where id = %(o)s", o=world.org)
    await world.monitor()
    async with world.pool.transaction("own") as tx:
        await put_limits_of_organization(tx, ADMIN, uid, OwnLimits(monitors=2))
    await world.monitor()
    with pytest.raises(Refused):
        await world.monitor()
    async with world.pool.transaction("own") as tx:
        await put_limits_of_organization(tx, ADMIN, uid, OwnLimits(runs_per_minute=7))
        found = await limits_in_force(tx, world.org)
        assert found == OrganizationLimits(monitors=1, runs_per_minute=7)
        # The other organizations keep those of the installation.
        assert await limits_in_force(tx, world.org + 1) == OrganizationLimits(monitors=1)
    with pytest.raises(Refused):
        await world.monitor()


async def test_a_retired_monitor_is_not_reactivated_above_a_limit(world: World) -> None:
    row = await world.monitor(interval_seconds=10)
    async with world.pool.transaction("retire") as tx:
        service = await create_service(
            tx, world.editor, world.project_uid, ServiceDraft(name="S", slug="s")
        )
        await set_successor(tx, world.editor, row.uid, service.uid)
    async with world.pool.transaction("retire") as tx:
        await retire(tx, world.editor, row.uid)
    await limit(world, runs_per_minute=5)
    with pytest.raises(Refused) as found:
        async with world.pool.transaction("reactivate") as tx:
            await reactivate(tx, world.editor, row.uid, world.keyring, REGIONS)
    assert found.value.field == "enabled"
    await limit(world, runs_per_minute=6)
    async with world.pool.transaction("reactivate") as tx:
        assert (await reactivate(tx, world.editor, row.uid, world.keyring, REGIONS)).enabled


async def test_plan_and_application_of_a_bundle_are_refused_alike(world: World) -> None:
    await limit(world, monitors=3, shortest_interval_seconds=30, runs_per_minute=3)
    await world.monitor()
    two = {f"w{n}": WEB for n in range(2)}
    three = {f"w{n}": WEB for n in range(3)}
    doubled = {"w0": {**WEB, "interval_seconds": 30}, "w1": {**WEB, "interval_seconds": 30}}
    runs = "runs per minute in the organization with confirming runs, and its limit is 3"
    for monitors, field, message in (
        (three, "monitors", "would be 4 in the organization, whose limit is 3 (now 1)"),
        (doubled, "monitors", f"would make 5 {runs} (now 1)"),
        (
            {"w0": WEB, "w1": {**WEB, "interval_seconds": 29}},
            "monitors.w1.interval_seconds",
            "must be at least 30 seconds, the shortest interval of the organization",
        ),
    ):
        document = bundle(monitors, {})
        for work in (
            lambda d=document: plan_bundle(world.pool, world.project_uid, d, *context(world)),
            lambda m=monitors: world.pool.transact("apply", lambda tx: applying(**m)(world, tx)),
        ):
            with pytest.raises(Refused) as found:
                await work()
            assert (found.value.code, found.value.field) == ("invalid", field)
            assert found.value.message == message
    await world.pool.transact("apply", lambda tx: applying(**two)(world, tx))
    # An exchange of load, and a bundle without a change above a lower limit.
    w0, w1 = {**WEB, "interval_seconds": 30}, {**WEB, "enabled": False}
    await world.pool.transact("apply", lambda tx: applying(w0=w0, w1=w1)(world, tx))
    await limit(world, monitors=1, shortest_interval_seconds=60, runs_per_minute=1)
    await world.pool.transact("apply", lambda tx: applying(w0=w0, w1=w1)(world, tx))
    await world.pool.transact("apply", lambda tx: applying(w0=w0)(world, tx))
    assert await use(world) == OrganizationUse(3, 3_000_000)


@pytest.mark.parametrize("bundle_first", [True, False, None])
async def test_concurrent_creations_in_two_projects_stay_within_the_limits(
    world: World, bundle_first: bool | None
) -> None:
    await limit(world, monitors=2)
    await world.monitor()
    other = await project_of(world, world.org, "other")
    first, second = creating("first"), creating("second", other)
    if bundle_first is not None:
        first = applying(web=WEB)
    if bundle_first is False:
        first, second = second, first
    assert await both(world, first, second) == ["done", "invalid"]
    assert (await use(world)).monitors == 2


@pytest.mark.parametrize("ways", ["faster", "resumed", "bundle"])
async def test_concurrent_edits_stay_within_the_limits(world: World, ways: str) -> None:
    await limit(world, runs_per_minute=3)
    one = await world.monitor()
    two = await world.monitor(enabled=ways != "resumed")
    first = editing(one, interval_seconds=30)
    second = {
        "faster": editing(two, interval_seconds=30),
        "resumed": editing(two, enabled=True, interval_seconds=30),
        "bundle": applying(web=WEB),
    }[ways]
    assert await both(world, first, second) == ["done", "invalid"]
    assert (await use(world)).runs_per_minute <= 3


@asynccontextmanager
async def held_use(world: World) -> AsyncIterator[None]:
    """Another transaction holds the lock of the organization's use."""
    held, done = trio.Event(), trio.Event()

    async def hold() -> None:
        async with world.pool.transaction("hold") as tx:
            await lock_use(tx, world.org)
            held.set()
            await done.wait()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold)
            await held.wait()
            yield
            done.set()


async def test_a_change_that_raises_no_use_does_not_wait(world: World) -> None:
    one, two = await world.monitor(), await world.monitor()
    async with held_use(world):
        await edit(world, one, name="renamed", interval_seconds=120)
        await edit(world, two, enabled=False)


async def test_a_change_of_another_organization_does_not_wait(world: World) -> None:
    async with world.pool.transaction("other") as tx:
        org = await projects.insert_organization(tx, uuid7(), "other", "Other")
    assert org is not None
    editor = replace(world.editor, memberships=(Membership(org, None, Role.EDITOR),))
    project = await project_of(world, org, "far")
    async with held_use(world):
        await replace(world, project_uid=project, editor=editor).monitor()
    assert (await use(world)).monitors == 0
