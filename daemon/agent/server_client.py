"""Client of the server for agents: six requests with deadlines and bounded responses.

A response that is not from Leadline (a proxy page, half a body, a redirect) counts as no response
and acknowledges no result.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, TypeVar

import httpx
import msgspec
import trio

from ...probes.check.failure import LocalFailure, TargetFailure
from ...probes.check.target import Url
from ...probes.jobs.agent_protocol import (
    INSTANCE_HEADER,
    KINDS_HEADER,
    AgentCertificate,
    AgentCertificates,
    AgentCertificatesResponse,
    AgentHeartbeat,
    AgentHeartbeatResponse,
    AgentTestResponse,
    AgentTestResult,
    ResultsResponse,
)
from ...probes.net.egress import Egress
from ...probes.net.egress_httpx import is_whole, send_request
from .agent_config import AgentConfig
from .job_parser import micros_of

HEARTBEAT_SECONDS: Final = 10.0
# Added to the wait of the server: a full response over a slow line.
CLAIM_SECONDS_MORE: Final = 10.0
REPORT_SECONDS: Final = 60.0
# Time without failed conditions after a server did not accept them.
PLAIN_SECONDS: Final = 600.0
ANSWER_BYTES_MOST: Final = 64 << 10
CLAIM_BYTES_MOST: Final = 16 << 20
SAID_LONGEST: Final = 200

# Statuses for which a repeated request is refused again.
_REFUSALS: Final = frozenset({400, 401, 403, 413, 422})

T = TypeVar("T")


class AgentEndpoint(StrEnum):
    """Endpoint for results: awaited results, or history."""

    RESULTS = "results"
    BACKFILL = "backfill"


class NoAnswer(Exception):
    """Raised if the effect of a request is unknown. It can be repeated safely."""


class ResponseTooLarge(NoAnswer):
    """Raised if a response exceeds its bound."""


class RequestRefused(Exception):
    """Raised if the server refuses a request. `said` is its error code, one bounded line."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status
        self.said = said


class Claimed(msgspec.Struct, frozen=True):
    """Claimed work as received. A server of an older version sends no tests."""

    jobs: list[dict[str, Any]]
    tests: list[dict[str, Any]] = []


