"""Label matchers: syntax of Alertmanager, absent labels, several values and bounds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.mutes.rules.label_matcher import (
    MATCHERS_MOST,
    TEXT_LONGEST,
    BadMatcher,
    LabelMatcher,
    MatchOperator,
    match_all,
    match_nothing_alone,
    matchers_text,
    parse_matchers,
    plain_labels,
)

words = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12)
names = words.filter(bool)
patterns = st.text("ab.*|()c", max_size=8)
plain = st.builds(
    LabelMatcher, names, st.sampled_from([MatchOperator.EQUAL, MatchOperator.NOT_EQUAL]), words
)
labels = st.dictionaries(names, st.frozensets(words, min_size=1, max_size=3), max_size=4)


@given(st.lists(plain, max_size=MATCHERS_MOST))
def test_the_text_of_matchers_parses_to_them(matchers: list[LabelMatcher]) -> None:
    text = matchers_text(matchers)
    if len(text) <= TEXT_LONGEST - 2:
        assert list(parse_matchers(text)) == matchers
        assert list(parse_matchers(f"{{{text}}}")) == matchers


@given(st.lists(plain, max_size=4), labels)
def test_matchers_agree_with_a_model(
    matchers: list[LabelMatcher], given_: dict[str, frozenset[str]]
) -> None:
    def holds(one: LabelMatcher) -> bool:
        is_equal = any(value == one.value for value in given_.get(one.name, [""]))
        return is_equal if one.operator is MatchOperator.EQUAL else not is_equal

    assert match_all(matchers, given_) == (not [one for one in matchers if not holds(one)])


@given(patterns, st.text("abc", max_size=6))
def test_a_regular_expression_is_anchored(pattern: str, value: str) -> None:
    try:
        expected = re.fullmatch(pattern, value) is not None
        one, other = parse_matchers(f'x=~"{pattern}", x!~"{pattern}"')
    except (re.error, BadMatcher):
        return
    assert one.matches({"x": [value]}) is expected
    assert other.matches({"x": [value]}) is not expected


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (" {} ", ""),
        ("severity=page", 'severity="page"'),
        ('{a = "b" , c=~"d|e",}', 'a="b", c=~"d|e"'),
        ('"a b"!="c\\"d\\\\"', '"a b"!="c\\"d\\\\"'),
        ('foo!~"a,b={}"', 'foo!~"a,b={}"'),
    ],
)
def test_the_syntax_of_alertmanager_is_read(text: str, normal: str) -> None:
    assert matchers_text(parse_matchers(text)) == normal


@pytest.mark.parametrize(
    "text",
    [
        *("a", "a=", '="b"', 'a="b" c="d"', 'a="b', '{a="b"', 'a=~"("', 'a="\\x41"', '""="b"'),
        *('a="b",,c="d"', "a==b", f'a="{"x" * TEXT_LONGEST}"', ",".join(["a=b"] * 21), 'a="\x01"'),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(BadMatcher):
        parse_matchers(text)


def test_an_absent_label_is_empty() -> None:
    for text, is_match in (('a=""', True), ('a!="b"', True), ('a=~".*"', True), ('a=~".+"', False)):
        matchers = parse_matchers(text)
        assert match_all(matchers, {}) is is_match
        assert match_nothing_alone(matchers) is not is_match
    assert match_all(parse_matchers('a="b"'), plain_labels({"a": "b"}))


def test_a_label_of_several_values_matches_by_any_and_denies_by_all() -> None:
    found = {"tag": ["db", "eu"]}
    for text, is_match in (('tag="db"', True), ('tag!="db"', False), ('tag!~"d.|x"', False)):
        assert match_all(parse_matchers(text), found) is is_match
