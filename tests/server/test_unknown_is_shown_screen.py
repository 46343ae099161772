"""Unknown states are called unknown, hatched and never green, also on a page that stays open."""

import pytest

from leadline.http.wire.app_context import Readiness
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.rows import MonitorRow
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

_INSERT = """
insert into heartbeats (org, monitor, ts, latency_ms, up, msg)
values (%(org)s, %(id)s, at(%(ts)s), 40, %(up)s, %(msg)s)
"""
_STATE = """
update monitor_states set status = %(status)s, failures = %(failures)s, since = at(%(since)s)
where org = %(org)s and monitor = %(id)s
"""
_BEGUN = "update monitor_terms set from_at = at(%(from_at)s), shard = %(shard)s"


async def partitioned(api: Api) -> None:
    await make_partitions(
        api.pool, "heartbeats", "ts", from_=Instant(FROZEN_NOW - 2 * DAY), through=FROZEN_NOW
    )


async def result(
    api: Api, row: MonitorRow, ago_us: int, *, up: bool, status: str, failures: int = 0
) -> None:
    """Stores one result and its state; the monitor was created a day ago."""
    given = {"org": row.org, "id": row.id}
    ts = Instant(FROZEN_NOW - ago_us)
    msg = None if up else "connect_refused 127.0.0.1"
    async with api.pool.transaction("a_result") as tx:
        await tx.execute(_INSERT, **given, ts=ts, up=up, msg=msg)
        await tx.execute(_STATE, **given, status=status, failures=failures, since=ts)
        await tx.execute(_BEGUN, from_at=Instant(FROZEN_NOW - DAY), shard=row.shard)


async def text(api: Api, path: str) -> str:
    page: str = await (await api.ask("viewer", "GET", path)).get_data(as_text=True)
    return page


async def test_a_stale_result_makes_a_monitor_unknown(api: Api) -> None:
    await partitioned(api)
    row = await api.new_monitor(name="Gone quiet", interval_seconds=60)
    await result(api, row, 5 * MINUTE, up=True, status="up")
    page = await text(api, f"/projects/{api.project}")
    assert "1 monitor is unknown" in page
    assert "Region core</b></a> is not reporting" in page
    strip = page.partition('class="t-beat wide"><svg')[2].partition("</tr>")[0]
    assert 'fill="url(#hatch)"' in strip
    assert "No worker or agent reports, so 1 monitor cannot be checked." in page
    # These tests run no prober, and the page reports that.
    assert "Region core has no live worker or agent: 1 monitor is not checked." in page
    page = await text(api, f"/monitors/{row.uid}")
    assert "Gone quiet is unknown" in page
    assert "current status is unknown" in page


@pytest.mark.parametrize(("ago_us", "word"), [(170 * SECOND, "up"), (181 * SECOND, "unknown")])
async def test_the_freshness_limit_is_exact_to_the_second(api: Api, ago_us: int, word: str) -> None:
    await partitioned(api)
    row = await api.new_monitor(name="Edge", interval_seconds=60)
    await result(api, row, ago_us, up=True, status="up")
    assert f"Edge is {word}" in await text(api, f"/monitors/{row.uid}")


async def test_a_failure_below_the_threshold_is_shown_as_unknown(api: Api) -> None:
    await partitioned(api)
    row = await api.new_monitor(name="Wavering", failure_threshold=3)
    await result(api, row, 10 * SECOND, up=False, status="pending", failures=1)
    page = await text(api, f"/monitors/{row.uid}")
    assert "Wavering is unknown" in page
    assert "Down after 3 consecutive failures" in page


async def test_a_new_monitor_is_pending_without_figures(api: Api) -> None:
    row = await api.new_monitor(name="New")
    page = await text(api, f"/monitors/{row.uid}")
    assert "New is pending" in page
    assert "No data yet, first figure at " in page
    overview = await text(api, f"/projects/{api.project}")
    assert "1 monitor is pending" in overview
    assert ">100%<" not in overview


async def test_a_failure_during_maintenance_is_shown_as_maintenance(api: Api) -> None:
    await partitioned(api)
    row = await api.new_monitor(name="Rebuilt")
    await result(api, row, 10 * SECOND, up=False, status="down", failures=1)
    async with api.pool.transaction("maintenance") as tx:
        await tx.execute(
            """insert into maintenances (org, uid, project, monitor, starts_at, ends_at, created_at)
            values (%(org)s, gen_random_uuid(), %(project)s, %(id)s, at(%(from_at)s),
              at(%(until)s), at(%(from_at)s))""",
            org=row.org,
            project=row.project,
            id=row.id,
            from_at=Instant(FROZEN_NOW - HOUR),
            until=Instant(FROZEN_NOW + HOUR),
        )
    page = await text(api, f"/projects/{api.project}")
    assert "The monitor is in maintenance" in page
    assert "Needs attention" not in page
    assert 'class="b-maint"' in page
    assert 'class="b-failed"' not in page


async def test_an_overview_of_paused_monitors_is_not_up(api: Api) -> None:
    await api.new_monitor(name="Asleep", enabled=False)
    page = await text(api, f"/projects/{api.project}")
    assert "No active monitors" in page
    assert "All paused · Leadline" in page


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("database", "Sign-in is not possible: database unavailable"),
        ("clock", "This installation is not ready</span>: clock"),
    ],
)
async def test_the_sign_in_page_reports_an_unready_installation(
    api: Api, fault: str, words: str
) -> None:
    assert "This installation is running" in await text(api, "/sign-in")
    before = api.context.readiness
    object.__setattr__(api.context, "readiness", lambda: Readiness(faults=(fault,)))
    try:
        page = await text(api, "/sign-in")
    finally:
        object.__setattr__(api.context, "readiness", before)
    assert words in page
    assert "is running" not in page
