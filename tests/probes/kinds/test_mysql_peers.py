"""MySQL checks against peers with authentication methods that MariaDB does not have, and against
malformed and hostile peers.
"""

import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from hashlib import sha1, sha256

import pytest
import trio
import trio.testing
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.bounded_reader import Reader
from leadline.probes.net.sessions.mysql_session import (
    CONNECT_WITH_DB,
    LOGIN_PACKETS_MOST,
    PLUGIN_AUTH,
    SSL,
    MysqlSession,
)
from tests.support.peers.real_servers import HOST
from tests.support.peers.servers import Prober, deadline_for, serving

PASSWORD = "canary-50f1c2"
WATCHER: dict[str, object] = {"username": "watcher", "password": PASSWORD, "database": "shop"}
NONCE = bytes(range(33, 53))
NATIVE, CACHING = b"mysql_native_password", b"caching_sha2_password"
FAST, FULL = b"\x01\x03", b"\x01\x04"
OK = bytes(7)


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


def framed(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload) | number << 24) + payload


def greeting(plugin: bytes = NATIVE, *, tls: bool = False, version: bytes = b"8.4.0") -> bytes:
    capabilities = 1 | 1 << 9 | 1 << 13 | 1 << 15 | PLUGIN_AUTH | CONNECT_WITH_DB
    capabilities |= SSL if tls else 0
    low, high = capabilities & 0xFFFF, capabilities >> 16
    return b"".join(
        (
            b"\x0a" + version + b"\x00" + struct.pack("<I", 7) + NONCE[:8] + b"\x00",
            struct.pack("<HBHHB", low, 45, 2, high, 21) + bytes(10),
            NONCE[8:] + b"\x00" + plugin + b"\x00",
        )
    )


def refusing(number: int) -> bytes:
    return b"\xff" + struct.pack("<H", number) + b"#28000secret text"


def switching(plugin: bytes) -> bytes:
    return b"\xfe" + plugin + b"\x00" + NONCE + b"\x00"


def rows(*values: bytes, kind: int = 253) -> list[bytes]:
    """Returns a result with one text column, or a column of another type (enum_field_types)."""
    column = b"\x03def" + b"\x00" * 5 + b"\x0c" + struct.pack("<HIBHB2x", 45, 4, kind, 0, 0)
    return [b"\x01", column, b"\xfe\x00\x00\x02\x00", *values, b"\xfe\x00\x00\x02\x00"]


class Peer:
    """Plays a script: each step reads one packet and sends several. The steps after the login are
    sent to every client that reaches them.
    """

    def __init__(self, *login: list[bytes], query: list[bytes] | None = None) -> None:
        self.login = login
        self.query = query or rows(b"\x017")
        self.heard: list[bytes] = []
        self.left = trio.Event()

    async def __call__(self, stream: trio.abc.Stream) -> None:
        """The first step of the script, usually the greeting, reads no packet."""
        number = 0
        for position, answers in enumerate(self.login):
            if position:
                number = await self._hear(stream)
            for answer in answers:
                await stream.send_all(framed(number % 256, answer))
                number += 1
        for answers in ([OK], [OK], [OK], self.query):
            number = await self._hear(stream)
            for answer in answers:
                await stream.send_all(framed(number % 256, answer))
                number += 1
        await self._hear(stream)
        self.left.set()

    async def _hear(self, stream: trio.abc.Stream) -> int:
        """Reads one packet, and returns the number of the packet that answers it."""
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:3], "little"):
            more = await stream.receive_some(65_536)
            if not more:
                raise trio.BrokenResourceError
            data += bytes(more)
        self.heard.append(data[4:])
        return data[3] + 1


def caching_proof() -> bytes:
    """The proof, as the manual of caching_sha2_password defines it."""
    once = sha256(PASSWORD.encode()).digest()
    mask = sha256(sha256(once).digest() + NONCE).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


