"""The sign-in policy: its validation, the users that need a second factor, and the allowed
addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.accounts.rules.auth_policy import (
    DOMAINS_MOST,
    AuthPolicy,
    RequireTotp,
    is_allowed,
    owes_second_factor,
    plain_domains,
    policy_fault,
)

USUAL = AuthPolicy(min_password_len=10, session_ttl_seconds=604_800)


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        ({}, None),
        ({"min_password_len": 8}, None),
        ({"min_password_len": 7}, "min_password_len"),
        ({"min_password_len": 129}, "min_password_len"),
        ({"session_ttl_seconds": 300}, None),
        ({"session_ttl_seconds": 299}, "session_ttl_seconds"),
        ({"session_ttl_seconds": 31_536_001}, "session_ttl_seconds"),
        ({"allowed_email_domains": ("example.com", "localhost", "bücher.example")}, None),
        ({"allowed_email_domains": ("a.example", "@b.example")}, "allowed_email_domains[1]"),
        ({"allowed_email_domains": ("*.example",) * 2}, None),
        ({"allowed_email_domains": ("",)}, "allowed_email_domains[0]"),
        ({"allowed_email_domains": ("a..b",)}, "allowed_email_domains[0]"),
        ({"allowed_email_domains": ("x" * 254,)}, "allowed_email_domains[0]"),
        ({"allowed_email_domains": ("a.b",) * (DOMAINS_MOST + 1)}, "allowed_email_domains"),
    ],
)
def test_an_invalid_policy_is_refused_by_its_field(
    given_: dict[str, object], field: str | None
) -> None:
    values = {"min_password_len": 10, "session_ttl_seconds": 3_600, **given_}
    fault = policy_fault(AuthPolicy(**values))  # type: ignore[arg-type]
    assert (fault and fault[0]) == field


@given(st.sampled_from(RequireTotp), st.booleans(), st.booleans(), st.booleans())
def test_the_policy_decides_which_users_need_a_second_factor(
    require: RequireTotp, is_admin: bool, has_password: bool, has_factor: bool
) -> None:
    owes = owes_second_factor(
        require, is_admin=is_admin, has_password=has_password, has_factor=has_factor
    )
    asked = {"none": False, "admins": is_admin, "all": True}[require.value]
    assert owes == (asked and has_password and not has_factor)


@pytest.mark.parametrize(
    ("email", "domains", "allowed"),
    [
        ("a@example.com", (), True),
        ("a@example.com", ("example.com",), True),
        ("A@EXAMPLE.com", ("example.com",), True),
        ("a@mail.example.com", ("example.com",), False),
        ("a@notexample.com", ("example.com",), False),
        ("example.com", ("example.com",), True),
        ("a@b@example.com", ("b",), False),
        ("a@example.com.evil.test", ("example.com",), False),
    ],
)
def test_an_address_is_of_a_domain_or_not(
    email: str, domains: tuple[str, ...], allowed: bool
) -> None:
    policy = AuthPolicy(
        min_password_len=10, session_ttl_seconds=3_600, allowed_email_domains=domains
    )
    assert is_allowed(email, policy) == allowed


def test_domains_are_kept_in_lower_case_and_once() -> None:
    assert plain_domains([" Example.COM ", "b.test", "example.com"]) == ("example.com", "b.test")
