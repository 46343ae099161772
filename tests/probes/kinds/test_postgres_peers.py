"""PostgreSQL checks against malformed, hostile and interrupted peers."""

import struct
from contextlib import suppress

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import Stopwatch
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.net.bounded_reader import Reader
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.sessions.postgres_session import PostgresSession
from tests.support.peers.real_servers import HOST
from tests.support.peers.servers import Prober, deadline_for, serving

PASSWORD = "canary-50f1c2"
WATCHER: dict[str, object] = {"username": "watcher", "password": PASSWORD, "database": "shop"}


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


def encoded(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


OK, READY = encoded(b"R", struct.pack("!i", 0)), encoded(b"Z", b"I")
BEGUN = encoded(b"C", b"BEGIN\x00") + encoded(b"Z", b"T")
ENDED = encoded(b"C", b"ROLLBACK\x00") + READY
COLUMN = encoded(b"T", b"\x00\x01n\x00" + bytes(6) + struct.pack("!ihih", 23, 4, -1, 0))
CLEAR = encoded(b"R", struct.pack("!i", 3))
SASL = encoded(b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\x00\x00")


def refusing(state: bytes) -> bytes:
    return encoded(b"E", b"SFATAL\x00C" + state + b"\x00Msecret text\x00\x00")


@pytest.mark.parametrize(
    ("replies", "failure"),
    [
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], FailureClass.PROTOCOL_ERROR),
        ([b"\x00\x00\x00\x00\x00\x00\x00\x00\x00"], FailureClass.PROTOCOL_ERROR),
        ([b""], FailureClass.PROTOCOL_ERROR),
        ([OK[:-1]], FailureClass.PROTOCOL_ERROR),
        ([encoded(b"R", b"\x00")], FailureClass.PROTOCOL_ERROR),
        ([READY], FailureClass.PROTOCOL_ERROR),
        ([encoded(b"R", struct.pack("!i", 7))], FailureClass.AUTH_FAILED),
        ([CLEAR], FailureClass.AUTH_FAILED),
        ([encoded(b"R", struct.pack("!i", 10) + b"OAUTHBEARER\x00\x00")], FailureClass.AUTH_FAILED),
        ([SASL, OK + READY], FailureClass.PROTOCOL_ERROR),
        (
            [SASL, encoded(b"R", struct.pack("!i", 11) + b"r=x,s=eA==,i=1")],
            FailureClass.PROTOCOL_ERROR,
        ),
        ([refusing(b"28P01")], FailureClass.AUTH_FAILED),
        ([refusing(b"57P03")], FailureClass.PROTOCOL_ERROR),
        ([refusing(b"53300")], FailureClass.PROTOCOL_ERROR),
        ([encoded(b"E", b"")], FailureClass.PROTOCOL_ERROR),
        ([encoded(b"N", b"hello\x00") * 30_000], FailureClass.RESPONSE_TOO_LARGE),
        # The transaction did not begin: the client must send nothing further.
        ([OK + READY, encoded(b"C", b"BEGIN\x00") + READY], FailureClass.PROTOCOL_ERROR),
        ([OK + READY, BEGUN, COLUMN + READY + ENDED], FailureClass.CONDITION_FAILED),
        (
            [
                OK + READY,
                BEGUN,
                COLUMN + encoded(b"D", b"\x00\x01" + struct.pack("!i", 1) + b"7") + READY + ENDED,
            ],
            None,
        ),
        (
            [
                OK + READY,
                BEGUN,
                COLUMN + encoded(b"D", b"\x00\x01" + struct.pack("!i", 1) + b"x") + READY,
            ],
            FailureClass.PROTOCOL_ERROR,
        ),
        (
            [
                OK + READY,
                BEGUN,
                COLUMN + encoded(b"D", b"\x00\x01" + struct.pack("!i", 9) + b"x") + READY,
            ],
            FailureClass.PROTOCOL_ERROR,
        ),
        (
            [
                OK + READY,
                BEGUN,
                COLUMN + encoded(b"D", b"\x00\x01" + struct.pack("!i", -7)) + READY,
            ],
            FailureClass.PROTOCOL_ERROR,
        ),
        ([OK + READY, BEGUN, COLUMN + encoded(b"D", b"\x00") + READY], FailureClass.PROTOCOL_ERROR),
        ([OK + READY, BEGUN, encoded(b"T", b"\x00\x01n") + READY], FailureClass.PROTOCOL_ERROR),
        ([OK + READY, BEGUN, COLUMN + b"D\x7f\xff\xff\xff"], FailureClass.RESPONSE_TOO_LARGE),
        ([OK + READY, BEGUN, COLUMN + refusing(b"57014")], FailureClass.TIMEOUT),
    ],
)
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, replies: list[bytes], failure: FailureClass | None
) -> None:
    heard = b""

    async def odd(stream: trio.SocketStream) -> None:
        nonlocal heard
        for reply in replies:
            heard += await stream.receive_some(5_000)
            await stream.send_all(reply)
        await stream.send_eof()
        await stream.receive_some(1)

    async with serving(odd) as port:
        config = {**WATCHER, "sslmode": "disable"}
        result = await prober.check("postgres", f"{HOST}:{port}", query="SELECT 'q'", **config)
    assert result.msg == (down(failure) if failure else "")
    assert PASSWORD.encode() not in heard
    assert (b"SELECT 'q'" in heard) == (BEGUN in replies)


