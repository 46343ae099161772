"""The parser of push requests: path, query, messages and warnings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.results.rules.push_request import BadPush, Push, PushKind, read_push

_UNPRINTABLE = "msg: characters that cannot be printed were replaced by spaces"


@given(
    st.text(alphabet="0123456789failstrog/-+ ", max_size=6), st.sampled_from([None, "up", "down"])
)
def test_a_path_is_one_of_those_that_the_interface_has(suffix: str, status: str | None) -> None:
    known = {"": None, "start": True, "log": True, "fail": False, "0": True}
    known |= {str(number): False for number in range(1, 256)}
    found = read_push(suffix, [] if status is None else [status])
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
    found = read_push("fail", ["up", "sideways"])
    assert found == Push(
        PushKind.HEARTBEAT,
        up=False,
        warnings=("status: is ignored, the path takes precedence",),
    )


@given(st.sampled_from(["up", "down"]), st.lists(st.booleans(), min_size=4, max_size=4))
def test_a_status_is_read_in_any_case(word: str, upper: list[bool]) -> None:
    spelt = "".join(char.upper() if big else char for char, big in zip(word, upper, strict=False))
    assert read_push("", [f" {spelt} "]) == Push(PushKind.HEARTBEAT, up=word == "up")
    assert read_push("", [word, spelt]) == read_push("", [word])


@pytest.mark.parametrize("status", ["ok", "1", "upp", "\x00", "\N{LATIN SMALL LETTER SHARP S}"])
def test_a_status_other_than_up_or_down_is_refused(status: str) -> None:
    assert read_push("", [status]) == BadPush("status", "must be up or down")
    assert read_push("", ["up", status]) == BadPush("status", "must be up or down")


def test_two_statuses_that_differ_are_not_guessed() -> None:
    assert read_push("", ["up", "DOWN"]) == BadPush("status", "is given as up and as down")


def test_an_empty_status_counts_as_not_given() -> None:
    found = read_push("", [""])
    assert found == Push(
        PushKind.HEARTBEAT, up=True, warnings=("status: is empty and counts as not given",)
    )
    found = read_push("", ["", "down"])
    assert isinstance(found, Push)
    assert not found.up


@given(
    st.lists(st.text(st.characters(), max_size=300), max_size=3),
    st.lists(st.text(st.characters(), max_size=12), max_size=3),
    st.sampled_from(["", "fail", "0", "7", "start", "log", "FAIL", "Start"]),
)
def test_no_message_and_no_ping_refuses_a_heartbeat(
    message: list[str], ping: list[str], suffix: str
) -> None:
    found = read_push(suffix, [], message, ping)
    assert isinstance(found, Push)
    assert len(found.message) <= 200
    assert found.message.isprintable()
    assert found.ping_ms is None or 0 <= found.ping_ms < 2**31
    assert {w.split(":")[0] for w in found.warnings} <= {"msg", "ping"}
    # A value that is stored unchanged causes no warning.
    if [found.message] == message and [str(found.ping_ms)] == ping:
        assert found.warnings == ()


@pytest.mark.parametrize(
    ("message", "stored", "warnings"),
    [
        ("😀" * 200, "😀" * 200, ()),
        ("😀" * 201, "😀" * 200, ("msg: was cut at 200 characters",)),
        (f"{'a' * 199} b", "a" * 199, ("msg: was cut at 200 characters",)),
        ("done\nin\t3 s\r\n", "done in 3 s", ()),
        ("a\x00b\x1bc\ud800", "a b c", (_UNPRINTABLE,)),
    ],
)
def test_a_message_is_cut_and_cleaned_and_never_refused(
    message: str, stored: str, warnings: tuple[str, ...]
) -> None:
    found = read_push("", message=[message])
    assert found == Push(PushKind.HEARTBEAT, up=True, message=stored, warnings=warnings)


@pytest.mark.parametrize(
    ("ping", "expected"),
    [
        ("0" * 5_000, 0),
        ("0" * 5_000 + "12", 12),
        ("", None),
        ("0", 0),
        ("12", 12),
        ("12.4", 12),
        ("12.5", 13),
        ("0007", 7),
    ],
)
def test_a_ping_is_in_milliseconds_and_may_be_empty(ping: str, expected: int | None) -> None:
    assert read_push("", ping=[ping]) == Push(PushKind.HEARTBEAT, up=True, ping_ms=expected)


@pytest.mark.parametrize(
    "ping", ["-1", "1e3", "NaN", "inf", "x", ".", "1.", ".5", "1.2.3", "٣", "2147483647", "9" * 99]
)
def test_an_invalid_ping_is_ignored_with_a_warning(ping: str) -> None:
    found = read_push("", ping=[ping])
    assert isinstance(found, Push)
    assert found.ping_ms is None
    (warning,) = found.warnings
    assert warning.startswith("ping: is ignored, must be ")


def test_of_a_repeated_parameter_the_first_value_counts() -> None:
    found = read_push("", message=["a", "b"], ping=["1", "2"])
    assert isinstance(found, Push)
    assert (found.message, found.ping_ms) == ("a", 1)
    assert found.warnings == (
        "msg: is given more than once, the first value counts",
        "ping: is given more than once, the first value counts",
    )
