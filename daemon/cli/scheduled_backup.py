"""`leadline backup --schedule`: writes into backup.dir, verifies, records and prunes.

Invariants: only a verified file has the name of a backup and counts in backup.keep. Old backups
are deleted only after a newer one was verified.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...storage.backups.tables import insert_backup
from ...storage.core.instant import Instant, from_datetime
from ...storage.engine.backup import SCRATCH_PREFIX, BackupFailed, KeyPart
from ...storage.engine.backup_file import BadBackup, Manifest, refuse_taken, rename_backup
from ...storage.engine.embedded_layout import find_binaries
from ...storage.engine.pools import open_pool
from ..config.config_schema import Settings
from .backup_steps import open_store, verify_file, write_file

# In the order of time by name.
_NAME: Final = "leadline-%Y%m%dT%H%M%SZ.backup"
_PATTERN: Final = "leadline-????????T??????Z.backup"
_FAILED_SUFFIX: Final = ".failed"
_UNVERIFIED_SUFFIX: Final = ".unverified"


async def run_scheduled(
    settings: Settings, key: KeyPart | None, *, without_key: bool
) -> tuple[Path, Manifest]:
    """Makes one backup. Until it is verified, its file is NAME.unverified.

    A file that is damaged is renamed to NAME.failed. One that could not be verified stays until the
    next run. The store is not in use during the verification, so that a daemon can start.
    Raises: BackupFailed, and the errors of `write_backup` and `verify_backup`.
    """
    folder = _folder_of(settings)
    # The verification needs its server: without it, no dump is begun.
    find_binaries()
    with _alone(folder):
        _remove_leftovers(folder)
        path = folder / datetime.now(UTC).strftime(_NAME)
        refuse_taken(path)
        unverified = path.with_name(path.name + _UNVERIFIED_SUFFIX)
        async with open_store(settings) as dsn:
            manifest = await write_file(dsn, unverified, key, without_key=without_key)
        try:
            await verify_file(unverified, scratch=folder)
        except (BackupFailed, BadBackup):
            _set_aside(unverified, path)
            raise
        rename_backup(unverified, path)
        _prune(path, settings.backup.keep)
        async with open_store(settings) as dsn:
            await _record(dsn, path, manifest)
    return path, manifest


def _folder_of(settings: Settings) -> Path:
    if not settings.backup.dir:
        raise BackupFailed("backup.dir is not set: name the directory of scheduled backups")
    folder = Path(settings.backup.dir)
    if not folder.is_dir():
        raise BackupFailed(
            f"backup.dir: {folder} does not exist: create the directory for the daemon's user"
        )
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Locks the directory against another scheduled backup until the end of the context."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupFailed(f"another scheduled backup writes into {folder}") from None
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    """Deletes files of a killed run. Needs the lock."""
    for pattern in (f"{_PATTERN}.partial-*", f"{_PATTERN}{_UNVERIFIED_SUFFIX}*"):
        for file in folder.glob(pattern):
            file.unlink()
    for file in folder.glob(_PATTERN):
        # It reserved the name on a file system without hard links.
        if not _size(file):
            file.unlink()
    for scratch in folder.glob(f"{SCRATCH_PREFIX}*"):
        shutil.rmtree(scratch, ignore_errors=True)


def _set_aside(unverified: Path, path: Path) -> None:
    """Keeps the newest file that failed, for its examination."""
    for earlier in path.parent.glob(_PATTERN + _FAILED_SUFFIX):
        earlier.unlink()
    unverified.rename(path.with_name(path.name + _FAILED_SUFFIX))


def _prune(newest: Path, keep: int) -> None:
    """Deletes all but `keep` verified files: `newest`, then the others from the latest name on.

    Names that are later than `newest` are of a clock that was ahead, and are deleted first.
    """
    others = [path for path in newest.parent.glob(_PATTERN) if path != newest]
    others.sort(key=lambda path: (path.name < newest.name, path.name), reverse=True)
    for old in others[keep - 1 :]:
        old.unlink()


async def _record(dsn: str, path: Path, manifest: Manifest) -> None:
    created_at = from_datetime(datetime.strptime(manifest.created_at, "%Y-%m-%dT%H:%M:%S%z"))
    size = _size(path)
    async with (
        open_pool(dsn, name="backup", size=1, clock=lambda: Instant(0)) as pool,
        pool.transaction("record_backup") as tx,
    ):
        await insert_backup(tx, created_at, file=path.name, size=size, row_count=manifest.rows)


def _size(path: Path) -> int:
    return path.stat().st_size
