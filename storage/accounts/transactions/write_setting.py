"""Write of a setting together with its secret."""

from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..rows import SettingRow
from ..tables.instance_settings import put_secret, put_setting, select_whole_setting


async def write_setting(tx: Tx, name: str, value: str, secret: str, keyring: Keyring) -> bool:
    """Writes a setting and encrypts its secret; an empty `secret` deletes the stored one.

    Returns False if the stored value and secret are equal. Secrets are compared decrypted, because
    each encryption has another nonce. A secret that no key decrypts counts as different.

    Raises:
        Refused encryption_key_missing.
    """
    is_changed = await put_setting(tx, name, value)
    row = await select_whole_setting(tx, name)
    assert row is not None, "it was just written"
    if secret == _stored_secret(row, keyring):
        return is_changed
    sealed = keyring.seal(secret.encode(), _place_of(row)) if secret else None
    await put_secret(tx, name, sealed)
    return True


def _stored_secret(row: SettingRow, keyring: Keyring) -> str | None:
    """Returns the decrypted secret, empty without one, None if no key decrypts it."""
    if row.secret_ciphertext is None:
        return ""
    try:
        return keyring.open(row.secret_ciphertext, _place_of(row)).decode()
    except CannotOpen:
        return None


def _place_of(row: SettingRow) -> CipherContext:
    return CipherContext("settings", "secret_ciphertext", row.uid)
