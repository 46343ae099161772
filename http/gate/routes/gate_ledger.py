"""Reads of gate decisions from the ledger: by time, by state, and by id."""

from typing import Final
from uuid import UUID

import msgspec

from ....storage.core.instant import DAY, Instant, from_text
from ....storage.core.key import ProjectKey
from ....storage.engine.pools import Tx
from ....storage.gate.queries.gate_decisions import instant_of, select_decision, select_decisions
from ....storage.gate.rows import DecisionCursor
from ....storage.gate.rules.gate import GateState
from ....storage.services.queries.services import select_service
from ...wire.cursor import page_limit, read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.scope_keys import org_of, project_of
from ..schemas import GateDecision, GateDecisionList
from .gate import OF_PROJECT, PROJECT, READ
from .gate_json import decision_json, summary_json

RANGE_MOST_US: Final = 31 * DAY
_HALF_BYTES: Final = 8
# Number of characters of an invalid value that the error repeats.
_SAID_MOST: Final = 40


class DecisionsQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    from_: str | None = None
    to: str | None = None
    service_id: UUID | None = None
    state: list[str] = []
    cursor: str | None = None
    limit: str = "50"


async def list_decisions(ask: Request) -> GateDecisionList:
    query: DecisionsQuery = ask.query
    from_at, to_at = _range(query.from_, query.to)
    limit = page_limit(query.limit)
    states = _states(query.state)
    bound = ("gate-decisions", str(ask.ids["projectID"]), from_at, to_at, query.service_id, *states)
    before = _before(read_cursor(query.cursor, bound, 2))
    with ask.context.gate.permit(str(ask.who.uid), ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction("list_gate_decisions", read_only=True) as tx:
            service = None
            if query.service_id is not None:
                service = await _service(ask, tx, query.service_id)
                if service is None:
                    return GateDecisionList(items=[], next_cursor=None)
            found = await select_decisions(
                tx,
                org_of(ask),
                project_of(ask),
                service,
                from_at,
                to_at,
                states,
                before,
                limit + 1,
            )
    page = found[:limit]
    more = len(found) > limit
    return GateDecisionList(
        items=[summary_json(row) for row in page],
        next_cursor=write_cursor(_key(page[-1].uid), bound) if more else None,
    )


async def read_decision(ask: Request) -> GateDecision:
    with ask.context.gate.permit(str(ask.who.uid), ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction("read_gate_decision", read_only=True) as tx:
            found = await select_decision(tx, org_of(ask), project_of(ask), ask.ids["decisionID"])
    if found is None:
        raise Problem("not_found")
    return decision_json(*found)


async def _service(ask: Request, tx: Tx, uid: UUID) -> int | None:
    """Returns the key of a service, None if it does not exist in the project."""
    row = await select_service(tx, uid)
    return row.id if row is not None and (row.org, row.project) == _home(ask) else None


def _home(ask: Request) -> ProjectKey:
    return ProjectKey((org_of(ask), project_of(ask)))


def _range(from_: str | None, to: str | None) -> tuple[Instant, Instant]:
    """Returns [from, to), at most 31 days."""
    if from_ is None or to is None:
        raise Problem("range_required")
    try:
        from_at, to_at = from_text(from_), from_text(to)
    except (ValueError, OverflowError):
        raise Problem("range_invalid") from None
    if to_at <= from_at:
        raise Problem("range_invalid")
    if to_at - from_at > RANGE_MOST_US:
        raise Problem("range_too_wide")
    return from_at, to_at


def _states(given: list[str]) -> list[GateState]:
    """Returns the requested states in a fixed order, all states if none is given."""
    known = {state.value for state in GateState}
    for text in given:
        if text not in known:
            raise Problem(f"state_invalid: {text[:_SAID_MOST]}")
    return [state for state in GateState if not given or state.value in given]


def _key(uid: UUID) -> tuple[int, int]:
    """Returns an id as two integers of a cursor. The instant is part of the id."""
    first, second = uid.bytes[:_HALF_BYTES], uid.bytes[_HALF_BYTES:]
    return int.from_bytes(first, signed=True), int.from_bytes(second, signed=True)


def _before(key: tuple[int, ...] | None) -> DecisionCursor | None:
    if key is None:
        return None
    uid = UUID(bytes=b"".join(half.to_bytes(_HALF_BYTES, signed=True) for half in key))
    return DecisionCursor(instant_of(uid), uid)


ROUTES: Final = (
    Route(
        method="GET",
        path=f"{OF_PROJECT}/decisions",
        action=READ,
        scope=PROJECT,
        handler=list_decisions,
        summary="List the gate decisions of a range of at most 31 days, newest first.",
        tag="gate_ledger",
        query=DecisionsQuery,
        answer=GateDecisionList,
        also=(429,),
    ),
    Route(
        method="GET",
        path=f"{OF_PROJECT}/decisions/{{decisionID}}",
        action=READ,
        scope=PROJECT,
        handler=read_decision,
        summary="Read a gate decision as it was returned.",
        tag="gate_ledger",
        answer=GateDecision,
        also=(429,),
    ),
)
