"""The event stream sends the events of visible projects in order, until the credential ends or the
client is too slow.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
import trio

from leadline.daemon.loops.cache_invalidator import CacheInvalidator
from leadline.http.monitors.routes import event_stream as stream
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor_state import MonitorStatus
from leadline.storage.results.event_bus import QUEUE_MOST, StatusEvent
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api


def event(row: MonitorRow, status: MonitorStatus, *, changed: bool = True) -> StatusEvent:
    return StatusEvent(
        monitor_uid=row.uid,
        project_uid=row.project_uid,
        org=row.org,
        project=row.project,
        status=status,
        up=status is MonitorStatus.UP,
        latency_ms=7,
        ts=FROZEN_NOW,
        changed=changed,
    )


class EventReader:
    """The chunks that the application sends on one connection. `chunk` returns "" after the end."""

    def __init__(self) -> None:
        self.send, self._receive = trio.open_memory_channel[bytes](1_000)

    async def chunk(self) -> str:
        with trio.fail_after(30):
            try:
                return (await self._receive.receive()).decode()
            except trio.EndOfChannel:
                return ""

    async def status(self) -> dict[str, Any]:
        name, data = (await self.chunk()).strip().split("\n")
        assert name == "event: status"
        found: dict[str, Any] = json.loads(data.removeprefix("data: "))
        return found


@asynccontextmanager
async def listening(api: Api, who: str, query: str = "") -> AsyncIterator[EventReader]:
    """Opens the stream as a client of the bare application; on exit the client disconnects."""
    heard, gone = EventReader(), trio.Event()
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            if message.get("body"):
                await heard.send.send(message["body"])
            if not message.get("more_body"):
                heard.send.close()

    scope = {
        "type": "http",
        "http_version": "1.1",
        "asgi": {"spec_version": "2.3"},
        "method": "GET",
        "scheme": "http",
        "path": "/api/v1/events",
        "raw_path": b"/api/v1/events",
        "query_string": query.removeprefix("?").encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode(), value.encode()) for name, value in api.credentials[who].items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "extensions": {},
    }
    app: Any = api.client.app
    async with trio.open_nursery() as nursery:
        nursery.start_soon(app, scope, receive, send)
        assert await heard.chunk() == ": connected\n\n"
        yield heard
        gone.set()


async def test_a_status_change_is_sent_with_the_fields_of_the_contract(api: Api) -> None:
    row = await api.new_monitor()
    async with listening(api, "viewer") as heard:
        api.context.bus.publish(event(row, MonitorStatus.DOWN))
        assert await heard.status() == {
            "type": "status",
            "monitor_id": str(row.uid),
            "project_id": str(api.project),
            "status": "down",
            "latency_ms": 7,
            "ts": "2026-01-05T00:00:00.000Z",
        }


async def test_a_result_without_a_change_is_sent_only_with_every_result(api: Api) -> None:
    row = await api.new_monitor()
    async with listening(api, "viewer") as heard:
        api.context.bus.publish(event(row, MonitorStatus.UP, changed=False))
        api.context.bus.publish(event(row, MonitorStatus.DOWN))
        assert (await heard.status())["status"] == "down"
    async with listening(api, "viewer", "?every=result") as heard:
        api.context.bus.publish(event(row, MonitorStatus.UP, changed=False))
        assert (await heard.status())["up"] is True


async def test_a_write_is_told_on_request_to_those_who_see_its_project(api: Api) -> None:
    row = await api.new_monitor()
    path = f"/api/v1/monitors/{row.uid}"
    edits = CacheInvalidator(api.pool, uuid4(), api.context.bus)
    object.__setattr__(api.context, "on_written", edits.note)
    async with (
        listening(api, "viewer", "?edits=1") as heard,
        listening(api, "viewer") as plain,
        listening(api, "stranger", "?edits=1") as stranger,
    ):
        answer = await api.ask("editor", "PATCH", path, json={"enabled": False})
        assert answer.status_code == 200
        await edits.pass_once()
        told = f'event: edit\ndata: {{"project_id":"{api.project}"}}\n\n'
        assert await heard.chunk() == told
        # A refused write, and a read, are no edits; others hear only of status changes.
        assert (await api.ask("viewer", "PATCH", path, json={"enabled": True})).status_code == 403
        await api.ask("editor", "GET", path)
        await edits.pass_once()
        visible = await api.new_monitor("other/shop")
        api.context.bus.publish(event(visible, MonitorStatus.UP))
        api.context.bus.publish(event(row, MonitorStatus.DOWN))
        assert (await heard.status())["status"] == "down"
        assert (await plain.status())["status"] == "down"
        assert (await stranger.status())["monitor_id"] == str(visible.uid)


@pytest.mark.parametrize("who", ["stranger", "neighbour", "foreign_token"])
async def test_events_of_invisible_projects_are_not_sent(api: Api, who: str) -> None:
    hidden = await api.new_monitor("acme/shop")
    place = "acme/mill" if who == "neighbour" else "other/shop"
    visible = await api.new_monitor(place)
    async with listening(api, who) as heard:
        api.context.bus.publish(event(hidden, MonitorStatus.DOWN))
        api.context.bus.publish(event(visible, MonitorStatus.UP))
        assert (await heard.status())["monitor_id"] == str(visible.uid)


async def test_a_stream_pings_and_ends_with_its_credential(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_SECONDS", 0.05)
    async with listening(api, "viewer") as heard:
        assert await heard.chunk() == "event: ping\ndata: {}\n\n"
        async with api.pool.transaction("end") as tx:
            await tx.execute("delete from sessions")
        with trio.fail_after(30):
            while await heard.chunk():
                pass


async def test_no_event_is_sent_after_the_membership_ends(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "PING_SECONDS", 0.05)
    row = await api.new_monitor()
    async with listening(api, "viewer") as heard:
        async with api.pool.transaction("end") as tx:
            await tx.execute(
                "delete from memberships where user_id = %(u)s", u=api.users["viewer"][0]
            )
        assert "ping" in await heard.chunk()
        api.context.bus.publish(event(row, MonitorStatus.DOWN))
        assert "ping" in await heard.chunk()


async def test_a_reader_that_is_too_slow_is_cut_and_not_skipped_over(api: Api) -> None:
    row = await api.new_monitor()
    bus = api.context.bus
    listener = bus.listen()
    for _ in range(QUEUE_MOST + 1):
        bus.publish(event(row, MonitorStatus.UP))
    assert listener.cut
    assert len(bus) == 0
    for _ in range(QUEUE_MOST):
        assert await listener.next() is not None
    assert await listener.next() is None


async def test_a_stop_ends_every_stream(api: Api) -> None:
    async with listening(api, "viewer") as heard:
        api.context.bus.close()
        assert await heard.chunk() == ""
    assert len(api.context.bus) == 0


async def test_a_disconnected_client_leaves_no_listener(api: Api) -> None:
    async with listening(api, "viewer"):
        assert len(api.context.bus) == 1
    assert len(api.context.bus) == 0
