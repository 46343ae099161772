"""Credentials of a check: the settings shared by all monitor types, and their values.

A setting `…_ref` names a project secret, whose value is in `check.secrets` by the key without
`_ref`. If the value is missing or the protocol cannot carry it, the run fails locally and sends no
request. Pure.
"""

from base64 import b64encode
from enum import Enum

from .check import Check
from .failure import LocalFailure
from .monitor_spec import SECRET_LONGEST, Config, Field, FieldType, SpecFault
from .result import UnknownReason

_REF = "_ref"

PASSWORD = Field(
    name="password",
    type=FieldType.TEXT,
    help="Stored encrypted, never shown.",
    secret=True,
    longest=SECRET_LONGEST,
)
PASSWORD_REF = Field(
    name="password_ref",
    type=FieldType.SECRET_NAME,
    help="The project secret with the password.",
)
TOKEN_REF = Field(
    name="token_ref",
    type=FieldType.SECRET_NAME,
    help="The project secret with the bearer token.",
)
TLS = Field(name="tls", type=FieldType.BOOLEAN, help="Use TLS.", default=False)
TLS_SKIP_VERIFY = Field(
    name="tls_skip_verify",
    type=FieldType.BOOLEAN,
    help="Accepts any certificate.",
    default=False,
)


def username(help_: str) -> Field:
    return Field(name="username", type=FieldType.TEXT, help=help_)


class CredentialEncoding(Enum):
    """How a protocol encodes a secret."""

    COUNTED = "counted"  # length-prefixed: any text
    TERMINATED = "terminated"  # NUL-terminated, so it cannot contain a NUL
    BASIC = "basic"  # an encoded line: no control character (RFC 7617, 2)
    HEADER = "header"  # a plain line: no leading or trailing space either


def secret(check: Check, key: str, carrier: CredentialEncoding) -> str:
    """Returns the referenced secret, or the value in the config, or "" if neither is set.

    Raises: `LocalFailure` if a referenced value is missing, or `carrier` cannot carry it.
    """
    named = check.text(key + _REF)
    value = check.secrets.get(key) or ("" if named else check.text(key))
    if named and not value:
        raise LocalFailure(UnknownReason.MISSING_REFERENCE)
    if not _carries(carrier, value):
        raise LocalFailure(UnknownReason.BAD_SECRET)
    return value


def demanded_secret(check: Check, key: str, carrier: CredentialEncoding) -> str:
    """Returns `secret`, which must not be empty.

    Raises: `LocalFailure` if it is empty: the config may have a value that did not decrypt.
    """
    value = secret(check, key, carrier)
    if not value:
        raise LocalFailure(UnknownReason.MISSING_REFERENCE)
    return value


def basic_authorization(check: Check) -> str:
    """Returns an Authorization header (RFC 7617) for `username` and its password."""
    password = demanded_secret(check, "password", CredentialEncoding.BASIC)
    pair = f"{check.text('username')}:{password}".encode()
    return "Basic " + b64encode(pair).decode("ascii")


def password_faults(config: Config) -> list[SpecFault]:
    """Refuses two passwords, because it would be undefined which one is sent."""
    if config.get("password") and config.get("password_ref"):
        return [SpecFault("config.password", "cannot be combined with password_ref")]
    return []


def has_password(config: Config) -> bool:
    return bool(config.get("password") or config.get("password_ref"))


def basic_faults(config: Config) -> list[SpecFault]:
    """Returns the faults of basic authentication, if `auth_mode` selects it."""
    if config.get("auth_mode") != "basic":
        return []
    faults = []
    if not config.get("username"):
        faults.append(SpecFault("config.username", "is required when auth_mode is basic"))
    elif ":" in str(config["username"]):
        faults.append(SpecFault("config.username", "must not contain a colon"))
    if not has_password(config):
        said = "or password_ref is required when auth_mode is basic"
        faults.append(SpecFault("config.password", said))
    return faults


def _carries(carrier: CredentialEncoding, value: str) -> bool:
    if any("\ud800" <= c <= "\udfff" for c in value):
        return False
    if carrier is CredentialEncoding.TERMINATED:
        return "\x00" not in value
    if carrier is CredentialEncoding.HEADER and value != value.strip():
        return False
    return carrier is CredentialEncoding.COUNTED or not any(c < " " or c == "\x7f" for c in value)
