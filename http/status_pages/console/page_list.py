"""Status pages of a project's organization, each with its current summary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import AccessDecision, Scope, may, sees
from ....storage.engine.pools import Isolation, Tx
from ....storage.status_pages.queries.status_page_subscribers import count_confirmed_of
from ....storage.status_pages.queries.status_pages import select_page_facts, select_status_pages_of
from ....storage.status_pages.rows import PageRow
from ....storage.status_pages.rules.status_page import Audience, Visibility, render
from ....storage.status_pages.transactions.edit_pages import EDIT
from ...ui.formatting import count, number
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response, Route
from ...wire.scope_keys import org_of
from ..public import page_text as words
from .page_access import ALL, VIEW, reached_by, route

# Bound of a list page, because the status of each page is computed.
PAGE_ROWS: Final = 20
WHO: Final = {
    Visibility.LISTED: "Public",
    Visibility.UNLISTED: "With the link",
    Visibility.INTERNAL: "Members only",
}
_TROUBLE: Final = ("down", "degraded")


class PagesQuery(msgspec.Struct, frozen=True):
    page: int = 1


@dataclass(frozen=True, slots=True)
class StatusPageItem:
    """`address` is empty if the page has no address that the user can open."""

    uid: UUID
    title: str
    slug: str
    address: str
    who: str
    mark: str
    says: str
    components: int
    subscribers: int


async def render_page_list(ask: Request) -> Response:
    async with ask.context.pool.transaction(
        "console_status_pages", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_status_pages_of(tx, org_of(ask))
        seen = [row for row in rows if sees(ask.who, Scope(row.org, row.project))]
        pages = max(-(-len(seen) // PAGE_ROWS), 1)
        at = min(max(ask.query.page, 1), pages)
        listed = seen[(at - 1) * PAGE_ROWS : at * PAGE_ROWS]
        readers = await count_confirmed_of(tx, org_of(ask), [row.id for row in listed])
        lines = [await _item(ask, tx, row, readers.get(row.id, 0)) for row in listed]
    mark, sentence = summary(lines, len(seen))
    return page(
        "status_pages/console/page_list.html",
        frame=frame,
        may_add=may(ask.who, EDIT, Scope(org_of(ask))) is AccessDecision.ALLOWED,
        mark=mark,
        sentence=sentence,
        lines=lines,
        page=at,
        pages=pages,
    )


async def _item(ask: Request, tx: Tx, row: PageRow, subscribers: int) -> StatusPageItem:
    found = await reached_by(ask, tx, row)
    facts = await select_page_facts(tx, found.shown, Audience.PUBLIC, days=False)
    told = render(facts, Audience.PUBLIC)
    says = words.status_line(told)
    visibility = Visibility(row.visibility)
    opens = visibility is Visibility.LISTED or (
        visibility is Visibility.UNLISTED and found.may_edit
    )
    return StatusPageItem(
        row.uid,
        row.title,
        row.slug,
        found.address if opens else "",
        WHO[visibility],
        says.mark,
        says.text,
        len(told.components),
        subscribers,
    )


def summary(lines: Sequence[StatusPageItem], many: int) -> tuple[str, str]:
    """Returns (mark, sentence), without a statement if the list has further pages."""
    if not many:
        return "", "No status page yet"
    if many > len(lines):
        return "", count(many, "status page")
    trouble = sum(line.mark in _TROUBLE for line in lines)
    if not trouble:
        only = "The status page reports" if many == 1 else "No status page reports"
        return ("up", f"{only} no problem") if many == 1 else ("up", f"{only} a problem")
    worst = "down" if any(line.mark == "down" for line in lines) else "degraded"
    if many == 1:
        return worst, "The status page reports a problem"
    verb = "reports" if trouble == 1 else "report"
    return worst, f"{number(trouble)} of {number(many)} status pages {verb} a problem"


ROUTES: Final[tuple[Route, ...]] = (
    route("GET", ALL, render_page_list, "The organization's status pages.", VIEW, PagesQuery),
)
