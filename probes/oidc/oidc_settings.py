"""How people sign in elsewhere, as it is configured or set: what may be, and to whom a secret is
never sent.
"""

from typing import Final
from urllib.parse import urlsplit

import msgspec

TEXT_LONGEST: Final = 2_000
LABEL_LONGEST: Final = 100
SCOPES_MOST: Final = 20
ADMINS_MOST: Final = 100
USUAL_SCOPES: Final = ("openid", "email", "profile")
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class OidcSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`issuer` is told to be one by its own discovery document, letter by letter. The secret is
    empty where there is none, and where it is not told."""

    enabled: bool = False
    issuer: str = ""
    client_id: str = ""
    client_secret: str = ""
    redirect_url: str = ""
    scopes: tuple[str, ...] = USUAL_SCOPES
    post_logout_url: str = ""
    button_label: str = ""
    bootstrap_admins: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"OidcSettings({self.issuer})"


def sign_on_faults(settings: OidcSettings) -> list[tuple[str, str]]:
    """Each field that cannot be, and why."""
    faults = []
    if settings.enabled:
        for name in ("issuer", "client_id", "redirect_url"):
            if not getattr(settings, name):
                faults.append((name, "is needed where single sign-on is enabled"))
    for name in ("issuer", "redirect_url", "post_logout_url"):
        text = getattr(settings, name)
        fault = endpoint_fault(text) if text else None
        if fault is not None:
            faults.append((name, fault))
    if "?" in settings.issuer:
        faults.append(("issuer", "must have no query"))
    for name, longest in (
        ("client_id", TEXT_LONGEST),
        ("client_secret", TEXT_LONGEST),
        ("button_label", LABEL_LONGEST),
    ):
        text = getattr(settings, name)
        if len(text) > longest or any(not char.isprintable() for char in text):
            faults.append((name, f"must be at most {longest} printable characters"))
    if len(settings.scopes) > SCOPES_MOST or not all(map(_is_scope, settings.scopes)):
        faults.append(("scopes", f"must be at most {SCOPES_MOST} words"))
    elif "openid" not in settings.scopes:
        faults.append(("scopes", "must hold openid"))
    if len(settings.bootstrap_admins) > ADMINS_MOST:
        faults.append(("bootstrap_admins", f"at most {ADMINS_MOST}"))
    for n, address in enumerate(settings.bootstrap_admins):
        if not 3 <= len(address) <= 254 or address.count("@") != 1:
            faults.append((f"bootstrap_admins[{n}]", "must be an e-mail address"))
    return faults


def endpoint_fault(text: str) -> str | None:
    """Why nobody may be sent there: it is https, or http on this machine."""
    rule = "must be an https URL"
    if len(text) > TEXT_LONGEST or any(char <= " " or char == "\x7f" for char in text):
        return rule
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return rule
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if not is_safe or not parts.hostname or parts.username is not None or parts.fragment:
        return rule
    return None


def with_client_secret(
    given: OidcSettings, secret: str | None, before: OidcSettings
) -> OidcSettings | None:
    """The whole settings: a `secret` that is None or blank is the one in force, `before` with its
    own. None where that would go to another issuer, or for another client, and has to be given."""
    if secret or not before.client_secret:
        return msgspec.structs.replace(given, client_secret=secret or "")
    if (before.issuer, before.client_id) != (given.issuer, given.client_id):
        return None
    return msgspec.structs.replace(given, client_secret=before.client_secret)


def _is_scope(text: str) -> bool:
    """RFC 6749, section 3.3."""
    return 1 <= len(text) <= 100 and all("!" <= c <= "~" and c not in '"\\' for c in text)
