"""Reads of gate overrides."""

from typing import Any
from uuid import UUID

from msgspec import structs

from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rows import GateOverrideRow
from ..rules.gate_override import Ended
from ..rules.gate_policy import PolicySource
from ..tables.gate_overrides import LISTED_MOST

_COLUMNS = """
o.org, o.id, o.uid, o.service, o.policy_source, o.policy_revision, o.reason, o.created_at,
o.expires_at, o.actor_label, o.actor_user, o.via_token, o.revoked_at, o.revoked_reason,
o.revoked_by_label, o.revoked_by_user, o.revoked_via_token
"""

_OF_SERVICE = f"""
select {_COLUMNS} from gate_overrides o where o.org = %(org)s and o.service = %(service)s
order by o.id desc limit %(most)s
"""

_STANDING = f"""
select {_COLUMNS} from gate_overrides o
where o.org = %(org)s and o.service = %(service)s and o.policy_source = %(source)s
  and o.policy_revision = %(revision)s and o.revoked_at is null and o.expires_at > at(%(now)s)
order by o.id desc
"""

_BY_UID = f"""
select {_COLUMNS} from gate_overrides o
where o.org = %(org)s and o.service = %(service)s and o.uid = %(uid)s
"""


async def select_overrides(tx: Tx, service: ServiceKey) -> list[GateOverrideRow]:
    """Returns the overrides of a service, newest first."""
    return await tx.structs(_row, _OF_SERVICE, org=service[0], service=service[1], most=LISTED_MOST)


async def select_override(tx: Tx, service: ServiceKey, uid: UUID) -> GateOverrideRow | None:
    return await tx.one(_row, _BY_UID, org=service[0], service=service[1], uid=uid)


async def select_standing(
    tx: Tx, service: ServiceKey, source: PolicySource, revision: int
) -> GateOverrideRow | None:
    """Returns the active override of a policy revision."""
    return await tx.one(
        _row,
        _STANDING,
        org=service[0],
        service=service[1],
        source=source,
        revision=revision,
        now=tx.now,
    )


def _row(*columns: Any) -> GateOverrideRow:
    row = GateOverrideRow(*columns)
    ended = None if row.revoked_reason is None else Ended(row.revoked_reason)
    return structs.replace(row, policy_source=PolicySource(row.policy_source), revoked_reason=ended)
