"""The content of a database in one exported snapshot: rows of each table, objects of each kind."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import msgspec
import psycopg
from psycopg import sql

from ..core.refusal import Unavailable
from .backup_file import SchemaVersion
from .connect import connect
from .database_errors import renamed
from .migrate import applied_migrations
from .trio_postgres import Connection, Cursor

# A table can vanish between its listing and its lock, since the janitor drops old partitions.
ATTEMPTS: Final = 10
LOCK_SECONDS: Final = 30
_BEGIN: Final = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    " SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;"
    f" SET LOCAL lock_timeout = '{LOCK_SECONDS}s'"
).encode()
_OURS: Final = """
n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not exists (
  select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
    and d.deptype = 'e'
)
"""
_RELATIONS: Final = f"""
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and {_OURS} order by 1, 2
""".encode()
# The rows of a partitioned table are in its partitions.
_TABLES: Final = f"""
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'r' and {_OURS} order by 1, 2
""".encode()
# A count of each kind finds an object that a restore left out.
_OBJECTS: Final = f"""
with ours as (
  select c.oid, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where {_OURS}
)
select case relkind when 'S' then 'sequences' when 'i' then 'indexes' when 'I' then 'indexes'
  when 'r' then 'tables' when 'p' then 'tables' else 'others' end, count(*) from ours group by 1
union all
select 'functions', count(*) from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not exists (
  select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
    and d.deptype = 'e')
union all
select 'triggers', count(*) from pg_trigger join ours on ours.oid = tgrelid where not tgisinternal
union all
select 'foreign keys', count(*) from pg_constraint join ours on ours.oid = conrelid
where contype = 'f'
""".encode()
_NOW: Final = b"select to_char(now() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"


class Snapshot(NamedTuple):
    """`id` is valid until the context of `exported_snapshot` ends. `schema` is None without a
    migration.
    """

    id: str
    server_major: int
    created_at: str
    schema: SchemaVersion | None
    content: "Content"


class _TablesChanged(Exception):
    pass


class Content(NamedTuple):
    tables: dict[str, int]
    objects: dict[str, int]


@asynccontextmanager
async def exported_snapshot(dsn: str) -> AsyncIterator[Snapshot]:
    """Yields a snapshot in which a dump sees what was counted.

    Locks: every table in ACCESS SHARE mode, which no read or write waits for.
    Raises: Unavailable, Rejected.
    """
    connection = await connect(dsn, name="leadline backup")
    try:
        async with AsyncExitStack() as stack:
            await _begin(connection, dsn, stack)
            yield await _read_snapshot(connection)
    except psycopg.Error as error:
        raise renamed(error, lost=connection.closed) from error
    finally:
        connection.discard()


async def _begin(connection: Connection, dsn: str, stack: AsyncExitStack) -> None:
    """Begins a transaction whose snapshot contains exactly the tables that it has locked."""
    for _ in range(ATTEMPTS):
        with suppress(_TablesChanged, psycopg.errors.UndefinedTable):
            async with AsyncExitStack() as attempt:
                await attempt.enter_async_context(connection.transaction(_BEGIN))
                await _lock_tables(connection, dsn)
                stack.push_async_exit(attempt.pop_all())
                return
    raise Unavailable("tables vanish while they are locked: try again")


async def read_content(connection: Connection) -> Content:
    """Counts everything. The caller's transaction makes it one snapshot."""
    tables = await rows_of(connection, _TABLES)
    return Content(
        {_label(*table): await _count(connection, *table) for table in tables},
        {kind: count for kind, count in await rows_of(connection, _OBJECTS) if count},
    )


def content_script(mark: str) -> bytes:
    """Returns statements for psql that print the content of its transaction between two lines with
    `mark`, for `parse_content`."""
    one = "select json_build_array(%L, %L, count(*)) from only %I.%I"
    tables = f"select format('{one}', nspname, relname, nspname, relname) from ("
    return b"".join(
        (
            f"select '{mark}';\n{tables}".encode(),
            _TABLES,
            b") tables\n\\gexec\nselect json_build_array(kind, count) from (",
            _OBJECTS,
            f") objects (kind, count);\nselect '{mark}';\n".encode(),
        )
    )


def parse_content(lines: list[str]) -> Content:
    tables: dict[str, int] = {}
    objects: dict[str, int] = {}
    for *name, count in (msgspec.json.decode(line) for line in lines):
        if len(name) == 1:
            objects[name[0]] = count
        else:
            tables[_label(*name)] = count
    return Content(tables, {kind: count for kind, count in objects.items() if count})


async def rows_of(connection: Connection, query: bytes, *values: object) -> list[tuple[Any, ...]]:
    cursor = Cursor(connection)
    await cursor.execute(query, values)
    return await cursor.fetchall()


async def _lock_tables(connection: Connection, dsn: str) -> None:
    """Locks the tables before the transaction takes its snapshot.

    The first statement that reads takes the snapshot, and a table that is dropped after it could
    not be dumped. So another connection lists the tables.
    """
    listing = await connect(dsn, name="leadline backup")
    try:
        tables = await rows_of(listing, _RELATIONS)
    finally:
        listing.discard()
    if tables:
        names = sql.SQL(", ").join(sql.Identifier(*table) for table in tables)
        lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(names)
        await connection.command(lock.as_bytes())
    if await rows_of(connection, _RELATIONS) != tables:
        raise _TablesChanged


async def _read_snapshot(connection: Connection) -> Snapshot:
    ((identifier,),) = await rows_of(connection, b"select pg_export_snapshot()")
    ((created_at,),) = await rows_of(connection, _NOW)
    content = await read_content(connection)
    return Snapshot(
        identifier,
        connection.info.server_version // 10_000,
        created_at,
        await _schema(connection),
        content,
    )


async def _schema(connection: Connection) -> SchemaVersion | None:
    applied = await applied_migrations(connection)
    if not applied:
        return None
    version = max(applied)
    return SchemaVersion(version, applied[version][0])


async def _count(connection: Connection, schema: str, name: str) -> int:
    query = sql.SQL("select count(*) from only {}").format(sql.Identifier(schema, name))
    ((count,),) = await rows_of(connection, query.as_bytes())
    return int(count)


def _label(schema: str, name: str) -> str:
    return name if schema == "public" else f"{schema}.{name}"
