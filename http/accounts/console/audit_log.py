"""The audit logs: an organization's for its admins, the installation's own for global admins."""

from dataclasses import dataclass
from typing import Final

import msgspec

from ....storage.accounts.queries.audit_log import MOST, AuditRow, select_audit
from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.rows import INSTANCE
from ....storage.accounts.rules.access import Need
from ....storage.core.instant import Instant
from ...ui.form_routes import admin_route, form_route
from ...ui.formatting import Moment, count, moment
from ...ui.render import page
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of

_USUAL: Final = 100


class AuditScreenQuery(msgspec.Struct, frozen=True):
    """`all` shows the maximum number of entries."""

    all: str = ""


@dataclass(frozen=True, slots=True)
class AuditItem:
    at: Moment
    who: str
    by: str
    action: str
    target: str


async def show_organization(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_audit", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
    assert organization is not None, "its scope was found"
    return await _render(ask, org_of(ask), f"in {organization.name}")


async def show_instance(ask: Request) -> Response:
    return await _render(ask, INSTANCE, "to the installation")


async def _render(ask: Request, org: int, where: str) -> Response:
    most = MOST if ask.query.all else _USUAL
    async with ask.context.pool.transaction("console_audit", read_only=True) as tx:
        rows = await select_audit(tx, org, most)
        now = tx.now
    return page(
        "accounts/console/audit_log.html",
        first=f"{count(len(rows), 'latest change', 'latest changes')} {where}" if rows else "",
        where=where,
        lines=[_item(row, now) for row in rows],
        is_cut=len(rows) == most and not ask.query.all,
        most=MOST,
    )


def _item(row: AuditRow, now: Instant) -> AuditItem:
    by = "by a token" if row.via_token else row.actor_email or ""
    return AuditItem(moment(row.created_at, now), row.actor_label, by, row.action, row.target)


ROUTES: Final[tuple[Route, ...]] = (
    form_route(
        "GET",
        "/organizations/{orgID}/audit",
        ("organization", "orgID"),
        show_organization,
        "Audit log of an organization.",
        AuditScreenQuery,
        need=Need.ORG_ADMIN,
    ),
    admin_route(
        "GET",
        "/admin/audit",
        show_instance,
        "Audit log of the installation.",
        AuditScreenQuery,
    ),
)
