"""MySQL checks against a local MariaDB with TLS and passwords."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pymysql
import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, open_folder, running, write_certificate
from tests.support.peers.servers import HANGS_SECONDS, Prober
from tests.support.processes.ports import free_port

PASSWORD = "canary-ü-" + secrets.token_hex(8)
WATCHER: dict[str, object] = {"username": "watcher", "password": PASSWORD, "database": "shop"}
ROOT = os.geteuid() == 0


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


@dataclass(frozen=True)
class Maria:
    port: int
    folder: Path

    @property
    def target(self) -> str:
        return f"{HOST}:{self.port}"

    def ask(self, *statements: str) -> list[tuple[object, ...]]:
        """Runs the statements as the administrator, and returns the rows of the last one."""
        with (
            pymysql.connect(
                unix_socket=str(self.folder / "sock"), user="root", autocommit=True
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


@contextmanager
def mariadb(folder: Path, chain: Path | None = None, key: Path | None = None) -> Iterator[Maria]:
    """A server with a new folder that other users can access, because it does not run as root."""
    port, data = free_port(), folder / "data"
    user = ["--user=nobody"] if ROOT else []
    if ROOT:
        shutil.chown(folder, "nobody")
        if key is not None:
            shutil.chown(key, "nobody")
    # A server that starts removes the temporary tables of others from a folder that it shares.
    temporary = f"--tmpdir={folder}"
    made = subprocess.run(
        [
            *("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--skip-test-db"),
            *("--auth-root-authentication-method=normal", *user, temporary),
        ],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert made.returncode == 0, made.stdout[-2_000:]
    command = [
        *("mariadbd", "--no-defaults", f"--datadir={data}", f"--port={port}", *user),
        *(f"--bind-address={HOST}", f"--socket={folder}/sock", "--skip-name-resolve"),
        *(
            temporary,
            "--innodb-flush-log-at-trx-commit=0",
            "--log-warnings=2",
            f"--pid-file={folder}/pid",
        ),
    ]
    if chain is not None:
        command += [f"--ssl-cert={chain}", f"--ssl-key={key}"]
    server = Maria(port, folder)

    def ready() -> bool:
        try:
            server.ask("select 1")
        except pymysql.err.OperationalError:
            return False
        return True

    with running(command, folder / "log", ready):
        server.ask(
            "create database shop",
            "create database other",
            "create table shop.orders (id int primary key)",
            f"create user watcher identified by '{PASSWORD}'",
            "grant all on shop.* to watcher",
            f"create user sealed identified by '{PASSWORD}' require ssl",
            "create user nameless",
            "create user ousted identified via unix_socket",
            "install soname 'auth_ed25519'",
            f"create user modern identified via ed25519 using password('{PASSWORD}')",
            f"create user locked identified by '{PASSWORD}' account lock",
        )
        yield server


@pytest.fixture(scope="module")
def server(authority: trustme.CA) -> Iterator[Maria]:
    with open_folder() as folder:
        with mariadb(folder, *write_certificate(authority, folder, HOST)) as server:
            yield server


@pytest.mark.needs("mariadbd")
@pytest.mark.parametrize(
    ("query", "conditions", "failure"),
    [
        (None, [], None),
        (None, ["[RESULT] == 1", "[CONNECTED] == true", "[IP] == 127.0.0.1"], None),
        ("select 7, 'x'", ["[RESULT] > 6", "[RESULT] matches ^7$"], None),
        ("select 1.50", ["[RESULT] == 1.5"], None),
        ("select 12345678901234567890", ["[RESULT] == 12345678901234567890"], None),
        ("select 1e300", ["[RESULT] > 1e30"], None),
        ("select 1 = 1", ["[RESULT] == 1"], None),
        ("select null", [], None),
        ("select null", ["[RESULT] == null"], None),
        ("select 'grün'", ["[RESULT] == grün"], None),
        ("select ''", ['[RESULT] == ""'], None),
        ("select seq from seq_1_to_100000000", ["[RESULT] == 1"], None),
        ("show status like 'uptime'", ["[RESULT] == Uptime"], None),
        ("show variables", [], None),
        ("select 1;", [], None),
        # No row.
        ("select 1 from dual where false", [], FailureClass.CONDITION_FAILED),
        ("select 1 from dual where false", ["[RESULT] != 1"], FailureClass.CONDITION_FAILED),
        ("do 1", [], FailureClass.CONDITION_FAILED),
        ("-- nothing", [], FailureClass.CONDITION_FAILED),
        # SQL errors.
        ("selekt", [], FailureClass.PROTOCOL_ERROR),
        ("select 1; select 2", [], FailureClass.PROTOCOL_ERROR),
        ("select * from mysql.global_priv", [], FailureClass.AUTH_FAILED),
        # Statements that would write, or read a local file.
        ("insert into orders values (1)", [], FailureClass.PROTOCOL_ERROR),
        ("drop table orders", [], FailureClass.PROTOCOL_ERROR),
        ("create table more (id int)", [], FailureClass.PROTOCOL_ERROR),
        ("commit; insert into orders values (1)", [], FailureClass.PROTOCOL_ERROR),
        ("load data local infile '/etc/passwd' into table orders", [], FailureClass.PROTOCOL_ERROR),
        # Oversized results.
        ("select repeat('x', 100000)", ["[RESULT] contains xx"], None),
        ("select repeat('x', 10000000)", [], FailureClass.RESPONSE_TOO_LARGE),
    ],
)
async def test_the_first_value_of_the_first_row_is_the_result(
    prober: Prober,
    server: Maria,
    query: str | None,
    conditions: list[str],
    failure: FailureClass | None,
) -> None:
    result = await prober.check("mysql", server.target, *conditions, query=query, **WATCHER)
    assert result.msg == (down(failure) if failure else "")
    assert server.ask("select count(*) from shop.orders") == [(0,)]


@pytest.mark.needs("mariadbd")
async def test_each_authentication_method_and_wrong_passwords(
    prober: Prober, server: Maria
) -> None:
    refused, right, tls = FailureClass.AUTH_FAILED, {"password": PASSWORD}, {"tls": True}
    for user, config, secret, failure, code in (
        ("watcher", {**right, **tls}, {}, None, None),
        ("watcher", {**right, "tls": False}, {}, None, None),
        ("watcher", {"password_ref": "db", **tls}, right, None, None),
        ("watcher", {"password_ref": "db"}, {"password": "wrong"}, refused, 1045),
        ("watcher", {"password": "wrong", **tls}, {}, refused, 1045),
        ("watcher", {}, {}, refused, 1045),
        ("watcher", {**right, "database": "other"}, {}, refused, 1044),
        ("watcher", {**right, "database": "nowhere"}, {}, refused, 1044),
        ("nobody", right, {}, refused, 1045),
        ("sealed", {**right, **tls}, {}, None, None),
        ("sealed", right, {}, refused, 1045),
        ("nameless", {}, {}, None, None),
        ("nameless", tls, {}, None, None),
        ("nameless", right, {}, refused, 1045),
        ("ousted", right, {}, refused, 1698),
        ("modern", right, {}, refused, None),
        ("locked", right, {}, refused, 4151),
    ):
        given = {"username": user, **config}
        result = await prober.check("mysql", server.target, secrets=secret, **given)
        assert result.msg == (down(failure) if failure else ""), (user, config)
        assert result.code == code, (user, config)
        assert PASSWORD not in repr(result)
    missing = await prober.check(
        "mysql", server.target, query="select * from shop.missing", **WATCHER
    )
    assert (missing.msg, missing.code) == (down(FailureClass.PROTOCOL_ERROR), 1146)


@pytest.mark.needs("mariadbd")
async def test_certificate_expiry_is_known_with_tls(prober: Prober, server: Maria) -> None:
    for tls, wanted, up in (
        (True, "[CERT_EXPIRY] > 24h", True),
        (True, "[CERT_EXPIRY] < 24h", False),
        (False, "[CERT_EXPIRY] > 24h", False),
    ):
        result = await prober.check("mysql", server.target, wanted, tls=tls, **WATCHER)
        assert result.msg == ("" if up else down(FailureClass.CONDITION_FAILED)), wanted


@pytest.mark.needs("mariadbd")
async def test_tls_is_verified_unless_skipped_and_never_omitted(
    prober: Prober, authority: trustme.CA
) -> None:
    for issuer, name, expired in (
        (trustme.CA(), HOST, False),
        (authority, "other.example", False),
        (authority, HOST, True),
        (None, HOST, False),
    ):
        with open_folder() as folder:
            files = write_certificate(issuer, folder, name, expired=expired) if issuer else ()
            with mariadb(folder, *files) as peer:
                check = partial(prober.check, "mysql", peer.target, **WATCHER)
                assert (await check(tls=True)).msg == down(FailureClass.TLS_ERROR), name
                lax = await check(tls=True, tls_skip_verify=True)
                assert lax.msg == ("" if issuer else down(FailureClass.TLS_ERROR)), name
                assert (await check()).msg == ""
    assert (await check()).msg == down(FailureClass.CONNECT_REFUSED)


@pytest.mark.needs("mariadbd")
async def test_a_timeout_ends_the_query_on_the_server(prober: Prober, server: Maria) -> None:
    result = await prober.check(
        "mysql", server.target, query="select sleep(600)", timeout_seconds=1, **WATCHER
    )
    assert result.msg == down(FailureClass.TIMEOUT)
    busy = "select count(*) from information_schema.processlist where info = 'select sleep(600)'"
    with trio.fail_after(HANGS_SECONDS):
        while server.ask(busy) != [(0,)]:  # noqa: ASYNC110 another program sets no event
            await trio.sleep(0.02)


@pytest.mark.needs("mariadbd")
async def test_the_session_ignores_the_environment_and_ends_cleanly(
    prober: Prober, server: Maria, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".my.cnf").write_text(f"[client]\nuser=nobody\npassword={PASSWORD}\nssl=1\n")
    for name, value in (
        *(("HOME", str(tmp_path)), ("MYSQL_HOST", "192.0.2.1"), ("MYSQL_PWD", PASSWORD)),
        *(("MYSQL_TCP_PORT", "1"), ("USER", "nobody"), ("MYSQL_HOME", str(tmp_path))),
    ):
        monkeypatch.setenv(name, value)
    query = "select concat(database(), ' ', user(), ' ', @@tx_read_only + 0, @@sql_select_limit)"
    wanted = f'[RESULT] matches "^shop watcher@{HOST} 11$"'
    result = await prober.check("mysql", server.target, wanted, query=query, **WATCHER)
    assert result.msg == ""
    nameless = await prober.check("mysql", server.target, username="watcher")
    assert nameless.msg == down(FailureClass.AUTH_FAILED)
    for query in ("select 1", "selekt", "select 1 from dual where false"):
        await prober.check("mysql", server.target, query=query, tls=True, **WATCHER)
    # The server has logged the end of a session before the session disappears from the process
    # list.
    theirs = "select count(*) from information_schema.processlist where user = 'watcher'"
    with trio.fail_after(HANGS_SECONDS):
        while server.ask(theirs) != [(0,)]:  # noqa: ASYNC110 another program sets no event
            await trio.sleep(0.02)
    # A wrong password is logged; no other session is.
    assert "Got an error reading" not in (server.folder / "log").read_text().partition(query)[2]


@pytest.mark.needs("mariadbd")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, server: Maria) -> None:
    for tls in (False, True):
        await leaves_nothing(partial(prober.check, "mysql", server.target, tls=tls, **WATCHER))


def test_invalid_definitions_are_refused() -> None:
    def faults(**config: object) -> list[str]:
        return [f.field for f in validate("mysql", "db.example:3306", None, config, [])]

    assert faults(**WATCHER) == []
    assert faults(username="x", password_ref="db", tls="true", tls_skip_verify="true") == []
    assert faults() == ["config.username"]
    assert faults(username="x", password="a", password_ref="b") == ["config.password"]
    assert faults(username="x", query="x" * 4_097) == ["config.query"]
    assert faults(username="x", read_default_file="/root/.my.cnf") == ["config.read_default_file"]
