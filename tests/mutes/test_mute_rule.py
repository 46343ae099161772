"""Mutes: state by time, bounds of the span and the reason, and labels of objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.mutes.rules.label_matcher import BadMatcher, match_all, parse_matchers
from leadline.storage.mutes.rules.mute import (
    LONGEST_US,
    LOOK_US,
    REASON_LONGEST,
    MuteState,
    labels_of_monitor,
    labels_of_service,
    mute_state,
    next_check_at,
    normal_matchers,
    reason_fault,
    span_fault,
)

NOW = Instant(1_767_225_600_000_000)
offsets = st.integers(-3 * LONGEST_US, 3 * LONGEST_US)


@given(offsets, offsets)
def test_an_accepted_mute_ends_within_the_bounds(start: int, end: int) -> None:
    starts_at, ends_at = Instant(NOW + start), Instant(NOW + end)
    if span_fault(starts_at, ends_at, NOW) is None:
        assert NOW < ends_at <= NOW + 2 * LONGEST_US
        assert mute_state(starts_at, ends_at, NOW) is not MuteState.ENDED
        assert mute_state(starts_at, ends_at, ends_at) is MuteState.ENDED
        assert mute_state(starts_at, ends_at, Instant(ends_at - 1)) is MuteState.ACTIVE


@given(st.integers(1, 2 * DAY))
def test_a_check_is_never_after_the_end(left: int) -> None:
    at = next_check_at(Instant(NOW + left), NOW)
    assert NOW < at <= NOW + min(left, LOOK_US)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (0, 0, "ends_at"),
        (-2 * SECOND, -SECOND, "ends_at"),
        (LONGEST_US + 1, LONGEST_US + 2, "starts_at"),
        (0, LONGEST_US + 1, "ends_at"),
    ],
)
def test_a_wrong_span_names_its_field(start: int, end: int, field: str) -> None:
    fault = span_fault(Instant(NOW + start), Instant(NOW + end), NOW)
    assert fault is not None
    assert fault[0] == field


def test_a_reason_is_required_and_bounded() -> None:
    assert reason_fault("network change") is None
    for wrong in ("", "  ", "x" * (REASON_LONGEST + 1), "a\x07b"):
        assert reason_fault(wrong) is not None


@pytest.mark.parametrize("text", ["", 'severity!="page"', 'a=~".*"', 'a=""'])
def test_matchers_that_match_everything_mute_nothing(text: str) -> None:
    with pytest.raises(BadMatcher):
        normal_matchers(text)


def test_monitors_and_services_have_labels() -> None:
    labels = labels_of_monitor("Shop web", "shop-web", "http", "eu", ["db", "prod"])
    for text in ('monitor="Shop web"', "monitor=shop-web", "type=http, region=eu", "tag=prod"):
        assert match_all(parse_matchers(text), labels)
    assert not match_all(parse_matchers("tag=prod, service=x"), labels)
    assert match_all(parse_matchers("service=shop"), labels_of_service("Shop", "shop"))
    assert normal_matchers("{tag=prod}") == 'tag="prod"'
