"""Undo of a public update against a brute-force model: subscribers get it or it is withdrawn,
never both. The status and the acknowledgement stay as they are.
"""

from typing import Any
from uuid import UUID

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.core.key import DestinationKey
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.queries.incident_updates import select_updates
from leadline.storage.incidents.queries.incidents import select_incident
from leadline.storage.incidents.rows import IncidentRow, UpdateRow
from leadline.storage.incidents.rules.incident import UNDO_US, IncidentStatus
from leadline.storage.incidents.transactions.edit_incidents import (
    acknowledge,
    add_update,
    undo_update,
)
from leadline.storage.notifications.rules.delivery_retry import ROOMS, DeliveryOutcome
from leadline.storage.notifications.tables.outbox_settlements import make_due
from leadline.storage.notifications.transactions.lease_deliveries import (
    LeasedDelivery,
    lease_deliveries,
)
from leadline.storage.notifications.transactions.settle_deliveries import settle_deliveries
from leadline.storage.status_pages.queries.status_pages import select_page, select_page_facts
from leadline.storage.status_pages.rules.status_page import Audience, Incident, render
from leadline.storage.status_pages.transactions.fan_out import pass_on
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.subscribing import Readers, readers_of
from tests.support.worlds.world import World, small_world

ADA, BOB = "ada@example.com", "bob@example.com"
ORDER = list(IncidentStatus)


@pytest.fixture
async def readers(world: World) -> Readers:
    return await _told(world)


async def _told(world: World) -> Readers:
    readers = await readers_of(world)
    await readers.subscribe(ADA, BOB)
    return readers


async def say(
    readers: Readers, incident: UUID, status: str | None, body: str, *, public: bool = True
) -> UpdateRow:
    async with readers.world.pool.transaction("update") as tx:
        wanted = None if status is None else IncidentStatus(status)
        _, row = await add_update(tx, readers.owner, incident, wanted, body, public)
    return row


async def undo(readers: Readers, incident: UUID, update: UUID) -> str:
    """Returns the code of the refusal, empty for a withdrawal."""
    try:
        async with readers.world.pool.transaction("undo") as tx:
            await undo_update(tx, readers.owner, incident, update)
    except Refused as refused:
        return refused.code
    return ""


async def read(readers: Readers, incident: UUID) -> tuple[IncidentRow, list[UpdateRow]]:
    async with readers.world.pool.transaction("read", read_only=True) as tx:
        row = await select_incident(tx, incident)
        assert row is not None
        return row, await select_updates(tx, row.org, row.id)


async def lease(readers: Readers) -> list[LeasedDelivery]:
    async with readers.world.pool.transaction("lease") as tx:
        return list((await lease_deliveries(tx, ROOMS, 3)).deliveries)


async def send(readers: Readers, delivery: LeasedDelivery) -> None:
    """Passes a page's event on, and settles it."""
    if delivery.event.page is not None:

        async def enqueue(tx: Tx) -> None:
            await pass_on(tx, delivery.event, delivery.lease, 0)

        await readers.world.pool.transact("enqueue_subscriber_events", enqueue)
    async with readers.world.pool.transaction("settle") as tx:
        await settle_deliveries(tx, [(delivery, DeliveryOutcome())], 3, lambda: 0.0)


async def send_all(readers: Readers) -> None:
    while leased := await lease(readers):
        for delivery in leased:
            await send(readers, delivery)


async def told(readers: Readers) -> list[tuple[int, int]]:
    """Returns (seq, number of subscribers with a message)."""
    return await readers.rows(
        "select (o.payload->>'seq')::int, count(*) from outbox o"
        " join destinations d on d.org = o.org and d.id = o.destination"
        " where d.subscriber is not null group by 1 order by 1"
    )


