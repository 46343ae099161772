"""The command line: output and exit codes."""

import subprocess
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from leadline.daemon.cli import COMMANDS, main
from tests.support.processes.daemon_process import LEADLINE
from tests.support.processes.ports import refusing_port


def test_every_command_has_help_with_its_purpose() -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(main, [name, "--help"])
        assert done.exit_code == 0, done.output
        assert len(done.output) > 80


def test_the_version_is_the_version_of_the_package() -> None:
    assert CliRunner().invoke(main, ["version"]).output.strip() == "0.3.8"


def test_faults_of_the_configuration_end_with_2_before_anything_is_done(tmp_path: Path) -> None:
    file = tmp_path / "leadline.toml"
    file.write_text("nope = 1\n[server]\nlitsen = 2\n")
    for command in ("check-config", "run", "migrate"):
        done = CliRunner().invoke(main, [command, "--config", str(file)])
        assert done.exit_code == 2
        assert done.output.count("leadline: ") == 2


@pytest.mark.parametrize("arguments", [["run", "--role", "king"], ["nonsense"], ["run", "--what"]])
def test_a_wrong_call_ends_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(main, arguments).exit_code == 2


@pytest.mark.parametrize("role", ["api", "scheduler", "worker"])
def test_a_role_that_shares_a_database_names_the_missing_key(tmp_path: Path, role: str) -> None:
    given = {"LEADLINE_DATA_DIR": str(tmp_path / "data")}
    for command in ("run", "check-config"):
        done = CliRunner().invoke(main, [command, "--role", role], env=given)
        assert done.exit_code == 2
        assert done.output.startswith("leadline: database.dsn: is missing, and role " + role)
        assert "LEADLINE_DATABASE__DSN" in done.output
    assert list(tmp_path.iterdir()) == [], "no cluster is made"


def test_check_config_takes_what_the_role_needs() -> None:
    def check(role: str, **environ: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["check-config", "--role", role], env=environ)
        return done.exit_code, done.output

    dsn = {"LEADLINE_DATABASE__DSN": "host=db.example.org"}
    assert check("worker", **dsn) == (0, "The configuration is valid.\n")
    assert check("all")[0] == 0
    code, output = check("agent")
    assert (code, output.count("leadline: pull.")) == (2, 2)


@pytest.mark.parametrize("command", [["run"], ["run", "--role", "api"], ["migrate"]])
def test_a_database_from_before_the_baseline_ends_with_1(
    empty_dsn: str, tmp_path: Path, command: list[str]
) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(
            "create table schema_migrations (version integer, name text, checksum text)"
        )
        connection.execute("insert into schema_migrations values (1, '0001_accounts', '')")
    given = {
        "LEADLINE_DATABASE__DSN": empty_dsn,
        "LEADLINE_DATA_DIR": str(tmp_path),
        "LEADLINE_SERVER__LISTEN": "127.0.0.1:0",
    }
    done = CliRunner().invoke(main, command, env=given)
    assert done.exit_code == 1
    assert done.output.startswith("leadline: the schema of this database predates the first rel")
    assert done.output.count("\n") == 1


@pytest.mark.parametrize(
    "command", [["migrate"], ["keys", "rotate"], ["admin", "create-user", "a@b.c"]]
)
def test_a_command_does_not_wait_for_the_database(command: list[str], tmp_path: Path) -> None:
    with refusing_port() as port:
        given = {
            "LEADLINE_DATABASE__DSN": f"host=127.0.0.1 port={port} user=x",
            "LEADLINE_DATA_DIR": str(tmp_path),
        }
        done = CliRunner().invoke(main, command, env=given)
    assert done.exit_code == 1
    assert done.output.startswith("leadline: cannot connect: ")
    assert "refused" in done.output.splitlines()[0]


def test_an_import_is_not_paid_before_a_command_is_called() -> None:
    code = "import sys, leadline.daemon.cli; print(sorted(m for m in sys.modules if m in"
    code += " ('psycopg', 'quart', 'hypercorn', 'trio')))"
    python = str(Path(LEADLINE).with_name("python"))
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
