"""Redis checks against redis-server, open, with passwords and with TLS, and against other peers."""

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import Prober, serving
from tests.support.processes.ports import free_port

HOST = "127.0.0.1"
# Random, so that no message, code or path contains it by chance.
PASSWORD = "canary-" + secrets.token_hex(8)


@dataclass(frozen=True)
class Redis:
    port: int
    tls_port: int

    @property
    def target(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def tls_target(self) -> str:
        return f"{HOST}:{self.tls_port}"


SPLIT = f"x\r\nAUTH {PASSWORD}"


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


@contextmanager
def redis(folder: Path, authority: trustme.CA, *lines: str) -> Iterator[Redis]:
    """A server without persistence, with `shop` = "open" in database 2 and `other` in 0."""
    folder.mkdir()
    port, tls_port = free_port(), free_port()
    certificate = authority.issue_cert(HOST)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    config = [
        *(f"port {port}", f"tls-port {tls_port}", f"bind {HOST}", 'save ""', "appendonly no"),
        *(f"tls-cert-file {folder}/server.pem", f"tls-key-file {folder}/server.pem"),
        *(f"tls-ca-cert-file {folder}/server.pem", "tls-auth-clients no", f"dir {folder}"),
        *lines,
    ]
    (folder / "redis.conf").write_text("\n".join(config) + "\n")
    process = subprocess.Popen(
        ["redis-server", str(folder / "redis.conf")], stdout=(folder / "log").open("wb")
    )
    try:
        _fill(port, process, folder / "log")
        yield Redis(port, tls_port)
    finally:
        process.terminate()
        process.wait()


def _fill(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    """Waits until the server accepts connections, and stores the keys of the tests."""
    while True:
        assert process.poll() is None, log.read_text()
        try:
            sock = socket.create_connection((HOST, port), timeout=5)
        except ConnectionRefusedError:
            time.sleep(0.005)
            continue
        with sock:
            sock.sendall(
                f"AUTH {PASSWORD}\r\nSET other 3\r\nSELECT 2\r\nSET shop open\r\n"
                "LPUSH list 1\r\nQUIT\r\n".encode()
            )
            while sock.recv(1_000):
                pass
        return


@pytest.fixture(scope="module")
def open_redis(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[Redis]:
    with redis(tmp_path_factory.mktemp("open") / "r", authority) as server:
        yield server


@pytest.fixture(scope="module")
def guarded_redis(
    tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA
) -> Iterator[Redis]:
    limited = f"user limited on >{PASSWORD}2 ~shop +ping +get"
    folder = tmp_path_factory.mktemp("guarded") / "r"
    with redis(folder, authority, f"requirepass {PASSWORD}", limited) as server:
        yield server


# redis-server.


@pytest.mark.needs("redis-server")
async def test_an_answered_ping_is_up_and_a_key_gives_its_value(
    prober: Prober, open_redis: Redis
) -> None:
    target = open_redis.target
    assert (await prober.check("redis", target)).outcome is RunOutcome.UP
    for conditions, config, failure in (
        (["[RESULT] == PONG"], {}, None),
        (["[RESULT] == open"], {"database": 2, "key": "shop"}, None),
        (["[RESULT] > 2", "[CONNECTED] == true"], {"key": "other"}, None),
        (["[RESULT] == closed"], {"database": 2, "key": "shop"}, FailureClass.CONDITION_FAILED),
        (["[RESULT] == null"], {"key": "shop"}, None),
        (["[RESULT] == open"], {"key": "shop"}, FailureClass.CONDITION_FAILED),
        ([], {"key": "shop"}, None),
        ([], {"database": 2, "key": "list"}, FailureClass.PROTOCOL_ERROR),
        ([], {"database": 999}, FailureClass.PROTOCOL_ERROR),
        ([], {"password": PASSWORD}, FailureClass.AUTH_FAILED),
    ):
        result = await prober.check("redis", target, *conditions, **config)
        assert result.msg == (down(failure) if failure else ""), (conditions, config)


@pytest.mark.needs("redis-server")
async def test_a_wrong_password_is_auth_failed(prober: Prober, guarded_redis: Redis) -> None:
    target, limited = guarded_redis.target, {"username": "limited", "password": PASSWORD + "2"}
    for config, secret, failure in (
        ({"password": PASSWORD}, {}, None),
        ({"password_ref": "redis"}, {"password": PASSWORD}, None),
        ({"username": "default", "password": PASSWORD}, {}, None),
        (limited, {}, None),
        ({**limited, "key": "shop"}, {}, None),
        ({**limited, "key": "other"}, {}, FailureClass.AUTH_FAILED),
        ({}, {}, FailureClass.AUTH_FAILED),
        ({"password": "wrong"}, {}, FailureClass.AUTH_FAILED),
        ({"username": "nobody", "password": PASSWORD}, {}, FailureClass.AUTH_FAILED),
        (
            {"password_ref": "redis"},
            {"password": SPLIT},
            FailureClass.AUTH_FAILED,
        ),
    ):
        result = await prober.check("redis", target, secrets=secret, **config)
        assert result.msg == (down(failure) if failure else ""), config
        assert PASSWORD not in repr(result)


@pytest.mark.needs("redis-server")
async def test_tls_is_verified_unless_skipped(
    prober: Prober, open_redis: Redis, guarded_redis: Redis, tmp_path: Path
) -> None:
    good = await prober.check("redis", guarded_redis.tls_target, tls=True, password=PASSWORD)
    plain = await prober.check("redis", open_redis.tls_target, timeout_seconds=2)
    with redis(tmp_path / "r", trustme.CA()) as foreign:
        strict = await prober.check("redis", foreign.tls_target, tls=True)
        lax = await prober.check("redis", foreign.tls_target, tls=True, tls_skip_verify=True)
    stopped = await prober.check("redis", foreign.target)
    assert good.outcome is lax.outcome is RunOutcome.UP
    assert plain.outcome is RunOutcome.DOWN
    assert strict.msg == down(FailureClass.TLS_ERROR)
    assert stopped.msg == down(FailureClass.CONNECT_REFUSED)


@pytest.mark.needs("redis-server")
async def test_certificate_expiry_is_known_with_tls(prober: Prober, guarded_redis: Redis) -> None:
    for target, tls, wanted, up in (
        (guarded_redis.tls_target, True, "[CERT_EXPIRY] > 24h", True),
        (guarded_redis.tls_target, True, "[CERT_EXPIRY] < 24h", False),
        (guarded_redis.target, False, "[CERT_EXPIRY] > 24h", False),
    ):
        result = await prober.check("redis", target, wanted, tls=tls, password=PASSWORD)
        assert result.msg == ("" if up else down(FailureClass.CONDITION_FAILED)), wanted


@pytest.mark.needs("redis-server")
async def test_cancelled_runs_leave_nothing_open(
    prober: Prober, open_redis: Redis, guarded_redis: Redis
) -> None:
    target, tls_target = open_redis.target, guarded_redis.tls_target
    await leaves_nothing(lambda: prober.check("redis", target, database=2, key="shop"))
    await leaves_nothing(
        lambda: prober.check("redis", tls_target, tls=True, password=PASSWORD, database=2)
    )


# Other peers.


async def test_a_missing_secret_is_a_local_failure(prober: Prober) -> None:
    result = await prober.check("redis", f"{HOST}:1", password_ref="redis")
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.MISSING_REFERENCE,
    )


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureClass.PROTOCOL_ERROR),
        (b"*1\r\n$4\r\nPONG\r\n", FailureClass.PROTOCOL_ERROR),
        (b"$-2\r\n", FailureClass.PROTOCOL_ERROR),
        (b"$5\r\nPONG\r\nx", FailureClass.PROTOCOL_ERROR),
        (b"$99999999999999\r\n", FailureClass.PROTOCOL_ERROR),
        (b"$9999999999\r\n", FailureClass.RESPONSE_TOO_LARGE),
        (b"+" + b"x" * 70_000, FailureClass.RESPONSE_TOO_LARGE),
        (b"+PON", FailureClass.PROTOCOL_ERROR),
        (b"", FailureClass.PROTOCOL_ERROR),
        (b"-LOADING Redis is loading the dataset in memory\r\n", FailureClass.PROTOCOL_ERROR),
        (b"-ERR invalid password\r\n", FailureClass.AUTH_FAILED),
    ],
)
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, data: bytes, failure: FailureClass
) -> None:
    async def odd(stream: trio.SocketStream) -> None:
        await stream.receive_some(1_000)
        await stream.send_all(data)
        await stream.send_eof()
        await stream.receive_some(1)

    async with serving(odd) as port:
        assert (await prober.check("redis", f"{HOST}:{port}")).msg == down(failure)


async def test_silence_and_slow_bytes_are_a_timeout(prober: Prober) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        while True:
            await stream.send_all(b"+")
            await trio.sleep(0.05)

    for handler in (silent, dripping):
        async with serving(handler) as port:
            result = await prober.check("redis", f"{HOST}:{port}", timeout_seconds=1)
        assert result.msg == down(FailureClass.TIMEOUT)


def test_invalid_definitions_are_refused() -> None:
    def faulty_fields(**config: object) -> list[str]:
        return [f.field for f in validate("redis", "cache.example:6379", None, config, [])]

    assert faulty_fields(database="3", tls="true", key="a b") == []
    assert faulty_fields(username="app", password_ref="redis") == []
    assert faulty_fields(username="app") == ["config.password"]
    assert faulty_fields(database=-1) == ["config.database"]
    assert faulty_fields(key="a\r\nb") == ["config.key"]
