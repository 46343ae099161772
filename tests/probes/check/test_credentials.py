"""The credentials of a check: which value is used, and when none is sent."""

import pytest

from leadline.probes.check.check import Check, make_check, validate
from leadline.probes.check.credentials import (
    CredentialEncoding,
    basic_authorization,
    demanded_secret,
    secret,
)
from leadline.probes.check.failure import LocalFailure
from leadline.probes.check.result import UnknownReason

URL = "https://shop.example/"


def check(config: dict[str, object], secrets: dict[str, str] | None = None) -> Check:
    return make_check("http", URL, None, config, [], secrets=secrets)


def test_a_referenced_password_precedes_the_configured_one() -> None:
    config: dict[str, object] = {"password": "mine"}
    assert secret(check(config), "password", CredentialEncoding.COUNTED) == "mine"
    assert secret(check({}), "password", CredentialEncoding.COUNTED) == ""
    referring = check({"password_ref": "db"}, {"password": "project's"})
    assert secret(referring, "password", CredentialEncoding.COUNTED) == "project's"
    assert (
        secret(check({"token_ref": "t"}, {"token": "T"}), "token", CredentialEncoding.HEADER) == "T"
    )


def test_a_missing_reference_has_no_fallback() -> None:
    for config in ({"password_ref": "db"}, {"password_ref": "db", "password": "old"}):
        with pytest.raises(LocalFailure) as raised:
            secret(check(dict(config)), "password", CredentialEncoding.COUNTED)
        assert raised.value.reason is UnknownReason.MISSING_REFERENCE
    with pytest.raises(LocalFailure):
        demanded_secret(check({}), "password", CredentialEncoding.COUNTED)


@pytest.mark.parametrize(
    ("value", "carried"),
    [
        ("plain é 漢", {*CredentialEncoding}),
        (
            " at its ends ",
            {CredentialEncoding.COUNTED, CredentialEncoding.TERMINATED, CredentialEncoding.BASIC},
        ),
        ("two\nlines", {CredentialEncoding.COUNTED, CredentialEncoding.TERMINATED}),
        ("a\x7fb", {CredentialEncoding.COUNTED, CredentialEncoding.TERMINATED}),
        ("a\x00b", {CredentialEncoding.COUNTED}),
        ("half \ud800", set()),
    ],
)
def test_a_password_that_a_protocol_cannot_encode_is_not_sent(
    value: str, carried: set[CredentialEncoding]
) -> None:
    checked = check({"password_ref": "db"}, {"password": value})
    for carrier in CredentialEncoding:
        if carrier in carried:
            assert secret(checked, "password", carrier) == value
            continue
        with pytest.raises(LocalFailure) as raised:
            secret(checked, "password", carrier)
        assert raised.value.reason is UnknownReason.BAD_SECRET
        assert value not in str(raised.value)


def test_basic_authorization_is_base64() -> None:
    # The example of RFC 7617, section 2.1.
    said = basic_authorization(check({"username": "test", "password": "123£"}))
    assert said == "Basic dGVzdDoxMjPCow=="


@pytest.mark.parametrize(("kind", "target"), [("http", URL), ("redis", "cache.example:6379")])
def test_two_passwords_are_refused(kind: str, target: str) -> None:
    both: dict[str, object] = {"password": "x", "password_ref": "db"}
    assert [f.field for f in validate(kind, target, None, both, [])] == ["config.password"]
    for name in both:
        assert validate(kind, target, None, {**both, name: ""}, []) == []
