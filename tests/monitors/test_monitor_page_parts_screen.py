"""Parts of a monitor's page: axes on which runs lie, phases that add up, addresses read kindly."""

from uuid import UUID, uuid5

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.home.console.first_monitor import read_address
from leadline.http.monitors.console.failure_fact import expected
from leadline.http.monitors.console.last_check import ended_in, parts_of, verdict_text
from leadline.http.monitors.console.latency_range import (
    RANGES,
    RUNS_EACH,
    STEPS_MOST,
    UNCOUNTED_US,
    LatencyRange,
    axis_of_latency,
    exact_axis,
    read_range,
    since_creation,
)
from leadline.http.monitors.console.monitor_data import SLOTS_MOST, course_axis
from leadline.http.ui.failure_help import FAILURES, REFUSALS, TROUBLES, explain_failure
from leadline.probes.check.result import FailureClass, UnknownReason
from leadline.probes.check.target import BadTarget
from leadline.storage.core.instant import DAY, HOUR, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.results.queries import console_results
from leadline.storage.results.queries.results import HeartbeatRow
from leadline.storage.scheduling.rules.run_schedule import ScheduleTerm, anchor_for, windows
from tests.support.app.cast import Api

from .test_monitor_form_screen import ROW

NOW = Instant(1_767_571_234_567_890)
NAMES = UUID("01a20031-f412-7194-981b-2db4350507bf")
INTERVALS = st.sampled_from([5, 7, 10, 15, 30, 60, 61, 300, 600, 601, 3_600, 43_200, 86_400])


def row(interval: int, seed: int):
    return msgspec.structs.replace(
        ROW, uid=uuid5(NAMES, str(seed)), interval_seconds=interval, type="http"
    )


@given(INTERVALS, st.integers(0, 1_000), st.integers(0, 86_400 * 1_000_000))
def test_every_run_that_was_due_lies_at_the_start_of_a_slot_and_no_slot_is_left_over(
    interval: int, seed: int, later_us: int
) -> None:
    now = Instant(NOW + later_us)
    monitor = row(interval, seed)
    axis = course_axis(monitor, now)
    assert axis.many <= SLOTS_MOST
    assert axis.start(axis.many - 1) <= now < axis.until
    interval_us = interval * SECOND
    term = ScheduleTerm(Instant(0), anchor_for(monitor.uid, interval_us, now), interval_us, SECOND)
    together = axis.step_us // interval_us
    dues = [w.due for w in windows([term], Instant(axis.from_at - 1), Instant(axis.until - 1))]
    assert len(dues) == axis.many * together
    for at, due in enumerate(dues):
        assert axis.slot(due) == at // together
    assert dues[0] == axis.from_at


@given(INTERVALS, st.sampled_from(sorted(RANGES)))
def test_a_step_of_the_latency_plot_covers_two_runs_so_that_a_gap_is_visible(
    interval: int, name: str
) -> None:
    axis = axis_of_latency(row(interval, 1), name, NOW)
    assert axis.step_us >= 2 * interval * SECOND
    assert axis.many <= 400
    assert axis.start(axis.many - 1) <= NOW < axis.until
    if interval <= 30:
        assert axis.until - axis.from_at >= RANGES[name][0]
    assert axis.from_at % axis.step_us == 0 or axis.step_us > HOUR


PHASE = st.none() | st.integers(0, 20_000_000)


@given(
    st.booleans(),
    st.sampled_from(list(FailureClass)),
    st.integers(0, 20_000),
    PHASE,
    PHASE,
    PHASE,
    PHASE,
)
def test_phases_add_up_to_the_whole_and_only_a_failure_has_a_part_that_did_not_finish(
    up: bool,
    failure: FailureClass,
    latency_ms: int,
    dns: int | None,
    connect: int | None,
    tls: int | None,
    first_byte: int | None,
) -> None:
    msg = "" if up else f"{failure} example.com"
    beat = HeartbeatRow(NOW, up, latency_ms, None, msg, dns, connect, tls, first_byte)
    parts = parts_of(beat)
    assert all(part.us >= 0 for part in parts)
    spent = sum(us or 0 for us in (dns, connect, tls, first_byte))
    assert sum(part.us for part in parts) >= max(latency_ms * 1_000, spent if up else 0)
    assert sum(part.us for part in parts) <= max(latency_ms * 1_000, spent, 1) + 1
    failed = [part.name for part in parts if part.failed]
    assert failed == ([ended_in(beat)] if ended_in(beat) else [])
    assert not (up and failed)


@pytest.mark.parametrize(
    ("msg", "code", "said"),
    [
        ("connect_timeout example.com", None, "Failed in connect"),
        ("dns_error example.com", None, "Failed in dns"),
        ("tls_error example.com", None, "Failed in tls"),
        ("proxy_error example.com", 502, "Failed in connect"),
        ("token_error example.com", 401, "Not sent: no access token"),
        ("client_cert_expired a.example", None, "Not sent: the client certificate has expired"),
        ("http_status example.com", 503, "Responded with 503"),
        ("condition_failed example.com", None, "Failed after the response"),
        ("region_saturated", None, "Not run"),
    ],
)
def test_the_verdict_names_the_failed_phase(msg: str, code: int | None, said: str) -> None:
    beat = HeartbeatRow(NOW, False, 10, code, msg, 1, None, None, None)
    assert verdict_text(beat, "http") == said


