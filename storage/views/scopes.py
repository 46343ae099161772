"""Where a thing stands, so that it can be asked whether the principal may see it at all."""

from uuid import UUID

from ..pools import Tx
from ..rules.access import Scope

_OF = {
    "organization": "select id, null from organizations where uid = %(uid)s",
    "project": "select org, id from projects where uid = %(uid)s",
    "monitor": "select org, project from monitors where uid = %(uid)s",
    "token": "select org, null from api_tokens where uid = %(uid)s",
    "channel": "select org, project from notification_channels where uid = %(uid)s",
    "webhook": "select org, null from webhooks where uid = %(uid)s",
    "maintenance": "select org, project from maintenances where uid = %(uid)s",
}
KINDS = frozenset(_OF)


async def select_scope(tx: Tx, kind: str, uid: UUID) -> Scope | None:
    """The scope of one of KINDS; None where there is no such thing."""
    row = await tx.row(_OF[kind], uid=uid)
    return Scope(row[0], row[1]) if row else None
