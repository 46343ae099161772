"""Reads of status pages for display, by slug or id.

The caller uses one snapshot (a read-only transaction, REPEATABLE READ), so that components and
incidents are of one instant.
"""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import BrandedRow, PageRow
from ..rules.status_page import Audience, Named, PageFacts, PageFrame, Visibility
from ..rules.status_page_history import earliest_shown
from ..tables.status_pages import _BY_UID as _BY_UID_STATUS_PAGES
from ..tables.status_pages import _COLUMNS as _COLUMNS_STATUS_PAGES
from ..tables.status_pages import _FROM as _FROM_STATUS_PAGES
from .status_page_components import BoundComponent, select_component_facts
from .status_page_incidents import PageScope, select_present_incidents
from .status_page_maintenance import select_page_maintenance

_COLUMNS: Final = """
g.accent_color, g.logo_url, g.footer_text, g.support_url,
g.org, g.id, g.uid, g.project, p.uid, g.slug, g.title, g.visibility, n.domain, g.token_hash,
g.generation, g.updated_at, g.time_zone, g.language
"""
_FROM: Final = """
from status_pages g left join projects p on p.org = g.org and p.id = g.project
  left join status_page_domains n on n.org = g.org and n.page = g.id
"""
_BY_SLUG: Final = f"select {_COLUMNS} {_FROM} where g.slug = %(slug)s"
_BY_UID: Final = f"select {_COLUMNS} {_FROM} where g.uid = %(uid)s"
_BINDINGS: Final = """
select uid, name, description, group_name, source, monitor, service, manual_status,
  show_latency, updated_at
from status_components where org = %(org)s and page = %(page)s order by position, id
"""
_NAMED: Final = """
select coalesce(m.uid, s.uid), c.name, c.uid from status_components c
  left join monitors m on m.org = c.org and m.id = c.monitor
  left join services s on s.org = c.org and s.id = c.service
where c.org = %(org)s and c.page = %(page)s order by c.position, c.id
"""


class StatusPageRow(BrandedRow, frozen=True):
    org: int
    id: int
    uid: UUID
    project: int | None
    project_uid: UUID | None
    slug: str
    title: str
    visibility: str
    domain: str | None
    token_hash: bytes | None
    generation: int
    updated_at: Instant
    time_zone: str
    language: str


async def select_page_by_slug(tx: Tx, slug: str) -> StatusPageRow | None:
    return await tx.one(StatusPageRow, _BY_SLUG, slug=slug)


async def select_page(tx: Tx, uid: UUID) -> StatusPageRow | None:
    return await tx.one(StatusPageRow, _BY_UID, uid=uid)


async def select_bindings(tx: Tx, page: StatusPageRow) -> list[BoundComponent]:
    """Returns the components of the page in order."""
    rows = await tx.rows(_BINDINGS, org=page.org, page=page.id)
    names = BoundComponent.__struct_fields__
    return [BoundComponent(**dict(zip(names, row, strict=True))) for row in rows]


def about_of(page: StatusPageRow, bindings: Sequence[BoundComponent]) -> PageScope:
    return PageScope(
        org=page.org,
        project=page.project,
        monitors=[b.monitor for b in bindings if b.monitor is not None],
        services=[b.service for b in bindings if b.service is not None],
        components=[b.uid for b in bindings],
    )


async def select_page_facts(
    tx: Tx, page: StatusPageRow, audience: Audience, *, latency: bool = False, days: bool = True
) -> PageFacts:
    """Returns the facts that `rules.status_page.render` needs.

    Latency is read only on request, because badges, feeds and lists do not show it. Without `days`
    the components have their status only, for a list of pages.
    """
    bindings = await select_bindings(tx, page)
    about = about_of(page, bindings)
    return PageFacts(
        slug=page.slug,
        title=page.title,
        visibility=Visibility(page.visibility),
        project=page.project_uid,
        components=await select_component_facts(tx, page.org, bindings, latency=latency, days=days),
        incidents=await select_present_incidents(tx, about, audience, earliest_shown(tx.now)),
        maintenance=await select_page_maintenance(tx, page.org, bindings),
        as_of=Instant(tx.now),
    )


async def select_frame(tx: Tx, page: StatusPageRow) -> PageFrame:
    """Returns the data of the page that decides on incidents, without component facts."""
    rows = await tx.rows(_NAMED, org=page.org, page=page.id)
    return PageFrame(page.project_uid, [Named(*row) for row in rows])


_OF_ORG = (
    f"select {_COLUMNS_STATUS_PAGES} {_FROM_STATUS_PAGES} where g.org = %(org)s order by g.slug"
)


async def select_status_page(tx: Tx, uid: UUID) -> PageRow | None:
    return await tx.one(PageRow, _BY_UID_STATUS_PAGES, uid=uid)


_OF_PROJECT = f"""
select {_COLUMNS_STATUS_PAGES} {_FROM_STATUS_PAGES}
where g.org = %(org)s and g.project = %(project)s order by g.id
"""


async def select_pages_of_project(tx: Tx, org: int, project: int) -> list[PageRow]:
    """Returns the pages of a project in the order of their ids."""
    return await tx.structs(PageRow, _OF_PROJECT, org=org, project=project)


async def select_status_pages_of(tx: Tx, org: int) -> list[PageRow]:
    """Returns the pages of an organization by slug."""
    return await tx.structs(PageRow, _OF_ORG, org=org)