@pytest.mark.parametrize(
    ("typed", "kind", "target"),
    [
        ("https://www.example.com/a?b=c", "http", "https://www.example.com/a?b=c"),
        ("http://127.0.0.1:8080", "http", "http://127.0.0.1:8080"),
        ("www.example.com", "http", "https://www.example.com"),
        ("www.example.com/health", "http", "https://www.example.com/health"),
        ("db.example.com:5432", "tcp", "db.example.com:5432"),
        ("[::1]:22", "tcp", "[::1]:22"),
        ("example.com:8080/health", "http", "https://example.com:8080/health"),
    ],
)
def test_an_address_is_read_as_it_was_meant(typed: str, kind: str, target: str) -> None:
    address = read_address(typed)
    assert (address.type, address.target) == (kind, target)


@pytest.mark.parametrize(
    "typed", ["", "ftp://example.com", "https://u:p@example.com", "a b", "example.com:99999"]
)
def test_an_invalid_address_is_refused_with_a_correction(typed: str) -> None:
    with pytest.raises(BadTarget):
        read_address(typed)


def test_every_failure_class_and_unknown_reason_is_explained() -> None:
    # No stored result has `probe_error`, because an unknown run has no heartbeat.
    assert set(FAILURES) == set(FailureClass) - {FailureClass.PROBE_ERROR}
    assert set(TROUBLES) == set(UnknownReason)
    assert all(explain_failure(reason) == said for reason, said in REFUSALS.items())
    assert explain_failure("what_another_version_says") == ""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("http", "Responded with 3"),
        ("dns", "Responded with rcode 3"),
        ("ssh", "Responded with exit status 3"),
    ],
)
def test_a_number_is_called_what_its_protocol_calls_it(kind: str, said: str) -> None:
    beat = HeartbeatRow(
        ts=Instant(0),
        up=True,
        latency_ms=1,
        code=3,
        msg="",
        dns_us=None,
        connect_us=None,
        tls_us=None,
        first_byte_us=None,
    )
    assert verdict_text(beat, kind) == said


@given(INTERVALS, st.integers(0, 40 * 86_400), st.integers(1, 366 * 86_400))
def test_an_axis_of_two_instants_contains_them_in_few_steps(
    interval: int, ago: int, seconds: int
) -> None:
    end = Instant(NOW - ago * SECOND)
    begin = Instant(end - seconds * SECOND)
    axis = exact_axis(row(interval, 1), begin, end, NOW)
    assert axis.from_at <= begin < axis.start(1)
    assert axis.until >= end
    many = STEPS_MOST if end - begin <= UNCOUNTED_US else 366
    assert axis.many <= max(RUNS_EACH, many) + 1
    # Long ranges have the days that are counted.
    if end - begin > UNCOUNTED_US and axis.step_us != interval * SECOND:
        assert axis.step_us % DAY == axis.from_at % DAY == 0
    # A step of one run each, or of two and more, so that an empty step is a real gap.
    assert axis.step_us == interval * SECOND or axis.step_us >= 2 * interval * SECOND


@given(INTERVALS, st.sampled_from(sorted(RANGES)), st.integers(0, 40 * 86_400))
def test_an_axis_does_not_start_before_the_step_of_the_creation(
    interval: int, name: str, age: int
) -> None:
    created = Instant(NOW - age * SECOND)
    whole = axis_of_latency(row(interval, 1), name, NOW)
    axis = since_creation(whole, created)
    assert axis.step_us == whole.step_us
    assert axis.from_at == whole.from_at or axis.from_at <= created < axis.start(1)
    assert axis.until >= whole.until


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("[STATUS] == 200", "200"),
        ("[RESPONSE_TIME] < 500", "less than 500"),
        ('[BODY].name != "a b"', "anything but a b"),
        ("[BODY].id exists", "a value"),
        ("not a condition", ""),
    ],
)
def test_the_expected_value_of_a_condition_is_in_words(condition: str, said: str) -> None:
    assert expected(condition) == said


@pytest.mark.parametrize(("from_", "to"), [("", "2026-01-01T00:00"), ("x", "y")])
def test_a_range_that_is_not_two_instants_is_refused(from_: str, to: str) -> None:
    with pytest.raises(Refused):
        read_range("", from_, to)


def test_a_range_has_an_order_and_a_longest_length() -> None:
    assert read_range("", "", "") is None
    assert read_range("7d", "", "") == LatencyRange("7d")
    day = read_range("", "2026-01-01T00:00", "2026-01-02T00:00Z")
    assert day is not None
    assert day.name == "custom"
    assert day.from_at is not None
    assert day.to is not None
    assert day.to - day.from_at == 24 * HOUR
    for to in ("2026-01-01T00:00", "2027-01-03T00:00"):
        with pytest.raises(Refused, match="after from"):
            read_range("", "2026-01-01T00:00", to)


@pytest.mark.parametrize("most", [0, -1])
async def test_a_plot_of_too_many_results_is_withheld_and_the_screen_is_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monitor = await api.new_monitor()
    monkeypatch.setattr(console_results, "DECODED_MOST", most)
    answer = await api.ask("editor", "GET", f"/monitors/{monitor.uid}?range=1y")
    assert answer.status_code == 200
    page = await answer.get_data(as_text=True)
    assert ("Choose a shorter range." in page) is (most < 0)
    assert ("data-lat" in page) is (most == 0)
    assert "Expected runs" in page
