"""Run batches: at most 50 due windows that are claimed and sealed together.

A batch has windows of one kind in due order. A window that can no longer be claimed when it is
reserved goes into a batch that is never published, so that the ledger shows it. Of the windows of
one monitor, only the newest is run.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from ...core.instant import Instant
from .expected_run import withheld_at_reservation
from .run_schedule import ResultMode, RunWindow, claimable_until, sealing_at

MOST_WINDOWS = 50

KIND_OF = {ResultMode.PROBE: "run", ResultMode.PUSH: "push", ResultMode.COMPOSITE: "composite"}
# Canary runs are claimed one at a time.
CANARY = "canary"


class DueWindow(msgspec.Struct, frozen=True):
    org: int
    monitor: int
    manner: ResultMode
    window: RunWindow
    in_maintenance: bool = False
    is_canary: bool = False

    @property
    def kind(self) -> str:
        return CANARY if self.is_canary else KIND_OF[self.manner]


class RunBatch(msgspec.Struct, frozen=True, kw_only=True):
    """At most 50 windows that are claimed and sealed together, in parallel lists."""

    kind: str
    orgs: list[int]
    monitors: list[int]
    due_ats: list[Instant]
    seal_ats: list[Instant]
    claim_untils: list[Instant]
    published: bool
    first_due: Instant
    claim_until: Instant
    first_seal: Instant
    last_seal: Instant


class WithheldWindow(msgspec.Struct, frozen=True):
    """Window that is already withheld when it is reserved."""

    org: int
    monitor: int
    due: Instant
    reason: str


def cut(due: Sequence[DueWindow], now: Instant) -> tuple[list[RunBatch], list[WithheldWindow]]:
    """Returns run batches and withheld windows. Each window is in exactly one of the two."""
    spared: list[WithheldWindow] = []
    waiting: list[DueWindow] = []
    for item in due:
        ruling = withheld_at_reservation(item.window, in_maintenance=item.in_maintenance)
        # Maintenance of a push window is judged at its end, so only a pause withholds it here.
        if ruling is None or (item.manner is ResultMode.PUSH and item.window.term.enabled):
            waiting.append(item)
        else:
            spared.append(
                WithheldWindow(item.org, item.monitor, item.window.due, str(ruling.reason))
            )
    newest: dict[int, Instant] = {}
    for item in waiting:
        newest[item.monitor] = max(item.window.due, newest.get(item.monitor, item.window.due))
    batches: list[RunBatch] = []
    waiting.sort(key=lambda item: _sort_key(item, newest, now))
    for (kind, published), group in groupby(waiting, key=lambda i: _group_key(i, newest, now)):
        batches.extend(_batches(kind, published, list(group)))
    return batches, spared


def is_runnable(item: DueWindow, newest: dict[int, Instant], now: Instant) -> bool:
    window = item.window
    still_claimable = claimable_until(window.due, window.term.interval_us) > now
    return still_claimable and newest[item.monitor] == window.due


def _group_key(item: DueWindow, newest: dict[int, Instant], now: Instant) -> tuple[str, bool]:
    return item.kind, is_runnable(item, newest, now)


def _sort_key(
    item: DueWindow, newest: dict[int, Instant], now: Instant
) -> tuple[str, bool, Instant, int]:
    return (*_group_key(item, newest, now), item.window.due, item.monitor)


def _batches(kind: str, published: bool, items: list[DueWindow]) -> Iterable[RunBatch]:
    for start in range(0, len(items), MOST_WINDOWS):
        part = items[start : start + MOST_WINDOWS]
        due_ats = [item.window.due for item in part]
        seal_ats = [sealing_at(item.window, item.manner) for item in part]
        claims = [claimable_until(item.window.due, item.window.term.interval_us) for item in part]
        yield RunBatch(
            kind=kind,
            orgs=[item.org for item in part],
            monitors=[item.monitor for item in part],
            due_ats=due_ats,
            seal_ats=seal_ats,
            claim_untils=claims,
            published=published,
            first_due=min(due_ats),
            claim_until=max(claims),
            first_seal=min(seal_ats),
            last_seal=max(seal_ats),
        )
