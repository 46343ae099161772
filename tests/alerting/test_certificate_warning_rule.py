"""The certificate that counts, and its warnings, against models that read the whole history."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.certificate_warning import (
    HYSTERESIS_US,
    WatchedCertificate,
    begins,
    ends,
)
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.monitors.rules.certificate import (
    CERTIFICATES_MOST,
    SeenCertificate,
    merged,
    that_counts,
    window_us,
)

WINDOW = 10
ends_of_a_few = st.integers(1, CERTIFICATES_MOST).map(Instant)
reports = st.builds(SeenCertificate, ends_of_a_few, st.integers(0, 60).map(Instant))
in_order = st.lists(reports, max_size=40).map(lambda all_: sorted(all_, key=lambda r: r.seen_at))


def first_to_end(history: list[SeenCertificate]) -> Instant | None:
    """Searches all reports for the earliest end among those near the newest one."""
    newest = max((one.seen_at for one in history), default=Instant(0))
    return min((one.ends_at for one in history if newest - one.seen_at <= WINDOW), default=None)


def followed(history: list[SeenCertificate], cuts: list[int]) -> list[SeenCertificate]:
    kept: list[SeenCertificate] = []
    before = 0
    for cut in [*sorted(cuts), len(history)]:
        kept = merged(kept, history[before:cut], WINDOW)
        before = max(before, cut)
    return kept


@given(in_order, st.lists(st.integers(0, 40), max_size=10))
def test_the_certificate_that_counts_is_that_of_the_model(
    history: list[SeenCertificate], cuts: list[int]
) -> None:
    counting = that_counts(followed(history, cuts))
    assert (counting.ends_at if counting else None) == first_to_end(history)


@given(in_order, st.randoms(use_true_random=False))
def test_reports_of_two_processes_can_come_in_any_order(
    history: list[SeenCertificate], random: object
) -> None:
    shuffled = sorted(history, key=lambda _: random.random())  # type: ignore[attr-defined]
    together = merged([], history, WINDOW)
    assert merged([], shuffled, WINDOW) == together
    assert merged(together, history, WINDOW) == together


@given(st.lists(st.builds(SeenCertificate, st.integers(1, 500), st.integers(0, 20)), max_size=90))
def test_the_number_is_bounded_and_keeps_the_first_end_and_the_newest(
    history: list[SeenCertificate],
) -> None:
    kept = merged([], history, WINDOW)
    assert len(kept) <= CERTIFICATES_MOST
    counting = that_counts(kept)
    assert (counting.ends_at if counting else None) == first_to_end(history)
    newest = max((one.seen_at for one in history), default=None)
    assert max((one.seen_at for one in kept), default=None) == newest


def test_one_of_two_backends_with_an_old_certificate_counts_all_the_time() -> None:
    old, new = Instant(10 * DAY), Instant(90 * DAY)
    window, kept = window_us(60), list[SeenCertificate]()
    for minute in range(300):
        end = old if minute % 7 == 0 else new
        kept = merged(kept, [SeenCertificate(end, Instant(minute * MINUTE))], window)
        assert that_counts(kept) is not None
        assert kept[0].ends_at == old
    last = kept[0].seen_at
    for minute in range(300, 420):
        kept = merged(kept, [SeenCertificate(new, Instant(minute * MINUTE))], window)
        assert kept[0].ends_at == (old if minute * MINUTE - last <= window else new)


def test_the_window_has_bounds() -> None:
    assert window_us(5) == window_us(180) == HOUR
    assert window_us(3_600) == 20 * HOUR
    assert window_us(86_400) == 3 * DAY


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
