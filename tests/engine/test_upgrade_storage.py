"""A database of the baseline is upgraded: it keeps its rows and gets the schema of a new
database.
"""

import shutil
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg import sql

from leadline.storage.engine import migrate as migrate_module
from leadline.storage.engine.migrate import migrate

_BASELINE: Final = Path(__file__).with_name("baseline.sql")
# A change that a later release may make.
_ADDITIVE: Final = """
alter table monitors add column owner text not null default 'nobody';
alter table outages drop constraint outages_suppressed_by_check,
  add constraint outages_suppressed_by_check check (suppressed_by <> '');
alter type verdict add value 'skipped';
create table owners (name text primary key, monitors bigint not null);
create index monitors_owner on monitors (owner);
insert into owners select owner, count(*) from monitors group by owner;
"""
_TABLES: Final = """
select c.relname, array_agg(a.attname order by a.attnum)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'schema_migrations'
  and c.relnamespace = 'public'::regnamespace
group by c.relname
"""
# Every object of the schema as text, without partitions, which belong to days.
_SCHEMA: Final = """
with tables as (
  select oid, relname, relkind, reloptions from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and not relispartition)
select concat_ws(' ', 'relation', relname, relkind, reloptions, pg_get_partkeydef(oid),
  case relkind when 'v' then pg_get_viewdef(oid) end) from tables
union all
select concat_ws(' ', 'column', t.relname, a.attname, format_type(a.atttypid, a.atttypmod),
  a.attnotnull, a.attidentity, pg_get_expr(d.adbin, d.adrelid))
from tables t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = t.oid and d.adnum = a.attnum
union all
-- NOT NULL is compared with the column: only newer servers have a constraint for it.
select concat_ws(' ', 'constraint', t.relname, c.conname, pg_get_constraintdef(c.oid))
from tables t join pg_constraint c on c.conrelid = t.oid where c.contype <> 'n'
union all
select 'index ' || pg_get_indexdef(i.indexrelid)
from tables t join pg_index i on i.indrelid = t.oid
union all
select 'trigger ' || pg_get_triggerdef(g.oid)
from tables t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal
union all
select 'function ' || pg_get_functiondef(oid) from pg_proc
where pronamespace = 'public'::regnamespace
union all
select concat_ws(' ', 'enum', t.typname, e.enumsortorder, e.enumlabel)
from pg_enum e join pg_type t on t.oid = e.enumtypid
"""

Rows = dict[str, list[Any]]


@pytest.fixture
def old(empty_dsn: str) -> str:
    """A database of the first release, with rows in every table."""
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(_BASELINE.read_bytes())
    return empty_dsn


def tables_of(dsn: str) -> dict[str, list[str]]:
    with psycopg.connect(dsn) as connection:
        return dict(connection.execute(_TABLES.encode()).fetchall())


def rows_of(dsn: str, tables: dict[str, list[str]]) -> Rows:
    """The rows of these columns of each table."""
    found: Rows = {}
    with psycopg.connect(dsn) as connection:
        for table, columns in tables.items():
            query = sql.SQL("select to_jsonb(t) from (select {} from {}) t order by 1").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(table)
            )
            found[table] = [row for (row,) in connection.execute(query)]
    return found


def schema_of(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as connection:
        return {row[0] for row in connection.execute(_SCHEMA.encode())}


def later_files(folder: Path) -> list[str]:
    return [path.stem for path in sorted(folder.glob("*.sql"))[1:]]


async def upgraded(dsn: str, folder: Path) -> None:
    """Upgrades a database of the baseline. Its tables, columns and rows stay."""
    tables = tables_of(dsn)
    before = rows_of(dsn, tables)
    assert all(len(rows) >= 2 for rows in before.values()), "the dump has rows in every table"
    assert await migrate(dsn, folder) == later_files(folder)
    after = tables_of(dsn)
    assert {table: set(columns) - set(after[table]) for table, columns in tables.items()} == {
        table: set() for table in tables
    }
    assert rows_of(dsn, tables) == before


async def test_the_baseline_upgrades_to_the_schema_of_a_new_database(old: str, dsn: str) -> None:
    await upgraded(old, migrate_module.FOLDER)
    assert schema_of(old) == schema_of(dsn)


async def test_an_additive_migration_keeps_the_rows_of_the_baseline(
    old: str, tmp_path: Path, databases: Any
) -> None:
    for path in migrate_module.FOLDER.glob("*.sql"):
        shutil.copy(path, tmp_path)
    (tmp_path / "9999_additive.sql").write_text(_ADDITIVE)
    await upgraded(old, tmp_path)
    new = databases.make()
    await migrate(new, tmp_path)
    assert schema_of(old) == schema_of(new)
    assert "column monitors owner text t  'nobody'::text" in schema_of(new)
    databases.drop(new)


async def test_the_upgrade_records_the_conditions_that_monitors_have(old: str) -> None:
    conditions = ["[STATUS] == 200", "[RESPONSE_TIME] < 800"]
    with psycopg.connect(old) as connection:
        # No version accepted a condition of more than 512 characters.
        connection.execute(
            "update monitors set conditions = %s", [[*conditions, "[BODY] == " + "x" * 600]]
        )
        (many,) = connection.execute("select count(*) from monitors").fetchone() or (0,)
    await migrate(old)
    with psycopg.connect(old) as connection:
        found = connection.execute(
            "select text, count(*) from monitor_conditions group by text order by min(id)"
        ).fetchall()
    assert found == [(text, many) for text in conditions]


async def test_the_upgrade_numbers_incidents_in_the_order_of_their_creation(old: str) -> None:
    await migrate(old)
    with psycopg.connect(old) as connection:
        found = connection.execute(
            "select org, project, array_agg(number order by created_at, id) from incidents"
            " group by org, project"
        ).fetchall()
        last = connection.execute("select org, project, last from incident_numbers").fetchall()
    assert found
    assert [numbers for *_, numbers in found] == [
        list(range(1, len(numbers) + 1)) for *_, numbers in found
    ]
    assert sorted(last) == sorted((org, project, len(numbers)) for org, project, numbers in found)
