"""Backup and restore of a whole database by pg_dump, pg_restore and psql.

Invariants:
- The dump and the counts of the manifest are one snapshot. The database stays in use.
- A restore changes only an empty database, in one transaction.
- A file is checked against its manifest before anything is restored from it.
"""

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from uuid import uuid4

import psycopg
import trio

from .backup_file import (
    CHUNK_BYTES,
    DUMP,
    FORMAT,
    KEY,
    BackupWriter,
    BadBackup,
    Manifest,
    check_dump,
    new_backup_file,
    read_dump,
    read_manifest,
)
from .backup_key import KeySet, seal_keys
from .backup_snapshot import (
    Content,
    Snapshot,
    content_script,
    exported_snapshot,
    parse_content,
    rows_of,
)
from .client_programs import EXCLUDES_EXTENSIONS, ClientPrograms, find_client_programs, target_of
from .connect import connect
from .database_errors import renamed
from .embedded_postgres import MAJOR, CannotRun, running
from .migrate import FOLDER, LOCK_KEY
from .migration_files import read_folder
from .trio_postgres import Connection

Progress = Callable[[int], None]

SCRATCH_PREFIX: Final = "leadline-verify-"
# The status with which psql ends if the server refused a statement: then the server rolls back.
_PSQL_SCRIPT_ERROR: Final = 3
# Read from the end of the error output of a client program.
_ERROR_BYTES: Final = 4096
# pg_restore 17 and newer write this statement at the beginning, for servers of every version.
_TRANSACTION_TIMEOUT: Final = b"\nSET transaction_timeout = 0;\n"
_TRANSACTION_TIMEOUT_SINCE: Final = 17
_HEAD_BYTES: Final = 4096
_BEGIN: Final = b"BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0"
_RELATIONS: Final = b"""
select count(*) from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'S', 'v', 'm') and n.nspname !~ '^pg_'
  and n.nspname <> 'information_schema' and not exists (
    select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype = 'e')
"""
_SESSIONS: Final = b"""
select count(*) from pg_stat_activity where datname = current_database()
  and pid <> pg_backend_pid() and application_name ~ '^leadline (loops|http|listen)'
"""


class BackupFailed(Exception):
    """A backup or a restore failed. The message gives the reason and, if possible, the remedy."""


class NotEmpty(Exception):
    """The target contains `relations` tables, sequences and views, or it is in use.

    `in_use` states that a daemon is connected, or that a migration or another restore runs.
    """

    def __init__(self, relations: int, *, in_use: bool) -> None:
        super().__init__(relations)
        self.relations = relations
        self.in_use = in_use


class KeyPart(NamedTuple):
    """The keys of a backup and their passphrase."""

    keys: KeySet
    passphrase: str


async def write_backup(
    dsn: str,
    path: Path,
    *,
    product_version: str,
    key: KeyPart | None,
    key_state: str,
    progress: Progress,
) -> Manifest:
    """Writes a backup of the database to a new file, and returns its manifest.

    Args: `key_state` is the manifest's `key`; `progress` is called with each number of bytes.
    Raises: BackupFailed, BadBackup if the name is taken, NoClientPrograms, Unavailable, Rejected,
    OSError.
    """
    with new_backup_file(path) as writer:
        async with exported_snapshot(dsn) as snapshot:
            if snapshot.schema is None:
                raise BackupFailed("the database contains no leadline: there is nothing to back up")
            programs = find_client_programs(snapshot.server_major, dsn)
            await _dump(dsn, snapshot, programs, writer, progress)
        if key is not None:
            sealed = seal_keys(key.keys, key.passphrase, writer.parts[DUMP].sha256)
            writer.write_part(KEY, sealed)
        manifest = Manifest(
            format=FORMAT,
            product_version=product_version,
            schema=snapshot.schema,
            server_major=snapshot.server_major,
            client_major=programs.major,
            created_at=snapshot.created_at,
            key=key_state,
            tables=snapshot.content.tables,
            objects=snapshot.content.objects,
            parts=dict(writer.parts),
        )
        writer.finish(manifest)
    return manifest


async def restore_backup(
    dsn: str,
    path: Path,
    manifest: Manifest,
    *,
    progress: Progress,
    before_load: Callable[[], None] = lambda: None,
) -> None:
    """Restores a backup into an empty database, in one transaction that also counts its rows.

    Args: `before_load` is called once the target is known to be empty.
    Raises: NotEmpty, BackupFailed, BadBackup, NoClientPrograms, Unavailable, Rejected, OSError.
    Each leaves the target as it was, except a BackupFailed that reports an unknown outcome.
    Locks: migrations, so that a starting daemon waits for the end of the restore.
    """
    check_dump(path, manifest)
    connection = await connect(dsn, name="leadline restore")
    is_loaded = False
    try:
        async with connection.transaction(_BEGIN):
            await _refuse_target(connection, manifest)
            server_major = connection.info.server_version // 10_000
            loaders = _Loaders(
                find_client_programs(max(server_major, manifest.client_major)).pg_restore,
                find_client_programs(server_major, dsn).psql,
            )
            before_load()
            await _load(dsn, path, loaders, server_major, manifest, progress)
            is_loaded = True
    except psycopg.Error as error:
        # This transaction only locks: psql has committed its own.
        if not is_loaded:
            raise renamed(error, lost=connection.closed) from error
    finally:
        connection.discard()


