"""Availability figures are exact, and withheld if too little time was measured."""

from decimal import Decimal
from fractions import Fraction
from math import nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.availability import (
    Availability,
    ErrorBudget,
    Withheld,
    allowed_us,
    budget,
    burn_rate,
    digits,
    figure,
    is_exhausted,
    objective_e4,
    percent,
    spelt,
    uptime_percent,
)
from leadline.storage.core.instant import DAY, HOUR
from leadline.storage.core.sli import Split

splits = st.builds(Split, *[st.integers(0, 90 * DAY) | st.integers(0, 10**20)] * 4)
objectives = st.integers(1, 999_999)


@given(splits)
def test_a_figure_or_its_reason_is_present(split: Split) -> None:
    found = figure(split)
    assert (found.uptime_percent is None) == (found.withheld_reason is not None)
    assert 0 <= found.coverage <= 1
    if found.uptime_percent is not None:
        assert 0 <= found.uptime_percent <= 100
        # The float is 100 only without bad time, and 0 only without good time.
        assert (found.uptime_percent == 100) == (split.bad_us == 0)
        assert (found.uptime_percent == 0) == (split.good_us == 0)


@given(splits | st.builds(Split, st.integers(0, DAY), st.just(0), st.integers(0, DAY)))
def test_a_separate_percentage_equals_the_figure(split: Split) -> None:
    assert uptime_percent(split) == figure(split).uptime_percent


def test_a_ratio_that_a_float_would_round_stays_below_a_hundred_and_above_zero() -> None:
    almost = Fraction(10**20 - 1, 10**20)
    assert percent(almost) == nextafter(100, 0)
    assert percent(1 - almost) > 0
    assert percent(Fraction(1, 10**400)) == nextafter(0, 1)
    assert (percent(Fraction(0)), percent(Fraction(1))) == (0, 100)


def test_missing_data_has_no_percentage() -> None:
    assert figure(Split(unknown_us=DAY)) == Availability(None, 0.0, Withheld.NOTHING_MEASURED)
    assert figure(Split(excluded_us=DAY)) == Availability(None, 0.0, Withheld.NOTHING_MEASURED)
    assert figure(Split(), sealed=False) == Availability(None, 0.0, Withheld.NOTHING_SEALED)
    half = figure(Split(good_us=3, bad_us=1, unknown_us=4, excluded_us=9))
    assert half == Availability(75.0, 0.5, None)


@pytest.mark.parametrize(
    ("percent", "expected"),
    [
        (99.9, 999_000),
        ("99.99995", None),
        ("99.99994", 999_999),
        (Decimal("0.00005"), 1),
        ("0.00004", None),
        (50, 500_000),
        (0, None),
        (100, None),
        (-1, None),
        ("nan", None),
        ("inf", None),
        ("many", None),
    ],
)
def test_an_objective_has_four_decimals_and_lies_between(
    percent: float | str | Decimal, expected: int | None
) -> None:
    assert objective_e4(percent) == expected


@given(splits, objectives)
def test_a_budget_is_exact(split: Split, objective: int) -> None:
    allowed = (1 - Fraction(objective, 1_000_000)) * (split.good_us + split.bad_us)
    assert allowed_us(split, objective) == allowed
    measured = split.good_us + split.bad_us
    assert is_exhausted(split, objective) == (measured > 0 and split.bad_us >= allowed)
    found = budget(split, objective)
    counted = measured + split.unknown_us
    if measured < HOUR or measured * 10 < counted * 9:
        assert isinstance(found, Withheld)
    else:
        assert isinstance(found, ErrorBudget)
        assert found.met == (Fraction(split.good_us, measured) >= Fraction(objective, 1_000_000))
        assert found.exhausted == is_exhausted(split, objective)


def test_the_ratios_of_a_budget_are_shares_of_time() -> None:
    found = budget(Split(good_us=9_995 * HOUR, bad_us=5 * HOUR), 999_000)
    assert found == ErrorBudget(99.9, 0.001, 0.0005, 0.0005, 50.0, met=True, exhausted=False)
    just = budget(Split(good_us=999 * HOUR, bad_us=HOUR), 999_000)
    assert isinstance(just, ErrorBudget)
    assert (just.met, just.exhausted, just.burned_percent) == (True, True, 100.0)


@given(splits, objectives)
def test_a_burn_rate_is_exact_or_undecided(split: Split, objective: int) -> None:
    measured = split.good_us + split.bad_us
    found = burn_rate(split, objective)
    if measured == 0 or measured * 2 < measured + split.unknown_us:
        assert found is None
    else:
        assert found is not None
        assert found * (1 - Fraction(objective, 1_000_000)) * measured == split.bad_us


def test_a_percentage_has_the_digits_that_its_sample_supports() -> None:
    assert [digits(n) for n in (0, 1, 99, 100, 999, 1_000, 10_000, 10**6, 10**9)] == [
        0, 0, 0, 0, 0, 1, 2, 4, 4,
    ]  # fmt: skip


@given(st.integers(1, 10**7), st.data())
def test_100_percent_and_0_percent_are_exact(total: int, data: st.DataObject) -> None:
    good = data.draw(st.integers(0, total))
    ratio = Fraction(good, total)
    text = spelt(ratio, total)
    bound = Fraction(text.removeprefix("> ").removeprefix("< ")) / 100
    step = Fraction(1, 100 * 10 ** digits(total))
    if text.startswith("> "):
        assert bound < ratio < 1
    elif text.startswith("< "):
        assert 0 < ratio < bound
    else:
        assert bound <= ratio < bound + step
        assert (bound == 1) == (good == total)
        assert (bound == 0) == (good == 0)


def test_percentages_as_they_are_read() -> None:
    assert spelt(Fraction(1), 5) == "100"
    assert spelt(Fraction(1), 10_000) == "100.00"
    assert spelt(Fraction(9_999, 10_000), 5) == "> 99"
    assert spelt(Fraction(9_995, 10_000), 1_000) == "> 99.9"
    assert spelt(Fraction(9_956, 10_000), 10_000) == "99.56"
    assert spelt(Fraction(1, 10_000), 1_000) == "< 0.1"
    assert spelt(Fraction(0), 1_000) == "0.0"
