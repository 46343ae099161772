"""What a draft of a gate's policy would have said, beside what was in force: nothing is written.

The past is read in one snapshot, and then judged in small steps, so that nobody else waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import trio

from ....storage.core.instant import DAY, MINUTE, Instant
from ....storage.core.time_span import Span
from ....storage.engine.pools import Isolation, Pool, Tx
from ....storage.gate.queries.gate_decisions import select_evidence
from ....storage.gate.queries.gate_replay import select_past, select_policies_in_force
from ....storage.gate.rows import DecisionSeen
from ....storage.gate.rules.gate import State
from ....storage.gate.rules.gate_evidence import judge
from ....storage.gate.rules.gate_policy import Document
from ....storage.gate.rules.gate_replay import Past, Said, replay
from ....storage.services.rows import ServiceRow

DAYS_MOST: Final = 31
# The newest of them are judged anew.
DECISIONS_MOST: Final = 500


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision of the ledger, and what the draft says of the very facts it was made from."""

    uid: UUID
    evaluated_at: Instant
    state: State
    draft_state: State


@dataclass(frozen=True, slots=True)
class Replayed:
    """Without a draft `draft` is empty, and decisions are said as they were."""

    within: Span
    in_force: Sequence[Said]
    draft: Sequence[Said]
    decisions: Sequence[Judged]


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read of it."""

    within: Span
    past: Past
    in_force: Sequence[tuple[Span, Document]]
    decisions: Sequence[DecisionSeen]


async def select_kept(tx: Tx, service: ServiceRow, days: int) -> Kept:
    """Of so many days before what is sealed, in whole minutes."""
    start, sealed = service.materialization_start, service.sealed_through
    has_facts = start is not None and sealed is not None and sealed > start
    until = sealed if has_facts and sealed is not None else Instant(tx.now - tx.now % MINUTE)
    within = Span(Instant(until - days * DAY), until)
    return Kept(
        within,
        await select_past(tx, service, within),
        await select_policies_in_force(tx, service, within.from_),
        await select_evidence(tx, service.key, within.from_, Instant(tx.now + 1), DECISIONS_MOST),
    )


async def replayed(kept: Kept, draft: Document | None) -> Replayed:
    said_by_draft: list[Said] = []
    if draft is not None:
        said_by_draft = await _said(kept.past, [(kept.within, draft)], kept.within)
    return Replayed(
        within=kept.within,
        in_force=await _said(kept.past, kept.in_force, kept.within),
        draft=said_by_draft,
        decisions=[_judged(each, draft) for each in kept.decisions],
    )


async def replay_draft(pool: Pool, service: ServiceRow, draft: Document, days: int) -> Replayed:
    async with pool.transaction(
        "gate_replay", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        kept = await select_kept(tx, service, days)
    return await replayed(kept, draft)


async def _said(past: Past, policies: Sequence[tuple[Span, Document]], within: Span) -> list[Said]:
    found = []
    for each in replay(past, policies, within):
        if each is None:
            await trio.lowlevel.checkpoint()
        else:
            found.append(each)
    return found


def _judged(seen: DecisionSeen, draft: Document | None) -> Judged:
    state = seen.state if draft is None else judge(draft, seen.evidence.facts).state
    return Judged(seen.uid, seen.evaluated_at, seen.state, state)
