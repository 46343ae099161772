"""A start without its database: the process waits, reports that it is not ready, and continues."""

import fcntl
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.processes.daemon_process import Daemon, Refusal, daemon
from tests.support.processes.ports import free_port, refusing_port
from tests.support.run.effort import varied
from tests.support.worlds.databases import Databases

from .conftest import eventually

KEY = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s="


@pytest.fixture
def empty_installation(databases: Databases, migrated: str) -> Iterator[str]:
    dsn = databases.lend(migrated)
    yield dsn
    databases.give_back(dsn)


@contextmanager
def begun(dsn: str, role: str = "all", **environ: Any) -> Iterator[Daemon]:
    with daemon(
        LEADLINE_DATABASE__DSN=dsn,
        LEADLINE_DATABASE__POOL_SIZE="6",
        LEADLINE_SECURITY__ENCRYPTION_KEY=KEY,
        LEADLINE_LOG__FORMAT="json",
        **environ,
    ) as process:
        if role in ("worker", "scheduler"):
            process.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{process.port}"
            process.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
        process.begin(role)
        yield process


def answer_of(process: Daemon, path: str) -> tuple[int, Any]:
    try:
        status, _, body = process.raw("GET", path)
    except Refusal as refusal:
        status, body = refusal.status, refusal.body
    return status, json.loads(body)


def is_waiting(process: Daemon) -> bool:
    with suppress(OSError):
        return answer_of(process, "/readyz") == (
            503,
            {"status": "not_ready", "faults": ["database"]},
        )
    return False


def is_ready(process: Daemon) -> bool:
    # The server that answers during the start closes its connections before the next one listens.
    with suppress(OSError):
        return answer_of(process, "/readyz")[0] == 200
    return False


def exit_code(process: Daemon) -> int:
    assert process.process is not None
    return process.process.wait(30)


def lines(process: Daemon, message: str) -> list[dict[str, Any]]:
    said = [json.loads(line) for line in process.log.read_text().splitlines() if line[:1] == "{"]
    return [line for line in said if line["msg"] == message]


@pytest.mark.parametrize("role", varied(["all", "worker"], ["all", "api", "scheduler", "worker"]))
def test_a_start_waits_for_the_server(empty_installation: str, role: str) -> None:
    """The server appears when the folder of its socket gets the name of the DSN."""
    with daemon() as folder:
        socket_dir = folder.data_dir.parent / "run"
        dsn = make_conninfo(empty_installation, host=str(socket_dir))
        with begun(dsn, role) as process:
            eventually(lambda: is_waiting(process), 20)
            assert answer_of(process, "/healthz") == (200, {"status": "ok", "faults": []})
            for path in ("/metrics", "/api/v1/version", "/sign-in"):
                assert answer_of(process, path) == (503, {"error": "not_ready"})
            real = conninfo_to_dict(empty_installation)["host"]
            socket_dir.symlink_to(str(real))
            eventually(lambda: is_ready(process), 30)
            assert len(lines(process, "waiting for the database")) == 1
            assert "No such file" in lines(process, "waiting for the database")[0]["cause"]
            assert len(lines(process, "database available")) == 1
            assert exit_code_after_stop(process) == 0


def exit_code_after_stop(process: Daemon) -> int:
    assert process.process is not None
    process.process.send_signal(signal.SIGTERM)
    return exit_code(process)


