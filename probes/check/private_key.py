"""Client certificate with its private key: kind and size, read before a library reads them.

A library computes for seconds with some keys: the public key of a DSA key, or the passphrase of an
encrypted one. Only RSA, EC, Ed25519 and Ed448 are accepted. Pure.
"""

import re
from base64 import b64decode
from binascii import Error
from dataclasses import dataclass, field
from typing import Final

# A key of RSA with 8 192 bits has 6 400 characters.
KEY_LONGEST: Final = 8_192
CERTIFICATES_LONGEST: Final = 32_768
RSA_BITS_MOST: Final = 8_192
# No factor is longer than half the modulus of the longest key, with some room.
_FACTOR_BITS_MOST: Final = 4_160
_EXPONENT_BITS_MOST: Final = 256
_SCALAR_BYTES_MOST: Final = 80

PASSPHRASE: Final = "has a passphrase: it must be stored without one"
NO_KEY: Final = "is not a private key in PEM"
OTHER_KIND: Final = "is not a key of RSA, EC, Ed25519 or Ed448"
TOO_LARGE: Final = f"is an RSA key of more than {RSA_BITS_MOST} bits"

_INTEGER: Final = 0x02
_OCTETS: Final = 0x04
_OID: Final = 0x06
_SEQUENCE: Final = 0x30
_OPTION_0: Final = 0xA0
_RSA: Final = bytes.fromhex("2a864886f70d010101")
_EC: Final = bytes.fromhex("2a8648ce3d0201")
_EDWARDS: Final = frozenset({bytes.fromhex("2b6570"), bytes.fromhex("2b6571")})
_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s([^-]*)-----END \1-----")
_PARAMETERS: Final = "EC PARAMETERS"
_CERTIFICATES: Final = frozenset({"CERTIFICATE", "X509 CERTIFICATE"})


class BadKey(ValueError):
    """Raised for a key that is not accepted. The text repeats no part of it."""


def private_block(text: str) -> str:
    """Returns the only private key of a PEM text, as one block and nothing else.

    Raises: `BadKey`.
    """
    if len(text) > KEY_LONGEST:
        raise BadKey(f"is longer than {KEY_LONGEST} characters")
    if "ENCRYPTED" in text:
        raise BadKey(PASSPHRASE)
    blocks = [found for found in _BLOCK.findall(text) if found[0] != _PARAMETERS]
    if len(blocks) != 1:
        raise BadKey(NO_KEY)
    label, body = blocks[0]
    try:
        data = b64decode("".join(body.split()), validate=True)
        _expect_known(label, data)
    except BadKey:
        raise
    except (ValueError, Error):
        raise BadKey(NO_KEY) from None
    return f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n"


def certificate_blocks(text: str) -> str:
    """Returns the certificates of a PEM text, without its other blocks."""
    return "".join(
        f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n"
        for label, body in _BLOCK.findall(text)
        if label in _CERTIFICATES
    )


def _expect_known(label: str, data: bytes) -> None:
    if label == "RSA PRIVATE KEY":
        _expect_rsa(data)
    elif label == "EC PRIVATE KEY":
        _expect_ec(data)
    elif label == "PRIVATE KEY":
        _expect_pkcs8(data)
    else:
        raise BadKey(OTHER_KIND if "PRIVATE KEY" in label else NO_KEY)


def _expect_pkcs8(data: bytes) -> None:
    """Reads a PrivateKeyInfo (RFC 5208, 5)."""
    _, rest = _part(_whole(data), _INTEGER)
    algorithm, rest = _part(rest, _SEQUENCE)
    oid, parameters = _part(algorithm, _OID)
    key, _ = _part(rest, _OCTETS)
    if oid == _RSA:
        _expect_rsa(key)
    elif oid == _EC:
        # Another tag states a curve of its own.
        _part(parameters, _OID)
        _expect_ec(key)
    elif oid not in _EDWARDS:
        raise BadKey(OTHER_KIND)


def _expect_rsa(data: bytes) -> None:
    """Reads an RSAPrivateKey of two factors (RFC 8017, A.1.2)."""
    rest, numbers = _whole(data), []
    while rest:
        number, rest = _part(rest, _INTEGER)
        numbers.append(int.from_bytes(number, "big"))
    version, modulus, public, private, p, q, *others = numbers
    if modulus.bit_length() > RSA_BITS_MOST:
        raise BadKey(TOO_LARGE)
    if (
        version != 0
        or len(others) != 3
        or p * q != modulus
        or private.bit_length() > RSA_BITS_MOST
        or public.bit_length() > _EXPONENT_BITS_MOST
        or any(one.bit_length() > _FACTOR_BITS_MOST for one in (p, q, *others))
    ):
        raise BadKey(NO_KEY)


def _expect_ec(data: bytes) -> None:
    """Reads an ECPrivateKey on a named curve (RFC 5915, 3)."""
    _, rest = _part(_whole(data), _INTEGER)
    scalar, rest = _part(rest, _OCTETS)
    if len(scalar) > _SCALAR_BYTES_MOST:
        raise BadKey(NO_KEY)
    if rest[:1] == bytes([_OPTION_0]):
        curve, _ = _part(rest, _OPTION_0)
        _part(curve, _OID)


def _whole(data: bytes) -> bytes:
    content, rest = _part(data, _SEQUENCE)
    if rest:
        raise ValueError("more data")
    return content


def _part(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """Returns the content of the first value, which must have the tag, and the data after it."""
    if len(data) < 2 or data[0] != tag:
        raise ValueError("another tag")
    length, at = data[1], 2
    if length >= 0x80:
        at += length - 0x80
        if not 3 <= at <= 6 or len(data) < at:
            raise ValueError("another length")
        length = int.from_bytes(data[2:at], "big")
    if len(data) < at + length:
        raise ValueError("less data")
    return data[at : at + length], data[at + length :]


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Client certificate: a chain, and the private key of its first certificate, in PEM."""

    certificates: str
    key: str = field(repr=False)

    @property
    def pem(self) -> str:
        """Returns the key and the chain, and nothing that OpenSSL would read besides.

        Raises: `BadKey`.
        """
        if len(self.certificates) > CERTIFICATES_LONGEST:
            raise BadKey("is too long")
        return private_block(self.key) + certificate_blocks(self.certificates)
