"""SSH checks against OpenSSH with its own user, and against other peers."""

import logging
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.kinds.ssh import offered_host_keys
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.servers import HANGS_SECONDS, Handler, Prober, deadline_for, serving
from tests.support.processes.ports import free_port, refusing_port

HOST = "127.0.0.1"
USER = "leadline-tester"
PASSWORD = "canary-" + secrets.token_hex(8)
KINDS = {"ed25519": [], "rsa": ["-b", "2048"], "ecdsa": ["-b", "256"]}
real = pytest.mark.needs("sshd", "ssh-keygen", "openssl", "unshare", "root")


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


@dataclass(frozen=True)
class Sshd:
    target: str
    pins: dict[str, str]  # by the type of the host key
    key: str
    foreign_key: str
    locked_key: str


def _key(path: Path, kind: str, *more: str, passphrase: str = "") -> str:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, *more, "-N", passphrase, "-f", str(path)], check=True
    )
    return path.read_text()


def _users(folder: Path) -> str:
    """Replaces the users of this machine for the server process only."""
    made = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True
    )
    hashed = made.stdout.strip()
    passwd, shadow = folder / "passwd", folder / "shadow"
    passwd.write_text(Path("/etc/passwd").read_text() + f"{USER}:x:4242:4242::/:/bin/sh\n")
    shadow.write_text(Path("/etc/shadow").read_text() + f"{USER}:{hashed}:20000:0:99999:7:::\n")
    return f"mount --bind {passwd} /etc/passwd && mount --bind {shadow} /etc/shadow"


@pytest.fixture(scope="module")
def sshd() -> Iterator[Sshd]:
    # The server reads the authorized keys as that user: the folder is open to all.
    with tempfile.TemporaryDirectory(prefix="leadline-") as name:
        Path(name).chmod(0o755)
        with _sshd(Path(name)) as server:
            yield server


@contextmanager
def _sshd(folder: Path) -> Iterator[Sshd]:
    host_keys = [folder / f"host_{kind}" for kind in KINDS]
    for path, (kind, more) in zip(host_keys, KINDS.items(), strict=True):
        _key(path, kind, *more)
    key = _key(folder / "user", "ed25519")
    (folder / "allowed").write_text((folder / "user.pub").read_text())
    port = free_port()
    (folder / "config").write_text(
        "\n".join(
            [
                *(f"Port {port}", f"ListenAddress {HOST}", f"PidFile {folder}/pid"),
                *(f"HostKey {path}" for path in host_keys),
                *(f"AuthorizedKeysFile {folder}/allowed", "StrictModes no", "UsePAM no"),
                *("PasswordAuthentication yes", "MaxStartups 1000", "LoginGraceTime 10", ""),
            ]
        )
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    command = f"{_users(folder)} && exec $(command -v sshd) -D -e -f {folder}/config"
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", command], stderr=(folder / "log").open("wb")
    )
    try:
        _await_listening(port, process, folder / "log")
        yield Sshd(
            target=f"{HOST}:{port}",
            pins={path.name.removeprefix("host_"): _pin(path) for path in host_keys},
            key=key,
            foreign_key=_key(folder / "foreign", "ed25519"),
            locked_key=_key(folder / "locked", "ed25519", passphrase="locked"),
        )
    finally:
        process.terminate()
        process.wait()


def _pin(path: Path) -> str:
    shown = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{path}.pub"], capture_output=True, text=True, check=True
    )
    return shown.stdout.split()[1]


