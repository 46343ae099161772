"""Lookup of the status page of a request, with the caller's rights.

A page of another organization, or outside the caller's scope, is not found.
"""

from dataclasses import dataclass
from typing import Final

from ....storage.accounts.rules.access import AccessDecision, Need, Permission, Scope, may, sees
from ....storage.engine.pools import Tx
from ....storage.status_pages.queries.status_pages import (
    StatusPageRow,
    select_page,
    select_status_page,
)
from ....storage.status_pages.rows import PageRow
from ....storage.status_pages.transactions.edit_pages import EDIT, page_token
from ...ui.form_routes import page_route
from ...wire.errors import Problem
from ...wire.route import Handler, NoQuery, Request, Route
from ...wire.scope_keys import org_of
from ..public.page_loader import addresses_of

ALL: Final = "/projects/{projectID}/status-pages"
ONE: Final = f"{ALL}/{{pageID}}"
VIEW: Final = Permission(Need.VIEWER)


@dataclass(frozen=True, slots=True)
class PageAccess:
    """`address` opens the page. For an unlisted page it contains the token only for editors."""

    row: PageRow
    shown: StatusPageRow
    may_edit: bool
    address: str


async def reached(ask: Request, tx: Tx) -> PageAccess:
    """Returns the page of the path. Raises Problem `not_found`."""
    row = await select_status_page(tx, ask.ids["pageID"])
    if row is None or row.org != org_of(ask) or not sees(ask.who, Scope(row.org, row.project)):
        raise Problem("not_found")
    return await reached_by(ask, tx, row)


async def reached_by(ask: Request, tx: Tx, row: PageRow) -> PageAccess:
    """Returns the access of the caller to a page that the caller may see."""
    shown = await select_page(tx, row.uid)
    if shown is None:
        raise Problem("not_found")
    may_edit = may(ask.who, EDIT, Scope(row.org, row.project)) is AccessDecision.ALLOWED
    token = page_token(row, ask.context.keyring) if may_edit else None
    return PageAccess(row, shown, may_edit, addresses_of(ask, shown, token).page)


def route(
    method: str,
    path: str,
    handler: Handler,
    summary: str,
    action: Permission = EDIT,
    query: type = NoQuery,
) -> Route:
    return page_route(
        method=method,
        path=path,
        action=action,
        scope=("project", "projectID"),
        handler=handler,
        summary=summary,
        query=query,
    )
