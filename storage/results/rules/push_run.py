"""Push runs: the time from a `/start` of a job to its result, and runs that take too long.

A run with a limit has a deadline: its start plus the limit of that moment. A run that is open then
has overrun. One failure (`push_overrun`) at the deadline counts like a pushed `/fail`. If Leadline
did not listen from the start to the deadline, the end of the run can be lost, and nothing is
recorded. The same applies to a pause or maintenance in that time.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, MINUTE, SECOND, Instant
from ...core.time_span import TimeSpan
from ...scheduling.rules.presence import is_wholly_listened
from ...scheduling.rules.run_schedule import ScheduleTerm, spans

# Message of the failure. A sender cannot use it.
PUSH_OVERRUN: Final = "push_overrun"
# Longest time between the start and the end of one run.
RUN_LONGEST_US: Final = 7 * DAY
# Longest time from the end of a run to a repetition of its result. A later result with the same
# run id belongs to another run, whose start was lost.
REPEAT_LONGEST_US: Final = 5 * MINUTE
# Longest time from the receipt of a `/start` to its commit. Its result can be committed before it.
LATE_START_US: Final = MINUTE
# Difference of the clocks of two receiving processes. A result received so much before the start of
# the run ends it.
CLOCK_SKEW_US: Final = 2 * SECOND
# Runs of a monitor that are open at once, and those that are kept after their end.
OPEN_RUNS_MOST: Final = 100
RUNS_KEPT: Final = 100


class RunOutcome(StrEnum):
    """How a run ended. `replaced`: the same run id has started again."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REPLACED = "replaced"


class RunJudgement(StrEnum):
    """Whether a run kept its limit. All but the first two state why that is not known."""

    ENDED = "ended"
    OVERRUN = "overrun"
    NOT_LISTENING = "not_listening"
    PAUSED = "paused"
    MAINTENANCE = "maintenance"


def run_deadline(started: Instant, limit_seconds: int) -> Instant | None:
    """Returns when an open run has taken too long, None without a limit."""
    return Instant(started + limit_seconds * SECOND) if limit_seconds else None


def judge_run(
    started: Instant,
    deadline: Instant,
    terms: Sequence[ScheduleTerm],
    maintenance: Sequence[TimeSpan],
    heard: Sequence[TimeSpan],
    judged: Instant | None,
) -> RunJudgement | None:
    """Returns the judgement of a run that was open at its deadline, None if it is too early.

    `heard` is from `presence.listened`, `judged` from `presence.judged_through`: until then every
    received push is stored.
    """
    if judged is None or judged < deadline:
        return None
    for term, end in spans(terms):
        if not term.enabled and term.from_ <= deadline and end >= started:
            return RunJudgement.PAUSED
    if any(span.from_ <= deadline and span.until > started for span in maintenance):
        return RunJudgement.MAINTENANCE
    if not is_wholly_listened(heard, started, deadline):
        return RunJudgement.NOT_LISTENING
    return RunJudgement.OVERRUN
