"""The server as an agent asks it: four questions, each with its deadline, each answer bounded.

Whatever is no answer of a Leadline's (a page of a proxy, half a body, a redirect) is none at all:
it acknowledges nothing.
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
    AgentHeartbeat,
    AgentHeartbeatResponse,
    ResultsResponse,
)
from ...probes.net.egress import Egress
from ...probes.net.egress_httpx import is_whole, send_request
from .agent_config import AgentConfig

HEARTBEAT_SECONDS: Final = 10.0
# Over what the server was asked to wait: a full answer, over a slow line.
CLAIM_SECONDS_MORE: Final = 10.0
REPORT_SECONDS: Final = 60.0
ANSWER_BYTES_MOST: Final = 64 << 10
CLAIM_BYTES_MOST: Final = 16 << 20
SAID_LONGEST: Final = 200

# What is refused by these is refused again whenever it is asked again.
_REFUSALS: Final = frozenset({400, 401, 403, 413, 422})

T = TypeVar("T")


class AgentEndpoint(StrEnum):
    """Where results go: those that the server waits for, and those that are history."""

    RESULTS = "results"
    BACKFILL = "backfill"


class NoAnswer(Exception):
    """Nobody knows what the server did; asking again changes nothing twice."""


class ResponseTooLarge(NoAnswer):
    """More than was asked for, or than we hold."""


class RequestRefused(Exception):
    """The server said no; `said` is its word, one bounded line."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status
        self.said = said


class _Claimed(msgspec.Struct, frozen=True):
    jobs: list[dict[str, Any]]


class ServerClient:
    """All methods raise NoAnswer and Refused, and nothing else."""

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

    async def heartbeat(self, carrier: int, version: str) -> AgentHeartbeatResponse:
        """Says that we are there, and hears the server's time."""
        body = AgentHeartbeat(workflow_kinds=self._kinds, carrier=carrier, version=version)
        data = msgspec.json.encode(body)
        heard = await self._post("heartbeat", data, HEARTBEAT_SECONDS, AgentHeartbeatResponse)
        if heard.now.tzinfo is None:
            raise NoAnswer("what answered says a time without a zone")
        return heard

    async def claim(self, most: int, wait_seconds: int) -> list[dict[str, Any]]:
        """Jobs as they were received; the server waits so long for the first of them."""
        data = await self._ask(
            "GET",
            f"jobs?max={most}&wait={wait_seconds}&region={self._region}",
            {KINDS_HEADER: ",".join(self._kinds)},
            bytes_most=CLAIM_BYTES_MOST,
            seconds=wait_seconds + CLAIM_SECONDS_MORE,
        )
        return _read(data, _Claimed).jobs

    async def report(self, route: AgentEndpoint, bodies: Sequence[bytes]) -> ResultsResponse:
        """Hands over results, each as it is spelt in JSON."""
        body = msgspec.json.encode({"results": [msgspec.Raw(body) for body in bodies]})
        accounted = await self._post(route, body, REPORT_SECONDS, ResultsResponse)
        counted = accounted.accepted + accounted.duplicate + accounted.ignored
        refused = {item.index for item in accounted.refused or ()}
        if counted + len(refused) != len(bodies) or not refused <= set(range(len(bodies))):
            raise NoAnswer("what answered counts otherwise than a Leadline")
        return accounted

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
            raise NoAnswer(f"there was no answer within {seconds:g} s") from None
        except TargetFailure as failed:
            raise NoAnswer(str(failed.failure)) from failed
        except LocalFailure as trouble:
            raise NoAnswer(str(trouble.reason)) from trouble
        return _body(response)


def _body(response: httpx.Response) -> bytes:
    """Of a success; whatever else there is, is raised."""
    if not is_whole(response):
        raise ResponseTooLarge("the answer is too large")
    status, body = response.status_code, response.content
    if status == 200:
        return body
    if status in _REFUSALS:
        raise RequestRefused(status, _error_text(body))
    raise NoAnswer(f"the answer was {status} {_error_text(body)}".strip())


def _read(data: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NoAnswer("what answered is no Leadline") from None


def _error_text(body: bytes) -> str:
    """The word of a refusal; nothing where it is another's."""
    try:
        return _line(msgspec.json.decode(body, type=dict[str, str]).get("error", ""))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _line(text: str) -> str:
    """Text of others as a log may hold it."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)[:SAID_LONGEST].strip()
