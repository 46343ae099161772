"""Rows of the runs of a push monitor, and the bodies that it sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....storage.core.instant import Instant
from ....storage.engine.keyring import Keyring
from ....storage.results.queries.push_runs import PushRunRow
from ....storage.results.rows import PushBodyRow
from ....storage.results.rules.push_body import BODY_KEPT_BYTES
from ....storage.results.rules.push_request import PushKind
from ....storage.results.rules.push_run import RunJudgement, RunOutcome
from ....storage.results.transactions.push_bodies import open_body
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


_KINDS: Final = {PushKind.START: "start", PushKind.LOG: "log"}


@dataclass(frozen=True, slots=True)
class BodyLine:
    sent: Moment
    kind: str
    run: str
    text: str
    note: str


def body_lines(rows: Sequence[PushBodyRow], keyring: Keyring, now: Instant) -> list[BodyLine]:
    return [
        BodyLine(
            moment(row.at, now),
            _KINDS.get(PushKind(row.kind)) or ("up" if row.up else "down"),
            row.run,
            text or "",
            _note(text, is_cut=row.is_cut),
        )
        for row in rows
        for text in [open_body(row, keyring)]
    ]


def _note(text: str | None, *, is_cut: bool) -> str:
    if text is None:
        return "The body cannot be decrypted with the configured keys."
    return f"The first {BODY_KEPT_BYTES // 1024} KiB of the body." if is_cut else ""


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
