"""Stages of an asynchronous transaction and their ends, for metrics.

Pure. A stage carries no monitor, address or observed value.
"""

from enum import StrEnum
from typing import Protocol


class Stage(StrEnum):
    """Stages in the order of a run."""

    SUBMIT = "submit"
    CORRELATE = "correlate"
    AWAIT_RESULT = "await_result"
    ASSERT_RESULT = "assert_result"
    CLEANUP_VALIDATION = "cleanup_validation"


class StageEnd(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNOBTAINABLE = "unobtainable"  # failed locally
    CANCELLED = "cancelled"  # the run was cancelled before its deadline


class Stages(Protocol):
    """Callback that is called once when an entered stage ends.

    It must not wait and must not raise.
    """

    def __call__(self, stage: Stage, end: StageEnd) -> None: ...
