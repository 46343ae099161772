"""The audit logs: an organization's, and the installation's own."""

from typing import Final

import msgspec

from ....storage.accounts.queries.audit_log import AuditFilter, AuditRow, select_audit_chunk
from ....storage.accounts.rows import INSTANCE
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ...wire.cursor import read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.next_page import next_page
from ...wire.route import Request, Response, Route
from ...wire.schema import known
from ...wire.scope_keys import org_of
from ..schemas.organizations import AuditEntry

PAGE_MOST: Final = 500


class AuditQuery(msgspec.Struct, frozen=True):
    """`limit` is capped at 500; older entries are on the next pages."""

    limit: int = 100
    cursor: str | None = None


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


async def _read(ask: Request, org: int) -> Response:
    if ask.query.limit < 1:
        raise Problem("limit_invalid")
    most, bound = min(ask.query.limit, PAGE_MOST), ("audit", org)
    last = read_cursor(ask.query.cursor, bound, 1)
    async with ask.context.pool.transaction("read_audit", read_only=True) as tx:
        before = last[0] if last else None
        rows = await select_audit_chunk(tx, org, AuditFilter(), before, most + 1)
    page = rows[:most]
    more = len(rows) > most
    headers = next_page(ask, write_cursor([page[-1].id], bound)) if more else {}
    return Response(body=[_entry_json(row) for row in page], headers=headers)


async def read_organization(ask: Request) -> Response:
    return await _read(ask, org_of(ask))


async def read_instance(ask: Request) -> Response:
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
