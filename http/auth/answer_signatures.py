"""Proofs of services that present the answer of a person: Slack, Telegram and Twilio.

Every comparison takes constant time. An empty secret proves nothing.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from ...storage.core.instant import MINUTE, SECOND, Instant

# Slack: requests of another age can be replays.
SLACK_AGE_US: Final = 5 * MINUTE
_STAMP_LONGEST: Final = 12


def is_of_slack(body: bytes, headers: Mapping[str, str], secret: str, now: Instant) -> bool:
    """Returns whether Slack signed the body a moment ago.

    Source: Slack, verifying requests, version v0.
    """
    stamp = headers.get("x-slack-request-timestamp", "")
    if not secret or not stamp.isascii() or not stamp.isdigit() or len(stamp) > _STAMP_LONGEST:
        return False
    if abs(now - int(stamp) * SECOND) > SLACK_AGE_US:
        return False
    expected = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256)
    return _same(f"v0={expected.hexdigest()}", headers.get("x-slack-signature", ""))


def is_of_telegram(headers: Mapping[str, str], secret: str) -> bool:
    """Returns whether the request has the secret of the webhook.

    Source: Telegram Bot API, setWebhook.
    """
    given = headers.get("x-telegram-bot-api-secret-token", "")
    return bool(secret) and _same(secret, given)


def is_of_twilio(
    url: str, fields: Mapping[str, str], headers: Mapping[str, str], token: str
) -> bool:
    """Returns whether Twilio signed the form that it sent to the URL.

    Source: Twilio, validating requests: HMAC-SHA1 of the URL and the sorted fields.
    """
    whole = url + "".join(f"{name}{fields[name]}" for name in sorted(fields))
    made = hmac.new(token.encode(), whole.encode(), hashlib.sha1).digest()
    expected = base64.b64encode(made).decode()
    return bool(token) and _same(expected, headers.get("x-twilio-signature", ""))


def _same(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))
