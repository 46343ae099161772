"""The first line of the overview names the worst state, and unknown monitors are not
counted as up.
"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.home.console.overview_summary import (
    MissingResults,
    monitors_below,
    service_summary,
    summary,
    tallied,
    under,
)
from leadline.http.ui.formatting import (
    coverage,
    dated,
    duration,
    milliseconds,
    number,
    percent,
    setting,
)
from leadline.http.ui.monitor_status import MonitorStatusText
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_text

GAP = "\u202f"
TALLIES = st.dictionaries(st.sampled_from(list(MonitorStatusText)), st.integers(0, 3_000))


@pytest.mark.parametrize(
    ("tally", "mark", "sentence"),
    [
        ({MonitorStatusText.UP: 3}, MonitorStatusText.UP, "All 3 monitors are up"),
        ({MonitorStatusText.UP: 1}, MonitorStatusText.UP, "The monitor is up"),
        (
            {MonitorStatusText.UP: 2, MonitorStatusText.DOWN: 1},
            MonitorStatusText.DOWN,
            "1 monitor is down",
        ),
        (
            {MonitorStatusText.UP: 2, MonitorStatusText.DOWN: 2, MonitorStatusText.UNKNOWN: 9},
            MonitorStatusText.DOWN,
            "2 monitors are down",
        ),
        (
            {MonitorStatusText.UP: 2, MonitorStatusText.UNKNOWN: 2},
            MonitorStatusText.UNKNOWN,
            "2 monitors are unknown, the rest is up",
        ),
        ({MonitorStatusText.UNKNOWN: 2}, MonitorStatusText.UNKNOWN, "2 monitors are unknown"),
        (
            {
                MonitorStatusText.UNKNOWN: 1,
                MonitorStatusText.UP: 1,
                MonitorStatusText.MAINTENANCE: 1,
            },
            MonitorStatusText.UNKNOWN,
            "1 monitor is unknown",
        ),
        ({MonitorStatusText.PAUSED: 4}, MonitorStatusText.PAUSED, "No active monitors"),
        (
            {MonitorStatusText.PENDING: 1},
            MonitorStatusText.PENDING,
            "1 monitor is pending",
        ),
        (
            {MonitorStatusText.MAINTENANCE: 2},
            MonitorStatusText.MAINTENANCE,
            "All 2 monitors are in maintenance",
        ),
        (
            {MonitorStatusText.UP: 2, MonitorStatusText.PAUSED: 1},
            MonitorStatusText.UP,
            "Others up: 2 monitors",
        ),
    ],
)
def test_the_summary_of_each_tally(
    tally: dict[MonitorStatusText, int], mark: MonitorStatusText, sentence: str
) -> None:
    line = summary(tally)
    assert (line.mark, line.sentence) == (mark, sentence)


@given(TALLIES)
def test_the_mark_is_down_or_unknown_before_up(tally: dict[MonitorStatusText, int]) -> None:
    line = summary(tally)
    if tally.get(MonitorStatusText.DOWN):
        assert line.mark is MonitorStatusText.DOWN
    elif tally.get(MonitorStatusText.UNKNOWN):
        assert line.mark is MonitorStatusText.UNKNOWN
    if line.mark is MonitorStatusText.UP:
        assert not any(
            tally.get(s)
            for s in (MonitorStatusText.DOWN, MonitorStatusText.UNKNOWN, MonitorStatusText.PENDING)
        )
        assert tally.get(MonitorStatusText.UP)
    if line.sentence.startswith("All ") and line.sentence.endswith(" up"):
        assert sum(tally.values()) == tally[MonitorStatusText.UP]
    if "the rest is up" in line.sentence:
        assert not tally.get(MonitorStatusText.MAINTENANCE)


@given(TALLIES)
def test_the_tally_lists_each_state_once(
    tally: dict[MonitorStatusText, int],
) -> None:
    told = {item.mark: item.many for item in tallied(tally)}
    assert told == {state: number(many) for state, many in tally.items() if many}


def test_the_second_line_names_the_region_without_results() -> None:
    unserved = MissingResults({"ap-south": 2})
    said = under({MonitorStatusText.UNKNOWN: 2, MonitorStatusText.UP: 1}, unserved)
    assert said == "Region ap-south has no live worker or agent: 2 monitors are not checked."
    assert under({MonitorStatusText.UP: 3}, MissingResults()) == ""


def test_the_second_line_states_each_reason_for_missing_results() -> None:
    said = under(
        {MonitorStatusText.UNKNOWN: 4, MonitorStatusText.UP: 1},
        MissingResults({"ap-south": 1}, {"decrypt_failed": 2}, stale=1),
    )
    assert said == (
        "Region ap-south has no live worker or agent: 1 monitor is not checked."
        " 2 checks cannot run: its secrets cannot be decrypted with the configured keys."
        " 1 monitor without a current result."
    )


def test_the_rest_is_up_only_if_nothing_is_unknown() -> None:
    tally = {MonitorStatusText.DOWN: 1, MonitorStatusText.UP: 1}
    assert under(tally, MissingResults()) == "Everything else is up."
    both = {**tally, MonitorStatusText.UNKNOWN: 1}
    assert under(both, MissingResults(stale=1)) == "1 monitor is unknown."


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, f"0{GAP}s"),
        (99 * SECOND, f"99{GAP}s"),
        (100 * SECOND, f"1{GAP}min"),
        (99 * MINUTE, f"99{GAP}min"),
        (100 * MINUTE, f"1{GAP}h 40{GAP}min"),
        (12 * HOUR + 59 * MINUTE, f"12{GAP}h"),
        (3 * DAY, f"3{GAP}d"),
        (-5, f"0{GAP}s"),
    ],
)
def test_a_duration_is_rounded_to_its_units(us: int, text: str) -> None:
    assert duration(us) == text


@given(st.integers(1, 86_400))
def test_a_setting_is_shown_exactly(seconds: int) -> None:
    value, unit = (
        setting(seconds).replace(GAP, "").replace(",", "").rstrip("dhmins"),
        setting(seconds),
    )
    length = {"d": 86_400, "h": 3_600, "n": 60, "s": 1}[unit[-1]]
    assert int(value) * length == seconds


@given(st.fractions(0, 1), st.integers(1, 10**7))
def test_only_exact_ratios_are_shown_as_0_or_100_percent(ratio: Fraction, sample: int) -> None:
    text = percent(ratio, sample)
    assert (text == "100%") == (ratio == 1)
    assert (text == "0%") == (ratio == 0)


def test_numbers_are_grouped_and_small_durations_are_not_zero() -> None:
    assert number(4_100) == "4,100"
    assert milliseconds(0) == f"< 1{GAP}ms"
    assert coverage(None) == "—"


def test_a_date_omits_the_parts_that_are_current() -> None:
    now = from_text("2026-01-05T12:00:00Z")
    assert dated(Instant(now - HOUR), now) == "11:00:00"
    assert dated(Instant(now - DAY), now) == "4 January 12:00"
    assert dated(Instant(now - 30 * DAY), now) == "6 December 12:00 2025"


@pytest.mark.parametrize(
    ("marks", "mark", "sentence"),
    [
        (["up", "up"], "up", "All 2 services are healthy"),
        (["up", "pending"], "up", "The service is healthy"),
        (["degraded"], "degraded", "The service is degraded"),
        (
            ["up"] * 4 + ["degraded", "unknown"],
            "degraded",
            "1 of 6 services is degraded, 1 is unknown",
        ),
        (["unknown", "down", "down"], "down", "2 of 3 services are down, 1 is unknown"),
        (["maint", "up"], "maint", "1 of 2 services is in maintenance"),
    ],
)
def test_the_first_line_states_the_services_first(
    marks: list[str], mark: str, sentence: str
) -> None:
    found = service_summary(marks)
    assert found is not None
    assert (found.mark, found.sentence) == (mark, sentence)


def test_services_without_a_declaration_are_no_summary() -> None:
    assert service_summary(["pending", "pending"]) is None
    assert service_summary([]) is None


@given(st.lists(st.sampled_from(["up", "degraded", "down", "unknown", "maint", "pending"])))
def test_a_service_that_is_not_healthy_is_never_omitted(marks: list[str]) -> None:
    found = service_summary(marks)
    words = {"down": "down", "degraded": "degraded", "unknown": "unknown", "maint": "maintenance"}
    for mark, word in words.items():
        assert (mark in marks) == (found is not None and word in found.sentence)


@given(TALLIES)
def test_the_line_below_counts_every_monitor_that_is_not_up(
    tally: dict[MonitorStatusText, int],
) -> None:
    said = monitors_below(tally)
    for state, word in (
        (MonitorStatusText.DOWN, "down"),
        (MonitorStatusText.UNKNOWN, "unknown"),
        (MonitorStatusText.PENDING, "pending"),
        (MonitorStatusText.MAINTENANCE, "in maintenance"),
    ):
        assert (word in said) == bool(tally.get(state))
