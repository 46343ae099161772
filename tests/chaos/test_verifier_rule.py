"""The verifier accepts a correct history, and finds each kind of lie in it."""

from copy import deepcopy
from typing import Any

import pytest

from .verifier import (
    Answer,
    Expectation,
    text_of,
    verify_pushes,
    verify_results,
    verify_windows,
)

START = 1_700_000_000.0
STEPS = 20
INTERVAL, TIMEOUT = 5.0, 2.0
Record = dict[str, Any]


def answers() -> list[Answer]:
    """One answer in each window; every fourth one is 503."""
    found = []
    for step in range(STEPS):
        at = START + step * INTERVAL + 0.02
        found.append(Answer(at, at + 0.001, 503 if step % 4 == 0 else 200))
    return found


def windows() -> list[Record]:
    return [
        {"due_at": text_of(START + step * INTERVAL), "verdict": "covered"} for step in range(STEPS)
    ]


def beats() -> list[Record]:
    found = []
    for step in range(STEPS):
        up = step % 4 != 0
        beat = {"ts": text_of(START + step * INTERVAL + 0.01), "up": up, "msg": "", "code": 200}
        found.append(beat if up else {**beat, "code": 503, "msg": "http_status 127.0.0.1"})
    return found


EXPECTED = Expectation("m", "id", INTERVAL, TIMEOUT, answers())
UNTIL = START + STEPS * INTERVAL


def violations(windows: list[Record], beats: list[Record], of: Expectation = EXPECTED) -> list[str]:
    return verify_windows(of, windows, START, UNTIL) + verify_results(of, windows, beats)


def test_a_correct_history_has_no_violation() -> None:
    assert violations(windows(), beats()) == []


def test_a_missed_window_is_no_violation() -> None:
    some = windows()
    some[3]["verdict"] = "missed"
    assert violations(some, [beat for n, beat in enumerate(beats()) if n != 3]) == []


@pytest.mark.parametrize("lost", [0, 7, STEPS - 1])
def test_a_window_that_was_never_reserved_is_found(lost: int) -> None:
    some = windows()
    del some[lost]
    assert len(violations(some, beats())) == 1


def test_a_window_with_two_rows_is_found() -> None:
    some = windows()
    some.insert(5, deepcopy(some[5]))
    assert any("two windows" in one for one in violations(some, beats()))


def test_a_window_without_a_verdict_is_found() -> None:
    some = windows()
    some[5]["verdict"] = "reserved"
    assert any("is reserved" in one for one in violations(some, beats()))


def test_a_lost_result_is_found() -> None:
    some = beats()
    del some[9]
    assert any("without a result" in one for one in violations(windows(), some))


def test_a_false_up_is_found() -> None:
    some = beats()
    some[4] |= {"up": True, "code": 200}
    assert any("answered [503]" in one for one in violations(windows(), some))


@pytest.mark.parametrize("code", [503, None])
def test_a_false_down_is_found(code: int | None) -> None:
    some = beats()
    some[5] |= {"up": False, "code": code, "msg": "timeout 127.0.0.1"}
    assert len(violations(windows(), some)) == 1


def test_a_down_without_a_request_is_found() -> None:
    some = beats()
    some[5] |= {"up": False, "code": None, "msg": "timeout 127.0.0.1"}
    silent = [answer for n, answer in enumerate(answers()) if n != 5]
    of = Expectation("m", "id", INTERVAL, TIMEOUT, silent)
    assert any("no request" in one for one in violations(windows(), some, of))


def test_a_slow_answer_permits_a_timeout() -> None:
    some = beats()
    some[5] |= {"up": False, "code": None, "msg": "timeout 127.0.0.1"}
    slow = answers()
    slow[5] = Answer(slow[5].asked_at, slow[5].asked_at + 3, 200)
    of = Expectation("m", "id", INTERVAL, TIMEOUT, slow)
    assert violations(windows(), some, of) == []


@pytest.mark.parametrize(("stored", "found"), [(0, 1), (1, 0), (2, 1)])
def test_a_push_is_stored_exactly_once(stored: int, found: int) -> None:
    beat = {"ts": text_of(START), "up": True, "msg": "p1"}
    assert len(verify_pushes("j", {"p1": START}, [beat] * stored, UNTIL)) == found


def test_a_push_after_the_end_is_not_verified() -> None:
    assert verify_pushes("j", {"p1": UNTIL}, [], UNTIL) == []
