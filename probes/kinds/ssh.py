"""SSH probe: the server's version, its host key with a pin, and a login with a user.

The version costs one line in each direction and is read here. asyncssh implements the cryptographic
parts.

A pin names one of several keys of a server, without its type. If the server shows another key, the
other types are requested in turn, each on its own connection. No credential is sent before the
pinned key is verified.
"""

import re
import socket
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import trio

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.credentials import PASSWORD_REF, CredentialEncoding, demanded_secret, username
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import read_host_port
from ..net.asyncio_thread import on_asyncio
from ..net.bounded_reader import Reader
from ..net.egress import Egress

if TYPE_CHECKING:
    from ..net.sessions.ssh_session import SshResult

COMMAND_LONGEST = 4_096
# Text that a server may send before its version (RFC 4253, 4.2), and the longest pause in it. A
# server of another protocol waits for the client.
GREETING_BYTES_MOST = 16 * 1024
VERSION_BYTES_MOST = 255
QUIET_SECONDS = 1.0
OUR_VERSION = b"SSH-2.0-leadline\r\n"
# In the order in which they are requested.
HOST_KEY_KINDS = (
    ("ssh-ed25519",),
    ("rsa-sha2-512", "rsa-sha2-256"),
    ("ecdsa-sha2-nistp256",),
    ("ecdsa-sha2-nistp384",),
    ("ecdsa-sha2-nistp521",),
)
_SESSION = "leadline.probes.net.sessions.ssh_session"
_KEXINIT = 20
_COOKIE_BYTES = 16
_PIN = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def _rule(_target: str, config: Config) -> list[SpecFault]:
    faults = []
    pin = config.get("host_key_sha256")
    if pin and not _PIN.fullmatch(str(pin)):
        said = "is a fingerprint as ssh-keygen -l spells it: SHA256: and 43 characters"
        faults.append(SpecFault("config.host_key_sha256", said))
    password, key = config.get("password_ref"), config.get("private_key_ref")
    if password and key:
        faults.append(SpecFault("config.password_ref", "cannot be combined with private_key_ref"))
    if config.get("username") and not (password or key):
        said = "or private_key_ref is required with username"
        faults.append(SpecFault("config.password_ref", said))
    if not config.get("username"):
        for name in ("password_ref", "private_key_ref", "command"):
            if config.get(name):
                faults.append(SpecFault("config.username", f"is required with {name}"))
                break
    return faults


PORT = 22

