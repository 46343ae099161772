"""Audit entries, written in the transaction of the change.

They contain identifiers and the states of transitions, and no bodies.
"""

from collections.abc import Sequence
from uuid import UUID

from uuid_utils.compat import uuid7

from ...engine.pools import Tx

_INSERT = """
insert into audit_entries (org, uid, actor_user, actor_label, via_token, action, target, created_at)
select i.org, i.uid, (select id from users where uid = %(actor)s::uuid), %(label)s,
  %(via_token)s, i.action, i.target, at(%(now)s)
from unnest(%(orgs)s::int[], %(uids)s::uuid[], %(actions)s::text[], %(targets)s::text[])
  with ordinality as i(org, uid, action, target, place)
order by i.place
"""


async def insert_audits(
    tx: Tx,
    writes: Sequence[tuple[int, str, str]],
    actor: UUID | None,
    label: str,
    *,
    via_token: bool,
) -> None:
    """Inserts entries of (org, action, target) in order.

    `org` is INSTANCE without organization.
    """
    if writes:
        await tx.execute(
            _INSERT,
            orgs=[org for org, _, _ in writes],
            uids=[uuid7() for _ in writes],
            actions=[action for _, action, _ in writes],
            targets=[target for _, _, target in writes],
            actor=actor,
            label=label,
            via_token=via_token,
            now=tx.now,
        )
