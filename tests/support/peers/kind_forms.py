"""A table of every probed monitor type, and the peers that a test plays for it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Union

import trio
import trustme

from leadline.probes.check.result import FailureClass, Result, RunOutcome
from tests.support.peers.servers import Prober, serving

HOST, V6, IDN, A_LABELS = "127.0.0.1", "::1", "bücher.example", "xn--bcher-kva.example"
TIMEOUT_SECONDS = 1

Stream = Union[trio.SocketStream, "trio.SSLStream[trio.SocketStream]"]
Peer = Callable[["Form", Stream], Awaitable[None]]


CONNECT_ERROR, TIMEOUT = FailureClass.CONNECT_ERROR, FailureClass.TIMEOUT
PROTOCOL, TLS = FailureClass.PROTOCOL_ERROR, FailureClass.TLS_ERROR
TOO_LARGE, CONDITION = FailureClass.RESPONSE_TOO_LARGE, FailureClass.CONDITION_FAILED


@dataclass(frozen=True)
class Form:
    """A check of one type. A peer sends `opening` and then `more` repeatedly, which the probe reads
    as a valid beginning.
    """

    kind: str
    target: str = "{host}:{port}"
    config: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[str, ...] = ()
    secrets: dict[str, str] = field(default_factory=dict)
    opening: bytes = b""
    more: bytes = b"a"
    # The peer performs the TLS handshake, and then misbehaves.
    inside_tls: bool = False
    # The probe sends a TLS handshake first.
    begins_with_tls: bool = False
    reads_bodies: bool = False
    # The probe sends nothing before the peer does.
    listens_first: bool = False
    # Failure classes of a peer with another protocol, in addition to `protocol_error`.
    also: frozenset[FailureClass] = frozenset()
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


HEAD = b"HTTP/1.1 200 OK\r\nx: "
BODY = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
WANTS = ("[BODY] contains zebra",)
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
NOTICE = b"N\x00\x00\x00\x06a\x00"
IGNORE = b"\x00\x00\x00\x0c\x06\x02\x00\x00\x00\x00" + bytes(6)
# Bytes of another protocol can be the beginning of an expected message, or precede it.
WAITS = frozenset({TIMEOUT})
RECORD = b"\x16\x03\x03\x40\x00\x02\x00\xff\xff"
LOGIN = {"username": "watcher", "password": "canary-50f1c2"}
STEP = {"method": "GET", "assert": [{"kind": "body_contains", "op": "contains", "value": "zebra"}]}
PIN = "SHA256:" + "A" * 43


def _scenario(scheme: str) -> dict[str, Any]:
    return {"scenario": {"steps": [{**STEP, "url": f"{scheme}://HOST:PORT/"}]}}


FORMS = [
    Form("http", "http://{host}:{port}/", opening=HEAD, name="head"),
    Form("http", "http://{host}:{port}/", {}, WANTS, opening=BODY, reads_bodies=True, name="body"),
    Form("http", "https://{host}:{port}/", opening=RECORD, begins_with_tls=True, name="tls"),
    Form("http", "https://{host}:{port}/", {}, WANTS, opening=BODY, inside_tls=True,
         reads_bodies=True, name="inside tls"),
    Form("http", "https://{host}:{port}/", {"http_version": "2"}, opening=SETTINGS, more=SETTINGS,
         inside_tls=True, name="2"),
    Form("promql", "http://{host}:{port}/", {"query": "up"}, opening=BODY, reads_bodies=True),
    Form("synthetic", "", _scenario("http"), opening=BODY, reads_bodies=True),
    Form("synthetic", "", _scenario("https"), opening=BODY, reads_bodies=True, inside_tls=True,
         name="inside tls"),
    Form("websocket", "ws://{host}:{port}/", opening=HEAD.replace(b"200 OK", b"101 Go")),
    Form("websocket", "wss://{host}:{port}/", opening=HEAD.replace(b"200 OK", b"101 Go"),
         inside_tls=True, name="inside tls"),
    Form("grpc", opening=SETTINGS, more=SETTINGS),
    Form("grpc", config={"tls": True}, opening=SETTINGS, more=SETTINGS, inside_tls=True,
         name="inside tls"),
    Form("tcp", config={"send": "hello"}, conditions=WANTS, also=frozenset({CONDITION, TIMEOUT})),
    Form("tls", opening=RECORD, begins_with_tls=True),
    Form("tls", config={"starttls": "smtp"}, opening=b"220-", listens_first=True, name="smtp"),
    Form("smtp", opening=b"220-", listens_first=True),
    Form("smtp", config={**LOGIN, "encryption": "tls"}, opening=b"220-", inside_tls=True,
         listens_first=True, name="inside tls"),
    Form("dns", "shop.example", {"resolver": "HOST:PORT", "transport": "tcp"},
         opening=b"\xff\xff", also=WAITS, name="tcp"),
    Form("dns", "shop.example", {"resolver": "HOST:PORT", "transport": "dot"},
         opening=RECORD, begins_with_tls=True, name="dot"),
    Form("redis", config={"key": "queue"}, opening=b"+"),
    Form("redis", config={"key": "queue", "tls": True}, opening=b"+", inside_tls=True,
         name="inside tls"),
    Form("postgres", config={**LOGIN, "sslmode": "disable"}, opening=NOTICE, more=NOTICE),
    Form("postgres", config={**LOGIN, "sslmode": "verify-full"}, opening=b"S" + RECORD,
         also=frozenset({TLS}), name="tls"),
    Form("mysql", config=dict(LOGIN), opening=b"\xff\x3f\x00\x00\x0a", listens_first=True),
    Form("rabbitmq", config=dict(LOGIN), opening=b"\x08\x00\x00\x00\x00\x00\x00\xce",
         more=b"\x08\x00\x00\x00\x00\x00\x00\xce"),
    Form("rabbitmq", config={**LOGIN, "tls": True}, opening=b"\x08\x00\x00\x00\x00\x00\x00\xce",
         more=b"\x08\x00\x00\x00\x00\x00\x00\xce", inside_tls=True, name="inside tls"),
    Form("rabbitmq", config={**LOGIN, "mode": "management"}, opening=BODY, reads_bodies=True,
         name="management"),
    Form("ssh", opening=b"hello\r\n", more=b"hello\r\n", also=WAITS),
    Form("ssh", config={"host_key_sha256": PIN}, opening=b"SSH-2.0-x\r\n", more=IGNORE,
         also=WAITS, name="key"),
    Form("ssh", config={"username": "root", "password_ref": "x"}, secrets={"password": "word"},
         opening=b"SSH-2.0-x\r\n", more=IGNORE, also=WAITS, name="login"),
]  # fmt: skip


# Peers, and the failure classes of their ends.


async def read_request(form: Form, stream: Stream) -> None:
    """Reads what the probe has sent; otherwise closing the socket would cause a reset."""
    if not form.listens_first:
        await stream.receive_some(65_536)


async def leaving(form: Form, stream: Stream) -> None:
    await read_request(form, stream)


def otherwise(form: Form, *classes: FailureClass) -> set[FailureClass]:
    return {TLS} if form.begins_with_tls else {*classes, *form.also}


def classes_of_an_end(form: Form) -> set[FailureClass]:
    return otherwise(form, PROTOCOL, CONNECT_ERROR)


@asynccontextmanager
async def playing(
    form: Form, peer: Peer, authority: trustme.CA, host: str = HOST
) -> AsyncIterator[int]:
    """Yields the port of a peer that ignores errors of probes that disconnect."""

    async def handle(stream: trio.SocketStream) -> None:
        gone = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError)
        with suppress(*gone):
            if not form.inside_tls:
                await peer(form, stream)
                return
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert(HOST, V6, A_LABELS).configure_cert(context)
            context.set_alpn_protocols(["h2", "http/1.1"])
            wrapped = trio.SSLStream(stream, context, server_side=True)
            await wrapped.do_handshake()
            await peer(form, wrapped)
            await wrapped.aclose()

    async with serving(handle, host) as port:
        yield port


def asked(form: Form, port: int, host: str = HOST) -> tuple[str, dict[str, Any]]:
    def placed(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: placed(v) for k, v in value.items()}
        if isinstance(value, list):
            return [placed(v) for v in value]
        if isinstance(value, str):
            return value.replace("PORT", str(port)).replace("HOST", host)
        return value

    return form.target.format(host=host, port=port), placed(form.config)


async def run_form(prober: Prober, form: Form, port: int, host: str = HOST) -> Result:
    target, config = asked(form, port, host)
    settings = {"secrets": form.secrets, "timeout_seconds": TIMEOUT_SECONDS}
    return await prober.check(form.kind, target, *form.conditions, **config, **settings)


async def judged(
    prober: Prober, form: Form, port: int, expected: set[FailureClass], host: str = HOST
) -> list[str]:
    result = await run_form(prober, form, port, host)
    wrong = []
    said = result.msg.partition(" ")[0]
    if result.outcome is not RunOutcome.DOWN or said not in expected:
        reason = f"{result.unknown_reason or ''} {result.bug or ''}"
        wrong.append(f"{form}: {result.outcome} {said} {reason}".strip())
    return wrong
