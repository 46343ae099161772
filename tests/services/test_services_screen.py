"""The list of services and the screen of one: the summary line, the reasons of withheld figures,
and plots that agree with the figures.
"""

import gzip
import re
from fractions import Fraction
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.monitors.console.paging_owner import voices
from leadline.http.services.console import budget_plot as budget
from leadline.http.services.console.service_data import ServiceBucket
from leadline.http.services.console.service_list import summary as list_first_line
from leadline.http.ui.failure_help import REASONS
from leadline.http.ui.reliability_text import WHY, objective_text, precisely
from leadline.storage.alerting.queries.alerting_state import (
    NOBODYS,
    Delegation,
    OwnerName,
    SignalDelegation,
)
from leadline.storage.alerting.rules.paging_delegation import SignalReason
from leadline.storage.alerting.transactions.edit_alerting import AlertingEdit, edit_alerting
from leadline.storage.core.availability import ErrorBudget, Withheld, allowed_us
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.results.rules.incoming_result import IncomingResult, ResultSource
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.services.rules.service_health import Durations
from leadline.storage.services.rules.service_report import ReportWindow, ServiceReportStatus
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import first_line, text_of
from ..server.test_plots_screen import parsed
from ..support.worlds.service_history import GOOD, LOST, PLANNED, down, lived

# Compressed, as a browser receives the page.
PAGE_BYTES_MOST = 25_000

MONTH = 30 * 24


async def seen(api: Api, path: str, who: str = "viewer") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200, await text_of(answer)
    return await text_of(answer)


async def listed(api: Api, who: str = "viewer") -> str:
    return await seen(api, f"/projects/{api.project}/services", who)


def rows_of(page: str) -> list[str]:
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    return [re.sub(r"<[^>]*>", " ", row) for row in body.split("<tr ")[1:]]


async def stand(api: Api, *up: tuple[MonitorRow, bool]) -> None:
    """Stores current results of monitors that were created a day ago."""
    await make_partitions(
        api.pool, "heartbeats", "ts", from_=Instant(FROZEN_NOW - 2 * DAY), through=FROZEN_NOW
    )
    async with api.pool.transaction("begun") as tx:
        await tx.execute("update monitor_terms set from_at = at(%(at)s)", at=FROZEN_NOW - DAY)
    arrivals = [
        IncomingResult(
            org=row.org,
            monitor=row.id,
            shard=row.shard,
            ts=Instant(FROZEN_NOW - SECOND),
            up=is_up,
            source=ResultSource.RUN,
            reach_us=2 * MINUTE,
        )
        for row, is_up in up
    ]
    async with api.pool.transaction("stand") as tx:
        await record_results(tx, arrivals)


async def test_an_empty_list_explains_services(api: Api) -> None:
    page = await listed(api)
    assert first_line(page) == "No services yet"
    assert "error budget" in page
    assert "/services/new" not in page
    assert "/services/new" in await listed(api, "editor")


async def test_services_are_sorted_by_remaining_budget(
    api: Api,
) -> None:
    monitor = await api.new_monitor()
    sli = monitor.uid
    await lived(api, "Calm", sli, hours=MONTH, objective=99.9)
    await lived(
        api,
        "Burnt",
        sli,
        hours=MONTH,
        was=lambda ago: down(50) if ago == 9 else GOOD,
        objective=99.9,
    )
    await lived(
        api,
        "Used",
        sli,
        hours=MONTH,
        was=lambda ago: down(20) if ago == 9 else GOOD,
        objective=99.9,
    )
    await lived(api, "Young", sli, objective=99.9)
    await lived(api, "Aimless", sli, hours=MONTH)
    page = await listed(api)
    rows = rows_of(page)
    order = [next(n for n in ("Calm", "Burnt", "Used", "Young", "Aimless") if n in r) for r in rows]
    assert order == ["Burnt", "Used", "Calm", "Young", "Aimless"]
    burnt, used, _, young, aimless = rows
    assert "6\u202fmin 48\u202fs over the budget of 43\u202fmin 12\u202fs" in burnt
    assert "missed" in burnt
    assert "23\u202fmin 12\u202fs" in used
    assert "53.7% of 43\u202fmin 12\u202fs" in used
    assert "coverage 100%" in used
    assert "— No data: nothing recorded yet" in " ".join(young.split())
    assert "not set" in aimless
    assert "1 service misses its objective." in page


