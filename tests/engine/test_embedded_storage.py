"""The embedded PostgreSQL: durable after kill -9, exclusive on its directory, never orphaned or run
as root.
"""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import trio

from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine import embedded_layout as embedded_place
from leadline.storage.engine import embedded_postgres as embedded
from leadline.storage.engine.embedded_layout import choose_runner, find_binaries, make_place
from leadline.storage.engine.embedded_postgres import CannotRun, attached, running
from leadline.storage.engine.pools import open_pool

# Tests that do not create a cluster get a copy of one.
cheap_initdb = pytest.mark.usefixtures("cheap_initdb")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes users")


def select(dsn: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(query.encode())
        return cursor.fetchall() if cursor.description else []


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False


def spawn(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/"
    )


async def until(happened: Callable[[], bool]) -> None:
    """Waits for an effect of another process, which sends no event."""
    with trio.fail_after(60):
        while not happened():  # noqa: ASYNC110 - as said
            await trio.sleep(0.005)


async def has_exited(pid: int) -> bool:
    with trio.move_on_after(10):
        fd = os.pidfd_open(pid)
        await trio.lowlevel.wait_readable(fd)
        os.close(fd)
        return True
    return False


@cheap_initdb
async def test_committed_rows_survive_a_kill_and_the_pool_reconnects(
    open_dir: Path,
) -> None:
    async with (
        running(open_dir) as server,
        open_pool(server.dsn, name="t", size=3, clock=lambda: Instant(0)) as pool,
    ):
        async with pool.statement("durable") as tx:
            assert await tx.value("show fsync") == "on"
        async with pool.statement("make") as tx:
            await tx.execute("create table things (n bigint)")
        committed = 0
        enough = trio.Event()

        async def write() -> None:
            nonlocal committed
            with suppress(Unavailable):
                while True:
                    async with pool.transaction("write") as tx:
                        await tx.execute("insert into things values (%(n)s)", n=committed)
                    committed += 1
                    if committed == 20:
                        enough.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await enough.wait()
            os.kill(server.pid, signal.SIGKILL)
            assert await server.died() == -signal.SIGKILL
        await server.start()
        async with pool.transaction("count") as tx:
            # The last statement may be committed without an answer.
            assert await tx.value("select count(*) from things") - committed in (0, 1)


@cheap_initdb
async def test_a_start_waits_for_backends_of_a_killed_server(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under load a backend outlives its killed server for a moment, and no new server can start in
    that time.
    """
    seen = trio.Event()
    servers_in = embedded._servers_in

    def noted(cluster: Path) -> list[int]:
        found = servers_in(cluster)
        if found:
            seen.set()
        return found

    monkeypatch.setattr(embedded, "_servers_in", noted)
    async with running(open_dir, durable=False) as server:
        with psycopg.connect(server.dsn) as connection:
            backend = connection.info.backend_pid
            os.kill(backend, signal.SIGSTOP)
            os.kill(server.pid, signal.SIGKILL)
            await server.died()
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(server.start)
                    with trio.fail_after(30):
                        await seen.wait()
                    os.kill(backend, signal.SIGCONT)
            finally:
                with suppress(ProcessLookupError):
                    os.kill(backend, signal.SIGCONT)
            assert not is_alive(backend)
            connection.close()
        assert select(server.dsn, "select 1") == [(1,)]


@cheap_initdb
async def test_a_restart_keeps_data_and_a_stop_leaves_no_process(
    open_dir: Path,
) -> None:
    async with running(open_dir) as server:
        select(server.dsn, "create table things as select 7 as n")
        pid = server.pid
    assert not is_alive(pid)
    assert not (open_dir / "postgres" / "postmaster.pid").exists(), (
        "the server was shut down cleanly"
    )
    async with running(open_dir) as server:
        assert select(server.dsn, "select n from things") == [(7,)]


@cheap_initdb
async def test_a_second_daemon_on_the_same_directory_is_refused(open_dir: Path) -> None:
    async with running(open_dir, durable=False):
        with pytest.raises(CannotRun, match="another leadline is running"):
            async with running(open_dir):
                pass


@cheap_initdb
async def test_an_attached_process_has_no_deadline(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(open_dir, durable=False):
        monkeypatch.setattr(embedded, "START_SECONDS", 0.3)
        async with attached(open_dir) as dsn:
            # Longer than the deadline, as a dump may take.
            with trio.move_on_after(2 * embedded.START_SECONDS) as work:
                await trio.sleep_forever()
            assert work.cancelled_caught
            assert select(dsn, "select 1") == [(1,)]


@cheap_initdb
async def test_a_foreign_server_is_not_stopped(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "ORPHAN_SECONDS", 0.1)
    async with running(open_dir, durable=False):
        pass
    place = make_place(open_dir)
    other = spawn(place.server(durable=False))
    try:
        await until(lambda: embedded._status(place.cluster) == (other.pid, "ready"))
        with pytest.raises(CannotRun, match=f"kill -INT {other.pid}"):
            async with running(open_dir):
                pass
        assert other.poll() is None
    finally:
        other.send_signal(signal.SIGINT)
        other.wait()


DAEMON = """
import sys, trio
from pathlib import Path
from leadline.storage.engine.embedded_postgres import running
async def main():
    async with running(Path(sys.argv[1]), durable=False) as server:
        print(server.pid, flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


async def test_the_server_of_a_killed_daemon_ends_and_the_next_daemon_takes_over(
    open_dir: Path,
) -> None:
    daemon = spawn([sys.executable, "-c", DAEMON, str(open_dir)])
    assert daemon.stdout is not None
    pid = int(daemon.stdout.readline())
    daemon.kill()
    daemon.wait()
    # Without a pause: the orphan may still be shutting down.
    async with running(open_dir, durable=False) as server:
        assert select(server.dsn, "select 1") == [(1,)]
        assert server.pid != pid
    assert await has_exited(pid) if is_alive(pid) else True


async def test_a_kill_during_initdb_leaves_no_partial_cluster(
    open_dir: Path,
) -> None:
    daemon = spawn([sys.executable, "-c", DAEMON, str(open_dir)])
    await until((open_dir / "postgres.new" / "base").exists)
    daemon.kill()
    daemon.wait()
    assert not (open_dir / "postgres").exists()
    async with running(open_dir, durable=False) as server:
        assert select(server.dsn, "select 1") == [(1,)]


async def test_a_cluster_of_another_major_version_is_refused(
    open_dir: Path,
) -> None:
    (open_dir / "postgres").mkdir()
    (open_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(CannotRun, match=r"made by PostgreSQL 17.*pg_upgrade"):
        async with running(open_dir):
            pass


@cheap_initdb
async def test_a_failed_start_reports_the_reason(open_dir: Path) -> None:
    async with running(open_dir, durable=False):
        pass
    (open_dir / "postgres" / "postgresql.conf").write_text("max_connections = many\n")
    with pytest.raises(CannotRun, match=r"ended at its start:.*max_connections"):
        async with running(open_dir):
            pass


@cheap_initdb
async def test_a_path_too_long_for_a_socket_gets_a_short_one(open_dir: Path) -> None:
    deep = open_dir / ("x" * 60) / ("y" * 60)
    async with running(deep, durable=False) as server:
        assert select(server.dsn, "select 1") == [(1,)]
        socket_dir = make_place(deep).socket_dir
        assert socket_dir.stat().st_mode & 0o077 == 0
    socket_dir.rmdir()


def test_a_foreign_socket_folder_is_refused(open_dir: Path) -> None:
    deep = open_dir / ("x" * 60) / ("y" * 60)
    socket_dir = make_place(deep).socket_dir
    socket_dir.chmod(0o777)
    with pytest.raises(CannotRun, match="not ours alone"):
        make_place(deep)
    socket_dir.rmdir()


@as_root
async def test_files_that_root_makes_belong_to_the_owner_of_the_data_directory(
    open_dir: Path,
) -> None:
    """A daemon that runs as another user opens the same lock and log."""
    nobody = pwd.getpwnam("nobody")
    os.chown(open_dir, nobody.pw_uid, nobody.pw_gid)
    async with running(open_dir, durable=False):
        pass
    for name in ("postgres.lock", "postgres.log"):
        assert os.stat(open_dir / name).st_uid == nobody.pw_uid


@cheap_initdb
async def test_the_packaged_pg_dump_works(open_dir: Path) -> None:
    async with running(open_dir, durable=False) as server:
        select(server.dsn, "create table things as select 42 as n")
        dump = await trio.run_process(
            [find_binaries() / "pg_dump", server.dsn], capture_stdout=True
        )
        assert b"\n42\n" in dump.stdout


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CannotRun, match=r"install leadline\[embedded\]"):
        find_binaries()


@cheap_initdb
async def test_the_server_has_no_network_and_only_its_user_connects(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    async with running(open_dir, durable=False) as server:
        assert select(server.dsn, "show listen_addresses") == [("",)]
        assert (open_dir / "run").stat().st_mode & 0o777 == 0o700
        assert b"PGDATA" not in await trio.Path(f"/proc/{server.pid}/environ").read_bytes()


@as_root
async def test_the_server_does_not_run_as_root(open_dir: Path) -> None:
    async with running(open_dir, durable=False) as server:
        owner = (await trio.Path(f"/proc/{server.pid}").stat()).st_uid
        assert owner == (open_dir / "postgres").stat().st_uid != 0


@as_root
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("postgres.lock", os.symlink),
        ("postgres.lock", os.link),
        ("postgres.log", os.symlink),
        ("postgres.log", os.link),
        ("run", os.symlink),
        ("postgres.new", os.symlink),
    ],
)
async def test_root_does_not_follow_links_when_it_changes_owners(
    open_dir: Path, name: str, make: Callable[[Path, Path], None]
) -> None:
    """The user of the server owns the data directory and replaces a file that root opens."""
    is_folder = name in ("run", "postgres.new")
    data = open_dir / "data"
    nobody = pwd.getpwnam("nobody")
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    target = open_dir / "of-root"
    if is_folder:
        target.mkdir()
    else:
        target.write_text("secret")
    make(target, data / name)
    with pytest.raises(CannotRun, match=str(data / name)):
        async with running(data, durable=False):
            pass
    assert target.stat().st_uid == 0
    assert is_folder or target.read_text() == "secret"


def owners_in(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_uid for path in folder.iterdir()}


@as_root
async def test_files_created_by_root_belong_to_the_owner_of_the_folder(open_dir: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(open_dir, nobody.pw_uid, nobody.pw_gid)
    async with running(open_dir, durable=False):
        pass
    owners = owners_in(open_dir)
    assert owners == dict.fromkeys(owners, nobody.pw_uid)
    assert {"postgres", "postgres.lock", "postgres.log", "run"} <= set(owners)


@as_root
@pytest.mark.parametrize(("user", "owner"), [("daemon", "daemon"), ("none", "root")])
async def test_a_data_directory_created_by_root_belongs_to_the_service_user(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch, user: str, owner: str
) -> None:
    """Root restores into a directory that was moved away, and the daemon must start there."""
    monkeypatch.setattr(embedded_place, "SERVICE_USER", user)
    async with running(open_dir / "data", durable=False):
        pass
    expected = pwd.getpwnam(owner).pw_uid
    assert owners_in(open_dir) == {"data": expected}
    found = owners_in(open_dir / "data")
    assert (found["postgres.lock"], found["postgres.log"]) == (expected, expected)


@as_root
async def test_in_a_private_home_the_server_runs_in_a_user_namespace(open_dir: Path) -> None:
    os.chmod(open_dir, 0o700)
    async with running(open_dir / "data", durable=False) as server:
        assert select(server.dsn, "select 1") == [(1,)]
        assert os.readlink(f"/proc/{server.pid}/ns/user") != os.readlink("/proc/self/ns/user")
    # The server stays in the namespace, although the path is open now: root owns the files.
    os.chmod(open_dir, 0o755)
    async with running(open_dir / "data", durable=False) as server:
        assert select(server.dsn, "select 1") == [(1,)]


@as_root
def test_the_folder_that_prevents_a_start_is_named(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_place, "_namespaces_work", lambda: False)
    (open_dir / "data").mkdir()
    open_dir.chmod(0o700)
    with pytest.raises(CannotRun, match=f"cannot enter {open_dir}:"):
        choose_runner(find_binaries(), open_dir / "data")
    # If a cluster exists, its owner needs access.
    cluster = open_dir / "data" / "postgres"
    cluster.mkdir()
    os.chown(cluster, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(CannotRun, match=rf"chmod o\+x {open_dir}"):
        choose_runner(find_binaries(), open_dir / "data")
