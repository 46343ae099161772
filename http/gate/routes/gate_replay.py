"""Replay of a draft policy over the past of a service.

A replay uses the same concurrency limit as a gate evaluation, and writes no row.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ....storage.core.instant import to_text
from ....storage.gate.rules.gate_policy import fault
from ....storage.gate.rules.gate_replay import ReplayedSpan
from ...services.routes.service_json import service_named
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas import GatePolicyWrite, PolicyReplay, ReplayedDecision, ReplaySpan
from .gate import OF_SERVICE, READ, SERVICE
from .gate_json import document_of
from .policy_replay import DAYS_MOST, ReplayResult, replay_draft


class ReplayQuery(msgspec.Struct, frozen=True):
    days: Annotated[int, Meta(ge=1, le=DAYS_MOST)] = 30


async def replay(ask: Request) -> PolicyReplay:
    # A service of another project is not found, whatever the document contains.
    async with ask.context.pool.statement("gate_replay_service") as tx:
        row = await service_named(ask, tx)
    document = document_of(ask.body)
    wrong = fault(document)
    if wrong is not None:
        raise Problem(f"{wrong[0]}: {wrong[1]}")
    with ask.context.gate.permit(str(ask.who.uid), ask.context.clock()):
        return _replay_json(await replay_draft(ask.context.pool, row, document, ask.query.days))


def _replay_json(found: ReplayResult) -> PolicyReplay:
    return PolicyReplay(
        from_=to_text(found.within.from_),
        to=to_text(found.within.until),
        in_force=[_span(said) for said in found.in_force],
        draft=[_span(said) for said in found.draft],
        decisions=[
            ReplayedDecision(
                decision_id=each.uid,
                evaluated_at=to_text(each.evaluated_at),
                state=each.state,
                draft_state=each.draft_state,
                span_state=known(each.span_state),
                hindsight=known(each.hindsight),
            )
            for each in found.decisions
        ],
    )


def _span(said: ReplayedSpan) -> ReplaySpan:
    return ReplaySpan(
        from_=to_text(said.span.from_),
        to=to_text(said.span.until),
        state=said.state,
        reasons=list(said.reasons),
    )


ROUTES: Final = (
    Route(
        method="POST",
        path=f"{OF_SERVICE}/policy/replay",
        action=READ,
        scope=SERVICE,
        handler=replay,
        summary="Replay a draft policy over past days, without writing.",
        tag="gate_replay",
        body=GatePolicyWrite,
        query=ReplayQuery,
        answer=PolicyReplay,
        also=(429,),
    ),
)
