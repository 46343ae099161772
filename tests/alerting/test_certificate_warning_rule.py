"""The certificate that counts, and its warnings, against models that read the whole history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.certificate_warning import (
    HYSTERESIS_US,
    WatchedCertificate,
    begins,
    ends,
)
from leadline.storage.alerting.rules.outage_text import certificate_text
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.monitors.rules.certificate import (
    CERTIFICATES_MOST,
    SeenCertificate,
    Sighting,
    Sightings,
    merged,
    same_until,
    that_counts,
    window_us,
)

WINDOW = 10
NOW = Instant(60)
# None is a check without TLS.
ends_of_a_few = st.none() | st.integers(100, 99 + CERTIFICATES_MOST).map(Instant)
reports = st.builds(Sighting, ends_of_a_few, st.integers(0, NOW).map(Instant))
in_order = st.lists(reports, max_size=40).map(lambda all_: sorted(all_, key=lambda r: r.seen_at))


def first_to_end(history: list[Sighting]) -> Instant | None:
    """Searches all reports for the earliest end among those near the newest one."""
    newest = max((one.seen_at for one in history), default=Instant(0))
    near = [one for one in history if newest - one.seen_at <= WINDOW]
    return min((one.ends_at for one in near if one.ends_at is not None), default=None)


def end_that_counts(*parts: list[Sighting], window: int = WINDOW, now: Instant = NOW) -> int | None:
    counting = that_counts([Sightings(window, part) for part in parts], now)
    return counting.ends_at if counting else None


def followed(history: list[Sighting], cuts: list[int]) -> list[Sighting]:
    kept: list[Sighting] = []
    before = 0
    for cut in [*sorted(cuts), len(history)]:
        kept = merged(kept, history[before:cut], WINDOW, NOW)
        before = max(before, cut)
    return kept


@given(in_order, st.integers(0, 120).map(Instant), st.data())
def test_the_same_certificate_counts_until_that_instant(
    history: list[Sighting], now: Instant, data: st.DataObject
) -> None:
    parts = [Sightings(WINDOW, history)]
    until = same_until(parts, now)
    if until > now:
        later = Instant(data.draw(st.integers(now, min(until - 1, now + 200))))
        assert that_counts(parts, later) == that_counts(parts, now)


@given(in_order, st.lists(st.integers(0, 40), max_size=10))
def test_the_certificate_that_counts_is_that_of_the_model(
    history: list[Sighting], cuts: list[int]
) -> None:
    kept = followed(history, cuts)
    assert end_that_counts(kept) == first_to_end(history)
    assert bool(kept) == bool(history)


@given(st.lists(st.tuples(st.integers(0, 2), reports), max_size=40))
def test_regions_count_as_one_that_made_all_checks(given_: list[tuple[int, Sighting]]) -> None:
    parts = [
        merged([], [one for region, one in given_ if region == number], WINDOW, NOW)
        for number in range(3)
    ]
    assert end_that_counts(*parts) == first_to_end([one for _, one in given_])


@given(in_order, st.randoms(use_true_random=False))
def test_reports_of_two_processes_can_come_in_any_order(
    history: list[Sighting], random: object
) -> None:
    shuffled = sorted(history, key=lambda _: random.random())  # type: ignore[attr-defined]
    together = merged([], history, WINDOW, NOW)
    assert merged([], shuffled, WINDOW, NOW) == together
    assert merged(together, history, WINDOW, NOW) == together


@given(
    st.lists(
        st.builds(Sighting, st.none() | st.integers(100, 500), st.integers(0, 20)), max_size=90
    )
)
def test_the_number_is_bounded_and_keeps_the_first_end_and_the_newest(
    history: list[Sighting],
) -> None:
    kept = merged([], history, WINDOW, NOW)
    assert len(kept) <= CERTIFICATES_MOST + 1
    assert end_that_counts(kept) == first_to_end(history)
    newest = max((one.seen_at for one in history), default=None)
    assert max((one.seen_at for one in kept), default=None) == newest


def test_one_of_two_backends_with_an_old_certificate_counts_all_the_time() -> None:
    old, new = Instant(10 * DAY), Instant(90 * DAY)
    window, kept, last = window_us(MINUTE), list[Sighting](), 0
    for minute in range(420):
        now = Instant(minute * MINUTE)
        is_old = minute < 300 and minute % 7 == 0
        last = minute * MINUTE if is_old else last
        kept = merged(kept, [Sighting(old if is_old else new, now)], window, now)
        counting = old if now - last <= window else new
        assert end_that_counts(kept, window=window, now=now) == counting


def test_the_window_has_bounds() -> None:
    assert window_us(5 * SECOND) == window_us(3 * MINUTE) == HOUR
    assert window_us(HOUR) == 20 * HOUR
    assert window_us(6 * HOUR) == 3 * DAY
    assert window_us(DAY) == 10 * DAY
    assert window_us(7 * DAY) == window_us(366 * DAY) == 60 * DAY


@pytest.mark.parametrize(("every", "checks"), [(DAY, 10), (3 * DAY, 10), (6 * DAY, 10)])
def test_rare_checks_of_two_servers_need_many_without_the_old_certificate(
    every: int, checks: int
) -> None:
    now = Instant(0)
    old, new = Instant(990 * DAY), Instant(999 * DAY)
    window, kept = window_us(every), merged([], [Sighting(old, now)], window_us(every), now)
    for _ in range(checks):
        now = Instant(now + every)
        kept = merged(kept, [Sighting(new, now)], window, now)
        assert end_that_counts(kept, window=window, now=now) == old
    now = Instant(now + every)
    kept = merged(kept, [Sighting(new, now)], window, now)
    assert end_that_counts(kept, window=window, now=now) == new


def test_a_replaced_certificate_does_not_count_after_its_end() -> None:
    old, new, now = Instant(DAY), Instant(90 * DAY), Instant(DAY)
    refused, accepted = Sighting(old, Instant(DAY - 1)), Sighting(old, Instant(DAY))
    fresh = Sighting(new, Instant(DAY - 1))
    for known, counting in (
        ([refused], old),
        ([refused, fresh], new),
        ([accepted, fresh], old),
    ):
        assert end_that_counts(known, window=DAY, now=now) == counting
    assert end_that_counts([refused, fresh], window=DAY, now=Instant(DAY - 1)) == old


def test_sightings_of_the_future_count_as_of_now() -> None:
    """The clock was set back: new checks replace an old certificate in the usual time."""
    old, new, ahead = Instant(50 * DAY), Instant(90 * DAY), Instant(9 * DAY)
    kept = merged([], [Sighting(old, ahead)], HOUR, ahead)
    now = Instant(DAY)
    soon = Instant(20 * DAY)
    assert end_that_counts(kept, [Sighting(soon, now)], window=HOUR, now=now) == soon
    kept = merged(kept, [Sighting(new, now)], HOUR, now)
    assert Sighting(new, now) in kept
    now = Instant(now + HOUR + 1)
    kept = merged(kept, [Sighting(new, now)], HOUR, now)
    assert end_that_counts(kept, window=HOUR, now=now) == new


watched = st.builds(
    WatchedCertificate,
    days=st.integers(0, 30),
    is_known=st.booleans(),
    certificate=st.none()
    | st.builds(
        SeenCertificate,
        st.integers(-5 * DAY, 40 * DAY).map(Instant),
        st.integers(-5 * DAY, 40 * DAY).map(Instant),
    ),
)
instants = st.integers(0, 40 * DAY).map(Instant)


@given(watched, instants)
def test_no_warning_begins_and_ends_at_the_same_instant(
    one: WatchedCertificate, now: Instant
) -> None:
    assert not (begins(one, now) and ends(one, now))


@given(watched, instants, st.integers(0, 40 * DAY))
def test_time_alone_ends_no_warning(one: WatchedCertificate, now: Instant, later: int) -> None:
    if begins(one, now):
        assert not ends(one, Instant(now + later))
        back = min(later, HYSTERESIS_US)
        assert not ends(one, Instant(now - back))


def test_an_expired_certificate_is_told_only_if_the_checks_accept_it() -> None:
    now = Instant(10 * DAY)
    gone = Instant(now - DAY)
    refused = WatchedCertificate(21, True, SeenCertificate(gone, Instant(gone - MINUTE)))
    accepted = WatchedCertificate(21, True, SeenCertificate(gone, Instant(gone + MINUTE)))
    assert (begins(refused, now), begins(accepted, now)) == (False, True)
    assert (ends(refused, now), ends(accepted, now)) == (False, False)


def test_unknown_certificates_change_nothing_and_no_tls_ends_a_warning() -> None:
    now = Instant(10 * DAY)
    assert not begins(WatchedCertificate(21), now)
    assert not ends(WatchedCertificate(21), now)
    assert ends(WatchedCertificate(21, True), now)
    assert ends(WatchedCertificate(0), now)


@pytest.mark.parametrize(("days", "text"), [(1, "1 day before"), (2, "2 days before")])
def test_the_text_has_the_days_of_the_setting(days: int, text: str) -> None:
    assert text in certificate_text(Instant(DAY), Instant(0), days)