def native_proof() -> bytes:
    once = sha1(PASSWORD.encode()).digest()
    mask = sha1(NONCE + sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


@pytest.mark.parametrize(
    ("plugin", "replies", "proof"),
    [
        (CACHING, [[FAST, OK]], caching_proof()),
        (CACHING, [[switching(NATIVE)], [OK]], native_proof()),
        (NATIVE, [[OK]], native_proof()),
        (NATIVE, [[switching(CACHING)], [FAST, OK]], caching_proof()),
        (b"sha256_password", [[switching(CACHING)], [FAST, OK]], caching_proof()),
        (b"", [[switching(NATIVE)], [OK]], native_proof()),
    ],
)
async def test_the_authentication_method_of_the_server_is_used(
    prober: Prober, plugin: bytes, replies: list[list[bytes]], proof: bytes
) -> None:
    peer = Peer([greeting(plugin)], *replies)
    async with serving(peer) as port:
        result = await prober.check(
            "mysql", f"{HOST}:{port}", "[RESULT] == 7", timeout_seconds=3_600, **WATCHER
        )
        with trio.fail_after(30):
            await peer.left.wait()
    assert result.msg == ""
    assert proof in peer.heard[len(replies) - 1]
    assert not any(PASSWORD.encode() in packet for packet in peer.heard)
    commands = peer.heard[len(replies) :]
    assert commands == [
        b"\x03SET sql_select_limit = 1, max_execution_time = " + commands[0].split()[-1],
        b"\x03SET SESSION TRANSACTION READ ONLY",
        b"\x03START TRANSACTION READ ONLY",
        b"\x03SELECT 1",
        b"\x01",
    ]
    # The rest of an hour: no machine is so busy that ten minutes have passed.
    assert 3_000_000 < int(commands[0].split()[-1]) <= 3_600_000


@pytest.mark.parametrize(
    ("plugin", "asking"),
    [
        (CACHING, [FULL]),
        (NATIVE, [switching(b"mysql_clear_password")]),
        (NATIVE, [switching(b"sha256_password")]),
        (NATIVE, [switching(b"dialog")]),
    ],
)
async def test_a_clear_text_password_needs_tls(
    prober: Prober, authority: trustme.CA, plugin: bytes, asking: list[bytes]
) -> None:
    plain = Peer([greeting(plugin, tls=True)], asking, [OK])
    async with serving(plain) as port:
        result = await prober.check("mysql", f"{HOST}:{port}", **WATCHER)
    assert result.msg == down(FailureClass.AUTH_FAILED)
    assert not any(PASSWORD.encode() in packet for packet in plain.heard)
    # The client does not request the server's key either, with which it would encrypt the password.
    assert len(plain.heard) == 1

    secure = Peer([], asking, [OK])
    async with serving_after_greeting(secure, plugin, authority) as port:
        result = await prober.check("mysql", f"{HOST}:{port}", tls=True, **WATCHER)
    assert result.msg == ""
    assert secure.heard[1] == PASSWORD.encode() + b"\x00"


def serving_after_greeting(
    peer: Peer, plugin: bytes, authority: trustme.CA
) -> AbstractAsyncContextManager[int]:
    """A server that greets in clear text, reads the TLS request, and encrypts from there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)

    async def handle(stream: trio.SocketStream) -> None:
        await stream.send_all(framed(0, greeting(plugin, tls=True)))
        asked = b""
        while len(asked) < 36:
            asked += await stream.receive_some(36 - len(asked))
        assert b"watcher" not in asked
        wrapped = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        with suppress(ssl.SSLError):
            await peer(wrapped)

    return serving(handle)


@pytest.mark.parametrize("skip", [False, True])
async def test_without_the_required_tls_nothing_is_sent(prober: Prober, *, skip: bool) -> None:
    heard = b""
    for said in (greeting(), greeting(tls=True)):

        async def stripping(stream: trio.SocketStream, said: bytes = said) -> None:
            nonlocal heard
            # A client that does not discard these bytes would read them as encrypted.
            await stream.send_all(framed(0, said) + framed(2, OK))
            await stream.send_eof()
            while more := await stream.receive_some(5_000):
                heard += more

        async with serving(stripping) as port:
            target = f"{HOST}:{port}"
            result = await prober.check("mysql", target, tls=True, tls_skip_verify=skip, **WATCHER)
        assert result.msg == down(FailureClass.TLS_ERROR)
    assert heard
    assert b"watcher" not in heard


@pytest.mark.parametrize(
    ("script", "failure", "code"),
    [
        ([[refusing(1040)]], FailureClass.PROTOCOL_ERROR, 1040),
        ([[refusing(1130)]], FailureClass.AUTH_FAILED, 1130),
        ([[b"\x09" + greeting()[1:]]], FailureClass.PROTOCOL_ERROR, None),
        ([[b"\x0a8.4.0"]], FailureClass.PROTOCOL_ERROR, None),
        ([[greeting()[:30]]], FailureClass.PROTOCOL_ERROR, None),
        ([[greeting()[:20] + bytes(40)]], FailureClass.PROTOCOL_ERROR, None),
        ([[b""]], FailureClass.PROTOCOL_ERROR, None),
        ([[b"\x0a" + b"x" * 20_000]], FailureClass.PROTOCOL_ERROR, None),
        ([[greeting()], [refusing(1045)]], FailureClass.AUTH_FAILED, 1045),
        ([[greeting()], [b"\xff"]], FailureClass.PROTOCOL_ERROR, 0),
        ([[greeting()], [b"\x42"]], FailureClass.PROTOCOL_ERROR, None),
        ([[greeting()], [b"\xfe"]], FailureClass.AUTH_FAILED, None),
        ([[greeting()], [switching(b"client_ed25519")]], FailureClass.AUTH_FAILED, None),
        ([[greeting(CACHING)], [b"\x01-----BEGIN PUBLIC KEY"]], FailureClass.PROTOCOL_ERROR, None),
        # The maximum of login packets; one less, and then silence; one more.
        ([[greeting(CACHING)], [FAST] * LOGIN_PACKETS_MOST], FailureClass.PROTOCOL_ERROR, None),
        ([[greeting(CACHING)], [FAST] * (LOGIN_PACKETS_MOST - 1)], FailureClass.TIMEOUT, None),
        (
            [[greeting(CACHING)], [FAST] * LOGIN_PACKETS_MOST + [OK]],
            FailureClass.PROTOCOL_ERROR,
            None,
        ),
        (
            [[greeting()], *[[switching(NATIVE)]] * LOGIN_PACKETS_MOST],
            FailureClass.PROTOCOL_ERROR,
            None,
        ),
    ],
)
async def test_a_malformed_login_gets_its_failure_class(
    prober: Prober, script: list[list[bytes]], failure: FailureClass, code: int | None
) -> None:
    async with serving(Peer(*script)) as port:
        deadline = deadline_for(failure)
        result = await prober.check("mysql", f"{HOST}:{port}", timeout_seconds=deadline, **WATCHER)
    assert (result.msg, result.code) == (down(failure), code)


@pytest.mark.parametrize(
    ("query", "failure", "code"),
    [
        (rows(b"\x017"), None, None),
        (rows(b"\xfb"), None, None),
        (rows(), FailureClass.CONDITION_FAILED, None),
        ([OK], FailureClass.CONDITION_FAILED, None),
        ([refusing(1146)], FailureClass.PROTOCOL_ERROR, 1146),
        ([refusing(3024)], FailureClass.TIMEOUT, 3024),
        ([*rows()[:3], refusing(1969)], FailureClass.TIMEOUT, 1969),
        # A server that requests a local file.
        ([b"\xfb/etc/passwd"], FailureClass.PROTOCOL_ERROR, None),
        ([b"\xfc\x01"], FailureClass.PROTOCOL_ERROR, None),
        ([b"\xfd\xff\xff\xff", *[b"\x03def"] * 300], FailureClass.PROTOCOL_ERROR, None),
        ([b"\x01", b"\x03de"], FailureClass.PROTOCOL_ERROR, None),
        ([b"\x01", b"\xfe" + b"\xff" * 8], FailureClass.PROTOCOL_ERROR, None),
        ([*rows()[:2], b"\x00"], FailureClass.PROTOCOL_ERROR, None),
        (rows(b"\x097"), FailureClass.PROTOCOL_ERROR, None),
        (rows(b"\xff"), FailureClass.PROTOCOL_ERROR, 0),
        (rows(b"\xfd\xff\xff\xff"), FailureClass.PROTOCOL_ERROR, None),
        (rows(*[b"\xfd\x40\x9c\x00" + b"x" * 40_000] * 8), FailureClass.RESPONSE_TOO_LARGE, None),
        (rows(b"\xfd\xe0\x93\x04" + b"x" * 300_000), FailureClass.RESPONSE_TOO_LARGE, None),
    ],
)
async def test_a_malformed_result_gets_its_failure_class(
    prober: Prober, query: list[bytes], failure: FailureClass | None, code: int | None
) -> None:
    async with serving(Peer([greeting()], [OK], query=query)) as port:
        result = await prober.check("mysql", f"{HOST}:{port}", timeout_seconds=30, **WATCHER)
    assert (result.msg, result.code) == (down(failure) if failure else "", code)


@pytest.mark.parametrize(
    ("kind", "is_number"),
    [*((kind, True) for kind in (0, 1, 2, 3, 4, 5, 8, 9, 13, 246)), (7, False), (253, False)],
)
async def test_the_column_type_decides_if_a_result_is_a_number(
    prober: Prober, kind: int, is_number: bool
) -> None:
    async with serving(Peer([greeting()], [OK], query=rows(b"\x0207", kind=kind))) as port:
        result = await prober.check("mysql", f"{HOST}:{port}", "[RESULT] == 7.0", **WATCHER)
    assert (result.msg == "") is is_number


async def test_a_server_without_a_statement_timeout_is_queried(prober: Prober) -> None:
    peer = Peer([greeting(version=b"5.6.51")], [OK], [refusing(1193)])
    async with serving(peer) as port:
        result = await prober.check("mysql", f"{HOST}:{port}", "[RESULT] == 7", **WATCHER)
    assert result.msg == ""
    assert peer.heard[2] == b"\x03SET sql_select_limit = 1"


@given(st.binary(max_size=200), st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(first: bytes, second: bytes) -> None:
    async def converse(session: MysqlSession) -> None:
        said = await session.greeting()
        await session.log_in(said, "watcher", "shop", PASSWORD)
        await session.first_value("SELECT 1")
        await session.first_value("SELECT 1")

    async def play() -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        for number, packet in ((0, first), (2, second), (1, second), (2, second)):
            await theirs.send_all(framed(number, packet))
        await theirs.send_eof()
        session = MysqlSession(Reader(ours, Stopwatch(), 10_000))  # type: ignore[arg-type]
        with pytest.raises(TargetFailure):
            await converse(session)

    trio.run(play)


async def test_abrupt_ends_get_their_failure_class(prober: Prober) -> None:
    async def resetting(stream: trio.SocketStream) -> None:
        await stream.send_all(framed(0, greeting()))
        await stream.receive_some(1)
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        for byte in framed(0, b"\x0a" + b"8" * 10_000):
            await stream.send_all(bytes([byte]))
            await trio.sleep(0.05)

    async def unexpected_reply(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH_9.2p1\r\n")
        await stream.receive_some(1)

    handlers: list[tuple[Callable[[trio.SocketStream], Awaitable[None]], FailureClass]] = [
        (resetting, FailureClass.CONNECT_ERROR),
        (silent, FailureClass.TIMEOUT),
        (dripping, FailureClass.TIMEOUT),
        (unexpected_reply, FailureClass.PROTOCOL_ERROR),
    ]
    for handler, failure in handlers:
        async with serving(handler) as port:
            deadline = deadline_for(failure)
            result = await prober.check(
                "mysql", f"{HOST}:{port}", timeout_seconds=deadline, **WATCHER
            )
        assert result.msg == down(failure), handler


@pytest.mark.parametrize(
    ("secret", "reason"),
    [({}, UnknownReason.MISSING_REFERENCE), ({"password": "a\x00b"}, UnknownReason.BAD_SECRET)],
)
async def test_a_secret_that_cannot_be_sent_is_a_local_failure(
    prober: Prober, secret: dict[str, str], reason: UnknownReason
) -> None:
    config = {"username": "x", "password_ref": "db"}
    result = await prober.check("mysql", f"{HOST}:1", secrets=secret, **config)
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)
