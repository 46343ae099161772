"""Runs the commands of "Backup and restore" in docs/how-to/back-up.md as an operator does."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from leadline.storage.engine.embedded_layout import find_binaries
from tests.support.processes.daemon_process import LEADLINE, Daemon, daemon
from tests.support.processes.documented_commands import blocks
from tests.support.worlds.databases import Databases

from .conftest import eventually, metric, project_of, status

SECTION = "## Backup and restore"
AGE = "leadline_backup_verified_age_seconds"
HOST = "-h db.example.org -U leadline leadline"


def run(block: str, folder: Path, **environment: str) -> str:
    """Runs a block as one script that ends at the first failure; returns its output."""
    path = [str(Path(LEADLINE).parent), str(find_binaries()), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block],
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join(path), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answers(leadline: Daemon, project: str) -> dict[str, Any]:
    """Returns the answers of the API. Push URLs are made with encrypted tokens."""
    return {
        "organizations": leadline.api("GET", "/organizations"),
        "monitors": leadline.api("GET", f"/projects/{project}/monitors"),
        "incidents": leadline.api("GET", f"/projects/{project}/incidents"),
        "secrets": leadline.api("GET", f"/projects/{project}/secrets"),
        "me": leadline.api("GET", "/me"),
    }


@pytest.fixture
def lived_in() -> Iterator[Daemon]:
    """A daemon with a push monitor that is up, a secret, and an incident."""
    with daemon() as leadline:
        leadline.start()
        leadline.sign_in()
        project = project_of(leadline)
        leadline.api("POST", f"/projects/{project}/secrets", {"name": "shop", "value": "hunter2"})
        body = {"name": "Job", "type": "push", "interval_seconds": 3600}
        made = leadline.api("POST", f"/projects/{project}/monitors", body)
        push(leadline, made)
        eventually(lambda: status(leadline, made["id"]) == "up", 8)
        incident = {"title": "Slow", "impact": "minor"}
        leadline.api("POST", f"/projects/{project}/incidents", incident)
        yield leadline


def push(leadline: Daemon, monitor: dict[str, str]) -> None:
    status, _, _ = leadline.raw("POST", monitor["push_url"].removeprefix(leadline.url))
    assert status == 200


def test_a_destroyed_installation_is_restored_by_the_documented_commands(
    lived_in: Daemon,
) -> None:
    leadline, folder = lived_in, lived_in.data_dir.parent
    project = project_of(leadline)
    back_up, restore, _ = blocks("how-to/back-up.md", SECTION)
    before = answers(leadline, project)
    printed = run(back_up, folder, LEADLINE_DATA_DIR=str(leadline.data_dir))
    assert "verified: leadline.backup" in printed

    leadline.api("POST", f"/projects/{project}/monitors", {"name": "Later", "type": "push"})
    leadline.kill()
    shutil.rmtree(leadline.data_dir / "postgres" / "base")
    run(restore, folder, LEADLINE_DATA_DIR=str(leadline.data_dir))
    leadline.start()

    assert answers(leadline, project) == before
    (job,) = before["monitors"]
    push(leadline, job)
    beats = leadline.api("GET", f"/monitors/{job['id']}/heartbeats")
    assert len(beats) == 2, "the metric has the backup before the restore and the one after it"
    leadline.api("POST", f"/projects/{project}/monitors", {"name": "New", "type": "push"})


@pytest.mark.soak
def test_the_embedded_store_moves_to_a_server_by_the_documented_commands(
    lived_in: Daemon, server_dsn: str, databases: Databases, empty_dsn: str
) -> None:
    leadline, folder = lived_in, lived_in.data_dir.parent
    project = project_of(leadline)
    back_up, _, move = blocks("how-to/back-up.md", SECTION)
    before = answers(leadline, project)
    run(back_up, folder, LEADLINE_DATA_DIR=str(leadline.data_dir))
    leadline.stop()

    assert HOST in move
    server = conninfo_to_dict(server_dsn)
    there = f"-h {server['host']} -U {server['user']} {folder.name}"
    dsn = f"host={server['host']} user={server['user']} dbname={folder.name}"
    elsewhere = folder / "elsewhere"
    run(
        move.replace(HOST, there),
        folder,
        LEADLINE_DATA_DIR=str(elsewhere),
        LEADLINE_DATABASE__DSN=dsn,
    )
    try:
        leadline.environment |= {
            "LEADLINE_DATA_DIR": str(elsewhere),
            "LEADLINE_DATABASE__DSN": dsn,
            "LEADLINE_SECURITY__ENCRYPTION_KEY": (folder / "encryption.key").read_text().strip(),
        }
        leadline.start()
        assert answers(leadline, project) == before
        leadline.stop()
    finally:
        databases.drop(dsn)


@pytest.mark.soak
def test_a_restore_under_the_running_daemon_is_refused_and_changes_nothing(
    lived_in: Daemon,
) -> None:
    """The documented restore once ran under the daemon, and destroyed the installation."""
    leadline, folder = lived_in, lived_in.data_dir.parent
    project = project_of(leadline)
    before = answers(leadline, project)
    given = {"LEADLINE_DATA_DIR": str(leadline.data_dir)}
    run("leadline backup b --without-key", folder, **given)
    for target in (given, {"LEADLINE_DATABASE__DSN": leadline.dsn}):
        printed = run("! leadline restore b --without-key 2>&1", folder, **target)
        assert "then repeat" in printed
    assert answers(leadline, project) == before


@pytest.mark.soak
def test_a_store_that_is_not_empty_is_refused_with_the_command_that_moves_it(
    lived_in: Daemon,
) -> None:
    leadline, folder = lived_in, lived_in.data_dir.parent
    project = project_of(leadline)
    before = answers(leadline, project)
    given = {"LEADLINE_DATA_DIR": str(leadline.data_dir)}
    run("leadline backup b --without-key", folder, **given)
    leadline.stop()
    printed = run("! leadline restore b --without-key 2>&1", folder, **given)
    commands = re.findall(r"`([^`]+)`", printed)
    assert [command.split()[0] for command in commands] == ["mv", "leadline"]
    leadline.start()
    assert answers(leadline, project) == before
    leadline.stop()
    # The key of this installation is in the directory that is moved away.
    move, again = commands
    run(f"{move}; {again} --without-key", folder, **given)


@pytest.mark.soak
def test_a_backup_is_made_of_a_store_that_no_daemon_runs_on(lived_in: Daemon) -> None:
    leadline, folder = lived_in, lived_in.data_dir.parent
    leadline.stop()
    given = {"LEADLINE_DATA_DIR": str(leadline.data_dir)}
    run("leadline backup b --without-key; leadline backup --verify b", folder, **given)
    printed = run(
        "! LEADLINE_DATA_DIR=$PWD/none leadline backup c --without-key 2>&1", folder, **given
    )
    assert "contains no store" in printed
    assert not (folder / "none").exists()


@pytest.mark.soak
def test_the_age_of_the_newest_verified_backup_is_a_metric(lived_in: Daemon) -> None:
    leadline, folder = lived_in, lived_in.data_dir.parent
    assert AGE not in metrics(leadline), "no backup exists yet"
    given = {"LEADLINE_DATA_DIR": str(leadline.data_dir), "LEADLINE_BACKUP__DIR": str(folder / "b")}
    (folder / "b").mkdir()
    run("leadline backup --schedule --without-key", folder, **given)
    leadline.stop()
    leadline.start()
    eventually(lambda: AGE in metrics(leadline))
    first = metric(leadline, AGE)
    assert first > 0
    # Between two passes of the loop: the age is computed at the scrape.
    assert metric(leadline, AGE) > first


def metrics(leadline: Daemon) -> str:
    return leadline.raw("GET", "/metrics")[2].decode()
