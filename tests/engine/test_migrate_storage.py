"""Migrations: each is applied once, also by concurrent processes; an invalid set is refused
completely.
"""

import subprocess
import sys
from itertools import chain
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine import connect as connect_module
from leadline.storage.engine import migrate as migrate_module
from leadline.storage.engine.database_errors import UnusableDatabase
from leadline.storage.engine.migrate import CannotMigrate, ensure_database, migrate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "0001_first", "create table first (n int); insert into first values (1);")
    write(tmp_path, "0002_second", "insert into first select n + 1 from first;")
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.sql").write_text(text)


def select(dsn: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


async def test_each_file_is_applied_once_and_in_order(empty_dsn: str, folder: Path) -> None:
    assert await migrate(empty_dsn, folder) == ["0001_first", "0002_second"]
    assert await migrate(empty_dsn, folder) == []
    write(folder, "0003_third", "-- 100 % of what there is\ninsert into first values (9);")
    assert await migrate(empty_dsn, folder) == ["0003_third"]
    assert select(empty_dsn, "select n from first order by n") == [(1,), (2,), (9,)]
    assert select(empty_dsn, "select version, name from schema_migrations order by 1") == [
        (1, "0001_first"),
        (2, "0002_second"),
        (3, "0003_third"),
    ]


async def test_the_product_migrations_apply_to_an_empty_database(empty_dsn: str) -> None:
    names = await migrate(empty_dsn)
    assert names == [path.stem for path in sorted(migrate_module.FOLDER.glob("*.sql"))]


def test_concurrent_processes_apply_each_file_once(empty_dsn: str, folder: Path) -> None:
    for number in range(3, 9):
        write(
            folder,
            f"{number:04}_slow",
            f"select pg_sleep(0.02); insert into first values ({number});",
        )
    code = (
        "import sys, trio; from pathlib import Path;"
        "from leadline.storage.engine.migrate import migrate;"
        "print(*trio.run(migrate, sys.argv[1], Path(sys.argv[2])))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, empty_dsn, str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    applied = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(chain.from_iterable(applied)) == [
        path.stem for path in sorted(folder.glob("*.sql"))
    ]
    assert select(empty_dsn, "select count(*) from first") == [(8,)]


async def test_an_old_server_is_refused_before_anything_is_applied(
    empty_dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect_module, "OLDEST_SERVER", 990000)
    with pytest.raises(
        UnusableDatabase, match=r"this is PostgreSQL \d+, leadline needs 99 or newer"
    ):
        await migrate(empty_dsn, folder)
    assert select(empty_dsn, "select count(*) from pg_tables where schemaname = 'public'") == [(0,)]


async def test_a_file_changed_after_it_was_applied_is_refused(empty_dsn: str, folder: Path) -> None:
    await migrate(empty_dsn, folder)
    write(folder, "0001_first", "create table first (n bigint);")
    with pytest.raises(CannotMigrate, match="0001_first was changed"):
        await migrate(empty_dsn, folder)


async def test_a_database_newer_than_the_code_is_refused(empty_dsn: str, folder: Path) -> None:
    await migrate(empty_dsn, folder)
    (folder / "0002_second.sql").unlink()
    with pytest.raises(CannotMigrate, match="newer than this leadline: it has had 0002_second"):
        await migrate(empty_dsn, folder)


async def test_a_file_added_before_an_applied_one_is_refused(empty_dsn: str, folder: Path) -> None:
    write(folder, "0004_fourth", "select 1;")
    await migrate(empty_dsn, folder)
    write(folder, "0003_third", "select 1;")
    with pytest.raises(CannotMigrate, match="0003_third was added before"):
        await migrate(empty_dsn, folder)


async def test_two_files_of_one_number_are_refused(empty_dsn: str, folder: Path) -> None:
    write(folder, "0002_other", "select 1;")
    with pytest.raises(CannotMigrate, match="same number"):
        await migrate(empty_dsn, folder)


async def test_a_failing_file_is_rolled_back_and_named(empty_dsn: str, folder: Path) -> None:
    write(folder, "0003_bad", "create table third (n int); select nonsense;")
    with pytest.raises(CannotMigrate, match=r"0003_bad: column .nonsense. does not exist"):
        await migrate(empty_dsn, folder)
    assert select(
        empty_dsn, "select to_regclass('third') is null, max(version) from schema_migrations"
    ) == [(True, 2)]
    write(folder, "0003_bad", "create table third (n int);")
    assert await migrate(empty_dsn, folder) == ["0003_bad"]


async def test_a_missing_database_is_created(empty_dsn: str, databases) -> None:
    name = f"{databases.name_of(empty_dsn)}_more"
    for _ in range(2):
        await ensure_database(empty_dsn, name)
    assert select(empty_dsn, f"select count(*) from pg_database where datname = '{name}'") == [(1,)]
    databases.drop(f"dbname={name}")


async def test_a_migration_that_waits_for_a_lock_can_be_retried(
    empty_dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await migrate(empty_dsn, folder)
    write(folder, "0003_third", "alter table first add column more int;")
    monkeypatch.setattr(migrate_module, "_BEGIN", b"BEGIN; SET LOCAL lock_timeout = '50ms'")
    with psycopg.connect(empty_dsn) as reader:
        reader.execute("select * from first")
        with pytest.raises(Unavailable, match="lock timeout"):
            await migrate(empty_dsn, folder)
    assert await migrate(empty_dsn, folder) == ["0003_third"]


async def test_only_the_wait_for_another_process_is_limited(
    empty_dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long migration of this process does not end, and no other process is blamed for it."""
    monkeypatch.setattr(migrate_module, "WAIT_SECONDS", 0)
    with psycopg.connect(empty_dsn) as other:
        other.execute("select pg_advisory_xact_lock(%s)", [migrate_module.LOCK_KEY])
        with pytest.raises(Unavailable, match="another process"):
            await migrate(empty_dsn, folder)
    assert await migrate(empty_dsn, folder) == ["0001_first", "0002_second"]


async def test_a_role_without_create_is_refused(empty_dsn: str, folder: Path) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("create role reader_only login")
        try:
            with pytest.raises(CannotMigrate, match="permission denied for schema public"):
                await migrate(make_conninfo(empty_dsn, user="reader_only"), folder)
        finally:
            connection.execute("drop role reader_only")
