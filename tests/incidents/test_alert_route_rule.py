"""Routes of external alerts: the first route that matches decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.incidents.rules.alert_route import first_match, matching, route_matchers
from leadline.storage.mutes.rules.label_matcher import (
    BadMatcher,
    LabelMatcher,
    MatchOperator,
    matchers_text,
)

names = st.sampled_from(["team", "severity", "region"])
values = st.sampled_from(["", "shop", "pay", "page", "a|b"])
matchers = st.builds(LabelMatcher, names, st.sampled_from(list(MatchOperator)), values)
routes = st.lists(st.lists(matchers, min_size=1, max_size=3), max_size=6)
labels = st.dictionaries(names, values, max_size=3)


def holds(one: LabelMatcher, found: dict[str, str]) -> bool:
    value = found.get(one.name, "")
    equal = value == one.value
    among = value in one.value.split("|")
    return {"=": equal, "!=": not equal, "=~": among, "!~": not among}[one.operator]


@given(routes, labels)
def test_the_first_matching_route_decides(
    found: list[list[LabelMatcher]], known: dict[str, str]
) -> None:
    expected = [all(holds(one, known) for one in route) for route in found]
    assert matching(found, known) == expected
    assert first_match(found, known) == (expected.index(True) if True in expected else None)


@given(routes, routes, labels)
def test_a_route_after_the_decision_changes_nothing(
    before: list[list[LabelMatcher]], after: list[list[LabelMatcher]], known: dict[str, str]
) -> None:
    decided = first_match(before, known)
    if decided is not None:
        assert first_match([*before, *after], known) == decided


def test_a_route_needs_a_matcher_that_can_be_read() -> None:
    assert matchers_text(route_matchers("{team=shop}")) == 'team="shop"'
    # Unlike a mute, a route can match absent labels.
    assert route_matchers('team!="shop"')
    for text in ("", "{}", "team", 'team=~"("', f"t={'x' * 1_999}"):
        with pytest.raises(BadMatcher):
            route_matchers(text)
