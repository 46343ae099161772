"""A small server of the agent protocol: it gives out windows and accepts results, and a test can
make it absent, slow, refusing or faulty."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import h11
import msgspec
import trio

from leadline.daemon.agent.job_parser import SECOND, moment
from tests.agents.job_samples import REGION, T0, TOKEN, job

AHEAD_US = 1_500_000
# Longer than real pauses, because time can run fast in the tests.
LEASE_US = 300 * SECOND
Answer = tuple[int, Any]


@dataclass
class Watched:
    """A monitor whose windows the server gives out; `given` are those it did."""

    monitor: UUID
    target: str
    interval_seconds: int = 60
    anchor: int = T0
    revision: int = 1
    given: set[int] = field(default_factory=set)


@dataclass
class FakeServer:
    """`fault` can replace the response of a route: bytes are sent unchanged, None closes the
    connection."""

    clock: Callable[[], int]
    token: str = TOKEN
    region: str = REGION
    shift: int = 0
    watched: list[Watched] = field(default_factory=list)
    extra: list[dict[str, Any]] = field(default_factory=list)
    # Tests to give out, and their results.
    tests: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    # More fields of a heartbeat response, and the certificates that came.
    greeting: dict[str, Any] = field(default_factory=dict)
    certificates: list[dict[str, Any]] = field(default_factory=list)
    results: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    batches: list[tuple[str, int]] = field(default_factory=list)
    heard: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    refuse: Callable[[dict[str, Any]], int] = lambda item: 0
    # Items that are listed in `refused`, while the rest of their batch is accepted.
    unstorable: Callable[[dict[str, Any]], bool] = lambda item: False
    fault: Callable[[str, "FakeServer"], Any] | None = None
    gives: bool = True
    url: str = ""

    def now(self) -> int:
        return self.clock() + self.shift

    @asynccontextmanager
    async def listening(self, context: ssl.SSLContext | None = None) -> AsyncIterator["FakeServer"]:
        """Serves HTTP, or TLS if a context is given."""
        plain = await trio.open_tcp_listeners(0, host="127.0.0.1")
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{plain[0].socket.getsockname()[1]}"
        listeners: list[Any] = list(plain)
        if context is not None:
            listeners = [trio.SSLListener(each, context, https_compatible=True) for each in plain]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, self._converse, listeners)
            yield self
            nursery.cancel_scope.cancel()
        for listener in listeners:
            await listener.aclose()

    def taken(self) -> list[tuple[UUID, str]]:
        """Monitor and due instant of each result, as they came."""
        return [(UUID(item["monitor_id"]), item["due_at"]) for _, item in self.results]

    async def _converse(self, stream: Any) -> None:
        http = h11.Connection(h11.SERVER)
        try:
            request, body = await _read(stream, http)
            answer = await _while_there(stream, lambda: self._answer(request, body))
            if isinstance(answer, bytes):
                await stream.send_all(answer)
            elif answer is not None:
                await _write(stream, http, *answer)
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, request: h11.Request, body: bytes) -> Any:
        target = urlsplit(request.target.decode())
        route = target.path.removeprefix("/api/v1/agent/")
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        headers = {name.decode(): value.decode() for name, value in request.headers}
        self.headers.append({"route": route, **headers})
        if self.fault is not None:
            found = self.fault(route, self)
            if hasattr(found, "__await__"):
                found = await found
            if found is not ...:
                return found
        if headers.get("authorization") != f"Bearer {self.token}":
            return 401, {"error": "unauthorized"}
        if query.get("region") != self.region:
            return 403, {"error": "forbidden"}
        if route == "heartbeat":
            self.heard.append(msgspec.json.decode(body))
            return 200, {"now": moment(self.now())} | self.greeting
        if route == "jobs":
            jobs = await self._jobs(int(query["max"]), int(query["wait"]))
            tests, self.tests = self.tests, []
            return 200, {"jobs": jobs} | ({"tests": tests} if tests else {})
        if route == "tests":
            self.tried.append(msgspec.json.decode(body))
            return 200, {"accepted": True}
        if route == "certificates":
            items = msgspec.json.decode(body)["certificates"]
            self.certificates += items
            return 200, {"accepted": len(items)}
        return self._take(route, msgspec.json.decode(body)["results"])

    async def _jobs(self, most: int, wait: int) -> list[dict[str, Any]]:
        with trio.move_on_after(wait):
            while True:
                if self.fault is not None:
                    found = self.fault("jobs", self)
                    if hasattr(found, "__await__"):
                        await found
                    elif found is not ...:
                        raise trio.BrokenResourceError
                jobs = self._due(most)
                if jobs or self.tests:
                    return jobs
                await trio.sleep(0.02)
        return []

    def _due(self, most: int) -> list[dict[str, Any]]:
        found, self.extra = self.extra[:most], self.extra[most:]
        if not self.gives:
            return found
        for each in self.watched:
            step = each.interval_seconds * SECOND
            now = self.now()
            due = each.anchor + (now + AHEAD_US - each.anchor) // step * step
            if due not in each.given and now < due + min(step, 120 * SECOND) and len(found) < most:
                each.given.add(due)
                found.append(
                    job(
                        due,
                        monitor=each.monitor,
                        target=each.target,
                        revision=each.revision,
                        interval_seconds=each.interval_seconds,
                        anchor=each.anchor,
                        lease_until=max(now, due) + LEASE_US,
                    )
                )
        return found

    def _take(self, route: str, items: list[dict[str, Any]]) -> Answer:
        self.batches.append((route, len(items)))
        for item in items:
            status = self.refuse(item)
            if status:
                return status, {"error": "no"}
        refused = [
            {"index": index, "reason": "too old"}
            for index, item in enumerate(items)
            if self.unstorable(item)
        ]
        items = [item for item in items if not self.unstorable(item)]
        known = {item["job_id"] for _, item in self.results}
        duplicate = sum(item["job_id"] in known for item in items)
        self.results += [(route, item) for item in items]
        counts = {"accepted": len(items) - duplicate, "duplicate": duplicate, "ignored": 0}
        return 200, counts | ({"refused": refused} if refused else {})


async def _while_there(stream: trio.abc.Stream, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Returns the response, or None if the client disconnects first. The real server also gives no
    window to a claim whose client is gone."""
    answer = None

    async def watch() -> None:
        with suppress(trio.BrokenResourceError):
            await stream.receive_some(1)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        with suppress(trio.BrokenResourceError):
            answer = await ask()
        nursery.cancel_scope.cancel()
    return answer


async def _read(stream: trio.abc.Stream, http: h11.Connection) -> tuple[h11.Request, bytes]:
    request, body = None, b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(65_536)))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert request is not None
            return request, body
        else:
            raise trio.BrokenResourceError


async def _write(stream: trio.abc.Stream, http: h11.Connection, status: int, body: Any) -> None:
    data = msgspec.json.encode(body)
    head = h11.Response(status_code=status, headers=[("content-length", str(len(data)))])
    wire = (http.send(head) or b"") + (http.send(h11.Data(data=data)) or b"")
    await stream.send_all(wire + (http.send(h11.EndOfMessage()) or b""))
