"""Guards of migrations, and databases from before the baseline: refused without a change."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio

from leadline.storage.engine import migrate as migrate_module
from leadline.storage.engine.migrate import CannotMigrate, migrate

# The example of the contract: rows of a test carrier that claim generation 4.
_CARRIER = """-- guard agents where carrier = 4
--   and name = 'test-carrier'

alter table agents add column workflow_generation integer;
"""
_INSERT = (
    "insert into agents (credential, region, instance, name, carrier, holder, first_seen_at,"
    " last_seen_at) select 'catch-all', 'core', gen_random_uuid(), 'test-carrier', {carrier},"
    " gen_random_uuid(), now(), now() from generate_series(1, {count})"
)
_STATE = (
    "select array(select name from schema_migrations order by version),"
    " array(select table_name || '.' || column_name from information_schema.columns"
    " where table_schema = 'public' order by 1)"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that contains the baseline."""
    shutil.copy(migrate_module.FOLDER / "0001_baseline.sql", tmp_path)
    return tmp_path


@pytest.fixture
def dsn(empty_dsn: str, folder: Path) -> str:
    """A database at the baseline, without rows."""
    trio.run(migrate, empty_dsn, folder)
    return empty_dsn


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.sql").write_text(text)


def ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


async def test_rows_of_a_test_carrier_refuse_the_upgrade(dsn: str, folder: Path) -> None:
    ask(dsn, _INSERT.format(carrier=4, count=3))
    ask(dsn, _INSERT.format(carrier=3, count=2))
    before = ask(dsn, _STATE)
    # The earlier file is not applied either.
    write(folder, "0002_plain", "create table plain (n integer);")
    write(folder, "0003_carrier", _CARRIER)
    refused = "^0003_carrier was not applied: agents has 3 rows that it cannot explain$"
    with pytest.raises(CannotMigrate, match=refused):
        await migrate(dsn, folder)
    assert ask(dsn, _STATE) == before
    ask(dsn, "delete from agents where carrier = 4")
    assert await migrate(dsn, folder) == ["0002_plain", "0003_carrier"]


async def test_a_guard_without_rows_accepts_a_new_database(empty_dsn: str, folder: Path) -> None:
    write(folder, "0002_carrier", _CARRIER)
    assert await migrate(empty_dsn, folder) == ["0001_baseline", "0002_carrier"]


async def test_all_violated_guards_are_named(dsn: str, folder: Path) -> None:
    ask(dsn, _INSERT.format(carrier=4, count=2))
    ask(dsn, "insert into settings (name, value, updated_at) values ('mail', '{}', now())")
    write(folder, "0002_carrier", _CARRIER)
    write(folder, "0003_mail", "-- guard settings where name = 'mail'\n-- guard users where true\n")
    with pytest.raises(CannotMigrate) as refused:
        await migrate(dsn, folder)
    assert str(refused.value) == (
        "0002_carrier was not applied: agents has 2 rows that it cannot explain;"
        " 0003_mail was not applied: settings has 1 row that it cannot explain"
    )


async def test_a_guard_of_a_table_of_the_same_upgrade_is_checked_before_its_file(
    dsn: str, folder: Path
) -> None:
    write(folder, "0002_made", "create table made (n integer); insert into made values (1), (2);")
    write(folder, "0003_guarded", "-- guard made where n > 1\ninsert into made values (3);")
    with pytest.raises(CannotMigrate, match="0003_guarded was not applied: made has 1 row"):
        await migrate(dsn, folder)
    assert ask(dsn, "select n from made order by n") == [(1,), (2,)]
    assert ask(dsn, "select max(version) from schema_migrations") == [(2,)]


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("-- guard agents where carrier =", r"0003_bad: the guard of agents: syntax error"),
        ("-- guard agents where true) or (true; drop table agents", r"the guard of agents: syntax"),
        ("-- guard agents where 1 / 0 = 1", r"the guard of agents: division by zero"),
        ("-- guard agents where", r"0003_bad: not a guard: -- guard agents where"),
        ("-- guard: agents: select count(*) from agents", r"0003_bad: not a guard"),
        ("  -- Guard agents where true", r"0003_bad: not a guard"),
        ("select 1;\n-- guard agents where true", r"0003_bad: a guard follows a statement"),
    ],
)
async def test_an_invalid_guard_applies_nothing(
    dsn: str, folder: Path, guard: str, message: str
) -> None:
    ask(dsn, _INSERT.format(carrier=4, count=1))
    before = ask(dsn, _STATE)
    write(folder, "0002_plain", "create table plain (n integer);")
    write(folder, "0003_bad", f"{guard}\nselect 1;")
    with pytest.raises(CannotMigrate, match=message):
        await migrate(dsn, folder)
    assert ask(dsn, _STATE) == before


async def test_a_guard_of_a_table_that_no_file_creates_is_an_error(dsn: str, folder: Path) -> None:
    write(folder, "0002_bad", "-- guard nowhere where true\nselect 1;")
    with pytest.raises(CannotMigrate, match=r"0002_bad: the guard of nowhere: .* does not exist"):
        await migrate(dsn, folder)


def test_concurrent_processes_are_all_refused(dsn: str, folder: Path) -> None:
    ask(dsn, _INSERT.format(carrier=4, count=1))
    before = ask(dsn, _STATE)
    write(folder, "0002_slow", "select pg_sleep(0.02); create table slow (n integer);")
    write(folder, "0003_carrier", _CARRIER)
    code = (
        "import sys, trio; from pathlib import Path;"
        "from leadline.storage.engine.migrate import migrate;"
        "trio.run(migrate, sys.argv[1], Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, dsn, str(folder)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [1, 1, 1]
    assert all("agents has 1 row that it cannot explain" in error for error in errors)
    assert ask(dsn, _STATE) == before


# Rows of development versions before the baseline; some have another name for a number.
_OLD = ["0001_accounts", "0002_heart", "0003_secrets", "0016_settings"]


@pytest.mark.parametrize("recorded", [_OLD[:1], _OLD])
async def test_a_database_from_before_the_baseline_is_refused_before_any_change(
    empty_dsn: str, recorded: list[str]
) -> None:
    ask(
        empty_dsn,
        "create table schema_migrations (version integer primary key, name text not null,"
        " checksum text not null); create table slices (id bigint);",
    )
    for name in recorded:
        ask(
            empty_dsn,
            f"insert into schema_migrations values ({int(name[:4])}, '{name}', 'a checksum')",
        )
    before = ask(empty_dsn, _STATE)
    with pytest.raises(CannotMigrate) as refused:
        await migrate(empty_dsn)
    assert "predates the first release" in str(refused.value)
    assert "leadline bundle export --project" in str(refused.value)
    assert ask(empty_dsn, _STATE) == before