async def verify_backup(path: Path, *, progress: Progress, scratch: Path | None = None) -> Manifest:
    """Restores a backup into a server of its own, compares the counts, and deletes the server.

    Args: `scratch` is the folder of the server's data; None for the temporary folder.

    Raises: BackupFailed, BadBackup, CannotRun, NoClientPrograms, Unavailable, OSError.
    """
    manifest = read_manifest(path)
    refuse_newer(manifest)
    if manifest.server_major > int(MAJOR):
        raise CannotRun(
            f"the backup is of PostgreSQL {manifest.server_major}, and the temporary server of a"
            f" verification is {MAJOR}: restore the backup into a PostgreSQL of your own"
        )
    async with _scratch_server(scratch) as dsn:
        await restore_backup(dsn, path, manifest, progress=progress)
    return manifest


def refuse_newer(manifest: Manifest) -> None:
    """Raises BadBackup if this version does not know a migration of the backup."""
    known = read_folder(FOLDER)[-1]
    if manifest.schema.version > known.version:
        raise BadBackup(
            f"the backup is newer than this leadline: it has migration {manifest.schema.name}, and"
            f" this version ends at {known.name}; install leadline {manifest.product_version}"
        )


@asynccontextmanager
async def _scratch_server(parent: Path | None) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX, dir=parent) as folder:
        _let_through(Path(folder))
        async with running(Path(folder) / "data", durable=False) as server:
            yield server.dsn


