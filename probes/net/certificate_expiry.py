"""End of a peer's certificate. Commands use TLS without this module, whose import is slow."""

from datetime import UTC, datetime
from typing import Final

import trio
from cryptography import x509

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def expires_at_us(wrapped: "trio.SSLStream[trio.SocketStream]") -> int | None:
    """Returns the end of the peer's certificate in µs since the epoch, None if unreadable."""
    der = wrapped.getpeercert(binary_form=True)
    return end_of(der) if der else None


def end_of(der: bytes) -> int | None:
    """Returns the end of a certificate in µs since the epoch, None if unreadable.

    A target that is not verified can send any bytes that OpenSSL accepts.
    """
    try:
        ends = x509.load_der_x509_certificate(der).not_valid_after_utc
    except (trio.Cancelled, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        # The parser has errors of several bases, such as `InvalidVersion`; its panic has another.
        return None
    return int((ends - _EPOCH).total_seconds()) * 1_000_000
