"""HTTP client of the commands that call the API of a Leadline server.

The URL, the token and the CA file come only from the environment. Invariants: the client repeats no
request, follows no redirect, uses no proxy and bounds each response. `within` limits the duration
of a command. Every failure is a NoResponse with a printable message.
"""

import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import msgspec
import trio

from ...probes.check.durations import read_duration
from ...probes.check.failure import LocalFailure, TargetFailure
from ...probes.check.result import FailureClass, UnknownReason
from ...probes.check.target import BadTarget, Url, read_url
from ...probes.net.egress import Egress, make_reach
from ...probes.net.egress_httpx import is_whole, location_of, send_request
from ...probes.net.egress_policy import EgressPolicy
from ...probes.net.system_resolver import SystemNames
from ...probes.net.tls_contexts import TlsContexts
from .safe_text import shown

# A list of 1 000 services has about half of this size.
ANSWER_BYTES_MOST: Final = 4 * 1024 * 1024
TIMEOUT_LEAST_US: Final = 1_000_000
TIMEOUT_MOST_US: Final = 300_000_000

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_FAILURES: Final = {
    FailureClass.DNS_ERROR: "the host name has no address",
    FailureClass.CONNECT_REFUSED: "connection refused",
    FailureClass.CONNECT_TIMEOUT: "connection timed out",
    FailureClass.CONNECT_ERROR: "connection failed",
    FailureClass.TLS_ERROR: "TLS handshake failed",
    FailureClass.PROTOCOL_ERROR: "the response is not valid HTTP",
    FailureClass.RESPONSE_TOO_LARGE: "the response is too large",
    FailureClass.TARGET_BLOCKED: "address is blocked by the egress policy",
}
_TROUBLES: Final = {
    UnknownReason.RESOLVER_DEAD: "no name server of this host answers",
    UnknownReason.NO_ROUTE: "no route to host",
    UnknownReason.EGRESS_DENIED: "a firewall of this host blocks the connection",
    UnknownReason.LOCAL_RESOURCES: "this host has no sockets or memory left",
    UnknownReason.NO_TRUST_STORE: "this host has no certificate authorities: "
    "set LEADLINE_CA_FILE to a file of them",
}

T = TypeVar("T")


class BadToken(click.UsageError):
    """LEADLINE_TOKEN is not set, or cannot be a token."""


class NoResponse(Exception):
    """The server gave no usable response. The message is the reason and safe to print."""


def read_json(body: bytes, shape: type[T]) -> T | None:
    """Returns the decoded body; None if it has another type, is no JSON or is nested too deeply."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class LookupForbidden(NoResponse):
    """The token cannot read a list, for example because it has a list of actions."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """Response of the server, of any status."""

    status: int
    body: bytes = field(repr=False)
    location: str = field(default="", repr=False)
    retry_after: str = ""

    @property
    def error(self) -> str | None:
        """The `error` field of a Leadline error body; None if the body is not one."""
        found = read_json(self.body, dict[str, str])
        return shown(found["error"]) if found is not None and list(found) == ["error"] else None


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Address, token and trusted CA file of a server."""

    base: Url
    token: str = field(repr=False)
    authorities: Path | None

    def client(self) -> "ApiClient":
        contexts = TlsContexts(self.authorities, alone=True)
        version = metadata.version("leadline")
        reach = make_reach(
            EgressPolicy(allow_private=True),
            resolver=SystemNames(),
            contexts=contexts,
            user_agent=f"leadline/{version} (command line)",
        )
        return ApiClient(self, reach)


@dataclass(frozen=True, slots=True)
class ApiClient:
    """Client of one server. Each call of `ask` is one request."""

    server: ApiServer
    reach: Egress

    async def ask(
        self, method: str, path: str, body: object = None, *, prefer: str = ""
    ) -> ApiResponse:
        """Returns the response to a path below /api/v1. Raises NoResponse.

        `prefer` is the value of the header Prefer (RFC 7240), empty for none.
        """
        base = self.server.base
        headers = {"authorization": f"Bearer {self.server.token}", "accept": "application/json"}
        if prefer:
            headers["prefer"] = prefer
        data = b""
        if method == "POST":
            data = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        try:
            response = await send_request(
                self.reach,
                method,
                replace(base, path=f"{base.path.rstrip('/')}/api/v1{path}"),
                headers=headers,
                body=data,
                bytes_most=ANSWER_BYTES_MOST,
                seconds=TIMEOUT_MOST_US / 1_000_000,
            )
        except TargetFailure as failed:
            raise NoResponse(self._error_text(_why_failed(failed))) from failed
        except LocalFailure as failure:
            why = _TROUBLES.get(failure.reason, failure.reason.value)
            raise NoResponse(self._error_text(why)) from failure
        if not is_whole(response):
            raise NoResponse(self._error_text(_FAILURES[FailureClass.RESPONSE_TOO_LARGE]))
        return ApiResponse(
            status=response.status_code,
            body=response.content,
            location=location_of(response),
            retry_after=response.headers.get("retry-after", ""),
        )

    async def listed(self, path: str) -> list[dict[str, Any]]:
        """Returns a list for the lookup of slugs.

        Raises LookupForbidden on 403, NoResponse on any other status but 200.
        """
        answer = await self.ask("GET", path)
        if answer.status == 403:
            raise LookupForbidden(
                "the token cannot look up slugs: give the ids of the project and the service"
            )
        if answer.status != 200:
            raise NoResponse(refusal(answer))
        found = read_json(answer.body, list[dict[str, Any]])
        if found is None:
            raise NoResponse("the response to a slug lookup is not from a Leadline server")
        return found

    def _error_text(self, why: str) -> str:
        return f"request to {self.server.base.authority} failed: {why}"


