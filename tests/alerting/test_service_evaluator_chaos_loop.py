"""One component fails at one moment of an outage: one page arrives, and the recovery is sent by the
same sender.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from leadline.daemon.loops import service_evaluator as evaluator_module
from leadline.storage.alerting.transactions.evaluate_services import ServiceEvaluations
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.pools import Tx
from tests.support.run.effort import varied

from ..support.worlds.paging_world import PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

PAGES = ("incident.opened", "incident.escalated", "monitor.down")
RECOVERIES = ("incident.resolved", "monitor.recovered")
# The longest delay of a page: the confirmation of the evaluator, or five minutes without a
# delivered page, plus several passes.
PAGED_WITHIN = 7 * MINUTE
# A lease, plus the scan for episodes of a dead evaluator.
RECOVERED_WITHIN = 4 * MINUTE


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


class Chaos:
    """A monitor with its own channel, in a service with another channel, and one component that
    fails.
    """

    def __init__(self, story: PagingWorld, part: str, seed: str) -> None:
        self.story = story
        self.part = part
        self.chance = random.Random(f"{part}{seed}")
        self.up = True
        self.result_at = Instant(0)
        self.loses = False
        self.heals: Callable[[], Awaitable[None]] | None = None

    async def begin(self) -> None:
        story = self.story
        self.row = await story.world.monitor(name="One", auto_incident=self.chance.random() < 0.5)
        await story.channel("own", self.row)
        self.ops = await story.channel("ops")
        self.policy = await story.policy((0, self.ops))
        schedule = await story.on_call(self.ops)
        routed = self.chance.random() < 0.5
        self.service = await story.service(
            self.row,
            policy=self.policy if routed else None,
            schedule=None if routed else schedule,
            revised=self.part != "no_revision",
        )
        if self.part == "no_revision":
            later = Instant(story.world.now + 60 * MINUTE)
            await story.revise(self.service, [self.row], at=later)

    async def go(self, until: int, done: Callable[[], Awaitable[bool]] | None = None) -> bool:
        """Runs passes until the duration has passed or the condition is true; returns whether it is
        true.
        """
        end = self.story.world.now + until
        while self.story.world.now < end:
            now = Instant(self.story.world.now + self.chance.randrange(5, 31) * SECOND)
            self.story.world.now = now
            if now - self.result_at >= 20 * SECOND:
                await self.story.is_now(self.row, self.up)
                self.result_at = now
            await self.story.run_pass()
            if self.chance.random() < 0.7:
                await self.deliver()
            if done is not None and await done():
                return True
        return False

    async def deliver(self) -> None:
        if self.loses:
            await self.story.set(
                "update outbox o set status = 'dead' from destinations d, notification_channels c"
                " where o.destination = d.id and d.channel = c.id and c.name = 'ops'"
                " and o.status = 'pending' and o.event = any(%(events)s::text[])",
                events=list(PAGES),
            )
        # Events behind a dead event of the same stream are not delivered.
        await self.story.set(
            "update outbox o set status = 'delivered' from destinations d, notification_channels c"
            " where o.destination = d.id and d.channel = c.id and c.enabled"
            " and o.status = 'pending' and not exists (select from outbox e"
            " where e.stream = o.stream and e.destination = o.destination and e.id < o.id"
            " and e.status = 'dead')"
        )

    async def arrived(self, events: tuple[str, ...]) -> list[tuple[str, str]]:
        return await self.story.world.rows(
            "select c.name, o.event from outbox o join destinations d on d.id = o.destination"
            " join notification_channels c on c.id = d.channel"
            " where o.status = 'delivered' and o.event = any(%(events)s::text[]) order by o.id",
            events=list(events),
        )

    async def is_paged(self) -> bool:
        return bool(await self.arrived(PAGES))

    async def is_recovered(self) -> bool:
        return bool(await self.arrived(RECOVERIES))

    async def breaks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        await _BREAKS[self.part](self, monkeypatch)


async def _evaluator_dies(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    chaos.story.dead = True


async def _lease_runs_out(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    chaos.story.dead = True
    await chaos.story.set(
        "update service_alerting set live_lease_until = at(%(now)s)", now=chaos.story.world.now
    )


async def _evaluating_fails(_: Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(_tx: Tx, _keys: list[ServiceKey]) -> ServiceEvaluations:
        raise ValueError("broken")

    monkeypatch.setattr(evaluator_module, "evaluate_services", failing)


async def _channel_is_disabled(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    # An undelivered event would wait for the channel, and would be a second page then.
    await chaos.deliver()
    await chaos.story.enable(chaos.ops, enabled=False)

    async def heal() -> None:
        await chaos.story.enable(chaos.ops, enabled=True)

    chaos.heals = heal


async def _revision_changes(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    await chaos.story.revise(chaos.service, [chaos.row], number=2)


async def _revision_changes_unseen(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    chaos.story.dead = True
    await chaos.story.revise(chaos.service, [chaos.row], number=2)


async def _settings_change_unseen(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    chaos.story.dead = True
    await chaos.story.set_paging(chaos.service, confirm_evaluations=3)


async def _route_is_removed(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    await chaos.story.set("update services set escalation_policy = null, oncall_schedule = null")


async def _route_loses_its_people(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    await chaos.story.set("delete from escalation_targets")
    await chaos.story.set("delete from oncall_participants")


async def _pages_are_lost(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    chaos.loses = True


async def _budget_is_undecidable(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    await chaos.story.set("update service_alerting set burn_reason = 'rule_unevaluated'")


async def _paging_ends(chaos: Chaos, _: pytest.MonkeyPatch) -> None:
    await chaos.story.set_paging(chaos.service, owns_paging=False)


async def _paging_ends_after_lost_pages(chaos: Chaos, patch: pytest.MonkeyPatch) -> None:
    await _pages_are_lost(chaos, patch)
    await _paging_ends(chaos, patch)


async def _no_failure(_: Chaos, __: pytest.MonkeyPatch) -> None:
    """The revision never governs, or no component fails."""


_BREAKS = {
    "nothing": _no_failure,
    "no_revision": _no_failure,
    "evaluator": _evaluator_dies,
    "lease": _lease_runs_out,
    "evaluation": _evaluating_fails,
    "channel": _channel_is_disabled,
    "revision": _revision_changes,
    "revision_unseen": _revision_changes_unseen,
    "settings_unseen": _settings_change_unseen,
    "route": _route_is_removed,
    "people": _route_loses_its_people,
    "outbox": _pages_are_lost,
    "disowned": _paging_ends,
    "disowned_unheard": _paging_ends_after_lost_pages,
    "burn": _budget_is_undecidable,
}


_MOMENTS = ("before", "at", "after", "told")
_EVERY_BREAK = [(part, moment) for part in _BREAKS for moment in _MOMENTS]
# Each component at one moment, which is drawn from its name.
_ONE_MOMENT_EACH = [(part, random.Random(part).choice(_MOMENTS)) for part in _BREAKS]


@pytest.mark.parametrize(("part", "moment"), varied(_ONE_MOMENT_EACH, _EVERY_BREAK))
async def test_one_page_and_one_recovery_arrive_after_any_failure(
    story: PagingWorld, part: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chaos = Chaos(story, part, moment)
    await chaos.begin()
    await chaos.go(2 * MINUTE)
    if moment == "before":
        await chaos.breaks(monkeypatch)
        await chaos.go(chaos.chance.randrange(0, 180) * SECOND)
    chaos.up = False
    chaos.result_at = Instant(0)
    if moment in ("at", "after"):
        await chaos.go(chaos.chance.randrange(0, 100) * SECOND if moment == "after" else 0)
        await chaos.breaks(monkeypatch)
    assert await chaos.go(PAGED_WITHIN, chaos.is_paged), "no page was delivered"
    if moment == "told":
        await chaos.go(chaos.chance.randrange(0, 60) * SECOND)
        await chaos.breaks(monkeypatch)
    await chaos.go(7 * MINUTE)
    pages = await chaos.arrived(PAGES)
    assert len(pages) == 1, f"{moment}: {pages}"
    assert await chaos.arrived(RECOVERIES) == [], "the outage has not ended"
    if chaos.heals is not None:
        await chaos.heals()
        await chaos.go(MINUTE)
    chaos.up = True
    chaos.result_at = Instant(0)
    assert await chaos.go(RECOVERED_WITHIN, chaos.is_recovered), (
        f"{moment}: no recovery was delivered"
    )
    await chaos.go(4 * MINUTE)
    (told,) = await chaos.arrived(RECOVERIES)
    assert told[0] == pages[0][0], "every paged channel gets the recovery"
    assert await chaos.arrived(PAGES) == pages
