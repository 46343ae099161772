"""SCRAM-SHA-256 from the client's side (RFC 5802, RFC 7677): the password is proved, never sent.

Pure. How often the hash is repeated is the server's to say, so that it is bounded here, and told
apart where it is too much to be done on the event loop.
"""

import hashlib
import hmac
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from functools import lru_cache

MECHANISM = "SCRAM-SHA-256"
# 15 000 take some 4 ms; a million a quarter of a second.
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
    """What the server sent is no challenge of this exchange, or asks for too much."""


class Scram:
    """One exchange. `nonce` is the client's, random and printable; `challenged` comes before
    `answer`, with which `salted` has to be worked out by `salt`.
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
        # The name is empty: PostgreSQL takes it from the start of the session.
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
        """The slow part, which another thread may do."""
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
        """Whether the server knows the password as well."""
        try:
            told = _decoded(_attributes(final).get("v", ""))
        except BadChallenge:
            return False
        return bool(self._proof_of_server) and hmac.compare_digest(told, self._proof_of_server)


def prepared(password: str) -> bytes:
    """A password by SASLprep (RFC 4013); as it is where that forbids it, as PostgreSQL does."""
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
    """RFC 3454, 6: right-to-left text holds no left-to-right, and begins and ends with itself."""
    rightward = [stringprep.in_table_d1(c) for c in text]
    if not any(rightward):
        return True
    return rightward[0] and rightward[-1] and not any(map(stringprep.in_table_d2, text))


@lru_cache(maxsize=1_024)
def _salted(password: bytes, salt: bytes, iterations: int) -> bytes:
    """Kept, since a monitor asks for the same one each time."""
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
