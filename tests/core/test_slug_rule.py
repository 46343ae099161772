"""Any name gives a valid slug."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.slug import free_slug, is_slug, slug_of

PATTERN = re.compile(r"\A[a-z][a-z0-9-]{0,62}\Z")


@given(st.text())
def test_every_name_gets_a_slug(name: str) -> None:
    assert PATTERN.match(slug_of(name))


@given(st.text(alphabet="aZ09-_é\n", max_size=70))
def test_the_check_is_the_pattern(text: str) -> None:
    assert is_slug(text) == bool(PATTERN.match(text))


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("API gateway", "api-gateway"),
        ("  Café «Größe»  ", "cafe-grosse"),
        ("https://shop.example/checkout?x=1", "https-shop-example-checkout-x-1"),
        ("2nd database", "monitor-2nd-database"),
        ("監視", "monitor"),
        ("", "monitor"),
        ("x" * 80, "x" * 63),
    ],
)
def test_a_slug_reads_like_its_name(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@given(st.from_regex(PATTERN), st.integers(0, 12))
def test_a_taken_slug_is_numbered_and_stays_a_slug(wanted: str, how_many: int) -> None:
    taken: set[str] = set()
    for _ in range(how_many):
        slug = free_slug(wanted, taken)
        assert PATTERN.match(slug)
        assert slug not in taken
        taken.add(slug)


def test_the_numbers_begin_at_two() -> None:
    assert free_slug("api", {"api", "api-2"}) == "api-3"
