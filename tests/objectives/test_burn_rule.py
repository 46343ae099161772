"""When a burn rule fires, clears and does neither, over every pair of rates."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.objectives.rules import (
    DEFAULT_RULES,
    LONG_LONGEST_US,
    MONITOR_SHORT_LEAST_US,
    SERVICE_SHORT_LEAST_US,
    BurnRule,
    BurnSeverity,
    BurnState,
    decide_burn,
    faults,
    fires,
    is_stale,
    threshold_of,
)

RULE = BurnRule(HOUR, 5 * MINUTE, Fraction(10), BurnSeverity.PAGE)
BELOW, AT, ABOVE = Fraction(999, 100), Fraction(10), Fraction(1001, 100)


@pytest.mark.parametrize(
    ("long", "short", "said"),
    [
        (AT, AT, BurnState.FIRING),
        (ABOVE, AT, BurnState.FIRING),
        (BELOW, ABOVE, BurnState.CLEAR),
        (ABOVE, BELOW, BurnState.CLEAR),
        (None, BELOW, BurnState.CLEAR),
        (BELOW, None, BurnState.CLEAR),
        (None, ABOVE, BurnState.UNEVALUATED),
        (ABOVE, None, BurnState.UNEVALUATED),
        (None, None, BurnState.UNEVALUATED),
    ],
)
def test_both_windows_decide(
    long: Fraction | None, short: Fraction | None, said: BurnState
) -> None:
    assert decide_burn(RULE, long, short) is said


_RATE = st.none() | st.fractions(0, 40, max_denominator=50)


@given(st.lists(st.tuples(_RATE, _RATE), max_size=30), st.booleans())
def test_a_rule_fires_and_clears_on_known_burn_rates(
    looks: list[tuple[Fraction | None, Fraction | None]], firing: bool
) -> None:
    for long, short in looks:
        before = firing
        firing = fires(before, decide_burn(RULE, long, short))
        known = [rate for rate in (long, short) if rate is not None]
        if any(rate < 10 for rate in known):
            assert not firing
        elif len(known) == 2:
            assert firing
        else:
            assert firing is before


def test_a_watermark_older_than_the_timeout_and_600_s_decides_no_verdict() -> None:
    now = Instant(10 * HOUR)
    mark = Instant(now - 30 * SECOND - 600 * SECOND)
    assert not is_stale(mark, 30 * SECOND, now)
    assert is_stale(Instant(mark - 1), 30 * SECOND, now)
    assert is_stale(None, 30 * SECOND, now)


def test_the_default_rules_are_valid() -> None:
    assert list(faults(DEFAULT_RULES, SERVICE_SHORT_LEAST_US)) == []


@given(st.integers(0, 8 * DAY), st.integers(0, 8 * DAY), st.fractions(-2, 20, max_denominator=10))
def test_a_rule_is_taken_exactly_within_its_bounds(
    long: int, short: int, threshold: Fraction
) -> None:
    rule = BurnRule(long, short, threshold, BurnSeverity.TICKET)
    for least in (SERVICE_SHORT_LEAST_US, MONITOR_SHORT_LEAST_US):
        fine = least <= short < long <= LONG_LONGEST_US and threshold > 0
        assert (list(faults([rule], least)) == []) is fine
        assert any(field == "burn_rules" for field, _ in faults([rule] * 5, least))
        assert not any(field == "burn_rules" for field, _ in faults([rule] * 4, least))


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        (14.4, Fraction(144, 10)),
        (6, Fraction(6)),
        (0.00005, Fraction(1, 10_000)),
        (0.00004, Fraction(0)),
        (2.00005, Fraction(20_001, 10_000)),
    ],
)
def test_a_threshold_is_kept_to_four_decimals_half_up(number: float, kept: Fraction) -> None:
    assert threshold_of(number) == kept


def test_a_threshold_that_no_budget_can_reach_is_refused() -> None:
    for threshold, fine in ((1_000_000, True), (Fraction(1_000_000_0001, 10_000) + 1, False)):
        rule = BurnRule(HOUR, 5 * MINUTE, Fraction(threshold), BurnSeverity.PAGE)
        assert (list(faults([rule], SERVICE_SHORT_LEAST_US)) == []) is fine
