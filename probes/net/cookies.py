"""The cookies of one conversation, kept and sent as the standard library's jar decides.

Where one of an answer's cookies is odd, the others are kept all the same.
"""

import re
from email.message import Message
from http.client import HTTPResponse
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import cast
from urllib.request import Request

SET_COOKIES_MOST = 50
COOKIES_MOST = 200
# Without a number, or with one that no float holds, the jar stumbles, warns of itself as broken and
# drops every cookie of the answer. Ten digits outlast any conversation.
_AGE = re.compile(r";\s*max-age\s*(?:=([^;]*))?(?=;|$)", re.IGNORECASE)
_SECONDS = re.compile(r"-?[0-9]+")
_AGE_CHARACTERS_MOST = 10


class Jar:
    """Starts empty and ends with the conversation; nothing of it is stored."""

    def __init__(self) -> None:
        self._jar = CookieJar(DefaultCookiePolicy(rfc2965=False, strict_ns_domain=0))

    def header_for(self, url: str) -> str:
        """The value of the Cookie header for a request; empty where no cookie goes with it."""
        request = _request(url)
        self._jar.add_cookie_header(request)
        return request.get_header("Cookie") or ""

    def take(self, url: str, set_cookies: list[str]) -> None:
        """Keeps what an answer to that URL sets; what is over the bounds is not kept."""
        if not set_cookies or len(self._jar) >= COOKIES_MOST:
            return
        request = _request(url)
        # One after the other, since an answer may set one and then end it.
        for value in set_cookies[:SET_COOKIES_MOST]:
            message = Message()
            message["Set-Cookie"] = _AGE.sub(_bounded_age, value)
            # All that the jar asks of a response is its headers.
            self._jar.extract_cookies(cast("HTTPResponse", _Answer(message)), request)


def _bounded_age(found: "re.Match[str]") -> str:
    """Left out where it is no number (RFC 6265, 5.2.2)."""
    seconds = _SECONDS.fullmatch((found[1] or "").strip(' "'))
    return f"; max-age={seconds[0][:_AGE_CHARACTERS_MOST]}" if seconds else ""


def _request(url: str) -> Request:
    """What the jar reads a request's URL from; nothing is opened."""
    return Request(url)  # noqa: S310 - the guard has read the URL, and the jar opens none


class _Answer:
    def __init__(self, message: Message) -> None:
        self._message = message

    def info(self) -> Message:
        return self._message
