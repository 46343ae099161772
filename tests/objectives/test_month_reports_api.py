"""Reports of a calendar month: services and monitors, in zones, withheld where time is missing."""

from typing import Any

import pytest
from msgspec import structs

from leadline.storage.core.instant import HOUR, MINUTE, from_text
from leadline.storage.services.rules.service_health import Durations
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

from ..support.worlds.service_history import GOOD, lived

BAD = structs.replace(GOOD, good_us=GOOD.good_us - 6 * MINUTE, bad_us=6 * MINUTE)
# In Berlin, this hour belongs to December, in UTC to November.
EDGE = from_text("2025-11-30T23:00:00Z")


def was(ago: int) -> Durations:
    return BAD if FROZEN_NOW - ago * HOUR in (EDGE, EDGE + 48 * HOUR) else GOOD


async def read(api: Api, path: str, status: int = 200) -> Any:
    answer = await api.ask("viewer", "GET", f"/api/v1{path}")
    assert answer.status_code == status, await answer.get_data()
    return await answer.get_json()


async def test_a_service_is_reported_by_local_months(api: Api) -> None:
    monitor = await api.new_monitor()
    row = await lived(api, "shop", monitor.uid, hours=45 * 24, was=was)
    path = f"/projects/{api.project}/services/{row.uid}/month-report?month=2025-12"
    utc = await read(api, path)
    berlin = await read(api, f"{path}&timezone=Europe/Berlin")
    assert (utc["figures"]["down_us"], berlin["figures"]["down_us"]) == (6 * MINUTE, 12 * MINUTE)
    assert (berlin["from"], berlin["to"]) == (
        "2025-11-30T23:00:00.000Z",
        "2025-12-31T23:00:00.000Z",
    )
    assert berlin["figures"]["uptime_percent"] == pytest.approx(100 * (1 - 12 / (31 * 24 * 60)))
    assert berlin["figures"]["covered_from"] == berlin["from"]
    # The present month ends with the sealed time, and a month before the service has no figure.
    present = await read(api, path.replace("2025-12", "2026-01"))
    assert present["figures"]["covered_to"] == "2026-01-05T00:00:00.000Z"
    before = await read(api, path.replace("2025-12", "2025-10"))
    assert before["figures"] == {"coverage": 0.0, "withheld_reason": "nothing_sealed"}
    async with api.pool.transaction("lose") as tx:
        for table, column in (("minutes", "from_at"), ("hours", "start"), ("days", "start")):
            await tx.execute(
                f"delete from service_{table} where {column} >= '2025-12-10'"
                f" and {column} < '2025-12-11'"
            )
    lost = (await read(api, path))["figures"]
    assert lost["withheld_reason"] == "storage_gap"
    assert "uptime_percent" not in lost
    for query, error in (
        ("month=2025-13", "invalid_month"),
        ("month=2019-01", "month_outside_history"),
        ("timezone=Mars", "timezone: must be the name of an IANA time zone"),
    ):
        wrong = await read(api, path.replace("month=2025-12", query), 400)
        assert wrong["error"] == error


