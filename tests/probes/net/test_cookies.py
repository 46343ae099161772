"""The cookie jar keeps cookies regardless of malformed attributes and other cookies."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.net.cookies import COOKIES_MOST, Jar

URL = "https://shop.example/a/b"
WORDS = (
    "a=b", ";", "=", " ", "max-age", "max-age=", "MAX-AGE = ", "expires=", "domain=", "path=/",
    "version=", "port=", "secure", '"', "\\", ",", "-1", "0", "9" * 400, "x", "1e5", "nan", "é",
    "Thu, 31 Dec 9999 23:59:59 GMT", "Mon, 99-Foo-99999 99:99:99", "shop.example", ".example",
)  # fmt: skip


def kept(*set_cookies: str, url: str = URL) -> str:
    jar = Jar()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jar.take(url, list(set_cookies))
        return jar.header_for(url)


@pytest.mark.parametrize(
    "odd",
    ["c=d; max-age", "c=d; Max-Age=" + "9" * 400, "c=d; max-age=soon", 'c=d; max-age="60"; path=/'],
)
def test_a_malformed_max_age_keeps_all_cookies(odd: str) -> None:
    assert set(kept("session=1; HttpOnly", odd).split("; ")) == {"session=1", "c=d"}


@pytest.mark.parametrize("age", ["0", "-1", "-" + "9" * 400])
def test_an_expired_max_age_deletes_the_cookie(age: str) -> None:
    assert kept("a=b", f"a=; max-age={age}") == ""


@given(st.lists(st.sampled_from(WORDS), max_size=12).map("".join))
def test_malformed_cookies_keep_the_session_cookie(odd: str) -> None:
    assert "session=1" in kept("session=1; path=/; secure", "z" + odd).split("; ")


def test_cookies_are_bound_to_host_and_secure_transport() -> None:
    jar = Jar()
    jar.take(URL, ["a=b", "s=t; secure", "f=g; domain=evil.example", "h=i; domain=example"])
    assert jar.header_for("https://evil.example/") == ""
    assert jar.header_for("https://shop.example.evil.example/a/b") == ""
    assert jar.header_for("http://shop.example/a/b") == "a=b"


def test_the_number_of_cookies_is_limited() -> None:
    jar = Jar()
    for number in range(20):
        jar.take(URL, [f"c{number}-{one}=x" for one in range(50)])
    assert jar.header_for(URL).count("=") == COOKIES_MOST
