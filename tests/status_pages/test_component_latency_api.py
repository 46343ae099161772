"""Latency of components: the flag, and what the public page shows."""

from typing import Any
from uuid import UUID

import pytest
import trio

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_text
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, announce
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.status_pages.rules.component_latency import PLOTS_MOST, STEP_US
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call

from .test_components_api import audited, edit, listed, make

REFUSED = "show_latency: is for a component of a monitor that measures latency"
FULL = f"show_latency: is for at most {PLOTS_MOST} components of a page"
NAME = "inner-name-zq"
TARGET = "https://inner-target-zq.example/"


async def beats(
    api: Api, row: MonitorRow, *results: tuple[int, int, bool], end: Instant = FROZEN_NOW
) -> None:
    """Stores results: (age in minutes, latency in ms, up)."""
    async with api.pool.transaction("results") as tx:
        for age, latency_ms, up in results:
            await tx.execute(
                "insert into heartbeats (org, monitor, ts, latency_ms, up)"
                " values (%(org)s, %(monitor)s, at(%(at)s), %(ms)s, %(up)s)",
                org=row.org,
                monitor=row.id,
                at=end - age * MINUTE,
                ms=latency_ms,
                up=up,
            )


async def shown(api: Api, slug: str = "shop") -> tuple[Any, str]:
    """Returns the JSON and the HTML of the public page."""
    api.context.kept.forget()
    found = await call(api, "GET", f"/public/status-pages/{slug}", who="nobody")
    answer = await api.ask("nobody", "GET", f"/status/{slug}")
    assert answer.status_code == 200
    data = await answer.get_data()
    assert isinstance(data, bytes)
    return found, data.decode()


def step(ago: int) -> str:
    """Returns the begin of the half hour that ends `ago` half hours before now."""
    return to_text(Instant(FROZEN_NOW - FROZEN_NOW % STEP_US - (ago + 1) * STEP_US))


async def test_latency_is_off_by_default_and_shown_on_request(api: Api) -> None:
    page = await api.new_status_page(slug="shop")
    row = await api.new_monitor(name=NAME, target=TARGET)
    made = await make(api, page, monitor_id=str(row.uid))
    assert made["show_latency"] is False
    good = [(20, 30, True), (15, 40, True), (10, 900, True), (5, 7_000, False)]
    await beats(api, row, *good, (70, 55, True), (25 * 60, 1, True))
    found, text = await shown(api)
    assert "latency" not in found["components"][0]
    assert "atency" not in text
    edited = await edit(api, made, show_latency=True)
    assert edited == made | {"show_latency": True, "revision": 2}
    assert (await edit(api, edited, description="Tills"))["show_latency"] is True
    found, text = await shown(api)
    assert found["components"][0]["latency"] == {
        "starts_at": to_text(Instant(FROZEN_NOW - DAY)),
        "ends_at": to_text(FROZEN_NOW),
        "step_seconds": 1_800,
        "points": [
            {"starts_at": step(2), "p50_ms": 55, "p95_ms": 55},
            {"starts_at": step(0), "p50_ms": 40, "p95_ms": 900},
        ],
    }
    assert "Latency: median 40\u202fms to 55\u202fms, 95th percentile up to 900\u202fms" in text
    assert text.count('<svg class="latency" viewBox="0 0 480') == 1
    assert await edit(api, edited, show_latency=False)
    assert [
        target.rpartition(" ")[2] for _, target in await audited(api) if "latency" in target
    ] == [
        "latency=shown",
        "latency=hidden",
    ]
    found, text = await shown(api)
    assert "latency" not in found["components"][0]


async def test_the_public_sees_no_name_region_or_target_of_the_monitor(api: Api) -> None:
    page = await api.new_status_page(slug="shop")
    row = await api.new_monitor(name=NAME, target=TARGET, region="core")
    await make(api, page, monitor_id=str(row.uid), show_latency=True)
    await beats(api, row, (5, 30, True))
    found, text = await shown(api)
    assert len(found["components"][0]["latency"]["points"]) == 1
    for secret in (NAME, "inner-target", str(row.uid), "http", '"core"'):
        assert secret not in str(found["components"][0]).replace("'", '"')
    for secret in (NAME, "inner-target", str(row.uid), ">core<"):
        assert secret not in text


async def test_withheld_latency_has_a_reason(api: Api) -> None:
    page = await api.new_status_page(slug="shop")
    row = await api.new_monitor()
    await make(api, page, monitor_id=str(row.uid), show_latency=True)
    found, text = await shown(api)
    assert found["components"][0]["latency"]["withheld_reason"] == "no_results"
    assert found["components"][0]["latency"]["points"] == []
    assert "No latency: no successful check in the last 24 hours." in text
    await beats(api, row, (5, 30, False))
    found, _ = await shown(api)
    assert found["components"][0]["latency"]["withheld_reason"] == "no_results"
    await beats(api, row, (6, 30, True))
    found, _ = await shown(api)
    assert "withheld_reason" not in found["components"][0]["latency"]
    async with api.pool.transaction("maintenance") as tx:
        plan = Plan(
            monitor=row.uid,
            starts_at=Instant(FROZEN_NOW + HOUR),
            ends_at=Instant(FROZEN_NOW + 2 * HOUR),
        )
        await announce(tx, api.editor, api.project, plan, None, 30)
        await tx.execute("update maintenances set starts_at = starts_at - interval '2 hours'")
    found, _ = await shown(api)
    assert found["components"][0]["latency"]["withheld_reason"] == "no_results"
    await call(api, "DELETE", f"/monitors/{row.uid}", status=204, who="org_admin")
    found, text = await shown(api)
    assert found["components"][0]["latency"]["withheld_reason"] == "not_measured"
    assert "Latency is not measured." in text