def _why_failed(failed: TargetFailure) -> str:
    why = _FAILURES.get(failed.failure, failed.failure.value)
    error: BaseException | None = failed
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"TLS certificate not trusted: {shown(error.verify_message)}"
        # httpcore raises again `from None`, which clears the cause and leaves the context.
        error = error.__cause__ or error.__context__
    return why


def within(seconds: float, work: Callable[[], Awaitable[T]]) -> T:
    """Runs the work in Trio and returns its result. Raises NoResponse after `seconds`."""

    async def bounded() -> T:
        with trio.fail_after(seconds):
            return await work()

    try:
        return trio.run(bounded)
    except trio.TooSlowError as error:
        raise NoResponse(f"timed out after {seconds:g} s") from error


def refusal(answer: ApiResponse) -> str:
    """Returns the error message for a response without success, with a hint for the user."""
    if 300 <= answer.status < 400:
        place = shown(answer.location, 200)
        return f"{answer.status}: redirect to {place or 'no address'} not followed"
    error = answer.error
    if error is None:
        return f"{answer.status}: unexpected response; check LEADLINE_URL"
    message = f"{answer.status} {error}"
    if answer.status == 401:
        return f"{message}: LEADLINE_TOKEN is not accepted"
    if answer.status == 403:
        return f"{message}: token lacks permission"
    if answer.status == 404:
        return f"{message}: project or service not found or not visible to this token"
    after = answer.retry_after
    if after.isascii() and after.isdigit() and len(after) < 10:
        return f"{message}: retry after {after} s"
    return message


def read_server(environ: Mapping[str, str]) -> ApiServer:
    """Reads LEADLINE_URL, LEADLINE_TOKEN and LEADLINE_CA_FILE. Raises UsageError, BadToken."""
    return ApiServer(
        base=_base(environ.get("LEADLINE_URL", "")),
        token=_token(environ.get("LEADLINE_TOKEN", "")),
        authorities=_authorities(environ.get("LEADLINE_CA_FILE", "")),
    )


def _base(text: str) -> Url:
    if not text:
        raise click.UsageError("LEADLINE_URL is not set: set it to the address of the console")
    try:
        url = read_url(text)
    except BadTarget as error:
        raise click.UsageError(f"LEADLINE_URL: {error}") from error
    if "?" in text or "#" in text:
        raise click.UsageError("LEADLINE_URL must not have a query or a fragment")
    if url.path.rstrip("/").endswith("/api/v1"):
        raise click.UsageError("LEADLINE_URL must not include /api/v1")
    return url


def _token(text: str) -> str:
    if not text:
        raise BadToken("LEADLINE_TOKEN is not set: set it to an API token")
    if not _TOKEN.fullmatch(text):
        raise BadToken("LEADLINE_TOKEN contains characters not allowed in a token")
    return text


def _authorities(text: str) -> Path | None:
    if not text:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=text)
    except (OSError, ValueError) as error:
        raise click.UsageError("LEADLINE_CA_FILE: no certificate can be read from it") from error
    return Path(text)


class DurationParam(click.ParamType[float]):
    """Duration such as 10s or 1m, within the bounds of the timeout. Returns seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found_us = read_duration(value)
        if found_us is None or not TIMEOUT_LEAST_US <= found_us <= TIMEOUT_MOST_US:
            self.fail("must be a duration from 1s to 5m, such as 10s", param, ctx)
        return found_us / 1_000_000


timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    type=DurationParam(),
    default="10s",
    show_default=True,
    help="Overall timeout, from 1s to 5m.",
)