async def test_a_long_list_is_paged_and_stays_small(api: Api) -> None:
    monitor = await api.new_monitor()
    for n in range(101):
        await lived(api, f"A service with a rather long name, number {n:03}", objective=99.9)
    row = await lived(
        api,
        "Broken",
        monitor.uid,
        hours=MONTH,
        was=lambda ago: [LOST, down(1), PLANNED, down(59), GOOD][ago * ago % 5],
        objective=99.9,
    )
    page = await listed(api)
    assert "Page 1 of 2" in page
    assert len(gzip.compress(page.encode())) < PAGE_BYTES_MOST
    page = await seen(api, f"/services/{row.uid}?range=30d")
    assert len(gzip.compress(page.encode())) < PAGE_BYTES_MOST


def test_the_summary_names_the_worst_state_first() -> None:
    assert list_first_line(["up", "up"]) == ("up", "All 2 services are healthy")
    assert list_first_line(["up", "down", "degraded"]) == (
        "down",
        "1 service is down, 1 is degraded",
    )
    assert list_first_line(["up", "unknown"]) == ("unknown", "1 service is unknown")
    assert list_first_line(["up", "maint"]) == ("up", "Others healthy: 1 service")
    assert list_first_line(["maint"]) == ("maint", "All services are in maintenance")


async def test_a_service_without_a_declaration_shows_what_is_missing(api: Api) -> None:
    row = await lived(api, "Checkout")
    page = await seen(api, f"/services/{row.uid}")
    assert first_line(page) == "Checkout has no declaration yet"
    assert "Add members to start measuring." in page
    assert "Set an objective to get" in page
    assert "No data: no SLI members" in page
    assert "Edit declaration" not in page


async def test_the_summary_line_follows_the_members(api: Api) -> None:
    till = await api.new_monitor(name="Till")
    bank = await api.new_monitor(name="Bank")
    row = await lived(api, "Checkout", till.uid, bank.uid, hours=2)
    path = f"/services/{row.uid}"
    assert first_line(await seen(api, path)) == "Checkout is unknown"
    await stand(api, (till, False), (bank, True))
    page = await seen(api, path)
    assert first_line(page) == "Checkout is down"
    assert "Till is down. Within a region all SLI members must be up." in page
    # Members that are down are first.
    members = page[page.index("members-title") :]
    assert members.index("Till") < members.index("Bank")
    calm = await lived(api, "Accounts", bank.uid, hours=2)
    assert first_line(await seen(api, f"/services/{calm.uid}")) == "Accounts is healthy"


async def test_withheld_figures_have_reasons_and_others_coverage(
    api: Api,
) -> None:
    monitor = await api.new_monitor()
    row = await lived(
        api,
        "Checkout",
        monitor.uid,
        hours=MONTH,
        was=lambda ago: LOST if ago <= 100 else GOOD,
        objective=99.9,
    )
    page = await seen(api, f"/services/{row.uid}")
    text = re.sub(r"<[^>]*>", "|", page)
    text = re.sub(r"\|+", "|", text)
    assert "24 hours|—|No data: not measured" in text
    assert "30 days|100%|coverage 86.1%" in text
    assert "Budget left|—|No data: coverage 86.1%, 90% required" in text
    assert "Not enough data" in text
    assert 'aria-label="Error budget' not in page