@pytest.mark.parametrize(
    ("mode", "reply", "failure"),
    [
        ("require", b"N", FailureClass.TLS_ERROR),
        ("verify-full", b"N", FailureClass.TLS_ERROR),
        ("require", b"S" + OK + READY, FailureClass.TLS_ERROR),
        ("prefer", b"S" + OK + READY, FailureClass.TLS_ERROR),
        ("prefer", b"H", FailureClass.PROTOCOL_ERROR),
        ("prefer", refusing(b"53300"), FailureClass.PROTOCOL_ERROR),
        ("require", b"", FailureClass.PROTOCOL_ERROR),
    ],
)
async def test_without_the_required_tls_nothing_is_sent(
    prober: Prober, mode: str, reply: bytes, failure: FailureClass
) -> None:
    heard = b""

    async def stripping(stream: trio.SocketStream) -> None:
        nonlocal heard
        heard += await stream.receive_some(8)
        await stream.send_all(reply)
        await stream.send_eof()
        while more := await stream.receive_some(5_000):
            heard += more

    async with serving(stripping) as port:
        result = await prober.check("postgres", f"{HOST}:{port}", sslmode=mode, **WATCHER)
    assert result.msg == down(failure)
    assert b"watcher" not in heard


@given(
    st.lists(
        st.tuples(st.sampled_from(b"RSKZTDCENsIGHW1"), st.binary(max_size=40)).map(
            lambda pair: encoded(bytes([pair[0]]), pair[1])
        )
        | st.sampled_from([OK, READY, BEGUN, COLUMN, SASL])
        | st.binary(max_size=20),
        max_size=12,
    )
)
def test_any_bytes_are_parsed_or_refused(messages: list[bytes]) -> None:
    async def converse(session: PostgresSession) -> None:
        await session.log_in("watcher", "shop", PASSWORD)
        await session.begin("BEGIN READ ONLY")
        await session.first_row("SELECT 1")
        await session.first_row("SELECT 1")

    async def play() -> None:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.send_all(b"".join(messages))
        await theirs.send_eof()
        reader = Reader(ours, Stopwatch(), 10_000, greedy=True)  # type: ignore[arg-type]
        session = PostgresSession(reader, make_reach(probe_policy()), encrypted=False)
        with suppress(TargetFailure):
            await converse(session)

    trio.run(play)


async def test_abrupt_ends_get_their_failure_class(prober: Prober) -> None:
    async def resetting(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        while True:
            await stream.send_all(encoded(b"N", b"x"))
            await trio.sleep(0.05)

    for handler, failure in (
        (resetting, FailureClass.CONNECT_ERROR),
        (silent, FailureClass.TIMEOUT),
        (dripping, FailureClass.TIMEOUT),
    ):
        async with serving(handler) as port:
            for mode in ("disable", "require"):
                if handler is dripping and mode == "require":
                    continue
                result = await prober.check(
                    "postgres",
                    f"{HOST}:{port}",
                    timeout_seconds=deadline_for(failure),
                    sslmode=mode,
                    **WATCHER,
                )
                assert result.msg == down(failure), mode


@pytest.mark.parametrize(
    ("secret", "reason"),
    [({}, UnknownReason.MISSING_REFERENCE), ({"password": "a\x00b"}, UnknownReason.BAD_SECRET)],
)
async def test_a_secret_that_cannot_be_sent_is_a_local_failure(
    prober: Prober, secret: dict[str, str], reason: UnknownReason
) -> None:
    config = {"username": "x", "password_ref": "db"}
    result = await prober.check("postgres", f"{HOST}:1", secrets=secret, **config)
    assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)
