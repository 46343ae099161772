"""The texts of a status page: the status line, days, figures, maintenance and incidents."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.http.status_pages.public import page_text as words
from leadline.storage.core.availability import Availability, Withheld, figure
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.core.sli import NOTHING, Split
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from leadline.storage.status_pages.rules.status_page import (
    Audience,
    Component,
    ComponentDay,
    ComponentMeasurement,
    ComponentSource,
    ComponentStatus,
    Incident,
    Maintenance,
    NoDataReason,
    Now,
    Page,
    PageFacts,
    Visibility,
    render,
    summary_of,
)
from tests.status_pages.test_status_page_rule import outage
from tests.support.worlds import page_world
from tests.support.worlds.page_world import NOW

STATUSES = {
    "up": ComponentStatus.OPERATIONAL,
    "slow": ComponentStatus.DEGRADED,
    "partly": ComponentStatus.PARTIAL_OUTAGE,
    "down": ComponentStatus.MAJOR_OUTAGE,
    "maint": ComponentStatus.MAINTENANCE,
    "unknown": ComponentStatus.NO_DATA,
}
NAMES = ("Checkout", "Search", "Images", "Accounts", "Mail", "Partners", "Asia", "Feed")


def part(name: str, status: ComponentStatus) -> Component:
    return Component(
        uid=UUID(int=NAMES.index(name)),
        name=name,
        description="",
        group="",
        source=ComponentSource.MONITOR,
        status=status,
        reason=NoDataReason.PAUSED if status is ComponentStatus.NO_DATA else None,
        unavailable=False,
        measured=None,
    )


def page_of(
    said: str, *, active: Sequence[Incident] = (), maintenance: Sequence[Maintenance] = ()
) -> Page:
    """`up down` is a page of two components: Checkout is operational, Search is a major outage."""
    found = [STATUSES[word] for word in said.split()]
    parts = [part(name, status) for name, status in zip(NAMES, found, strict=False)]
    return Page(
        slug="shop",
        title="Shop",
        visibility=Visibility.LISTED,
        summary=summary_of(
            Now(status, NoDataReason.PAUSED if status is ComponentStatus.NO_DATA else None)
            for status in found
        ),
        components=parts,
        active=active,
        recent=[],
        recent_more=False,
        maintenance=maintenance,
        updated_at=NOW,
    )


def window(begins: int, ends: int, reason: str = "") -> Maintenance:
    """Bounds in minutes from now; now is 14:26:08 UTC."""
    return Maintenance(
        uid=None,
        project=None,
        monitor=None,
        starts_at=Instant(NOW + begins * MINUTE),
        over_at=Instant(NOW + ends * MINUTE),
        reason=reason,
        created_at=None,
        components=[UUID(int=0)],
    )


@pytest.mark.parametrize(
    ("found", "mark", "first", "beneath"),
    [
        ("", "pending", "No components yet", ""),
        ("up", "up", "All systems operational", "Checkout is operational."),
        ("up up", "up", "All systems operational", "2 of 2 components operational."),
        ("up up up", "up", "All systems operational", "3 of 3 components operational."),
        (
            "up up unknown",
            "up",
            "All measured systems operational",
            "2 of 3 components operational. 1 component has no data.",
        ),
        (
            "slow maint up up up up up unknown",
            "degraded",
            "Degraded performance",
            "5 of 8 components operational. Checkout is degraded, Search is under maintenance and"
            " 1 component has no data.",
        ),
        ("down", "down", "Major outage", "Checkout has a major outage."),
        (
            "down down up",
            "down",
            "Major outage",
            "1 of 3 components operational. Checkout and Search have a major outage.",
        ),
        (
            "down down down slow",
            "down",
            "Major outage",
            "0 of 4 components operational. 3 components have a major outage and Accounts is"
            " degraded.",
        ),
        (
            "partly slow",
            "degraded",
            "Partial outage",
            "0 of 2 components operational. Checkout has a partial outage and Search is degraded.",
        ),
        (
            "down slow slow slow",
            "down",
            "Major outage",
            "0 of 4 components operational. Checkout has a major outage and 3 components are"
            " degraded.",
        ),
        (
            "unknown",
            "unknown",
            "No data",
            "Checkout has no data.",
        ),
        (
            "unknown unknown unknown",
            "unknown",
            "No data",
            "0 of 3 components have data.",
        ),
        (
            "maint up",
            "maint",
            "Planned maintenance",
            "1 of 2 components operational. Checkout is under maintenance.",
        ),
    ],
)
def test_the_status_line_of_each_combination(
    found: str, mark: str, first: str, beneath: str
) -> None:
    page = page_of(found)
    assert words.status_line(page) == words.StatusLine(mark, first)
    assert words.line_beneath(page) == beneath


@given(st.lists(st.sampled_from([*STATUSES]), max_size=len(NAMES)))
@settings(deadline=None)
def test_the_page_is_operational_only_if_all_components_are(found: list[str]) -> None:
    page = page_of(" ".join(found))
    said = words.status_line(page)
    assert (said.text == "All systems operational") == (bool(found) and set(found) == {"up"})
    assert (said.mark == "up") == ("up" in found and set(found) <= {"up", "unknown"})
    if "unknown" in found:
        told = f"{said.text} {words.line_beneath(page)}"
        assert "no data" in told or "have data" in told


@pytest.mark.parametrize("found", ["up up", "up unknown", "unknown", "maint up", ""])
def test_an_open_incident_is_in_the_status_line(found: str) -> None:
    one = replace(outage("Payments fail"), impact=IncidentImpact.CRITICAL)
    assert words.status_line(page_of(found, active=[one])) == words.StatusLine(
        "down", "Payments fail"
    )
    other = replace(one, impact=IncidentImpact.MINOR)
    line = words.status_line(page_of(found, active=[other, one]))
    assert line == words.StatusLine("down", "2 open incidents")
    assert words.status_line(page_of("up slow", active=[one])).text == "Degraded performance"


@pytest.mark.parametrize(
    ("begins", "ends", "said"),
    [
        (-10, 34, "until 15:00 UTC"),
        (-10, 24 * 60, "until 10 June, 14:26 UTC"),
        (-10, 9 * 60 + 34, "until 10 June, 00:00 UTC"),
    ],
)
def test_maintenance_shows_its_end(begins: int, ends: int, said: str) -> None:
    running, coming = window(begins, ends), window(60, 120)
    page = page_of("maint up", maintenance=[window(-5, 1), running, coming])
    assert words.status_line(page).text == f"Planned maintenance {said}"
    assert words.planned(running, NOW) == f"U{said[1:]}"
    assert words.planned(coming, NOW) == "15:26 UTC to 16:26 UTC"
    assert words.planned(window(12 * 60, 24 * 60), NOW) == "10 June, 02:26 UTC to 14:26 UTC"
    assert words.planned(window(60, 24 * 60), NOW) == "15:26 UTC to 10 June, 14:26 UTC"


def test_maintenance_includes_its_start_and_excludes_its_end() -> None:
    assert words.is_running(window(0, 1), NOW)
    assert not words.is_running(window(-1, 0), NOW)


@pytest.mark.parametrize(
    ("good", "bad", "unknown", "excluded", "slow", "said"),
    [
        (DAY, 0, 0, 0, 0, "operational, fully measured"),
        (DAY - 6 * MINUTE, 6 * MINUTE, 0, 0, 0, "down 6 min"),
        (DAY - 260 * MINUTE, 0, 260 * MINUTE, 0, 0, "no downtime, 4 h 20 min not measured"),
        (DAY - 2 * HOUR, 0, 0, 2 * HOUR, 0, "maintenance 2 h"),
        (DAY, 0, 0, 0, 70 * MINUTE, "degraded 70 min"),
        (0, 0, 0, 0, 0, "no data yet"),
        (0, 0, DAY, 0, 0, "not measured"),
        (0, 0, 0, DAY, 0, "maintenance 24 h"),
        (DAY - 1, 1, 0, 0, 0, "down < 1 s"),
        (
            20 * HOUR,
            HOUR,
            HOUR,
            2 * HOUR,
            3 * MINUTE,
            "down 60 min, degraded 3 min, maintenance 2 h, 60 min not measured",
        ),
    ],
)
def test_the_text_of_a_day(
    good: int, bad: int, unknown: int, excluded: int, slow: int, said: str
) -> None:
    day = ComponentDay(NOW, Split(good, bad, unknown, excluded), degraded_us=slow)
    assert plain(words.day_text(day)) == said
    if said not in ("not measured", "no data yet"):
        assert plain(words.day_text(day, is_today=True)) == f"{said} so far"


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


parts = st.integers(0, 3).map(lambda hours: hours * HOUR)


@given(parts, parts, parts, parts)
def test_the_text_of_a_day_names_all_its_states(
    good: int, bad: int, unknown: int, excluded: int
) -> None:
    said = words.day_text(ComponentDay(NOW, Split(good, bad, unknown, excluded)))
    assert ("down " in said) == (bad > 0)
    assert ("not measured" in said) == (unknown > 0)
    assert ("no data yet" in said) == (good + bad + unknown + excluded == 0)
    assert ("maintenance" in said) == (excluded > 0)
    assert ("operational" in said) == (good > 0 and not (bad or unknown or excluded))


def test_a_figure_has_its_coverage() -> None:
    split = Split(9_999 * MINUTE, MINUTE, 10_000 * MINUTE, 0)
    measured = ComponentMeasurement(figure=figure(split), split=split, sample=10_000)
    told = words.figure_of(replace(part("Mail", ComponentStatus.OPERATIONAL), measured=measured))
    assert told is not None
    assert (plain(told.text), plain(told.note)) == ("99.99%", "coverage 50.0%")
    since = replace(measured, since=Instant(NOW - 3 * DAY))
    told = words.figure_of(replace(part("Mail", ComponentStatus.OPERATIONAL), measured=since))
    assert told is not None
    assert plain(told.note) == "coverage 50.0%, since 6 June"
    assert words.figure_of(part("Mail", ComponentStatus.OPERATIONAL)) is None


@pytest.mark.parametrize("why", Withheld)
def test_a_withheld_figure_is_a_dash_with_a_reason(why: Withheld) -> None:
    split = Split(HOUR, 0, HOUR, 0)
    measured = ComponentMeasurement(figure=Availability(None, 0.41, why), split=split, sample=60)
    told = words.figure_of(replace(part("Mail", ComponentStatus.OPERATIONAL), measured=measured))
    assert told is not None
    assert told.withheld
    assert told.text == "—"
    assert plain(told.note) == f"No data: {words.withheld_word(why)}, coverage 41.0%"


def test_an_unmeasured_figure_is_withheld() -> None:
    measured = ComponentMeasurement(figure=figure(NOTHING), split=NOTHING)
    told = words.figure_of(replace(part("Mail", ComponentStatus.NO_DATA), measured=measured))
    assert told is not None
    assert plain(told.note) == "No data: not measured, coverage 0%"


@pytest.mark.parametrize(
    ("table", "kinds"),
    [
        (words.STATUS, ComponentStatus),
        (words.MARK, ComponentStatus),
    ],
)
def test_every_enum_value_has_a_text(table: dict[StrEnum, str], kinds: type[StrEnum]) -> None:
    assert set(table) == set(kinds)
    assert all(table.values())


@pytest.mark.parametrize(
    ("lasted", "said"),
    [(42 * MINUTE, "42 min"), (100 * MINUTE, "1 h 40 min"), (30 * SECOND, "30 s"), (0, "< 1 s")],
)
def test_a_resolved_incident_shows_its_duration(lasted: int, said: str) -> None:
    one = outage("x is down")
    assert words.incident_line(one) == "Investigating"
    over = replace(
        one, status=IncidentStatus.RESOLVED, resolved_at=Instant(one.started_at + lasted)
    )
    assert plain(words.incident_line(over)) == f"Resolved after {said}"
    assert words.incident_mark(over) == "up"
    assert words.incident_mark(one) == "degraded"


@given(page_world.facts())
@settings(deadline=None, max_examples=50)
def test_any_page_has_a_status_line(facts: PageFacts) -> None:
    page = render(facts, Audience.PUBLIC)
    assert words.status_line(page).text
    assert bool(words.line_beneath(page)) >= (len(page.components) > 1)
    for one in page.components:
        assert bool(words.why_no_data(one)) == (one.status is ComponentStatus.NO_DATA)
        assert (words.figure_of(one) is None) == (one.measured is None)


def test_an_instant_names_its_time_zone() -> None:
    assert words.exactly(NOW) == "9 June 2026, 14:26:08 UTC"
