"""Client certificate of a check: its settings, and their rules.

The settings are a chain in PEM, and the private key of its first certificate, which is in a project
secret or in the config. Pure.
"""

from dataclasses import dataclass
from time import time

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import PublicKeyAlgorithmOID

from .check import Check
from .credentials import CredentialEncoding, demanded_secret
from .failure import TargetFailure
from .monitor_spec import Config, Field, FieldType, SpecFault
from .private_key import (
    CERTIFICATES_LONGEST,
    KEY_LONGEST,
    NO_KEY,
    PASSPHRASE,
    BadKey,
    ClientCertificate,
    certificate_blocks,
    private_block,
)
from .result import FailureClass

# Section of the form.
GROUP = "Client certificate"

CLIENT_CERT = Field(
    name="client_cert",
    type=FieldType.TEXT,
    help="Our certificate, with its chain, in PEM, for servers that want one.",
    multiline=True,
    longest=CERTIFICATES_LONGEST,
    group=GROUP,
)
CLIENT_KEY = Field(
    name="client_key",
    type=FieldType.TEXT,
    help="Its private key, in PEM without a passphrase. Stored encrypted, never shown.",
    secret=True,
    multiline=True,
    longest=KEY_LONGEST,
    group=GROUP,
)
CLIENT_KEY_REF = Field(
    name="client_key_ref",
    type=FieldType.SECRET_NAME,
    help="Project secret with the private key, in PEM.",
    group=GROUP,
)
CLIENT_CERTIFICATE_FIELDS = (CLIENT_CERT, CLIENT_KEY, CLIENT_KEY_REF)
_KINDS = frozenset(
    {
        PublicKeyAlgorithmOID.RSAES_PKCS1_v1_5,
        PublicKeyAlgorithmOID.EC_PUBLIC_KEY,
        PublicKeyAlgorithmOID.ED25519,
        PublicKeyAlgorithmOID.ED448,
    }
)


def certificate_faults(target: str, config: Config) -> list[SpecFault]:
    """Returns the faults of the settings. The key of a project secret is checked on write."""
    chain, key = str(config.get("client_cert", "")), str(config.get("client_key", ""))
    named = bool(config.get("client_key_ref"))
    if not chain:
        said = "is required: a key and its certificate"
        return [SpecFault("config.client_cert", said)] if key or named else []
    faults = []
    if not is_certificate(chain):
        faults.append(SpecFault("config.client_cert", "is not a certificate in PEM"))
    if not target.startswith(("https:", "wss:")):
        said = "has an effect only on an https or wss target"
        faults.append(SpecFault("config.client_cert", said))
    if key and named:
        faults.append(SpecFault("config.client_key", "cannot be combined with client_key_ref"))
    elif not key and not named:
        said = "or client_key_ref is required with client_cert"
        faults.append(SpecFault("config.client_key", said))
    elif key and not faults:
        wrong = key_fault(chain, key)
        faults += [SpecFault("config.client_key", wrong)] if wrong else []
    return faults


def is_certificate(text: str) -> bool:
    try:
        return bool(_read_chain(text))
    except ValueError:
        return False


def _read_chain(text: str) -> list[x509.Certificate]:
    """Raises: `ValueError` if the text is no chain."""
    if len(text) > CERTIFICATES_LONGEST:
        raise ValueError("too long")
    return x509.load_pem_x509_certificates(certificate_blocks(text).encode())


def key_fault(chain: str, key: str) -> str:
    """Returns the fault of a key, or "" if it belongs to the first certificate of a chain.

    The primes of a key are not tested, which would take a second: OpenSSL does not test them. Its
    kind and size are read first, so that the event loop is not blocked.
    """
    try:
        private = load_pem_private_key(
            private_block(key).encode(), password=None, unsafe_skip_rsa_key_validation=True
        )
        own = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except BadKey as bad:
        return str(bad)
    except TypeError:
        return PASSPHRASE
    except (ValueError, UnsupportedAlgorithm):
        return NO_KEY
    try:
        first = _read_chain(chain)[0]
        if first.public_key_algorithm_oid not in _KINDS:
            return "belongs to a certificate of an unknown kind"
        other = first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        return "belongs to a certificate of an unknown kind"
    return "" if own == other else "is not the key of client_cert"


@dataclass(frozen=True, slots=True)
class _Identity:
    certificate: ClientCertificate
    ends_at: float


def client_certificate(check: Check) -> ClientCertificate | None:
    """Returns the certificate that the check presents, None without one.

    Raises: `TargetFailure(client_cert_expired)` after its end, because no target could be blamed
    for the refusal; `LocalFailure` without the key.
    """
    if not check.text("client_cert"):
        return None
    identity = check.made(_identity)
    if identity.ends_at <= time():
        raise TargetFailure(FailureClass.CLIENT_CERT_EXPIRED)
    return identity.certificate


def _identity(check: Check) -> _Identity:
    chain = check.text("client_cert")
    key = demanded_secret(check, "client_key", CredentialEncoding.COUNTED)
    try:
        ends_at = _read_chain(chain)[0].not_valid_after_utc.timestamp()
    except ValueError:
        # The handshake reports it.
        ends_at = float("inf")
    return _Identity(ClientCertificate(chain, key), ends_at)
