"""The screen of a monitor that is down shows whether a notification was sent, and if not, the
reason.
"""

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
    """Stores one failed result and runs the alert processing."""
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


async def test_the_screen_links_to_the_open_incident(api: Api) -> None:
    row = await api.new_monitor(name="Shop", interval_seconds=60)
    assert "An incident was opened" not in await text(api, row)
    await fail(api, row)
    page = await text(api, row)
    assert "it is not acknowledged." in page
    async with api.pool.transaction("look", read_only=True) as tx:
        uid = await tx.value("select uid from incidents")
    assert f'href="/incidents/{uid}"' in page


async def test_without_an_incident_the_notified_channels_are_shown(api: Api) -> None:
    row = await api.new_monitor(name="Shop", interval_seconds=60, auto_incident=False)
    await fail(api, row)
    assert "Notified channels at" in await text(api, row)


@pytest.mark.parametrize("causes", [["Database"], ["Database", "Queue"]])
async def test_the_dependencies_that_delay_an_alert_are_named(api: Api, causes: list[str]) -> None:
    made = [await api.new_monitor(name=name, interval_seconds=60) for name in causes]
    row = await api.new_monitor(
        name="Shop", interval_seconds=60, depends_on=[one.uid for one in made]
    )
    await fail(api, row)

    page = await text(api, row)
    assert f"Alert pending: rechecking {', '.join(causes)} first." in page
