"""SSH by asyncssh on a socket that was dialled and checked: a host key, a login, a command.

Runs on asyncio, and is imported there, since that takes a while. Nothing of this host's user is
read: no configuration, keys, agent or known hosts. Foreign errors are named here, once.
"""

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh
from asyncssh.packet import PacketDecodeError
from asyncssh.saslprep import SASLPrepError

from ..check.failure import LocalFailure, TargetFailure
from ..check.result import FailureClass, UnknownReason
from .sockets import class_of

OUTPUT_BYTES_MOST = 64 * 1024
# What a server may send of a command's output before we have read it.
WINDOW_BYTES = 128 * 1024
CLIENT_VERSION = "leadline"
# What asyncssh calls the other end; else it would ask the socket, which may be reset by then.
HOST = "target"
_CHUNK = 16 * 1024

# It tells of hosts and users at INFO.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Login:
    """One of `password` and `private_key` is given; without a `command` the login is all."""

    username: str
    password: str = field(repr=False)
    private_key: str = field(repr=False)
    command: str


@dataclass(frozen=True, slots=True)
class SshResult:
    """`status` is None where a signal ended the command, or there was none."""

    version: str
    output: bytes = b""
    status: int | None = None


async def see_host_key(sock: socket.socket, algorithms: list[str], pin: str) -> SshResult | None:
    """A key exchange in which the server proved that it has the pinned key; None where it showed
    another.
    """
    client = _Client(pin)
    options = asyncssh.SSHClientConnectionOptions(
        config=None,
        client_factory=lambda: client,
        username=CLIENT_VERSION,
        client_keys=None,
        agent_path=None,
    )
    async with _named_errors():
        key = await asyncssh.get_server_host_key(
            HOST,
            sock=sock,
            config=None,
            options=options,
            client_version=CLIENT_VERSION,
            server_host_key_algs=algorithms,
        )
    if key is None or key.get_fingerprint() != pin:
        return None
    return SshResult(client.version)


async def log_in(
    sock: socket.socket, algorithms: list[str], pin: str, login: Login
) -> SshResult | None:
    """A login, and what a command said; None where another key than the pinned one was shown.
    Without a pin any host key is taken.
    """
    client = _Client(pin)
    keys = [_private_key(login.private_key)] if login.private_key else None
    try:
        async with _named_errors():
            connection = await asyncssh.connect(
                HOST,
                sock=sock,
                config=None,
                client_factory=lambda: client,
                client_version=CLIENT_VERSION,
                known_hosts=(lambda _host, _addr, _port: ([], [], [])) if pin else None,
                server_host_key_algs=algorithms or (),
                x509_trusted_certs=None,
                x509_trusted_cert_paths=[],
                username=login.username,
                password=login.password or None,
                client_keys=keys,
                agent_path=None,
                gss_kex=False,
                gss_auth=False,
                preferred_auth="publickey" if keys else "password,keyboard-interactive",
                login_timeout=0,
            )
            try:
                if not login.command:
                    return SshResult(client.version)
                output, status = await _run(connection, login.command)
                return SshResult(client.version, output, status)
            finally:
                # Nothing is left to say; the loop closes the socket in its next turn.
                connection.abort()
    except TargetFailure:
        if client.refused_key:
            return None
        raise


async def _run(connection: asyncssh.SSHClientConnection, command: str) -> tuple[bytes, int | None]:
    process: asyncssh.SSHClientProcess[bytes] = await connection.create_process(
        command,
        encoding=None,
        stdin=asyncssh.DEVNULL,
        stderr=asyncssh.DEVNULL,
        window=WINDOW_BYTES,
    )
    output = b""
    while piece := await process.stdout.read(_CHUNK):
        output += piece
        if len(output) > OUTPUT_BYTES_MOST:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    await process.wait_closed()
    status = process.exit_status
    return output, status if status is not None and status >= 0 else None


class _Client(asyncssh.SSHClient):
    """Holds the host key against the pin, and keeps what the server calls itself."""

    def __init__(self, pin: str) -> None:
        self._pin = pin
        self._connection: asyncssh.SSHClientConnection | None = None
        self.refused_key = False

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    @property
    def version(self) -> str:
        told = self._connection.get_extra_info("server_version") if self._connection else ""
        return str(told)

    def validate_host_public_key(
        self,
        host: str,  # noqa: ARG002
        addr: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
        key: asyncssh.SSHKey,
    ) -> bool:
        self.refused_key = key.get_fingerprint() != self._pin
        return not self.refused_key


def _private_key(text: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_private_key(text)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise LocalFailure(UnknownReason.BAD_SECRET) from None


@asynccontextmanager
async def _named_errors() -> AsyncIterator[None]:
    try:
        yield
    except asyncssh.PermissionDenied as error:
        raise TargetFailure(FailureClass.AUTH_FAILED) from error
    except SASLPrepError:
        # A user name or a password with characters that nobody may log in with (RFC 4013).
        raise LocalFailure(UnknownReason.BAD_SECRET) from None
    except (asyncssh.Error, PacketDecodeError, ValueError, ArithmeticError) as error:
        # The last two are said of a server's numbers that make no group and no key, and of its
        # text that is none.
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
    except OSError as error:
        raise TargetFailure(class_of(error)) from error
