"""The dependencies at every instant, compared with a history that is recorded beside the edits."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.pools import Pool
from leadline.storage.retirement.transactions.delete_service import delete_service
from leadline.storage.services.tables.service_dependencies import put_edges
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.edit_dependencies import put_dependencies
from tests.support.run.effort import examples
from tests.support.worlds.databases import Databases
from tests.support.worlds.world import START, World, small_world

_AT = """
select upstream from service_dependency_terms
where service = %(service)s and from_at <= at(%(at)s) and until_at > at(%(at)s)
"""
_SERVICES = 4


async def make(world: World, slug: str) -> ServiceKey:
    async with world.pool.transaction("make") as tx:
        draft = ServiceDraft(name=slug, slug=slug)
        return (await create_service(tx, world.editor, world.project_uid, draft)).key


async def put(pool: Pool, key: ServiceKey, upstreams: Sequence[int]) -> None:
    async with pool.transaction("put") as tx:
        await put_edges(tx, key, upstreams)


async def at(world: World, service: int, instant: int) -> set[int]:
    """Returns the dependencies of the service at the instant."""
    found = [upstream for (upstream,) in await world.rows(_AT, service=service, at=instant)]
    assert len(found) == len(set(found)), "two terms of one edge at one instant"
    return set(found)


async def open_ones(world: World, service: int) -> set[int]:
    rows = await world.rows(
        "select upstream from service_dependency_terms "
        "where service = %(service)s and until_at = 'infinity'",
        service=service,
    )
    found = [upstream for (upstream,) in rows]
    assert len(found) == len(set(found))
    return set(found)


_EDITS = st.lists(
    st.tuples(st.integers(0, 3), st.sets(st.integers(1, _SERVICES - 1))), min_size=1, max_size=12
)


@settings(max_examples=examples(100))
@given(edits=_EDITS)
async def test_the_graph_of_every_instant_is_the_last_edit_before_it(
    databases: Databases, world_template: str, edits: list[tuple[int, set[int]]]
) -> None:
    """Of several edits at one instant the last applies."""
    dsn = databases.lend(world_template)
    async with small_world(dsn) as world:
        keys = [await make(world, f"s{number}") for number in range(_SERVICES)]
        history: dict[int, set[int]] = {}
        for seconds, places in edits:
            world.now = Instant(world.now + seconds * SECOND)
            wanted = {keys[place][1] for place in places}
            await put(world.pool, keys[0], sorted(wanted))
            history[world.now] = wanted
            assert await open_ones(world, keys[0][1]) == wanted
        before: set[int] = set()
        for instant, wanted in history.items():
            assert await at(world, keys[0][1], instant - 1) == before
            assert await at(world, keys[0][1], instant) == wanted
            before = wanted
    databases.give_back(dsn)


async def test_an_unchanged_edge_keeps_its_term(world: World) -> None:
    one, two, three = [await make(world, slug) for slug in ("one", "two", "three")]
    await put(world.pool, one, [two[1]])
    world.now = Instant(START + SECOND)
    await put(world.pool, one, [two[1], three[1]])
    terms = "select upstream, from_at from service_dependency_terms order by upstream"
    assert await world.rows(terms) == [(two[1], START), (three[1], START + SECOND)]


async def test_a_late_clock_keeps_the_terms_consistent(world: World) -> None:
    one, two = [await make(world, slug) for slug in ("one", "two")]
    for lag in (0, -1, 0, -1, -2, 0):
        for upstreams in ([two[1]], []):
            world.now = Instant(START + lag * SECOND)
            await put(world.pool, one, upstreams)
            assert await open_ones(world, one[1]) == set(upstreams)


async def test_every_edit_of_the_graph_writes_terms(world: World) -> None:
    one = await make(world, "one")
    rows = await world.rows("select uid from services")
    async with world.pool.transaction("make") as tx:
        draft = ServiceDraft(name="two", slug="two", depends_on=[rows[0][0]])
        two = await create_service(tx, world.editor, world.project_uid, draft)
    assert await open_ones(world, two.id) == {one[1]}
    world.now = Instant(START + SECOND)
    async with world.pool.transaction("put") as tx:
        seen = await tx.value("select graph_generation from projects")
        await put_dependencies(tx, world.editor, world.project_uid, two.uid, [], seen)
    assert await open_ones(world, two.id) == set()
    assert await at(world, two.id, START) == {one[1]}
    async with world.pool.transaction("drop") as tx:
        await delete_service(tx, world.editor, world.project_uid, two.uid)
    assert await world.rows("select from service_dependency_terms") == []
