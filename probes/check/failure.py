"""Exceptions for the two early ends of a run: target failure and local failure.

The runner converts them into a `Result`. Senders and commands use the same exceptions.
"""

from .result import FailureClass, UnknownReason


class TargetFailure(Exception):
    """Failure of the target, reported as DOWN. `code` is the protocol's number, if any."""

    def __init__(self, failure: FailureClass, code: int | None = None) -> None:
        super().__init__(failure, code)
        self.failure = failure
        self.code = code


class LocalFailure(Exception):
    """Failure on our side, reported as unknown and never as DOWN."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason = reason
