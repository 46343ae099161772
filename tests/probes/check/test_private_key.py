"""Private keys are read for their kind and size before OpenSSL reads them."""

import base64
import ssl

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check import client_certificate
from leadline.probes.check.client_certificate import key_fault
from leadline.probes.check.failure import LocalFailure
from leadline.probes.check.private_key import (
    KEY_LONGEST,
    OTHER_KIND,
    PASSPHRASE,
    TOO_LARGE,
    BadKey,
    ClientCertificate,
    private_block,
)
from leadline.probes.check.result import UnknownReason
from leadline.probes.net.tls_contexts import TlsContexts, TlsSetting, _no_passphrase
from tests.support.peers.real_servers import pems

CHAIN, KEY = pems(trustme.CA().issue_cert("leadline.example"))
_PKCS8, _OLD = PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes([size]) if size < 0x80 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def _integer(value: int) -> bytes:
    return _der(2, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _pem(label: str, der: bytes) -> str:
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


def _discrete(oid: str, bits: int = 9_992) -> str:
    """A key whose public key takes OpenSSL seconds to compute."""
    odd = (1 << bits) - 1
    parameters = _der(0x30, _integer(odd) + _integer(odd >> 2) + _integer(odd >> 8))
    algorithm = _der(0x30, _der(6, bytes.fromhex(oid)) + parameters)
    return _pem("PRIVATE KEY", _der(0x30, _integer(0) + algorithm + _der(4, _integer(odd >> 16))))


def _rsa(*numbers: int) -> str:
    return _pem("RSA PRIVATE KEY", _der(0x30, b"".join(map(_integer, numbers))))


def _spelt(key: PrivateKeyTypes, form: PrivateFormat = _PKCS8, passphrase: bytes = b"") -> str:
    lock = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, form, lock).decode()


EC = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65_537, 2_048)
ACCEPTED = [
    KEY,
    *(_spelt(key, form) for key in (EC, RSA) for form in (_PKCS8, _OLD)),
    _spelt(ed25519.Ed25519PrivateKey.generate()),
    _spelt(ed448.Ed448PrivateKey.generate()),
    "Bag Attributes\n" + _spelt(RSA),
    _pem("EC PARAMETERS", bytes.fromhex("06082a8648ce3d030107")) + _spelt(EC, _OLD),
    _spelt(RSA).replace("\n", "\r\n"),
]
FACTOR = 1 << 5_000
REFUSED = [
    (_discrete("2a8648ce380401"), OTHER_KIND),
    (_discrete("2a864886f70d010301"), OTHER_KIND),
    (_discrete("2a8648ce3e0201"), OTHER_KIND),
    (_spelt(dsa.generate_private_key(1_024), _OLD), OTHER_KIND),
    (_spelt(x25519.X25519PrivateKey.generate()), OTHER_KIND),
    (_spelt(RSA, passphrase=b"a"), PASSPHRASE),
    (_spelt(RSA, _OLD, b"a"), PASSPHRASE),
    (_rsa(0, 1 << 9_000, 3, 3, 3, 3, 3, 3, 3), TOO_LARGE),
    (_rsa(0, FACTOR * 3, 3, 3, FACTOR, 3, 3, 3, 3), "is not a private key in PEM"),
    (_rsa(0, 15, 3, 3, 5, 5, 3, 3, 3), "is not a private key in PEM"),
    (_spelt(RSA) + _discrete("2a8648ce380401", 4_096), "is not a private key in PEM"),
    (KEY + " " * KEY_LONGEST, f"is longer than {KEY_LONGEST} characters"),
]


@pytest.mark.parametrize("key", ACCEPTED, ids=range(len(ACCEPTED)))
def test_usual_keys_are_accepted(key: str) -> None:
    block = private_block(key)
    assert _public(block) == _public(key)
    assert key_fault(CHAIN, key) == ("" if key == KEY else "is not the key of client_cert")


def _public(key: str) -> object:
    return load_pem_private_key(key.encode(), None).public_key()


@pytest.mark.parametrize(("key", "fault"), REFUSED, ids=range(len(REFUSED)))
def test_no_library_reads_another_key(
    monkeypatch: pytest.MonkeyPatch, key: str, fault: str
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("a library read the key")

    monkeypatch.setattr(client_certificate, "load_pem_private_key", read)
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", read)
    assert key_fault(CHAIN, key) == fault
    with pytest.raises(LocalFailure) as found:
        TlsContexts().make(TlsSetting(False, (), ClientCertificate(CHAIN, key)))
    assert found.value.reason is UnknownReason.BAD_SECRET


def test_a_key_in_the_chain_is_not_read() -> None:
    chain = _spelt(RSA, passphrase=b"a") + CHAIN
    assert ClientCertificate(chain, KEY).pem.count("PRIVATE KEY") == 2
    TlsContexts().make(TlsSetting(False, (), ClientCertificate(chain, KEY)))


def test_openssl_gets_no_passphrase() -> None:
    with pytest.raises(BadKey):
        _no_passphrase()


@given(
    st.binary(max_size=300), st.sampled_from(["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"])
)
def test_any_bytes_are_judged_without_an_exception(data: bytes, label: str) -> None:
    assert key_fault(CHAIN, _pem(label, data)) != ""


@given(st.integers(0, 1_200), st.integers(0, 255), st.sampled_from(ACCEPTED[:6]))
def test_a_damaged_key_is_judged_without_an_exception(at: int, value: int, key: str) -> None:
    label = key.partition("BEGIN ")[2].partition("-")[0]
    der = bytearray(base64.b64decode("".join(key.strip().splitlines()[1:-1])))
    der[at % len(der)] = value
    assert isinstance(key_fault(CHAIN, _pem(label, bytes(der))), str)
