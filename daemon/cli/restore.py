"""leadline restore"""

import shlex
from pathlib import Path

import click
import trio
from psycopg.conninfo import conninfo_to_dict

from ...storage.engine.backup import BackupFailed, NotEmpty, refuse_newer, restore_backup
from ...storage.engine.backup_file import DUMP, Manifest, read_key_part, read_manifest
from ...storage.engine.backup_key import KeySet, open_keys
from ...storage.engine.embedded_postgres import AlreadyRunning, running
from ..config.config_schema import Settings
from ..process.first_start import KEY_FILE, configured_keys, write_key_file
from .backup_options import (
    ERRORS,
    data_dir_of,
    direct_dsn,
    message_of,
    passphrase_option,
    read_passphrase,
    showing_progress,
)
from .options import config_option, fail, first_cause, read_settings

PREVIOUS_KEYS_FILE = "previous.keys"


@click.command("restore")
@config_option
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--without-key", is_flag=True, help="Restore without the encryption key.")
@click.option(
    "--key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="New file for the encryption key.  [default: encryption.key in data_dir]",
)
@passphrase_option
def command(
    config_path: Path | None,
    path: Path,
    without_key: bool,
    key_file: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Restore a backup into an empty store: that of data_dir, or the database of database.dsn.

    A store that is not empty is refused, as is one that a daemon runs on. A restore that fails
    leaves the store empty.

    \b
    Example:
      leadline restore /var/backups/leadline.backup --passphrase-file /etc/leadline/passphrase
    Exit status: 0 restored, 1 failed or refused, 2 usage error or invalid configuration.
    """
    settings = read_settings(config_path)
    try:
        manifest = read_manifest(path)
        refuse_newer(manifest)
        keys = _keys_of(settings, path, manifest, passphrase_file) if not without_key else None
        files = _key_files(settings, manifest, keys, key_file, without_key=without_key)
        _restore(settings, path, manifest, files)
    except* NotEmpty as group:
        error = first_cause(group)
        assert isinstance(error, NotEmpty)
        raise fail(_way_on(settings, path, error)) from group
    except* AlreadyRunning as group:
        raise fail(f"{first_cause(group)}: stop it, then repeat") from group
    except* ERRORS as group:
        raise fail(message_of(first_cause(group))) from group
    tables = f"{manifest.rows} rows in {len(manifest.tables)} tables"
    click.echo(f"restored: {tables}, as of {manifest.created_at}; start the daemon now")


def _keys_of(
    settings: Settings, path: Path, manifest: Manifest, passphrase_file: Path | None
) -> KeySet | None:
    if manifest.key != "included":
        return None
    passphrase = read_passphrase(passphrase_file, settings, confirm=False)
    return open_keys(read_key_part(path, manifest), passphrase, manifest.parts[DUMP].sha256)


def _key_files(
    settings: Settings,
    manifest: Manifest,
    keys: KeySet | None,
    key_file: Path | None,
    *,
    without_key: bool,
) -> dict[Path, str]:
    """Returns the files that the restore writes, with their content.

    Raises BackupFailed if secrets of the backup could not be decrypted afterwards.
    """
    data_dir = data_dir_of(settings)
    configured = configured_keys(settings, data_dir)
    if keys is None:
        if manifest.key == "absent" or configured is not None:
            return {}
        if without_key:
            click.echo("leadline: warning: restored without the encryption key", err=True)
            return {}
        raise BackupFailed(
            "the backup contains no encryption key: set security.encryption_key to the key of the"
            " installation that was backed up, or restore without one by --without-key"
        )
    known = {configured.current, *configured.previous} if configured else set()
    if configured is not None and keys.current not in known:
        raise BackupFailed(
            "the encryption key of the backup is not the configured one: remove"
            f" security.encryption_key or move {data_dir / KEY_FILE} away, then repeat; the restore"
            " writes the key of the backup to a file"
        )
    if not settings.database.dsn:
        key_file = key_file or data_dir / KEY_FILE
    files: dict[Path, str] = {}
    if configured is None:
        if key_file is None:
            raise BackupFailed(
                "security.encryption_key is not set: name a new file for the key with --key-file,"
                " and set security.encryption_key to its content after the restore"
            )
        files[key_file] = keys.current
    missing = [key for key in keys.previous if key not in known]
    if missing:
        files[(key_file or data_dir / KEY_FILE).with_name(PREVIOUS_KEYS_FILE)] = "\n".join(missing)
    return files


def _restore(settings: Settings, path: Path, manifest: Manifest, files: dict[Path, str]) -> None:
    def write_keys() -> None:
        # With a database of one's own the data directory may not exist yet.
        if any(file.parent == data_dir_of(settings) for file in files):
            data_dir_of(settings).mkdir(mode=0o700, parents=True, exist_ok=True)
        for file, text in files.items():
            # A restore that failed later has written it.
            if not _has_content(file, text):
                write_key_file(file, text)
                click.echo(f"wrote {file}")

    async def restore_into(dsn: str) -> None:
        with showing_progress("restoring", manifest.parts[DUMP].bytes) as progress:
            await restore_backup(dsn, path, manifest, progress=progress, before_load=write_keys)

    async def restore() -> None:
        dsn = direct_dsn(settings)
        if dsn:
            await restore_into(dsn)
            return
        async with running(data_dir_of(settings)) as server:
            await restore_into(server.dsn)

    trio.run(restore)


def _has_content(file: Path, text: str) -> bool:
    """Returns whether the file exists with this content. Raises BackupFailed if it has another."""
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        return False
    if found.strip() != text.encode():
        raise BackupFailed(
            f"{file} exists and contains other keys than the backup: move it away, then repeat"
        )
    return True


def _way_on(settings: Settings, path: Path, error: NotEmpty) -> str:
    """Returns an error message with the existing content and the commands to continue."""
    again = f"leadline restore {shlex.quote(str(path))}"
    dsn = direct_dsn(settings)
    if not dsn:
        data_dir = data_dir_of(settings)
        move = f"mv {shlex.quote(str(data_dir))} {shlex.quote(str(_free_name(data_dir)))}"
        return (
            f"{data_dir} contains a store with {error.relations} tables and sequences: move it away"
            f" with `{move}`, then repeat `{again}`"
        )
    if error.in_use:
        return f"a daemon uses the database of database.dsn: stop it, then repeat `{again}`"
    parts = conninfo_to_dict(dsn)
    words = ["createdb"]
    for option, name in (("-h", "host"), ("-p", "port"), ("-U", "user")):
        if parts.get(name):
            words += [option, str(parts[name])]
    words.append(f"{parts.get('dbname') or 'leadline'}_restored")
    return (
        f"the database of database.dsn contains {error.relations} tables and sequences: create"
        f" another one with `{shlex.join(words)}`, set database.dsn to it, then repeat `{again}`"
    )


def _free_name(path: Path) -> Path:
    name = path.with_name(f"{path.name}.old")
    number = 2
    while name.exists():
        name = path.with_name(f"{path.name}.old{number}")
        number += 1
    return name
