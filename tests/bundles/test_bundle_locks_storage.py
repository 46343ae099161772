"""The locks of a plan and an application of a bundle, for schedulers, recorders and sealers."""

from dataclasses import replace
from typing import Any

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import AHEAD_US, Ticker
from leadline.storage.accounts.rules.access import Membership, Role
from leadline.storage.accounts.tables.users import insert_user
from leadline.storage.bundles.rules.bundle import Bundle, read_bundle
from leadline.storage.bundles.transactions.adopt_proposals import adopt_proposals
from leadline.storage.bundles.transactions.apply_bundle import (
    apply_bundle,
    plan_bundle,
    write_bundle,
)
from leadline.storage.bundles.transactions.bundle_context import ApplySource, EntryContext
from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rules.monitor_defaults import MonitorDefaults
from leadline.storage.monitors.transactions.write_batch import MonitorWriteBatch
from tests.support.worlds.world import REGIONS, World

# Tables whose rows other transactions lock during their own work, with the strongest lock of each.
SHARED = {
    "shards": "update",
    "monitor_states": "update",
    "composite_wakeups": "update",
    "jobs": "update",
    "run_batches": "update",
}
OF_THE_PROJECT = {
    "monitors": "no key update",
    "services": "no key update",
    "service_alerting": "no key update",
}

MONITORS: dict[str, dict[str, Any]] = {
    "web": {"type": "http", "target": "https://example.org/", "interval_seconds": 5},
    "api": {"type": "http", "target": "https://api.example.org/", "depends_on": ["web"]},
    "nightly": {"type": "push"},
    "all": {"type": "composite", "config": {"mode": "all", "children": ["web", "api"]}},
}
SERVICES: dict[str, dict[str, Any]] = {
    "shop": {"name": "Shop", "monitors": ["web", "api"], "sli": ["web"]},
    "front": {"name": "Front", "depends_on": ["shop"], "monitors": ["web"], "sli": ["web"]},
}


def bundle(monitors: dict[str, Any], services: dict[str, Any]) -> Bundle:
    return read_bundle(
        {
            "format": 2,
            "organization": "acme",
            "project": "shop",
            "monitors": {uid: {"name": uid, **entry} for uid, entry in monitors.items()},
            "services": services,
        }
    )


FIRST = bundle(MONITORS, SERVICES)
# Every entry changes, one of each kind is new, and one of each kind is omitted.
SECOND = bundle(
    {
        "web": {**MONITORS["web"], "interval_seconds": 30, "region": "eu"},
        "api": {**MONITORS["api"], "enabled": False, "depends_on": []},
        "all": {"type": "composite", "config": {"mode": "any", "children": ["web", "new"]}},
        "new": {"type": "tcp", "target": "example.org:443", "depends_on": ["api"]},
    },
    {
        "shop": {
            "name": "The shop",
            "monitors": ["web", "new"],
            "sli": ["new"],
            "alerting": {"owns_paging": True},
            "sla_targets": {"7d": {"objective": 0.99}},
        },
        "back": {"name": "Back", "depends_on": ["shop"]},
    },
)


def context(world: World) -> tuple[ApplySource, EntryContext]:
    member = Membership(world.org, None, Role.ORG_ADMIN)
    admin = replace(world.editor, memberships=(member,), provider="files")
    terms = EntryContext(
        keyring=world.keyring, regions=REGIONS, defaults=MonitorDefaults(), raw_days=30
    )
    return ApplySource(principal=admin, path="shop.yaml"), terms


async def apply(world: World, wanted: Bundle) -> None:
    async with world.pool.transaction("apply") as tx:
        await apply_bundle(tx, world.project_uid, wanted, *context(world))


async def write(world: World, tx: Tx, wanted: Bundle, *, is_plan: bool) -> MonitorWriteBatch:
    applied, terms = context(world)
    together = MonitorWriteBatch(applied.principal, is_plan=is_plan)
    await write_bundle(tx, together, world.project_uid, wanted, applied, terms)
    return together


