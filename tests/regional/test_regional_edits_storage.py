"""Edits of a regional monitor that contend: the parts agree after each of them."""

from collections.abc import Sequence

import msgspec
import trio

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Pool
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.regional.rules import RegionSpread
from leadline.storage.regional.transactions import create_any, delete_any, edit_any
from tests.support.worlds.world import World

REGIONS = ("core", "attic", "cellar", "roof")
USABLE = frozenset(REGIONS)
SHOP = MonitorDraft(type="http", name="Shop", target="https://shop.example/", interval_seconds=30)


async def expect_agreement(pool: Pool, regions: Sequence[str] | None = None) -> None:
    """Checks that the composite counts exactly its members, which have the same settings."""
    async with pool.transaction("read", read_only=True) as tx:
        rows = await tx.rows(
            "select m.id, m.uid::text, m.name, m.target, m.enabled, m.interval_seconds, s.region,"
            " m.config::text from monitors m join shards s on s.id = m.shard"
            " where m.regional_of is not null order by m.id"
        )
        terms = await tx.rows(
            "select c.monitor, c.children, c.quorum from composite_terms c"
            " where c.until_at = 'infinity'"
        )
        wholes = {row[0] for row in await tx.rows("select regional_of from monitors group by 1")}
    wholes.discard(None)
    (whole,) = [row for row in rows if row[0] in wholes]
    members = [row for row in rows if row[0] not in wholes]
    config = msgspec.json.decode(whole[7])
    assert sorted(config["children"]) == sorted(row[1] for row in members)
    ((monitor, children, quorum),) = terms
    assert (monitor, sorted(children)) == (whole[0], sorted(row[0] for row in members))
    assert 1 <= quorum == config["quorum"] <= len(members)
    assert {row[2] for row in members} == {f"{whole[2]} ({row[6]})" for row in members}
    assert len({(row[3], row[4], row[5]) for row in members}) == 1
    assert {row[4] for row in members} == {whole[4]}
    assert len({row[6] for row in members}) == len(members)
    if regions is not None:
        assert sorted(row[6] for row in members) == sorted(regions)


async def test_concurrent_edits_leave_equal_parts(world: World) -> None:
    pool, principal = world.pool, world.editor
    async with pool.transaction("create") as tx:
        spread = RegionSpread(("core", "attic"))
        made = await create_any(
            tx, principal, world.project_uid, SHOP, spread, world.keyring, USABLE
        )
    edits: list[tuple[dict[str, object], RegionSpread]] = [
        ({"name": "One", "interval_seconds": 60}, RegionSpread()),
        ({"enabled": False}, RegionSpread(("core", "cellar", "attic"), 3)),
        ({"target": "https://other.example/"}, RegionSpread(("roof", "core"), 1)),
        ({"name": "Two", "enabled": True}, RegionSpread(down_regions=2)),
    ]

    async def edit(number: int) -> None:
        given, spread = edits[number % len(edits)]
        await pool.transact(
            "edit",
            lambda tx: edit_any(
                tx, principal, made.uid, dict(given), spread, world.keyring, USABLE
            ),
        )

    for _ in range(3):
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for number in range(len(edits)):
                    nursery.start_soon(edit, number)
        await expect_agreement(pool)


async def test_an_edit_and_a_deletion_contend(world: World) -> None:
    pool, principal = world.pool, world.editor
    async with pool.transaction("create") as tx:
        spread = RegionSpread(("core", "attic"))
        made = await create_any(
            tx, principal, world.project_uid, SHOP, spread, world.keyring, USABLE
        )
    ended = []

    async def edit() -> None:
        spread = RegionSpread(("core", "cellar"))
        try:
            await pool.transact(
                "edit",
                lambda tx: edit_any(tx, principal, made.uid, {}, spread, world.keyring, USABLE),
            )
        except Refused as refused:
            ended.append(refused.code)

    async def delete() -> None:
        await pool.transact("delete", lambda tx: delete_any(tx, principal, made.uid))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(edit)
            nursery.start_soon(delete)
    assert set(ended) <= {"not_found"}
    async with pool.transaction("read", read_only=True) as tx:
        assert await tx.rows("select name from monitors where regional_of is not null") == []