async def test_the_burndown_ends_at_the_figure_and_hatches_gaps(
    api: Api,
) -> None:
    monitor = await api.new_monitor()

    def was(ago: int) -> Durations:
        return {700: down(9), 400: down(14), 300: LOST, 301: LOST, 50: PLANNED}.get(ago, GOOD)

    row = await lived(api, "Checkout", monitor.uid, hours=MONTH, was=was, objective=99.9)
    page = await seen(api, f"/services/{row.uid}")
    assert "Error budget left over 30 days. 46% left, 2 falls, 1 gap without data." in page
    assert "20\u202fmin 1\u202fs" in page
    assert "46.5% of 43\u202fmin" in page
    table = page[page.index("Budget used by") :]
    assert table.index("down 14\u202fmin") < table.index("down 9\u202fmin")
    assert "not measured" in table
    assert len(gzip.compress(page.encode())) < PAGE_BYTES_MOST


async def test_a_burn_rate_names_its_deciding_range(api: Api) -> None:
    monitor = await api.new_monitor()
    row = await lived(
        api,
        "Checkout",
        monitor.uid,
        hours=MONTH,
        was=lambda ago: down(30) if ago == 2 else GOOD,
        objective=99.9,
    )
    page = await seen(api, f"/services/{row.uid}")
    text = re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", " ", page))
    # Half an hour of six gives a burn rate of 83; the last half hour is good.
    assert "83.3×" in text
    assert "The range of 30\u202fmin is below 6×." in text
    assert "Both ranges are below 14.4×." in text
    assert "Burn alerts are off" in text


async def test_incidents_maintenance_and_revisions_share_one_axis(api: Api) -> None:
    monitor = await api.new_monitor(name="Till")
    row = await lived(api, "Checkout", monitor.uid, hours=48)
    await api.new_incident(title="Till is on fire", monitor=monitor.uid)
    async with api.pool.transaction("epoch") as tx:
        await tx.execute(
            "insert into service_epochs (org, service, seq, uid, revision, effective_at, "
            "snapshot_hash, members) values (%(org)s, %(service)s, 2, gen_random_uuid(), 1, "
            "at(%(at)s), 'x', 1)",
            org=row.org,
            service=row.id,
            at=Instant(FROZEN_NOW - 5 * HOUR),
        )
    page = await seen(api, f"/services/{row.uid}?range=7d")
    assert "7 days on one axis: 0 changes, state, 1 incident, 0 maintenances, " in page
    assert "2 beginnings of a revision or an epoch" in page
    assert "Epoch 2 (member changed)" in page
    assert "INC-1 (Till): Till is on fire" in page
    assert 'title="Till is on fire">INC-1</a> is investigating.' in page


async def test_a_service_shows_dependencies_and_dependents(api: Api) -> None:
    upstream = await lived(api, "Accounts")
    row = await lived(api, "Checkout", depends_on=[upstream.uid])
    page = await seen(api, f"/services/{row.uid}")
    assert "Checkout requires" in page
    assert "Requires Checkout" not in page
    assert "Requires Accounts" in await seen(api, f"/services/{upstream.uid}")


US = st.integers(0, HOUR)


@st.composite
def pasts(draw: st.DrawFn) -> list[Durations | None]:
    """Hours with outages, unknown time or missing data."""
    return draw(
        st.lists(
            st.one_of(
                st.integers(0, 59).map(down),
                st.sampled_from([GOOD, GOOD, GOOD, LOST, PLANNED]),
            ),
            min_size=30,
            max_size=200,
        )
    )