async def locked(world: World, tables: dict[str, str]) -> dict[str, int]:
    """The number of committed rows per table that another transaction locks."""
    found: dict[str, int] = {}

    async def find_locked() -> None:
        async with world.pool.transaction("look") as tx:
            for table, strength in tables.items():
                count = await tx.value(f"select count(*) from {table}")
                free = await tx.value(
                    f"select count(*) from (select from {table} for {strength} skip locked) t"
                )
                if count != free:
                    found[table] = count - free

    async with trio.open_nursery() as nursery:
        nursery.start_soon(find_locked)
    return found


async def go_on(world: World) -> None:
    """One pass of the scheduler and of the sealer, in another task."""
    world.now = Instant(world.now + HOUR)

    async def work() -> None:
        await Ticker(world.pool, lambda: world.now).pass_once()
        await MonitorSealer(world.pool, lambda: world.now).pass_once()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
    ((through,),) = await rows_of(world, "select min(reserved_through) from shards")
    assert through == world.now + AHEAD_US


async def rows_of(world: World, query: str) -> list[tuple[Any, ...]]:
    answers: list[tuple[Any, ...]] = []

    async def ask() -> None:
        answers.extend(await world.rows(query))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
    return answers


async def test_a_plan_blocks_no_other_transaction(world: World) -> None:
    await apply(world, FIRST)
    await Ticker(world.pool, lambda: world.now).pass_once()
    async with world.pool.transaction("plan") as tx:
        await write(world, tx, SECOND, is_plan=True)
        assert await locked(world, SHARED | OF_THE_PROJECT) == {}
        assert await advisory_locks(world) == 0
        await go_on(world)


async def test_an_application_locks_no_account_and_delays_no_membership(world: World) -> None:
    entry = {"email": "ada@x.test", "contact_methods": [{"kind": "sms", "address": "+4930123456"}]}
    terms = {"format": 3, "organization": "acme", "project": "shop"}
    join = (
        "insert into memberships (org, uid, user_id, role, created_at)"
        " select %(org)s, gen_random_uuid(), id, 'editor', now() from users where email = %(e)s"
    )
    async with world.pool.transaction("accounts") as tx:
        for email in ("ada@x.test", "ben@x.test"):
            await insert_user(tx, uuid7(), email, "", "hash", admin=False)
        await tx.execute(join, org=world.org, e="ada@x.test")
    people = {"ada": entry, "ben": {**entry, "email": "ben@x.test"}}

    async def accept() -> None:
        async with world.pool.transaction("accept") as tx:
            await tx.execute(join, org=world.org, e="ben@x.test")

    for version in ("", "Changed"):
        named = {uid: {**one, "name": version} for uid, one in people.items()}
        async with world.pool.transaction("apply") as tx:
            await write(world, tx, read_bundle({**terms, "people": named}), is_plan=False)
            assert await locked(world, {"users": "no key update"}) == {}
            if version:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(accept)
    await adopt_proposals(world.pool)
    found = await world.rows("select count(distinct user_id) from contact_methods")
    assert found == [(2,)]


async def advisory_locks(world: World) -> int:
    ((count,),) = await rows_of(
        world,
        "select count(*) from pg_locks where locktype = 'advisory' and database ="
        " (select oid from pg_database where datname = current_database())",
    )
    return int(count)


async def test_neither_scheduler_nor_recorder_waits_for_an_apply(world: World) -> None:
    await apply(world, FIRST)
    await Ticker(world.pool, lambda: world.now).pass_once()
    async with world.pool.transaction("apply") as tx:
        together = await write(world, tx, SECOND, is_plan=False)
        assert await locked(world, SHARED) == {}
        await together.write_ahead(tx)
        assert await locked(world, SHARED) == {}
        assert await advisory_locks(world) == 0
        world.now = Instant(world.now + HOUR)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Ticker(world.pool, lambda: world.now).pass_once)
        await together.publish(tx)
    rows = await world.rows("select slug, enabled from monitors order by slug")
    assert dict(rows) == {
        "all": True,
        "api": False,
        "new": True,
        "nightly": False,
        "web": True,
    }


