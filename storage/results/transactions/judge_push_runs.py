"""Judgement of push runs whose deadline has passed: an overrun run is a failure of its monitor."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...core.time_span import merged
from ...engine.pools import Tx
from ...monitors.rules.monitor_state import StatusChange
from ...scheduling.queries import shards
from ...scheduling.rules.presence import LATE_RENEWAL_US, Presence, judged_through, listened
from ...scheduling.tables import presences
from ...scheduling.tables import shards as schedules
from ..rules.incoming_result import IncomingResult, ResultSource, StoreOutcome, StoreResult
from ..rules.push_run import PUSH_OVERRUN, RunJudgement, judge_run
from ..tables import push_runs
from ..tables.push_runs import UndecidedRun
from .record_results import record_results

RUNS_AT_ONCE = 100
_DECIDED = (StoreOutcome.LIVE, StoreOutcome.HISTORY, StoreOutcome.PAUSED, StoreOutcome.IGNORED)


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """Result of one pass over an organization.

    `undecided` states that some runs cannot be judged yet.
    """

    overruns: list[tuple[IncomingResult, StoreResult]]
    flips: list[StatusChange]
    undecided: bool


async def judge_push_runs(tx: Tx, org: int) -> JudgedRuns:
    """Judges up to RUNS_AT_ONCE runs, and stores a failure for each one that has overrun."""
    runs = await push_runs.lock_undecided(tx, org, tx.now, RUNS_AT_ONCE)
    words = await _words(tx, runs) if runs else []
    overrun = [run for run, word in zip(runs, words, strict=True) if word is RunJudgement.OVERRUN]
    arrivals = [_failure(run) for run in overrun]
    stored, flips = await record_results(tx, arrivals) if arrivals else ([], [])
    waiting = {
        run for run, result in zip(overrun, stored, strict=True) if result.fate not in _DECIDED
    }
    decided = [
        (run, word)
        for run, word in zip(runs, words, strict=True)
        if word is not None and run not in waiting
    ]
    if decided:
        await push_runs.write_judgements(tx, org, decided)
    found = [
        (arrival, result)
        for arrival, result in zip(arrivals, stored, strict=True)
        if result.fate in (StoreOutcome.LIVE, StoreOutcome.HISTORY)
    ]
    return JudgedRuns(found, flips, len(decided) < len(runs))


async def _words(tx: Tx, runs: Sequence[UndecidedRun]) -> list[RunJudgement | None]:
    since = min(run.started_at for run in runs)
    keys = sorted({MonitorKey((run.org, run.monitor)) for run in runs})
    terms = await schedules.select_terms_of(tx, keys)
    maintenance = await shards.select_maintenances(tx, since, monitors=[key[1] for key in keys])
    known = [
        Presence(row.from_at, row.through_at, row.ended)
        for row in await presences.select_listening(tx, Instant(since - LATE_RENEWAL_US))
    ]
    heard, judged = listened(known, tx.now), judged_through(known, tx.now)
    return [
        judge_run(
            run.started_at,
            run.deadline_at,
            terms.get(MonitorKey((run.org, run.monitor)), ()),
            merged(maintenance.get(run.monitor, ())),
            heard,
            judged,
        )
        for run in runs
    ]


def _failure(run: UndecidedRun) -> IncomingResult:
    """Returns the failure at the deadline. It counts like a `/fail` that the job had sent then."""
    return IncomingResult(
        org=run.org,
        monitor=run.monitor,
        shard=run.shard,
        ts=run.deadline_at,
        up=False,
        latency_ms=(run.deadline_at - run.started_at) // 1_000,
        msg=PUSH_OVERRUN,
        source=ResultSource.PUSH,
    )
