"""Access token of a check: cached, or fetched from the token endpoint of its set-up.

A failure of the endpoint is `token_error`, never a failure of the target. The latency
excludes the time for the token.
"""

import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from urllib.parse import quote_plus, urlencode

import msgspec
import trio

from ..check.check import Check
from ..check.failure import TargetFailure
from ..check.oauth2 import POST, TokenSetup, token_setup, uses_oauth2
from ..check.phase_timer import Stopwatch, overdue
from ..check.result import FailureClass
from ..check.target import read_url
from .egress import Egress
from .http_client import HttpRequest, HttpResponse, fetch

FETCH_SECONDS: Final = 10.0
ANSWER_BYTES_MOST: Final = 64 * 1024
# Use of a token without a stated lifetime, and longest use of any token.
UNSTATED_SECONDS: Final = 300.0
SECONDS_MOST: Final = 86_400.0
# A token is replaced this long before its end, at most a tenth of its lifetime.
AHEAD_SECONDS: Final = 60.0
UNAUTHORIZED: Final = 401

_TOKEN: Final = re.compile(r"[!-~]{1,8192}")
T = TypeVar("T")


class _Answer(msgspec.Struct):
    access_token: str
    token_type: str = "Bearer"
    expires_in: float | str | None = None


@dataclass(frozen=True, slots=True)
class Authorized:
    """Response, and the token of its request, "" without one."""

    response: HttpResponse
    token: str = field(default="", repr=False)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Returns what no measured value may contain."""
        return (self.token,) if self.token else ()


async def fetch_authorized(
    reach: Egress, check: Check, request: HttpRequest, watch: Stopwatch
) -> Authorized:
    """Returns the response to a request, with the token of the check if it uses OAuth2."""
    if not uses_oauth2(check):
        return Authorized(await fetch(reach, request, watch))

    async def send(token: str) -> Authorized:
        headers = [*request.headers, ("authorization", f"Bearer {token}")]
        with_token = replace(request, headers=headers)
        return Authorized(await fetch(reach, with_token, watch), token)

    def refused(made: Authorized) -> bool:
        response = made.response
        return response.status == UNAUTHORIZED and response.url.origin == request.url.origin

    return await with_token(reach, check, watch, send, refused)


async def with_token(
    reach: Egress,
    check: Check,
    watch: Stopwatch,
    send: Callable[[str], Awaitable[T]],
    refused: Callable[[T], bool],
) -> T:
    """Returns what `send` returns with the token of the check.

    A refused token is dropped. If it came from the cache, the request is repeated once: the target
    may have withdrawn it before its end, which is not a failure of the target.
    """
    setup = check.made(token_setup)
    token, is_new = await _token(reach, setup, watch)
    found = await send(token)
    if refused(found):
        reach.tokens.drop(setup, token)
        if not is_new:
            token, _ = await _token(reach, setup, watch)
            found = await send(token)
            if refused(found):
                reach.tokens.drop(setup, token)
    return found


async def _token(reach: Egress, setup: TokenSetup, watch: Stopwatch) -> tuple[str, bool]:
    """Returns a token, and whether it was fetched now. The latency begins afterwards.

    Raises: `TargetFailure(token_error)`, or `proxy_error` of its proxy.
    """
    kept = reach.tokens.entry(setup)
    if kept.usable:
        watch.proceed()
        return kept.usable, False
    # If the deadline passes here, the phase of the fetch decides whether the failure is local.
    watch.stands_for, watch.waits_for = FailureClass.TOKEN_ERROR, kept.watch
    async with kept.fetching:
        is_new = not kept.usable
        if is_new:
            kept.watch.restart()
            kept.keep(*await _fetched(reach, setup, kept.watch))
        token = kept.token
    watch.proceed()
    return token, is_new


async def _fetched(reach: Egress, setup: TokenSetup, watch: Stopwatch) -> tuple[str, float]:
    """Returns a token and the seconds for which it can be used."""
    try:
        with trio.move_on_after(FETCH_SECONDS) as scope:
            response = await fetch(reach, token_request(setup), watch)
        if scope.cancelled_caught:
            raise overdue(watch)
        return read_token(response)
    except TargetFailure as failed:
        if failed.failure is FailureClass.PROXY_ERROR:
            raise
        raise TargetFailure(FailureClass.TOKEN_ERROR, failed.code) from failed


def token_request(setup: TokenSetup) -> HttpRequest:
    """Returns the request for a token (RFC 6749, 2.3.1 and 4.4.2)."""
    form = {"grant_type": "client_credentials"}
    headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
        ("cache-control", "no-store"),
    ]
    if setup.scopes:
        form["scope"] = setup.scopes
    if setup.audience:
        form["audience"] = setup.audience
    if setup.client_auth == POST:
        form |= {"client_id": setup.client_id, "client_secret": setup.secret}
    else:
        pair = f"{quote_plus(setup.client_id)}:{quote_plus(setup.secret)}"
        headers.append(("authorization", "Basic " + b64encode(pair.encode()).decode("ascii")))
    return HttpRequest(
        method="POST",
        url=read_url(setup.url),
        headers=headers,
        body=urlencode(form).encode(),
        redirects=0,
        body_bytes_most=ANSWER_BYTES_MOST,
        proxy=setup.proxy,
    )


def read_token(response: HttpResponse) -> tuple[str, float]:
    """Returns the token of a response and the seconds for which it can be used.

    Raises: `TargetFailure(token_error)` for any other response.
    """
    try:
        answer = msgspec.json.decode(response.body, type=_Answer)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise TargetFailure(FailureClass.TOKEN_ERROR, response.status) from None
    if (
        not 200 <= response.status <= 299
        or not response.whole
        or answer.token_type.lower() != "bearer"
        or not _TOKEN.fullmatch(answer.access_token)
    ):
        raise TargetFailure(FailureClass.TOKEN_ERROR, response.status)
    return answer.access_token, _seconds(answer.expires_in)


def _seconds(stated: float | str | None) -> float:
    try:
        lifetime = UNSTATED_SECONDS if stated is None else float(stated)
    except ValueError:
        lifetime = UNSTATED_SECONDS
    if not lifetime > 0:
        return 0.0
    lifetime = min(lifetime, SECONDS_MOST)
    return lifetime - min(AHEAD_SECONDS, lifetime / 10)
