"""Proofs of services that present an answer: only the right secret and the unchanged request."""

import base64
import hashlib
import hmac

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.auth.answer_signatures import (
    SLACK_AGE_US,
    is_of_slack,
    is_of_telegram,
    is_of_twilio,
)
from leadline.storage.core.instant import SECOND, Instant

NOW = Instant(1_767_225_600_000_000)
secrets = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
texts = st.text(max_size=30)


def slack_headers(body: bytes, secret: str, at_s: int) -> dict[str, str]:
    whole = hmac.new(secret.encode(), f"v0:{at_s}:".encode() + body, hashlib.sha256).hexdigest()
    return {"x-slack-request-timestamp": str(at_s), "x-slack-signature": f"v0={whole}"}


@given(st.binary(max_size=60), secrets, st.integers(-600, 600))
def test_slack_proves_a_body_for_five_minutes(body: bytes, secret: str, age_s: int) -> None:
    at_s = NOW // SECOND - age_s
    headers = slack_headers(body, secret, at_s)
    fresh = abs(age_s) * SECOND <= SLACK_AGE_US
    assert is_of_slack(body, headers, secret, NOW) is fresh
    assert not is_of_slack(body + b"x", headers, secret, NOW)
    assert not is_of_slack(body, headers, secret + "x", NOW)
    assert not is_of_slack(body, headers, "", NOW)
    later = {**headers, "x-slack-request-timestamp": str(at_s + 1)}
    assert not is_of_slack(body, later, secret, NOW)
    assert not is_of_slack(body, {}, secret, NOW)


@given(secrets, texts)
def test_telegram_has_the_secret_of_the_webhook(secret: str, other: str) -> None:
    name = "x-telegram-bot-api-secret-token"
    assert is_of_telegram({name: secret}, secret)
    assert is_of_telegram({name: other}, secret) is (other == secret)
    assert not is_of_telegram({name: ""}, "")
    assert not is_of_telegram({}, secret)


@given(st.dictionaries(texts, texts, max_size=5), secrets)
def test_twilio_proves_the_url_and_the_form(fields: dict[str, str], token: str) -> None:
    url = "https://status.example/api/v1/public/calls/x"
    whole = url + "".join(name + fields[name] for name in sorted(fields))
    made = hmac.new(token.encode(), whole.encode(), hashlib.sha1).digest()
    headers = {"x-twilio-signature": base64.b64encode(made).decode()}
    assert is_of_twilio(url, fields, headers, token)
    assert not is_of_twilio(url, {**fields, "zz": "1"}, headers, token) or "zz" in fields
    assert not is_of_twilio(url + "/", fields, headers, token)
    assert not is_of_twilio(url, fields, headers, token + "x")
    assert not is_of_twilio(url, fields, {}, token)
    assert not is_of_twilio(url, fields, headers, "")
