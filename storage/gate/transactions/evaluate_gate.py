"""Evaluation of the release gate: reads one snapshot, decides, and stores the decision.

Invariant: every answer is stored with its evidence, including `NOT_CONFIGURED`. If the row cannot
be stored, the request fails.
"""

from typing import Final, NamedTuple
from uuid import UUID

from ...accounts.rules.access import Actor, Grant, Need, Principal, Scope
from ...accounts.rules.access import Permission as Needed
from ...accounts.transactions.authorize import NOT_FOUND, demand
from ...core.refusal import Refused
from ...engine.pools import Rejected, Tx
from ...services.rows import ServiceRow
from ...services.tables.services import select_service
from ..queries.gate_evidence import select_facts
from ..queries.gate_overrides import select_standing
from ..queries.gate_policies import select_governing
from ..rows import DecisionRow
from ..rules.gate_evidence import Evidence, GateResult, OverrideFacts, evaluate_policy
from ..tables.gate_decisions import DecisionScope, evaluated_at_of, insert_decision

EVALUATE: Final = Needed(Need.VIEWER, grant=Grant.GATE_EVALUATE)


class EvaluatedDecision(NamedTuple):
    row: DecisionRow
    evidence: Evidence


async def evaluate_gate(
    tx: Tx, principal: Principal, project: UUID, service: UUID
) -> EvaluatedDecision:
    """Evaluates the gate. The transaction must see one snapshot.

    Raises:
        Refused not_found, forbidden; ledger_unwritable if no partition accepts the row.
    """
    row = await select_service(tx, service)
    if row is None or row.project_uid != project:
        raise Refused(NOT_FOUND)
    demand(principal, EVALUATE, Scope(row.org, row.project))
    evidence = await _gather(tx, row)
    said = evaluate_policy(evidence)
    by = principal.actor
    place = DecisionScope(row.org, row.project, row.id, row.uid, row.slug, row.name)
    try:
        uid = await insert_decision(tx, place, said, evidence, by)
    except Rejected as error:
        raise Refused("ledger_unwritable") from error
    return EvaluatedDecision(_row_of(place, uid, said, evidence, by), evidence)


async def _gather(tx: Tx, service: ServiceRow) -> Evidence:
    policy = await select_governing(tx, service.org, service.project, service.id)
    facts = await select_facts(tx, service, evaluated_at_of(tx.now))
    override = None
    if policy is not None:
        override = await select_standing(tx, service.key, policy.source, policy.revision)
    return Evidence(
        policy=None if policy is None else policy.governing,
        facts=facts,
        override=None
        if override is None
        else OverrideFacts(
            uid=override.uid,
            actor_label=override.actor_label,
            reason=override.reason,
            expires_at=override.expires_at,
        ),
    )


def _row_of(
    place: DecisionScope, uid: UUID, said: GateResult, evidence: Evidence, by: Actor
) -> DecisionRow:
    return DecisionRow(
        org=place.org,
        project=place.project,
        service=place.service,
        uid=uid,
        evaluated_at=evidence.facts.at,
        service_uid=place.uid,
        service_slug=place.slug,
        service_name=place.name,
        state=said.state,
        action=said.action,
        unoverridden_action=said.unoverridden_action,
        reasons=said.reasons,
        policy_revision=None if evidence.policy is None else evidence.policy.revision,
        override_uid=None if evidence.override is None else evidence.override.uid,
        actor_label=by.label,
        actor_user=by.user,
        via_token=by.via_token,
        schema_version=1 if evidence.policy is None else evidence.policy.document.schema_version,
    )
