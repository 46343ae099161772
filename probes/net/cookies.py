"""Cookies of one conversation, kept and sent by the rules of the standard library's jar.

A malformed cookie of a response does not affect the other cookies.
"""

import re
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast
from urllib.request import Request

SET_COOKIES_MOST = 50
# A jar with this many cookies takes no others. The response that fills it can exceed this number.
COOKIES_MOST = 200
# If Max-Age is not a number or exceeds a float, the jar warns that it is broken and drops every
# cookie of the response. Ten digits exceed the duration of any conversation.
_AGE = re.compile(r";\s*max-age\s*(?:=([^;]*))?(?=;|$)", re.IGNORECASE)
_SECONDS = re.compile(r"-?[0-9]+")
_AGE_CHARACTERS_MOST = 10


class Jar:
    """Cookie jar of one conversation. It starts empty and is never stored."""

    def __init__(self) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(rfc2965=False, strict_ns_domain=0))

    def header_for(self, url: str) -> str:
        """Returns the value of the Cookie header for a request, or "" if no cookie applies."""
        request = _request(url)
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""

    def take(self, url: str, set_cookies: list[str]) -> None:
        """Keeps the cookies that a response to `url` sets. Cookies over the bounds are dropped."""
        if not set_cookies or len(self._jar) >= COOKIES_MOST:
            return
        request = _request(url)
        # Extract one at a time: a response may set a cookie and then expire it.
        for value in set_cookies[:SET_COOKIES_MOST]:
            message = Message()
            message["Set-Cookie"] = _AGE.sub(_bounded_age, value)
            # The jar uses only the headers of a response.
            self._jar.extract_cookies(cast("HTTPResponse", _Answer(message)), request)


def _bounded_age(found: "re.Match[str]") -> str:
    """Returns the bounded attribute, or "" if the age is not a number (RFC 6265, 5.2.2)."""
    seconds = _SECONDS.fullmatch((found[1] or "").strip(' "'))
    return f"; max-age={seconds[0][:_AGE_CHARACTERS_MOST]}" if seconds else ""


def _request(url: str) -> Request:
    """Returns the request object from which the jar reads the URL. Opens no connection."""
    return Request(url)  # noqa: S310 - the guard has read the URL, and the jar opens none


class _Answer:
    def __init__(self, message: Message) -> None:
        self._message = message

    def info(self) -> Message:
        return self._message
