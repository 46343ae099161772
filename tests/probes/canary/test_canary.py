"""A canary runs a transaction from the submission to the verified end against a real service.
Failures of the target are reported with class and host, and local failures as unknown.
"""

import gzip
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
import trustme

from leadline.probes.check.canary_stages import Stage, StageEnd
from leadline.probes.check.result import Result, RunOutcome, UnknownReason
from leadline.probes.kinds.canary import await_result
from leadline.probes.kinds.canary.canary_requests import RESPONSE_BYTES_MOST
from leadline.probes.kinds.canary.workflow import CORRELATION
from tests.support.peers.canary_network import asking, canary_network
from tests.support.peers.job_queue import (
    HERE,
    HERE_V6,
    HOST,
    ID,
    KEY,
    PATIENCE_SECONDS,
    Asked,
    Asker,
    event,
    moved,
    polled,
    saying,
    streamed,
    streaming,
)
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Names, Prober, Secure, answer

pytestmark = pytest.mark.needs("ip", "root")
RESULT = {"total": 7, "prefix": "canary-81"}
END = {"result": RESULT}
ALL_PASSED = [(stage, StageEnd.PASSED) for stage in Stage]


@pytest.fixture
def network() -> Iterator[None]:
    with canary_network():
        yield


@pytest.fixture
async def asker(
    network: None, prober: Prober, names: Names, authority: trustme.CA
) -> AsyncIterator[Asker]:
    async with asking(prober, names, authority) as asker:
        yield asker


def outcome_of(result: Result) -> tuple[RunOutcome, str, int | None]:
    return result.outcome, result.msg, result.code


def fails(message: str, code: int | None = None) -> tuple[RunOutcome, str, int | None]:
    return RunOutcome.DOWN, f"{message} {HOST}", code


# Complete transactions.


async def test_a_transaction_is_submitted_polled_and_verified(
    asker: Asker,
) -> None:
    asker.queue.states = ["queued", "done"]
    result = await asker.run(polled())
    assert outcome_of(result) == (RunOutcome.UP, "", 200)
    assert asker.counted.stages == ALL_PASSED
    submitted, first, second = asker.queue.asked
    assert (submitted.method, submitted.path) == ("POST", "/v1/jobs")
    assert json.loads(submitted.body) == {"sku": "tea", "count": 1}
    assert submitted.headers["content-type"] == "application/json"
    assert submitted.headers["authorization"] == KEY
    assert submitted.headers["x-purpose"] == "canary"
    assert first.path == second.path == "/v1/jobs/7%20of%2F9%3F%C3%A9/state"
    assert first.headers["x-api-key"] == KEY
    assert "authorization" not in first.headers, "the stage sends only its own headers"
    assert "idempotency-key" not in first.headers


async def test_a_transaction_is_awaited_by_its_events(asker: Asker) -> None:
    asker.queue.on["/v1/jobs/"] = streaming(
        b": hello\n\n",
        event("progress", {"state": "done", "result": RESULT}),
        event("done", END)[:9],
        event("done", END)[9:],
        stays=True,
    )
    result = await asker.run(streamed())
    assert outcome_of(result) == (RunOutcome.UP, "", 200)
    assert asker.counted.stages == ALL_PASSED
    heard = asker.queue.asked[1]
    assert heard.headers["accept"] == "text/event-stream"
    assert heard.headers["accept-encoding"] == "identity"


async def test_an_id_from_a_header_is_used_in_a_query(asker: Asker) -> None:
    url = f"https://{HOST}/look/state?job={CORRELATION}&full=1"
    asker.queue.on["/look"] = saying(answer(json.dumps({"state": "done"}).encode()))
    result = await asker.run(
        polled(
            correlate={"source": "response_header", "header_name": "X-Job-Id"},
            completion={"url": url},
            cleanup={"kind": "none", "acknowledged": True},
        )
        | {"result": {}}
    )
    assert outcome_of(result) == (RunOutcome.UP, "", 200)
    assert asker.queue.asked[1].path == "/look/state?job=in-the-head&full=1"


