"""An event stream is parsed equally for every segmentation, and as the WHATWG standard
defines it.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.kinds.canary.sse import EVENT_BYTES_MOST, Event, EventReader, EventTooLarge

LINES = [
    b"", b"data", b"data:", b"data: a", b"data:  b", b"data:\xc3\xa9", b"data: \xff\xc3",
    b"data: \0", b"event: done", b"event:", b"event", b"event: \xe2\x82\xac", b"id: 7", b"id",
    b"id: a\0b", b"retry: 50", b"retry: 5s", b"retry:", b"retry: \xd9\xa3", b": comment", b":",
    b"unknown: x", b"Data: x", b" data: x", b"\xef\xbb\xbfdata: bom", b"data: \xef\xbb\xbf",
]  # fmt: skip
streams = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(LINES), st.sampled_from([b"\n", b"\r", b"\r\n"])).map(b"".join),
        st.binary(max_size=8),
    ),
    max_size=30,
).map(b"".join)


def parsed_at_once(stream: bytes) -> tuple[list[Event], str, int | None]:
    """Parses the whole text with the steps of the standard, one after the other."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    *lines, _unfinished = re.split(r"\r\n|\r|\n", text)
    events, last_id, retry = [], "", None
    data = kind = ""
    id_ = ""
    for line in lines:
        if line == "":
            last_id = id_
            if data != "":
                events.append(Event(kind or "message", data.removesuffix("\n")))
            data = kind = ""
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data += value + "\n"
            elif name == "event":
                kind = value
            elif name == "id" and "\0" not in value:
                id_ = value
            elif name == "retry" and value.isascii() and value.isdigit():
                retry = int(value)
    return events, last_id, retry


@given(streams, st.data())
def test_the_segmentation_does_not_change_the_events(stream: bytes, data: st.DataObject) -> None:
    events = EventReader()
    found: list[Event] = []
    left = stream
    while left:
        size = data.draw(st.integers(0, len(left)))
        found += events.feed(left[:size])
        left = left[size:]
    assert (found, events.last_id, events.retry_ms) == parsed_at_once(stream)


@given(streams)
def test_single_bytes_give_the_same_events(stream: bytes) -> None:
    events = EventReader()
    found = [event for byte in stream for event in events.feed(bytes([byte]))]
    assert (found, events.last_id, events.retry_ms) == parsed_at_once(stream)


def test_an_event_ends_with_its_blank_line() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        events = EventReader()
        assert events.feed(b"data: 1" + end) == []
        assert events.feed(end[:1]) == [Event("message", "1")]
        assert events.feed(end[1:] + b"data: 2" + end + end) == [Event("message", "2")]


def test_an_event_needs_data_which_can_be_empty() -> None:
    assert EventReader().feed(b"event: done\n\n") == []
    assert EventReader().feed(b"event: done\ndata\n\n") == [Event("done", "")]
    assert EventReader().feed(b"event: done\n\ndata: 1\n\n") == [Event("message", "1")]


def test_the_last_id_belongs_to_complete_events_and_is_kept() -> None:
    events = EventReader("5")
    events.feed(b"id: 6\ndata: torn")
    assert events.last_id == "5"
    events.feed(b"\n\n")
    assert events.last_id == "6"
    events.feed(b"id: 7\n\n")
    assert events.last_id == "7", "an event without data sets the last id"
    events.feed(b"id: a\0b\n\n")
    assert events.last_id == "7"


@pytest.mark.parametrize("line", [b"x", b"data: x", b"event: x", b"id: x", b"data:"])
def test_an_oversized_event_is_refused(line: bytes) -> None:
    with pytest.raises(EventTooLarge):
        EventReader().feed(line + b"x" * EVENT_BYTES_MOST)
    with pytest.raises(EventTooLarge):
        EventReader().feed((line + b"\n") * EVENT_BYTES_MOST)


def test_events_of_the_maximum_size_are_accepted() -> None:
    longest = b"data:" + b"x" * (EVENT_BYTES_MOST - 6)
    events = EventReader()
    assert len(events.feed((longest + b"\n\n") * 3)) == 3
    for _ in range(10_000):
        events.feed(b": still here\n")
    assert events.feed(b"data: 1\n\n") == [Event("message", "1")]
