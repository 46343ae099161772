"""leadline backup"""

from importlib import metadata
from pathlib import Path

import click
import msgspec
import trio

from ...storage.engine.backup import KeyPart, verify_backup, write_backup
from ...storage.engine.backup_file import DUMP, Manifest, read_manifest, refuse_taken
from ...storage.engine.embedded_postgres import attached
from ..config.config_schema import Settings
from ..process.first_start import configured_keys
from .backup_options import (
    ERRORS,
    data_dir_of,
    direct_dsn,
    json_option,
    message_of,
    passphrase_option,
    read_passphrase,
    showing_progress,
)
from .options import config_option, fail, first_cause, print_out, read_settings


class BackupOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `leadline backup --json`."""

    file: str
    bytes: int
    created_at: str
    schema: str
    rows: int
    key: str
    verified: bool


@click.command("backup")
@config_option
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--verify", is_flag=True, help="Verify an existing FILE.")
@click.option("--without-key", is_flag=True, help="Leave the encryption key out.")
@passphrase_option
@json_option
def command(
    config_path: Path | None,
    path: Path,
    verify: bool,
    without_key: bool,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Write a backup of the whole installation to a new FILE, while the daemon runs.

    The file contains the database as of one instant, and the encryption key under a passphrase.
    With --verify the command restores an existing FILE into a temporary server, compares the rows
    of every table, and deletes the server.

    \b
    Examples:
      leadline backup /var/backups/leadline.backup --passphrase-file /etc/leadline/passphrase
      leadline backup --verify /var/backups/leadline.backup
    Exit status: 0 done, 1 failed, 2 wrong call or configuration.
    """
    settings = read_settings(config_path)
    try:
        if verify:
            manifest = _verify(path)
        else:
            refuse_taken(path)
            key = None if without_key else _key_part(settings, passphrase_file)
            manifest = _write(settings, path, key, without_key=without_key)
    except* ERRORS as group:
        raise fail(message_of(first_cause(group))) from group
    _report(path, manifest, verified=verify, as_json=as_json)


def _key_part(settings: Settings, passphrase_file: Path | None) -> KeyPart | None:
    keys = configured_keys(settings, data_dir_of(settings))
    return None if keys is None else KeyPart(keys, read_passphrase(passphrase_file, confirm=True))


def _write(settings: Settings, path: Path, key: KeyPart | None, *, without_key: bool) -> Manifest:
    state = "included" if key else "excluded" if without_key else "absent"

    async def write() -> Manifest:
        dsn = direct_dsn(settings)
        if dsn:
            return await write_to(dsn)
        async with attached(data_dir_of(settings)) as embedded_dsn:
            return await write_to(embedded_dsn)

    async def write_to(dsn: str) -> Manifest:
        with showing_progress("dumping") as progress:
            return await write_backup(
                dsn,
                path,
                product_version=metadata.version("leadline"),
                key=key,
                key_state=state,
                progress=progress,
            )

    manifest = trio.run(write)
    if state == "excluded":
        click.echo(
            "leadline: warning: the backup contains no encryption key; without the key, stored"
            " passwords and secrets cannot be decrypted: keep it elsewhere",
            err=True,
        )
    return manifest


def _verify(path: Path) -> Manifest:
    total = read_manifest(path).parts[DUMP].bytes

    async def verify() -> Manifest:
        with showing_progress("restoring", total) as progress:
            return await verify_backup(path, progress=progress)

    return trio.run(verify)


def _report(path: Path, manifest: Manifest, *, verified: bool, as_json: bool) -> None:
    size = path.stat().st_size
    if as_json:
        output = BackupOutput(
            file=str(path),
            bytes=size,
            created_at=manifest.created_at,
            schema=manifest.schema.name,
            rows=manifest.rows,
            key=manifest.key,
            verified=verified,
        )
        print_out(msgspec.json.encode(output))
        return
    tables = f"{manifest.rows} rows in {len(manifest.tables)} tables"
    done = "verified" if verified else "written"
    click.echo(f"{done}: {path}, {size} bytes, {tables}, as of {manifest.created_at}")
