"""Connection state of an agent, derived from the outcomes of its requests.

Pure: instants are arguments. The agent is disconnected after two successive failures of the same
request type, or without any response for `SILENT_US`. A single failure does not change the state.
If the server refuses the token, the agent runs no checks.
"""

from enum import StrEnum
from typing import Final

# Limit without any response, also while a request still waits. Heartbeats are more frequent.
SILENT_US: Final = 15_000_000
FAILURES: Final = 2
# After this time without a response, the offline schedule is too old to run.
ALONE_US_MOST: Final = 24 * 3_600_000_000


class Question(StrEnum):
    """Request type. Each is tracked alone: heartbeats may succeed while claims fail."""

    HEARTBEAT = "heartbeat"
    CLAIM = "claim"


class ConnectionState(StrEnum):
    """State of the connection to the server."""

    NEW = "new"  # no response yet
    CONNECTED = "connected"
    CUT_OFF = "cut_off"
    REFUSED = "refused"  # the server does not know the token, or not for this region


class ConnectionTracker:
    """Tracker of responses and failures.

    `at` is µs of one monotonic clock that also counts time in suspend.
    """

    def __init__(self) -> None:
        self._answered_at: int | None = None
        self._failures = dict.fromkeys(Question, 0)
        self._is_refused = False

    def answered(self, question: Question, at: int) -> None:
        self._answered_at = at
        self._failures[question] = 0
        self._is_refused = False

    def failed(self, question: Question) -> None:
        self._failures[question] += 1

    def refused(self) -> None:
        """Records a refused token. Only a later response ends this state."""
        self._is_refused = True

    def has_failed(self, question: Question) -> bool:
        """Returns whether the last request of this type failed."""
        return self._failures[question] > 0

    def standing(self, at: int) -> ConnectionState:
        if self._is_refused:
            return ConnectionState.REFUSED
        if self._answered_at is None:
            return ConnectionState.NEW
        silent = at - self._answered_at >= SILENT_US
        if silent or max(self._failures.values()) >= FAILURES:
            return ConnectionState.CUT_OFF
        return ConnectionState.CONNECTED

    def silent_us(self, at: int) -> int:
        """Returns the time since the last response in µs, or 0 before the first."""
        return 0 if self._answered_at is None else at - self._answered_at
