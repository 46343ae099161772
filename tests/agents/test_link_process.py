"""The connection state of an agent, computed from the responses of the server."""

from leadline.daemon.agent.connection_state import (
    FAILURES,
    SILENT_US,
    ConnectionState,
    ConnectionTracker,
    Question,
)


def test_before_any_answer_the_agent_is_new_and_not_cut_off() -> None:
    link = ConnectionTracker()
    for _ in range(9):
        link.failed(Question.HEARTBEAT)
    assert link.standing(10**12) is ConnectionState.NEW
    assert link.silent_us(10**12) == 0


def test_two_failures_of_one_question_are_a_cut_and_one_is_not() -> None:
    link = ConnectionTracker()
    link.answered(Question.HEARTBEAT, 0)
    link.failed(Question.CLAIM)
    link.failed(Question.HEARTBEAT)
    assert link.standing(1) is ConnectionState.CONNECTED
    link.failed(Question.CLAIM)
    assert FAILURES == 2
    assert link.standing(1) is ConnectionState.CUT_OFF


def test_a_server_without_jobs_is_unreachable_despite_heartbeats() -> None:
    link = ConnectionTracker()
    link.answered(Question.HEARTBEAT, 0)
    link.failed(Question.CLAIM)
    link.answered(Question.HEARTBEAT, 1)
    link.failed(Question.CLAIM)
    link.answered(Question.HEARTBEAT, 2)
    assert link.standing(3) is ConnectionState.CUT_OFF
    link.answered(Question.CLAIM, 4)
    assert link.standing(4) is ConnectionState.CONNECTED


def test_silence_is_a_cut_while_questions_still_wait() -> None:
    link = ConnectionTracker()
    link.answered(Question.CLAIM, 100)
    assert link.standing(100 + SILENT_US - 1) is ConnectionState.CONNECTED
    assert link.standing(100 + SILENT_US) is ConnectionState.CUT_OFF
    assert link.silent_us(100 + SILENT_US) == SILENT_US


def test_a_refused_agent_stays_refused_until_a_response() -> None:
    link = ConnectionTracker()
    link.answered(Question.CLAIM, 0)
    link.refused()
    link.failed(Question.CLAIM)
    assert link.standing(SILENT_US * 2) is ConnectionState.REFUSED
    link.answered(Question.HEARTBEAT, SILENT_US * 2)
    assert link.standing(SILENT_US * 2) is ConnectionState.CONNECTED