async def test_a_plan_equals_the_application_and_leaves_no_row(world: World) -> None:
    await apply(world, FIRST)
    applied, terms = context(world)
    tables = ["monitors", "monitor_terms", "services", "service_revisions", "schedule_edits"]
    query = " union all ".join(f"select '{name}', count(*) from {name}" for name in tables)
    before = await world.rows(query)
    planned = await plan_bundle(world.pool, world.project_uid, SECOND, applied, terms)
    assert await world.rows(query) == before
    async with world.pool.transaction("apply") as tx:
        assert await apply_bundle(tx, world.project_uid, SECOND, applied, terms) == planned
    assert {str(one.action) for one in planned} == {"create", "update", "orphan"}


async def test_a_plan_finds_the_circle_that_an_apply_would_make(world: World) -> None:
    """Of monitors and services that are there already, which a plan does not write."""
    await apply(world, FIRST)
    applied, terms = context(world)
    of_monitors = bundle({**MONITORS, "web": {**MONITORS["web"], "depends_on": ["api"]}}, SERVICES)
    of_services = bundle(
        MONITORS, {**SERVICES, "shop": {**SERVICES["shop"], "depends_on": ["front"]}}
    )
    for wanted in (of_monitors, of_services):
        with pytest.raises(Refused) as planned:
            await plan_bundle(world.pool, world.project_uid, wanted, applied, terms)
        with pytest.raises(Refused) as done:
            await apply(world, wanted)
        assert str(planned.value) == str(done.value)
        assert "depends_on" in str(planned.value) or "cycle" in str(planned.value)


async def test_a_plan_finds_a_cycle_through_objects_outside_the_bundle(
    world: World,
) -> None:
    """The cycle has an edge of a manually created monitor and an edge that only the plan adds."""
    await apply(world, bundle({"web": MONITORS["web"]}, {}))
    ((web,),) = await world.rows("select uid from monitors where slug = 'web'")
    await world.monitor(name="hand", depends_on=[web])
    wanted = bundle({"web": {**MONITORS["web"], "depends_on": ["hand"]}}, {})
    with pytest.raises(Refused, match="lead back"):
        await plan_bundle(world.pool, world.project_uid, wanted, *context(world))


ON_CALL = {
    "notification_channels": "no key update",
    "oncall_schedules": "no key update",
    "escalation_policies": "no key update",
}


def on_call(name: str, after: int) -> Bundle:
    """Two bundles with other arguments differ in each entry; policy b names a new one."""
    day = {"shift_seconds": 86_400, "anchor_at": "2026-01-05T08:00:00Z"}
    ntfy = {"type": "ntfy", "config": {"topic": name}}
    targets = {
        "a": {"schedule": "day"},
        "b": {"policy": f"a-{name}"},
        f"a-{name}": {"channel": "x"},
    }
    steps = {uid: [{"after_seconds": after, "targets": [one]}] for uid, one in targets.items()}
    return read_bundle(
        {
            "format": 3,
            "organization": "acme",
            "project": "shop",
            "channels": {"x": ntfy},
            "schedules": {"day": {**day, "name": name, "participants": [{"channel": "x"}]}},
            "escalation_policies": {
                uid: {"name": uid, "steps": given} for uid, given in steps.items()
            },
            "routes": {"rules": [{"matchers": f"a={name}", "escalation_policy": "b"}]},
        }
    )


async def test_a_plan_of_on_call_objects_blocks_no_edit(world: World) -> None:
    await apply(world, on_call("one", 0))
    applied, terms = context(world)
    planned = await plan_bundle(world.pool, world.project_uid, on_call("two", 60), applied, terms)
    async with world.pool.transaction("plan") as tx:
        await write(world, tx, on_call("two", 60), is_plan=True)
        assert await locked(world, ON_CALL) == {}
    async with world.pool.transaction("apply") as tx:
        together = await write(world, tx, on_call("two", 60), is_plan=False)
        assert (await locked(world, ON_CALL)).keys() == ON_CALL.keys()
        await together.write_ahead(tx)
        await together.publish(tx)
    actions = {one.uid: str(one.action) for one in planned}
    assert actions == {
        "x": "update",
        "day": "update",
        "a": "update",
        "b": "update",
        "a-two": "create",
        "a-one": "orphan",
        "routes": "update",
    }
