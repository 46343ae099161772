"""SSH by asyncssh on a connected and checked socket: host key, login, command.

Runs on asyncio. The module is imported only there, because the import is slow. It reads no
configuration, keys, agent or known hosts of the local user. Foreign exceptions are converted here.
"""

import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh
from asyncssh.packet import PacketDecodeError
from asyncssh.saslprep import SASLPrepError

from ...check.failure import LocalFailure, TargetFailure
from ...check.result import FailureClass, UnknownReason
from ..asyncio_thread import charged
from ..sockets import class_of

OUTPUT_BYTES_MOST = 64 * 1024
# Output that a server may send before it is read.
WINDOW_BYTES = 128 * 1024
CLIENT_VERSION = "leadline"
# Name that asyncssh uses for the peer. Otherwise it asks the socket, which may be reset.
HOST = "target"
_CHUNK = 16 * 1024

# asyncssh logs hosts and users at INFO.
logging.getLogger("asyncssh").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials and command of a login.

    Either `password` or `private_key` is set. An empty `command` runs no command.
    """

    username: str
    password: str = field(repr=False)
    private_key: str = field(repr=False)
    command: str


@dataclass(frozen=True, slots=True)
class SshResult:
    """Result of a session.

    `status` is None if a signal ended the command, or without a command.
    """

    version: str
    output: bytes = b""
    status: int | None = None


async def see_host_key(sock: socket.socket, algorithms: list[str], pin: str) -> SshResult | None:
    """Verifies by a key exchange that the server has the pinned key.

    Returns None if the server showed another key.
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
    """Logs in and runs the command. Without a pin, any host key is accepted.

    Returns None if the server showed another key than the pinned one.
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
                # `abort` does not wait. The loop closes the socket in its next iteration.
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
    """Client that compares the host key with the pin, and keeps the server's version."""

    def __init__(self, pin: str) -> None:
        self._pin = pin
        self._connection: asyncssh.SSHClientConnection | None = None
        self.refused_key = False

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn
        # The packets of the server are parsed here, which costs the most.
        conn.data_received = charged(conn.data_received)  # type: ignore[method-assign]

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
        # The user name or password has characters that SASLprep prohibits (RFC 4013).
        raise LocalFailure(UnknownReason.BAD_SECRET) from None
    except (asyncssh.Error, PacketDecodeError, ValueError, ArithmeticError) as error:
        # asyncssh raises the last two for invalid numbers (no group, no key) or text of a server.
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from error
    except OSError as error:
        raise TargetFailure(class_of(error)) from error
