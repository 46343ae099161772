"""Rows of the runs of a push monitor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....storage.core.instant import Instant
from ....storage.results.queries.push_runs import PushRunRow
from ....storage.results.rules.push_run import RunJudgement, RunOutcome
from ...ui.formatting import Moment, duration, moment

RUNS_SHOWN: Final = 10
_OUTCOMES: Final = {
    RunOutcome.SUCCEEDED: "succeeded",
    RunOutcome.FAILED: "failed",
    RunOutcome.REPLACED: "started again before its end",
}
_LIMITS: Final = {
    RunJudgement.OVERRUN: "longer than its limit",
    RunJudgement.NOT_LISTENING: "limit unknown: Leadline did not listen throughout",
    RunJudgement.PAUSED: "limit not applied: paused",
    RunJudgement.MAINTENANCE: "limit not applied: maintenance",
}


@dataclass(frozen=True, slots=True)
class RunLine:
    started: Moment
    run: str
    said: str
    duration: str


def run_lines(runs: Sequence[PushRunRow], now: Instant) -> list[RunLine]:
    return [
        RunLine(moment(one.started_at, now), one.run, _result_of(one), _duration(one, now))
        for one in runs
    ]


def _result_of(one: PushRunRow) -> str:
    said = _OUTCOMES[RunOutcome(one.outcome)] if one.outcome else "running"
    if one.code is not None:
        said += f", exit status {one.code}"
    limit = _LIMITS.get(RunJudgement(one.judged), "") if one.judged else ""
    return f"{said}; {limit}" if limit else said


def _duration(one: PushRunRow, now: Instant) -> str:
    if one.outcome == RunOutcome.REPLACED:
        return ""
    until = now if one.ended_at is None else one.ended_at
    return duration(max(until - one.started_at, 0))
