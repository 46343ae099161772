"""What the gate answered, each with all that it was answered from; rows are only ever added.

The first 48 bits of an id are the milliseconds of its instant (RFC 9562, version 7): so a row is
found by its id alone, in one partition, and an id from a time that is kept no more finds nothing.
"""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import structs
from uuid_utils.compat import uuid7

from ...accounts.rules.access import Actor
from ...core.instant import MILLISECOND, Instant
from ...engine.pools import Tx
from ..rules.gate import Action, State
from ..rules.gate_evidence import Answer, Evidence, ReasonSaid

# A service that is gone is told without its id: it leads nowhere.
_COLUMNS = """
g.org, g.project, g.service, g.uid, g.evaluated_at, s.uid, g.service_slug, g.service_name, g.state,
g.action, g.unoverridden_action, g.reasons::text, g.policy_revision, g.override_uid, g.actor_label,
g.actor_user, g.via_token, coalesce((g.evidence #>> '{policy,document,schema_version}')::int, 1)
"""
_JOINED = """
from gate_decisions g left join services s on s.org = g.org and s.id = g.service
"""
_ONE = f"""
select {_COLUMNS}, g.evidence::text {_JOINED}
where g.org = %(org)s and g.project = %(project)s
  and g.evaluated_at = at(%(at)s) and g.uid = %(uid)s
"""
_LIST = f"""
select {_COLUMNS} {_JOINED}
where g.org = %(org)s and {{owner}} and g.evaluated_at >= at(%(from_at)s)
  and g.evaluated_at < at(%(until_at)s)
  and (g.evaluated_at, g.uid) < (at(%(before_at)s), %(before_uid)s::uuid)
  and g.state = any(%(states)s::text[])
order by g.evaluated_at desc, g.uid desc limit %(most)s
"""
_OF_PROJECT = _LIST.replace("{owner}", "g.project = %(project)s")
_OF_SERVICE = _LIST.replace("{owner}", "g.project = %(project)s and g.service = %(service)s")
_EVIDENCE = """
select g.uid, g.evaluated_at, g.state, g.evidence::text from gate_decisions g
where g.org = %(org)s and g.service = %(service)s and g.evaluated_at >= at(%(from_at)s)
  and g.evaluated_at < at(%(until_at)s)
order by g.evaluated_at desc, g.uid desc limit %(most)s
"""
_INSERT = """
insert into gate_decisions (org, project, service, uid, evaluated_at, service_uid, service_slug,
  service_name, state, action, unoverridden_action, reasons, policy_revision, override_uid,
  actor_label, actor_user, via_token, evidence)
values (%(org)s, %(project)s, %(service)s, %(uid)s, at(%(at)s), %(service_uid)s, %(slug)s, %(name)s,
  %(state)s, %(action)s, %(unoverridden)s, %(reasons)s::json, %(revision)s, %(override)s,
  %(label)s, %(actor)s, %(via_token)s, %(evidence)s::json)
"""
_NEWEST = UUID(int=(1 << 128) - 1)

_read_reasons = msgspec.json.Decoder(tuple[ReasonSaid, ...]).decode
_read_evidence = msgspec.json.Decoder(Evidence).decode


class DecisionRow(msgspec.Struct, frozen=True):
    """`service_uid` is None where the service is no more; `schema_version` is the policy's, 1 where
    there was none."""

    org: int
    project: int
    service: int
    uid: UUID
    evaluated_at: Instant
    service_uid: UUID | None
    service_slug: str
    service_name: str
    state: State
    action: Action | None
    unoverridden_action: Action | None
    reasons: tuple[ReasonSaid, ...]
    policy_revision: int | None
    override_uid: UUID | None
    actor_label: str
    actor_user: UUID | None
    via_token: bool
    schema_version: int


class Place(msgspec.Struct, frozen=True):
    """Whose decision it is."""

    org: int
    project: int
    service: int
    uid: UUID
    slug: str
    name: str


class Before(msgspec.Struct, frozen=True):
    """Where a list goes on: after this one, as newer ones come first."""

    at: Instant
    uid: UUID


class DecisionSeen(msgspec.Struct, frozen=True):
    uid: UUID
    evaluated_at: Instant
    state: State
    evidence: Evidence


def evaluated_at_of(now: Instant) -> Instant:
    """The instant as a decision's id can tell it: whole milliseconds."""
    return Instant(now - now % MILLISECOND)


def instant_of(uid: UUID) -> Instant:
    """When the decision of an id was made."""
    return Instant((uid.int >> 80) * MILLISECOND)


async def insert_decision(
    tx: Tx, place: Place, answer: Answer, evidence: Evidence, by: Actor
) -> UUID:
    """Rejected where no partition takes it."""
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


async def select_decision(
    tx: Tx, org: int, project: int, uid: UUID
) -> tuple[DecisionRow, Evidence] | None:
    """None where there is none, or it is kept no more."""
    row = await tx.row(_ONE, org=org, project=project, at=instant_of(uid), uid=uid)
    return None if row is None else (_row(*row[:-1]), _read_evidence(row[-1]))


async def select_decisions(
    tx: Tx,
    org: int,
    project: int,
    service: int | None,
    from_: Instant,
    to: Instant,
    states: Collection[State],
    before: Before | None,
    most: int,
) -> list[DecisionRow]:
    """The newest first; of one service, or of all of the project, in [from, to)."""
    given: dict[str, Any] = {} if service is None else {"service": service}
    return await tx.structs(
        _row,
        _OF_PROJECT if service is None else _OF_SERVICE,
        org=org,
        project=project,
        from_at=from_,
        until_at=to,
        before_at=to if before is None else before.at,
        before_uid=_NEWEST if before is None else before.uid,
        states=[state.value for state in states],
        most=most,
        **given,
    )


async def select_evidence(
    tx: Tx, service: tuple[int, int], from_: Instant, to: Instant, most: int
) -> Sequence[DecisionSeen]:
    """What the decisions of a service were made from, the newest first."""
    rows = await tx.rows(
        _EVIDENCE, org=service[0], service=service[1], from_at=from_, until_at=to, most=most
    )
    return [
        DecisionSeen(uid, at, State(state), _read_evidence(text)) for uid, at, state, text in rows
    ]


def _row(*columns: Any) -> DecisionRow:
    row = DecisionRow(*columns)
    return structs.replace(
        row,
        state=State(row.state),
        action=_action(row.action),
        unoverridden_action=_action(row.unoverridden_action),
        reasons=_read_reasons(columns[11]),
    )


def _action(text: str | None) -> Action | None:
    return None if text is None else Action(text)
