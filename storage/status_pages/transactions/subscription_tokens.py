"""Encryption of subscription tokens."""

from uuid import UUID

from ...engine.keyring import CipherContext, Keyring
from ...notifications.queries.delivery_addresses import SubscriberRow
from .edit_pages import page_place


def token_place(subscriber: UUID) -> CipherContext:
    return CipherContext("subscribers", "token_ciphertext", subscriber)


def opened_token(row: SubscriberRow, keyring: Keyring) -> str:
    """Returns the token of a subscription.

    Raises:
        CannotOpen if the ring does not decrypt it.
    """
    return keyring.open(row.token_ciphertext, token_place(row.uid)).decode()


def opened_page_token(row: SubscriberRow, keyring: Keyring) -> str | None:
    """Returns the token of the page, None if the page is not unlisted.

    Raises:
        CannotOpen.
    """
    if row.page_token_ciphertext is None:
        return None
    return keyring.open(row.page_token_ciphertext, page_place(row.page_uid)).decode()
