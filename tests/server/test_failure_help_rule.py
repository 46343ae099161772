"""Text of a failure: what failed in words, the code and the host."""

import pytest

from leadline.http.ui.failure_help import FAILURES, REFUSALS, failure_sentence


@pytest.mark.parametrize(
    ("message", "code", "kind", "said"),
    [
        ("http_status shop.example", 503, "http", "Unexpected HTTP status 503 (shop.example)"),
        ("http_status shop.example", None, "http", "Unexpected HTTP status (shop.example)"),
        (
            "connect_refused 127.0.0.1",
            None,
            "tcp",
            "The host refused the connection: the port is closed (127.0.0.1)",
        ),
        (
            "protocol_error db.example",
            1045,
            "mysql",
            "Unexpected protocol response (error 1045) (db.example)",
        ),
        ("push_missed", None, "push", "No heartbeat arrived in time"),
        ("push_overrun", None, "push", "A run of the job took longer than its limit"),
        ("backup of my_db failed", 7, "push", "backup of my_db failed (exit status 7)"),
        ("", 3, "push", "failed (exit status 3)"),
        ("later_class host", None, "http", "later class (host)"),
        ("", None, "http", "failed"),
        (None, None, "http", "failed"),
    ],
)
def test_a_failure_is_a_sentence(message: str, code: int, kind: str, said: str) -> None:
    assert failure_sentence(message, code, kind) == said


@pytest.mark.parametrize("failure", [*FAILURES, *REFUSALS])
def test_each_failure_class_has_one_sentence_without_a_period(failure: str) -> None:
    said = failure_sentence(failure, None, "http")
    assert said
    assert ". " not in said
    assert not said.endswith(".")
