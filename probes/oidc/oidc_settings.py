"""Settings of single sign-on, their validation, and the reuse of the client secret."""

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
    """Settings of single sign-on.

    `issuer` must equal the issuer in its discovery document exactly. `client_secret` is empty if it
    is not set, and in responses.
    """

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
    """Returns each invalid field with the reason."""
    faults = []
    if settings.enabled:
        for name in ("issuer", "client_id", "redirect_url"):
            if not getattr(settings, name):
                faults.append((name, "is required when single sign-on is enabled"))
    for name in ("issuer", "redirect_url", "post_logout_url"):
        text = getattr(settings, name)
        fault = endpoint_fault(text) if text else None
        if fault is not None:
            faults.append((name, fault))
    if "?" in settings.issuer:
        faults.append(("issuer", "must not have a query"))
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
        faults.append(("scopes", "must contain openid"))
    if len(settings.bootstrap_admins) > ADMINS_MOST:
        faults.append(("bootstrap_admins", f"must be at most {ADMINS_MOST} addresses"))
    for n, address in enumerate(settings.bootstrap_admins):
        if not 3 <= len(address) <= 254 or address.count("@") != 1:
            faults.append((f"bootstrap_admins[{n}]", "must be an e-mail address"))
    return faults


def endpoint_fault(text: str) -> str | None:
    """Returns the reason to refuse a URL: it must be https, or http on a loopback host."""
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
    """Returns the complete settings. If `secret` is None or blank, that of `before` is used.

    Returns None if `before` has another issuer or client, because its secret must not be sent
    there.
    """
    if secret or not before.client_secret:
        return msgspec.structs.replace(given, client_secret=secret or "")
    if (before.issuer, before.client_id) != (given.issuer, given.client_id):
        return None
    return msgspec.structs.replace(given, client_secret=before.client_secret)


def _is_scope(text: str) -> bool:
    """Returns whether the text is a scope token (RFC 6749, section 3.3)."""
    return 1 <= len(text) <= 100 and all("!" <= c <= "~" and c not in '"\\' for c in text)
