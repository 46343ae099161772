"""Backup and restore of a database: complete, from one snapshot, and atomic."""

import errno
import io
import os
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine import backup, backup_file, backup_snapshot, client_programs
from leadline.storage.engine.backup import (
    BackupFailed,
    KeyPart,
    NotEmpty,
    refuse_newer,
    restore_backup,
    write_backup,
)
from leadline.storage.engine.backup_file import (
    DUMP,
    KEY,
    MANIFEST,
    BackupWriter,
    BadBackup,
    Manifest,
    SchemaVersion,
    new_backup_file,
    read_dump,
    read_key_part,
    read_manifest,
)
from leadline.storage.engine.backup_key import KeySet, open_keys
from leadline.storage.engine.backup_snapshot import (
    Content,
    Snapshot,
    exported_snapshot,
)
from leadline.storage.engine.client_programs import (
    ClientPrograms,
    NoClientPrograms,
    find_client_programs,
    target_of,
)
from leadline.storage.engine.keyring import new_key_text
from leadline.storage.engine.migrate import LOCK_KEY, migrate
from leadline.storage.engine.trio_postgres import Connection

HANGS_SECONDS = 30
PASSPHRASE = "correct horse battery"
INSERT_USER = """
insert into users (uid, email, created_at, updated_at)
values (gen_random_uuid(), 'x', now(), now())
"""
KEYS = KeySet(new_key_text(), (new_key_text(),))


@pytest.fixture
def template(cast_template: str) -> str:
    """Creates two organizations, and partitions."""
    return cast_template


async def backed_up(dsn: str, path: Path, key: KeyPart | None = None) -> Manifest:
    state = "included" if key else "excluded"
    return await write_backup(
        dsn, path, product_version="0", key=key, key_state=state, progress=ignore
    )


async def read_content_of(dsn: str) -> Content:
    async with exported_snapshot(dsn) as snapshot:
        return snapshot.content


def ignore(_count: int) -> None:
    pass


