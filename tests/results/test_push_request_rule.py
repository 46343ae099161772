"""What a push says, by its path and its query."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.results.rules.push_request import BadPush, Push, PushKind, read_push


@given(
    st.text(alphabet="0123456789failstrog/-+ ", max_size=6), st.sampled_from([None, "up", "down"])
)
def test_a_path_is_one_of_those_that_the_interface_has(suffix: str, status: str | None) -> None:
    known = {"": None, "start": True, "log": True, "fail": False, "0": True}
    known |= {str(number): False for number in range(1, 256)}
    found = read_push(suffix, status)
    if suffix not in known:
        assert found == BadPush("")
        return
    assert isinstance(found, Push)
    assert found.up == (status != "down" if suffix == "" else known[suffix])
    assert found.covers == (suffix not in ("start", "log"))
    assert found.code == (int(suffix) if suffix.isdigit() else None)


def test_marks_cover_nothing() -> None:
    assert read_push("start") == Push(PushKind.START, up=True)
    assert not Push(PushKind.LOG, up=True).covers


def test_the_path_wins_over_the_query() -> None:
    found = read_push("fail", "up")
    assert isinstance(found, Push)
    assert not found.up


@pytest.mark.parametrize("status", ["", "UP", "ok", "1"])
def test_another_status_is_refused_by_name(status: str) -> None:
    assert read_push("", status) == BadPush("status", "must be up or down")


def test_a_message_has_two_hundred_code_points_and_no_control_characters() -> None:
    assert read_push("", message="😀" * 200) == Push(
        PushKind.HEARTBEAT, up=True, message="😀" * 200
    )
    for message in ("😀" * 201, "a\x00b", "a\x1bb", "\ud800"):
        found = read_push("", message=message)
        assert isinstance(found, BadPush)
        assert found.field == "msg"


def test_the_line_ends_of_a_job_s_output_do_not_lose_the_heartbeat() -> None:
    found = read_push("", message="done\nin\t3 s\r\n")
    assert isinstance(found, Push)
    assert found.message == "done in 3 s"


@pytest.mark.parametrize(
    ("ping", "expected"),
    [(None, None), ("", None), ("0", 0), ("12", 12), ("12.4", 12), ("12.5", 13), ("0007", 7)],
)
def test_a_ping_is_in_milliseconds_and_may_be_empty(ping: str | None, expected: int | None) -> None:
    assert read_push("", ping=ping) == Push(PushKind.HEARTBEAT, up=True, ping_ms=expected)


@pytest.mark.parametrize(
    "ping", ["-1", "1e3", "NaN", "inf", "x", ".", "1.", ".5", "1.2.3", "٣", "2147483647", "9" * 99]
)
def test_a_ping_that_is_no_number_of_milliseconds_is_refused(ping: str) -> None:
    found = read_push("", ping=ping)
    assert isinstance(found, BadPush)
    assert found.field == "ping"
