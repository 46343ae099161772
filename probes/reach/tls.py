"""TLS on a connection: one context per setting, since each costs 50 ms and most of a megabyte.

A host without certificate authorities of its own could verify nobody: that is our trouble, and no
target is called down for it.
"""

import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import trio
from cryptography import x509

from ..failure import Failed, Unobtainable
from ..phases import Stopwatch
from ..result import FailureClass, Phase, UnknownReason

CONTEXTS_MOST = 16
HTTP_ALPN = ("http/1.1",)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Contexts:
    """Client contexts by setting, made once. `authorities` is a PEM file that is believed too."""

    def __init__(self, authorities: Path | None = None) -> None:
        self._authorities = authorities
        self._made: dict[tuple[bool, tuple[str, ...]], ssl.SSLContext] = {}

    def context(self, *, verify: bool, alpn: tuple[str, ...] = ()) -> ssl.SSLContext:
        made = self._made.get((verify, alpn))
        if made is None:
            if len(self._made) >= CONTEXTS_MOST:
                self._made.clear()
            made = self._made[(verify, alpn)] = self._make(verify, alpn)
        return made

    def warm_up(self) -> None:
        """Makes the usual context now, rather than holding the loop for it during a run."""
        with suppress(Unobtainable):
            self.context(verify=True, alpn=HTTP_ALPN)

    def _make(self, verify: bool, alpn: tuple[str, ...]) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            return context
        if self._authorities is not None:
            context.load_verify_locations(cafile=str(self._authorities))
        elif not _has_trust_store():
            raise Unobtainable(UnknownReason.NO_TRUST_STORE)
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context


async def wrap(
    stream: trio.SocketStream, context: ssl.SSLContext, server_name: str, watch: Stopwatch
) -> "trio.SSLStream[trio.SocketStream]":
    """The stream after its handshake; `Failed(tls_error)` where there is none to be had.

    The stream given stays the caller's to close.
    """
    watch.begin(Phase.TLS)
    wrapped = trio.SSLStream(
        stream, context, server_hostname=server_name.partition("%")[0], https_compatible=True
    )
    try:
        await wrapped.do_handshake()
    except (trio.BrokenResourceError, ssl.SSLError, ssl.CertificateError) as error:
        raise Failed(FailureClass.TLS_ERROR) from error
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
