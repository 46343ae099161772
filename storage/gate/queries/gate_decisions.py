"""Reads of gate decisions."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec import structs

from ...core.instant import MILLISECOND, Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rows import DecisionCursor, DecisionRow, DecisionSeen
from ..rules.gate import GateAction, GateState
from ..rules.gate_evidence import Evidence, StoredReason

# `s.uid` is null if the service is deleted, because its id would lead to a 404.
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

_NEWEST = UUID(int=(1 << 128) - 1)

_read_reasons = msgspec.json.Decoder(tuple[StoredReason, ...]).decode

_read_evidence = msgspec.json.Decoder(Evidence).decode


def instant_of(uid: UUID) -> Instant:
    """Returns the instant that is encoded in the id of a decision."""
    return Instant((uid.int >> 80) * MILLISECOND)


async def select_decision(
    tx: Tx, org: int, project: int, uid: UUID
) -> tuple[DecisionRow, Evidence] | None:
    """Returns a decision and its evidence, None if it does not exist or retention deleted it."""
    row = await tx.row(_ONE, org=org, project=project, at=instant_of(uid), uid=uid)
    return None if row is None else (_row(*row[:-1]), _read_evidence(row[-1]))


async def select_decisions(
    tx: Tx,
    org: int,
    project: int,
    service: int | None,
    from_: Instant,
    to: Instant,
    states: Collection[GateState],
    before: DecisionCursor | None,
    most: int,
) -> list[DecisionRow]:
    """Returns decisions in [from, to), newest first, of one service or of the whole project."""
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
    tx: Tx, service: ServiceKey, from_: Instant, to: Instant, most: int
) -> Sequence[DecisionSeen]:
    """Returns the evidence of a service's decisions, newest first."""
    rows = await tx.rows(
        _EVIDENCE, org=service[0], service=service[1], from_at=from_, until_at=to, most=most
    )
    return [
        DecisionSeen(uid, at, GateState(state), _read_evidence(text))
        for uid, at, state, text in rows
    ]


def _row(*columns: Any) -> DecisionRow:
    row = DecisionRow(*columns)
    return structs.replace(
        row,
        state=GateState(row.state),
        action=_action(row.action),
        unoverridden_action=_action(row.unoverridden_action),
        reasons=_read_reasons(columns[11]),
    )


def _action(text: str | None) -> GateAction | None:
    return None if text is None else GateAction(text)