class ServerClient:
    """Client for one agent. All methods raise only `NoAnswer` and `RequestRefused`."""

    def __init__(
        self, reach: Egress, place: AgentConfig, instance: str, kinds: Sequence[str]
    ) -> None:
        self._reach = reach
        self._base = place.server
        self._region = place.region
        self._kinds = list(kinds)
        self._headers = {
            "authorization": f"Bearer {place.token}",
            "accept": "application/json",
            INSTANCE_HEADER: instance,
        }
        # Until then, results are sent without failed conditions, in seconds of Trio's clock.
        self._plain_until = 0.0
        # Capabilities of the server, as of its last heartbeat response.
        self.accepts: frozenset[str] = frozenset()

    async def heartbeat(self, carrier: int, version: str) -> int:
        """Reports that the agent is running, and returns the server's time, in µs."""
        body = AgentHeartbeat(workflow_kinds=self._kinds, carrier=carrier, version=version)
        data = msgspec.json.encode(body)
        heard = await self._post("heartbeat", data, HEARTBEAT_SECONDS, AgentHeartbeatResponse)
        self.accepts = frozenset(heard.accepts)
        try:
            return micros_of(heard.now)
        except ValueError:
            raise NoAnswer("the response has a time that is not an instant") from None

    async def claim(self, most: int, wait_seconds: int) -> Claimed:
        """Returns work as received. The server waits up to `wait_seconds` for the first item."""
        data = await self._ask(
            "GET",
            f"jobs?max={most}&wait={wait_seconds}&region={self._region}",
            {KINDS_HEADER: ",".join(self._kinds)},
            bytes_most=CLAIM_BYTES_MOST,
            seconds=wait_seconds + CLAIM_SECONDS_MORE,
        )
        return _read(data, Claimed)

    async def report(self, route: AgentEndpoint, bodies: Sequence[bytes]) -> ResultsResponse:
        """Sends results, each as JSON.

        If the server refuses a batch with failed conditions, the batch is sent again without them:
        a server of an earlier version does not know the field.
        """
        plain = [without_failed_condition(body) for body in bodies]
        if plain == list(bodies) or trio.current_time() < self._plain_until:
            return await self._report(route, plain)
        try:
            return await self._report(route, bodies)
        except RequestRefused as error:
            if error.status != 400:
                raise
        accounted = await self._report(route, plain)
        self._plain_until = trio.current_time() + PLAIN_SECONDS
        return accounted

    async def _report(self, route: AgentEndpoint, bodies: Sequence[bytes]) -> ResultsResponse:
        body = msgspec.json.encode({"results": [msgspec.Raw(body) for body in bodies]})
        accounted = await self._post(route, body, REPORT_SECONDS, ResultsResponse)
        counted = accounted.accepted + accounted.duplicate + accounted.ignored
        refused = {item.index for item in accounted.refused or ()}
        if counted + len(refused) != len(bodies) or not refused <= set(range(len(bodies))):
            raise NoAnswer("the response does not account for all results")
        return accounted

    async def answer_test(self, result: AgentTestResult) -> bool:
        """Sends the result of a test. Returns False if nobody waits for it any more."""
        data = msgspec.json.encode(result)
        return (await self._post("tests", data, HEARTBEAT_SECONDS, AgentTestResponse)).accepted

    async def report_certificates(self, certificates: Sequence[AgentCertificate]) -> int:
        """Sends certificates; returns how many the server stored."""
        data = msgspec.json.encode(AgentCertificates(certificates=list(certificates)))
        said = await self._post("certificates", data, HEARTBEAT_SECONDS, AgentCertificatesResponse)
        return said.accepted

    async def _post(self, path: str, body: bytes, seconds: float, shape: type[T]) -> T:
        data = await self._ask(
            "POST",
            f"{path}?region={self._region}",
            {"content-type": "application/json"},
            body,
            bytes_most=ANSWER_BYTES_MOST,
            seconds=seconds,
        )
        return _read(data, shape)

    def _url(self, path: str) -> Url:
        base = self._base.path.rstrip("/")
        return replace(self._base, path=f"{base}/api/v1/agent/{path}")

    async def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        bytes_most: int,
        seconds: float,
    ) -> bytes:
        try:
            with trio.fail_after(seconds):
                response = await send_request(
                    self._reach,
                    method,
                    self._url(path),
                    headers={**self._headers, **headers},
                    body=body,
                    bytes_most=bytes_most,
                    seconds=seconds,
                )
        except trio.TooSlowError:
            raise NoAnswer(f"no response within {seconds:g} s") from None
        except TargetFailure as failed:
            raise NoAnswer(str(failed.failure)) from failed
        except LocalFailure as trouble:
            raise NoAnswer(str(trouble.reason)) from trouble
        return _body(response)


def without_failed_condition(body: bytes) -> bytes:
    """Returns a result without its failed condition, unchanged if it has none."""
    if b'"failed_condition"' not in body:
        return body
    result = msgspec.json.decode(body)
    result.pop("failed_condition", None)
    return msgspec.json.encode(result)


def _body(response: httpx.Response) -> bytes:
    """Returns the body of a 200 response.

    Raises: `RequestRefused` or `NoAnswer` for all others.
    """
    if not is_whole(response):
        raise ResponseTooLarge("the response is too large")
    status, body = response.status_code, response.content
    if status == 200:
        return body
    if status in _REFUSALS:
        raise RequestRefused(status, _error_text(body))
    raise NoAnswer(f"the response was {status} {_error_text(body)}".strip())


def _read(data: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoAnswer("the response is not from Leadline") from None


def _error_text(body: bytes) -> str:
    """Returns the error code of a refusal, or "" if it is not from Leadline."""
    try:
        return _line(msgspec.json.decode(body, type=dict[str, str]).get("error", ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _line(text: str) -> str:
    """Returns text from the network as one bounded line for the log."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)[:SAID_LONGEST].strip()
