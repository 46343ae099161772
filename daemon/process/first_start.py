"""First start of an installation: creates an encryption key and the first administrator."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import trio
from uuid_utils.compat import uuid7

from ...http.auth.passwords import Passwords
from ...storage.accounts.transactions.bootstrap_installation import found_installation, is_founded
from ...storage.engine.backup_key import KeySet
from ...storage.engine.embedded_layout import give_to_owner
from ...storage.engine.keyring import Keyring, key_from_text, new_key_text
from ...storage.engine.pools import Pool
from ...storage.monitors.tables.encrypted_columns import holds_ciphertext
from ..config.config_schema import Settings
from ..config.load import BadConfig
from ..config.roles import ProcessRole, serves_console

KEY_FILE = "encryption.key"
DEFAULT_EMAIL = "admin@localhost"
PASSWORD_BYTES = 15


@dataclass(frozen=True, slots=True)
class InitialAdmin:
    """First administrator; `password` is None if the configuration sets it."""

    email: str
    password: str | None


class FirstStart:
    """Creates the first user, organization and project, if no user exists.

    Every call of `found` uses the same user and password, so that a repeated call recognizes its
    earlier write. Only a process that serves the console generates a password, because only that
    process prints it. Without `security.admin_password`, other processes create no user.
    """

    def __init__(self, settings: Settings, role: ProcessRole, passwords: Passwords) -> None:
        security = settings.security
        self._given = security.admin_password
        self._creates = bool(self._given) or serves_console(role)
        self._email = security.admin_email or DEFAULT_EMAIL
        self._password = self._given or secrets.token_urlsafe(PASSWORD_BYTES)
        self._passwords = passwords
        self._user = uuid7()
        # Empty before the first attempt to write.
        self._hashed = ""

    async def found(self, pool: Pool) -> InitialAdmin | None:
        """Returns None if another process created the first user, or is allowed to create it."""
        if not self._creates:
            return None
        if not self._hashed:
            async with pool.transaction("has_users", read_only=True) as tx:
                if await is_founded(tx):
                    return None
            self._hashed = await self._passwords.hash(self._password)
        # A stop between the commit and the return would lose the password. The pool bounds the
        # duration.
        with trio.CancelScope(shield=True):
            async with pool.transaction("bootstrap_installation") as tx:
                if not await found_installation(tx, self._user, self._email, self._hashed):
                    return None
        return InitialAdmin(self._email, None if self._given else self._password)


async def load_keyring(pool: Pool, settings: Settings, data_dir: Path) -> Keyring:
    """Returns the configured keys; with an embedded store, creates a key if none ever existed.

    Raises: BadConfig if ciphertext exists and no key is present: a new key cannot decrypt it.
    """
    security = settings.security
    previous = tuple(key_from_text(text) for text in security.previous_keys)
    if security.encryption_key:
        return Keyring(key_from_text(security.encryption_key), previous)
    file = data_dir / KEY_FILE
    if file.exists():
        return Keyring(key_from_text(file.read_text().strip()), previous)
    async with pool.transaction("has_ciphertext", read_only=True) as tx:
        if await holds_ciphertext(tx):
            raise BadConfig(
                [
                    "security.encryption_key: is missing, and the database holds what only it "
                    "opens; give the key back, or restore it from a backup"
                ]
            )
    if settings.database.dsn:
        return Keyring(None, previous)
    text = new_key_text()
    write_key_file(file, text)
    return Keyring(key_from_text(text), previous)


def configured_keys(settings: Settings, data_dir: Path) -> KeySet | None:
    """Returns the keys of the configuration or the data directory; None without a current key.

    Raises: OSError if the key file cannot be read.
    """
    security = settings.security
    current = security.encryption_key
    file = data_dir / KEY_FILE
    if not current and file.exists():
        current = file.read_text().strip()
    return KeySet(current, security.previous_keys) if current else None


def write_key_file(file: Path, text: str) -> None:
    """Writes a new key file that only the owner of its directory can read.

    The file is synced, because data encrypted with a lost key is lost. Raises: OSError.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        give_to_owner(descriptor, file.parent)
        out.write(text + "\n")
        out.flush()
        os.fsync(out.fileno())
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