async def test_only_a_component_of_a_monitor_that_measures_latency_shows_it(api: Api) -> None:
    page = await api.new_status_page()
    push = await api.new_monitor(type="push", target="")
    sources: tuple[dict[str, Any], ...] = (
        {"monitor_id": str(push.uid)},
        {"service_id": str(await api.new_service())},
        {"manual_status": "operational"},
        {},
    )
    for source in sources:
        refused = await make(api, page, 400, show_latency=True, **source)
        assert refused["error"] == REFUSED
        made = await make(api, page, **source)
        assert (await edit(api, made, 400, show_latency=True))["error"] == REFUSED
        assert (await edit(api, made, show_latency=False)) == made
    assert [one["show_latency"] for one in await listed(api, page)] == [False] * 4
    for wrong in ("yes", 1, None):
        await edit(api, made, 400, show_latency=wrong)


@pytest.mark.parametrize("kind", ["monitor", "push", "service", "manual"])
async def test_a_conversion_keeps_latency_only_if_the_new_source_measures_it(
    api: Api, kind: str
) -> None:
    page = await api.new_status_page()
    made = await make(api, page, monitor_id=str((await api.new_monitor()).uid), show_latency=True)
    target: dict[str, Any] = {"source": kind}
    if kind == "service":
        target["service_id"] = str(await api.new_service())
    elif kind == "manual":
        target["manual_status"] = "operational"
    else:
        given = {"type": "push", "target": ""} if kind == "push" else {}
        target = {"source": "monitor", "monitor_id": str((await api.new_monitor(**given)).uid)}
    path = f"/components/{made['id']}/conversion"
    seen = await call(api, "POST", f"{path}/preview", target, who="org_admin")
    base = {"revision": seen["revision"], "page_generation": seen["page_generation"]}
    after = await call(api, "POST", path, target | base, who="org_admin")
    assert after["show_latency"] is (kind == "monitor")


async def test_a_page_has_a_limit_of_plots_also_for_concurrent_edits(api: Api) -> None:
    page = await api.new_status_page(slug="shop")
    rows = [await api.new_monitor() for _ in range(PLOTS_MOST + 1)]
    made = [await make(api, page, monitor_id=str(row.uid)) for row in rows]
    for one in made[:-2]:
        await edit(api, one, show_latency=True)
    answers: list[int] = []

    async def show(component: UUID) -> None:
        path, body = f"/api/v1/components/{component}", {"name": "Checkout", "show_latency": True}
        answers.append((await api.ask("org_admin", "PATCH", path, body)).status_code)

    async with trio.open_nursery() as nursery:
        for one in made[-2:]:
            nursery.start_soon(show, one["id"])
    assert sorted(answers) == [200, 400]
    refused = await make(api, page, 400, monitor_id=str(rows[0].uid), show_latency=True)
    assert refused["error"] == FULL
    # Equal results of a day in each: the largest page of plots.
    ages = range(1, 1_440, 15)
    for row in rows:
        await beats(api, row, *((age, 1_000 + age, True) for age in ages))
    _, text = await shown(api)
    assert text.count('<svg class="latency" viewBox="0 0 480') == PLOTS_MOST
    assert len(text.encode()) < 100_000


async def test_latency_of_another_tenant_cannot_be_shown(api: Api) -> None:
    page = await api.new_status_page()
    made = await make(api, page, monitor_id=str((await api.new_monitor()).uid))
    path, body = f"/components/{made['id']}", {"name": "Checkout", "show_latency": True}
    for who, status in (("stranger", 404), ("viewer", 403), ("editor", 403)):
        await call(api, "PATCH", path, body, status, who=who)
    assert [one["show_latency"] for one in await listed(api, page)] == [False]


async def test_badges_feeds_and_lists_read_no_latency(api: Api) -> None:
    page = await api.new_status_page(slug="shop")
    row = await api.new_monitor()
    await make(api, page, monitor_id=str(row.uid), show_latency=True)
    await beats(api, row, (5, 30, True))
    for path in (
        "/status/shop/badge.svg",
        "/status/shop/widget",
        "/status/shop/api/v2/summary.json",
    ):
        answer = await api.ask("nobody", "GET", path)
        assert answer.status_code == 200
        assert b"atency" not in await answer.get_data()
    seen = await call(api, "GET", f"/status-pages/{page}/render", who="viewer")
    assert len(seen["components"][0]["latency"]["points"]) == 1
