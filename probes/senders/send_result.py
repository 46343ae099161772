"""Outcome of a delivery, and the HTTP request that senders share.

Invariant: a reason is one of a bounded set, possibly with a status, and contains no URL, body or
secret. Redirects are not followed, so that only the named host receives the request.
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
from .gateway_settings import PhoneGateway

SEND_SECONDS: Final = 10.0
# Limit of the response: only short names of messages are read from it.
ANSWER_BYTES_MOST: Final = 16 * 1024
RETRY_AFTER_MOST_SECONDS: Final = 3_600
# 4xx statuses for which a retry may succeed (RFC 9110, 15.5.9; RFC 8470; RFC 6585).
_WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429})


class SendFailure(StrEnum):
    """REFUSED: the service refuses permanently. BLOCKED: our egress policy refuses."""

    REFUSED = "refused"
    RETRY = "retry"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Delivered:
    """Successful delivery.

    `thread` is the id for later messages of the incident, if the service has threads. `note` names
    omitted parts, with bounded length.
    """

    thread: str = ""
    note: str = ""


class NotDelivered(Exception):
    """Failed delivery. `retry_after` is the requested delay in seconds, bounded."""

    def __init__(self, verdict: SendFailure, reason: str, retry_after: int | None = None) -> None:
        super().__init__(verdict, reason)
        self.verdict = verdict
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingMail:
    """Mail server, with its own egress, because it is often in a private network.

    The operator names the server. No channel may reach that network.
    """

    host: str
    port: int
    sender: str
    reach: Egress
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendContext:
    """Dependencies of a sender.

    `reach` is the guarded egress, and `now` returns µs since the epoch. `mail` is the mail server,
    if one is configured.

    `stranger` is the egress for URLs that any internet user may name. It never reaches a private
    network, whether or not the operator allows it. Without it these URLs are blocked.
    `to_mail_server` is the egress for a mail server that is configured later. `gateway` sends SMS
    and calls; None without one.
    """

    reach: Egress
    now: Callable[[], int]
    mail: OutgoingMail | None = None
    stranger: Egress | None = None
    to_mail_server: Egress | None = None
    gateway: PhoneGateway | None = None
    # Services whose secret the installation has, so that their buttons work.
    slack_buttons: bool = False
    telegram_buttons: bool = False
    # Path prefix of the installation. Links of messages have it.
    base_path: str = ""


async def post_json(
    means: SendContext, url: str, document: Any, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """Posts JSON and returns the 2xx response."""
    body = msgspec.json.encode(document)
    return await post(means, url, body, {"Content-Type": "application/json", **(headers or {})})


async def post(
    means: SendContext, url: str, body: bytes, headers: Mapping[str, str]
) -> httpx.Response:
    response = await send_request(
        means.reach,
        "POST",
        url_of(url),
        headers=headers,
        body=body,
        bytes_most=ANSWER_BYTES_MOST,
        seconds=SEND_SECONDS,
    )
    if not response.is_success:
        raise by_status(response.status_code, response.headers.get("retry-after", ""))
    return response


def answer_of(response: httpx.Response) -> dict[str, Any]:
    """Returns the JSON object of a response, or {} if the body is not one."""
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
    """Returns Retry-After in seconds, or None if it is not a number.

    Reads five digits at most.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    return min(int(text[:5]), RETRY_AFTER_MOST_SECONDS)


def renamed(failure: TargetFailure | LocalFailure) -> NotDelivered:
    """Returns the failure of a connection as `NotDelivered`. Local failures are retried."""
    if isinstance(failure, LocalFailure):
        return NotDelivered(SendFailure.RETRY, str(failure.reason))
    if failure.failure is FailureClass.TARGET_BLOCKED:
        return NotDelivered(SendFailure.BLOCKED, str(failure.failure))
    return NotDelivered(SendFailure.RETRY, str(failure.failure))


def url_of(text: str) -> Url:
    try:
        return read_url(text)
    except BadTarget:
        # Stored by another version and unreadable by this one.
        raise NotDelivered(SendFailure.REFUSED, "bad_definition") from None
