"""Steps of `leadline backup` with and without a schedule: the store, the key, the file."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata
from pathlib import Path
from typing import Final

import click

from ...storage.engine.backup import KeyPart, verify_backup, write_backup
from ...storage.engine.backup_file import DUMP, Manifest, read_manifest
from ...storage.engine.embedded_postgres import attached
from ..config.config_schema import Settings
from ..process.first_start import configured_keys
from .backup_options import data_dir_of, direct_dsn, read_passphrase, showing_progress

_WITHOUT_KEY: Final = (
    "leadline: warning: the backup contains no encryption key; without the key, stored passwords"
    " and secrets cannot be decrypted: keep a copy of the key"
)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[str]:
    """Yields the DSN of the store. The embedded one is started only if no daemon runs it."""
    dsn = direct_dsn(settings)
    if dsn:
        yield dsn
        return
    async with attached(data_dir_of(settings)) as embedded_dsn:
        yield embedded_dsn


def key_part(settings: Settings, passphrase_file: Path | None) -> KeyPart | None:
    """Returns the keys and their passphrase; None if the installation has no key."""
    keys = configured_keys(settings, data_dir_of(settings))
    if keys is None:
        return None
    return KeyPart(keys, read_passphrase(passphrase_file, settings, confirm=True))


async def write_file(dsn: str, path: Path, key: KeyPart | None, *, without_key: bool) -> Manifest:
    state = "included" if key else "excluded" if without_key else "absent"
    with showing_progress("dumping") as progress:
        manifest = await write_backup(
            dsn,
            path,
            product_version=metadata.version("leadline"),
            key=key,
            key_state=state,
            progress=progress,
        )
    if state == "excluded":
        click.echo(_WITHOUT_KEY, err=True)
    return manifest


async def verify_file(path: Path, scratch: Path | None = None) -> Manifest:
    with showing_progress("restoring", read_manifest(path).parts[DUMP].bytes) as progress:
        return await verify_backup(path, progress=progress, scratch=scratch)
