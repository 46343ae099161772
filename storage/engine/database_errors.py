"""psycopg's errors are renamed here, once: above this border nobody knows psycopg.

Three things can come of a statement that did not succeed: the store is away and trying again is
worth it (Unavailable), the database refuses what was asked (Rejected), or we do not know whether a
write was made (OutcomeUnknown, which is an Unavailable: what we write is idempotent).
"""

import psycopg

from ..core.refusal import Unavailable

# By SQLSTATE, its first two characters or all five. A server that answers a connection with one of
# these refuses the same connection again, until the server or the DSN is changed.
_REFUSES_DSN = {
    "28",  # no such role, a wrong password, no entry in pg_hba.conf
    "3D000",  # no such database
    "42501",  # the role may not connect to the database
}
_AWAY = {
    "08",  # connection exception
    "53",  # too many connections, out of memory, disk full
    "57",  # cancelled by a time-out, shut down, starting up
    "58",  # the server's own I/O
    "25006",  # a failover has made our server read-only
    "25P03",  # idle in transaction too long
    "25P04",  # transaction_timeout
    "55P03",  # lock_timeout
}
_CONFLICTS = {"40001", "40P01"}
_CHANGED_PLAN = "cached plan must not change result type"
# A server that says one of these is not the one to ask again: connect anew.
_LEAVE = {"25006"}


class UnusableDatabase(Unavailable):
    """Waiting does not help: the DSN is malformed, the server refuses its role, password or
    database, or the server is too old.

    It is an Unavailable, since a process that is running continues to wait: the operator can
    repair the server. A process that starts ends instead.
    """


class OutcomeUnknown(Unavailable):
    """The connection was lost before the answer: the write was made, or it was not."""


class Conflicted(Unavailable):
    """A serialization failure or a deadlock: all was rolled back, and may be tried at once."""


class Rejected(Exception):
    """The database refuses this statement, and would again: a constraint, a value, our own fault.

    `sqlstate` is PostgreSQL's five characters; `constraint` names what was violated, or is empty.
    """

    def __init__(self, message: str, sqlstate: str = "", constraint: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.constraint = constraint


def renamed(error: psycopg.Error, *, lost: bool) -> Exception:
    """What to raise for `error`; `lost` says that the connection did not survive it."""
    text = _first_line(error)
    state = error.sqlstate or ""
    if state in _CONFLICTS:
        return Conflicted(text)
    if lost or state in _AWAY or state[:2] in _AWAY or _CHANGED_PLAN in text:
        return Unavailable(text)
    return Rejected(text, state, error.diag.constraint_name or "")


def refuses_for_good(state: str) -> bool:
    """Whether a server that answers a connection with this SQLSTATE does so again."""
    return state in _REFUSES_DSN or state[:2] in _REFUSES_DSN


def connect_error(error: psycopg.Error) -> Unavailable:
    """What to raise for a connection that could not be made."""
    text = "cannot connect: " + "; ".join(line.strip() for line in str(error).splitlines())
    state = error.sqlstate or ""
    if refuses_for_good(state):
        return UnusableDatabase(text)
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return UnusableDatabase(f"database.dsn: {str(error).strip()}")
    return Unavailable(text)


def must_leave(error: psycopg.Error) -> bool:
    """Whether the connection is of no more use, though it still stands."""
    return error.sqlstate in _LEAVE or _CHANGED_PLAN in str(error)


def _first_line(error: psycopg.Error) -> str:
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"{text} ({error.sqlstate})" if error.sqlstate else text
