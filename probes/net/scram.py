"""Client side of SCRAM-SHA-256 (RFC 5802, RFC 7677), which never sends the password.

Pure. The server chooses the number of iterations, so it is bounded here. A number that would block
the event loop is distinguished by `ITERATIONS_ON_LOOP_MOST`.
"""

import hashlib
import hmac
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from functools import lru_cache

MECHANISM = "SCRAM-SHA-256"
# 15 000 iterations take about 4 ms, a million 250 ms.
ITERATIONS_ON_LOOP_MOST = 15_000
ITERATIONS_MOST = 1_000_000
_NO_BINDING = b"n,,"
_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


class BadChallenge(ValueError):
    """Raised if the challenge is invalid, or requests too many iterations."""


class Scram:
    """One exchange.

    `nonce` is the client's, random and printable. Call `challenged` before `answer`, and pass the
    result of `salt` as `salted`.
    """

    def __init__(self, password: str, nonce: str) -> None:
        self._password = prepared(password)
        self._nonce = nonce
        self._bare = f"n=,r={nonce}".encode()
        self._challenge = b""
        self._whole_nonce = ""
        self._salt = b""
        self._proof_of_server = b""
        self.iterations = 0

    def first(self) -> bytes:
        # The name is empty, because PostgreSQL uses the user of the startup message.
        return _NO_BINDING + self._bare

    def challenged(self, challenge: bytes) -> None:
        attributes = _attributes(challenge)
        self._whole_nonce = attributes.get("r", "")
        rounds = attributes.get("i", "")
        if not self._whole_nonce.startswith(self._nonce) or self._whole_nonce == self._nonce:
            raise BadChallenge("another nonce")
        if not (rounds.isascii() and rounds.isdigit()) or len(rounds) > len(str(ITERATIONS_MOST)):
            raise BadChallenge("no number of iterations")
        self.iterations = int(rounds)
        if not 1 <= self.iterations <= ITERATIONS_MOST:
            raise BadChallenge("too many iterations")
        self._salt = _decoded(attributes.get("s", ""))
        self._challenge = challenge

    def salt(self) -> bytes:
        """Returns the salted password. Slow; can run in another thread."""
        return _salted(self._password, self._salt, self.iterations)

    def answer(self, salted: bytes) -> bytes:
        said = f"c={b64encode(_NO_BINDING).decode()},r={self._whole_nonce}".encode()
        exchange = b",".join((self._bare, self._challenge, said))
        client_key = _mac(salted, b"Client Key")
        signature = _mac(hashlib.sha256(client_key).digest(), exchange)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._proof_of_server = _mac(_mac(salted, b"Server Key"), exchange)
        return said + b",p=" + b64encode(proof)

    def proves(self, final: bytes) -> bool:
        """Returns whether the server proved that it knows the password."""
        try:
            told = _decoded(_attributes(final).get("v", ""))
        except BadChallenge:
            return False
        return bool(self._proof_of_server) and hmac.compare_digest(told, self._proof_of_server)


def prepared(password: str) -> bytes:
    """Returns a password prepared by SASLprep (RFC 4013).

    A password that SASLprep prohibits is returned unchanged, as PostgreSQL does.
    """
    raw = password.encode()
    if password.isascii():
        return raw
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )
    text = unicodedata.normalize("NFKC", mapped)
    if not text or any(forbids(c) for forbids in _PROHIBITED for c in text):
        return raw
    return text.encode() if _one_direction(text) else raw


def _one_direction(text: str) -> bool:
    """Returns whether bidirectional text is valid (RFC 3454, 6).

    Text with right-to-left characters contains no left-to-right ones, and begins and ends
    right-to-left.
    """
    rightward = [stringprep.in_table_d1(c) for c in text]
    if not any(rightward):
        return True
    return rightward[0] and rightward[-1] and not any(map(stringprep.in_table_d2, text))


@lru_cache(maxsize=1_024)
def _salted(password: bytes, salt: bytes, iterations: int) -> bytes:
    """Returns the salted password. Cached, because a monitor uses the same one each time."""
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations)


def _mac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise BadChallenge("no text") from None
    return {part[0]: part[2:] for part in parts if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        raise BadChallenge("no base64") from None
    if not data:
        raise BadChallenge("empty")
    return data
