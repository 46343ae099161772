"""Progress of an application: the newest written objects, and the rate between two samples."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import SECOND, Instant

STEPS_KEPT: Final = 20
# A rate from fewer objects or a shorter time would be an invented figure.
RATE_LEAST_OBJECTS: Final = 10
RATE_LEAST_US: Final = 2 * SECOND


class ApplyStep(msgspec.Struct, frozen=True):
    """Written object. `at` is the instant of the report, up to half a second later."""

    at: Instant
    action: str
    kind: str
    uid: str


class ApplyLog(msgspec.Struct, frozen=True):
    """First and last sample of the written objects, and the newest objects, oldest first."""

    first_at: Instant
    first_done: int
    at: Instant
    done: int
    total: int
    steps: list[ApplyStep]

    def us_left(self) -> int | None:
        """Returns the remaining time at the measured rate, in microseconds.

        None if too little was measured, or if only the commit remains.
        """
        written, passed_us = self.done - self.first_done, self.at - self.first_at
        if written < RATE_LEAST_OBJECTS or passed_us < RATE_LEAST_US or self.done >= self.total:
            return None
        return (self.total - self.done) * passed_us // written

    def rate(self) -> float | None:
        """Returns the objects per second between the samples, None before the second one."""
        if self.at <= self.first_at:
            return None
        return (self.done - self.first_done) * SECOND / (self.at - self.first_at)


def extended(
    log: ApplyLog | None,
    now: Instant,
    done: int,
    total: int,
    written: Sequence[tuple[str, str, str]],
) -> ApplyLog:
    """Returns the log after a sample. `written` are (action, kind, uid) since the sample before."""
    before = [] if log is None else log.steps
    steps = [*before, *(ApplyStep(now, *one) for one in written[-STEPS_KEPT:])]
    return ApplyLog(
        first_at=now if log is None else log.first_at,
        first_done=done if log is None else log.first_done,
        at=now,
        done=done,
        total=total,
        steps=steps[-STEPS_KEPT:],
    )
