"""leadline keys rotate"""

import sys
from functools import partial
from pathlib import Path

import click
import trio
from rich.console import Console
from rich.progress import Progress

from ...storage.core.instant import Instant
from ...storage.core.refusal import Refused, Unavailable
from ...storage.engine.embedded_postgres import CannotRun
from ...storage.engine.keyring import CipherContext, Keyring, new_key_text
from ...storage.engine.migrate import CannotMigrate, migrate
from ...storage.engine.pools import Pool, Tx, open_pool
from ...storage.monitors.tables.encrypted_columns import count_sealed
from ...storage.monitors.transactions.rotate_encryption import Pass, Position, reencrypt_all
from ..config.config_schema import Settings
from ..config.load import BadConfig, default_data_dir
from ..process.first_start import load_keyring
from .migrate import with_store
from .options import config_option, fail, first_cause, read_settings

# Number of values without a key that are listed. The final line has the count of all.
UNOPENED_TOLD = 20


@click.group("keys")
def command() -> None:
    """Generate and rotate encryption keys."""


@command.command("new")
def new() -> None:
    """Print a new key: 32 random bytes in base64.

    \b
    Example:
      leadline keys new
    Exit status: 0.
    """
    click.echo(new_key_text())


@command.command("rotate")
@config_option
def rotate(config_path: Path | None) -> None:
    """Re-encrypt all stored secrets with security.encryption_key.

    Before: set the new key as security.encryption_key, move the old one to security.previous_keys,
    and restart every process. After: remove the old key from previous_keys. The daemon can run
    during the rotation; with the embedded PostgreSQL stop the daemon first, since one process owns
    a data directory. Repeating the command changes nothing.

    \b
    Example:
      leadline keys rotate --config /etc/leadline/leadline.toml
    Exit status: 0 if all values use the current key, 1 otherwise.
    """
    settings = read_settings(config_path)
    try:
        unopened = trio.run(_rotate, settings)
    except* (BadConfig, CannotRun, CannotMigrate, Unavailable, Refused) as group:
        raise fail(_progress_text(first_cause(group))) from group
    if unopened:
        for place in unopened[:UNOPENED_TOLD]:
            where = f"{place.table}.{place.column} of {place.row}"
            click.echo(f"leadline: no configured key decrypts {where}", err=True)
        raise fail(f"{len(unopened)} values not re-encrypted: add their key to previous_keys")


def _progress_text(error: BaseException) -> str:
    if isinstance(error, Refused) and error.code == "encryption_key_missing":
        return "security.encryption_key is not set"
    return str(error)


async def _rotate(settings: Settings) -> list[CipherContext]:
    """Re-encrypts all values. Returns those that no configured key decrypts."""
    unopened: list[CipherContext] = []
    data_dir = Path(settings.data_dir) if settings.data_dir else default_data_dir()

    async def work(dsn: str) -> None:
        await migrate(dsn)
        async with open_pool(dsn, name="keys", size=1, clock=lambda: Instant(0)) as pool:
            keyring = await load_keyring(pool, settings, data_dir)
            unopened.extend(await _seal_all(pool, keyring))

    await with_store(settings, work)
    return unopened


async def _seal_all(pool: Pool, keyring: Keyring) -> list[CipherContext]:
    if not keyring.can_seal:
        raise Refused("encryption_key_missing")
    async with pool.transaction("count_encrypted", read_only=True) as tx:
        total = await count_sealed(tx)
    unopened: list[CipherContext] = []
    resealed = 0
    position: Position | None = Position()
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("encrypting", total=total)
        while position is not None:
            done = await pool.transact("reencrypt_all", partial(_seal, keyring, position))
            unopened += done.unopened
            resealed += done.resealed
            position = done.goes_on
            progress.advance(task, done.seen)
    click.echo(f"{resealed} of {total} values re-encrypted")
    return unopened


async def _seal(keyring: Keyring, position: Position, tx: Tx) -> Pass:
    return await reencrypt_all(tx, keyring, position)
