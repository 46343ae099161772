"""An asynchronous service over HTTPS: it accepts jobs, and reports them by events and by state.

It records its requests, and misbehaves where a test configures it.
"""

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import trio
import trustme

from leadline.probes.check.canary_stages import Stage, StageEnd
from leadline.probes.check.check import Check, make_check
from leadline.probes.check.result import Result
from leadline.probes.kinds.canary.workflow import CORRELATION
from leadline.probes.runner import run
from tests.support.peers.servers import Names, Prober, Secure, answer, now

# Globally routable addresses, which exist only in the network of the test.
HERE, THERE, HERE_V6 = "45.33.7.1", "45.33.7.2", "2600:3c00::7"
ELSEWHERE = (
    "10.0.0.1", "172.16.0.1", "192.168.7.1", "100.64.0.1", "169.254.169.254", "100.100.100.200",
    "168.63.129.16", "198.18.0.1", "192.0.2.7", "fd00::7", "fd00:ec2::254", "2001:db8::7",
    "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "2002:a00:1::1",
)  # fmt: skip
HOST, OTHER = "jobs.example", "other.example"
KEY = "canary-s3cret-5f1c"
SECRETS = {"canary_secret_key": KEY}
ID = "7 of/9?é"
# More than any run takes that ends for its own reasons.
PATIENCE_SECONDS = 40


@dataclass
class Asked:
    """A request; `address` is the address that the client used."""

    address: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[Asked, Secure], Awaitable[None]]


@dataclass
class Queue:
    """`states` are returned in order, and the last one repeats; `on` replaces the handler of a
    path.
    """

    states: list[str] = field(default_factory=lambda: ["done"])
    result: dict[str, Any] = field(default_factory=lambda: {"total": 7, "prefix": "canary-81"})
    id: object = ID
    on: dict[str, Handler] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    greeted: int = 0
    plain: int = 0

    async def serve(self, asked: Asked, stream: Secure) -> None:
        self.asked.append(asked)
        path = unquote(asked.path)
        for begins, handler in self.on.items():
            if path.startswith(begins):
                return await handler(asked, stream)
        if asked.method == "POST" and path == "/v1/jobs":
            self.keys.append(asked.headers["idempotency-key"])
            body = json.dumps({"job": {"id": self.id}}).encode()
            await stream.send_all(answer(body, "202 Accepted", "x-job-id: in-the-head"))
        elif path.endswith("/state"):
            await stream.send_all(answer(self.state()))
        else:
            await stream.send_all(answer(b"not here", "404 Not Found"))
        return None

    def state(self) -> bytes:
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        said: dict[str, Any] = {"state": state}
        if state == "done":
            said["result"] = self.result
        return json.dumps(said).encode()

    def to(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if unquote(asked.path).startswith(path)]


def saying(data: bytes) -> Handler:
    async def handle(_asked: Asked, stream: Secure) -> None:
        await stream.send_all(data)

    return handle


def moved(location: str, status: int = 307) -> Handler:
    return saying(answer(b"", f"{status} Moved", f"location: {location}"))


def streaming(*pieces: bytes, stays: bool = False) -> Handler:
    """Sends these pieces as an event stream, and then ends it; with `stays` it waits for the client
    to close.
    """

    async def handle(_asked: Asked, stream: Secure) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for piece in pieces:
            await stream.send_all(piece)
        if stays:
            await stream.receive_some(1)

    return handle


def event(kind: str, data: object, id_: str = "") -> bytes:
    named = f"id: {id_}\n" if id_ else ""
    return f"{named}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()


