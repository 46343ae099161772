"""A cursor of a list is read as it was written, and every other text is refused."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.wire.cursor import page_limit, read_cursor, write_cursor
from leadline.http.wire.errors import Problem

_NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3)
BOUND = ("changes", 1, "ci")


@given(after=_NUMBERS)
def test_a_cursor_is_read_only_for_its_own_list(after: list[int]) -> None:
    text = write_cursor(after, BOUND)
    assert read_cursor(text, BOUND, len(after)) == tuple(after)
    for bound, numbers in ((("changes", 1, "cd"), len(after)), (BOUND, len(after) + 1)):
        with pytest.raises(Problem, match="cursor_invalid"):
            read_cursor(text, bound, numbers)


@given(after=_NUMBERS, at=st.integers(0, 8), flip=st.integers(1, 255))
def test_a_changed_cursor_is_refused(after: list[int], at: int, flip: int) -> None:
    text = write_cursor(after, BOUND)
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[at] ^= flip
    forged = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    with pytest.raises(Problem, match="cursor_invalid"):
        read_cursor(forged, BOUND, len(after))


@given(text=st.text(max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="cursor_invalid"):
        read_cursor(text, BOUND, 1)


def test_the_first_page_needs_no_cursor() -> None:
    assert read_cursor(None, BOUND, 2) is None


def test_a_cursor_of_version_1_is_still_read() -> None:
    """Version 1: its digit, eight bytes of the hash of the list, eight of the instant."""
    assert read_cursor("AVoCRHxWduKlAAZHmL19wAA", ("runs", 1), 1) == (1_767_571_200_000_000,)


@pytest.mark.parametrize("text", ["0", "201", "-1", "1.0", "", " 1", "1e2", "\u0661", "9" * 11])
def test_the_limit_of_a_page_is_1_to_200(text: str) -> None:
    with pytest.raises(Problem, match="limit_invalid"):
        page_limit(text)
    assert [page_limit(size) for size in ("1", "050", "200")] == [1, 50, 200]
