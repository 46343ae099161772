"""Connects with libpq and keeps the SQLSTATE of a refusal.

psycopg gives only the message of a failed connection, and that is in the language of the server.
libpq writes the SQLSTATE into the message if it is asked for verbose errors, which psycopg has no
call for.
"""

import ctypes
import re
from typing import Final

from psycopg import errors, pq
from psycopg._cmodule import _psycopg
from psycopg.abc import PQGenConn
from psycopg.waiting import Wait

from .database_errors import refuses_for_good

# PGVerbosity of libpq-fe.h.
_DEFAULT: Final = 1
_VERBOSE: Final = 2
_WAITS: Final = {pq.PollingStatus.READING: Wait.R, pq.PollingStatus.WRITING: Wait.W}
# "FATAL:  28P01: password authentication failed", and in which file of the server it was raised.
_STATE: Final = re.compile(r"(?<=:  )([0-9A-Z]{5}): ")
# The words of libpq, which are English, for a value that an option does not take.
_MALFORMED: Final = "invalid "
_LOCATION: Final = re.compile(r"\n[^\n]*\.c:\d+$", re.MULTILINE)

# The extension module is linked against libpq, so its handle finds the functions of libpq.
_set_verbosity = ctypes.PyDLL(_psycopg.__file__).PQsetErrorVerbosity
_set_verbosity.argtypes = (ctypes.c_void_p, ctypes.c_int)
_set_verbosity.restype = ctypes.c_int


def connecting(conninfo: str) -> PQGenConn[pq.abc.PGconn]:
    """A generator of psycopg that returns a new connection.

    Raises the error class of the server's SQLSTATE, OperationalError if the server sent none, and
    ProgrammingError if libpq does not understand `conninfo`. libpq can try twice, with TLS and
    without. Then the error is that of the last try which waiting can repair, or else of the last.
    """
    pgconn = pq.PGconn.connect_start(conninfo.encode())
    pointer = pgconn.pgconn_ptr  # type: ignore[attr-defined]
    _set_verbosity(pointer, _VERBOSE)
    while pgconn.status != pq.ConnStatus.BAD:
        status = pq.PollingStatus(pgconn.connect_poll())
        if status == pq.PollingStatus.OK:
            _set_verbosity(pointer, _DEFAULT)
            pgconn.nonblocking = 1
            return pgconn
        if status not in _WAITS:
            break
        yield pgconn.socket, _WAITS[status]
    text = pgconn.get_error_message()
    pgconn.finish()
    raise _error_of(text)


def _error_of(text: str) -> errors.Error:
    states = _STATE.findall(text)
    plain = _STATE.sub("", _LOCATION.sub("", text))
    if text.startswith(_MALFORMED):
        return errors.ProgrammingError(plain)
    worth_waiting = [state for state in states if not refuses_for_good(state)]
    deciding = worth_waiting or states
    try:
        kind = errors.lookup(deciding[-1]) if deciding else errors.OperationalError
    except KeyError:
        kind = errors.OperationalError
    return kind(plain)
