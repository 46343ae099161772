"""Whether the server can be reached, told from how its answers come: pure, over a running count.

One failure is nothing; two of one question in succession, or silence for longer than a question
takes, and the agent is on its own. A token that is refused is neither: then nothing is run at all.
"""

from enum import StrEnum
from typing import Final

# Without any answer for so long, whether a question has failed yet or still waits. Heartbeats are
# asked more often than that.
SILENT_US: Final = 15_000_000
FAILURES: Final = 2
# Longer than this without an answer, and what the agent knows is too old to be run.
ALONE_US_MOST: Final = 24 * 3_600_000_000


class Question(StrEnum):
    """Each is followed by itself: who answers heartbeats and gives no jobs cannot be reached."""

    HEARTBEAT = "heartbeat"
    CLAIM = "claim"


class ConnectionState(StrEnum):
    """How we stand with the server."""

    NEW = "new"  # it has not answered yet
    CONNECTED = "connected"
    CUT_OFF = "cut_off"
    REFUSED = "refused"  # it does not know the token, or not for this region


class ConnectionTracker:
    """`at` is µs of one running count; it counts on while the machine sleeps."""

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
        """Nothing but an answer to a later question ends it."""
        self._is_refused = True

    def has_failed(self, question: Question) -> bool:
        """Whether the last one was not answered."""
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
        """Since the last answer; 0 where there was none."""
        return 0 if self._answered_at is None else at - self._answered_at
