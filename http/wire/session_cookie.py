"""Session cookie (RFC 6265). Its value is random, and only the browser stores it."""

import secrets
from typing import Final

from .options import HttpOptions

RANDOM_BYTES: Final = 32
CLIENT_LONGEST: Final = 200


def new_secret() -> str:
    """Returns 256 random bits as text. The database stores only their digest."""
    return secrets.token_urlsafe(RANDOM_BYTES)


def set_cookie(options: HttpOptions, secret: str, ttl_seconds: int) -> str:
    """Returns the value of Set-Cookie that starts a session."""
    return _cookie(options, secret, ttl_seconds)


def clear_cookie(options: HttpOptions) -> str:
    return _cookie(options, "", 0)


def client_text(user_agent: str) -> str:
    """Returns the text that identifies the browser in the list of sessions."""
    return "".join(char for char in user_agent if char.isprintable())[:CLIENT_LONGEST]


def _cookie(options: HttpOptions, value: str, seconds: int) -> str:
    secure = "; Secure" if options.cookie_secure else ""
    name = options.cookie_name
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
