"""Gate decisions with their complete evidence. Invariant: rows are only inserted.

The first 48 bits of an id are the instant in ms (RFC 9562, version 7). A row is therefore found by
its id in one partition. An id from a deleted partition finds no row.
"""

from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.rules.access import Actor
from ...core.instant import MILLISECOND, Instant
from ...engine.pools import Tx
from ..rules.gate_evidence import Evidence, GateResult

_INSERT = """
insert into gate_decisions (org, project, service, uid, evaluated_at, service_uid, service_slug,
  service_name, state, action, unoverridden_action, reasons, policy_revision, override_uid,
  actor_label, actor_user, via_token, evidence)
values (%(org)s, %(project)s, %(service)s, %(uid)s, at(%(at)s), %(service_uid)s, %(slug)s, %(name)s,
  %(state)s, %(action)s, %(unoverridden)s, %(reasons)s::json, %(revision)s, %(override)s,
  %(label)s, %(actor)s, %(via_token)s, %(evidence)s::json)
"""


class DecisionScope(msgspec.Struct, frozen=True):
    """Service that a decision belongs to."""

    org: int
    project: int
    service: int
    uid: UUID
    slug: str
    name: str


def evaluated_at_of(now: Instant) -> Instant:
    """Returns the instant rounded down to ms, the precision of a decision's id."""
    return Instant(now - now % MILLISECOND)


async def insert_decision(
    tx: Tx, place: DecisionScope, answer: GateResult, evidence: Evidence, by: Actor
) -> UUID:
    """Inserts a decision.

    Raises:
        Rejected: no partition accepts the row.
    """
    at = evidence.facts.at
    uid = uuid7(nanoseconds=at * 1_000)
    policy, override = evidence.policy, evidence.override
    await tx.execute(
        _INSERT,
        org=place.org,
        project=place.project,
        service=place.service,
        uid=uid,
        at=at,
        service_uid=place.uid,
        slug=place.slug,
        name=place.name,
        state=answer.state,
        action=answer.action,
        unoverridden=answer.unoverridden_action,
        reasons=msgspec.json.encode(answer.reasons).decode(),
        revision=None if policy is None else policy.revision,
        override=None if override is None else override.uid,
        label=by.label,
        actor=by.user,
        via_token=by.via_token,
        evidence=msgspec.json.encode(evidence).decode(),
    )
    return uid