async def test_a_page_reports_its_components_in_its_zone(api: Api) -> None:
    page, monitor = await api.new_status_page(), await api.new_monitor()
    answer = await api.ask(
        "org_admin", "PATCH", f"/api/v1/status-pages/{page}", {"timezone": "Europe/Berlin"}
    )
    assert (await answer.get_json())["timezone"] == "Europe/Berlin"
    answer = await api.ask(
        "org_admin", "PATCH", f"/api/v1/status-pages/{page}", {"timezone": "Mars"}
    )
    assert answer.status_code == 400
    for name, given in (("Web", {"monitor_id": str(monitor.uid)}), ("Desk", {})):
        await api.ask(
            "org_admin", "POST", f"/api/v1/status-pages/{page}/components", {"name": name, **given}
        )
    async with api.pool.transaction("history") as tx:
        await tx.execute("update monitor_terms set from_at = '2025-11-01'")
        await tx.execute("update shards set rolled_up_through = '2026-01-04'")
        await tx.execute(
            "insert into monitor_hours (org, monitor, hour, good_us, bad_us, unknown_us,"
            " excluded_us, up, total) select m.org, m.id, h, 3600000000 - b, b, 0, 0, 60, 60"
            " from monitors m, generate_series('2025-11-01'::timestamptz, '2026-01-03 23:00', '1h')"
            " h, lateral (select case when h = at(%(edge)s) then 360000000 else 0 end::bigint as b)"
            " as x"
            " on conflict do nothing",
            edge=EDGE,
        )
    found = await read(api, f"/status-pages/{page}/month-report?month=2025-12")
    assert found["timezone"] == "Europe/Berlin"
    web, desk = found["components"]
    assert (web["name"], web["figures"]["down_us"]) == ("Web", 6 * MINUTE)
    assert "figures" not in desk
    async with api.pool.transaction("lose") as tx:
        await tx.execute("delete from monitor_hours where hour = '2025-12-24'")
    web = (await read(api, f"/status-pages/{page}/month-report?month=2025-12"))["components"][0]
    assert web["figures"]["withheld_reason"] == "storage_gap"
    ((slug,),) = await api.rows("select slug from status_pages")
    shown = await api.ask("nobody", "GET", f"/status/{slug}/month?month=2025-12")
    text = str(await shown.get_data(as_text=True))
    assert "Uptime in December 2025" in text
    assert "stored data is incomplete" in text
    assert "set manually" in text
    public = await api.ask(
        "nobody", "GET", f"/api/v1/public/status-pages/{slug}/month-report?month=2025-11"
    )
    first = (await public.get_json())["components"][0]["figures"]
    # The hour before the month in UTC is stored; in Berlin November began an hour earlier.
    assert first["covered_from"] == "2025-11-01T00:00:00.000Z"
    assert first["uptime_percent"] == 100.0


async def test_a_part_of_a_month_is_not_its_figure(api: Api) -> None:
    """One region lags behind the end of the month."""
    page = await api.new_status_page()
    for name, region in (("Near", "core"), ("Far", "eu")):
        monitor = await api.new_monitor(name=name, region=region)
        body = {"name": name, "monitor_id": str(monitor.uid)}
        await api.ask("org_admin", "POST", f"/api/v1/status-pages/{page}/components", body)
    async with api.pool.transaction("history") as tx:
        await tx.execute("update monitor_terms set from_at = '2025-11-01'")
        await tx.execute(
            "update shards set rolled_up_through = case when region = 'eu' then"
            " '2025-12-05'::timestamptz else '2026-01-04'::timestamptz end"
        )
        await tx.execute(
            "insert into monitor_hours (org, monitor, hour, good_us, bad_us, unknown_us,"
            " excluded_us, up, total) select m.org, m.id, h, 3600000000, 0, 0, 0, 60, 60"
            " from monitors m, generate_series('2025-11-01'::timestamptz, '2026-01-03 23:00', '1h')"
            " h where m.name = 'Near' or h < '2025-12-05'"
        )
    ((slug,),) = await api.rows("select slug from status_pages")
    path = f"/status-pages/{page}/month-report?month="
    near, far = (one["figures"] for one in (await read(api, f"{path}2025-12"))["components"])
    assert (near["uptime_percent"], near["covered_to"]) == (100.0, "2026-01-01T00:00:00.000Z")
    assert far["withheld_reason"] == "not_sealed_yet"
    assert far["covered_to"] == "2025-12-05T00:00:00.000Z"
    assert "uptime_percent" not in far
    for month, text in (
        ("2025-12", "not complete yet"),
        ("2026-01", "1 January 2026 00:00 to 4 January 2026 00:00"),
    ):
        shown = await api.ask("nobody", "GET", f"/status/{slug}/month?month={month}")
        assert text in str(await shown.get_data(as_text=True))
    # The edges of a month in Kolkata are within hours, and their results are gone.
    zone = {"timezone": "Asia/Kolkata"}
    await api.ask("org_admin", "PATCH", f"/api/v1/status-pages/{page}", zone)
    near, far = (one["figures"] for one in (await read(api, f"{path}2025-12"))["components"])
    assert near["withheld_reason"] == "edge_not_stored"
    assert far["withheld_reason"] == "not_sealed_yet"
