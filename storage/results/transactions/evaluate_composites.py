"""Evaluation of composites: computes a result from the states of the members.

A window is answered or withheld immediately. If unknown members leave the condition open, or all
members are in maintenance, its row is withheld and no result is stored. The verdict therefore
describes the due instant, not a later evaluation.

Wakeups are removed before any read: a member that changes later wakes the composite again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ....probes.check.result import FailureClass, message
from ...core.instant import LATEST, Instant
from ...core.key import MonitorKey
from ...core.sli import SliCondition
from ...engine.pools import Tx
from ...monitors.rules.composite import CompositeMode, composite_status
from ...monitors.rules.monitor_state import StatusChange
from ...monitors.tables import composite_wakeups, compositions
from ...scheduling.rules.expected_run import Verdict, WithheldReason
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US
from ..queries.composites import (
    Composite,
    DueCompositeWindow,
    MemberHealth,
    select_composites,
    select_health,
)
from ..rules.incoming_result import IncomingResult, StoreOutcome, StoreResult
from ..tables import sealing as seals
from ..tables.sealing import VerdictWrite
from .record_results import record_results

# The result was discarded: another process had answered the window from an earlier state, or the
# composite was edited in between.
_UNSEEN = frozenset({StoreOutcome.DUPLICATE, StoreOutcome.OUTDATED})


@dataclass(frozen=True, slots=True)
class CompositeEvaluations:
    """Results with their outcomes, and the numbers of removed wakeups and withheld windows."""

    results: Sequence[tuple[IncomingResult, StoreResult]]
    flips: Sequence[StatusChange]
    calls: int
    withheld: int


async def evaluate_composites(
    tx: Tx, windows: Sequence[DueCompositeWindow], called: Iterable[MonitorKey]
) -> CompositeEvaluations:
    """Answers at most one window per composite, and evaluates the composites in `called`.

    If composites are nested, the children must be evaluated first.
    """
    by_key = {window.key: window for window in windows}
    calls = await composite_wakeups.pop_wakeups(tx, sorted({*called, *by_key}))
    now = tx.now
    composites = await select_composites(tx, sorted({*calls, *by_key}))
    health = await _select_health(tx, composites.values(), now)
    arrivals: list[IncomingResult] = []
    withheld: list[VerdictWrite] = []
    for key, composite in sorted(composites.items()):
        window = by_key.get(key)
        if window is None and (not composite.enabled or health.is_in_maintenance(key)):
            continue
        said = condition_of(composite, health)
        if said in (SliCondition.GOOD, SliCondition.BAD):
            arrivals.append(_arrival(composite, window, said is SliCondition.GOOD, now))
        elif window is not None:
            withheld.append(_withheld(window, said))
    recorded, flips = await record_results(tx, arrivals) if arrivals else ([], [])
    for arrival, answer in zip(arrivals, recorded, strict=True):
        if arrival.key in calls and answer.fate in _UNSEEN:
            # The wakeup is restored, since its result was discarded.
            await composite_wakeups.wake_composites(tx, arrival.key, now)
    await seals.write_verdicts(tx, withheld)
    await compositions.drop_settled_batches(tx, sorted({window.batch for window in windows}))
    results = list(zip(arrivals, recorded, strict=True))
    return CompositeEvaluations(results, flips, len(calls), len(withheld))


def condition_of(composite: Composite, health: MemberHealth) -> SliCondition:
    """Returns the combined condition of a composite's members."""
    members = (
        health.of(MonitorKey((composite.org, child)), kind)
        for child, kind in zip(composite.children, composite.child_types, strict=True)
    )
    return composite_status(CompositeMode(composite.mode), composite.quorum, members)


async def _select_health(tx: Tx, composites: Iterable[Composite], now: Instant) -> MemberHealth:
    keys = {MonitorKey((c.org, child)) for c in composites for child in (*c.children, c.id)}
    return await select_health(tx, sorted(keys), now)


def _arrival(
    composite: Composite, window: DueCompositeWindow | None, up: bool, now: Instant
) -> IncomingResult:
    return IncomingResult(
        org=composite.org,
        monitor=composite.id,
        shard=composite.shard,
        ts=now if window is None else max(now, window.due),
        up=up,
        # A composite has no host. The results of its members show which of them are down.
        msg="" if up else message(FailureClass.CONDITION_FAILED, ""),
        dues=() if window is None else (window.due,),
        windowed=window is not None,
        covered_until=LATEST if window is None else window.claim_until,
        reach_us=LATE_ARRIVAL_US,
        revision=composite.revision,
    )


def _withheld(window: DueCompositeWindow, said: SliCondition) -> VerdictWrite:
    unknown = said is SliCondition.UNKNOWN
    reason = WithheldReason.CHILDREN_UNKNOWN if unknown else WithheldReason.MAINTENANCE
    return VerdictWrite(window.org, window.monitor, window.due, Verdict.WITHHELD, reason)
