"""PostgreSQL checks against a local server with TLS and passwords."""

import os
import secrets
import shutil
import subprocess
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import pbkdf2_hmac, sha256
from hmac import digest
from pathlib import Path

import psycopg
import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, listens, open_folder, running, write_certificate
from tests.support.peers.servers import HANGS_SECONDS, Prober
from tests.support.processes.ports import free_port

PASSWORD = "canary-ü-" + secrets.token_hex(8)
ROOT = os.geteuid() == 0
# PostgreSQL refuses to run as root.
USER = "nobody"
HBA = """
local all all trust
host all trusted 127.0.0.1/32 trust
host all old 127.0.0.1/32 md5
host all clear 127.0.0.1/32 password
hostssl all sealed 127.0.0.1/32 scram-sha-256
hostnossl all sealed 127.0.0.1/32 reject
host all +watchers 127.0.0.1/32 scram-sha-256
"""


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


def verifier(password: str, iterations: int) -> str:
    """Returns the stored verifier of a password with the given iterations."""
    salt = secrets.token_bytes(16)
    salted = pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = sha256(digest(salted, b"Client Key", "sha256")).digest()
    server = digest(salted, b"Server Key", "sha256")
    parts = [b64encode(part).decode() for part in (salt, stored, server)]
    return "SCRAM-SHA-256${}:{}${}:{}".format(iterations, *parts)


@dataclass(frozen=True)
class Postgres:
    port: int
    folder: Path

    @property
    def target(self) -> str:
        return f"{HOST}:{self.port}"

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(
            host=str(self.folder), port=self.port, user="root", dbname="shop", autocommit=True
        ) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def present(self, chain: Path, key: Path) -> None:
        """Enables TLS with this certificate, and waits until new connections use it."""
        if ROOT:
            shutil.chown(key, USER)
        for name, value in (("ssl_cert_file", chain), ("ssl_key_file", key), ("ssl", "on")):
            self.ask(f"alter system set {name} = '{value}'")
        self.ask("select pg_reload_conf()")
        # A connection that has the new settings also has the new certificate.
        while self.ask("show ssl_cert_file") != [(str(chain),)]:
            time.sleep(0.01)


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else Path("/usr/bin")


