"""The audit logs: an organization's for its admins, the installation's own for global admins.

The list has a filter and pages. Its export is a CSV file of the same entries.
"""

import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

import quart

from ....storage.accounts.queries.audit_log import (
    FACETS_OF_NEWEST,
    AuditFilter,
    AuditRow,
    ExportedRow,
    count_audit,
    select_audit_chunk,
    select_audit_page,
    select_audit_values,
)
from ....storage.accounts.queries.audit_names import AuditedObject, select_audited
from ....storage.accounts.queries.projects import select_organization
from ....storage.accounts.rows import INSTANCE
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant, to_text
from ...ui.facets import page_numbers
from ...ui.form_routes import form_route
from ...ui.formatting import Moment, count, moment, number
from ...ui.render import HEADERS, page
from ...ui.shell.page_layout import outer_frame_of
from ...ui.time_inputs import day_field
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from .audit_filter import AuditScreenQuery, ShownFilter, facets, filter_of
from .audit_text import AuditSentence, objects_of, sentence

ROWS_OF_PAGE: Final = 50
# Matching entries that the list counts and offers as pages. The export has more.
COUNTED_MOST: Final = 10_000
EXPORTED_MOST: Final = 100_000
_CHUNK: Final = 1_000
# A client that reads slowly gets the whole file; one that stops is cut off.
_EXPORT_SECONDS: Final = 600
_HEADS: Final = ("time", "actor", "email", "via_token", "action", "target", "id")
# First characters with which spreadsheets begin a formula or a command.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True, slots=True)
class AuditItem:
    at: Moment
    who: str
    by: str
    action: str
    sentence: AuditSentence


async def show_organization(ask: Request) -> Response:
    return await _render(ask, org_of(ask), f"in {await _organization(ask)}")


async def show_instance(ask: Request) -> Response:
    return await _render(ask, INSTANCE, "of the installation")


async def export_organization(ask: Request) -> quart.Response:
    return await _export(ask, org_of(ask))


async def export_instance(ask: Request) -> quart.Response:
    return await _export(ask, INSTANCE)


async def _organization(ask: Request) -> str:
    async with ask.context.pool.transaction("console_audit", read_only=True) as tx:
        organization = await select_organization(tx, ask.ids["orgID"])
    assert organization is not None, "its scope was found"
    return organization.name


async def _render(ask: Request, org: int, where: str) -> Response:
    shown = filter_of(ask.query)
    async with ask.context.pool.transaction("console_audit", read_only=True) as tx:
        found = await count_audit(tx, org, shown.chosen, COUNTED_MOST + 1)
        last = max(-(-min(found, COUNTED_MOST) // ROWS_OF_PAGE), 1)
        at = min(max(ask.query.page, 1), last)
        skip = (at - 1) * ROWS_OF_PAGE
        rows = []
        if found:
            # Without a match, the count has already read the whole log.
            rows = await select_audit_page(tx, org, shown.chosen, skip, ROWS_OF_PAGE)
        values = await select_audit_values(tx, org)
        objects = await select_audited(tx, org, objects_of(rows), is_installation=org == INSTANCE)
        now = tx.now
    is_cut = found > COUNTED_MOST
    return page(
        "accounts/console/audit_log.html",
        frame=await outer_frame_of(ask, organization=ask.ids.get("orgID")),
        section="instance-audit" if org == INSTANCE else "audit",
        path=ask.path,
        first=_first(shown, found, where, is_cut=is_cut),
        lines=[_item(row, objects, now) for row in rows],
        filter=shown,
        facets=facets(values, shown.chosen),
        facets_are_cut=sum(one.many for one in values) == FACETS_OF_NEWEST,
        today=day_field(now),
        found=number(min(found, COUNTED_MOST)),
        is_cut=is_cut,
        first_row=skip + 1,
        page=at,
        last=last,
        pages=page_numbers(at, last),
        rows_of_page=ROWS_OF_PAGE,
        most=number(EXPORTED_MOST),
    )


def _first(shown: ShownFilter, found: int, where: str, *, is_cut: bool) -> str:
    if is_cut:
        many = f"More than {count(COUNTED_MOST, 'entry', 'entries')}"
    else:
        many = count(found, "entry", "entries") if found else "No entries"
    return f"{many} {where}" if shown.is_empty else f"{many} {where} match the filter"


def _item(
    row: AuditRow, objects: Mapping[tuple[str, UUID], AuditedObject], now: Instant
) -> AuditItem:
    by = "by a token" if row.via_token else row.actor_email or ""
    said = sentence(row, objects)
    return AuditItem(moment(row.created_at, now), row.actor_label, by, row.action, said)


async def _export(ask: Request, org: int) -> quart.Response:
    """Returns the matching entries as CSV, newest first. The name of the file states a limit."""
    shown = filter_of(ask.query)
    async with ask.context.pool.transaction("export_audit", read_only=True) as tx:
        found = await count_audit(tx, org, shown.chosen, EXPORTED_MOST + 1)
        now = tx.now
    cut = f"-newest-{EXPORTED_MOST}" if found > EXPORTED_MOST else ""
    body = b"" if ask.method == "HEAD" else _lines(ask, org, shown.chosen)
    response = quart.Response(body, content_type="text/csv; charset=utf-8")
    response.timeout = _EXPORT_SECONDS
    name = f"audit-log-{day_field(now)}{cut}.csv"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers.update(HEADERS)
    return response


async def _lines(ask: Request, org: int, chosen: AuditFilter) -> AsyncIterator[bytes]:
    """Yields the file in chunks, each read in a transaction of its own.

    Entries are never changed, so that the chunks fit together without one snapshot.
    """
    yield _csv([_HEADS])
    before: int | None = None
    left = EXPORTED_MOST
    while left:
        most = min(_CHUNK, left)
        async with ask.context.pool.transaction("export_audit", read_only=True) as tx:
            rows = await select_audit_chunk(tx, org, chosen, before, most)
        if rows:
            yield _csv([_cells(row) for row in rows])
        if len(rows) < most:
            return
        before, left = rows[-1].id, left - most


def _cells(row: ExportedRow) -> Sequence[str]:
    return (
        to_text(row.created_at),
        row.actor_label,
        row.actor_email or "",
        "true" if row.via_token else "false",
        row.action,
        row.target,
        str(row.uid),
    )


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    """Returns lines of CSV (RFC 4180)."""
    written = io.StringIO()
    csv.writer(written).writerows([_inert(cell) for cell in row] for row in rows)
    return written.getvalue().encode()


def _inert(cell: str) -> str:
    """Returns the text with an apostrophe before it if a spreadsheet would run it."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


_of_organization: Final = partial(
    form_route,
    "GET",
    scope=("organization", "orgID"),
    query=AuditScreenQuery,
    action=Permission(Need.ORG_ADMIN),
)
_of_instance: Final = partial(
    form_route, "GET", scope=None, query=AuditScreenQuery, action=Permission(Need.GLOBAL_ADMIN)
)

ROUTES: Final[tuple[Route, ...]] = (
    _of_organization(
        path="/organizations/{orgID}/audit",
        handler=show_organization,
        summary="Audit log of an organization.",
    ),
    _of_organization(
        path="/organizations/{orgID}/audit.csv",
        handler=export_organization,
        summary="Audit log of an organization as CSV.",
    ),
    _of_instance(
        path="/admin/audit", handler=show_instance, summary="Audit log of the installation."
    ),
    _of_instance(
        path="/admin/audit.csv",
        handler=export_instance,
        summary="Audit log of the installation as CSV.",
    ),
)