async def test_a_file_is_posted_as_a_form(asker: Asker) -> None:
    submit = {
        "kind": "multipart_fixture",
        "url": f"https://{HOST}/v1/jobs",
        "submit_timeout": 10,
        "accepted_status": [202],
        "fixture_ref": "png",
        "multipart": {"field": "file", "filename": "a.png", "fields": {"purpose": "canary\r\n--"}},
    }
    assert outcome_of(await asker.run(polled(submit=submit))) == (RunOutcome.UP, "", 200)
    posted = asker.queue.asked[0]
    assert posted.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert b"\x89PNG" in posted.body


async def test_ipv6_addresses_are_reached(asker: Asker) -> None:
    del asker.names.records[HOST, "A"]
    asker.names.records[HOST, "AAAA"] = [[HERE_V6]]
    assert (await asker.run(polled())).outcome is RunOutcome.UP
    assert asker.queue.asked[0].address == HERE_V6


# The idempotency key of a submission.


async def test_the_runs_of_a_window_share_an_idempotency_key(asker: Asker) -> None:
    for run_key in ("window-1", "window-1", "window-2", "", ""):
        await asker.run(polled(), run_key=run_key)
    first, again, next_, nameless, other = asker.queue.keys
    assert first == again
    assert len({first, next_, nameless, other}) == 4
    assert "window" not in first


async def test_a_retried_run_submits_under_the_same_key(asker: Asker) -> None:
    asker.queue.states = ["failed", "done"]
    result = await asker.run(polled(), retries=1)
    assert result.outcome is RunOutcome.UP
    assert len(asker.queue.keys) == 2
    assert len(set(asker.queue.keys)) == 1


@pytest.mark.parametrize(("hung_up", "end"), [(2, RunOutcome.UP), (3, RunOutcome.DOWN)])
async def test_an_unanswered_submission_is_tried_three_times(
    asker: Asker, hung_up: int, end: RunOutcome
) -> None:
    keys: list[str] = []

    async def hang_up(asked: Asked, stream: Secure) -> None:
        keys.append(asked.headers["idempotency-key"])
        if len(keys) <= hung_up:
            return
        del asker.queue.on["/v1/jobs"]
        await asker.queue.serve(asked, stream)

    asker.queue.on["/v1/jobs"] = hang_up
    result = await asker.run(polled())
    assert result.outcome is end, result.msg
    assert len(keys) == 3
    assert len(set(keys)) == 1


async def test_a_submission_with_a_partial_answer_is_not_retried(asker: Asker) -> None:
    asker.queue.on["/v1/jobs"] = saying(b"H")
    result = await asker.run(polled())
    assert outcome_of(result) == fails("protocol_error")
    assert len(asker.queue.asked) == 1
    assert asker.counted.stages == [(Stage.SUBMIT, StageEnd.FAILED)]


async def test_a_redirected_submission_is_not_retried(
    asker: Asker,
) -> None:
    asker.queue.on["/v1/jobs"] = saying(answer(b"", "307 Moved", f"location: https://{HOST}/gone"))
    asker.queue.on["/gone"] = saying(b"")
    result = await asker.run(polled())
    assert outcome_of(result) == fails("protocol_error")
    assert len(asker.queue.asked) == 2


async def test_a_permanent_connection_failure_is_not_retried(asker: Asker) -> None:
    asker.names.records["stranger.test", "A"] = [[HERE]]
    result = await asker.run(polled(submit={"url": "https://stranger.test/v1/jobs"}))
    assert outcome_of(result) == (RunOutcome.DOWN, "tls_error stranger.test", None)
    assert asker.queue.greeted == 1


# Failures of the target.


