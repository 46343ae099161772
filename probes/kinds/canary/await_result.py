"""Wait for the end of a transaction, by its event stream or by polling its state.

A stream that ends before the transaction is opened again, as browsers do. The delay is the one that
the stream requested, within bounds. The request has the id of the last complete event. A response
that is not an event stream, or a failed connection, is an immediate failure.
"""

from typing import Final

import trio
from msgspec import UnsetType

from ...check.condition_evaluation import ProbeValues
from ...check.failure import TargetFailure
from ...check.monitor_spec import header_fault
from ...check.phase_timer import Stopwatch, overdue
from ...check.result import FailureClass
from ...check.target import Url
from ...net.egress import Egress
from ...net.http_client import fetch
from ...net.http_exchange import HttpRequest
from ...net.http_stream import Incoming, listen
from .canary_requests import BoundSecrets, outgoing
from .json_answer import JsonAnswer, is_same
from .sse import Event, EventReader, EventTooLarge
from .workflow import Polling, PollJson, Sse, read_json_path

CONNECTION_BYTES_MOST: Final = 8 * 1024 * 1024
CONNECTIONS_MOST: Final = 60
# Delay before a stream is opened again, unless it requests another one within the bounds.
RETRY_SECONDS: Final = 3.0
RETRY_SECONDS_BOUNDS: Final = (1.0, 30.0)
_EVENT_STREAM: Final = "text/event-stream"


async def awaited(
    completion: Sse | PollJson, url: Url, secrets: BoundSecrets, reach: Egress, watch: Stopwatch
) -> JsonAnswer:
    """Returns the document that reports success.

    Raises: `TargetFailure`, with `condition_failed` if the target reports a failure, or `timeout`
    if it reports no end within `timeout` seconds or the allowed number of requests.
    """
    with trio.move_on_after(completion.timeout):
        if isinstance(completion, Sse):
            return await _listened(completion, url, secrets, reach, watch)
        request = outgoing(
            "GET", url, completion.headers, secrets, [("accept", "application/json")]
        )
        return await _polled(completion.poll, request, reach, watch)
    raise overdue(watch)


# Polling.


async def _polled(
    poll: Polling, request: HttpRequest, reach: Egress, watch: Stopwatch
) -> JsonAnswer:
    for left in range(poll.max_attempts - 1, -1, -1):
        response = await fetch(reach, request, watch)
        if not 200 <= response.status <= 299:
            raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
        if not response.whole:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
        answer = JsonAnswer.of(response)
        if await _has_succeeded(poll, answer, reach):
            return answer
        if left:
            await trio.sleep(poll.interval)
    raise TargetFailure(FailureClass.TIMEOUT)


async def _has_succeeded(poll: Polling, answer: JsonAnswer, reach: Egress) -> bool:
    """Returns whether the document reports success.

    An empty body means that the transaction is not finished. If both a failure and success are
    reported, it has failed.
    Raises: `TargetFailure`, with `protocol_error` if the body is not JSON, or `condition_failed` if
    it reports a failure.
    """
    if answer.is_empty:
        return False
    if not answer.is_json:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, answer.status)
    if not isinstance(poll.failure, UnsetType):
        path = read_json_path("completion.poll.failure.path", poll.failure.path)
        found = await answer.at(path, reach)
        if any(is_same(found, value) for value in poll.failure.values):
            raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)
    path = read_json_path("completion.poll.success.path", poll.success.path)
    return is_same(await answer.at(path, reach), poll.success.value)


# Event stream.


async def _listened(
    sse: Sse, url: Url, secrets: BoundSecrets, reach: Egress, watch: Stopwatch
) -> JsonAnswer:
    last_id = ""
    retry_seconds = RETRY_SECONDS
    for left in range(CONNECTIONS_MOST - 1, -1, -1):
        events = EventReader(last_id)
        ours = [("accept", _EVENT_STREAM), ("accept-encoding", "identity")]
        ours.append(("cache-control", "no-store"))
        if last_id and not header_fault("last-event-id", last_id):
            ours.append(("last-event-id", last_id))
        request = outgoing("GET", url, sse.headers, secrets, ours)
        answer = await _stream_heard(sse, request, events, reach, watch)
        if answer is not None:
            return answer
        last_id = events.last_id
        if events.retry_ms is not None:
            least, most = RETRY_SECONDS_BOUNDS
            retry_seconds = min(max(events.retry_ms / 1_000, least), most)
        if left:
            await trio.sleep(retry_seconds)
    raise TargetFailure(FailureClass.TIMEOUT)


async def _stream_heard(
    sse: Sse, request: HttpRequest, events: EventReader, reach: Egress, watch: Stopwatch
) -> JsonAnswer | None:
    """Returns the document of success, or None if the stream ended or broke off before it."""
    incoming = await listen(reach, request, watch)
    try:
        _demand_stream(incoming)
        while piece := await _next_piece(incoming):
            for event in _read(events, piece):
                if await _is_the_end(sse, event, incoming.status, reach):
                    return JsonAnswer(ProbeValues(body=event.data), incoming.status)
            if incoming.received_bytes > CONNECTION_BYTES_MOST:
                raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    finally:
        incoming.close()
    return None


def _demand_stream(incoming: Incoming) -> None:
    if incoming.status != 200:
        raise TargetFailure(FailureClass.HTTP_STATUS, incoming.status)
    media_type = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    packed = incoming.headers.get("content-encoding", "identity").strip().lower()
    if media_type != _EVENT_STREAM or packed not in ("", "identity"):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, incoming.status)


async def _next_piece(incoming: Incoming) -> bytes:
    """Returns the next bytes, or b"" if the stream ends or breaks off (a proxy timeout)."""
    try:
        return await incoming.receive()
    except TargetFailure as failed:
        if failed.failure in (FailureClass.CONNECT_ERROR, FailureClass.PROTOCOL_ERROR):
            return b""
        raise


def _read(events: EventReader, piece: bytes) -> list[Event]:
    try:
        return events.feed(piece)
    except EventTooLarge:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE) from None


async def _is_the_end(sse: Sse, event: Event, status: int, reach: Egress) -> bool:
    if event.type in sse.sse.failure_events:
        raise TargetFailure(FailureClass.CONDITION_FAILED, status)
    if event.type != sse.sse.success_event:
        return False
    said = JsonAnswer(ProbeValues(body=event.data), status)
    for path in sse.sse.required_json_fields:
        if not await said.has(read_json_path("completion.sse", path), reach):
            raise TargetFailure(FailureClass.CONDITION_FAILED, status)
    return True
