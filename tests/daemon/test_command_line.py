"""The command line: what it says, and how it ends."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from leadline.daemon.cli import COMMANDS, main
from tests.support.processes.daemon_process import LEADLINE


def test_every_command_has_help_with_what_it_is_for() -> None:
    for name in COMMANDS:
        done = CliRunner().invoke(main, [name, "--help"])
        assert done.exit_code == 0, done.output
        assert len(done.output) > 80


def test_the_version_is_that_of_the_package() -> None:
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


def test_an_import_is_not_paid_before_a_command_is_called() -> None:
    code = "import sys, leadline.daemon.cli; print(sorted(m for m in sys.modules if m in"
    code += " ('psycopg', 'quart', 'hypercorn', 'trio')))"
    python = str(Path(LEADLINE).with_name("python"))
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