@pytest.mark.parametrize(
    ("said", "message", "code"),
    [
        (answer(b"{}", "200 OK"), "http_status", 200),
        (answer(b"{}", "500 Oh"), "http_status", 500),
        (answer(b"{}", "202 Accepted"), "condition_failed", 202),
        (answer(b"<html>", "202 Accepted"), "condition_failed", 202),
        (answer(b'{"job": {"id": null}}', "202 Accepted"), "condition_failed", 202),
        (answer(b'{"job": {"id": true}}', "202 Accepted"), "condition_failed", 202),
        (answer(b'{"job": {"id": 1.5}}', "202 Accepted"), "condition_failed", 202),
        (answer(b'{"job": {"id": ""}}', "202 Accepted"), "protocol_error", 202),
        (answer(b'{"job": {"id": ".."}}', "202 Accepted"), "protocol_error", 202),
        (answer(b'{"job": {"id": "a\\nb"}}', "202 Accepted"), "protocol_error", 202),
        (answer(b'{"job": {"id": "\\ud800"}}', "202 Accepted"), "condition_failed", 202),
        (answer(b'{"job": {"id": "%s"}}' % (b"a" * 257), "202 A"), "protocol_error", 202),
        (answer(b'{"job": {"id": %s}}' % (b"9" * 4_000), "202 A"), "protocol_error", 202),
        (answer(b" " * RESPONSE_BYTES_MOST + b"{}", "202 A"), "response_too_large", 202),
        (
            answer(gzip.compress(b" " * 10_000_000), "202 A", "content-encoding: gzip"),
            "response_too_large",
            202,
        ),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "protocol_error", None),
    ],
    ids=lambda v: v[:40].decode("latin-1") if isinstance(v, bytes) else str(v),
)
async def test_an_invalid_answer_to_a_submission_fails(
    asker: Asker, said: bytes, message: str, code: int | None
) -> None:
    asker.queue.on["/v1/jobs"] = saying(said)
    assert outcome_of(await asker.run(polled())) == fails(message, code)
    assert len(asker.queue.asked) == 1


@pytest.mark.parametrize(
    ("said", "message", "code"),
    [
        (answer(b"{}", "404 Not Found"), "http_status", 404),
        (answer(b"garbage"), "protocol_error", 200),
        (answer(b"x" * 70_000), "protocol_error", 200),
        (answer(b'{"state": "failed"}'), "condition_failed", 200),
        (answer(b" " * RESPONSE_BYTES_MOST + b"{}"), "response_too_large", 200),
        (answer(b'{"state": "done", "result": {}}'), "condition_failed", 200),
        (answer(b'{"state": "done", "result": {"total": 1}}'), "condition_failed", 200),
        (answer(b'{"state": "done", "result": {"prefix": "canary-1"}}'), "condition_failed", 200),
        (
            answer(b'{"state": "done", "result": {"total": 1, "prefix": 7}}'),
            "condition_failed",
            200,
        ),
        (
            answer(b'{"state": "done", "result": {"total": 1, "prefix": "forever"}}'),
            "condition_failed",
            200,
        ),
    ],
    ids=lambda v: v[:60].decode() if isinstance(v, bytes) else str(v),
)
async def test_an_invalid_or_unwanted_state_fails(
    asker: Asker, said: bytes, message: str, code: int | None
) -> None:
    asker.queue.on["/v1/jobs/"] = saying(said)
    assert outcome_of(await asker.run(polled())) == fails(message, code)


async def test_a_long_state_document_is_read(asker: Asker) -> None:
    said = {"beside": ["x"] * 20_000, "state": "done", "result": RESULT}
    asker.queue.on["/v1/jobs/"] = saying(answer(json.dumps(said).encode()))
    assert (await asker.run(polled())).outcome is RunOutcome.UP


async def test_polling_stops_after_max_attempts(
    asker: Asker,
) -> None:
    asker.queue.on["/v1/jobs/"] = saying(answer(b"", "202 Accepted"))
    result = await asker.run(polled(completion={"poll": {"max_attempts": 2}}))
    assert outcome_of(result) == fails("timeout")
    assert len(asker.queue.to("/v1/jobs/")) == 2


async def test_the_failed_stage_is_counted(asker: Asker) -> None:
    for prefix, last in (("forever", Stage.CLEANUP_VALIDATION), ("", Stage.ASSERT_RESULT)):
        asker.counted.stages.clear()
        asker.queue.result = {"total": 1, "prefix": prefix}
        await asker.run(polled())
        stages = list(Stage)
        passed = [(stage, StageEnd.PASSED) for stage in stages[: stages.index(last)]]
        assert asker.counted.stages == [*passed, (last, StageEnd.FAILED)]