@contextmanager
def postgres(
    folder: Path, chain: Path | None = None, key: Path | None = None
) -> Iterator[Postgres]:
    """A server with a new cluster; other users can access `folder`, because the server does not run
    as root.
    """
    cluster, port = folder / "cluster", free_port()
    if ROOT:
        for path in (folder, key):
            if path is not None:
                shutil.chown(path, USER)
    subprocess.run(
        [
            programs() / "initdb",
            "-D",
            cluster,
            "-U",
            "root",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        ],
        check=True,
        capture_output=True,
        user=USER if ROOT else None,
        cwd="/",
    )
    (cluster / "pg_hba.conf").write_text(HBA)
    lines = [
        *(
            f"port = {port}",
            f"listen_addresses = '{HOST}'",
            f"unix_socket_directories = '{folder}'",
        ),
        *("fsync = off", "max_connections = 30", "log_min_messages = log"),
    ]
    if chain is not None:
        lines += ["ssl = on", f"ssl_cert_file = '{chain}'", f"ssl_key_file = '{key}'"]
    with (cluster / "postgresql.conf").open("a") as config:
        config.write("\n".join(lines) + "\n")

    def ready() -> bool:
        try:
            psycopg.connect(host=str(folder), port=port, user="root", dbname="postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    command = [str(programs() / "postgres"), "-D", str(cluster)]
    with running(command, folder / "log", ready, user=USER if ROOT else None, cwd="/") as process:
        _fill(folder, port)
        yield Postgres(port, folder)
        process.send_signal(2)


def _fill(folder: Path, port: int) -> None:
    with psycopg.connect(
        host=str(folder), port=port, user="root", dbname="postgres", autocommit=True
    ) as connection:
        for statement in (
            "create database shop",
            "create role watchers",
            "create role trusted login",
            f"create role watcher login password '{PASSWORD}' in role watchers",
            f"create role slow login password '{verifier('slow', 100_000)}' in role watchers",
            f"create role never login password '{verifier('never', 1_000_001)}' in role watchers",
            f"create role sealed login password '{PASSWORD}' in role watchers",
            f"create role clear login password '{PASSWORD}'",
            "set password_encryption = 'md5'",
            f"create role old login password '{PASSWORD}'",
        ):
            connection.execute(statement)
    with psycopg.connect(
        host=str(folder), port=port, user="root", dbname="shop", autocommit=True
    ) as connection:
        connection.execute("create table orders (id int primary key)")
        connection.execute("grant all on orders to watcher")
        connection.execute("create table hidden (id int)")


@pytest.fixture(scope="module")
def server(authority: trustme.CA) -> Iterator[Postgres]:
    with open_folder() as folder:
        chain, key = write_certificate(authority, folder, HOST)
        with postgres(folder, chain, key) as server:
            yield server


WATCHER = {"username": "watcher", "password": PASSWORD, "database": "shop"}


@pytest.mark.needs("pg_createcluster")
@pytest.mark.parametrize(
    ("query", "conditions", "failure"),
    [
        (None, [], None),
        (None, ["[RESULT] == 1", "[CONNECTED] == true", "[IP] == 127.0.0.1"], None),
        ("select 7, 'x'", ["[RESULT] > 6", "[RESULT] matches ^7$"], None),
        ("select 1.50", ["[RESULT] == 1.5"], None),
        ("select 12345678901234567890::numeric", ["[RESULT] == 12345678901234567890"], None),
        ("select 'infinity'::float8", ["[RESULT] > 1e30"], None),
        ("select 'nan'::numeric", ["[RESULT] != 1"], FailureClass.CONDITION_FAILED),
        ("select now() > '2020-01-01'", ["[RESULT] == true"], None),
        ("select null::int", [], None),
        ("select null::int", ["[RESULT] == null"], None),
        ("select 'grün'", ["[RESULT] == grün"], None),
        ("select generate_series(1, 100000000)", ["[RESULT] == 1"], None),
        ("select", [], None),
        ("show server_version", ["[RESULT] exists"], None),
        ("  select 1 ; ", [], None),
        # No row.
        ("select 1 where false", [], FailureClass.CONDITION_FAILED),
        ("select 1 where false", ["[RESULT] != 1"], FailureClass.CONDITION_FAILED),
        ("-- nothing", [], FailureClass.CONDITION_FAILED),
        # SQL errors.
        ("select 1 / 0", [], FailureClass.PROTOCOL_ERROR),
        ("selekt", [], FailureClass.PROTOCOL_ERROR),
        ("select 1; select 2", [], FailureClass.PROTOCOL_ERROR),
        ("select * from hidden", [], FailureClass.AUTH_FAILED),
        # Statements that would write.
        ("insert into orders values (1) returning id", [], FailureClass.PROTOCOL_ERROR),
        ("commit; insert into orders values (1)", [], FailureClass.PROTOCOL_ERROR),
        ("set transaction read write", [], FailureClass.CONDITION_FAILED),
        ("copy (select 1) to stdout", [], FailureClass.CONDITION_FAILED),
        # Oversized results.
        ("select repeat('x', 100000)", ["[RESULT] contains xx"], None),
        ("select repeat('x', 30000000)", [], FailureClass.RESPONSE_TOO_LARGE),
        ("copy (select repeat('x', 30000000)) to stdout", [], FailureClass.RESPONSE_TOO_LARGE),
    ],
)
async def test_the_first_value_of_the_first_row_is_the_result(
    prober: Prober,
    server: Postgres,
    query: str | None,
    conditions: list[str],
    failure: FailureClass | None,
) -> None:
    result = await prober.check(
        "postgres", server.target, *conditions, query=query, timeout_seconds=20, **WATCHER
    )
    assert result.msg == (down(failure) if failure else "")
    assert server.ask("select count(*) from orders") == [(0,)]


@pytest.mark.needs("pg_createcluster")
async def test_certificate_expiry_is_known_with_tls(prober: Prober, server: Postgres) -> None:
    for mode, wanted, up in (
        ("verify-full", "[CERT_EXPIRY] > 24h", True),
        ("prefer", "[CERT_EXPIRY] > 24h", True),
        ("verify-full", "[CERT_EXPIRY] < 24h", False),
        ("disable", "[CERT_EXPIRY] > 24h", False),
    ):
        config = {**WATCHER, "sslmode": mode}
        result = await prober.check("postgres", server.target, wanted, **config)
        assert result.msg == ("" if up else down(FailureClass.CONDITION_FAILED)), (mode, wanted)


@pytest.mark.needs("pg_createcluster")
async def test_each_authentication_method_and_wrong_passwords(
    prober: Prober, server: Postgres
) -> None:
    refused, tls = FailureClass.AUTH_FAILED, {"sslmode": "verify-full"}
    right, plain = {"password": PASSWORD}, {"sslmode": "disable"}
    for user, config, secret, failure in (
        ("watcher", {**right, **tls}, {}, None),
        ("watcher", {**right, **plain}, {}, None),
        ("watcher", {"password_ref": "db", **tls}, right, None),
        ("watcher", {"password_ref": "db"}, {"password": "wrong"}, refused),
        ("watcher", {"password": "wrong", **plain}, {}, refused),
        ("watcher", {}, {}, refused),
        ("watcher", {**right, "database": "nowhere"}, {}, FailureClass.PROTOCOL_ERROR),
        ("nobody", right, {}, refused),
        ("slow", {"password": "slow"}, {}, None),
        ("slow", {"password": "swift"}, {}, refused),
        ("never", {"password": "never"}, {}, FailureClass.PROTOCOL_ERROR),
        ("trusted", {}, {}, None),
        ("old", {**right, **plain}, {}, None),
        ("old", {"password": "wrong"}, {}, refused),
        ("clear", {**right, **tls}, {}, None),
        ("clear", {**right, **plain}, {}, refused),
        ("sealed", {**right, "sslmode": "require"}, {}, None),
        ("sealed", right, {}, None),
        ("sealed", {**right, **plain}, {}, refused),
    ):
        given = {"database": "shop", "username": user, **config}
        result = await prober.check("postgres", server.target, secrets=secret, **given)
        assert result.msg == (down(failure) if failure else ""), (user, config)
        assert PASSWORD not in repr(result)


@pytest.mark.needs("pg_createcluster")
async def test_the_tls_guarantees_of_each_sslmode(
    prober: Prober, authority: trustme.CA, server: Postgres
) -> None:
    wrong = FailureClass.TLS_ERROR
    peers: list[tuple[trustme.CA | None, str, bool, dict[str, FailureClass | None]]] = [
        # The first case, because the server has no certificate yet.
        (
            None,
            HOST,
            False,
            {"verify-full": wrong, "require": wrong, "prefer": None, "disable": None},
        ),
        (trustme.CA(), HOST, False, {"verify-full": wrong, "require": None, "prefer": None}),
        (authority, "other.example", False, {"verify-full": wrong, "require": None}),
        (authority, HOST, True, {"verify-full": wrong, "require": None}),
    ]
    with open_folder() as folder, postgres(folder) as peer:
        for n, (issuer, name, expired, modes) in enumerate(peers):
            if issuer is not None:
                place = folder / str(n)
                place.mkdir(mode=0o755)
                peer.present(*write_certificate(issuer, place, name, expired=expired))
            for mode, failure in modes.items():
                # Verification is not skipped where an older version stored that it is.
                for skip in (False, True):
                    given = {"sslmode": mode, "tls_skip_verify": skip, **WATCHER}
                    result = await prober.check("postgres", peer.target, **given)
                    assert result.msg == (down(failure) if failure else ""), (name, mode, skip)
    stopped = await prober.check("postgres", peer.target, **WATCHER)
    assert stopped.msg == down(FailureClass.CONNECT_REFUSED)


@pytest.mark.needs("pg_createcluster")
async def test_a_tls_check_reads_the_certificate_with_starttls(
    prober: Prober, server: Postgres
) -> None:
    good = await prober.check("tls", server.target, starttls="postgres")
    other = await prober.check(
        "tls", server.target, starttls="postgres", server_name="other.example"
    )
    assert (good.outcome, other.msg) == (RunOutcome.UP, down(FailureClass.TLS_ERROR))


@pytest.mark.needs("pg_createcluster")
async def test_a_timeout_ends_the_query_on_the_server(prober: Prober, server: Postgres) -> None:
    result = await prober.check(
        "postgres", server.target, query="select pg_sleep(600)", timeout_seconds=1, **WATCHER
    )
    assert result.msg == down(FailureClass.TIMEOUT)
    busy = (
        "select count(*) from pg_stat_activity"
        " where query = 'select pg_sleep(600)' and state = 'active'"
    )
    with trio.fail_after(HANGS_SECONDS):
        while server.ask(busy) != [(0,)]:  # noqa: ASYNC110 another program sets no event
            await trio.sleep(0.02)


@pytest.mark.needs("pg_createcluster")
async def test_the_session_ignores_the_environment_and_ends_cleanly(
    prober: Prober, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    misleading = (
        *(("PGHOST", "192.0.2.1"), ("PGPORT", "1"), ("PGDATABASE", "nowhere")),
        *(("PGUSER", "trusted"), ("PGPASSWORD", PASSWORD), ("PGSSLMODE", "disable")),
        *(("PGOPTIONS", "-c search_path=nowhere"), ("PGAPPNAME", "other"), ("PGSERVICE", "x")),
        *(("PGREQUIRESSL", "1"), ("PGTARGETSESSIONATTRS", "standby"), ("PGCLIENTENCODING", "x")),
    )
    for name, value in misleading:
        monkeypatch.setenv(name, value)
    query = (
        "select concat_ws(' ', current_database(), session_user, application_name, ssl,"
        " current_setting('transaction_read_only'), current_setting('search_path'))"
        " from pg_stat_activity join pg_stat_ssl using (pid) where pid = pg_backend_pid()"
    )
    wanted = '[RESULT] == "shop watcher leadline t on \\"$user\\", public"'
    said = (server.folder / "log").stat().st_size
    result = await prober.check("postgres", server.target, wanted, query=query, **WATCHER)
    assert result.msg == ""
    nameless = {**WATCHER, "password": None}
    refused = await prober.check("postgres", server.target, query=query, **nameless)
    assert refused.msg == down(FailureClass.AUTH_FAILED)
    for name, _ in misleading:
        monkeypatch.delenv(name)
    # The server has logged the end of a session before the session disappears from
    # pg_stat_activity.
    theirs = "select count(*) from pg_stat_activity where usename = 'watcher'"
    with trio.fail_after(HANGS_SECONDS):
        while server.ask(theirs) != [(0,)]:  # noqa: ASYNC110 another program sets no event
            await trio.sleep(0.02)
    assert "unexpected EOF" not in (server.folder / "log").read_text()[said:]


@pytest.mark.needs("pg_createcluster", "pgbouncer")
@pytest.mark.parametrize("mode", ["session", "transaction"])
async def test_a_pooler_keeps_its_server_connection(
    prober: Prober, server: Postgres, mode: str
) -> None:
    with open_folder() as folder:
        port, users, config = free_port(), folder / "users", folder / "ini"
        users.write_text(f'"watcher" "{PASSWORD}"\n')
        lines = [
            *("[databases]", f"shop = host={HOST} port={server.port}", "[pgbouncer]"),
            *(f"listen_addr = {HOST}", f"listen_port = {port}", "unix_socket_dir ="),
            *("auth_type = scram-sha-256", f"auth_file = {users}", f"pool_mode = {mode}"),
            *(["user = nobody"] if ROOT else []),
        ]
        config.write_text("\n".join(lines) + "\n")
        command, log = ["pgbouncer", str(config)], folder / "log"
        with running(command, log, partial(listens, port)):
            check = partial(prober.check, "postgres", f"{HOST}:{port}", **WATCHER)
            for query, failure in (
                ("SELECT 1", None),
                ("SELECT 1 WHERE false", FailureClass.CONDITION_FAILED),
                ("selekt", FailureClass.PROTOCOL_ERROR),
                ("SELECT 2", None),
            ):
                assert (await check(query=query)).msg == (down(failure) if failure else "")
            wrong = await check(password="wrong")
            assert wrong.outcome is RunOutcome.DOWN
        assert "while server was not ready" not in log.read_text()
        assert log.read_text().count("new connection to server") == 1


@pytest.mark.needs("pg_createcluster")
async def test_a_slow_password_hash_runs_in_a_thread(prober: Prober, server: Postgres) -> None:
    threads = trio.CapacityLimiter(1)
    bounded = prober.with_(threads=threads)
    slow = partial(bounded.check, "postgres", server.target, username="slow", database="shop")
    assert (await slow(password="slow")).outcome is RunOutcome.UP
    async with threads:
        result = await slow(password="slow2")
        assert (result.outcome, result.unknown_reason) == (
            RunOutcome.UNKNOWN,
            UnknownReason.LOCAL_RESOURCES,
        )
        quick = await bounded.check("postgres", server.target, **WATCHER)
        assert quick.outcome is RunOutcome.UP


@pytest.mark.needs("pg_createcluster")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, server: Postgres) -> None:
    for mode in ("disable", "verify-full"):
        await leaves_nothing(
            partial(prober.check, "postgres", server.target, sslmode=mode, **WATCHER)
        )
    threads = trio.CapacityLimiter(300)
    slow = partial(prober.with_(threads=threads).check, "postgres", server.target)
    await leaves_nothing(partial(slow, username="slow", password="swift"), threads)


def test_invalid_definitions_are_refused() -> None:
    def faults(**config: object) -> list[str]:
        return [f.field for f in validate("postgres", "db.example:5432", None, config, [])]

    assert faults(**WATCHER) == []
    assert faults(username="x", password_ref="db", sslmode="require", tls_skip_verify=True) == []
    assert faults() == ["config.username"]
    assert faults(username="x", password="a", password_ref="b") == ["config.password"]
    assert faults(username="x", sslmode="verify-ca") == ["config.sslmode"]
    assert faults(username="x", sslmode="verify-full", tls_skip_verify="true") == [
        "config.tls_skip_verify"
    ]
    assert faults(username="x", query="x" * 4_097) == ["config.query"]
    assert faults(username="x", passfile="/root/.pgpass") == ["config.passfile"]
