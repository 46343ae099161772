"""Forward-only migrations: `migrations/NNNN_name.sql`, each in a transaction of its own.

Invariants:
- Processes that start at once apply each file once. A file that fails changes nothing.
- A database of a version before the baseline is refused before any change. `connect` refuses a
  server older than PostgreSQL 15.
- A file that was changed after it was applied, and a database that is newer than the code, are
  errors.
- A violated guard of any pending file refuses the run before its first file is applied. A guard
  that needs a table or column of an earlier pending file is checked directly before its own file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import psycopg
import trio
from psycopg import sql

from ..core.refusal import Unavailable
from .connect import connect
from .database_errors import Rejected, renamed
from .migration_files import CannotMigrate, Guard, Migration, read_folder
from .trio_postgres import Connection, Cursor

__all__ = ["FOLDER", "CannotMigrate", "applied_migrations", "ensure_database", "migrate"]

FOLDER: Final = Path(__file__).parent / "migrations"
# Another process can be applying a long migration.
WAIT_SECONDS: Final = 600
RETRY_SECONDS: Final = 0.1
# Lock timeout of a migration, since other transactions queue behind its lock.
LOCK_SECONDS: Final = 10
# Every development version before the baseline recorded this file first.
_BEFORE_BASELINE: Final = "0001_accounts"
_PREDATES_BASELINE: Final = (
    "the schema of this database predates the first release, and this version cannot upgrade it;"
    " nothing was changed. Start the version that made the database and export each project"
    " with `leadline bundle export --project PROJECT > PROJECT.yaml`. Then start this version on an"
    " empty database and apply each file with `leadline bundle apply PROJECT.yaml`"
    " (docs/how-to/upgrade.md)"
)
# A guard of a later file can name a table or a column that an earlier pending file creates.
_NOT_YET: Final = (
    psycopg.errors.UndefinedTable,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedObject,
)
# Any number, the same in all versions: "lead" in ASCII.
LOCK_KEY: Final = 0x6C656164

_BEGIN = (
    f"BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"
).encode()
_TABLE = b"""
create table if not exists schema_migrations (
  version integer primary key,
  name text not null,
  checksum text not null,
  applied_at timestamptz not null default clock_timestamp()
)"""


async def migrate(dsn: str, folder: Path = FOLDER) -> list[str]:
    """Applies the pending migrations. Returns the names of the files that this call applied.

    Raises CannotMigrate, UnusableDatabase, or Unavailable if the server is unreachable, a lock
    timeout ended a migration, or another process migrates for more than WAIT_SECONDS.
    """
    files = read_folder(folder)
    connection = await connect(dsn, name="leadline migrate")
    try:
        return await _apply_pending(connection, files)
    except psycopg.Error as error:
        failure = renamed(error, lost=connection.closed)
        if isinstance(failure, Rejected):
            # For example a role without the right to create tables.
            raise CannotMigrate(str(failure)) from error
        raise failure from error
    finally:
        connection.discard()


async def _apply_pending(connection: Connection, files: Sequence[Migration]) -> list[str]:
    """Applies the pending files. Only the wait for another process is limited."""
    done: list[str] = []
    until = trio.current_time() + WAIT_SECONDS
    while _pending(files, await applied_migrations(connection)):
        if applied := await _apply_next(connection, files):
            done.append(applied)
            until = trio.current_time() + WAIT_SECONDS
        elif trio.current_time() < until:
            await trio.sleep(RETRY_SECONDS)
        else:
            raise Unavailable(f"another process has been migrating for {WAIT_SECONDS} s")
    return done


async def ensure_database(dsn: str, name: str) -> None:
    """Creates the database `name` on the server of `dsn` if it does not exist."""
    connection = await connect(dsn, name="leadline migrate")
    try:
        query = b"select 1 from pg_database where datname = $1"
        if not await _rows(connection, query, name):
            create = sql.SQL("create database {}").format(sql.Identifier(name))
            await connection.command(create.as_bytes())
    except psycopg.Error as error:
        raise renamed(error, lost=connection.closed) from error
    finally:
        connection.discard()


def _pending(files: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> list[Migration]:
    if any(name == _BEFORE_BASELINE for name, _ in applied.values()):
        raise CannotMigrate(_PREDATES_BASELINE)
    by_version = {file.version: file for file in files}
    for version, (name, checksum) in sorted(applied.items()):
        file = by_version.get(version)
        if file is None:
            raise CannotMigrate(
                f"the database is newer than this leadline: it has had {name} applied"
            )
        if file.checksum != checksum:
            raise CannotMigrate(f"{file.name} was changed after it was applied")
    pending = [file for file in files if file.version not in applied]
    if pending and applied and pending[0].version < max(applied):
        raise CannotMigrate(f"{pending[0].name} was added before others that were applied")
    return pending


async def applied_migrations(connection: Connection) -> dict[int, tuple[str, str]]:
    """Returns the name and the checksum of each migration that the database has, by number."""
    if not await _rows(connection, b"select 1 where to_regclass('schema_migrations') is not null"):
        return {}
    rows = await _rows(connection, b"select version, name, checksum from schema_migrations")
    return {version: (name, checksum) for version, name, checksum in rows}


async def _apply_next(connection: Connection, files: Sequence[Migration]) -> str | None:
    """Applies one file in one transaction. Returns None if none is pending or another process
    migrates now.

    The advisory lock is tried and not awaited, so that no transaction with a snapshot is open
    during the wait. The lock belongs to the transaction and ends with it, also through a connection
    pooler.
    """
    async with connection.transaction(_BEGIN):
        (ours,) = (await _rows(connection, b"select pg_try_advisory_xact_lock($1)", LOCK_KEY))[0]
        if not ours:
            return None
        await connection.command(_TABLE)
        pending = _pending(files, await applied_migrations(connection))
        if not pending:
            return None
        await _check_guards(connection, pending)
        file = pending[0]
        try:
            await connection.command(file.text)
        except psycopg.Error as error:
            if isinstance(renamed(error, lost=connection.closed), Unavailable):
                raise
            raise CannotMigrate(f"{file.name}: {str(error).strip()}") from error
        await _rows(
            connection,
            b"insert into schema_migrations (version, name, checksum) values ($1, $2, $3)"
            b" returning version",
            file.version,
            file.name,
            file.checksum,
        )
    return file.name


async def _check_guards(connection: Connection, pending: Sequence[Migration]) -> None:
    """Raises CannotMigrate with the table and count of every violated guard."""
    violated = [
        f"{file.name} was not applied: {guard.table} has {count} row{'s' if count > 1 else ''}"
        " that it cannot explain"
        for file in pending
        for guard in file.guards
        if (count := await _count(connection, file, guard, is_next=file is pending[0]))
    ]
    if violated:
        raise CannotMigrate("; ".join(violated))


async def _count(connection: Connection, file: Migration, guard: Guard, *, is_next: bool) -> int:
    """Returns the rows that violate a guard; 0 if it can only be evaluated later in the run."""
    await connection.command(b"savepoint guard")
    try:
        ((count,),) = await _rows(connection, guard.query)
    except psycopg.Error as error:
        if isinstance(renamed(error, lost=connection.closed), Unavailable):
            raise
        if is_next or not isinstance(error, _NOT_YET):
            raise CannotMigrate(
                f"{file.name}: the guard of {guard.table}: {str(error).strip()}"
            ) from error
        await connection.command(b"rollback to savepoint guard")
        return 0
    return int(count)


async def _rows(connection: Connection, query: bytes, *parameters: object) -> list[tuple[Any, ...]]:
    cursor = Cursor(connection)
    await cursor.execute(query, parameters)
    return await cursor.fetchall()
