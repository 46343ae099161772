"""The verifier accepts a correct history, and finds each kind of lie in it."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from .verifier import (
    Answer,
    Expectation,
    GateAnswer,
    Hook,
    text_of,
    verify_bundle,
    verify_gate,
    verify_hooks,
    verify_outages,
    verify_pushes,
    verify_results,
    verify_silence,
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


def test_a_late_run_does_not_stand_for_two_windows() -> None:
    """The run of the ninth window begins when the tenth one is due, beside its own."""
    some = beats()
    some[9]["ts"] = text_of(START + 10 * INTERVAL + 0.015)
    seen = answers()
    seen[9] = replace(seen[10], asked_at=seen[10].asked_at + 0.001)
    of = replace(EXPECTED, answers=seen)
    assert violations(windows(), some, of) == []
    del some[9]
    assert len(violations(windows(), some, of)) == 1


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


@pytest.mark.parametrize(("sent_before", "found"), [(0.5, 0), (2, 1), (4, 1), (5.5, 0), (7, 0)])
def test_a_push_that_was_sent_before_its_deadline_was_not_missed(
    sent_before: float, found: int
) -> None:
    missed = {"ts": text_of(START), "up": False, "msg": "push_missed"}
    sent = {"p1": START - 60, "p2": START - sent_before, "p3": START + 3}
    assert len(verify_silence("j", sent, [missed], 6)) == found
    assert verify_silence("j", sent, [missed | {"msg": "timeout"}], 6) == []


def test_a_push_after_the_end_is_not_verified() -> None:
    assert verify_pushes("j", {"p1": UNTIL}, [], UNTIL) == []


def test_a_timeout_while_the_target_was_unreachable_is_no_violation() -> None:
    some = beats()
    some[5] |= {"up": False, "code": None, "msg": "timeout 127.0.0.1"}
    at = START + 5 * INTERVAL
    cut = replace(EXPECTED, unreachable=[(at + 1, at + 9)])
    assert violations(windows(), some, cut) == []
    before = replace(EXPECTED, unreachable=[(at - 9, at - 1)])
    assert len(violations(windows(), some, before)) == 1


def test_a_cut_excuses_no_wrong_status() -> None:
    some = beats()
    some[5] |= {"up": False, "code": 500, "msg": "http_status 127.0.0.1"}
    cut = replace(EXPECTED, unreachable=[(START, UNTIL)])
    assert len(violations(windows(), some, cut)) == 1


def test_a_freeze_between_the_claim_and_the_start_explains_a_late_run() -> None:
    some = beats()
    late = START + 7 * INTERVAL
    # The runs of the windows 5 and 6 begin together, 10 s after the first of them was due.
    some[5]["ts"] = some[6]["ts"] = text_of(late + 0.3)
    claimed = START + 5 * INTERVAL + 4.9
    only = [beat for beat in some if beat["up"]]
    assert len(violations(windows(), some)) > 0
    frozen = replace(EXPECTED, freezes=[(claimed, late)])
    assert violations(windows(), some, frozen) == []
    early = replace(EXPECTED, freezes=[(START, START + 5 * INTERVAL)])
    assert violations(windows(), some, early) == violations(windows(), some)
    assert len(violations(windows(), only, frozen)) > 0


def test_only_the_end_of_an_isolation_explains_a_timeout() -> None:
    some = beats()
    some[5] |= {"up": False, "code": None, "msg": "timeout 127.0.0.1"}
    at = START + 5 * INTERVAL
    assert violations(windows(), some, replace(EXPECTED, healed=[at + 1.5])) == []
    assert len(violations(windows(), some, replace(EXPECTED, healed=[at + 30]))) == 1


MONITOR, SERVICE = "the-monitor", "the-service"


def incidents() -> list[Record]:
    """One incident for every failed result of `beats`, resolved by the next one."""
    return [
        {
            "id": f"i{number}",
            "number": number,
            "monitor_id": MONITOR,
            "seq": 2,
            "started_at": text_of(START + step * INTERVAL + 0.01),
            "created_at": text_of(START + step * INTERVAL + 0.1),
            "resolved_at": text_of(START + (step + 1) * INTERVAL + 0.1),
        }
        for number, step in enumerate(range(0, STEPS, 4), 1)
    ]


def hooks() -> list[Hook]:
    found = []
    for incident in incidents():
        at, identifier = incident["number"] * 100.0, incident["id"]
        for seq in (1, 2):
            hook = Hook(at + seq, f"{identifier}-{seq}", "incident.updated", identifier, seq)
            found.append(hook)
    return found


def test_correct_incidents_and_webhooks_have_no_violation() -> None:
    assert verify_outages(incidents(), {MONITOR: beats()}, START - 1) == []
    assert verify_hooks(hooks(), incidents()) == []


def test_an_incident_without_a_failure_is_found() -> None:
    some = beats()
    some[4] |= {"up": True}
    assert len(verify_outages(incidents(), {MONITOR: some}, START - 1)) == 1


def test_a_second_incident_of_one_outage_is_found() -> None:
    some = beats()
    for beat in some[5:8]:
        beat |= {"up": False}
    assert len(verify_outages(incidents(), {MONITOR: some}, START - 1)) == 1


@pytest.mark.parametrize("lost", [0, 3])
def test_a_lost_webhook_is_found(lost: int) -> None:
    some = [hook for n, hook in enumerate(hooks()) if n != lost]
    assert len(verify_hooks(some, incidents())) == 1


def test_webhooks_out_of_order_are_found() -> None:
    first, second, *others = hooks()
    swapped = [replace(first, at=second.at), replace(second, at=first.at), *others]
    assert len(verify_hooks(swapped, incidents())) == 1


def test_a_repeated_delivery_is_no_violation_and_a_second_one_is() -> None:
    late = replace(hooks()[0], at=9_999.0)
    assert verify_hooks([*hooks(), late], incidents()) == []
    again = replace(late, delivery="other")
    assert len(verify_hooks([*hooks(), again], incidents())) == 1


def gate(fresh_until: float | None, asked_at: float = START, action: str = "ALLOW") -> GateAnswer:
    body = {
        "action": action,
        "evaluated_at": text_of(asked_at),
        "facts_fresh_until": None if fresh_until is None else text_of(fresh_until),
    }
    return GateAnswer(asked_at, asked_at + 0.1, body)


@pytest.mark.parametrize(("fresh_until", "found"), [(START + 60, 0), (START - 60, 1), (None, 1)])
def test_the_gate_allows_on_fresh_facts_only(fresh_until: float | None, found: int) -> None:
    assert len(verify_gate([gate(fresh_until)], [], SERVICE, {})) == found
    assert verify_gate([gate(fresh_until, action="BLOCK")], [], SERVICE, {}) == []


@pytest.mark.parametrize(("seconds", "found"), [(-1, 0), (2, 1), (6, 0)])
def test_the_gate_does_not_allow_during_an_incident(seconds: float, found: int) -> None:
    of_service = {**incidents()[0], "service_id": SERVICE}
    answer = gate(UNTIL, START + seconds)
    assert len(verify_gate([answer], [of_service], SERVICE, {"i1": START + 0.1})) == found
    assert verify_gate([answer], [of_service], SERVICE, {"i1": START + 9}) == []


@pytest.mark.parametrize(
    ("timeouts", "unknown", "acknowledged", "found"),
    [
        ([3, 3], set(), 3, 0),
        ([2, 2], {2}, 3, 0),
        ([2, 2], set(), 3, 1),
        ([3, 2], {2}, 3, 1),
        ([3], set(), 3, 1),
        ([], set(), 3, 1),
        ([], {2}, 1, 0),
    ],
)
def test_an_application_of_a_bundle_is_in_force_as_a_whole(
    timeouts: list[int], unknown: set[int], acknowledged: int, found: int
) -> None:
    assert len(verify_bundle(timeouts, 2, unknown, acknowledged)) == found
