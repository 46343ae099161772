"""The audit logs: an organization's, and the installation's own."""

from typing import Final

import msgspec

from ....storage.accounts.queries.audit_log import AuditRow, select_audit
from ....storage.accounts.rows import INSTANCE
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of
from ..schemas.organizations import AuditEntry


class AuditQuery(msgspec.Struct, frozen=True):
    """`limit` is capped at 500."""

    limit: int = 100


def _entry_json(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.uid,
        org_id=known(row.org_uid),
        actor_user_id=known(row.actor_uid),
        actor_email=known(row.actor_email),
        actor_name=row.actor_label,
        via_token=row.via_token,
        action=row.action,
        target=row.target,
        created_at=to_text(row.created_at),
    )


async def _read(ask: Request, org: int) -> list[AuditEntry]:
    if ask.query.limit < 1:
        raise Problem("limit_invalid")
    async with ask.context.pool.transaction("read_audit", read_only=True) as tx:
        return [_entry_json(row) for row in await select_audit(tx, org, ask.query.limit)]


async def read_organization(ask: Request) -> list[AuditEntry]:
    return await _read(ask, org_of(ask))


async def read_instance(ask: Request) -> list[AuditEntry]:
    return await _read(ask, INSTANCE)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/organizations/{orgID}/audit",
        action=Permission(Need.ORG_ADMIN),
        scope=("organization", "orgID"),
        handler=read_organization,
        summary="List the audit log of an organization, newest first.",
        tag="audit",
        query=AuditQuery,
        answer=list[AuditEntry],
    ),
    Route(
        method="GET",
        path="/api/v1/admin/audit",
        action=Permission(Need.GLOBAL_ADMIN),
        handler=read_instance,
        summary="List the audit log of the installation, newest first.",
        tag="audit",
        query=AuditQuery,
        answer=list[AuditEntry],
    ),
)