def _await_listening(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection((HOST, port), timeout=5).close()
        except ConnectionRefusedError:
            time.sleep(0.005)
            continue
        return


# OpenSSH.


@real
async def test_a_server_that_sends_its_version_is_up(prober: Prober, sshd: Sshd) -> None:
    plain = await prober.check("ssh", sshd.target)
    read = await prober.check(
        "ssh", sshd.target, "[RESULT] matches ^SSH-2.0-OpenSSH", f"[IP] == {HOST}"
    )
    assert plain.outcome is read.outcome is RunOutcome.UP, (plain, read)
    assert plain.phases.first_byte_us is not None


@real
@pytest.mark.parametrize("kind", KINDS)
async def test_a_pinned_host_key_must_match(prober: Prober, sshd: Sshd, kind: str) -> None:
    pin = sshd.pins[kind]
    good = await prober.check("ssh", sshd.target, "[RESULT] contains OpenSSH", host_key_sha256=pin)
    other = pin[:-1] + ("A" if pin[-1] != "A" else "Q")
    bad = await prober.check("ssh", sshd.target, host_key_sha256=other)
    assert good.outcome is RunOutcome.UP, good
    assert bad.msg == down(FailureClass.AUTH_FAILED)


@real
async def test_logins_by_password_and_key(prober: Prober, sshd: Sshd) -> None:
    pin = {"host_key_sha256": sshd.pins["rsa"]}
    by_password = {"username": USER, "password_ref": "ssh"}
    by_key = {"username": USER, "private_key_ref": "ssh"}
    unknown = "SHA256:" + "A" * 43
    for config, secret, failure in (
        (by_password, {"password": PASSWORD}, None),
        ({**by_password, **pin}, {"password": PASSWORD}, None),
        (by_password, {"password": "wrong"}, FailureClass.AUTH_FAILED),
        ({**by_password, "username": "nobody-here"}, {"password": PASSWORD},
         FailureClass.AUTH_FAILED),
        (by_key, {"private_key": sshd.key}, None),
        ({**by_key, **pin}, {"private_key": sshd.key}, None),
        (by_key, {"private_key": sshd.foreign_key}, FailureClass.AUTH_FAILED),
        ({**by_key, "host_key_sha256": unknown}, {"private_key": sshd.key},
         FailureClass.AUTH_FAILED),
    ):  # fmt: skip
        result = await prober.check("ssh", sshd.target, secrets=secret, **config)
        assert result.msg == (down(failure) if failure else ""), (config, result.bug)
    for secret, reason in (
        ({}, UnknownReason.MISSING_REFERENCE),
        ({"private_key": "no key"}, UnknownReason.BAD_SECRET),
        ({"private_key": sshd.locked_key}, UnknownReason.BAD_SECRET),
    ):
        result = await prober.check("ssh", sshd.target, secrets=secret, **by_key)
        assert (result.outcome, result.unknown_reason) == (RunOutcome.UNKNOWN, reason)


@real
@pytest.mark.parametrize(
    ("command", "conditions", "failure", "code"),
    [
        ("echo fine", [], None, 0),
        ("echo 3; echo >&2 noise", ["[RESULT] > 2", "[STATUS] == 0"], None, 0),
        ("printf 'a\\nb\\n\\n'", ["[RESULT] matches ^a\\nb$"], None, 0),
        ("exit 7", [], FailureClass.CONDITION_FAILED, 7),
        ("exit 7", ["[STATUS] == 7"], None, 7),
        ("echo out; exit 1", ["[RESULT] == out"], None, 1),
        ("kill -9 $$", [], FailureClass.CONDITION_FAILED, None),
        ("cat", [], None, 0),
        ("head -c 70000 /dev/zero", [], FailureClass.RESPONSE_TOO_LARGE, None),
        ("yes", [], FailureClass.RESPONSE_TOO_LARGE, None),
        ("sleep 60", [], FailureClass.TIMEOUT, None),
    ],
)
async def test_the_output_of_a_command_decides(
    prober: Prober,
    sshd: Sshd,
    command: str,
    conditions: list[str],
    failure: FailureClass | None,
    code: int | None,
) -> None:
    result = await prober.check(
        "ssh",
        sshd.target,
        *conditions,
        username=USER,
        private_key_ref="ssh",
        secrets={"private_key": sshd.key},
        command=command,
        timeout_seconds=deadline_for(failure),
    )
    assert (result.msg, result.code) == (down(failure) if failure else "", code), result.bug


@real
async def test_secrets_are_not_logged(
    prober: Prober, sshd: Sshd, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for password in (PASSWORD, "wrong"):
        await prober.check(
            "ssh",
            sshd.target,
            username=USER,
            password_ref="ssh",
            secrets={"password": password},
            command="true",
        )
    assert not [r for r in caplog.records if r.name.startswith("asyncssh")]
    assert USER not in caplog.text


@real
async def test_cancelled_runs_leave_nothing_open(prober: Prober, sshd: Sshd) -> None:
    await leaves_nothing(lambda: prober.check("ssh", sshd.target))
    await leaves_nothing(lambda: prober.check("ssh", sshd.target, host_key_sha256=sshd.pins["rsa"]))
    await leaves_nothing(
        lambda: prober.check(
            "ssh",
            sshd.target,
            username=USER,
            private_key_ref="ssh",
            secrets={"private_key": sshd.key},
            command="echo fine",
        )
    )


# Other peers.


def sending(*pieces: bytes, then: str = "wait") -> Handler:
    async def handle(stream: trio.SocketStream) -> None:
        for piece in pieces:
            await stream.send_all(piece)
        if then == "wait":
            await trio.sleep_forever()
        elif then == "reset":
            linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
            stream.socket.close()
        else:
            await stream.send_eof()
            while await stream.receive_some():
                pass

    return handle


HELLO = b"SSH-2.0-OpenSSH_9.2\r\n"


def _seconds(failure: FailureClass | None) -> int:
    """Returns a deadline that only a peer that does not answer exceeds, also on a busy machine."""
    return 1 if failure is FailureClass.TIMEOUT else 20


@pytest.mark.parametrize(
    ("handler", "failure"),
    [
        (sending(HELLO), None),
        (sending(b"SSH-1.99-Cisco\n"), None),
        (sending(b"This is ours.\r\nGo away.\r\n" + HELLO), None),
        (sending(b"SSH-1.5-old\r\n"), FailureClass.PROTOCOL_ERROR),
        (sending(b"SSH-2.0-" + b"x" * 300 + b"\r\n"), FailureClass.PROTOCOL_ERROR),
        (sending(b"220 mail.example ESMTP\r\n"), FailureClass.PROTOCOL_ERROR),
        (sending(b"Exceeded MaxStartups\r\n", then="end"), FailureClass.PROTOCOL_ERROR),
        (sending(then="end"), FailureClass.PROTOCOL_ERROR),
        (sending(b"x" * 20_000), FailureClass.RESPONSE_TOO_LARGE),
        (sending(b"x\r\n" * 9_000), FailureClass.RESPONSE_TOO_LARGE),
        (sending(), FailureClass.TIMEOUT),
        (sending(b"SSH-"), FailureClass.TIMEOUT),
    ],
)
async def test_greetings_get_their_failure_class(
    prober: Prober, handler: Handler, failure: FailureClass | None
) -> None:
    async with serving(handler) as port:
        result = await prober.check("ssh", f"{HOST}:{port}", timeout_seconds=_seconds(failure))
    assert result.msg == (down(failure) if failure else ""), result.bug


@pytest.mark.parametrize(
    ("handler", "failure"),
    [
        (sending(), FailureClass.TIMEOUT),
        (sending(HELLO), FailureClass.TIMEOUT),
        (sending(HELLO, b"\x00\x00\x00\x0c\x04"), FailureClass.TIMEOUT),
        (sending(then="end"), FailureClass.PROTOCOL_ERROR),
        (sending(HELLO, then="end"), FailureClass.PROTOCOL_ERROR),
        (sending(HELLO, b"\xff" * 4_000), FailureClass.PROTOCOL_ERROR),
        (sending(b"HTTP/1.1 400 Bad Request\r\n\r\n", then="end"), FailureClass.PROTOCOL_ERROR),
        (sending(b"x" * 70_000), FailureClass.PROTOCOL_ERROR),
        (sending(HELLO, then="reset"), FailureClass.CONNECT_ERROR),
    ],
)
async def test_failed_key_exchanges_and_logins_get_their_failure_class(
    prober: Prober, handler: Handler, failure: FailureClass, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library must close the connection itself: waiting for this timeout would exceed the
    # deadline.
    goodbye = "leadline.probes.net.asyncio_thread.GOODBYE_SECONDS"
    monkeypatch.setattr(goodbye, 2 * HANGS_SECONDS)
    login = {"username": USER, "password_ref": "ssh", "secrets": {"password": PASSWORD}}
    async with serving(handler) as port:
        for config in ({"host_key_sha256": "SHA256:" + "A" * 43}, login):
            target, seconds = f"{HOST}:{port}", _seconds(failure)
            result = await prober.check("ssh", target, timeout_seconds=seconds, **config)
            assert result.msg == down(failure), result.bug


def _packet(payload: bytes) -> bytes:
    padding = 12 - (len(payload) + 5 + 4) % 8
    head = (len(payload) + padding + 1).to_bytes(4, "big") + bytes([padding])
    return head + payload + bytes(padding)


def _named(*names: bytes) -> bytes:
    return b"".join(len(name).to_bytes(4, "big") + name for name in names)


CIPHERS = _named(*[b"aes128-ctr"] * 2, *[b"hmac-sha2-256"] * 2, *[b"none"] * 2, b"", b"")
OFFER = b"\x14" + bytes(16) + _named(b"curve25519-sha256", b"ssh-ed25519") + CIPHERS + bytes(5)
REPLY = b"\x1f" + _named(_named(b"ssh-ed25519", bytes(32)), bytes(32))


@given(st.lists(st.binary(min_size=1, max_size=90) | st.just(OFFER) | st.just(REPLY), max_size=4))
def test_arbitrary_packets_are_no_probe_bug(payloads: list[bytes]) -> None:
    async def main() -> None:
        reach = make_reach(probe_policy())
        login = {"username": USER, "password_ref": "ssh", "secrets": {"password": PASSWORD}}
        said = [HELLO, *map(_packet, payloads)]
        async with trio.open_nursery() as nursery:
            await nursery.start(reach.lag.watch)
            async with serving(sending(*said, then="end")) as port:
                for config in ({"host_key_sha256": "SHA256:" + "A" * 43}, login):
                    target = f"{HOST}:{port}"
                    result = await Prober(reach).check("ssh", target, timeout_seconds=1, **config)
                    assert result.outcome is RunOutcome.DOWN, result.bug
            nursery.cancel_scope.cancel()

    trio.run(main)


def _offer(exchange: bytes, host_key: bytes) -> bytes:
    return b"\x14" + bytes(16) + _named(exchange, host_key) + CIPHERS + bytes(5)


def _number(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)


GROUP = b"diffie-hellman-group-exchange-sha256"


@pytest.mark.parametrize(
    ("offer", "reply"),
    [
        *(
            (_offer(GROUP, b"ssh-ed25519"), b"\x1f" + _named(_number(prime), _number(generator)))
            for prime in (0, 1, -1, 3, 1 << 2_047, (1 << 2_047) + 1, (1 << 90_000) + 1)
            for generator in (0, 2, -1)
        ),
        (
            _offer(b"curve25519-sha256", b"rsa-sha2-256"),
            b"\x1f" + _named(_named(b"ssh-rsa", b"\x81", b"\x81"), b"\x01" * 32, b""),
        ),
    ],
)
async def test_invalid_key_numbers_are_a_target_failure(
    prober: Prober, offer: bytes, reply: bytes
) -> None:
    login = {"username": USER, "password_ref": "ssh", "secrets": {"password": PASSWORD}}
    async with serving(sending(HELLO, _packet(offer), _packet(reply))) as port:
        for config in ({"host_key_sha256": "SHA256:" + "A" * 43}, login):
            result = await prober.check("ssh", f"{HOST}:{port}", timeout_seconds=20, **config)
            assert result.msg == down(FailureClass.PROTOCOL_ERROR), result.bug


@given(st.binary(max_size=300))
def test_any_key_offer_is_read_or_refused(packet: bytes) -> None:
    good = bytes([4]) + OFFER + bytes(4)
    assert offered_host_keys(good) == {"ssh-ed25519"}
    with suppress(TargetFailure):
        offered_host_keys(packet)
    with pytest.raises(TargetFailure):
        offered_host_keys(good[:30])


async def test_closed_ports_and_forbidden_addresses_get_their_class(prober: Prober) -> None:
    for config in ({}, {"host_key_sha256": "SHA256:" + "A" * 43}):
        with refusing_port(HOST) as port:
            refused = await prober.check("ssh", f"{HOST}:{port}", **config)
        blocked = await prober.check("ssh", "169.254.169.254:22", **config)
        assert refused.msg == down(FailureClass.CONNECT_REFUSED)
        assert blocked.msg == message(FailureClass.TARGET_BLOCKED, "169.254.169.254")


def test_invalid_definitions_are_refused() -> None:
    def faulty_fields(**config: object) -> list[str]:
        return [f.field for f in validate("ssh", "box.example:22", None, config, [])]

    assert faulty_fields() == []
    assert faulty_fields(host_key_sha256="SHA256:" + "b" * 43) == []
    assert faulty_fields(username="a", private_key_ref="key", command="uptime") == []
    assert faulty_fields(username="a", password_ref="word") == []
    assert faulty_fields(host_key_sha256="MD5:aa:bb") == ["config.host_key_sha256"]
    assert faulty_fields(username="a") == ["config.password_ref"]
    assert faulty_fields(username="a", password_ref="p", private_key_ref="k") == [
        "config.password_ref"
    ]
    assert faulty_fields(command="uptime") == ["config.username"]
    assert faulty_fields(password_ref="p") == ["config.username"]
