"""The stages of an asynchronous transaction and how each may end, for whoever counts them.

Pure. Words and nothing else: no monitor, no address, nothing that was seen.
"""

from enum import StrEnum
from typing import Protocol


class Stage(StrEnum):
    """In the order in which a run goes through them."""

    SUBMIT = "submit"
    CORRELATE = "correlate"
    AWAIT_RESULT = "await_result"
    ASSERT_RESULT = "assert_result"
    CLEANUP_VALIDATION = "cleanup_validation"


class StageEnd(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNOBTAINABLE = "unobtainable"  # for a reason of ours
    CANCELLED = "cancelled"  # the run was called off, before its deadline


class Stages(Protocol):
    """Told once of each stage that was entered, as soon as it has ended. Must neither wait nor
    raise.
    """

    def __call__(self, stage: Stage, end: StageEnd) -> None: ...
