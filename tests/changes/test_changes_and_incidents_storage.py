"""The links of changes and incidents, read from both sides, compared with a walk over the
dependency graph of each instant."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.storage.changes.queries import change_timeline, preceding_changes
from leadline.storage.changes.queries.change_timeline import ChangeGroup, select_timeline
from leadline.storage.changes.queries.changes import select_phases
from leadline.storage.changes.queries.preceding_changes import Preceding, select_preceding
from leadline.storage.changes.rules.change import ChangeKind
from leadline.storage.changes.rules.change_precedence import FOLLOWS_MOST_US, ChangeRole
from leadline.storage.core.instant import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.queries.incidents import select_incident
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.tables.service_dependencies import put_edges
from tests.support.run.effort import examples
from tests.support.worlds.change_records import decide, make_service, open_incident, say
from tests.support.worlds.databases import Databases
from tests.support.worlds.world import START, World, small_world

ALWAYS = TimeSpan(Instant(START - 90 * DAY), Instant(START + 90 * DAY))


async def timeline(world: World, service: ServiceRow, most: int = 1_000) -> list[ChangeGroup]:
    async with world.pool.transaction("look", read_only=True) as tx:
        return await select_timeline(tx, service.key, ALWAYS, list(ChangeKind), None, None, most)


async def preceding(world: World, incident: UUID) -> list[Preceding]:
    async with world.pool.transaction("look", read_only=True) as tx:
        row = await select_incident(tx, incident)
        assert row is not None
        return await select_preceding(tx, row)


async def depend(world: World, service: ServiceRow, *upstreams: ServiceRow) -> None:
    async with world.pool.transaction("depend") as tx:
        await put_edges(tx, service.key, [each.id for each in upstreams])


_SERVICES = 4
# Acyclic: a service depends only on those that come after it.
_EDIT = st.integers(0, _SERVICES - 2).flatmap(
    lambda n: st.tuples(st.just("edit"), st.just(n), st.sets(st.integers(n + 1, _SERVICES - 1)))
)
_NOTHING: set[int] = set()
_CHANGE = st.tuples(st.just("change"), st.integers(0, _SERVICES - 1), st.just(_NOTHING))
_INCIDENT = st.tuples(st.just("incident"), st.integers(0, _SERVICES - 1), st.just(_NOTHING))
# Whole milliseconds, as changes are kept.
_STEP = st.sampled_from([0, MILLISECOND, MINUTE, 12 * HOUR, DAY - MILLISECOND, DAY])
_STORY = st.lists(st.tuples(_STEP, _EDIT | _CHANGE | _CHANGE | _INCIDENT), max_size=14)


def depends(graph: dict[int, set[int]], service: int, upstream: int) -> bool:
    return any(
        each == upstream or depends(graph, each, upstream) for each in graph.get(service, ())
    )


@settings(max_examples=examples(100))
@given(story=_STORY)
async def test_both_sides_have_the_same_links_as_the_walk(
    databases: Databases,
    world_template: str,
    story: Sequence[tuple[int, tuple[str, int, set[int]]]],
) -> None:
    dsn = databases.lend(world_template)
    async with small_world(dsn) as world:
        services = [await make_service(world, f"s{number}") for number in range(_SERVICES)]
        places = {service.uid: place for place, service in enumerate(services)}
        graphs: list[tuple[int, dict[int, set[int]]]] = []
        changes: list[tuple[UUID, int, int]] = []
        incidents: list[tuple[UUID, int, int]] = []
        for step_us, (what, place, upstreams) in story:
            # Records are kept in whole milliseconds; so is what they are compared with here.
            world.now = Instant(
                world.now + step_us * 1_000 if step_us == 1 else world.now + step_us
            )
            world.now = Instant(world.now - world.now % 1_000)
            if what == "edit":
                await depend(world, services[place], *[services[n] for n in upstreams])
                before = graphs[-1][1] if graphs else {}
                graphs.append((world.now, {**before, place: set(upstreams)}))
            elif what == "change":
                said = await say(world, services[place], external_id=str(len(changes)))
                changes.append((said.phase.uid, place, world.now))
            else:
                uid = await open_incident(world, services[place], world.now)
                incidents.append((uid, place, world.now))

        # The graph at an instant is the result of the last edit before or at it.
        expected = set()
        for change, changed, started in changes:
            for incident, hit, at in incidents:
                graph = next((g for when, g in reversed(graphs) if when <= at), {})
                if 0 <= at - started <= 24 * HOUR:
                    if changed == hit:
                        expected.add((change, incident, "own_service", (at - started) // SECOND))
                    elif depends(graph, hit, changed):
                        expected.add((change, incident, "upstream", (at - started) // SECOND))

        told = set()
        for service in services:
            for group in await timeline(world, service):
                [phase] = group.phases
                told |= {
                    (phase.uid, each.incident, each.role.value, each.lag_seconds)
                    for each in group.incidents
                }
        assert told == expected
        told = set()
        for uid, _, _ in incidents:
            for each in await preceding(world, uid):
                assert each.service == services[places[each.service]].uid
                told.add((each.phases[0].uid, uid, each.role.value, each.lag_seconds))
        assert told == expected
    databases.give_back(dsn)


async def test_an_incident_a_day_later_follows_and_one_a_moment_later_does_not(
    world: World,
) -> None:
    service = await make_service(world, "shop")
    await say(world, service)
    for off_us in (-1, 0, FOLLOWS_MOST_US, FOLLOWS_MOST_US + 1):
        await open_incident(world, service, Instant(START + off_us))
    [group] = await timeline(world, service)
    assert [each.lag_seconds for each in group.incidents] == [0, 86_400]


async def test_an_incident_of_no_service_has_no_changes_before_it(world: World) -> None:
    service = await make_service(world, "shop")
    await say(world, service)
    incident = await open_incident(world, None, Instant(START + SECOND))
    assert await preceding(world, incident) == []
    assert [group.incidents for group in await timeline(world, service)] == [[]]


async def test_a_change_counts_from_its_start_even_if_it_is_reported_late(
    world: World,
) -> None:
    service = await make_service(world, "shop")
    world.now = Instant(START + 3 * DAY)
    incident = await open_incident(world, service, START)
    await say(world, service, occurred_at=Instant(START - DAY))
    await say(world, service, "succeeded")
    [found] = await preceding(world, incident)
    assert (found.role, found.lag_seconds) == (ChangeRole.OWN_SERVICE, 86_400)
    assert [phase.phase.value for phase in found.phases] == ["started", "succeeded"]


async def test_the_links_are_limited_to_the_nearest(world: World, monkeypatch: object) -> None:
    service = await make_service(world, "shop")
    for number in range(5):
        await say(
            world, service, external_id=str(number), occurred_at=Instant(START + number * SECOND)
        )
    for number in range(5, 10):
        incident = await open_incident(world, service, Instant(START + number * SECOND))
    before = change_timeline.INCIDENTS_MOST, preceding_changes.CHANGES_MOST
    try:
        change_timeline.INCIDENTS_MOST = preceding_changes.CHANGES_MOST = 2  # type: ignore[misc]
        assert [each.lag_seconds for each in (await timeline(world, service))[0].incidents] == [
            1,
            2,
        ]
        assert [each.lag_seconds for each in await preceding(world, incident)] == [5, 6]
    finally:
        change_timeline.INCIDENTS_MOST, preceding_changes.CHANGES_MOST = before  # type: ignore[misc]


async def test_a_change_names_the_decision_that_it_named_last(world: World) -> None:
    service = await make_service(world, "shop")
    first = await decide(world.pool, service, START, "BLOCK", "ALLOW", "BLOCK")
    second = await decide(world.pool, service, START, "NOT_CONFIGURED", None, None)
    await say(world, service, decision=first, ref="v1")
    [group] = await timeline(world, service)
    assert group.decision == first
    assert group.decided is not None
    assert (group.decided.state, group.decided.is_overridden) == ("BLOCK", True)
    await say(world, service, "failed", decision=second)
    [group] = await timeline(world, service)
    assert group.decision == second
    assert group.decided is not None
    assert (group.decided.state, group.decided.is_overridden) == ("NOT_CONFIGURED", False)
    assert (group.ref, group.url) == ("v1", "")


async def test_a_page_continues_after_the_previous_one(world: World) -> None:
    """Several changes of one instant, of two kinds and sources: the pages of each filter make up
    the complete list."""
    service = await make_service(world, "shop")
    other = await make_service(world, "mill")
    said = []
    for number in range(12):
        kind, source = list(ChangeKind)[number % 3], ("ci", "cd")[number % 2]
        given_ = {"kind": kind, "source": source, "external_id": str(number)}
        await say(world, service, occurred_at=Instant(START - number // 4 * HOUR), **given_)
        await say(world, other, **given_)
        said.append((kind, source))
    for kinds in ([], [ChangeKind.DEPLOY], list(ChangeKind)):
        for only in (None, "ci", "none"):
            wanted = [k in kinds and only in (None, s) for k, s in said]
            found: list[ChangeGroup] = []
            before = None
            while True:
                async with world.pool.transaction("look", read_only=True) as tx:
                    page = await select_timeline(tx, service.key, ALWAYS, kinds, only, before, 2)
                if not page:
                    break
                found += page
                before = (page[-1].change.latest_at, page[-1].change.id)
            keys = [(each.change.latest_at, each.change.id) for each in found]
            assert keys == sorted(keys, reverse=True)
            assert len(set(keys)) == len(keys) == sum(wanted)


async def test_a_page_is_of_the_range_and_a_cursor_does_not_lead_out_of_it(world: World) -> None:
    service = await make_service(world, "shop")
    for number in range(4):
        await say(
            world, service, external_id=str(number), occurred_at=Instant(START - number * HOUR)
        )
    within = TimeSpan(Instant(START - 2 * HOUR), START)
    for before, count in ((None, 2), ((2**62, 2**62), 2), ((-(2**62), 0), 0), ((START, 0), 2)):
        async with world.pool.transaction("look", read_only=True) as tx:
            page = await select_timeline(tx, service.key, within, list(ChangeKind), None, before, 9)
        assert len(page) == count


async def test_a_service_that_is_deleted_meanwhile_precedes_no_incident(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream, service = await make_service(world, "upstream"), await make_service(world, "service")
    await depend(world, service, upstream)
    await say(world, upstream, external_id="1")
    incident = await open_incident(world, service, world.now)
    assert len(await preceding(world, incident)) == 1
    original = select_phases

    async def deleting(tx: Tx, org: int, changes: Sequence[int]) -> Any:
        found = await original(tx, org, changes)
        await tx.execute("delete from services where id = %(id)s", id=upstream.id)
        return found

    monkeypatch.setattr(f"{preceding_changes.__name__}.select_phases", deleting)
    async with world.pool.transaction("look") as tx:
        row = await select_incident(tx, incident)
        assert row is not None
        assert await select_preceding(tx, row) == []
