"""A stored notification keeps its text, with any content."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import Instant
from leadline.storage.notifications.rules.notification import (
    BadPayload,
    Notification,
    document_text,
    link_of,
    page_of,
    page_text,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"u0\0'), max_size=30)
PAGES = st.builds(
    Notification,
    event=TEXT,
    status=st.sampled_from(["down", "recovered"]),
    severity=st.sampled_from(["none", "minor", "major", "critical"]),
    title=TEXT,
    lines=st.lists(TEXT, max_size=3).map(tuple),
    why=TEXT,
    since=st.none() | st.integers(-(2**62), 2**62).map(Instant),
    path=TEXT,
)


def clean(text: str) -> str:
    return text.replace("\0", "\ufffd")


@given(PAGES)
def test_a_page_is_restored_without_nul_characters(page: Notification) -> None:
    text = page_text(page)
    # PostgreSQL refuses the escape sequence of NUL.
    assert "\0" not in json.dumps(json.loads(text), ensure_ascii=False)
    back = page_of(text)
    assert back.title == clean(page.title)
    assert back.lines == tuple(clean(line) for line in page.lines)
    assert (back.since, back.status, back.severity) == (page.since, page.status, page.severity)


@given(st.dictionaries(TEXT, TEXT, max_size=4), st.integers(1, 2**31))
def test_a_document_names_its_event_and_its_place(payload: dict[str, str], seq: int) -> None:
    found = json.loads(document_text("incident.updated", {**payload, "seq": seq}))
    assert found["event"] == "incident.updated"
    assert found["seq"] == seq


@pytest.mark.parametrize("payload", [{}, {"seq": None}, {"seq": "1"}])
def test_a_document_needs_a_sequence_number(payload: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="seq"):
        document_text("incident.updated", payload)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"event": 1}', "[" * 20_000])
def test_an_invalid_payload_is_refused(text: str) -> None:
    with pytest.raises(BadPayload):
        page_of(text)


def test_a_page_with_an_unknown_status_is_refused() -> None:
    text = page_text(
        Notification(
            event="e",
            status="down",
            severity="none",
            title="",
            lines=(),
            why="",
            since=None,
            path="/",
        )
    )
    with pytest.raises(BadPayload):
        page_of(text.replace('"down"', '"sideways"'))


def test_a_link_is_absolute_or_empty() -> None:
    assert link_of("https://up.example.com/", "/incidents/1") == (
        "https://up.example.com/incidents/1"
    )
    assert link_of("", "/incidents/1") == ""
