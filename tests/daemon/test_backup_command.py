"""`leadline backup` and `leadline restore` with database.dsn, and what they refuse."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
from click.testing import CliRunner, Result

from leadline.daemon.cli import main
from leadline.storage.engine.keyring import CipherContext, Keyring, key_from_text, new_key_text
from leadline.storage.engine.migrate import migrate

PASSPHRASE = "correct horse battery"


class Installation:
    """An installation on a PostgreSQL of its own, by its DSN, with a key and one secret."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self.key = new_key_text()
        self.file = folder / "a.backup"

    def run(self, *arguments: str, dsn: str = "", key: str | None = None, **more: str) -> Result:
        environment = {
            "LEADLINE_DATABASE__DSN": dsn or self.dsn,
            "LEADLINE_SECURITY__ENCRYPTION_KEY": self.key if key is None else key,
            "LEADLINE_BACKUP_PASSPHRASE": PASSPHRASE,
            "LEADLINE_DATA_DIR": "/nonexistent",
        }
        return CliRunner().invoke(main, list(arguments), env={**environment, **more})

    def back_up(self, *arguments: str) -> None:
        done = self.run("backup", str(self.file), *arguments)
        assert done.exit_code == 0, done.output


@pytest.fixture
def installation(dsn: str, tmp_path: Path) -> Installation:
    made = Installation(dsn, tmp_path)
    with psycopg.connect(dsn) as connection:
        (uid,) = connection.execute("select gen_random_uuid()").fetchone() or ()
        sealed = Keyring(key_from_text(made.key)).seal(
            b"hunter2", CipherContext("settings", "secret_ciphertext", uid)
        )
        connection.execute(
            "insert into settings (name, uid, value, secret_ciphertext, updated_at)"
            " values ('mail', %s, '{}', %s, now())",
            (uid, sealed),
        )
    return made


def changed(path: Path, **fields: Any) -> Path:
    """A copy of a backup whose manifest says something else."""
    copy = path.with_name("changed.backup")
    with tarfile.open(path) as old, tarfile.open(copy, "w") as new:
        for member in old:
            source = old.extractfile(member)
            assert source is not None
            data = source.read()
            if member.name == "manifest.json":
                document = json.loads(data)
                rows = fields.pop("rows", {})
                document["rows"] |= rows
                data = json.dumps(document | fields).encode()
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return copy


def test_a_backup_moves_to_another_server_with_its_key(
    installation: Installation, empty_dsn: str, tmp_path: Path
) -> None:
    installation.back_up()
    key_file = tmp_path / "encryption.key"

    restored = installation.run(
        "restore", str(installation.file), "--key-file", str(key_file), dsn=empty_dsn, key=""
    )

    assert restored.exit_code == 0, restored.output
    assert key_file.read_text().strip() == installation.key
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert f"Set security.encryption_key to the content of {key_file}." in restored.output
    with psycopg.connect(empty_dsn) as connection:
        rows = connection.execute("select name from settings where name = 'mail'").fetchall()
    assert rows == [("mail",)]
    assert trio.run(migrate, empty_dsn) == []


def test_a_restore_with_the_key_in_the_configuration_writes_no_file(
    installation: Installation, empty_dsn: str
) -> None:
    installation.back_up("--without-key")
    none = installation.run("restore", str(installation.file), dsn=empty_dsn, key="")
    assert none.exit_code == 1
    assert "set security.encryption_key to it, or restore without the key" in none.output
    restored = installation.run("restore", str(installation.file), dsn=empty_dsn)
    assert (restored.exit_code, "warning" in restored.output) == (0, False)


def test_what_does_not_fit_is_refused_before_anything_changes(
    installation: Installation, empty_dsn: str, tmp_path: Path
) -> None:
    installation.back_up()
    file = str(installation.file)
    newer = str(changed(installation.file, schema_version=9_999, leadline="9.9"))
    cases = [
        (installation.run("restore", file), "createdb leadline_restored"),
        (installation.run("restore", file, dsn=empty_dsn, key=""), "--key-file FILE"),
        (installation.run("restore", file, dsn=empty_dsn, key=new_key_text()), "is another key"),
        (installation.run("restore", newer, dsn=empty_dsn), "install leadline 9.9 or newer"),
        (installation.run("backup", "--verify", newer), "install leadline 9.9 or newer"),
        (
            installation.run(
                "restore", str(changed(installation.file, server_major=99)), dsn=empty_dsn
            ),
            "restore into PostgreSQL 99 or newer",
        ),
        (installation.run("restore", str(tmp_path), dsn=empty_dsn), "is a directory"),
    ]
    for done, message in cases:
        assert done.exit_code in (1, 2)
        assert message in done.output
    with psycopg.connect(empty_dsn) as connection:
        count = connection.execute(
            "select count(*) from pg_class where relnamespace = 'public'::regnamespace"
        ).fetchone()
    assert count == (0,)


def test_a_verification_names_the_table_that_lacks_rows(installation: Installation) -> None:
    installation.back_up()
    good = installation.run("backup", "--verify", str(installation.file), "--json")
    assert good.exit_code == 0, good.output
    printed = json.loads(good.output)
    assert (printed["verified"], printed["key"]) == (True, "included")
    bad = changed(installation.file, rows={"public.settings": 7, "public.gone": 1})
    done = installation.run("backup", "--verify", str(bad))
    assert done.exit_code == 1
    assert "public.gone has 0 rows instead of 1; public.settings has 1 rows instead of 7" in (
        done.output
    )


def test_a_verification_notices_a_key_that_opens_no_secret(installation: Installation) -> None:
    installation.key = new_key_text()
    installation.back_up()
    done = installation.run("backup", "--verify", str(installation.file))
    assert done.exit_code == 1
    assert "the key of the backup does not open settings.secret_ciphertext of " in done.output


def test_a_damaged_backup_is_neither_verified_nor_restored(
    installation: Installation, empty_dsn: str
) -> None:
    installation.back_up()
    data = bytearray(installation.file.read_bytes())
    data[2_000] ^= 1
    installation.file.write_bytes(data)
    for arguments in (["backup", "--verify"], ["restore"]):
        done = installation.run(*arguments, str(installation.file), dsn=empty_dsn)
        assert done.exit_code == 1
        assert "database.dump is damaged" in done.output


@pytest.mark.parametrize("text", ["short", "x" * 1025])
def test_a_passphrase_has_its_bounds(installation: Installation, text: str) -> None:
    done = installation.run("backup", str(installation.file), LEADLINE_BACKUP_PASSPHRASE=text)
    assert done.exit_code == 1
    assert "LEADLINE_BACKUP_PASSPHRASE: must have 12 characters to 1024 bytes" in done.output
    assert not installation.file.exists()
