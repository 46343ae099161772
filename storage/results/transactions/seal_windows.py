"""Sealing of windows: gives each window behind the fence a verdict and drops done batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...core.instant import MINUTE, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...scheduling.queries import shards
from ...scheduling.rules.presence import Presence, listened
from ...scheduling.rules.run_schedule import ResultMode, ScheduleTerm, result_expected_by, window_at
from ...scheduling.tables import presences
from ...scheduling.tables import shards as schedules
from ..rules.push_deadline import verdict_of_gap
from ..tables import sealing as seals
from ..tables.sealing import DueBatch, VerdictWrite

# A batch has up to 50 windows. Recorders wait for the states of the missed ones until the commit.
BATCHES_AT_ONCE = 20


@dataclass(slots=True)
class SealPassResult:
    """Result of one pass. `cursor` is the start of the next pass, None at the end.

    `left_from` is the first seal of the windows that the next pass must settle, because the state
    of their monitor was locked. It is None without one.
    """

    cursor: int | None
    left_from: Instant | None = None
    missed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)

    def count(self, reason: str) -> None:
        self.missed += 1
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


async def seal_windows(tx: Tx, shard: int, fence: Instant, after: int) -> SealPassResult:
    """Settles up to BATCHES_AT_ONCE batches after a cursor. Can be repeated."""
    due = await seals.select_due_batches(tx, shard, fence, after, BATCHES_AT_ONCE)
    sealed = SealPassResult(cursor=due[-1].id if len(due) == BATCHES_AT_ONCE else None)
    # An evaluated composite already has its row, even if unknown members left it open.
    runs = [item.id for item in due if item.kind != "push"]
    reasons, left = await seals.seal_runs(tx, runs, fence)
    for reason in reasons:
        sealed.count(reason)
    sealed.left_from = min(left.values(), default=None)
    await _seal_pushes(tx, [item for item in due if item.kind == "push"], fence, sealed)
    ended = [item.id for item in due if item.last_seal <= fence and item.id not in left]
    await seals.delete_batches(tx, ended)
    return sealed


async def _seal_pushes(
    tx: Tx, due: Sequence[DueBatch], fence: Instant, sealed: SealPassResult
) -> None:
    """Settles push windows without a heartbeat, by whether the server was listening."""
    windows = await seals.select_open_windows(tx, [item.id for item in due], "push", fence)
    if not windows:
        return
    keys = sorted({MonitorKey((org, monitor)) for org, monitor, _ in windows})
    terms = await schedules.select_terms_of(tx, keys)
    since = Instant(min(due_at for _, _, due_at in windows) - MINUTE)
    maintenance = await shards.select_maintenances(tx, since, monitors=[k[1] for k in keys])
    known = [
        Presence(row.from_at, row.through_at, row.ended)
        for row in await presences.select_listening(tx, since)
    ]
    heard = listened(known, tx.now)
    ends = [
        (org, monitor, due_at, _end(terms[MonitorKey((org, monitor))], due_at))
        for org, monitor, due_at in windows
    ]
    last = await seals.select_last_heartbeats(tx, ends)
    verdicts = []
    for org, monitor, due_at in windows:
        history = terms[MonitorKey((org, monitor))]
        window = window_at(history, due_at)
        if window is None:
            continue
        spans = maintenance.get(monitor, ())
        said = verdict_of_gap(window, last.get((monitor, due_at)), history, spans, heard)
        verdicts.append(VerdictWrite(org, monitor, due_at, said.verdict, said.reason))
        if said.verdict == "missed":
            sealed.count(str(said.reason))
    await seals.write_verdicts(tx, verdicts)


def _end(terms: Sequence[ScheduleTerm], due_at: Instant) -> Instant:
    window = window_at(terms, due_at)
    return result_expected_by(window, ResultMode.PUSH) if window else due_at
