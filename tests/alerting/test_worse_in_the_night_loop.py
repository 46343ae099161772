"""A degraded service that goes down pages at once, whatever its low impact had to wait for."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from leadline.storage.core.instant import MINUTE, to_datetime
from leadline.storage.services.rules.service_health import AggregationMode, Policies

from ..support.worlds.paging_world import EVERY, PagingWorld, paging_world

pytestmark = pytest.mark.template("paging_template")

_INCIDENT = "select impact, is_postponed from incidents where monitor is null"


@pytest.fixture
async def story(dsn: str) -> AsyncIterator[PagingWorld]:
    async with paging_world(dsn) as story:
        yield story


async def _degraded(story: PagingWorld) -> tuple[Any, Any]:
    """Returns the members of a service that is degraded, because the first one is down."""
    rows = [await story.world.monitor(name=name) for name in ("One", "Other")]
    await story.channel("own", *rows)
    ops = await story.channel("ops")
    await story.service(
        *rows,
        policy=await story.policy((0, ops)),
        policies=Policies(mode=AggregationMode.ANY),
        page_on=frozenset(("down", "degraded")),
    )
    return rows[0], rows[1]


async def _lasts(story: PagingWorld, us: int, one: Any, other: Any, *, is_down: bool) -> None:
    for _ in range(us // EVERY):
        await story.is_now(one, False)
        await story.is_now(other, not is_down)
        await story.step(EVERY)


async def test_it_does_not_wait_for_the_support_hours(story: PagingWorld) -> None:
    one, other = await _degraded(story)
    opens = to_datetime(story.world.now) + timedelta(hours=3)
    hours = f"mon,tue,wed,thu,fri,sat,sun {opens:%H:%M}-{opens + timedelta(hours=2):%H:%M}"
    await story.set("update services set support_hours = array[%(hours)s]::text[]", hours=hours)
    await _lasts(story, 2 * MINUTE, one, other, is_down=False)
    assert await story.world.rows(_INCIDENT) == [("minor", True)]
    assert await story.notifications() == []
    await _lasts(story, 2 * MINUTE, one, other, is_down=True)
    assert await story.world.rows(_INCIDENT) == [("major", False)]
    assert await story.notifications() == [("ops", "incident.escalated")]


async def test_it_is_no_ticket_any_more(story: PagingWorld) -> None:
    one, other = await _degraded(story)
    await story.channel("desk")
    await story.set("update notification_channels set takes_tickets = true where name = 'desk'")
    await _lasts(story, 2 * MINUTE, one, other, is_down=False)
    assert await story.notifications() == [("desk", "incident.escalated")]
    await _lasts(story, 2 * MINUTE, one, other, is_down=True)
    assert ("ops", "incident.escalated") in await story.notifications()