def test_a_start_waits_for_a_server_without_free_connections(empty_installation: str) -> None:
    with psycopg.connect(empty_installation, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute("create role crowded login connection limit 0")
        connection.execute(b"grant all on all tables in schema public to crowded; ")
        connection.execute(f"alter database {name} owner to crowded".encode())
        try:
            with begun(make_conninfo(empty_installation, user="crowded"), "worker") as process:
                eventually(lambda: is_waiting(process), 20)
                (line,) = lines(process, "waiting for the database")
                assert "too many connections for role" in line["cause"]
                connection.execute("alter role crowded superuser")
                eventually(lambda: is_ready(process), 30)
        finally:
            connection.execute(f"alter database {name} owner to leadline".encode())
            connection.execute("drop owned by crowded")
            connection.execute("drop role crowded")


def test_a_start_waits_until_a_standby_accepts_writes(empty_installation: str) -> None:
    with psycopg.connect(empty_installation, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"alter database {name} set default_transaction_read_only = on".encode())
        with begun(empty_installation, "worker") as process:
            eventually(lambda: is_waiting(process), 20)
            (line,) = lines(process, "waiting for the database")
            assert "read-only transaction" in line["cause"]
            connection.execute("set default_transaction_read_only = off")
            connection.execute(
                f"alter database {name} reset default_transaction_read_only".encode()
            )
            eventually(lambda: is_ready(process), 30)


def test_a_signal_ends_the_wait() -> None:
    with refusing_port() as port, begun(f"host=127.0.0.1 port={port} user=x") as process:
        eventually(lambda: is_waiting(process), 20)
        assert exit_code_after_stop(process) == 0
        assert lines(process, "stopping")


def test_permanent_database_errors_end_the_start(empty_installation: str) -> None:
    with psycopg.connect(empty_installation, autocommit=True) as connection:
        connection.execute("create role outsider login")
    try:
        for dsn, says in (
            (make_conninfo(empty_installation, dbname="nowhere"), 'database "nowhere" does not'),
            (make_conninfo(empty_installation, user="nobody-here"), 'role "nobody-here" does not'),
            ("host=127.0.0.1 colour=red", 'database.dsn: invalid connection option "colour"'),
        ):
            with begun(dsn, "worker") as process:
                assert exit_code(process) == 1
                last = process.log.read_text().splitlines()[-1]
                assert last.startswith("leadline: ")
                assert says in last
                assert not lines(process, "waiting for the database")
    finally:
        with psycopg.connect(empty_installation, autocommit=True) as connection:
            connection.execute("drop role outsider")


def test_a_newer_schema_ends_the_start(empty_installation: str) -> None:
    with psycopg.connect(empty_installation, autocommit=True) as connection:
        connection.execute(
            "insert into schema_migrations (version, name, checksum) values (9999, '9999_new', '')"
        )
    with begun(empty_installation) as process:
        assert exit_code(process) == 1
        assert "the database is newer than this leadline" in process.log.read_text()


def notices(listener: socket.socket) -> list[str]:
    found = []
    with suppress(BlockingIOError):
        while True:
            found += listener.recv(4096).decode().splitlines()
    return found


def test_systemd_gets_ready_only_after_the_start(empty_installation: str) -> None:
    with daemon() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        address = folder.data_dir.parent / "notify"
        listener.bind(str(address))
        listener.setblocking(False)
        socket_dir = folder.data_dir.parent / "run"
        dsn = make_conninfo(empty_installation, host=str(socket_dir))
        with begun(dsn, "worker", NOTIFY_SOCKET=str(address)) as process:
            eventually(lambda: is_waiting(process), 20)
            waiting = notices(listener)
            assert "EXTEND_TIMEOUT_USEC=330000000" in waiting
            assert any(line.startswith("STATUS=waiting for the database: ") for line in waiting)
            assert "READY=1" not in waiting
            real = conninfo_to_dict(empty_installation)["host"]
            socket_dir.symlink_to(str(real))
            eventually(lambda: "READY=1" in notices(listener), 30)
            assert answer_of(process, "/readyz")[0] == 200


@pytest.mark.soak
def test_a_wrong_password_ends_the_start() -> None:
    """Another daemon runs the server, since the server of the tests asks for no password."""
    with daemon() as other:
        other.start()
        rules = other.data_dir / "pg_hba.conf"
        rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(other.dsn, autocommit=True) as connection:
            connection.execute("create role guarded login password 'right'")
            connection.execute("select pg_reload_conf()")
        dsn = make_conninfo(other.dsn, user="guarded", password="wrong-horse")
        with begun(dsn, "worker") as process:
            assert exit_code(process) == 1
            text = process.log.read_text()
        assert 'password authentication failed for user "guarded"' in text
        assert "wrong-horse" not in text


@pytest.mark.soak
def test_a_start_waits_for_a_command_on_the_embedded_database() -> None:
    """The test takes the lock of a command, such as a backup of a stopped installation."""
    with daemon(LEADLINE_LOG__FORMAT="json") as process:
        process.data_dir.mkdir(parents=True, exist_ok=True)
        with (process.data_dir / "postgres.lock").open("ab") as command:
            fcntl.flock(command, fcntl.LOCK_EX)
            process.begin("all")
            eventually(lambda: is_waiting(process), 20)
            assert exit_code_after_stop(process) == 0, "a waiting process can be stopped"
            process.begin("all")
            eventually(lambda: is_waiting(process), 20)
        eventually(lambda: is_ready(process), 60)
        assert len(lines(process, "waiting for the database")) == 2
        assert len(lines(process, "database available")) == 1
