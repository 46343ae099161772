"""TLS on a connection: one context per setting, since each costs 50 ms and most of a megabyte.

A host without certificate authorities of its own could verify nobody: that is our trouble, and no
target is called down for it.
"""

import os
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import trio
from cryptography import x509

from ..check.failure import LocalFailure, TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase, UnknownReason

CONTEXTS_MOST = 64
HTTP_ALPN = ("http/1.1",)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Who we are to a server that asks: certificates and the private key of the first, in PEM."""

    certificates: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TlsSetting:
    """All that tells one context from another."""

    verify: bool
    alpn: tuple[str, ...] = ()
    identity: ClientCertificate | None = None


class TlsContexts:
    """Client contexts by setting, made once. `authorities` is a PEM file that is believed too, or
    `alone`: instead of those of this host.
    """

    def __init__(self, authorities: Path | None = None, *, alone: bool = False) -> None:
        self._authorities = authorities
        self._alone = alone
        self._made: dict[TlsSetting, ssl.SSLContext] = {}
        self.making = trio.Lock()

    def context(self, *, verify: bool, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        """At once, for whoever may hold the loop."""
        setting = TlsSetting(verify, alpn)
        return self.made(setting) or self.keep(setting, self.make(setting))

    def made(self, setting: TlsSetting) -> ssl.SSLContext | None:
        context = self._made.pop(setting, None)
        return None if context is None else self.keep(setting, context)

    def keep(self, setting: TlsSetting, context: ssl.SSLContext) -> ssl.SSLContext:
        """The one that was used longest ago makes room."""
        if len(self._made) >= CONTEXTS_MOST:
            del self._made[next(iter(self._made))]
        self._made[setting] = context
        return context

    def warm_up(self) -> None:
        """Makes the usual context now, rather than holding the loop for it during a run."""
        with suppress(LocalFailure):
            self.context(verify=True, alpn=HTTP_ALPN)

    def make(self, setting: TlsSetting) -> ssl.SSLContext:
        """A new one; may run in a thread. `LocalFailure` where we lack what it takes."""
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
    """OpenSSL's reader wants a file: one that only this process has, and that no disk holds."""
    with os.fdopen(os.memfd_create("identity"), "wb") as file:
        file.write(f"{identity.key}\n{identity.certificates}\n".encode())
        file.flush()
        try:
            # Without a password it would ask the terminal for that of an encrypted key.
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=b"")
        except (ssl.SSLError, OSError):
            # The certificate was read when it was saved: it is the key that is none, or another's.
            raise LocalFailure(UnknownReason.BAD_SECRET) from None


async def wrap(
    stream: trio.SocketStream, context: ssl.SSLContext, server_name: str, watch: Stopwatch
) -> "trio.SSLStream[trio.SocketStream]":
    """The stream after its handshake; `TargetFailure(tls_error)` where there is none to be had.

    The stream given stays the caller's to close.
    """
    watch.begin(ProbePhase.TLS)
    wrapped = trio.SSLStream(
        stream, context, server_hostname=server_name.partition("%")[0], https_compatible=True
    )
    try:
        await wrapped.do_handshake()
    except (trio.BrokenResourceError, ssl.SSLError, ssl.CertificateError) as error:
        raise TargetFailure(FailureClass.TLS_ERROR) from error
    watch.done()
    return wrapped


def expires_at_us(wrapped: "trio.SSLStream[trio.SocketStream]") -> int | None:
    """When the peer's own certificate ends, in µs since the epoch; None where it cannot be read."""
    der = wrapped.getpeercert(binary_form=True)
    if not der:
        return None
    try:
        ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    except ValueError:
        return None
    return int((ends - _EPOCH).total_seconds()) * 1_000_000


def _has_trust_store() -> bool:
    paths = ssl.get_default_verify_paths()
    if paths.cafile and os.path.getsize(paths.cafile) > 0:
        return True
    return bool(paths.capath and any(os.scandir(paths.capath)))
