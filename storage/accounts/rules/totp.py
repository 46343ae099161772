"""Time-based one-time passwords (RFC 6238) as a second factor, and recovery codes.

Invariant: a code is accepted once, in its own time step and the ones before and after it. After ten
wrong codes in 15 minutes, all codes are refused for 15 minutes.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hmac import compare_digest
from typing import Final
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from ...core.instant import MINUTE, SECOND, Instant

# Values that all authenticator apps support. They ignore others in the URI (Key Uri Format).
STEP_SECONDS: Final = 30
DIGITS: Final = 6
# RFC 4226, section 4: 160 bits.
SECRET_BYTES: Final = 20
STEPS_ASIDE: Final = 1
WRONG_MOST: Final = 10
WRONG_WITHIN_US: Final = 15 * MINUTE
CLOSED_US: Final = 15 * MINUTE
RECOVERY_CODES: Final = 10
RECOVERY_BYTES: Final = 10
# Limit of the input for both kinds of codes, including spaces and dashes.
CODE_LONGEST: Final = 64


class TotpOutcome(StrEnum):
    """Result of a second factor check."""

    PASSED = "passed"
    REQUIRED = "required"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Tries:
    """Instants of recent wrong codes, in order."""

    wrong_at: tuple[Instant, ...] = ()

    def is_closed(self, now: Instant) -> bool:
        last = self._closed_at()
        return last is not None and now < last + CLOSED_US

    def after_wrong(self, now: Instant) -> "Tries":
        """Returns the tries with one more, without those that no longer count."""
        kept = () if self._closed_at() is not None else self.wrong_at
        recent = [at for at in kept if at > now - WRONG_WITHIN_US]
        return Tries((*recent, now))

    def _closed_at(self) -> Instant | None:
        """Returns the instant of the last allowed try. The count restarts after the lock time."""
        return self.wrong_at[-1] if len(self.wrong_at) >= WRONG_MOST else None


def step_at(now: Instant) -> int:
    return now // (STEP_SECONDS * SECOND)


def code_of(secret: bytes, step: int) -> str:
    # Authenticator apps support only SHA-1, and HMAC does not depend on collision resistance.
    generator = TOTP(secret, DIGITS, SHA1(), STEP_SECONDS, enforce_key_length=False)  # noqa: S303
    return generator.generate(step * STEP_SECONDS).decode()


def matching_step(secret: bytes, code: str, now: Instant, after: int) -> int | None:
    """Returns the step of a code, None unless it is near and later than `after`.

    All steps are compared, so that the response time reveals no information.
    """
    given = plain_code(code)
    here = step_at(now)
    found = None
    for step in range(max(here - STEPS_ASIDE, 0), here + STEPS_ASIDE + 1):
        if compare_digest(code_of(secret, step).encode(), given.encode()) and step > after:
            found = step
    return found


def plain_code(text: str) -> str:
    """Returns a code without the spaces and dashes by which apps and users group it."""
    return "".join(char for char in text if char not in " -\t").lower()


def enrolment_uri(secret: bytes, issuer: str, account: str) -> str:
    """Returns the URI for the QR code of an authenticator app (Key Uri Format)."""
    label = quote(f"{issuer}:{account}", safe="")
    return f"otpauth://totp/{label}?" + urlencode(
        {
            "secret": spelt_secret(secret),
            "issuer": issuer,
            "algorithm": "SHA1",
            "digits": DIGITS,
            "period": STEP_SECONDS,
        },
        quote_via=quote,
    )


def spelt_secret(secret: bytes) -> str:
    """Returns the secret for manual entry (RFC 4648, section 6, without padding)."""
    return base64.b32encode(secret).decode().rstrip("=")


def recovery_code(random: bytes) -> str:
    """Returns a recovery code from RECOVERY_BYTES random bytes, in groups of four."""
    text = base64.b32encode(random).decode().lower()
    return "-".join(text[n : n + 4] for n in range(0, len(text), 4))


def recovery_hash(code: str) -> bytes:
    """Returns the stored hash. 80 random bits need no salt."""
    return hashlib.sha256(plain_code(code).encode()).digest()


def tries_of(wrong_at: Sequence[Instant]) -> Tries:
    return Tries(tuple(sorted(wrong_at)))
