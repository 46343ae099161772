"""A service that accepts and records notifications, and the messages that tests send."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio

from leadline.probes.net.egress import Egress
from leadline.probes.senders.message import Message, MessageSeverity, NotificationStatus
from leadline.probes.senders.send_result import SendContext
from tests.support.peers.servers import answer, read_head, serving

CANARY = "canary-5d21e8"
NOW_US = 1_767_571_200_000_000
KEY = "0195e3a0-0000-7000-8000-000000000001"


def a_message(status: NotificationStatus = NotificationStatus.DOWN, **given: Any) -> Message:
    values: dict[str, Any] = {
        "id": f"0195e3a0-0000-7000-8000-0000000000{len(status):02}",
        "key": KEY,
        "event": f"channel.{status}",
        "status": status,
        "severity": MessageSeverity.CRITICAL,
        "title": "Checkout is down",
        "lines": ("http_status shop.example.com",),
        "link": "https://leadline.example.com/monitors/1",
        "since": NOW_US,
        "why": "3 failures in a row",
    }
    return Message(**{**values, **given})


@dataclass
class Got:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Service:
    """`says` has the answers in order; the last one repeats."""

    says: list[bytes] = field(default_factory=lambda: [answer(b"ok")])
    got: list[Got] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def converse(self, stream: trio.abc.Stream) -> None:
        data = bytes(await read_head(stream))
        if b"\r\n\r\n" not in data:
            return
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            more = await stream.receive_some(65_536)
            if not more:
                return
            body += more
        method, path, _ = first.split()
        self.got.append(Got(method, path, headers, body))
        await stream.send_all(self.says.pop(0) if len(self.says) > 1 else self.says[0])


@asynccontextmanager
async def service(*says: bytes) -> AsyncIterator[Service]:
    made = Service(list(says)) if says else Service()
    async with serving(made.converse) as port:
        made.port = port
        yield made


def means_of(reach: Egress, **given: Any) -> SendContext:
    return SendContext(reach=reach, now=lambda: NOW_US, **given)
