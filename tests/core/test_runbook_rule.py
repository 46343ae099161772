"""URLs of runbooks: the rule, and the line of a message that names one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders.message import Message, NotificationStatus, body_lines, plain_text
from leadline.storage.core.runbook import RUNBOOK_LONGEST, runbook_fault

URL = "https://wiki.example/runbooks/shop?from=leadline#restart"


@pytest.mark.parametrize("text", ["", URL, "http://wiki.internal:8080/"])
def test_http_urls_and_nothing_are_valid(text: str) -> None:
    assert runbook_fault(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "javascript:alert(1)",
        "ftp://wiki.example/",
        "/runbooks/shop",
        "wiki.example",
        "https://",
        "https://user:secret@wiki.example/",
        "https://wiki.example/\n",
        "https://wiki.example/" + "x" * RUNBOOK_LONGEST,
    ],
)
def test_other_texts_are_refused_with_a_reason(text: str) -> None:
    assert runbook_fault(text)


@given(st.lists(st.text(max_size=600), max_size=2), st.text(max_size=600))
def test_no_other_part_of_a_message_truncates_the_runbook(lines: list[str], why: str) -> None:
    longest = "https://wiki.example/".ljust(RUNBOOK_LONGEST, "x")
    message = Message(
        id="1",
        key="1",
        event="incident.opened",
        status=NotificationStatus.DOWN,
        title="Shop is down" * 20,
        lines=tuple(lines),
        why=why,
        conditions=("[STATUS] == 200 (503)" * 30,) * 20,
        runbook_url=longest,
    )
    assert f"Runbook: {longest}" in body_lines(message)
    # The shortest limit of a service, in characters.
    assert longest in plain_text(message, 2_048)
