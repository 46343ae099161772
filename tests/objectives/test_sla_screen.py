"""The report shows objectives and figures for four windows, and the reason of each missing
figure."""

import re

from leadline.http.objectives.console.sla_report import summary as report_first_line
from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import first_line, text_of
from ..support.worlds.service_history import GOOD, LOST, down, lived

MONTH = 30 * 24


async def seen(api: Api, query: str = "") -> str:
    answer = await api.ask("viewer", "GET", f"/projects/{api.project}/sla{query}")
    assert answer.status_code == 200
    return await text_of(answer)


def plain(page: str) -> str:
    text = re.sub(r"<[^>]*>", "|", page)
    return re.sub(r"[| \n]*\|[| \n]*", "|", text)


def test_an_unknown_objective_is_not_shown_as_met() -> None:
    assert report_first_line([]) == ("", "No objectives yet")
    assert report_first_line(["", ""]) == ("", "No objectives yet")
    assert report_first_line(["met"]) == ("up", "The objective is met")
    assert report_first_line(["met", "met", ""]) == ("up", "All 2 objectives are met")
    assert report_first_line(["met", "missed", "not enough data"]) == (
        "down",
        "1 of 3 objectives is missed",
    )
    assert report_first_line(["met", "not enough data"]) == (
        "unknown",
        "1 objective met, 1 without enough data",
    )
    assert report_first_line(["not enough data"]) == ("unknown", "No objective has enough data yet")


async def test_a_project_without_services_explains_services(api: Api) -> None:
    page = await seen(api)
    assert first_line(page) == "No objectives yet"
    assert "What is a service?" in page


async def test_every_window_of_a_service_has_its_coverage_and_objective(api: Api) -> None:
    monitor = await api.new_monitor()
    await lived(
        api,
        "Checkout",
        monitor.uid,
        hours=MONTH,
        was=lambda ago: {5: down(10)}.get(ago, LOST if ago == 30 else GOOD),
        objective=99.9,
    )
    text = plain(await seen(api))
    assert "99.97%|coverage 99.8%|99.9% met|" in text
    # A day supports one digit.
    assert "|99.3%|coverage 100%|" in text
    assert "33\u202fmin 8\u202fs|76.8% of 43\u202fmin 8\u202fs, 30 days" in text
    assert "The objective is met" in text


async def test_a_withheld_figure_has_a_reason(api: Api) -> None:
    monitor = await api.new_monitor()
    await lived(api, "Lost", monitor.uid, hours=MONTH, was=lambda ago: LOST, objective=99.9)
    await lived(api, "Young", objective=99.0, window="7d")
    text = plain(await seen(api))
    assert first_line(await seen(api)) == "No objective has enough data yet"
    assert "|—|No data: not measured|99.9% not enough data|" in text
    assert "|—|No data: no SLI members|99% not enough data|" in text


async def test_monitors_are_reported_too_and_together(api: Api) -> None:
    await api.new_monitor(name="Till")
    page = await seen(api, "?show=monitors")
    text = plain(page)
    assert "|Till|—|No data: nothing recorded yet|" in text
    assert "All monitors together" in text


async def test_a_report_of_many_services_is_paged_and_stays_small(api: Api) -> None:
    monitor = await api.new_monitor()
    for n in range(61):
        await lived(api, f"Service number {n:02}", objective=99.9)
    await lived(api, "Zebra", monitor.uid, hours=48, objective=99.9)
    page = await seen(api)
    assert "Page 1 of 2" in page
    assert "Zebra" not in page
    assert len(page.encode()) < 100_000
    assert "Zebra" in await seen(api, "?page=2")
    assert "Zebra" in await seen(api, "?page=99")