SPEC = Spec(
    type=MonitorType.SSH,
    help="Reads the server's version; optionally verifies its key, logs in and runs a command.",
    target=TargetForm.HOST_PORT,
    default_port=PORT,
    fields=(
        Field(
            name="host_key_sha256",
            type=FieldType.TEXT,
            help="The fingerprint of one of its host keys, as ssh-keygen -l spells it. Without it "
            "the password is sent to an unverified server.",
        ),
        username("The user to log in as."),
        PASSWORD_REF,
        Field(
            name="private_key_ref",
            type=FieldType.SECRET_NAME,
            help="Project secret with a private key without passphrase.",
        ),
        Field(
            name="command",
            type=FieldType.TEXT,
            help="Run after the login; its output is [RESULT] and its exit status [STATUS].",
            longest=COMMAND_LONGEST,
        ),
    ),
    placeholders=frozenset({"RESULT", "STATUS", "CONNECTED", "RESPONSE_TIME", "IP"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    facts = ProbeValues(connected=True)
    if not check.text("username") and not check.text("host_key_sha256"):
        facts.result = await _greet(check, reach, watch, facts)
        return Observation(facts)
    answer = await _enter(check, reach, watch, facts)
    facts.result = answer.version
    if not check.text("command"):
        return Observation(facts)
    # As in a shell's command substitution, trailing line breaks are removed.
    facts.result = answer.output.decode("utf-8", "replace").rstrip("\r\n")
    facts.status = answer.status
    failure = None if answer.status == 0 else FailureClass.CONDITION_FAILED
    return Observation(facts, code=answer.status, failure=failure)


async def prepare(check: Check) -> None:
    """Imports the library for a login or a pinned key in a thread. It takes a third of a second."""
    if _SESSION not in sys.modules and (check.text("username") or check.text("host_key_sha256")):
        await trio.to_thread.run_sync(import_module, _SESSION)


# Version exchange.


async def _greet(check: Check, reach: Egress, watch: Stopwatch, facts: ProbeValues) -> str:
    host, port = read_host_port(check.target, PORT)
    connection = await reach.dial(host, port, watch)
    facts.ip = connection.address
    try:
        line = await _version(Reader(connection.stream, watch, GREETING_BYTES_MOST), watch)
    finally:
        connection.stream.socket.close()
    return line.decode("utf-8", "replace")


async def _version(reader: Reader, watch: Stopwatch) -> bytes:
    watch.begin(ProbePhase.FIRST_BYTE)
    # Sent first: a server of another protocol waits for its client, and this reveals it.
    await reader.send(OUR_VERSION)
    line = await reader.line()
    with trio.move_on_after(QUIET_SECONDS) as quiet:
        while not line.startswith(b"SSH-"):
            line = await reader.line()
    good = line.startswith((b"SSH-2.0-", b"SSH-1.99-")) and len(line) <= VERSION_BYTES_MOST
    if quiet.cancelled_caught or not good:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return line


# Key exchange and login.


async def _enter(check: Check, reach: Egress, watch: Stopwatch, facts: ProbeValues) -> "SshResult":
    """Connects with the type of host key that matches the pin, and returns the result.

    Raises: `TargetFailure(auth_failed)` if the server does not prove the pinned key.
    """
    secrets = _secrets(check)
    pin = check.text("host_key_sha256")
    # Without a pin any key is accepted, also of an obsolete type.
    every = [algorithm for kind in HOST_KEY_KINDS for algorithm in kind] if pin else []
    answer = await _attempt(check, reach, watch, facts, every, secrets)
    if answer is None:
        # The server showed the first of our types that it has, so that one is skipped.
        for kind in (await _kinds_of_server(check, reach, watch))[1:]:
            answer = await _attempt(check, reach, watch, facts, kind, secrets)
            if answer is not None:
                break
    if answer is None:
        raise TargetFailure(FailureClass.AUTH_FAILED)
    return answer


async def _kinds_of_server(check: Check, reach: Egress, watch: Stopwatch) -> list[list[str]]:
    """Returns the host key types of the server, in our order, from its KEXINIT."""
    host, port = read_host_port(check.target, PORT)
    connection = await reach.dial(host, port, watch)
    try:
        reader = Reader(connection.stream, watch, GREETING_BYTES_MOST)
        await _version(reader, watch)
        packet = await reader.exactly(int.from_bytes(await reader.exactly(4), "big"))
    finally:
        connection.stream.socket.close()
    offered = offered_host_keys(packet)
    return [list(kind) for kind in HOST_KEY_KINDS if offered.intersection(kind)]


def offered_host_keys(packet: bytes) -> set[str]:
    """Returns the second list of a KEXINIT (RFC 4253, 7.1), after the padding length."""
    at = 2 + _COOKIE_BYTES
    if packet[1:2] != bytes([_KEXINIT]):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    names = b""
    for _ in range(2):
        length = int.from_bytes(packet[at : at + 4], "big")
        names = packet[at + 4 : at + 4 + length]
        at += 4 + length
    if at > len(packet):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return set(names.decode("ascii", "replace").split(","))


async def _attempt(
    check: Check,
    reach: Egress,
    watch: Stopwatch,
    facts: ProbeValues,
    algorithms: list[str],
    secrets: tuple[str, str],
) -> "SshResult | None":
    """Returns the result, or None if the server showed another key than the pinned one."""
    host, port = read_host_port(check.target, PORT)
    pin, user = check.text("host_key_sha256"), check.text("username")

    async def work(sock: socket.socket) -> "SshResult | None":
        from ..net.sessions import ssh_session

        if user:
            login = ssh_session.Login(user, *secrets, check.text("command"))
            return await ssh_session.log_in(sock, algorithms, pin, login)
        return await ssh_session.see_host_key(sock, algorithms, pin)

    connection = await reach.dial(host, port, watch)
    facts.ip = connection.address
    watch.begin(ProbePhase.FIRST_BYTE)
    answer = await on_asyncio(socket.socket(fileno=connection.stream.socket.detach()), work)
    watch.done()
    return answer


def _secrets(check: Check) -> tuple[str, str]:
    """Returns the password and the private key, of which at most one is configured."""
    if check.text("password_ref"):
        return demanded_secret(check, "password", CredentialEncoding.COUNTED), ""
    if check.text("private_key_ref"):
        return "", demanded_secret(check, "private_key", CredentialEncoding.COUNTED)
    return "", ""
