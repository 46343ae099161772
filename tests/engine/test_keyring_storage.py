"""The keyring: a ciphertext can be decrypted only at its location, and only with a key of
the ring.
"""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import CannotOpen, CipherContext, Keyring

OLD, NEW = b"o" * 32, b"n" * 32
HERE = CipherContext("monitors", "config_ciphertext", UUID(int=1))
ELSEWHERE = CipherContext("monitors", "config_ciphertext", UUID(int=2))


@given(st.binary(max_size=200))
def test_a_ciphertext_is_decrypted_at_its_location(plaintext: bytes) -> None:
    ring = Keyring(NEW)
    assert ring.open(ring.seal(plaintext, HERE), HERE) == plaintext


def test_a_ciphertext_of_another_row_is_refused() -> None:
    ring = Keyring(NEW)
    sealed = ring.seal(b"hunter2", HERE)
    with pytest.raises(CannotOpen):
        ring.open(sealed, ELSEWHERE)


@given(st.data())
def test_a_changed_ciphertext_is_refused(data: st.DataObject) -> None:
    ring = Keyring(NEW)
    sealed = bytearray(ring.seal(b"hunter2", HERE))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CannotOpen):
        ring.open(bytes(sealed), HERE)


def test_a_previous_key_decrypts_and_does_not_encrypt() -> None:
    sealed = Keyring(OLD).seal(b"hunter2", HERE)
    ring = Keyring(NEW, (OLD,))
    assert ring.open(sealed, HERE) == b"hunter2"
    assert not ring.is_current(sealed)
    assert ring.is_current(ring.seal(b"hunter2", HERE))


def test_encryption_without_a_key_is_refused() -> None:
    with pytest.raises(Refused, match="encryption_key_missing"):
        Keyring(None).seal(b"hunter2", HERE)


def test_the_ciphertext_does_not_contain_the_plaintext() -> None:
    assert b"hunter2" not in Keyring(NEW).seal(b"hunter2", HERE)
