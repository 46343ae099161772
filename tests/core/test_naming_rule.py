"""The characters that names cannot contain, and the form of an e-mail address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.naming import email_fault, name_fault, slug_fault, words_fault

CONTROLS = [chr(n) for n in (*range(0x20), *range(0x7F, 0xA0))]


@given(st.text(max_size=210), st.sampled_from([*CONTROLS, "\ud800", "\udfff"]), st.integers(0, 210))
def test_a_name_with_a_control_character_or_surrogate_is_refused(
    text: str, bad: str, place: int
) -> None:
    spoilt = text[:place] + bad + text[place:]
    assert name_fault(spoilt) is not None
    assert words_fault(spoilt) is not None


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200))
def test_any_other_text_of_200_characters_may_be_a_name_unless_it_is_blank(text: str) -> None:
    assert words_fault(text) is None
    assert (name_fault(text) is None) == (text.strip() != "")


@pytest.mark.parametrize("text", ["x" * 201, " " * 201])
def test_a_name_has_at_most_200_characters(text: str) -> None:
    assert name_fault(text) is not None


@pytest.mark.parametrize("text", ["a@b", "admin@localhost", "ünï@exämple.org", "a+b@c.d"])
def test_an_address_is_one(text: str) -> None:
    assert email_fault(text) is None


@pytest.mark.parametrize("text", ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@b\n", "a\0@b", "\ta@b"])
def test_an_invalid_address_is_refused(text: str) -> None:
    assert email_fault(text) is not None


def test_a_slug_is_the_whole_of_the_text() -> None:
    assert slug_fault("a-1") is None
    assert slug_fault("a-1\n") is not None
