"""A response as it is sent: status, headers and bytes."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from .errors import Problem, body_of
from .route import Response

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class FinishedResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


def finished(reply: Response, status: int = 200) -> FinishedResponse:
    """Encodes a reply. `status` applies if the reply has none. Only a body has a content type."""
    status = reply.status or status
    headers = {"Cache-Control": "no-store"}
    body = b""
    if reply.body is not None and status != 204:
        body = reply.body if isinstance(reply.body, bytes) else _encode(reply.body)
        headers["Content-Type"] = reply.content_type
    headers.update(reply.headers)
    return FinishedResponse(status, headers, body)


def refused(problem: Problem) -> FinishedResponse:
    """Returns the JSON body of a refusal, which has exactly one field."""
    headers = {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        **problem.headers,
    }
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return FinishedResponse(problem.status, headers, body_of(problem.code))
