"""leadline backup"""

from pathlib import Path

import click
import msgspec
import trio

from ...storage.engine.backup import KeyPart
from ...storage.engine.backup_file import Manifest, refuse_taken
from ..config.config_schema import Settings
from .backup_options import ERRORS, json_option, message_of, passphrase_option
from .backup_steps import key_part, open_store, verify_file, write_file
from .options import config_option, fail, first_cause, print_out, read_settings
from .scheduled_backup import run_scheduled


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
@click.argument(
    "path", metavar="[FILE]", required=False, type=click.Path(path_type=Path, dir_okay=False)
)
@click.option("--verify", is_flag=True, help="Verify an existing FILE.")
@click.option(
    "--schedule", is_flag=True, help="Write into backup.dir, verify, and delete old backups."
)
@click.option("--without-key", is_flag=True, help="Leave the encryption key out.")
@passphrase_option
@json_option
def command(
    config_path: Path | None,
    path: Path | None,
    verify: bool,
    schedule: bool,
    without_key: bool,
    passphrase_file: Path | None,
    as_json: bool,
) -> None:
    """Write a backup of the whole installation to a new FILE, while the daemon runs.

    The file contains the database as of one instant, and the encryption key under a passphrase.
    With --verify the command restores an existing FILE into a temporary server, compares the rows
    of every table, and deletes the server. With --schedule it does both for a new file in
    backup.dir, and keeps the newest backup.keep files; leadline-backup.timer runs it.

    \b
    Examples:
      leadline backup /var/backups/leadline.backup --passphrase-file /etc/leadline/passphrase
      leadline backup --verify /var/backups/leadline.backup
      leadline backup --schedule
    Exit status: 0 done, 1 failed, 2 usage error or invalid configuration.
    """
    if schedule and (verify or path is not None):
        raise click.UsageError("--schedule takes neither FILE nor --verify")
    if path is None and not schedule:
        raise click.UsageError("FILE is missing")
    settings = read_settings(config_path)
    try:
        if path is not None and verify:
            manifest = trio.run(verify_file, path)
        elif path is not None:
            refuse_taken(path)
            manifest = _write(settings, path, passphrase_file, without_key=without_key)
        else:
            path, manifest = _schedule(settings, passphrase_file, without_key=without_key)
    except* ERRORS as group:
        raise fail(message_of(first_cause(group))) from group
    _report(path, manifest, verified=verify or schedule, as_json=as_json)


def _write(
    settings: Settings, path: Path, passphrase_file: Path | None, *, without_key: bool
) -> Manifest:
    key = None if without_key else key_part(settings, passphrase_file)

    async def write() -> Manifest:
        async with open_store(settings) as dsn:
            return await write_file(dsn, path, key, without_key=without_key)

    return trio.run(write)


def _schedule(
    settings: Settings, passphrase_file: Path | None, *, without_key: bool
) -> tuple[Path, Manifest]:
    key: KeyPart | None = None if without_key else key_part(settings, passphrase_file)

    async def run() -> tuple[Path, Manifest]:
        return await run_scheduled(settings, key, without_key=without_key)

    return trio.run(run)


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
