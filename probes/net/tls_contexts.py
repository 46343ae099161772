"""TLS contexts, one per setting, since each costs 50 ms and almost 1 MB of memory.

A host without certificate authorities cannot verify any server. This is a local failure, and no
target is reported as down.
"""

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.private_key import PASSPHRASE, BadKey, ClientCertificate
from ..check.result import FailureClass, ProbePhase, UnknownReason

CONTEXTS_MOST = 64
HTTP_ALPN = ("http/1.1",)


@dataclass(frozen=True, slots=True)
class TlsSetting:
    """Values that distinguish one context from another."""

    verify: bool
    alpn: tuple[str, ...] = ()
    identity: ClientCertificate | None = None


class TlsContexts:
    """Client contexts by setting, each created once.

    `authorities` is a PEM file of additional trusted authorities. With `alone` it replaces those of
    this host.
    """

    def __init__(self, authorities: Path | None = None, *, alone: bool = False) -> None:
        self._authorities = authorities
        self._alone = alone
        self._made: dict[TlsSetting, ssl.SSLContext] = {}
        self.making = trio.Lock()

    def context(self, *, verify: bool, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        """Returns a context. Blocks the event loop while it creates a missing one."""
        setting = TlsSetting(verify, alpn)
        return self.made(setting) or self.keep(setting, self.make(setting))

    def made(self, setting: TlsSetting) -> ssl.SSLContext | None:
        context = self._made.pop(setting, None)
        return None if context is None else self.keep(setting, context)

    def keep(self, setting: TlsSetting, context: ssl.SSLContext) -> ssl.SSLContext:
        """Stores a context. Evicts the least recently used one at the limit.

        Those with a client certificate go first: each belongs to one monitor, and the others to
        all.
        """
        if len(self._made) >= CONTEXTS_MOST:
            own = (known for known in self._made if known.identity is not None)
            del self._made[next(own, None) or next(iter(self._made))]
        self._made[setting] = context
        return context

    def warm_up(self) -> None:
        """Creates the usual context at start, so that no run waits for it."""
        with suppress(LocalFailure):
            self.context(verify=True, alpn=HTTP_ALPN)

    def make(self, setting: TlsSetting) -> ssl.SSLContext:
        """Creates a context. Can run in a thread.

        Raises: `LocalFailure` if the trust store is missing or the client certificate is invalid.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if setting.alpn:
            context.set_alpn_protocols(list(setting.alpn))
        if setting.identity is not None:
            _introduce(context, setting.identity)
        if not setting.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if self._authorities is not None:
            context.load_verify_locations(cafile=str(self._authorities))
        elif not _has_trust_store():
            raise LocalFailure(UnknownReason.NO_TRUST_STORE)
        if self._authorities is None or not self._alone:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context


def _introduce(context: ssl.SSLContext, identity: ClientCertificate) -> None:
    """Loads a client certificate from an anonymous file, as OpenSSL requires a file.

    Only this process can read the file, and it is never on disk.
    """
    try:
        pem = identity.pem.encode()
        with os.fdopen(os.memfd_create("identity"), "wb") as file:
            file.write(pem)
            file.flush()
            # Without a password, OpenSSL would prompt on the terminal for an encrypted key.
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=_no_passphrase)
    except (ValueError, OSError):
        # The certificate was validated when it was saved, so the key is invalid or does not match.
        raise LocalFailure(UnknownReason.BAD_SECRET) from None


def _no_passphrase() -> str:
    """Refuses an encrypted key, whose passphrase OpenSSL would hash for seconds."""
    raise BadKey(PASSPHRASE)


async def wrap(
    stream: "trio.SocketStream | trio.SSLStream[trio.SocketStream]",
    context: ssl.SSLContext,
    server_name: str,
    watch: Stopwatch,
) -> "trio.SSLStream[trio.SocketStream]":
    """Returns the stream after its handshake, whose certificate `watch` gets.

    The caller closes the given stream.

    Raises: `TargetFailure(tls_error)` if the handshake fails.
    """
    watch.begin(ProbePhase.TLS)
    # A TLS stream to a proxy has the same methods.
    wrapped = trio.SSLStream(
        cast("trio.SocketStream", stream),
        context,
        server_hostname=server_name.partition("%")[0],
        https_compatible=True,
    )
    try:
        await wrapped.do_handshake()
    except (trio.BrokenResourceError, ssl.SSLError, ssl.CertificateError) as error:
        raise TargetFailure(FailureClass.TLS_ERROR) from error
    watch.done()
    watch.certificate = wrapped.getpeercert(binary_form=True)
    return wrapped


def broken_by(error: Exception) -> FailureClass:
    """Returns the class of a stream that broke after its handshake.

    A TLS 1.3 server refuses a client certificate with an alert after the handshake.
    """
    alert = isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError)
    return FailureClass.TLS_ERROR if alert else FailureClass.CONNECT_ERROR


def _has_trust_store() -> bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile and os.path.getsize(paths.cafile) > 0:
        return True
    return bool(paths.capath and any(os.scandir(paths.capath)))
