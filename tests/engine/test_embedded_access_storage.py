"""Only root, the user of the daemon and the user of the server connect to the embedded PostgreSQL,
also if another user of the host can reach its socket.
"""

import os
import pwd
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.engine import embedded_access, embedded_layout
from leadline.storage.engine.embedded_access import ident_text, write_access_files
from leadline.storage.engine.embedded_layout import (
    CannotRun,
    Runner,
    find_binaries,
    make_place,
    namespace_user,
)
from leadline.storage.engine.embedded_postgres import running
from tests.support.run.effort import varied

# The files of access are the data directory's, beside the cluster, which may be a copy.
pytestmark = pytest.mark.usefixtures("cheap_initdb")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="connects as other users: run it as root")


def connected_as(user: str | None, dsn: str) -> str:
    """Connects as a user of this host. Returns what the server answers, or why it refuses."""
    who = None if user is None else pwd.getpwnam(user)
    done = subprocess.run(
        [find_binaries() / "psql", "--no-psqlrc", "-Atc", "select 'admitted'", dsn],
        user=None if who is None else who.pw_uid,
        group=None if who is None else who.pw_gid,
        extra_groups=None if who is None else [],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"LC_ALL": "C"},
    )
    return (done.stdout + done.stderr).strip()


def open_to_all(socket_dir: Path) -> None:
    """Removes the protection by modes, as an operator does who lets another program connect."""
    for folder in (socket_dir, *socket_dir.parents):
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(0o755)
    for file in socket_dir.glob(".s.PGSQL.*"):
        file.chmod(0o777)


async def test_the_user_of_the_daemon_connects_as_every_role(open_dir: Path) -> None:
    async with running(open_dir, durable=False) as server:
        assert connected_as(None, server.dsn) == "admitted"
        assert connected_as(None, f"{server.dsn} user=nobody_knows").endswith(
            'role "nobody_knows" does not exist'
        )


@as_root
@pytest.mark.parametrize("user", varied(["nobody"], ["daemon", "nobody"]))
async def test_another_user_is_refused_although_it_reaches_the_socket(
    open_dir: Path, user: str
) -> None:
    """`nobody` runs the server here, and other services too."""
    async with running(open_dir, durable=False) as server:
        open_to_all(open_dir / "run")
        for role in ("leadline", user):
            said = connected_as(user, f"{server.dsn} user={role}")
            assert f'Peer authentication failed for user "{role}"' in said
        assert connected_as("root", server.dsn) == "admitted"


@as_root
async def test_another_user_does_not_reach_the_socket(open_dir: Path) -> None:
    """Also if an earlier start or a person opened its folder."""
    async with running(open_dir, durable=False):
        pass
    (open_dir / "run").chmod(0o777)
    async with running(open_dir, durable=False) as server:
        assert (open_dir / "run").stat().st_mode & 0o777 == 0o700
        assert "Permission denied" in connected_as("daemon", server.dsn)


@as_root
@pytest.mark.parametrize("user", varied(["nobody"], ["daemon", "nobody"]))
async def test_another_user_is_refused_by_a_server_in_a_user_namespace(
    open_dir: Path, user: str
) -> None:
    """Inside, the kernel shows every user except root as the overflow uid."""
    os.chmod(open_dir, 0o700)
    async with running(open_dir / "data", durable=False) as server:
        assert os.readlink(f"/proc/{server.pid}/ns/user") != os.readlink("/proc/self/ns/user")
        open_to_all(open_dir / "data" / "run")
        said = connected_as(user, server.dsn)
        assert 'Peer authentication failed for user "leadline"' in said
        assert connected_as("root", server.dsn) == "admitted"


@as_root
async def test_a_cluster_of_an_earlier_version_admits_no_other_user(open_dir: Path) -> None:
    async with running(open_dir, durable=False):
        pass
    # As earlier versions made it.
    (open_dir / "postgres" / "pg_hba.conf").write_text("local all all trust\n")
    for name in ("pg_hba.conf", "pg_ident.conf"):
        (open_dir / name).unlink()
    async with running(open_dir, durable=False) as server:
        open_to_all(open_dir / "run")
        said = connected_as("daemon", server.dsn)
        assert 'Peer authentication failed for user "leadline"' in said


@as_root
async def test_the_service_user_is_admitted(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root runs a command, such as a backup, and the daemon runs as this user."""
    monkeypatch.setattr(embedded_layout, "SERVICE_USER", "daemon")
    async with running(open_dir / "data", durable=False) as server:
        assert connected_as("daemon", server.dsn) == "admitted"
        assert connected_as("root", server.dsn) == "admitted"
        open_to_all(open_dir / "data" / "run")
        assert "Peer authentication failed" in connected_as("nobody", server.dsn)


@as_root
async def test_root_writes_the_files_over_no_link(open_dir: Path) -> None:
    """The owner of the data directory can put links there at any time."""
    nobody = pwd.getpwnam("nobody")
    data, target = open_dir / "data", open_dir / "of-root"
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    target.write_text("secret")
    for name in ("pg_hba.conf", "pg_hba.conf.new", "pg_ident.conf"):
        (data / name).symlink_to(target)
    write_access_files(make_place(data))
    assert (target.read_text(), target.stat().st_uid) == ("secret", 0)
    for name in ("pg_hba.conf", "pg_ident.conf"):
        status = (data / name).lstat()
        assert (status.st_uid, status.st_mode & 0o7777) == (nobody.pw_uid, 0o644)


def test_the_files_are_readable_for_every_umask(open_dir: Path) -> None:
    before = os.umask(0o077)
    try:
        place = make_place(open_dir)
        write_access_files(place)
    finally:
        os.umask(before)
    assert place.hba_file.stat().st_mode & 0o777 == 0o644
    assert "trust" not in place.hba_file.read_text()


def test_a_file_that_cannot_be_written_is_named(open_dir: Path) -> None:
    (open_dir / "pg_hba.conf" / "x").mkdir(parents=True)
    with pytest.raises(CannotRun, match=f"cannot write {open_dir}/pg_hba.conf"):
        write_access_files(make_place(open_dir))


def test_a_uid_without_a_name_is_refused_with_the_remedy(
    open_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place(open_dir)
    monkeypatch.setattr(os, "geteuid", lambda: 123_456)
    with pytest.raises(CannotRun, match=r"uid 123456 has no name here.*/etc/passwd"):
        write_access_files(place)


def test_a_namespace_maps_root_to_another_uid_than_that_of_strangers() -> None:
    overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
    assert namespace_user().pw_uid not in (0, overflow)
    admitted = list(embedded_access._admitted(Runner(None, None, in_namespace=True)))
    assert admitted == [namespace_user().pw_name]


@given(st.text(min_size=1))
def test_a_name_is_one_word_of_its_line(user: str) -> None:
    """No name adds a line, a user or a regular expression to the map."""
    try:
        text = ident_text([user])
    except CannotRun:
        assert user.startswith("/") or not user.isprintable()
        return
    assert text.splitlines() == [text.removesuffix("\n")]
    quoted = text.removeprefix("leadline ").removesuffix(" all\n")
    assert (quoted[0], quoted[-1]) == ('"', '"')
    assert '"' not in quoted[1:-1].replace('""', "")
    assert quoted[1:-1].replace('""', '"') == user
