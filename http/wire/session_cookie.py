"""The session's cookie (RFC 6265): what it holds is random, and known to the browser alone."""

import secrets
from typing import Final

from .options import HttpOptions

RANDOM_BYTES: Final = 32
CLIENT_LONGEST: Final = 200


def new_secret() -> str:
    """256 random bits; the database keeps their digest only."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def set_cookie(options: HttpOptions, secret: str, ttl_seconds: int) -> str:
    """The value of Set-Cookie that begins a session."""
    return _cookie(options, secret, ttl_seconds)


def clear_cookie(options: HttpOptions) -> str:
    return _cookie(options, "", 0)


def client_text(user_agent: str) -> str:
    """What a session's person is shown of the browser that began it."""
    return "".join(char for char in user_agent if char.isprintable())[:CLIENT_LONGEST]


def _cookie(options: HttpOptions, value: str, seconds: int) -> str:
    secure = "; Secure" if options.cookie_secure else ""
    name = options.cookie_name
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
