"""Second factors: vectors of RFC 6238, and a model that counts tries by hand."""

import base64
import random
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.accounts.rules.totp import (
    CLOSED_US,
    RECOVERY_BYTES,
    STEP_SECONDS,
    WRONG_MOST,
    WRONG_WITHIN_US,
    Tries,
    code_of,
    enrolment_uri,
    matching_step,
    plain_code,
    recovery_code,
    recovery_hash,
    spelt_secret,
    step_at,
)
from leadline.storage.core.instant import MINUTE, SECOND, Instant

SEED = b"12345678901234567890"
secrets = st.binary(min_size=20, max_size=20)
instants = st.integers(0, 4_000_000_000 * SECOND).map(Instant)


# RFC 6238, appendix B, for SHA-1: the last six of the eight digits.
@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1_111_111_109, "081804"),
        (1_111_111_111, "050471"),
        (1_234_567_890, "005924"),
        (2_000_000_000, "279037"),
        (20_000_000_000, "353130"),
    ],
)
def test_codes_equal_the_examples_of_the_standard(seconds: int, code: str) -> None:
    assert code_of(SEED, seconds // STEP_SECONDS) == code
    assert matching_step(SEED, code, Instant(seconds * SECOND), 0) == seconds // STEP_SECONDS


@given(secrets, instants, st.integers(-3, 3), st.integers(-4, 4))
def test_a_code_is_good_one_step_aside_and_never_again(
    secret: bytes, now: Instant, aside: int, taken: int
) -> None:
    here = step_at(now)
    step = here + aside
    if step < 0:
        return
    after = max(here + taken, 0)
    found = matching_step(secret, code_of(secret, step), now, after)
    good = abs(aside) <= 1 and step > after
    # Two steps may have the same code by chance; then it is one of them.
    alike = {
        s for s in range(max(here - 1, 0), here + 2) if code_of(secret, s) == code_of(secret, step)
    }
    assert found in alike | {None}
    assert (found is not None) == any(abs(s - here) <= 1 and s > after for s in alike)
    if good:
        assert found is not None
        assert matching_step(secret, code_of(secret, step), now, found) is None or len(alike) > 1


@given(secrets, instants, st.text(max_size=20))
def test_an_invalid_code_matches_no_step(secret: bytes, now: Instant, text: str) -> None:
    near = range(max(step_at(now) - 1, 0), step_at(now) + 2)
    if plain_code(text) not in {code_of(secret, step) for step in near}:
        assert matching_step(secret, text, now, -1) is None


@pytest.mark.parametrize("typed", ["287082", "287 082", " 287-082 ", "2 8 7 0 8 2"])
def test_a_code_may_be_typed_in_groups(typed: str) -> None:
    assert matching_step(SEED, typed, Instant(59 * SECOND), 0) == 1


@given(st.lists(st.integers(0, 3 * MINUTE), max_size=60))
def test_ten_wrong_ones_in_a_quarter_of_an_hour_close_it_for_as_long(waits: list[int]) -> None:
    """Compared with a model of all counted wrong codes and of the end of the lock."""
    now, tries = 10**15, Tries()
    heard: list[int] = []
    closed_until = 0
    for wait in waits:
        now += wait
        assert tries.is_closed(Instant(now)) == (now < closed_until)
        if now < closed_until:
            continue
        tries = tries.after_wrong(Instant(now))
        heard.append(now)
        if sum(now - WRONG_WITHIN_US < at for at in heard) >= WRONG_MOST:
            closed_until = now + CLOSED_US
            heard = []
        assert len(tries.wrong_at) <= WRONG_MOST


def test_right_after_it_opens_one_has_ten_again() -> None:
    tries, now = Tries(), Instant(10**15)
    for _ in range(WRONG_MOST):
        assert not tries.is_closed(now)
        tries = tries.after_wrong(now)
    assert tries.is_closed(Instant(now + CLOSED_US - 1))
    now = Instant(now + CLOSED_US)
    for _ in range(WRONG_MOST):
        assert not tries.is_closed(now)
        tries = tries.after_wrong(now)
    assert tries.is_closed(now)


@given(secrets, st.text(min_size=1, max_size=30), st.emails())
def test_a_generator_reads_the_address_back(secret: bytes, issuer: str, account: str) -> None:
    try:
        issuer.encode()
    except UnicodeEncodeError:
        return
    uri = urlsplit(enrolment_uri(secret, issuer, account))
    assert (uri.scheme, uri.netloc) == ("otpauth", "totp")
    assert unquote(uri.path) == f"/{issuer}:{account}"
    query = {name: values[0] for name, values in parse_qs(uri.query).items()}
    if issuer.strip():
        assert query["issuer"] == issuer
    assert (query["algorithm"], query["digits"], query["period"]) == ("SHA1", "6", "30")
    padding = "=" * (-len(query["secret"]) % 8)
    assert base64.b32decode(query["secret"] + padding) == secret
    assert "+" not in uri.query
    assert spelt_secret(secret) == query["secret"]


@given(st.binary(min_size=RECOVERY_BYTES, max_size=RECOVERY_BYTES), st.randoms())
def test_a_recovery_code_is_known_however_it_is_typed(given_: bytes, chance: random.Random) -> None:
    code = recovery_code(given_)
    assert len(code) == 19
    typed = "".join(char.upper() if chance.random() < 0.5 else char for char in code)
    typed = typed.replace("-", chance.choice(["", " ", "-", " - "]))
    assert recovery_hash(typed) == recovery_hash(code)
    assert recovery_hash(code[:-1]) != recovery_hash(code)