async def test_a_good_result_after_max_latency_fails(asker: Asker) -> None:
    asker.queue.states = ["queued", "done"]
    result = await asker.run(polled(result={"max_latency": 1}))
    assert outcome_of(result) == fails("condition_failed", 200)
    assert asker.counted.stages[-1] == (Stage.ASSERT_RESULT, StageEnd.FAILED)


@pytest.mark.parametrize(
    ("given", "stage"),
    [
        ({"workflow": {"submit": {"submit_timeout": 1}}, "at": "/v1/jobs"}, Stage.SUBMIT),
        ({"workflow": {"completion": {"timeout": 1}}, "at": "/v1/jobs/"}, Stage.AWAIT_RESULT),
        ({"workflow": {}, "at": "/v1/jobs/", "timeout_seconds": 1}, Stage.AWAIT_RESULT),
    ],
)
async def test_silence_ends_at_the_timeout_of_stage_or_run(
    asker: Asker, given: dict[str, Any], stage: Stage
) -> None:
    given.setdefault("timeout_seconds", 10 * PATIENCE_SECONDS)

    async def stay_silent(_asked: Asked, _stream: Secure) -> None:
        await trio.sleep_forever()

    asker.queue.on[given.pop("at")] = stay_silent
    result = await asker.run(polled(**given.pop("workflow")), **given)
    assert outcome_of(result) == fails("timeout")
    assert asker.counted.stages[-1] == (stage, StageEnd.FAILED)


async def test_a_cancelled_run_is_counted_as_cancelled(asker: Asker) -> None:
    reached = trio.Event()

    async def stay_silent(_asked: Asked, _stream: Secure) -> None:
        reached.set()
        await trio.sleep_forever()

    asker.queue.on["/v1/jobs"] = stay_silent
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asker.run, polled())
        await reached.wait()
        nursery.cancel_scope.cancel()
    assert asker.counted.stages == [(Stage.SUBMIT, StageEnd.CANCELLED)]


# Event streams.


@pytest.mark.parametrize(
    ("said", "message", "code"),
    [
        (answer(b"", "204 No Content"), "http_status", 204),
        (answer(b"data: 1\n\n", "200 OK", "content-type: text/plain"), "protocol_error", 200),
        (
            answer(b"x", "200 OK", "content-type: text/event-stream", "content-encoding: br"),
            "protocol_error",
            200,
        ),
    ],
)
async def test_a_response_without_an_event_stream_fails(
    asker: Asker, said: bytes, message: str, code: int
) -> None:
    asker.queue.on["/v1/jobs/"] = saying(said)
    assert outcome_of(await asker.run(streamed())) == fails(message, code)
    assert len(asker.queue.to("/v1/jobs/")) == 1


@pytest.mark.parametrize(
    ("piece", "message", "code"),
    [
        (event("failed", {"result": 1}), "condition_failed", 200),
        (event("done", {"other": 1}), "condition_failed", 200),
        (b"event: done\ndata: garbage\n\n", "condition_failed", 200),
        (b"data: " + b"x" * 70_000, "response_too_large", None),
        (b"x" * 70_000, "response_too_large", None),
        (b"data: xxx\n" * 8_000, "response_too_large", None),
    ],
    ids=lambda v: v[:30].decode() if isinstance(v, bytes) else str(v),
)
async def test_failed_oversized_and_incomplete_events_fail(
    asker: Asker, piece: bytes, message: str, code: int | None
) -> None:
    asker.queue.on["/v1/jobs/"] = streaming(piece, stays=True)
    assert outcome_of(await asker.run(streamed())) == fails(message, code)


