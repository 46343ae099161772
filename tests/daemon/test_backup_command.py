"""`leadline backup` and `leadline restore`: the key, the schedule, and the refusals."""

import errno
import fcntl
import json
import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import trio
from click.testing import CliRunner, Result

from leadline.daemon.cli import main, scheduled_backup
from leadline.daemon.cli.backup_options import PASSPHRASE_VARIABLE
from leadline.daemon.cli.backup_steps import verify_file
from leadline.daemon.config.load import BadConfig, load
from leadline.storage.engine.backup_file import Manifest
from leadline.storage.engine.client_programs import ClientPrograms
from leadline.storage.engine.embedded_postgres import CannotRun, running
from leadline.storage.engine.keyring import CipherContext, Keyring, key_from_text, new_key_text
from leadline.storage.engine.migrate import migrate
from leadline.storage.monitors.transactions.edit_secrets import create_secret
from tests.support.run.effort import varied
from tests.support.worlds.world import World, small_world

pytestmark = [pytest.mark.usefixtures("cheap_backup_keys", "cheap_initdb")]
KEY, OTHER = new_key_text(), new_key_text()
PASSPHRASE = {PASSPHRASE_VARIABLE: "correct horse battery"}


@pytest.fixture
def filled(dsn: str) -> str:
    """A database with one secret, encrypted with KEY."""
    trio.run(_found, dsn)
    return dsn


async def _found(dsn: str) -> None:
    async with small_world(dsn) as world:
        await _fill(world)


async def _fill(world: World) -> None:
    async with world.pool.transaction("create_secret") as tx:
        ring = Keyring(key_from_text(KEY))
        await create_secret(tx, world.editor, world.project_uid, "s", "hunter2", ring)


def call(tmp_path: Path, dsn: str, key: str, *words: str, **environment: str) -> Result:
    """Runs a command with this database and key."""
    file = tmp_path / "leadline.toml"
    file.write_text(f'[database]\ndsn = "{dsn}"\n[security]\nencryption_key = "{key}"\n')
    arguments = [words[0], "--config", str(file), *words[1:]]
    given = {PASSPHRASE_VARIABLE: None, "LEADLINE_DATA_DIR": str(tmp_path / "data"), **environment}
    return CliRunner().invoke(main, arguments, env=given)


def secret(dsn: str, key: str) -> bytes:
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select uid, value_ciphertext from project_secrets").fetchone()
    assert found is not None
    place = CipherContext("project_secrets", "value_ciphertext", found[0])
    return Keyring(key_from_text(key)).open(bytes(found[1]), place)


def test_the_key_of_a_backup_opens_the_secrets_of_its_restore(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    file, key_file = str(tmp_path / "b"), tmp_path / "key"
    done = call(tmp_path, filled, KEY, "backup", file, "--json", **PASSPHRASE)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["key"] == "included"
    done = call(tmp_path, empty_dsn, "", "restore", file, **PASSPHRASE)
    assert (done.exit_code, "--key-file" in done.output) == (1, True)
    done = call(tmp_path, empty_dsn, "", "restore", file, "--key-file", str(key_file), **PASSPHRASE)
    assert done.exit_code == 0, done.output
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert secret(empty_dsn, key_file.read_text().strip()) == b"hunter2"


def test_a_restore_with_the_configured_key_writes_no_key(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    file = str(tmp_path / "b")
    assert call(tmp_path, filled, KEY, "backup", file, **PASSPHRASE).exit_code == 0
    done = call(tmp_path, empty_dsn, OTHER, "restore", file, **PASSPHRASE)
    assert (done.exit_code, "is not the configured one" in done.output) == (1, True)
    done = call(tmp_path, empty_dsn, KEY, "restore", file, **PASSPHRASE)
    assert (done.exit_code, "wrote" in done.output) == (0, False)
    assert secret(empty_dsn, KEY) == b"hunter2"


def test_a_backup_without_the_key_warns_and_its_restore_asks_for_the_key(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    file = str(tmp_path / "b")
    done = call(tmp_path, filled, KEY, "backup", file, "--without-key")
    assert (done.exit_code, "warning" in done.output) == (0, True)
    assert KEY.encode() not in (tmp_path / "b").read_bytes()
    done = call(tmp_path, empty_dsn, "", "restore", file)
    assert (done.exit_code, "security.encryption_key" in done.output) == (1, True)
    assert call(tmp_path, empty_dsn, KEY, "restore", file).exit_code == 0


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "--without-key"),
        ({PASSPHRASE_VARIABLE: "short"}, "12 to 1024 characters"),
    ],
)
def test_a_passphrase_that_is_missing_or_short_is_refused_before_a_file_exists(
    tmp_path: Path, filled: str, environment: dict[str, str], words: str
) -> None:
    done = call(tmp_path, filled, KEY, "backup", str(tmp_path / "b"), **environment)
    assert (done.exit_code, words in done.output) == (1, True)
    assert not (tmp_path / "b").exists()


