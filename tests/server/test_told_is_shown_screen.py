"""Whoever looks at a monitor that is down reads whether people know, and why not."""

import pytest

from leadline.storage.alerting.transactions.process_outages import process_outages
from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.incoming_result import IncomingResult, ResultSource
from leadline.storage.results.transactions.record_results import record_results
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api


async def fail(api: Api, row: MonitorRow) -> None:
    """One failure, and a look at what follows from it."""
    await make_partitions(
        api.pool, "heartbeats", "ts", from_=Instant(FROZEN_NOW - 2 * DAY), through=FROZEN_NOW
    )
    failed = IncomingResult(
        org=row.org,
        monitor=row.id,
        shard=row.shard,
        ts=Instant(FROZEN_NOW - SECOND),
        up=False,
        msg="connect_refused 127.0.0.1",
        source=ResultSource.RUN,
        reach_us=2 * MINUTE,
    )
    async with api.pool.transaction("begun") as tx:
        await tx.execute("update monitor_terms set from_at = at(%(at)s)", at=FROZEN_NOW - DAY)
    async with api.pool.transaction("fail") as tx:
        await record_results(tx, [failed])
    async with api.pool.transaction("look") as tx:
        await process_outages(tx, [row.key])


async def text(api: Api, row: MonitorRow) -> str:
    answer = await api.ask("viewer", "GET", f"/monitors/{row.uid}")
    page: str = await answer.get_data(as_text=True)
    return page


async def test_the_incident_that_was_opened_is_a_link_away(api: Api) -> None:
    row = await api.new_monitor(name="Shop", interval_seconds=60)
    assert "An incident was opened" not in await text(api, row)
    await fail(api, row)
    page = await text(api, row)
    assert "it is not acknowledged." in page
    async with api.pool.transaction("look", read_only=True) as tx:
        uid = await tx.value("select uid from incidents")
    assert f'href="/incidents/{uid}"' in page


async def test_without_incidents_it_says_that_its_channels_were_told(api: Api) -> None:
    row = await api.new_monitor(name="Shop", interval_seconds=60, auto_incident=False)
    await fail(api, row)
    assert "Notified channels at" in await text(api, row)


@pytest.mark.parametrize("causes", [["Database"], ["Database", "Queue"]])
async def test_what_is_waited_for_is_named(api: Api, causes: list[str]) -> None:
    made = [await api.new_monitor(name=name, interval_seconds=60) for name in causes]
    row = await api.new_monitor(
        name="Shop", interval_seconds=60, depends_on=[one.uid for one in made]
    )
    await fail(api, row)

    page = await text(api, row)
    assert f"Alert pending: rechecking {', '.join(causes)} first." in page