def select(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def remade(path: Path, manifest: Manifest, dump: bytes) -> Path:
    """Returns a file with another manifest or dump and correct checksums."""
    made = path.with_name("remade")
    with new_backup_file(made) as writer:
        writer.write_part(DUMP, dump)
        parts = {**manifest.parts, DUMP: writer.parts[DUMP]}
        parts.pop(KEY, None)
        writer.finish(msgspec.structs.replace(manifest, parts=parts, key="excluded"))
    return made


# The definitions of everything that a restore could lose without an error.
DEFINITIONS = """
select 'function', proname::text, pg_get_functiondef(oid) from pg_proc
where pronamespace = 'public'::regnamespace
union all select 'trigger', tgname::text, pg_get_triggerdef(oid) from pg_trigger
where not tgisinternal
union all select 'constraint', conrelid::regclass || '.' || case contype
  -- pg_dump leaves generated names out, and the server generates them again.
  when 'n' then '' else conname end, pg_get_constraintdef(oid)
from pg_constraint where connamespace = 'public'::regnamespace and conrelid <> 0
union all select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index
where indrelid::regclass::text !~ '^pg_'
union all select 'partition', oid::regclass::text, pg_get_expr(relpartbound, oid) from pg_class
where relispartition and relkind = 'r'
union all select 'sequence', sequencename::text, coalesce(last_value, 0)::text from pg_sequences
union all select 'default', adrelid::regclass || '.' || adnum, pg_get_expr(adbin, adrelid)
from pg_attrdef
order by 1, 2, 3
"""


async def test_a_restored_database_is_the_one_that_was_backed_up(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    assert manifest == read_manifest(tmp_path / "b")
    assert manifest.rows > 100
    await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert await read_content_of(empty_dsn) == await read_content_of(dsn)
    assert select(empty_dsn, DEFINITIONS) == select(dsn, DEFINITIONS)
    rows = "select * from users order by id"
    assert select(empty_dsn, rows) == select(dsn, rows)
    assert await migrate(empty_dsn) == []


async def test_the_counts_and_the_dump_are_one_snapshot(dsn: str) -> None:
    before = await read_content_of(dsn)
    async with exported_snapshot(dsn) as snapshot:
        select(dsn, INSERT_USER)
        with psycopg.connect(dsn) as connection:
            connection.execute("begin isolation level repeatable read")
            connection.execute(f"set transaction snapshot '{snapshot.id}'".encode())
            (seen,) = connection.execute("select count(*) from users").fetchone() or (None,)
    assert seen == snapshot.content.tables["users"] == before.tables["users"]
    assert (await read_content_of(dsn)).tables["users"] == before.tables["users"] + 1


async def test_rows_that_are_written_before_the_dump_are_in_neither_count_nor_dump(
    dsn: str, empty_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_find(major: int, dsn: str) -> ClientPrograms:
        """Runs between the counts and the dump."""
        select(dsn, INSERT_USER)
        return find_client_programs(major, dsn)

    monkeypatch.setattr(backup, "find_client_programs", write_and_find)
    manifest = await backed_up(dsn, tmp_path / "b")
    monkeypatch.undo()
    await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert select(empty_dsn, "select count(*) from users") == [(manifest.tables["users"],)]


async def test_a_table_of_the_snapshot_is_not_dropped_before_it_is_read(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    select(dsn, "create table gone_soon ()")
    read = backup_snapshot._read_snapshot

    async def drop_and_read(connection: Connection) -> Snapshot:
        with pytest.raises(psycopg.errors.LockNotAvailable):
            select(dsn, "set lock_timeout = 1; drop table gone_soon")
        return await read(connection)

    monkeypatch.setattr(backup_snapshot, "_read_snapshot", drop_and_read)
    async with exported_snapshot(dsn) as snapshot:
        assert snapshot.content.tables["gone_soon"] == 0


async def test_tables_that_change_before_they_are_locked_are_listed_again(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The janitor drops and makes partitions at any time."""
    select(dsn, "create table gone_soon ()")
    changes = ["drop table gone_soon", "create table new ()"]
    lock = backup_snapshot._lock_tables

    async def change_and_lock(connection: Connection, dsn: str) -> None:
        read = backup_snapshot.rows_of

        async def read_and_change(
            listing: Connection, query: bytes, *values: object
        ) -> list[tuple[Any, ...]]:
            rows = await read(listing, query, *values)
            if listing is not connection and changes:
                select(dsn, changes.pop())
            return rows

        with monkeypatch.context() as patched:
            patched.setattr(backup_snapshot, "rows_of", read_and_change)
            await lock(connection, dsn)

    monkeypatch.setattr(backup_snapshot, "_lock_tables", change_and_lock)
    async with exported_snapshot(dsn) as snapshot:
        assert "new" in snapshot.content.tables
        assert "gone_soon" not in snapshot.content.tables
    assert changes == []


async def test_a_nonempty_target_is_refused_unchanged(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    select(empty_dsn, "create table precious as select 42 as n")
    with pytest.raises(NotEmpty):
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert select(empty_dsn, "select n from precious") == [(42,)]
    assert (await read_content_of(empty_dsn)).tables == {"precious": 1}


async def test_a_target_with_a_connected_daemon_is_refused(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    with (
        psycopg.connect(empty_dsn, application_name="leadline loops"),
        pytest.raises(NotEmpty) as refused,
    ):
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert refused.value.in_use


async def test_migrations_wait_for_a_restore(dsn: str, empty_dsn: str, tmp_path: Path) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    tried: list[tuple[Any, ...]] = []

    def try_lock() -> None:
        tried.extend(select(empty_dsn, f"select pg_try_advisory_xact_lock({LOCK_KEY})"))

    await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore, before_load=try_lock)
    assert tried == [(False,)]


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
async def test_a_dump_that_ends_early_restores_nothing(
    dsn: str, empty_dsn: str, tmp_path: Path, share: float
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    dump = b"".join(read_dump(tmp_path / "b"))
    made = remade(tmp_path / "b", manifest, dump[: int(len(dump) * share)])
    with pytest.raises(BackupFailed, match="nothing was restored"):
        await restore_backup(empty_dsn, made, read_manifest(made), progress=ignore)
    assert (await read_content_of(empty_dsn)).tables == {}


async def test_sql_of_a_program_that_fails_is_not_committed(
    dsn: str, empty_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each statement succeeds, and the program ends with an error after the last one."""
    manifest = await backed_up(dsn, tmp_path / "b")
    program = tmp_path / "pg_restore"
    write_program(program, "echo 'create table half ();'; cat > /dev/null; exit 1")
    monkeypatch.setattr(client_programs.ClientPrograms, "pg_restore", str(program))
    with pytest.raises(BackupFailed, match="nothing was restored"):
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert (await read_content_of(empty_dsn)).tables == {}


def write_program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


async def test_a_statement_that_fails_restores_nothing(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    """The type takes the name of a table of the dump, and the emptiness check does not see it."""
    manifest = await backed_up(dsn, tmp_path / "b")
    select(empty_dsn, "create type webhooks as enum ('a')")
    with pytest.raises(BackupFailed, match=r'nothing was restored: .*"webhooks"'):
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert (await read_content_of(empty_dsn)).tables == {}


async def test_rows_that_differ_from_the_manifest_fail_the_restore(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    count = manifest.tables["users"]
    other = msgspec.structs.replace(manifest, tables={**manifest.tables, "users": count + 1})
    with pytest.raises(BackupFailed, match=f"users has {count} instead of {count + 1}"):
        await restore_backup(empty_dsn, tmp_path / "b", other, progress=ignore)
    assert (await read_content_of(empty_dsn)).tables == {}


@pytest.mark.parametrize(
    ("status", "words"), [(2, "the outcome is unknown"), (3, "nothing was restored")]
)
async def test_a_connection_that_is_lost_during_the_commit_is_an_unknown_outcome(
    dsn: str,
    empty_dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    words: str,
) -> None:
    """psql ends with 2 if it loses its connection, and with 3 if the server refuses the COMMIT."""
    manifest = await backed_up(dsn, tmp_path / "b")
    psql = find_client_programs(manifest.server_major).psql
    stand_in = tmp_path / "psql"
    stand_in.write_text(f"#!/bin/sh\nsed -u '/^COMMIT;$/,$d' | '{psql}' \"$@\"\nexit {status}\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(client_programs.ClientPrograms, "psql", str(stand_in))
    with pytest.raises(BackupFailed, match=words) as failed:
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
    assert ("nothing was restored" in str(failed.value)) == (status == 3)


async def test_a_database_without_leadline_has_no_backup(empty_dsn: str, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match="contains no leadline"):
        await backed_up(empty_dsn, tmp_path / "b")
    assert os.listdir(tmp_path) == []


async def test_a_dump_that_fails_leaves_no_file(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_programs.ClientPrograms, "pg_dump", "/bin/false")
    with pytest.raises(BackupFailed, match="pg_dump failed"):
        await backed_up(dsn, tmp_path / "b")
    assert os.listdir(tmp_path) == []


async def test_a_newer_schema_and_a_newer_server_are_refused(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b")
    newer = msgspec.structs.replace(manifest, schema=SchemaVersion(9999, "9999_later"))
    with pytest.raises(BadBackup, match="9999_later"):
        refuse_newer(newer)
    refuse_newer(manifest)
    newer = msgspec.structs.replace(manifest, server_major=99)
    with pytest.raises(BackupFailed, match="PostgreSQL 99 or newer"):
        await restore_backup(empty_dsn, tmp_path / "b", newer, progress=ignore)


async def test_the_key_opens_by_its_passphrase_and_with_its_dump_only(
    dsn: str, tmp_path: Path
) -> None:
    manifest = await backed_up(dsn, tmp_path / "b", KeyPart(KEYS, PASSPHRASE))
    sealed, dump = read_key_part(tmp_path / "b", manifest), manifest.parts[DUMP].sha256
    assert open_keys(sealed, PASSPHRASE, dump) == KEYS
    for passphrase, other in ((PASSPHRASE + "!", dump), (PASSPHRASE, "0" * 64)):
        with pytest.raises(BadBackup, match="passphrase"):
            open_keys(sealed, passphrase, other)
    assert KEYS.current.encode() not in (tmp_path / "b").read_bytes()
    assert KEYS.current not in repr(KEYS)


def test_the_password_of_a_dsn_is_not_in_the_process_list() -> None:
    with target_of("postgresql://ada:hunter2@db.example/leadline") as target:
        assert "hunter2" not in target.dsn
        assert target.environment["PGPASSWORD"] == "hunter2"
        assert conninfo_to_dict(target.dsn)["host"] == "db.example"


def test_the_password_of_a_key_file_is_not_in_the_process_list() -> None:
    with target_of("host=db.example sslkey=/key sslpassword='hunter 2'") as target:
        assert "hunter" not in target.dsn
        assert conninfo_to_dict(target.dsn)["sslkey"] == "/key"
        file = Path(target.environment["PGSERVICEFILE"])
        assert file.stat().st_mode & 0o077 == 0
        assert file.read_text() == "[leadline]\nsslpassword=hunter 2\n"
    assert not file.exists()


async def test_a_dsn_with_the_password_of_a_key_file_is_backed_up(
    dsn: str, empty_dsn: str, tmp_path: Path
) -> None:
    secret = make_conninfo("", sslpassword="hunter2")
    manifest = await backed_up(f"{dsn} {secret}", tmp_path / "b")
    await restore_backup(f"{empty_dsn} {secret}", tmp_path / "b", manifest, progress=ignore)


@pytest.mark.parametrize("dsn", ["service=x sslpassword=y", "sslpassword='y\n[a]'"])
def test_a_password_of_a_key_file_that_no_file_can_hold_is_refused(dsn: str) -> None:
    with pytest.raises(NoClientPrograms, match="sslpassword"), target_of(dsn):
        pass


def program_folder(parent: Path, name: str, major: int) -> Path:
    folder = parent / name / "bin"
    folder.mkdir(parents=True)
    for program in ("pg_dump", "pg_restore", "psql"):
        (folder / program).write_text(f"#!/bin/sh\necho '{program} (PostgreSQL) {major}.1'\n")
        (folder / program).chmod(0o755)
    return folder


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """15, 16 and 18 on the host, and 18 of the package."""
    debian = tmp_path / "postgresql"
    found = {str(major): program_folder(debian, str(major), major) for major in (15, 16, 18)}
    found["bundled"] = program_folder(tmp_path, "bundled", 18)
    monkeypatch.setattr(client_programs, "_DEBIAN", debian)
    monkeypatch.setattr(client_programs, "_bundled", lambda: [found["bundled"]])
    monkeypatch.setattr("shutil.which", lambda name: None)
    return found


@pytest.mark.parametrize(
    ("major", "host_has", "chosen"),
    [
        (15, "15 16 18", "15"),
        (16, "15 16 18", "16"),
        (17, "15 16 18", "18"),
        (18, "15 16 18", "18"),
        (18, "15 16", "bundled"),
        (17, "15 16", "bundled"),
        (15, "16", "16"),
    ],
)
def test_programs_of_the_version_of_the_server_come_first_and_those_of_the_host(
    programs: dict[str, Path], major: int, host_has: str, chosen: str
) -> None:
    for name in {"15", "16", "18"}.difference(host_has.split()):
        (programs[name] / "psql").unlink()
    assert find_client_programs(major, "host=/run dbname=x").folder == programs[chosen]


@pytest.mark.parametrize(
    ("dsn", "is_refused"),
    [
        ("host=db.example", True),
        ("host=/run,db.example", True),
        ("host=/run hostaddr=127.0.0.1", True),
        ("host=db.example sslmode=allow", True),
        ("service=leadline", True),
        ("host=db.example sslmode=disable", False),
        ("host=/run,/tmp", False),
        ("dbname=x", False),
        ("", False),
    ],
)
def test_programs_without_tls_are_not_used_over_a_network(
    programs: dict[str, Path], dsn: str, is_refused: bool
) -> None:
    (programs["18"] / "psql").unlink()
    if is_refused:
        with pytest.raises(NoClientPrograms, match=r"no TLS.*postgresql-client-18, or set sslmode"):
            find_client_programs(18, dsn)
    else:
        assert find_client_programs(18, dsn).folder == programs["bundled"]
    assert find_client_programs(15, dsn).folder == programs["15"]


def test_programs_that_are_too_old_are_named_with_the_package() -> None:
    with pytest.raises(NoClientPrograms, match=r"found: \d+ in .*postgresql-client-99"):
        find_client_programs(99)


async def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        await backed_up(f"host={tmp_path} dbname=leadline", tmp_path / "b")


def example_file(path: Path) -> Manifest:
    with new_backup_file(path) as writer:
        return write_example(writer)


def write_example(writer: BackupWriter) -> Manifest:
    writer.write_part(DUMP, b"dump" * 1000)
    manifest = Manifest(
        format=1,
        product_version="0",
        schema=SchemaVersion(1, "0001_baseline"),
        server_major=18,
        client_major=18,
        created_at="2026-01-05T00:00:00Z",
        key="excluded",
        tables={},
        objects={},
        parts=dict(writer.parts),
    )
    writer.finish(manifest)
    return manifest


def test_only_its_owner_reads_the_file_and_tar_lists_it(tmp_path: Path) -> None:
    manifest = example_file(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "b") as archive:
        assert archive.getnames() == [DUMP, MANIFEST]
    assert read_manifest(tmp_path / "b") == manifest
    assert b"".join(read_dump(tmp_path / "b")) == b"dump" * 1000
    assert list(tmp_path.iterdir()) == [tmp_path / "b"]


def test_no_file_is_overwritten_also_if_it_appears_meanwhile(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(BadBackup, match="exists"):
        example_file(tmp_path / "b")
    with pytest.raises(BadBackup, match="exists"):
        write_while_the_name_is_taken(tmp_path / "c")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "b": "mine",
        "c": "mine",
    }


def write_while_the_name_is_taken(path: Path) -> None:
    with new_backup_file(path) as writer:
        write_example(writer)
        path.write_text("mine")


def test_of_two_files_without_hard_links_only_one_gets_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the name free before either has it."""
    checked = threading.Barrier(2, timeout=HANGS_SECONDS)
    refuse_taken = backup_file.refuse_taken

    def check_together(path: Path) -> None:
        refuse_taken(path)
        checked.wait()

    def no_link(_source: Path, _target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(backup_file, "refuse_taken", check_together)
    monkeypatch.setattr(os, "link", no_link)

    def rename(name: str) -> bool:
        (tmp_path / name).write_text(name)
        try:
            backup_file.rename_backup(tmp_path / name, tmp_path / "final")
        except BadBackup:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        done = dict(zip("ab", pool.map(rename, "ab"), strict=True))
    (winner,) = [name for name, has_name in done.items() if has_name]
    (loser,) = {"a", "b"} - {winner}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "final": winner,
        loser: loser,
    }


@pytest.mark.parametrize("keep", [0, 100, 512, 3000, 5000])
def test_a_truncated_file_is_refused(tmp_path: Path, keep: int) -> None:
    example_file(tmp_path / "b")
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes()[:keep])
    with pytest.raises(BadBackup, match="damaged"):
        read_manifest(tmp_path / "b")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    with tarfile.open(tmp_path / "tar", "w") as archive:
        header = tarfile.TarInfo("elsewhere")
        header.size = 3
        archive.addfile(header, io.BytesIO(b"abc"))
    for name in ("text", "tar"):
        with pytest.raises(BadBackup, match="not a backup"):
            read_manifest(tmp_path / name)


def test_a_later_format_is_refused_by_its_number(tmp_path: Path) -> None:
    with new_backup_file(tmp_path / "b") as writer:
        writer.write_part(MANIFEST, b'{"format": 2, "everything": "else"}')
    with pytest.raises(BadBackup, match="format 2"):
        read_manifest(tmp_path / "b")


async def test_a_changed_byte_of_the_dump_is_found_before_anything_is_restored(
    empty_dsn: str, tmp_path: Path
) -> None:
    manifest = example_file(tmp_path / "b")
    data = bytearray((tmp_path / "b").read_bytes())
    data[data.index(b"dumpdump") + 1] ^= 1
    (tmp_path / "b").write_bytes(data)
    with pytest.raises(BadBackup, match="SHA-256"):
        await restore_backup(empty_dsn, tmp_path / "b", manifest, progress=ignore)
