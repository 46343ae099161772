"""Declarations and objectives over time: the governing revision, the deletion of members, and burn
rules that keep firing through edits.
"""

from fractions import Fraction
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.objectives.queries.burn_rules import select_rules_of_services
from leadline.storage.objectives.rules import BurnRule, BurnSeverity
from leadline.storage.objectives.tables.burn_rules import BurnTarget, replace_rules
from leadline.storage.objectives.transactions.set_service_objective import (
    put_burn_alerting,
    put_target,
)
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.tables.services import advance_seals, select_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from tests.support.run.effort import examples
from tests.support.worlds.databases import Databases
from tests.support.worlds.deletion import delete_project
from tests.support.worlds.world import REGIONS, START, World, small_world

RAW_DAYS = 30


async def make(world: World, **given_: Any) -> ServiceRow:
    async with world.pool.transaction("make") as tx:
        draft = ServiceDraft(name="checkout", **given_)
        return await create_service(tx, world.editor, world.project_uid, draft)


async def put(
    world: World, service: ServiceRow, expected: int, *places: int, **given_: Any
) -> ServiceRow:
    members = [world.made[place].uid for place in places]
    draft = DeclarationDraft(expected_revision=expected, monitors=members, sli=members, **given_)
    where = (world.editor, world.project_uid, service.uid)
    async with world.pool.transaction("declare") as tx:
        return await declare(tx, *where, draft, RAW_DAYS)


async def drop(world: World, place: int) -> str:
    try:
        async with world.pool.transaction("drop") as tx:
            await delete_monitor(tx, world.editor, world.made[place].uid)
    except Refused as refused:
        return refused.code
    return "done"


async def epochs(world: World) -> list[tuple[Any, ...]]:
    return await world.rows(
        "select seq, revision, effective_at from service_epochs order by effective_at"
    )


async def test_a_member_can_be_deleted_after_its_revisions_have_ended(world: World) -> None:
    for _ in range(3):
        await world.monitor()
    service = await make(world)
    await put(world, service, 0, 0, 1)
    world.now = Instant(START + 5 * MINUTE + SECOND)
    await put(world, service, 1, 1, 2)
    # The first revision governs until the end of the minute, and the second is about to.
    assert [await drop(world, place) for place in range(3)] == ["in_use"] * 3
    world.now = Instant(START + 6 * MINUTE - 1)
    assert await drop(world, 0) == "in_use"
    world.now = Instant(START + 6 * MINUTE)
    assert [await drop(world, place) for place in range(3)] == ["done", "in_use", "in_use"]


async def test_the_later_of_two_revisions_in_a_minute_governs(world: World) -> None:
    for _ in range(2):
        await world.monitor()
    service = await make(world)
    world.now = Instant(START + 10 * SECOND)
    first = await put(world, service, 0, 0)
    world.now = Instant(START + 50 * SECOND)
    second = await put(world, service, 1, 1)
    begins = Instant(START + MINUTE)
    assert (first.materialization_start, second.materialization_start) == (begins, begins)
    assert await epochs(world) == [(1, 2, begins)]
    assert await drop(world, 0) == "done"


async def test_a_declaration_of_a_late_clock_begins_after_sealed_time(
    world: World,
) -> None:
    """Of two processes only one has already seen a jump of the clock."""
    for _ in range(3):
        await world.monitor()
    service = await make(world)
    await put(world, service, 0, 0)
    sealed = Instant(START + 3 * HOUR)
    async with world.pool.transaction("seal") as tx:
        await advance_seals(tx, {service.key: sealed})
    world.now = Instant(START + 10 * MINUTE)
    await put(world, service, 1, 1)
    assert (await epochs(world))[1:] == [(2, 2, sealed)]
    world.now = Instant(START + 4 * HOUR + SECOND)
    await put(world, service, 2, 2)
    world.now = Instant(START + 11 * MINUTE)
    await put(world, service, 3, 1)
    # A declaration with expected revision 3 replaces it, and not only for the past.
    assert (await epochs(world))[2:] == [(3, 4, START + 4 * HOUR + MINUTE)]


async def test_a_declaration_on_the_minute_governs_from_the_next(world: World) -> None:
    """A declaration at the first instant of a minute governs from the next minute."""
    service = await make(world)
    row = await put(world, service, 0)
    assert row.materialization_start == START + MINUTE
    assert await epochs(world) == [(1, 1, START + MINUTE)]


