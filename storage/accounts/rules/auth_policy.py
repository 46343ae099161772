"""How people sign in, as it is set for the whole installation: how long a password and a session
are, who needs a second factor, and where addresses of accounts may be.
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
# A name as mail is addressed to, in lower case; its own labels may be of any letters (IDNA).
_DOMAIN = re.compile(r"[^\s@.,:/\\]+(\.[^\s@.,:/\\]+)*")


class RequireTotp(StrEnum):
    NONE = "none"
    ADMINS = "admins"
    ALL = "all"


class AuthPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, and characters. No domain is named where any may be."""

    min_password_len: int
    session_ttl_seconds: int
    require_totp: RequireTotp = RequireTotp.NONE
    allowed_email_domains: tuple[str, ...] = ()


def policy_fault(policy: AuthPolicy) -> tuple[str, str] | None:
    """The first field that cannot be, and why."""
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
    """As they are kept: in lower case, each once, in the order given."""
    return tuple(dict.fromkeys(domain.strip().lower() for domain in domains))


def is_allowed(email: str, policy: AuthPolicy) -> bool:
    """Whether an account may have the address. A domain stands for itself, not for those below."""
    domains = policy.allowed_email_domains
    return not domains or email.rpartition("@")[2].lower() in domains


def owes_second_factor(
    require: RequireTotp, *, is_admin: bool, has_password: bool, has_factor: bool
) -> bool:
    """Who signs in elsewhere only gives a second factor there."""
    if has_factor or not has_password:
        return False
    return require is RequireTotp.ALL or (require is RequireTotp.ADMINS and is_admin)