STEPS = st.lists(
    st.tuples(
        st.just("say"),
        st.sampled_from([None, "identified", "monitoring", "resolved"]),
        st.sampled_from(["", "words"]),
        st.booleans(),
    )
    | st.tuples(st.just("undo"), st.integers(0, 5))
    | st.tuples(st.just("wait"), st.sampled_from([1, 9, 10]))
    | st.tuples(st.just("lease"))
    | st.tuples(st.just("take")),
    max_size=14,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_any_history_sends_or_withdraws_each_update(
    databases: Any, template: str, steps: list[Any]
) -> None:
    dsn = databases.lend(template)
    try:
        trio.run(_history, dsn, steps)
    finally:
        databases.give_back(dsn)


class Model:
    """The rules, with one entry per update: [status, body, public, at, state of its messages].

    The state is `none`, `queued`, `begun` or `sent`.
    """

    def __init__(self, now: int) -> None:
        self.status, self.taken = "investigating", False
        self.updates: list[list[Any]] = [["investigating", "We look.", True, now, "sent"]]

    def say(self, status: str | None, body: str, public: bool, now: int) -> bool:
        if status is not None and (
            self.status == "resolved" or ORDER.index(IncidentStatus(status)) < self.place
        ):
            return False
        if not body and status in (None, self.status):
            return False
        self.status = status or self.status
        self.updates.append([status, body, public, now, "queued" if public else "none"])
        return True

    @property
    def place(self) -> int:
        return ORDER.index(IncidentStatus(self.status))

    def undo(self, index: int, now: int) -> str:
        _, body, public, at, state = self.updates[index]
        if not public:
            return "update_not_public"
        if index == 0 or not body:
            return "update_final"
        if now >= at + UNDO_US:
            return "undo_expired"
        if state != "queued":
            return "update_sent"
        self.updates[index][2] = False
        self.updates.append([None, "", False, now, "none"])
        return ""

    def due(self, now: int) -> int | None:
        """Returns the index of the page's event that can be leased: the first that is not sent."""
        waiting = [i for i, one in enumerate(self.updates) if one[4] in ("queued", "begun")]
        if not waiting or self.updates[waiting[0]][4] == "begun":
            return None
        _, body, public, at, _ = self.updates[waiting[0]]
        # A withdrawn text still has a body: its event keeps its due time.
        held = waiting[0] > 0 and bool(body)
        assert public or held
        return waiting[0] if now >= at + (UNDO_US if held else 0) else None


async def _history(dsn: str, steps: list[Any]) -> None:
    async with small_world(dsn) as world:
        readers = await _told(world)
        uid = (await readers.open_incident(body="We look.")).uid
        await send_all(readers)
        model, begun = Model(world.now), list[LeasedDelivery]()
        for step in steps:
            match step:
                case ("say", status, body, public):
                    try:
                        await say(readers, uid, status, body, public=public)
                        accepted = True
                    except Refused:
                        accepted = False
                    assert accepted == model.say(status, body, public, world.now)
                case ("undo", place):
                    updates = (await read(readers, uid))[1]
                    index = place % len(updates)
                    found = await undo(readers, uid, updates[index].uid)
                    assert found == model.undo(index, world.now)
                case ("wait", seconds):
                    for one in begun:
                        await send(readers, one)
                    for entry in model.updates:
                        entry[4] = "sent" if entry[4] == "begun" else entry[4]
                    begun = []
                    world.now = Instant(world.now + seconds * SECOND)
                case ("lease",):
                    leased = [one for one in await lease(readers) if one.event.page is not None]
                    due = model.due(world.now)
                    assert len(leased) == (due is not None)
                    if due is not None:
                        model.updates[due][4] = "begun"
                    begun += leased
                case _:
                    async with world.pool.transaction("acknowledge") as tx:
                        if model.status != "resolved" or model.taken:
                            await acknowledge(tx, readers.owner, uid)
                            model.taken = True
            await _agrees(readers, uid, model)
        for one in begun:
            await send(readers, one)
        world.now = Instant(world.now + UNDO_US)
        await send_all(readers)
        public = [place + 1 for place, one in enumerate(model.updates) if one[2]]
        assert await told(readers) == [(seq, 2) for seq in public]


async def _agrees(readers: Readers, uid: UUID, model: Model) -> None:
    row, updates = await read(readers, uid)
    assert (row.status, row.seq) == (model.status, len(model.updates))
    assert (row.acknowledged_at is not None) == model.taken
    found = [(one.status, one.body, one.public) for one in updates]
    assert found == [tuple(one[:3]) for one in model.updates]
    assert [one.seq for one in updates] == list(range(1, len(updates) + 1))


async def test_a_send_during_an_undo_waits_and_sends_nothing(readers: Readers) -> None:
    """The undo holds the page's event until its commit, so a lease skips it."""
    incident = (await readers.open_incident()).uid
    await send_all(readers)
    row = await say(readers, incident, "identified", "wrong")
    await readers.rows("update outbox set due_at = at(%(now)s) returning id", now=readers.world.now)
    found = list[list[LeasedDelivery]]()
    async with readers.world.pool.transaction("undo") as tx:
        _, written = await undo_update(tx, readers.owner, incident, row.uid)

        async def try_lease() -> None:
            found.append(await lease(readers))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(try_lease)
    assert found == [[]]
    assert (written.seq, written.withdraws, written.public) == (3, 2, False)
    await send_all(readers)
    assert await told(readers) == [(1, 2)]


async def test_an_undo_during_a_lease_is_refused(readers: Readers) -> None:
    incident = (await readers.open_incident()).uid
    await send_all(readers)
    row = await say(readers, incident, "identified", "final")
    await readers.rows("update outbox set due_at = at(%(now)s) returning id", now=readers.world.now)
    found = list[str]()

    async def later() -> None:
        found.append(await undo(readers, incident, row.uid))

    async with trio.open_nursery() as nursery:
        async with readers.world.pool.transaction("lease") as tx:
            claim = await lease_deliveries(tx, ROOMS, 3)
            nursery.start_soon(later)
            await until_blocked(readers.world.pool)
    assert found == ["update_sent"]
    for delivery in claim.deliveries:
        await send(readers, delivery)
    assert await told(readers) == [(1, 2), (2, 2)]


async def test_two_concurrent_undos_are_one(readers: Readers) -> None:
    incident = (await readers.open_incident()).uid
    row = await say(readers, incident, "identified", "wrong")
    found = list[str]()

    async def once() -> None:
        found.append(await undo(readers, incident, row.uid))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(once)
    assert sorted(found) == ["", "update_not_public", "update_not_public"]
    assert (await read(readers, incident))[0].seq == 3


async def test_feeds_state_the_withdrawal_as_the_newest_change(readers: Readers) -> None:
    """A reader replaces the withdrawn text only by an entry that was updated later."""
    incident = (await readers.open_incident()).uid
    found = list[Incident]()

    async def look() -> None:
        async with readers.world.pool.transaction("look", read_only=True) as tx:
            page = await select_page(tx, readers.page)
            assert page is not None
            facts = await select_page_facts(tx, page, Audience.PUBLIC)
        found.extend(render(facts, Audience.PUBLIC).active)

    await look()
    readers.world.now = Instant(readers.world.now + SECOND)
    row = await say(readers, incident, "identified", "wrong")
    await look()
    readers.world.now = Instant(readers.world.now + SECOND)
    assert await undo(readers, incident, row.uid) == ""
    await look()
    before, wrong, after = found
    assert [len(one.updates) for one in found] == [1, 2, 1]
    assert before.updated_at < wrong.updated_at < after.updated_at == readers.world.now
    assert after.withdrawn_at is None
    # A later text counts as before.
    readers.world.now = Instant(readers.world.now + SECOND)
    await say(readers, incident, None, "right")
    await look()
    assert found[-1].updated_at == readers.world.now


async def test_a_recovered_destination_does_not_end_the_wait(readers: Readers) -> None:
    incident = (await readers.open_incident()).uid
    await send_all(readers)
    await say(readers, incident, None, "wrong")
    pages = await readers.rows("select org, id from destinations where page is not null")
    async with readers.world.pool.transaction("recover") as tx:
        await make_due(tx, [DestinationKey((org, key)) for org, key in pages])
    assert await lease(readers) == []
