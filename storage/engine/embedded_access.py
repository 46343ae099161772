"""Authentication of the embedded PostgreSQL: the users of this host that can connect.

The kernel names the user of each connection (peer authentication). Admitted are root, the user of
the daemon, and the user of the server, except the shared user `nobody`, as which other services
run. An admitted user can take each role of the database, since a superuser can anyway.

The files are written at each start and passed as options, so that they also apply to a cluster that
an earlier version made with `trust`. The `pg_hba.conf` in the cluster is not used.
"""

import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .embedded_layout import (
    SHARED_USER,
    CannotRun,
    EmbeddedLayout,
    Runner,
    give_to_owner,
    namespace_user,
    uid_of,
)

_MAP: Final = "leadline"
_HBA: Final = (
    "# Written by leadline at each start: a change is lost.\n"
    f"local all all peer map={_MAP}\n"
    f"local replication all peer map={_MAP}\n"
)


def write_access_files(place: EmbeddedLayout) -> None:
    """Replaces the files that the options of the server name. Raises CannotRun."""
    _replace(place.hba_file, _HBA)
    _replace(place.ident_file, ident_text(sorted(_admitted(place.runner))))


def ident_text(users: Iterable[str]) -> str:
    """Returns the map of these users to all roles, as pg_ident.conf(5) spells it."""
    return "".join(f"{_MAP} {_quoted(user)} all\n" for user in users)


def _quoted(user: str) -> str:
    """Returns a name as one word of the file. Raises CannotRun if the file cannot express it.

    A name that begins with a slash is a regular expression, also in quotes.
    """
    if not user or user.startswith("/") or not user.isprintable():
        raise CannotRun(f"PostgreSQL cannot admit the user {user!r}: run leadline as another user")
    return '"' + user.replace('"', '""') + '"'


def _admitted(runner: Runner) -> Iterator[str]:
    if runner.in_namespace:
        # Root has this name inside, and each other user that of the overflow uid.
        yield namespace_user().pw_name
        return
    yield _name_of(os.geteuid())
    if os.geteuid() != 0:
        try:
            yield pwd.getpwuid(0).pw_name
        except KeyError:
            return
    elif runner.uid is not None and runner.uid != uid_of(SHARED_USER):
        yield _name_of(runner.uid)


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        raise CannotRun(
            f"uid {uid} has no name here, and PostgreSQL admits users by name: add it to"
            " /etc/passwd"
        ) from None


def _replace(file: Path, text: str) -> None:
    """Replaces a file of the data directory, whose owner can replace it at any time.

    Only a new file is written and gets an owner, so that a link does not lead root to another one.
    """
    fresh = file.with_name(f"{file.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            # The user of the server reads it, for every umask.
            os.fchmod(descriptor, 0o644)
            give_to_owner(descriptor, file.parent)
            opened.write(text)
        fresh.replace(file)
    except OSError as error:
        raise CannotRun(f"cannot write {file}: {error.strerror}") from error
