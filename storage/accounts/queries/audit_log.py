"""Audit entries of an organization or of the installation, newest first."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

MOST = 500

_SELECT = """
select a.uid, o.uid, u.uid, u.email, a.actor_label, a.via_token, a.action, a.target, a.created_at
from audit_entries a left join organizations o on o.id = a.org
  left join users u on u.id = a.actor_user
where a.org = %(org)s order by a.id desc limit %(most)s
"""


class AuditRow(msgspec.Struct, frozen=True):
    """Audit entry. `actor_uid` and `actor_email` are None if the user is deleted or unknown."""

    uid: UUID
    org_uid: UUID | None
    actor_uid: UUID | None
    actor_email: str | None
    actor_label: str
    via_token: bool
    action: str
    target: str
    created_at: Instant


async def select_audit(tx: Tx, org: int, most: int) -> list[AuditRow]:
    """Returns at most MOST entries. `org` INSTANCE selects those of the installation."""
    return await tx.structs(AuditRow, _SELECT, org=org, most=min(most, MOST))
