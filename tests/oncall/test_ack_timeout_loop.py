"""An acknowledgement expires: the escalation continues, and the first acknowledger stays."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.incidents.transactions.edit_incidents import acknowledge
from leadline.storage.oncall.rules.escalation import (
    ACK_TIMEOUT_SECONDS,
    EscalationPolicy,
    EscalationStep,
    TargetKind,
    ack_timeout_fault,
    due_steps,
    resumed,
)
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    create_policy,
)
from tests.alerting.test_alert_processor_loop import Story
from tests.support.worlds.world import World

NOW = Instant(1_767_225_600_000_000)
delays = st.lists(st.integers(0, 1_000), min_size=1, max_size=5).map(sorted)


@given(delays, st.integers(0, 6), st.booleans())
def test_the_next_step_is_due_and_the_later_ones_keep_their_distance(
    after: list[int], taken: int, repeat_last: bool
) -> None:
    steps = tuple(EscalationStep(one * SECOND) for one in after)
    policy = EscalationPolicy(steps, repeat_last)
    taken = min(taken, len(after))
    start, then = resumed(policy, taken, NOW)
    assert then == min(taken, len(after) - 1)
    due, _ = due_steps(policy, start, then, None, NOW)
    assert due[0] == then + 1
    assert all(after[number - 1] == after[then] for number in due)
    for number in range(due[-1] + 1, len(after) + 1):
        at = Instant(NOW + (after[number - 1] - after[then]) * SECOND)
        assert number in due_steps(policy, start, number - 1, None, at)[0]
        assert number not in due_steps(policy, start, number - 1, None, Instant(at - 1))[0]


@given(st.integers(-10, 1_000_000))
def test_the_timeout_is_bounded(seconds: int) -> None:
    least, most = ACK_TIMEOUT_SECONDS
    assert (ack_timeout_fault(seconds) is None) == (seconds == 0 or least <= seconds <= most)


class Watch(Story):
    """A story with an incident whose policy has three steps, at 0, 5 and 60 minutes."""

    async def begin(self, *, timeout: int = 600, repeat_last: bool = False) -> UUID:
        channels = [await self.channel(name) for name in ("one", "two", "three")]
        steps = [
            StepDraft(after, [(TargetKind.CHANNEL, str(uid))])
            for after, uid in zip((0, 300, 3_600), channels, strict=True)
        ]
        world = self.world
        async with world.pool.transaction("policy") as tx:
            draft = PolicyDraft("night", steps, repeat_last, timeout)
            policy = await create_policy(tx, world.editor, world.project_uid, draft)
        row = await world.monitor(name="Shop", interval_seconds=3_600)
        await self.climbs(row, policy.id)
        await self.is_now(row, False)
        await self.run_pass()
        ((incident,),) = await world.rows("select uid from incidents")
        assert isinstance(incident, UUID)
        return incident

    async def acknowledges(self, incident: UUID) -> None:
        async with self.world.pool.transaction("acknowledge") as tx:
            await acknowledge(tx, self.world.editor, incident)

    async def paged(self) -> list[str]:
        rows = await self.world.rows(
            "select c.name from outbox o"
            " join destinations d on d.org = o.org and d.id = o.destination"
            " join notification_channels c on c.org = d.org and c.id = d.channel order by o.id"
        )
        return [name for (name,) in rows]

    async def notes(self) -> list[Any]:
        rows = await self.world.rows(
            "select body from incident_updates where status is null order by seq"
        )
        return [body for (body,) in rows]

    async def first(self) -> Any:
        (row,) = await self.world.rows(
            "select acknowledged_at, acknowledged_label, ack_expired_at is not null from incidents"
        )
        return row


@pytest.fixture
def watch(world: World) -> Watch:
    return Watch(world)


async def test_the_escalation_continues_after_the_expiry_and_the_first_stays(
    watch: Watch,
) -> None:
    incident = await watch.begin()
    await watch.later(MINUTE)
    await watch.acknowledges(incident)
    at, label, _ = await watch.first()
    await watch.later(9 * MINUTE)
    assert await watch.paged() == ["one"], "paged before the expiry"
    await watch.later(MINUTE + 2 * SECOND)
    assert await watch.paged() == ["one", "two"]
    assert await watch.first() == (at, label, True)
    assert await watch.notes() == [
        f"The acknowledgement of {label} expired. The escalation continues."
    ]
    # The third step keeps its distance of 55 minutes to the second.
    await watch.later(54 * MINUTE)
    assert await watch.paged() == ["one", "two"]
    await watch.later(MINUTE)
    assert await watch.paged() == ["one", "two", "three"]


async def test_a_later_acknowledgement_stops_it_again_until_it_expires_too(watch: Watch) -> None:
    incident = await watch.begin()
    await watch.acknowledges(incident)
    first = await watch.first()
    await watch.later(10 * MINUTE + 2 * SECOND)
    assert await watch.paged() == ["one", "two"]
    await watch.acknowledges(incident)
    await watch.acknowledges(incident)
    assert await watch.first() == first
    assert (await watch.notes())[1:] == ["Acknowledged again."]
    await watch.later(9 * MINUTE)
    assert await watch.paged() == ["one", "two"]
    await watch.later(MINUTE + 2 * SECOND)
    assert await watch.paged() == ["one", "two", "three"]
    # Without a further step, the last one is taken again.
    await watch.acknowledges(incident)
    await watch.later(10 * MINUTE + 2 * SECOND)
    assert await watch.paged() == ["one", "two", "three", "three"]


async def test_without_a_timeout_an_acknowledgement_lasts(watch: Watch) -> None:
    incident = await watch.begin(timeout=0)
    await watch.acknowledges(incident)
    await watch.later(HOUR + 5 * MINUTE)
    assert await watch.paged() == ["one"]
    assert await watch.notes() == []


async def test_a_timeout_outside_the_bounds_is_refused(watch: Watch) -> None:
    with pytest.raises(Refused) as refused:
        await watch.begin(timeout=60)
    assert refused.value.field == "ack_timeout_seconds"
