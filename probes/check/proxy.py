"""Outgoing proxy of a check: settings and rules. Variables of the environment are never read.

Pure.
"""

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final

from .check import Check
from .credentials import CredentialEncoding, demanded_secret
from .monitor_spec import SECRET_LONGEST, Config, Field, FieldType, SpecFault
from .target import BadTarget, Url, read_url

# Section of the form.
GROUP: Final = "Proxy"

PROXY_FIELDS: Final = (
    Field(
        name="proxy_url",
        type=FieldType.TEXT,
        help="Proxy for every connection of the check, http:// or https://. It must allow CONNECT.",
        group=GROUP,
    ),
    Field(
        name="proxy_username",
        type=FieldType.TEXT,
        help="For a proxy that requires basic authentication.",
        group=GROUP,
    ),
    Field(
        name="proxy_password",
        type=FieldType.TEXT,
        help="Stored encrypted, never shown.",
        secret=True,
        longest=SECRET_LONGEST,
        group=GROUP,
    ),
    Field(
        name="proxy_password_ref",
        type=FieldType.SECRET_NAME,
        help="The project secret with the password of the proxy.",
        group=GROUP,
    ),
)


@dataclass(frozen=True, slots=True)
class Proxy:
    """Proxy. `authorization` is the value of Proxy-Authorization, "" for none."""

    url: Url
    authorization: str = field(default="", repr=False)


def proxy_faults(config: Config) -> list[SpecFault]:
    """Returns the faults of the settings."""
    url, user = str(config.get("proxy_url", "")), str(config.get("proxy_username", ""))
    passwords = (config.get("proxy_password"), config.get("proxy_password_ref"))
    if not url:
        said = "is required with credentials of a proxy"
        return [SpecFault("config.proxy_url", said)] if user or any(passwords) else []
    faults = []
    try:
        path = read_url(url).path
        if path != "/":
            faults.append(SpecFault("config.proxy_url", "must not have a path or a query"))
    except BadTarget as bad:
        faults.append(SpecFault("config.proxy_url", str(bad)))
    if ":" in user:
        faults.append(SpecFault("config.proxy_username", "must not contain a colon"))
    if all(passwords):
        said = "cannot be combined with proxy_password_ref"
        faults.append(SpecFault("config.proxy_password", said))
    elif any(passwords) and not user:
        said = "is required with a password of the proxy"
        faults.append(SpecFault("config.proxy_username", said))
    elif user and not any(passwords):
        said = "or proxy_password_ref is required with proxy_username"
        faults.append(SpecFault("config.proxy_password", said))
    return faults


def proxy_of(check: Check) -> Proxy | None:
    """Returns the proxy of the check, None without one.

    Raises: `LocalFailure` without its password.
    """
    return check.made(_proxy) if check.text("proxy_url") else None


def _proxy(check: Check) -> Proxy:
    url, user = read_url(check.text("proxy_url")), check.text("proxy_username")
    if not user:
        return Proxy(url)
    password = demanded_secret(check, "proxy_password", CredentialEncoding.BASIC)
    pair = b64encode(f"{user}:{password}".encode()).decode("ascii")
    return Proxy(url, f"Basic {pair}")
