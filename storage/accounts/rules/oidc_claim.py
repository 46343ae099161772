"""Validation of the claims of single sign-on providers.

Signatures are checked elsewhere. All instants are seconds, as in the tokens.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

# OpenID Connect Core 1.0, section 2.
SUBJECT_LONGEST: Final = 255
# Allowed difference between the clocks of two servers.
SKEW_SECONDS: Final = 60


class OidcPerson(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of a user at a provider. `email` is empty if the provider sends none."""

    issuer: str
    subject: str
    email: str = ""
    email_verified: bool = False
    name: str = ""


def id_token_fault(
    claims: Mapping[str, Any], *, issuer: str, client_id: str, nonce: str, now: float
) -> str | None:
    """Returns why a signed ID token is invalid, None if it is valid.

    Source: OpenID Connect Core 1.0, section 3.1.3.7.
    """
    fault = _common_fault(claims, issuer, now)
    if fault is not None:
        return fault
    audience = _audience(claims)
    if client_id not in audience:
        return "audience"
    party = claims.get("azp")
    if (party is not None and party != client_id) or (len(audience) > 1 and party is None):
        return "authorized_party"
    if _instant(claims, "iat") is None:
        return "issued_at"
    return None if nonce and claims.get("nonce") == nonce else "nonce"


def access_token_fault(
    claims: Mapping[str, Any], *, issuer: str, audience: str, now: float
) -> str | None:
    """Returns why an access token is invalid, None if it is valid.

    An ID token with a nonce belongs to a browser sign-in and is refused. An empty `audience` is not
    checked.
    """
    fault = _common_fault(claims, issuer, now)
    if fault is not None:
        return fault
    if "nonce" in claims:
        return "nonce"
    return "audience" if audience and audience not in _audience(claims) else None


def merged(userinfo: Mapping[str, Any], id_token: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the claims of an ID token, with those of UserInfo that it does not have.

    An address and its verification come from the same source: UserInfo can have another address.
    """
    dropped = {"email", "email_verified"} if "email" in id_token else set()
    more = {name: value for name, value in userinfo.items() if name not in dropped}
    own = dict(id_token)
    if "email" not in id_token:
        own.pop("email_verified", None)
    return {**more, **own}


def person_of(claims: Mapping[str, Any], *, issuer: str) -> OidcPerson:
    """Returns the person of valid claims.

    The address is verified only if `email_verified` is true.
    """
    email = _claim_line(claims.get("email"), 254)
    if not len(email) >= 3 or email.count("@") != 1 or any(char.isspace() for char in email):
        email = ""
    name = _claim_line(claims.get("name"), 200) or _claim_line(
        claims.get("preferred_username"), 200
    )
    return OidcPerson(
        issuer=issuer,
        subject=claims["sub"],
        email=email,
        email_verified=bool(email) and claims.get("email_verified") is True,
        name=name,
    )


def client_of(claims: Mapping[str, Any], *, issuer: str) -> OidcPerson:
    """Returns the client of a token. It has no address, so it is never found by one."""
    name = (
        _claim_line(claims.get("name"), 200)
        or _claim_line(claims.get("client_id"), 200)
        or _claim_line(claims.get("azp"), 200)
        or _claim_line(claims["sub"], 200)
    )
    return OidcPerson(issuer=issuer, subject=claims["sub"], name=name)


def is_bootstrap_admin(person: OidcPerson, admins: Sequence[str]) -> bool:
    """Returns whether the verified address is one of `admins`."""
    return person.email_verified and person.email.lower() in {one.lower() for one in admins}


def _common_fault(claims: Mapping[str, Any], issuer: str, now: float) -> str | None:
    if claims.get("iss") != issuer:
        return "issuer"
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= SUBJECT_LONGEST:
        return "subject"
    if not subject.isprintable():
        return "subject"
    expires = _instant(claims, "exp")
    if expires is None or expires <= now - SKEW_SECONDS:
        return "expired"
    for name in ("nbf", "iat"):
        if name not in claims:
            continue
        at = _instant(claims, name)
        if at is None or at > now + SKEW_SECONDS:
            return "not_yet"
    return None


def _instant(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _audience(claims: Mapping[str, Any]) -> list[str]:
    value = claims.get("aud")
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return list(value)
    return []


def _claim_line(value: Any, longest: int) -> str:
    if not isinstance(value, str):
        return ""
    return "".join(char for char in value if char.isprintable()).strip()[:longest]
