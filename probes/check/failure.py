"""The two ways in which reaching out ends early: the target failed, or we could not find out.

They travel from the dialling up to the runner, which alone turns them into a `Result`.
"""

from .result import FailureClass, UnknownReason


class TargetFailure(Exception):
    """The target's failure: becomes DOWN. `code` is the protocol's number, where there was one."""

    def __init__(self, failure: FailureClass, code: int | None = None) -> None:
        super().__init__(failure, code)
        self.failure = failure
        self.code = code


class LocalFailure(Exception):
    """A failure of ours: becomes unknown, never DOWN."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason = reason