@given(pasts(), st.integers(900_000, 999_999), st.integers(0, 59))
def test_the_last_step_of_a_burndown_equals_the_figure(
    past: list[Durations], objective: int, cut: int
) -> None:
    to = Instant(FROZEN_NOW)
    from_ = Instant(to - len(past) * HOUR + cut * MINUTE)
    # The window begins within the first hour, whose total does not show the part in the window.
    first = past[0]
    inside = Durations(
        good_us=min(first.good_us, HOUR - cut * MINUTE),
        bad_us=min(first.bad_us, max(HOUR - cut * MINUTE - first.good_us, 0)),
    )
    total = sum(past[1:], inside)
    window = made(from_, to, total)
    buckets = [
        ServiceBucket(Instant(to - (len(past) - n) * HOUR), 60, durations)
        for n, durations in enumerate(past)
    ]
    plot = budget.plot(window, objective, buckets, HOUR)
    found = window.budget(objective)
    assert (plot is None) == (not isinstance(found, ErrorBudget))
    if plot is None:
        return
    allowed = allowed_us(total.split, objective)
    left = (allowed - total.bad_us) / allowed
    lines = [p for p in parsed(plot.drawn).iter("path") if p.attrib["class"] == "line"]
    (last,) = re.findall(r" ([\d.]+)$", lines[-1].attrib["d"])
    assert abs(float(last) - 180 * (1 - max(float(left), 0))) < 0.02
    downs = sum(int(us) for us in [p.bad_us for p in past[1:]])
    told = [row for row in plot.table.rows if row[1].startswith("down")]
    assert bool(told) == bool(downs + first.bad_us)


@given(st.integers(0, 40 * DAY), st.integers(1, 92 * DAY))
def test_axis_labels_are_ordered_and_at_midnights_on_long_axes(from_: int, length: int) -> None:
    start, end = Instant(FROZEN_NOW + from_), Instant(FROZEN_NOW + from_ + length)
    found = budget.ticks(start, end)
    places = [tick.at for tick in found]
    assert places == sorted(places)
    assert all(0 <= at <= 1 for at in places)
    assert 2 <= len(found) <= 8
    assert sum(not tick.minor for tick in found) <= 4
    if length > 3 * DAY:
        assert all(abs((start + at * length) / DAY % 1 - 0.5) > 0.49 for at in places)


def made(from_: Instant, to: Instant, durations: Durations) -> ReportWindow:
    split = durations.split
    return ReportWindow(
        window="30d",
        sealed_through=to,
        from_=from_,
        to=to,
        status=ServiceReportStatus.OK,
        reason=None,
        expected_minutes=0,
        sealed_minutes=0,
        is_continuous=True,
        durations=durations,
        availability=split.availability(),
        coverage=split.coverage() or Fraction(0),
        aggregate_withheld=None,
        segments=(),
    )


def test_durations_have_two_units_and_are_rounded_down() -> None:
    assert precisely(8 * MINUTE + 44 * SECOND + 999_999) == "8\u202fmin 44\u202fs"
    assert precisely(3 * HOUR + 59) == "3\u202fh"
    assert precisely(2 * DAY + 5 * HOUR) == "2\u202fd 5\u202fh"
    assert precisely(1) == "< 1\u202fs"
    assert precisely(0) == "0\u202fs"
    assert objective_text(999_000) == "99.9%"
    assert objective_text(990_000) == "99%"
    assert objective_text(999_999) == "99.9999%"


async def test_the_monitor_screen_names_the_service_that_pages(api: Api) -> None:
    monitor = await api.new_monitor(name="Till")
    row = await lived(api, "Checkout", monitor.uid, hours=2)
    path = f"/monitors/{monitor.uid}"
    assert "its paging" not in await seen(api, path)
    async with api.pool.transaction("own") as tx:
        edit = AlertingEdit(owns_paging=True)
        await edit_alerting(tx, api.editor, api.project, row.uid, edit)
    page = await seen(api, path)
    assert "The service cannot page (" in page
    assert "so this monitor pages directly." in page


def test_the_service_that_pages_for_a_monitor_is_named() -> None:
    owner = OwnerName(UUID(int=1), "checkout", "Checkout")
    spoken = SignalDelegation(True, [owner], None)
    found = voices(Delegation(spoken, NOBODYS))
    assert found is not None
    assert (found.owners, found.text) == ([(UUID(int=1), "Checkout")], "pages for this monitor")
    assert voices(Delegation(NOBODYS, NOBODYS)) is None


def test_every_reason_of_a_service_that_cannot_page_has_a_text() -> None:
    assert set(REASONS) == {reason.value for reason in SignalReason}


def test_every_reason_of_a_withheld_figure_has_a_text() -> None:
    assert set(WHY) == set(Withheld)
