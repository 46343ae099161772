"""How a delivery ends, and the one way over HTTP that senders share.

It keeps true: a reason is one of a bounded set, perhaps with a status; no URL, body or secret is
ever in it. Redirects are not followed: whoever is named is told, and nobody else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import httpx
import msgspec

from ..check.failure import LocalFailure, TargetFailure
from ..check.result import FailureClass
from ..check.target import BadTarget, Url, read_url
from ..net.egress import Egress
from ..net.egress_httpx import send_request

SEND_SECONDS: Final = 10.0
# What of an answer is read: the names that services give to messages are short.
ANSWER_BYTES_MOST: Final = 16 * 1024
RETRY_AFTER_MOST_SECONDS: Final = 3_600
# Answers of 4xx that another try may well change (RFC 9110, 15.5.9; RFC 8470; RFC 6585).
_WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429})


class SendFailure(StrEnum):
    """REFUSED: the service said no, and will again; BLOCKED: our own policy did."""

    REFUSED = "refused"
    RETRY = "retry"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Delivered:
    """`thread` is what later messages of the incident refer to, where the service has such a thing;
    `note` tells what was left out, in bounded words."""

    thread: str = ""
    note: str = ""


class NotDelivered(Exception):
    """`retry_after` is what the service asked for, in seconds, bounded."""

    def __init__(self, verdict: SendFailure, reason: str, retry_after: int | None = None) -> None:
        super().__init__(verdict, reason)
        self.verdict = verdict
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMail:
    """The mail server. `reach` is a way of its own: the operator named the server, and it often
    stands in a private network, where no channel may lead."""

    host: str
    port: int
    sender: str
    reach: Egress
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendContext:
    """What senders go out with: a guarded way, the mail server if there is one, and what time it
    is, in µs since the epoch. `stranger` leads to what anybody on the internet may name: never
    into a private network, whatever the operator allows; without it nobody is led there. A mail
    server that is named later is gone to by `to_mail_server`."""

    reach: Egress
    now: Callable[[], int]
    mail: OutgoingMail | None = None
    stranger: Egress | None = None
    to_mail_server: Egress | None = None


async def post_json(
    means: SendContext, url: str, document: Any, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """The answer, which is a 2xx."""
    body = msgspec.json.encode(document)
    return await post(means, url, body, {"Content-Type": "application/json", **(headers or {})})


async def post(
    means: SendContext, url: str, body: bytes, headers: Mapping[str, str]
) -> httpx.Response:
    response = await send_request(
        means.reach,
        "POST",
        _url(url),
        headers=headers,
        body=body,
        bytes_most=ANSWER_BYTES_MOST,
        seconds=SEND_SECONDS,
    )
    if not response.is_success:
        raise by_status(response.status_code, response.headers.get("retry-after", ""))
    return response


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """The JSON object that came back, empty where it is none: only names are looked for in it."""
    try:
        found = msgspec.json.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def by_status(status: int, retry_after: str = "") -> NotDelivered:
    is_no = 400 <= status <= 499 and status not in _WORTH_ANOTHER_TRY
    verdict = SendFailure.REFUSED if is_no or 300 <= status <= 399 else SendFailure.RETRY
    return NotDelivered(verdict, f"http_status {status}", None if is_no else _seconds(retry_after))


def _seconds(text: str) -> int | None:
    """What is no count of seconds says nothing; of a long one only its length is read."""
    if not (text.isascii() and text.isdigit()):
        return None
    return min(int(text[:5]), RETRY_AFTER_MOST_SECONDS)


def renamed(failure: TargetFailure | LocalFailure) -> NotDelivered:
    """The words of reaching out as those of delivering. What is our own trouble is tried again."""
    if isinstance(failure, LocalFailure):
        return NotDelivered(SendFailure.RETRY, str(failure.reason))
    if failure.failure is FailureClass.TARGET_BLOCKED:
        return NotDelivered(SendFailure.BLOCKED, str(failure.failure))
    return NotDelivered(SendFailure.RETRY, str(failure.failure))


def _url(text: str) -> Url:
    try:
        return read_url(text)
    except BadTarget:
        # Stored by another version, and not to be read by this one.
        raise NotDelivered(SendFailure.REFUSED, "bad_definition") from None
