"""The first start: which process creates the administrator, and which one prints the password."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.ports import free_port
from tests.support.worlds.databases import Databases


@pytest.fixture
def empty_installation(databases: Databases, migrated: str) -> Iterator[str]:
    dsn = databases.lend(migrated)
    yield dsn
    databases.give_back(dsn)


def start(process: Daemon, role: str) -> None:
    if role in ("worker", "scheduler"):
        process.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{process.port}"
        process.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
    process.start(role=role)


def lines_of(process: Daemon) -> list[dict[str, Any]]:
    """Fails if a line of the log is not JSON."""
    return [json.loads(line) for line in process.log.read_text().splitlines()]


@pytest.mark.parametrize("role", ["worker", "scheduler"])
def test_only_a_console_process_creates_and_prints_a_password(
    empty_installation: str, role: str
) -> None:
    given: dict[str, Any] = {
        "LEADLINE_DATABASE__DSN": empty_installation,
        "LEADLINE_DATABASE__POOL_SIZE": "6",
        "LEADLINE_LOG__FORMAT": "json",
    }
    # The level hides everything but the message.
    quiet: dict[str, Any] = {"LEADLINE_LOG__LEVEL": "error"}
    with daemon(**given) as first, daemon(**given, **quiet) as api, daemon(**given) as second:
        start(first, role)
        with psycopg.connect(empty_installation) as connection:
            found = connection.execute("select count(*) from users").fetchone()
        assert found == (0,), "no administrator is created with a password that is not shown"
        start(api, "api")
        (message,) = [line for line in lines_of(api) if "password" in line]
        assert (message["url"], message["email"]) == (api.url, "admin@localhost")
        assert message["password"] in message["msg"]
        api.password = message["password"]
        api.sign_in()
        start(second, "api")
        for other in (first, second):
            assert any(line["msg"] == "ready" for line in lines_of(other))
            assert "Sign in as" not in other.log.read_text()
            assert message["password"] not in other.log.read_text()


@pytest.mark.soak
def test_a_worker_creates_the_configured_administrator_silently(
    empty_installation: str,
) -> None:
    with daemon(
        LEADLINE_DATABASE__DSN=empty_installation,
        LEADLINE_LOG__FORMAT="text",
        LEADLINE_SECURITY__ADMIN_EMAIL="mara@example.org",
        LEADLINE_SECURITY__ADMIN_PASSWORD="correct-horse",
    ) as worker:
        start(worker, "worker")
        text = worker.log.read_text()
    with psycopg.connect(empty_installation) as connection:
        assert connection.execute("select email from users").fetchall() == [("mara@example.org",)]
    assert "mara@example.org" not in text
    assert "Leadline is running" not in text
    assert "correct-horse" not in text
