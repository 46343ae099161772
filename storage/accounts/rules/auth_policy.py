"""Installation-wide sign-in policy.

It sets the length of passwords, the lifetime of sessions, the required second factors, and the
allowed e-mail domains.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

PASSWORD_LEAST: Final = 8
PASSWORD_MOST: Final = 128
TTL_LEAST: Final = 300
TTL_MOST: Final = 31_536_000
DOMAINS_MOST: Final = 100
DOMAIN_LONGEST: Final = 253
# Mail domain in lower case. Its labels can have any letters (IDNA).
_DOMAIN = re.compile(r"[^\s@.,:/\\]+(\.[^\s@.,:/\\]+)*")


class RequireTotp(StrEnum):
    NONE = "none"
    ADMINS = "admins"
    ALL = "all"


class AuthPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Sign-in policy in seconds and characters. No domains means that all are allowed."""

    min_password_len: int
    session_ttl_seconds: int
    require_totp: RequireTotp = RequireTotp.NONE
    allowed_email_domains: tuple[str, ...] = ()


def policy_fault(policy: AuthPolicy) -> tuple[str, str] | None:
    """Returns the first invalid field and the rule that it breaks."""
    if not PASSWORD_LEAST <= policy.min_password_len <= PASSWORD_MOST:
        return "min_password_len", f"must be {PASSWORD_LEAST} to {PASSWORD_MOST} characters"
    if not TTL_LEAST <= policy.session_ttl_seconds <= TTL_MOST:
        return "session_ttl_seconds", f"must be {TTL_LEAST} to {TTL_MOST} seconds"
    if len(policy.allowed_email_domains) > DOMAINS_MOST:
        return "allowed_email_domains", f"at most {DOMAINS_MOST}"
    for n, domain in enumerate(policy.allowed_email_domains):
        if len(domain) > DOMAIN_LONGEST or not _DOMAIN.fullmatch(domain):
            return f"allowed_email_domains[{n}]", "must be the domain of an e-mail address"
    return None


def plain_domains(domains: list[str]) -> tuple[str, ...]:
    """Returns the stored form: lower case, without duplicates, in the order given."""
    return tuple(dict.fromkeys(domain.strip().lower() for domain in domains))


def is_allowed(email: str, policy: AuthPolicy) -> bool:
    """Returns whether an account can have the address. Subdomains need their own entry."""
    domains = policy.allowed_email_domains
    return not domains or email.rpartition("@")[2].lower() in domains


def owes_second_factor(
    require: RequireTotp, *, is_admin: bool, has_password: bool, has_factor: bool
) -> bool:
    """Returns whether a second factor is missing. Accounts without a password need none here."""
    if has_factor or not has_password:
        return False
    return require is RequireTotp.ALL or (require is RequireTotp.ADMINS and is_admin)