def _let_through(folder: Path) -> None:
    """Lets every user traverse the folder: if root verifies, the server runs as another user.

    That user may own the folder above, so a link in place of this one is not followed.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, 0o711)
    finally:
        os.close(descriptor)


async def _dump(
    dsn: str,
    snapshot: Snapshot,
    programs: ClientPrograms,
    writer: BackupWriter,
    progress: Progress,
) -> None:
    command = [programs.pg_dump, "--format=custom", "--no-owner", "--no-privileges"]
    command += ["--no-password", f"--snapshot={snapshot.id}"]
    if programs.major >= EXCLUDES_EXTENSIONS:
        # A managed server has extensions, and leadline uses none.
        command.append("--exclude-extension=*")
    writer.begin_part()
    with tempfile.TemporaryFile() as errors, target_of(dsn) as target:
        command.append(f"--dbname={target.dsn}")
        async with _program(command, target.environment, errors.fileno()) as process:
            assert process.stdout is not None
            # Through a pipe: written to a file directly, the dump would contain offsets of it.
            while chunk := await process.stdout.receive_some(CHUNK_BYTES):
                writer.write(bytes(chunk))
                progress(len(chunk))
            status = await process.wait()
        if status != 0:
            raise BackupFailed(f"pg_dump failed: {_tail(errors)}")
    writer.end_part(DUMP)


class _Loaders(NamedTuple):
    """The programs of a restore. Only psql connects, so they may be of different packages."""

    pg_restore: str
    psql: str


async def _load(
    dsn: str,
    path: Path,
    loaders: _Loaders,
    server_major: int,
    manifest: Manifest,
    progress: Progress,
) -> None:
    """Makes SQL of the dump, runs it in one transaction, and commits if the counts are right.

    pg_restore does not connect itself, since it sets a parameter that older servers lack.
    """
    to_sql = [loaders.pg_restore, "--file=-", "--no-owner", "--no-privileges"]
    to_server = [loaders.psql, "--no-psqlrc", "--quiet", "--no-password", "--no-align"]
    to_server += ["--tuples-only", "--set=ON_ERROR_STOP=1"]
    output = _Output(uuid4().hex)
    differences = ""
    is_commit_sent = False
    with tempfile.TemporaryFile() as errors, target_of(dsn) as target:
        to_server.append(f"--dbname={target.dsn}")
        async with (
            _program(to_sql, target.environment, errors.fileno()) as reader,
            _program(to_server, target.environment, errors.fileno()) as psql,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(output.read, psql)
            nursery.start_soon(_feed, path, reader, progress)
            # A program that fails ends early; its exit status is checked below.
            with suppress(trio.BrokenResourceError):
                await _send(psql, b"BEGIN;\n")
                await _pass_on(reader, psql, server_major)
                # Without COMMIT psql ends, and the server rolls back.
                if await reader.wait() == 0:
                    await _send(psql, content_script(output.mark))
                    await output.done.wait()
                    if output.content is not None:
                        differences = _differences(manifest, output.content)
                        is_commit_sent = not differences
                if is_commit_sent:
                    await _send(psql, b"COMMIT;\n")
            assert psql.stdin is not None
            await psql.stdin.aclose()
            status = await psql.wait()
            if status != 0:
                nursery.cancel_scope.cancel()
        if is_commit_sent and status not in (0, _PSQL_SCRIPT_ERROR):
            raise BackupFailed(
                f"the connection was lost during COMMIT ({_tail(errors)}), so the outcome is"
                " unknown: if the target contains tables, everything was restored, else nothing"
            )
        if differences:
            raise BackupFailed(
                f"nothing was restored: the content differs from the manifest: {differences}"
            )
        if status != 0 or not is_commit_sent:
            raise BackupFailed(f"nothing was restored: {_tail(errors)}")


class _Output:
    """Reads what psql prints, so that it never waits for a full pipe.

    `content` is set if psql printed all of `content_script`; `done` also if psql ended before.
    """

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.content: Content | None = None
        self.done = trio.Event()
        self._lines: list[str] | None = None

    async def read(self, psql: trio.Process) -> None:
        assert psql.stdout is not None
        rest = b""
        while chunk := await psql.stdout.receive_some(CHUNK_BYTES):
            *lines, rest = (rest + bytes(chunk)).split(b"\n")
            for line in lines:
                self._take(line.decode())
        self.done.set()

    def _take(self, line: str) -> None:
        if self._lines is None:
            self._lines = [] if line == self.mark else None
        elif line == self.mark:
            self.content = parse_content(self._lines)
            self.done.set()
        elif self.content is None:
            self._lines.append(line)


async def _feed(path: Path, reader: trio.Process, progress: Progress) -> None:
    assert reader.stdin is not None
    with suppress(trio.BrokenResourceError):
        for chunk in read_dump(path):
            await reader.stdin.send_all(chunk)
            progress(len(chunk))
    await reader.stdin.aclose()


async def _pass_on(reader: trio.Process, psql: trio.Process, server_major: int) -> None:
    """Passes the SQL on, without the parameter that servers before 17 do not know."""
    assert reader.stdout is not None
    head = b""
    while len(head) < _HEAD_BYTES and (chunk := await reader.stdout.receive_some(CHUNK_BYTES)):
        head += chunk
    if server_major < _TRANSACTION_TIMEOUT_SINCE:
        head = head.replace(_TRANSACTION_TIMEOUT, b"\n", 1)
    await _send(psql, head)
    while chunk := await reader.stdout.receive_some(CHUNK_BYTES):
        await _send(psql, bytes(chunk))


async def _send(psql: trio.Process, data: bytes) -> None:
    assert psql.stdin is not None
    await psql.stdin.send_all(data)


@asynccontextmanager
async def _program(
    command: list[str], environment: dict[str, str], errors: int
) -> AsyncIterator[trio.Process]:
    """A client program with pipes. It is killed if the block ends before it."""
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            with trio.CancelScope(shield=True):
                await process.wait()


async def _refuse_target(connection: Connection, manifest: Manifest) -> None:
    major = connection.info.server_version // 10_000
    if manifest.server_major > major:
        raise BackupFailed(
            f"the backup is of PostgreSQL {manifest.server_major}, and the target is {major}:"
            f" restore it into PostgreSQL {manifest.server_major} or newer"
        )
    ((ours,),) = await rows_of(connection, b"select pg_try_advisory_xact_lock($1)", LOCK_KEY)
    ((sessions,),) = await rows_of(connection, _SESSIONS)
    ((relations,),) = await rows_of(connection, _RELATIONS)
    in_use = bool(sessions) or not ours
    if relations or in_use:
        raise NotEmpty(relations, in_use=in_use)


def _differences(manifest: Manifest, found: Content) -> str:
    """Returns the first differences between a restore and its manifest; empty without any."""
    differences = [
        f"{name} has {got.get(name, 0)} instead of {wanted.get(name, 0)}"
        for wanted, got in ((manifest.tables, found.tables), (manifest.objects, found.objects))
        for name in sorted({*wanted, *got})
        if got.get(name) != wanted.get(name)
    ]
    more = f" and {len(differences) - 3} more" if len(differences) > 3 else ""
    return "; ".join(differences[:3]) + more


def _tail(errors: BinaryIO) -> str:
    size = errors.seek(0, 2)
    errors.seek(max(size - _ERROR_BYTES, 0))
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return " | ".join(lines[-4:]) or "without a message"