async def test_epochs_between_two_declarations_are_numbered_before_the_second(
    world: World,
) -> None:
    for _ in range(2):
        await world.monitor()
    service = await make(world)
    await put(world, service, 0, 0)
    world.now = Instant(START + 10 * MINUTE + SECOND)
    async with world.pool.transaction("edit") as tx:
        given_ = {"interval_seconds": 30}
        uid = world.made[0].uid
        await edit_monitor(tx, world.editor, uid, given_, world.keyring, REGIONS)
    world.now = Instant(START + HOUR)
    await put(world, service, 1, 0, 1)
    assert await epochs(world) == [
        (1, 1, START + MINUTE),
        (2, 1, START + 11 * MINUTE),
        (3, 2, START + HOUR + MINUTE),
    ]


async def test_editing_burn_rules_keeps_the_age_of_the_objective(world: World) -> None:
    service = await make(world)
    where = (world.editor, world.project_uid, service.uid)
    async with world.pool.transaction("aim") as tx:
        first = await put_target(tx, *where, "30d", 99.9)
    world.now = Instant(START + HOUR)
    rule = BurnRule(HOUR, 5 * MINUTE, Fraction(2), BurnSeverity.PAGE)
    async with world.pool.transaction("burn") as tx:
        second = await put_burn_alerting(tx, *where, "30d", [rule], enabled=True)
    assert (second.updated_at, second.burn_enabled) == (first.updated_at, True)
    async with world.pool.transaction("aim") as tx:
        third = await put_target(tx, *where, "30d", 99)
    assert (third.updated_at, third.uid, third.burn_enabled) == (world.now, first.uid, True)


async def test_deleting_a_project_deletes_its_services(world: World) -> None:
    one = await make(world)
    await make(world, depends_on=[one.uid])
    await put(world, one, 0)
    async with world.pool.transaction("aim") as tx:
        await put_target(tx, world.editor, world.project_uid, one.uid, "7d", 99)
    admin = Principal(
        CredentialKind.SESSION, (Membership(world.org, None, Role.ORG_ADMIN),), label="admin"
    )
    async with world.pool.transaction("go") as tx:
        await delete_project(tx, admin, world.project_uid)
    for table in ("services", "service_revisions", "service_dependencies", "service_targets"):
        assert await world.rows(f"select from {table}") == []


_RULES = st.lists(
    st.sampled_from(
        [
            BurnRule(HOUR, 5 * MINUTE, Fraction(threshold, 10), severity)
            for threshold in (10, 144)
            for severity in BurnSeverity
        ]
    ),
    max_size=4,
)


@given(_RULES, st.lists(_RULES, min_size=1, max_size=4))
@settings(max_examples=examples(75), deadline=None)
async def test_an_unchanged_rule_keeps_its_row_and_order(
    databases: Databases, world_template: str, first: list[BurnRule], edits: list[list[BurnRule]]
) -> None:
    dsn = databases.lend(world_template)
    try:
        async with small_world(dsn) as world:
            service = await make(world)
            known: list[tuple[UUID, BurnRule]] = []
            for rules in [first, *edits]:
                known = await replaced(world, service, known, rules)
    finally:
        databases.give_back(dsn)


async def replaced(
    world: World, service: ServiceRow, before: list[tuple[UUID, BurnRule]], rules: list[BurnRule]
) -> list[tuple[UUID, BurnRule]]:
    """Replaces the rules by their definition: an equal rule keeps its row."""
    aim = BurnTarget(org=service.org, service=service.id, window="30d")
    async with world.pool.transaction("replace") as tx:
        changed = await replace_rules(tx, aim, rules)
        found = (await select_rules_of_services(tx, [service.key])).get(service.key, {})
        assert await select_service(tx, service.uid) == service
    after = [(row.uid, row.rule) for row in found.get("30d", [])]
    assert [rule for _, rule in after] == rules
    assert changed is ([rule for _, rule in before] != rules)
    for rule in {rule for _, rule in [*before, *after]}:
        old = {uid for uid, one in before if one == rule}
        new = {uid for uid, one in after if one == rule}
        assert len(old & new) == min(len(old), len(new))
    assert not {uid for uid, _ in after} & {u for u, r in before if (u, r) not in after}
    return after