async def test_an_endless_stream_is_read_up_to_its_limit(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await_result.CONNECTION_BYTES_MOST == 8 * 1024 * 1024
    monkeypatch.setattr(await_result, "CONNECTION_BYTES_MOST", 256 * 1024)
    sent = 0

    async def go_on(_asked: Asked, stream: Secure) -> None:
        nonlocal sent
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            await stream.send_all(b"data: 1\n\n" * 1_000)
            sent += 9_000

    asker.queue.on["/v1/jobs/"] = go_on
    assert outcome_of(await asker.run(streamed())) == fails("response_too_large")
    assert sent > 200 * 1024


async def test_an_interrupted_stream_resumes_with_the_last_event_id(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    ends = iter(
        [
            streaming(b"retry: 1\n", event("progress", {}, "17"), b"id: 18\ndata: torn"),
            # The connection breaks: the server sends less than it announced.
            saying(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n"
            ),
            streaming(event("done", END)),
        ]
    )

    async def resume(asked: Asked, stream: Secure) -> None:
        heard.append(asked.headers.get("last-event-id", ""))
        await next(ends)(asked, stream)

    asker.queue.on["/v1/jobs/"] = resume
    # The stream sets the reconnection time.
    monkeypatch.setattr(await_result, "RETRY_SECONDS", 10 * PATIENCE_SECONDS)
    result = await asker.run(streamed())
    assert result.outcome is RunOutcome.UP, result.msg
    assert heard == ["", "17", "17"]


async def test_a_stream_that_ends_repeatedly_times_out(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(await_result, "CONNECTIONS_MOST", 2)
    asker.queue.on["/v1/jobs/"] = streaming(b"retry: 1\n\n", b"event: done\ndata: {}\n")
    assert outcome_of(await asker.run(streamed())) == fails("timeout")
    assert len(asker.queue.to("/v1/jobs/")) == 2


# Local failures.


async def test_a_missing_or_invalid_secret_is_a_local_failure(
    asker: Asker,
) -> None:
    for secrets, reason in (
        ({}, UnknownReason.MISSING_REFERENCE),
        ({"canary_secret_other": KEY}, UnknownReason.MISSING_REFERENCE),
        ({"canary_secret_key": "a\r\nb"}, UnknownReason.BAD_SECRET),
    ):
        result = await asker.run(polled(), secrets=secrets)
        assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)
    assert asker.queue.greeted == 0


async def test_an_unknown_document_version_is_a_local_failure(asker: Asker) -> None:
    result = await asker.run({"kind": "async_transaction_v2"})
    assert result.unknown_reason is UnknownReason.BAD_DEFINITION


async def test_a_dead_resolver_and_a_missing_route_are_local_failures(asker: Asker) -> None:
    url = {"url": "https://46.1.1.1/v1/jobs"}
    far = await asker.run(polled(submit=url))
    assert far.unknown_reason is UnknownReason.NO_ROUTE
    asker.names.records.clear()
    asker.names.records[HOST, "A"] = [None]
    asker.names.root = None
    for given in ({"timeout_seconds": 1}, {"workflow": {"submit": {"submit_timeout": 1}}}):
        asker.counted.stages.clear()
        dead = await asker.run(polled(**given.pop("workflow", {})), **given)  # type: ignore[arg-type]
        assert dead.unknown_reason is UnknownReason.RESOLVER_DEAD
        assert asker.counted.stages == [(Stage.SUBMIT, StageEnd.UNOBTAINABLE)]


async def test_a_failed_run_reveals_only_class_and_host(asker: Asker) -> None:
    asker.queue.states = ["failed"]
    result = await asker.run(polled())
    assert outcome_of(result) == fails("condition_failed", 200)
    assert ID not in repr(result)
    assert KEY not in repr(result)


@pytest.mark.parametrize("workflow", [polled(), streamed()], ids=["polling", "listening"])
async def test_runs_that_are_cancelled_leave_nothing_open(
    asker: Asker, workflow: dict[str, Any]
) -> None:
    asker.queue.on["/v1/jobs/7 of/9?é/events"] = moved("/last")
    asker.queue.on["/last"] = streaming(event("done", END), stays=True)
    await leaves_nothing(lambda: asker.run(workflow))
