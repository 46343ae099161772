"""Random histories of services, compared with a model of dictionaries: services, dependencies,
declarations, and the code of each refusal.
"""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.retirement.transactions.delete_service import delete_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from leadline.storage.services.transactions.edit_dependencies import put_dependencies
from tests.support.run.effort import examples
from tests.support.worlds.world import START, World, small_world

SLUGS = ["a", "b", "c", "d"]
MONITORS = 3

_SLUG = st.sampled_from(SLUGS)
_SLUGS = st.lists(_SLUG, max_size=2)
_PLACES = st.lists(st.integers(0, MONITORS - 1), min_size=1, max_size=2, unique=True)
# The expected revision is usually the current one.
_LAG = st.sampled_from([0, 0, 0, 1])
_STEP = st.one_of(
    st.tuples(st.just("create"), _SLUG, _SLUGS),
    *[st.tuples(st.just("depend"), _SLUG, _SLUGS, _LAG)] * 3,
    *[st.tuples(st.just("declare"), _SLUG, _PLACES, _LAG)] * 2,
    st.tuples(st.just("delete"), _SLUG),
    st.tuples(st.just("drop"), st.integers(0, MONITORS - 1)),
    st.tuples(st.just("wait"), st.sampled_from([SECOND, 20 * SECOND, MINUTE])),
)


@dataclass
class Model:
    now: Instant = START
    edges: dict[str, set[str]] = field(default_factory=dict)
    # (start, members) of each revision, in order.
    declared: dict[str, list[tuple[int, tuple[int, ...]]]] = field(default_factory=dict)
    monitors: set[int] = field(default_factory=lambda: set(range(MONITORS)))
    generation: int = 0

    def create(self, slug: str, upstreams: list[str]) -> str:
        if not set(upstreams) <= set(self.edges):
            return "dependency_not_in_project"
        if slug in self.edges:
            return "slug_taken"
        self.edges[slug], self.declared[slug] = set(upstreams), []
        self.generation += bool(upstreams)
        return "done"

    def depend(self, slug: str, upstreams: list[str], lag: int) -> str:
        if slug not in self.edges:
            return "not_found"
        if not set(upstreams) <= set(self.edges):
            return "dependency_not_in_project"
        if any(one == slug or slug in self.beneath(one) for one in upstreams):
            return "dependency_cycle"
        if lag:
            return "graph_generation_stale"
        self.generation += self.edges[slug] != set(upstreams)
        self.edges[slug] = set(upstreams)
        return "done"

    def beneath(self, slug: str) -> set[str]:
        found: set[str] = set()
        waiting = {slug}
        while waiting:
            found |= waiting
            waiting = {up for one in waiting for up in self.edges[one]} - found
        return found

    def declare(self, slug: str, places: list[int], lag: int) -> str:
        if slug not in self.edges:
            return "not_found"
        if not set(places) <= self.monitors:
            return "invalid"
        if lag:
            return "revision_conflict"
        known = self.declared[slug]
        if not known or known[-1][1] != tuple(places):
            known.append((self.now - self.now % MINUTE + MINUTE, tuple(places)))
        return "done"

    def delete(self, slug: str) -> str:
        if slug not in self.edges:
            return "not_found"
        del self.edges[slug], self.declared[slug]
        self.edges = {one: ups - {slug} for one, ups in self.edges.items()}
        self.generation += 1
        return "done"

    def drop(self, place: int) -> str:
        if place not in self.monitors:
            return "not_found"
        for known in self.declared.values():
            governing = [members for since, members in known if since <= self.now][-1:]
            newest = [members for _, members in known][-1:]
            if any(place in members for members in governing + newest):
                return "in_use"
        self.monitors.remove(place)
        return "done"


@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(_STEP, min_size=10, max_size=25))
def test_any_history_matches_the_model(databases: Any, template: str, steps: list[Any]) -> None:
    dsn = databases.lend(template)
    try:
        trio.run(_history, dsn, steps)
    finally:
        databases.give_back(dsn)


async def _history(dsn: str, steps: list[Any]) -> None:
    async with small_world(dsn) as world:
        for _ in range(MONITORS):
            await world.monitor()
        model, uids = Model(), dict.fromkeys(SLUGS, uuid7())
        begin: list[Any] = [("create", slug, []) for slug in SLUGS]
        for name, *given_ in [*begin, *steps]:
            if name == "wait":
                model.now = world.now = Instant(world.now + given_[0])
                continue
            generation, revisions = model.generation, model.declared.get(str(given_[0]), [])
            seen = {"depend": generation, "declare": len(revisions)}.get(name, 0)
            expected = getattr(model, name)(*given_)
            if name in ("depend", "declare"):
                given_[-1] += seen
            assert await _step(world, uids, name, *given_) == expected, (name, given_)
            await _compare(world, model)


async def _step(world: World, uids: dict[str, UUID], name: str, *given_: Any) -> str:
    where = (world.editor, world.project_uid)
    try:
        async with world.pool.transaction("step") as tx:
            match name, given_:
                case "create", (slug, upstreams):
                    wanted = [uids[one] for one in upstreams]
                    draft = ServiceDraft(name=slug, slug=slug, depends_on=wanted)
                    uids[slug] = (await create_service(tx, *where, draft)).uid
                case "depend", (slug, upstreams, seen):
                    wanted = [uids[one] for one in upstreams]
                    await put_dependencies(tx, *where, uids[slug], wanted, seen)
                case "declare", (slug, places, seen):
                    members = [world.made[place].uid for place in places]
                    document = DeclarationDraft(
                        expected_revision=seen, monitors=members, sli=members[:1]
                    )
                    await declare(tx, *where, uids[slug], document, 30)
                case "delete", (slug,):
                    await delete_service(tx, *where, uids[slug])
                case "drop", (place,):
                    await delete_monitor(tx, world.editor, world.made[place].uid)
                case _:
                    pytest.fail(f"no such step: {name}")
    except Refused as refused:
        return refused.code
    return "done"


async def _compare(world: World, model: Model) -> None:
    edges = await world.rows(
        "select s.slug, u.slug from service_dependencies d "
        "join services s on s.id = d.service join services u on u.id = d.upstream"
    )
    assert set(edges) == {(one, up) for one, ups in model.edges.items() for up in ups}
    declared = await world.rows(
        "select s.slug, r.revision, r.effective_at, r.monitors from services s "
        "left join service_revisions r on r.service = s.id order by r.revision"
    )
    keys = [row.id for row in world.made]
    wanted = [
        (slug, number, since, [keys[place] for place in places])
        for slug, known in model.declared.items()
        for number, (since, places) in enumerate(known, 1)
    ]
    assert sorted(row for row in declared if row[1]) == sorted(wanted)
    assert {row[0] for row in declared} == set(model.edges)
    assert await world.rows("select graph_generation from projects") == [(model.generation,)]
