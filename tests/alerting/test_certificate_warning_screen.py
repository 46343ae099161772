"""The certificate of a monitor on its screen and in lists."""

import pytest

from leadline.storage.core.instant import DAY, EARLIEST, HOUR, LATEST, SECOND, Instant
from leadline.storage.monitors.rows import CertificateReport, MonitorRow
from leadline.storage.monitors.tables.certificates import record_certificates
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call

WARNING = (
    "insert into certificate_warnings (org, monitor, since_at, thread)"
    " values (%(org)s, %(id)s, at(%(at)s), gen_random_uuid())"
)


async def page_of(api: Api, path: str) -> str:
    page: str = await (await api.ask("viewer", "GET", path)).get_data(as_text=True)
    return page


async def saw(api: Api, row: MonitorRow, left_us: int | None) -> None:
    ends_at = None if left_us is None else Instant(FROZEN_NOW + left_us)
    report = CertificateReport(row.key, row.revision, ends_at, Instant(FROZEN_NOW - HOUR))
    async with api.pool.transaction("saw") as tx:
        await record_certificates(tx, [report])


def figure(page: str) -> str:
    return page.partition("<dt>Certificate</dt>")[2].partition("</div>")[0]


async def test_the_screen_shows_the_days_left_or_why_they_are_withheld(api: Api) -> None:
    row = await api.new_monitor(name="Shop", target="https://shop.example/")
    path = f"/monitors/{row.uid}"
    assert "No certificate reported since the last edit" in figure(await page_of(api, path))
    await saw(api, row, 10 * DAY + HOUR)
    shown = figure(await page_of(api, path))
    assert "10\u202fdays" in shown
    assert "withheld" not in shown
    ping = await api.new_monitor(type="icmp", target="shop.example")
    assert figure(await page_of(api, f"/monitors/{ping.uid}")) == ""


@pytest.mark.parametrize(("days", "text"), [(0, ""), (21, "The checks use no TLS")])
async def test_checks_without_tls_need_a_figure_only_with_the_setting(
    api: Api, days: int, text: str
) -> None:
    row = await api.new_monitor(target="http://shop.example/", warn_certificate_days=days)
    await saw(api, row, None)
    shown = figure(await page_of(api, f"/monitors/{row.uid}"))
    assert (text in shown, bool(shown)) == (True, bool(text))


@pytest.mark.parametrize(
    ("left_us", "text"),
    [(DAY, "1\u202fday<"), (HOUR, "under 1 day"), (-HOUR, "expired"), (400 * DAY, "400\u202fdays")],
)
async def test_the_days_left_are_whole(api: Api, left_us: int, text: str) -> None:
    row = await api.new_monitor(name="Shop", target="https://shop.example/")
    await saw(api, row, left_us)
    assert text in figure(await page_of(api, f"/monitors/{row.uid}"))


@pytest.mark.parametrize(
    ("end", "zone", "text"),
    [
        (Instant(LATEST // SECOND * SECOND), "Europe/Berlin", "31 December 23:59 9999"),
        (EARLIEST, "America/New_York", "1 January 00:00 1"),
    ],
)
async def test_a_target_can_choose_any_end_for_a_user_in_any_zone(
    api: Api, end: Instant, zone: str, text: str
) -> None:
    row = await api.new_monitor(
        name="Shop", target="https://shop.example/", warn_certificate_days=21
    )
    await saw(api, row, end - FROZEN_NOW)
    async with api.pool.transaction("choose") as tx:
        await tx.execute("update users set time_zone = %(zone)s", zone=zone)
    assert text in figure(await page_of(api, f"/monitors/{row.uid}"))


async def test_a_warning_is_on_the_screen_in_the_lists_and_in_the_api(api: Api) -> None:
    row = await api.new_monitor(
        name="Shop", target="https://shop.example/", warn_certificate_days=21
    )
    path, lists = f"/monitors/{row.uid}", f"/projects/{api.project}/monitors"
    badge = '<span class="badge degraded">certificate</span>'
    assert badge not in await page_of(api, lists)
    await saw(api, row, 10 * DAY)
    async with api.pool.transaction("warned") as tx:
        await tx.execute(WARNING, org=row.org, id=row.id, at=Instant(FROZEN_NOW - HOUR))
    page = await page_of(api, path)
    assert "Certificate warning since" in page
    assert "it expires" in page
    assert "<dt>Certificate warning (days)</dt><dd>21</dd>" in page
    assert badge in await page_of(api, lists)
    found = await call(api, "GET", path, None, 200, who="viewer")
    assert found["warn_certificate_days"] == 21
    assert found["certificate_warning_since"] < found["certificate_expires_at"]


async def test_the_form_offers_the_setting_for_types_with_tls(api: Api) -> None:
    for kind, is_offered in (("http", True), ("tls", True), ("icmp", False), ("push", False)):
        page = await page_of_editor(api, f"/projects/{api.project}/monitors/new?type={kind}")
        assert ('name="warn_certificate_days"' in page) is is_offered, kind


async def page_of_editor(api: Api, path: str) -> str:
    page: str = await (await api.ask("editor", "GET", path)).get_data(as_text=True)
    return page


@pytest.mark.parametrize(("days", "status"), [(0, 201), (365, 201), (366, 400), (-1, 400)])
async def test_the_days_have_bounds(api: Api, days: int, status: int) -> None:
    body = {
        "type": "http",
        "name": "Shop",
        "target": "https://shop.example/",
        "warn_certificate_days": days,
    }
    found = await call(api, "POST", f"/projects/{api.project}/monitors", body, status, who="editor")
    if status == 400:
        assert found["error"] == "warn_certificate_days: must be 0 or 1 to 365 days"


async def test_another_organization_does_not_see_the_certificate(api: Api) -> None:
    row = await api.new_monitor(name="Shop", target="https://shop.example/")
    await saw(api, row, 10 * DAY)
    answer = await api.ask("stranger", "GET", f"/api/v1/monitors/{row.uid}")
    assert answer.status_code in (403, 404)
