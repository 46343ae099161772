"""Conversion of psycopg's errors. Only this package knows psycopg.

A statement that fails raises Unavailable if a later attempt can succeed, Rejected if the database
refuses the statement, or OutcomeUnknown if a write may have been committed. OutcomeUnknown is an
Unavailable, since all writes can be repeated.
"""

import psycopg

from ..core.refusal import Unavailable

# By SQLSTATE, its first two characters or all five. A server that refuses a connection with one of
# these refuses the same connection again, until the server or the DSN is changed.
_REFUSES_DSN = {
    "28",  # no such role, a wrong password, no entry in pg_hba.conf
    "3D000",  # no such database
    "42501",  # the role may not connect to the database
}
_LOCK_TIMEOUT = "55P03"
_AWAY = {
    "08",  # connection exception
    "53",  # too many connections, out of memory, disk full
    "57",  # cancelled by a time-out, shut down, starting up
    "58",  # I/O error of the server
    "25006",  # the server is read-only after a failover
    "25P03",  # idle in transaction too long
    "25P04",  # transaction_timeout
    _LOCK_TIMEOUT,
}
_CONFLICTS = {"40001", "40P01"}
_CHANGED_PLAN = "cached plan must not change result type"
# After one of these errors the connection is replaced.
_LEAVE = {"25006"}


class UnusableDatabase(Unavailable):
    """The DSN is malformed, the server refuses its role, password or database, or is too old.

    It is an Unavailable, since a running process continues to wait: the operator can repair the
    server. A process that starts ends instead.
    """


class OutcomeUnknown(Unavailable):
    """The connection was lost before the response. It is unknown whether the write is committed."""


class Conflicted(Unavailable):
    """Serialization failure or deadlock. The transaction is rolled back and can be repeated."""


class LockTimeout(Unavailable):
    """A lock was not free within the lock timeout. The transaction is rolled back."""


class Rejected(Exception):
    """The database refuses the statement: a violated constraint, a bad value or a bug.

    `sqlstate` has the five characters of PostgreSQL. `constraint` is the violated constraint, or
    empty.
    """

    def __init__(self, message: str, sqlstate: str = "", constraint: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.constraint = constraint


def renamed(error: psycopg.Error, *, lost: bool) -> Exception:
    """Returns the error to raise for psycopg's. `lost` means that the connection is closed."""
    text = _first_line(error)
    state = error.sqlstate or ""
    if state in _CONFLICTS:
        return Conflicted(text)
    if state == _LOCK_TIMEOUT and not lost:
        return LockTimeout(text)
    if lost or state in _AWAY or state[:2] in _AWAY or _CHANGED_PLAN in text:
        return Unavailable(text)
    return Rejected(text, state, error.diag.constraint_name or "")


def refuses_for_good(state: str) -> bool:
    """Returns whether a server that refuses a connection with this SQLSTATE does so again."""
    return state in _REFUSES_DSN or state[:2] in _REFUSES_DSN


def connect_error(error: psycopg.Error) -> Unavailable:
    """Returns the error to raise for a failed connection attempt."""
    text = "cannot connect: " + "; ".join(line.strip() for line in str(error).splitlines())
    state = error.sqlstate or ""
    if refuses_for_good(state):
        return UnusableDatabase(text)
    if isinstance(error, psycopg.ProgrammingError) and not state:
        return UnusableDatabase(f"database.dsn: {str(error).strip()}")
    return Unavailable(text)


def must_leave(error: psycopg.Error) -> bool:
    """Returns whether an open connection must be replaced after this error."""
    return error.sqlstate in _LEAVE or _CHANGED_PLAN in str(error)


def _first_line(error: psycopg.Error) -> str:
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"{text} ({error.sqlstate})" if error.sqlstate else text
