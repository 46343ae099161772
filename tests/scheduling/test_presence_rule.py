"""The listened spans, compared with a test of each instant: could a push at it have been lost?"""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.scheduling.rules.presence import (
    LATE_RENEWAL_US,
    Presence,
    is_wholly_listened,
    judged_through,
    listened,
)

NOW = Instant(1_800_000_000 * SECOND)


def presence(from_s: float, through_s: float, *, ended: bool = False) -> Presence:
    return Presence(
        Instant(NOW + int(from_s * SECOND)), Instant(NOW + int(through_s * SECOND)), ended
    )


seconds = st.integers(0, 120)
presences = st.lists(
    st.builds(
        lambda a, b, ended: presence(min(a, b), max(a, b), ended=ended),
        seconds,
        seconds,
        st.booleans(),
    ),
    max_size=5,
)


@given(presences, seconds, seconds, seconds)
def test_an_instant_is_covered_by_a_live_presence_and_by_no_dead_one(
    known: list[Presence], a: int, b: int, now_s: int
) -> None:
    now = Instant(NOW + now_s * SECOND)
    from_, through = sorted((Instant(NOW + a * SECOND), Instant(NOW + b * SECOND)))
    expected = all(
        any(p.from_ <= t <= p.through for p in known)
        and not any(
            not p.ended
            and now - p.through > 15 * SECOND
            and p.through < t < p.through + 15 * SECOND
            for p in known
        )
        for t in range(from_, through + 1, SECOND // 4)
    )
    heard = listened(known, now)
    if expected:
        assert all(s.from_ <= s.until for s in heard)
    # Within a quarter of a second no presence begins or ends, except between two adjacent
    # presences.
    assert is_wholly_listened(heard, from_, through) == expected


@given(presences, seconds)
def test_listened_spans_are_disjoint_and_in_order(known: list[Presence], now_s: int) -> None:
    heard = listened(known, Instant(NOW + now_s * SECOND))
    assert all(a.until + 1 < b.from_ for a, b in itertools.pairwise(heard))


@given(presences, seconds)
def test_silence_is_known_up_to_the_slowest_live_process(known: list[Presence], now_s: int) -> None:
    now = Instant(NOW + now_s * SECOND)
    live = [p for p in known if not p.ended and now <= p.through + LATE_RENEWAL_US]
    assert judged_through(known, now) == (min(p.through for p in live) if live else None)


@given(presences, seconds, st.integers(0, 60))
def test_a_judged_instant_is_judged_the_same_later(
    known: list[Presence], now_s: int, later_s: int
) -> None:
    """A later renewal of a process does not change an instant that is already judged."""
    now, later = Instant(NOW + now_s * SECOND), Instant(NOW + (now_s + later_s) * SECOND)
    horizon = judged_through(known, now)
    if horizon is None:
        return
    before, after = listened(known, now), listened(known, later)
    for t in range(NOW, horizon + 1, SECOND // 2):
        at = Instant(t)
        assert is_wholly_listened(before, at, at) == is_wholly_listened(after, at, at)


def test_a_restart_begins_to_listen_at_its_first_instant() -> None:
    heard = listened([presence(0, 50, ended=True), presence(60, 60)], Instant(NOW + 60 * SECOND))
    assert [(s.from_ - NOW, s.until - NOW) for s in heard] == [
        (0, 50 * SECOND),
        (60 * SECOND, 60 * SECOND),
    ]


def test_a_killed_process_leaves_fifteen_seconds_unheard_though_others_listened() -> None:
    known = [presence(0, 20), presence(0, 100)]
    heard = listened(known, Instant(NOW + 100 * SECOND))
    assert [(s.from_ - NOW, s.until - NOW) for s in heard] == [
        (0, 20 * SECOND),
        (35 * SECOND, 100 * SECOND),
    ]