def test_a_passphrase_file_is_read_without_its_line_end(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    (tmp_path / "passphrase").write_text(PASSPHRASE[PASSPHRASE_VARIABLE] + "\n")
    given = ("--passphrase-file", str(tmp_path / "passphrase"))
    done = call(tmp_path, filled, KEY, "backup", str(tmp_path / "b"), *given)
    assert done.exit_code == 0, done.output
    done = call(tmp_path, empty_dsn, KEY, "restore", str(tmp_path / "b"), **PASSPHRASE)
    assert done.exit_code == 0, done.output


def test_a_passphrase_that_is_not_utf_8_is_one_line(tmp_path: Path, filled: str) -> None:
    (tmp_path / "passphrase").write_bytes(bytes(range(128, 160)))
    given = ("--passphrase-file", str(tmp_path / "passphrase"))
    done = call(tmp_path, filled, KEY, "backup", str(tmp_path / "b"), *given)
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "must be text in UTF-8" in done.output
    done = call(
        tmp_path, filled, KEY, "backup", str(tmp_path / "b"), **{PASSPHRASE_VARIABLE: "\udc80" * 20}
    )
    assert (done.exit_code, "must be text in UTF-8" in done.output) == (1, True)


def test_a_restore_that_failed_can_be_repeated(
    tmp_path: Path, filled: str, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has written the key, which the second restore accepts; another key it does not replace."""
    file, key_file = tmp_path / "b", tmp_path / "key"
    assert call(tmp_path, filled, KEY, "backup", str(file), **PASSPHRASE).exit_code == 0
    words = ("restore", str(file), "--key-file", str(key_file))
    with monkeypatch.context() as patch:
        patch.setattr(ClientPrograms, "psql", "/bin/false")
        done = call(tmp_path, empty_dsn, "", *words, **PASSPHRASE)
    assert (done.exit_code, key_file.exists()) == (1, True), done.output
    ours = key_file.read_text()
    key_file.write_text(OTHER)
    done = call(tmp_path, empty_dsn, "", *words, **PASSPHRASE)
    assert (done.exit_code, "contains other keys" in done.output) == (1, True)
    assert key_file.read_text() == OTHER
    key_file.write_text(ours)
    done = call(tmp_path, empty_dsn, "", *words, **PASSPHRASE)
    assert done.exit_code == 0, done.output
    assert secret(empty_dsn, KEY) == b"hunter2"


def test_previous_keys_are_written_without_a_data_directory(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    previous = {"LEADLINE_SECURITY__PREVIOUS_KEYS": f'["{OTHER}"]'}
    done = call(tmp_path, filled, KEY, "backup", str(tmp_path / "b"), **PASSPHRASE, **previous)
    assert done.exit_code == 0, done.output
    done = call(tmp_path, empty_dsn, KEY, "restore", str(tmp_path / "b"), **PASSPHRASE)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "data" / "previous.keys").read_text() == OTHER + "\n"


def test_a_wrong_passphrase_and_a_missing_file_are_one_line(
    tmp_path: Path, filled: str, empty_dsn: str
) -> None:
    assert call(tmp_path, filled, KEY, "backup", str(tmp_path / "b"), **PASSPHRASE).exit_code == 0
    wrong = {PASSPHRASE_VARIABLE: "another passphrase"}
    for name, environment in (("b", wrong), ("c", PASSPHRASE)):
        done = call(tmp_path, empty_dsn, KEY, "restore", str(tmp_path / name), **environment)
        assert (done.exit_code, done.output.count("\n")) == (1, 1), done.output


def test_a_database_that_is_not_empty_is_refused_with_the_way_on(
    tmp_path: Path, filled: str
) -> None:
    file = str(tmp_path / "b")
    assert call(tmp_path, filled, KEY, "backup", file, **PASSPHRASE).exit_code == 0
    done = call(tmp_path, filled, KEY, "restore", file, **PASSPHRASE)
    assert done.exit_code == 1
    assert "createdb -h " in done.output
    assert f"`leadline restore {file}`" in done.output


def test_a_database_behind_a_pooler_is_reached_directly(tmp_path: Path, filled: str) -> None:
    """An exported snapshot is of one session, which a pooler does not keep."""
    file = tmp_path / "leadline.toml"
    file.write_text(
        f'[database]\ndsn = "host=/nowhere dbname=x"\nlisten_dsn = "{filled}"\n'
        f'[security]\nencryption_key = "{KEY}"\n'
    )
    assert tomllib.loads(file.read_text())
    done = CliRunner().invoke(
        main, ["backup", "--config", str(file), str(tmp_path / "b")], env=PASSPHRASE
    )
    assert done.exit_code == 0, done.output


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory for scheduled backups that other users reach, as PostgreSQL is one."""
    path = Path(tempfile.mkdtemp(prefix="leadline-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def schedule(tmp_path: Path, dsn: str, folder: Path, keep: int = 14, *words: str) -> Result:
    (tmp_path / "passphrase").write_text(PASSPHRASE[PASSPHRASE_VARIABLE])
    given = {
        "LEADLINE_BACKUP__DIR": str(folder),
        "LEADLINE_BACKUP__KEEP": str(keep),
        "LEADLINE_BACKUP__PASSPHRASE_FILE": str(tmp_path / "passphrase"),
    }
    return call(tmp_path, dsn, KEY, "backup", "--schedule", *words, **given)


def recorded(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [file for (file,) in connection.execute("select file from backups order by id")]


def named(folder: Path, day: int) -> Path:
    return folder / f"leadline-202401{day:02}T000000Z.backup"


def test_a_scheduled_backup_is_verified_recorded_and_restorable(
    tmp_path: Path, filled: str, empty_dsn: str, folder: Path
) -> None:
    done = schedule(tmp_path, filled, folder, 14, "--json")
    assert done.exit_code == 0, done.output
    (file,) = folder.iterdir()
    assert json.loads(done.output)["file"] == str(file)
    assert json.loads(done.output)["verified"]
    assert recorded(filled) == [file.name]
    assert call(tmp_path, empty_dsn, KEY, "restore", str(file), **PASSPHRASE).exit_code == 0
    assert secret(empty_dsn, KEY) == b"hunter2"


def test_the_newest_backups_are_kept_and_only_older_ones_deleted(
    tmp_path: Path, filled: str, folder: Path
) -> None:
    for day in (1, 2, 3):
        named(folder, day).write_text("old")
    (folder / "mine.backup").write_text("by hand")
    assert schedule(tmp_path, filled, folder, keep=2).exit_code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == [named(folder, 3).name, recorded(filled)[0], "mine.backup"]


def test_a_backup_that_fails_its_verification_is_not_recorded(
    tmp_path: Path, filled: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk changes a byte between the writing and the verification."""

    async def damage_and_verify(path: Path, scratch: Path | None = None) -> Manifest:
        damage(path)
        return await verify_file(path, scratch)

    monkeypatch.setattr("leadline.daemon.cli.scheduled_backup.verify_file", damage_and_verify)
    for day in (1, 2):
        named(folder, day).write_text("old")
    (folder / (named(folder, 1).name + ".failed")).write_text("an earlier failure")
    done = schedule(tmp_path, filled, folder, keep=1)
    assert (done.exit_code, "SHA-256" in done.output) == (1, True)
    assert recorded(filled) == []
    names = sorted(path.name for path in folder.iterdir())
    assert names[:2] == [named(folder, 1).name, named(folder, 2).name]
    assert [name.endswith(".backup.failed") for name in names[2:]] == [True]


@pytest.mark.parametrize("error", [CannotRun("no server"), OSError(28, "No space left on device")])
def test_a_backup_that_could_not_be_verified_does_not_count(
    tmp_path: Path, filled: str, folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The file has another name than a verified one, and the next run deletes it."""

    async def cannot(path: Path, scratch: Path | None = None) -> Manifest:
        raise error

    for day in (1, 2):
        named(folder, day).write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr("leadline.daemon.cli.scheduled_backup.verify_file", cannot)
        assert schedule(tmp_path, filled, folder, keep=2).exit_code == 1
    old, second, *others = sorted(path.name for path in folder.iterdir())
    assert [old, second] == [named(folder, 1).name, named(folder, 2).name]
    assert [name.endswith(".backup.unverified") for name in others] == [True]
    assert recorded(filled) == []
    assert schedule(tmp_path, filled, folder, keep=2).exit_code == 0
    assert sorted(path.name for path in folder.iterdir()) == [second, *recorded(filled)]


def test_a_backup_needs_a_server_for_its_verification(
    tmp_path: Path, filled: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = schedule(tmp_path, filled, folder)
    assert (done.exit_code, "no embedded PostgreSQL is installed" in done.output) == (1, True)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("keep", varied([1], [1, 2]))
def test_names_of_a_clock_that_was_ahead_are_deleted_first(
    tmp_path: Path, filled: str, folder: Path, keep: int
) -> None:
    named(folder, 1).write_text("old")
    (folder / "leadline-20990101T000000Z.backup").write_text("made while the clock was ahead")
    assert schedule(tmp_path, filled, folder, keep=keep).exit_code == 0
    kept = [named(folder, 1).name, *recorded(filled)][-keep:]
    assert sorted(path.name for path in folder.iterdir()) == kept


def damage(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(2048)
        byte = file.read(1)
        file.seek(2048)
        file.write(bytes([byte[0] ^ 1]))


def test_remains_of_a_killed_run_are_deleted(tmp_path: Path, filled: str, folder: Path) -> None:
    named(folder, 1).with_name(named(folder, 1).name + ".partial-4711").write_text("half")
    named(folder, 2).with_name(named(folder, 2).name + ".unverified").write_text("killed")
    named(folder, 3).with_name(named(folder, 3).name + ".unverified.partial-1").write_text("half")
    named(folder, 4).touch()
    (folder / "leadline-verify-x").mkdir()
    (folder / "leadline-verify-x" / "data").write_text("a server was here")
    assert schedule(tmp_path, filled, folder).exit_code == 0
    assert [path.name for path in folder.iterdir()] == recorded(filled)


def test_two_scheduled_backups_do_not_run_together(
    tmp_path: Path, filled: str, folder: Path
) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        done = schedule(tmp_path, filled, folder)
    finally:
        os.close(descriptor)
    assert (done.exit_code, "another scheduled backup" in done.output) == (1, True)
    assert list(folder.iterdir()) == []


def test_another_blocking_error_is_not_a_second_backup(
    tmp_path: Path, filled: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: Path) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(scheduled_backup, "refuse_taken", write)
    done = schedule(tmp_path, filled, folder)
    assert done.exit_code == 1
    told = f"{done.output}{done.exception}"
    assert ("another scheduled backup" in told, "temporarily unavailable" in told) == (False, True)


def test_the_schedule_needs_its_directory(tmp_path: Path, filled: str) -> None:
    done = call(tmp_path, filled, KEY, "backup", "--schedule", **PASSPHRASE)
    assert (done.exit_code, "backup.dir is not set" in done.output) == (1, True)
    done = schedule(tmp_path, filled, tmp_path / "none")
    assert (done.exit_code, "does not exist" in done.output) == (1, True)


@pytest.mark.soak
def test_a_daemon_can_start_during_the_verification(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a daemon the backup runs the embedded server, but only for the dump."""
    data = folder / "data"
    used: list[Path] = []

    async def make() -> None:
        async with running(data, durable=False) as server:
            await migrate(server.dsn)

    async def verify_beside_a_daemon(path: Path, scratch: Path | None = None) -> Manifest:
        async with running(data, durable=False):
            used.append(path)
        return await verify_file(path, scratch)

    trio.run(make)
    (folder / "backups").mkdir()
    monkeypatch.setattr("leadline.daemon.cli.scheduled_backup.verify_file", verify_beside_a_daemon)
    environment = {"LEADLINE_DATA_DIR": str(data), "LEADLINE_BACKUP__DIR": str(folder / "backups")}
    (tmp_path / "leadline.toml").write_text("")
    done = CliRunner().invoke(
        main,
        ["backup", "--config", str(tmp_path / "leadline.toml"), "--schedule"],
        env=environment,
    )
    assert done.exit_code == 0, done.output
    assert len(used) == 1


@pytest.mark.parametrize("words", [[], ["--schedule", "b"], ["--schedule", "--verify"]])
def test_a_wrong_combination_ends_with_2(words: list[str]) -> None:
    assert CliRunner().invoke(main, ["backup", *words]).exit_code == 2


@pytest.mark.parametrize(
    ("key", "value"), [("KEEP", "0"), ("KEEP", "1001"), ("DIR", "b"), ("PASSPHRASE_FILE", "p")]
)
def test_values_out_of_bounds_are_named(tmp_path: Path, key: str, value: str) -> None:
    (tmp_path / "leadline.toml").write_text("")
    with pytest.raises(BadConfig, match=f"backup.{key.lower()}"):
        load(tmp_path / "leadline.toml", {f"LEADLINE_BACKUP__{key}": value})
