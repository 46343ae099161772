"""HTTP client of the commands that call the API of a Leadline server.

`read_server` reads the URL, the token and the CA file only from the environment. Invariants: the
client repeats no request, follows no redirect, uses no proxy and bounds each response. `within`
limits the duration of a command. Every failure is a NoResponse with a printable message.
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


class AnswerTooLarge(NoResponse):
    """The response has more than ANSWER_BYTES_MOST bytes."""


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
    # The header Link, which names the next page of a list, and the header Date.
    link: str = field(default="", repr=False)
    date: str = ""

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

    def url_of(self, path: str) -> Url:
        """Returns the address of a path below /api/v1."""
        return replace(self.base, path=f"{self.base.path.rstrip('/')}/api/v1{path}")

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

        `body` is sent as JSON, None as no body. `prefer` is the value of the header Prefer
        (RFC 7240), empty for none.
        """
        headers = {"authorization": f"Bearer {self.server.token}", "accept": "application/json"}
        if prefer:
            headers["prefer"] = prefer
        data = b""
        if body is not None:
            data = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        try:
            response = await send_request(
                self.reach,
                method,
                self.server.url_of(path),
                headers=headers,
                body=data,
                bytes_most=ANSWER_BYTES_MOST,
                seconds=TIMEOUT_MOST_US / 1_000_000,
            )
        except (TargetFailure, LocalFailure) as error:
            raise self.no_response(error) from error
        if not is_whole(response):
            raise AnswerTooLarge(self._error_text(_FAILURES[FailureClass.RESPONSE_TOO_LARGE]))
        return ApiResponse(
            status=response.status_code,
            body=response.content,
            location=location_of(response),
            retry_after=response.headers.get("retry-after", ""),
            link=response.headers.get("link", ""),
            date=response.headers.get("date", ""),
        )

    def no_response(self, error: TargetFailure | LocalFailure) -> NoResponse:
        """Returns the failure of a request with its reason. The caller raises it."""
        if isinstance(error, LocalFailure):
            return NoResponse(self._error_text(_TROUBLES.get(error.reason, error.reason.value)))
        return NoResponse(self._error_text(_why_failed(error)))

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


@dataclass(frozen=True, slots=True)
class RefusalHints:
    """What the user can do about an answer without success, by what is wrong with it."""

    redirect: str = ""
    foreign: str = "unexpected response; check LEADLINE_URL"
    unauthorized: str = "LEADLINE_TOKEN is not accepted"
    forbidden: str = "token lacks permission"
    missing: str = "project or service not found or not visible to this token"


_OF_ENVIRONMENT: Final = RefusalHints()


def refusal(answer: ApiResponse, hints: RefusalHints = _OF_ENVIRONMENT) -> str:
    """Returns the error message for a response without success, with a hint for the user."""
    if 300 <= answer.status < 400:
        place = shown(answer.location, 200) or "no address"
        hint = f"; {hints.redirect}" if hints.redirect else ""
        return f"{answer.status}: redirect to {place} not followed{hint}"
    if answer.error is None:
        return f"{answer.status}: {hints.foreign}"
    message = f"{answer.status} {answer.error}"
    by_status = {401: hints.unauthorized, 403: hints.forbidden, 404: hints.missing}
    if answer.status in by_status:
        return f"{message}: {by_status[answer.status]}"
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
    return base_of(text, "LEADLINE_URL")


def base_of(text: str, source: str) -> Url:
    """Returns the address of a server. Raises UsageError, which names its source."""
    try:
        url = read_url(text)
    except BadTarget as error:
        raise click.UsageError(f"{source}: {error}") from error
    if "?" in text or "#" in text:
        raise click.UsageError(f"{source} must not have a query or a fragment")
    if url.path.rstrip("/").endswith("/api/v1"):
        raise click.UsageError(f"{source} must not include /api/v1")
    return url


def _token(text: str) -> str:
    if not text:
        raise BadToken("LEADLINE_TOKEN is not set: set it to an API token")
    if not is_token(text):
        raise BadToken("LEADLINE_TOKEN contains characters not allowed in a token")
    return text


def is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def _authorities(text: str) -> Path | None:
    return authorities_of(text, "LEADLINE_CA_FILE") if text else None


def authorities_of(text: str, source: str) -> Path:
    """Returns the file of certificate authorities. Raises UsageError, which names its source."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cafile=text)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{source}: no certificate can be read from it") from error
    return Path(text)


class DurationParam(click.ParamType[float]):
    """Duration such as 10s or 1m, by default within the bounds of the timeout. Returns seconds."""

    name = "duration"

    def __init__(self, least: str = "1s", most: str = "5m", example: str = "10s") -> None:
        self._bounds = (read_duration(least) or 0, read_duration(most) or 0)
        self._rule = f"must be a duration from {least} to {most}, such as {example}"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found_us = read_duration(value)
        if found_us is None or not self._bounds[0] <= found_us <= self._bounds[1]:
            self.fail(self._rule, param, ctx)
        return found_us / 1_000_000


timeout_option = click.option(
    "--timeout",
    "timeout_seconds",
    type=DurationParam(),
    default="10s",
    show_default=True,
    help="Overall timeout, from 1s to 5m.",
)
