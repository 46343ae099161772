"""The checks of token claims: one wrong claim is enough to refuse a token."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.oidc.oidc_settings import (
    ADMINS_MOST,
    OidcSettings,
    sign_on_faults,
    with_client_secret,
)
from leadline.storage.accounts.rules.oidc_claim import (
    SKEW_SECONDS,
    OidcPerson,
    access_token_fault,
    client_of,
    id_token_fault,
    is_bootstrap_admin,
    merged,
    person_of,
)

ISSUER = "https://id.example.com"
NOW = 1_767_000_000.0
GOOD: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "ada",
    "aud": "leadline",
    "exp": NOW + 60,
    "iat": NOW,
    "nonce": "n",
}
MISSING = object()


def fault(claims: dict[str, Any]) -> str | None:
    return id_token_fault(claims, issuer=ISSUER, client_id="leadline", nonce="n", now=NOW)


def client_fault(claims: dict[str, Any], audience: str = "") -> str | None:
    return access_token_fault(claims, issuer=ISSUER, audience=audience, now=NOW)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, None),
        ({"iss": ISSUER + "/"}, "issuer"),
        ({"iss": [ISSUER]}, "issuer"),
        ({"iss": MISSING}, "issuer"),
        ({"sub": ""}, "subject"),
        ({"sub": 7}, "subject"),
        ({"sub": "x" * 256}, "subject"),
        ({"sub": "a\nb"}, "subject"),
        ({"sub": MISSING}, "subject"),
        ({"aud": "other"}, "audience"),
        ({"aud": ["leadline"]}, None),
        ({"aud": ["leadline", "other"]}, "authorized_party"),
        ({"aud": ["leadline", "other"], "azp": "leadline"}, None),
        ({"azp": "other"}, "authorized_party"),
        ({"aud": ["leadline", 7]}, "audience"),
        ({"aud": MISSING}, "audience"),
        ({"exp": NOW - SKEW_SECONDS}, "expired"),
        ({"exp": NOW - SKEW_SECONDS + 1}, None),
        ({"exp": str(NOW + 60)}, "expired"),
        ({"exp": True}, "expired"),
        ({"exp": math.nan}, "expired"),
        ({"exp": math.inf}, "expired"),
        ({"exp": 10**400}, "expired"),
        ({"exp": MISSING}, "expired"),
        ({"nbf": NOW + SKEW_SECONDS + 1}, "not_yet"),
        ({"nbf": "soon"}, "not_yet"),
        ({"iat": NOW + SKEW_SECONDS + 1}, "not_yet"),
        ({"iat": MISSING}, "issued_at"),
        ({"nonce": "m"}, "nonce"),
        ({"nonce": MISSING}, "nonce"),
        ({"nonce": ["n"]}, "nonce"),
    ],
)
def test_an_id_token_is_believed_only_whole(changed: dict[str, Any], why: str | None) -> None:
    claims = {k: v for k, v in {**GOOD, **changed}.items() if v is not MISSING}
    assert fault(claims) == why


def test_an_empty_nonce_is_refused() -> None:
    claims = {**GOOD, "nonce": ""}
    assert id_token_fault(claims, issuer=ISSUER, client_id="leadline", nonce="", now=NOW) == "nonce"


def test_an_id_token_is_no_api_token_and_the_audience_is_checked_if_configured() -> None:
    access = {k: v for k, v in GOOD.items() if k not in ("nonce", "aud")}
    assert client_fault(GOOD) == "nonce"
    assert client_fault({**access, "nonce": None}) == "nonce"
    assert client_fault(access) is None
    assert client_fault(access, "urn:leadline") == "audience"
    assert client_fault({**access, "aud": "urn:other"}) is None
    assert client_fault({**access, "aud": ["x", "urn:leadline"]}, "urn:leadline") is None
    assert client_fault({k: v for k, v in access.items() if k != "exp"}) == "expired"


@given(
    st.dictionaries(
        st.sampled_from(["iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "azp"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()),
    )
)
def test_any_claims_are_judged(claims: dict[str, Any]) -> None:
    for judged in (fault(claims), client_fault(claims)):
        assert judged is None or judged.isidentifier()


@pytest.mark.parametrize(
    ("claims", "email", "verified"),
    [
        ({"email": "a@b.test", "email_verified": True}, "a@b.test", True),
        ({"email": "a@b.test", "email_verified": "true"}, "a@b.test", False),
        ({"email": "a@b.test", "email_verified": 1}, "a@b.test", False),
        ({"email": "a@b.test"}, "a@b.test", False),
        ({"email": "a b@c.test", "email_verified": True}, "", False),
        ({"email": "nobody", "email_verified": True}, "", False),
        ({"email": ["a@b.test"], "email_verified": True}, "", False),
        ({"email_verified": True}, "", False),
    ],
)
def test_an_address_is_verified_only_by_an_explicit_claim(
    claims: dict[str, Any], email: str, verified: bool
) -> None:
    found = person_of({"sub": "ada", **claims}, issuer=ISSUER)
    assert (found.email, found.email_verified) == (email, verified)


def test_a_client_is_never_known_by_an_address() -> None:
    claims = {"sub": "p", "email": "boss@x.test", "email_verified": True, "client_id": "pipe"}
    assert client_of(claims, issuer=ISSUER) == OidcPerson(issuer=ISSUER, subject="p", name="pipe")


def test_an_admin_needs_a_verified_address() -> None:
    boss = OidcPerson(issuer=ISSUER, subject="b", email="Boss@x.test", email_verified=True)
    liar = OidcPerson(issuer=ISSUER, subject="l", email="boss@x.test", email_verified=False)
    nobody = OidcPerson(issuer=ISSUER, subject="n")
    admins = ("boss@X.test", "")
    assert [is_bootstrap_admin(one, admins) for one in (boss, liar, nobody)] == [True, False, False]


USUAL = {
    "enabled": True,
    "issuer": ISSUER,
    "client_id": "leadline",
    "redirect_url": "https://up.example.com/auth/callback",
}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, []),
        ({"issuer": ""}, ["issuer"]),
        ({"issuer": "", "enabled": False}, []),
        ({"issuer": "http://id.example.com"}, ["issuer"]),
        ({"issuer": "http://127.0.0.1:4000"}, []),
        ({"issuer": "http://127.0.0.1.evil.test"}, ["issuer"]),
        ({"issuer": "https://u:p@id.example.com"}, ["issuer"]),
        ({"issuer": ISSUER + "?a"}, ["issuer"]),
        ({"issuer": ISSUER + "#a"}, ["issuer"]),
        ({"redirect_url": "ftp://x"}, ["redirect_url"]),
        ({"post_logout_url": "javascript:alert(1)"}, ["post_logout_url"]),
        ({"scopes": ("email",)}, ["scopes"]),
        ({"scopes": ("openid", "a b")}, ["scopes"]),
        ({"button_label": "x" * 101}, ["button_label"]),
        ({"client_secret": "a\nb"}, ["client_secret"]),
        ({"bootstrap_admins": ("a@b.test", "nobody")}, ["bootstrap_admins[1]"]),
        ({"bootstrap_admins": ("a@b.test",) * ADMINS_MOST}, []),
        ({"bootstrap_admins": ("a@b.test",) * (ADMINS_MOST + 1)}, ["bootstrap_admins"]),
        ({"client_id": "", "issuer": ""}, ["issuer", "client_id"]),
    ],
)
def test_settings_that_cannot_be_are_named(changed: dict[str, Any], fields: list[str]) -> None:
    settings = OidcSettings(**{**USUAL, **changed})
    assert [field for field, _ in sign_on_faults(settings)] == fields


@given(
    st.sampled_from(["https://a.test", "https://b.test"]),
    st.sampled_from(["c", "d"]),
    st.sampled_from([None, "", "new"]),
    st.sampled_from(["", "old"]),
)
def test_a_secret_is_kept_only_for_its_own_issuer(
    issuer: str, client_id: str, secret: str | None, old: str
) -> None:
    before = OidcSettings(issuer="https://a.test", client_id="c", client_secret=old)
    found = with_client_secret(OidcSettings(issuer=issuer, client_id=client_id), secret, before)
    same = (issuer, client_id) == ("https://a.test", "c")
    if secret:
        assert found is not None
        assert found.client_secret == "new"
    elif old and not same:
        assert found is None
    else:
        assert found is not None
        assert found.client_secret == old


@given(
    *(
        st.dictionaries(
            st.sampled_from(["email", "email_verified", "groups"]),
            st.sampled_from(["boss@example.com", "ada@example.com", True, False]),
        )
        for _ in range(2)
    )
)
def test_an_address_is_verified_by_the_source_that_states_it(
    userinfo: dict[str, Any], id_token: dict[str, Any]
) -> None:
    claims = merged(userinfo, {**id_token, "sub": "ada"})
    source = id_token if "email" in id_token else userinfo
    expected = person_of({**source, "sub": "ada"}, issuer=ISSUER)
    assert person_of(claims, issuer=ISSUER) == expected
    assert claims.get("groups") == id_token.get("groups", userinfo.get("groups"))
