"""Gate overrides with their expiry and revocation.

An override belongs to one policy revision. Every write of overrides or policies locks the project,
so that the revision of a new override governs.
"""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Actor
from ...core.instant import Instant
from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rules.gate_override import Ended
from ..rules.gate_policy import PolicySource

_INSERT = """
insert into gate_overrides (org, uid, service, policy_source, policy_revision, reason, created_at,
  expires_at, actor_label, actor_user, via_token)
values (%(org)s, %(uid)s, %(service)s, %(source)s, %(revision)s, %(reason)s, at(%(now)s),
  at(%(expires_at)s), %(label)s, %(actor)s, %(via_token)s)
"""
_REVOKE = """
update gate_overrides set revoked_at = at(%(now)s), revoked_reason = %(reason)s,
  revoked_by_label = %(label)s, revoked_by_user = %(actor)s, revoked_via_token = %(via_token)s
where org = %(org)s and id = any(%(ids)s::int[])
"""
# For a project's policy, includes the overrides of all services that inherit it.
_BOUND = """
select o.id from gate_overrides o join services s on s.org = o.org and s.id = o.service
where o.org = %(org)s and s.project = %(project)s
  and coalesce(o.service = %(service)s::int, true)
  and o.policy_source = %(source)s and o.policy_revision = %(revision)s
  and o.revoked_at is null and o.expires_at > at(%(now)s)
"""
# Maximum number in a list, newest first.
LISTED_MOST = 200


async def insert_override(
    tx: Tx,
    service: ServiceKey,
    source: PolicySource,
    revision: int,
    reason: str,
    expires_at: Instant,
    by: Actor,
) -> UUID:
    uid = uuid7()
    await tx.execute(
        _INSERT,
        org=service[0],
        uid=uid,
        service=service[1],
        source=source,
        revision=revision,
        reason=reason,
        now=tx.now,
        expires_at=expires_at,
        label=by.label,
        actor=by.user,
        via_token=by.via_token,
    )
    return uid


async def revoke(tx: Tx, org: int, ids: list[int], why: Ended, by: Actor) -> None:
    await tx.execute(
        _REVOKE,
        org=org,
        ids=ids,
        now=tx.now,
        reason=why,
        label=by.label,
        actor=by.user,
        via_token=by.via_token,
    )


async def revoke_bound(
    tx: Tx, org: int, project: int, service: int | None, revision: int, why: Ended, by: Actor
) -> None:
    """Revokes all active overrides of a policy revision of a service or project."""
    source = PolicySource.PROJECT if service is None else PolicySource.SERVICE
    rows = await tx.rows(
        _BOUND,
        org=org,
        project=project,
        service=service,
        source=source,
        revision=revision,
        now=tx.now,
    )
    if rows:
        await revoke(tx, org, [row[0] for row in rows], why, by)