@asynccontextmanager
async def working(queue: Queue, authority: trustme.CA) -> AsyncIterator[None]:
    """Serves 443 and 8443 of every address, and port 80 without TLS, which no client may use."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    addresses = [HERE, THERE, HERE_V6, *ELSEWHERE, "127.0.0.1", "::1"]
    authority.issue_cert(HOST, OTHER, "*.example", *addresses).configure_cert(context)

    async def talk(stream: trio.SocketStream) -> None:
        queue.greeted += 1
        address = stream.socket.getsockname()[0]
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            asked = await _read(wrapped, address)
            if asked is not None:
                await queue.serve(asked, wrapped)
                await wrapped.aclose()

    async def be_ashamed(stream: trio.SocketStream) -> None:
        queue.plain += 1
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        for host in ("0.0.0.0", "::"):
            for port, handler in ((443, talk), (8443, talk), (80, be_ashamed)):
                listeners = await trio.open_tcp_listeners(port, host=host)
                await nursery.start(trio.serve_listeners, handler, listeners)
        yield
        nursery.cancel_scope.cancel()


async def _read(stream: Secure, address: str) -> Asked | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = await stream.receive_some(65_536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive_some(65_536)
    method, path, _ = first.split(" ")
    return Asked(address, method, path, headers, bytes(body))


# The client.


def polled(**given: Any) -> dict[str, Any]:
    """Returns a workflow with polling; the arguments replace parts of it, or fields in them."""
    workflow: dict[str, Any] = {
        "kind": "async_transaction_v1",
        "secrets": {"key": "shop-api"},
        "submit": {
            "kind": "http_json",
            "url": f"https://{HOST}/v1/jobs",
            "submit_timeout": 10,
            "accepted_status": [202],
            "headers": [
                {"name": "Authorization", "secret_ref": "key"},
                {"name": "X-Purpose", "value": "canary"},
            ],
            "body": {"sku": "tea", "count": 1},
        },
        "correlate": {"source": "response_json", "path": "job.id"},
        "completion": {
            "kind": "poll_json",
            "url": f"https://{HOST}/v1/jobs/{CORRELATION}/state",
            "timeout": 20,
            "headers": [{"name": "X-Api-Key", "secret_ref": "key"}],
            "poll": {
                "interval": 1,
                "max_attempts": 5,
                "success": {"path": "state", "value": "done"},
                "failure": {"path": "state", "values": ["failed"]},
            },
        },
        "result": {"required_json_fields": ["result.total"], "lifecycle_path": "result.prefix"},
        "cleanup": {"kind": "lifecycle_prefix", "prefix": "canary-"},
    }
    return merged(workflow, given)


def streamed(**given: Any) -> dict[str, Any]:
    workflow = polled()
    workflow["completion"] = {
        "kind": "sse",
        "url": f"https://{HOST}/v1/jobs/{CORRELATION}/events",
        "timeout": 20,
        "sse": {
            "success_event": "done",
            "failure_events": ["failed"],
            "required_json_fields": ["result"],
        },
    }
    return merged(workflow, given)


def merged(whole: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    for name, value in given.items():
        inner = whole.get(name)
        both = (
            isinstance(inner, dict)
            and isinstance(value, dict)
            and not {"kind", "source"} & value.keys()
        )
        whole[name] = merged(dict(inner), value) if both else value  # type: ignore[arg-type]
    return whole


@dataclass
class Counted:
    stages: list[tuple[Stage, StageEnd]] = field(default_factory=list)

    def __call__(self, stage: Stage, end: StageEnd) -> None:
        self.stages.append((stage, end))


@dataclass
class Asker:
    prober: Prober
    names: Names
    queue: Queue
    counted: Counted = field(default_factory=Counted)

    async def run(self, workflow: dict[str, Any], **given: Any) -> Result:
        check = canary_check(workflow, **given)
        reach = replace(self.prober.reach, stages=self.counted)
        with trio.fail_after(PATIENCE_SECONDS):
            return await run(check, reach, now)


def canary_check(
    workflow: dict[str, Any],
    *,
    run_key: str = "window-1",
    secrets: dict[str, str] | None = None,
    timeout_seconds: int = 30,
    retries: int = 0,
) -> Check:
    check = make_check(
        "async_canary",
        "",
        None,
        {"workflow": workflow, "canary_secret_key_ref": "shop-api"},
        [],
        retries=retries,
        timeout_seconds=timeout_seconds,
        secrets=SECRETS if secrets is None else secrets,
    )
    return replace(check, run_key=run_key)
