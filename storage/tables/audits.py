"""Who wrote what, in the transaction of the write: identifiers and transition ends, no bodies."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ..pools import Tx

INSTANCE = 0

_INSERT = """
insert into audit_entries (org, uid, actor_user, actor_label, via_token, action, target, created_at)
select %(org)s, %(uid)s, (select id from users where uid = %(actor)s::uuid), %(label)s,
  %(via_token)s, %(action)s, %(target)s, at(%(now)s)
"""


async def insert_audit(
    tx: Tx,
    org: int,
    actor: UUID | None,
    label: str,
    action: str,
    target: str,
    *,
    via_token: bool,
) -> None:
    """`org` is INSTANCE for what belongs to no organization."""
    await tx.execute(
        _INSERT,
        org=org,
        uid=uuid7(),
        actor=actor,
        label=label,
        via_token=via_token,
        action=action,
        target=target,
        now=tx.now,
    )
