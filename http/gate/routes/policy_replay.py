"""Comparison of a draft policy with the policies that were in force. Read-only.

The past is read in one snapshot. It is evaluated in small steps, so that other tasks can run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import trio

from ....storage.core.instant import DAY, MINUTE, Instant
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Isolation, Pool, Tx
from ....storage.gate.queries.gate_decisions import select_evidence
from ....storage.gate.queries.gate_replay import select_past, select_policies_in_force
from ....storage.gate.rows import DecisionSeen
from ....storage.gate.rules.gate import GateState
from ....storage.gate.rules.gate_evidence import decide_clauses
from ....storage.gate.rules.gate_policy import Document
from ....storage.gate.rules.gate_replay import (
    Hindsight,
    ReplayedSpan,
    ServicePast,
    Sums,
    facts_at,
    hindsight,
    replay,
)
from ....storage.services.rows import ServiceRow

DAYS_MOST: Final = 31
# Number of the newest decisions that are replayed.
DECISIONS_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class ReplayedOutcome:
    """Decision of the ledger, and the state of the draft for the same facts.

    `span_state` is the replayed state of its minute, None after the replayed time. `hindsight` is
    the reason why it differs from the decision, None if it does not.
    """

    uid: UUID
    evaluated_at: Instant
    state: GateState
    draft_state: GateState
    span_state: GateState | None
    hindsight: Hindsight | None


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Result of a replay. Without a draft, `draft` is empty and decisions are unchanged."""

    within: TimeSpan
    in_force: Sequence[ReplayedSpan]
    draft: Sequence[ReplayedSpan]
    decisions: Sequence[ReplayedOutcome]


@dataclass(frozen=True, slots=True)
class ReplayInputs:
    """Stored inputs of a replay."""

    within: TimeSpan
    past: ServicePast
    in_force: Sequence[tuple[TimeSpan, Document]]
    decisions: Sequence[DecisionSeen]


async def select_kept(tx: Tx, service: ServiceRow, days: int) -> ReplayInputs:
    """Returns the inputs of the last `days` days before the seal, in whole minutes.

    Without sealed time, the days end now.
    """
    start, sealed = service.materialization_start, service.sealed_through
    has_facts = start is not None and sealed is not None and sealed > start
    until = sealed if has_facts and sealed is not None else Instant(tx.now - tx.now % MINUTE)
    within = TimeSpan(Instant(until - days * DAY), until)
    return ReplayInputs(
        within,
        await select_past(tx, service, within),
        await select_policies_in_force(tx, service, within.from_),
        await select_evidence(tx, service.key, within.from_, Instant(tx.now + 1), DECISIONS_MOST),
    )


async def replayed(kept: ReplayInputs, draft: Document | None) -> ReplayResult:
    said_by_draft: list[ReplayedSpan] = []
    if draft is not None:
        said_by_draft = await _spans(kept.past, [(kept.within, draft)], kept.within)
    return ReplayResult(
        within=kept.within,
        in_force=await _spans(kept.past, kept.in_force, kept.within),
        draft=said_by_draft,
        decisions=await _outcomes(kept, draft),
    )


async def replay_draft(pool: Pool, service: ServiceRow, draft: Document, days: int) -> ReplayResult:
    async with pool.transaction(
        "gate_replay", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        kept = await select_kept(tx, service, days)
    return await replayed(kept, draft)


async def _spans(
    past: ServicePast, policies: Sequence[tuple[TimeSpan, Document]], within: TimeSpan
) -> list[ReplayedSpan]:
    found = []
    for each in replay(past, policies, within):
        if each is None:
            await trio.lowlevel.checkpoint()
        else:
            found.append(each)
    return found


async def _outcomes(kept: ReplayInputs, draft: Document | None) -> list[ReplayedOutcome]:
    sums = Sums(kept.past.runs)
    found = []
    for seen in kept.decisions:
        found.append(_outcome(seen, draft, kept, sums))
        await trio.lowlevel.checkpoint()
    return found


def _outcome(
    seen: DecisionSeen, draft: Document | None, kept: ReplayInputs, sums: Sums
) -> ReplayedOutcome:
    facts = seen.evidence.facts
    state = seen.state if draft is None else decide_clauses(draft, facts).state
    span_state, differs = None, None
    minute = Instant(seen.evaluated_at - seen.evaluated_at % MINUTE)
    if kept.within.from_ <= minute < kept.within.until:
        policy = seen.evidence.policy
        document = None if policy is None else policy.document
        governing = next(
            (one for span, one in kept.in_force if span.from_ <= minute < span.until), None
        )
        span_state = decide_clauses(governing, facts_at(kept.past, sums, minute)).state
        differs = hindsight(kept.past, sums, (document, facts, seen.state), (governing, minute))
    return ReplayedOutcome(seen.uid, seen.evaluated_at, seen.state, state, span_state, differs)
