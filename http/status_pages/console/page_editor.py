"""Editor of a status page, with a preview of the public page.

Viewers see the settings read-only. Each form covers one thing and is validated by the handlers of
the API. A refused form keeps its submitted values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from msgspec import UNSET

from ....storage.accounts.queries.object_marks import select_mark
from ....storage.accounts.rules.access import Scope, sees
from ....storage.accounts.transactions.object_marks import PAGE
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.rules.incident import TITLE_LONGEST
from ....storage.status_pages.queries.branding import shown_branding
from ....storage.status_pages.queries.status_page_components import (
    select_component,
    select_components_of,
)
from ....storage.status_pages.queries.status_page_sources import (
    BindableSource,
    select_bound_names,
    select_found,
)
from ....storage.status_pages.rows import ComponentRow, PageRow
from ....storage.status_pages.rules.branding import FOOTER_LONGEST, Branding
from ....storage.status_pages.rules.component_latency import PLOTS_MOST, measures_latency
from ....storage.status_pages.rules.page_domain import DOMAIN_LONGEST
from ....storage.status_pages.rules.status_page import COMPONENTS_MOST, ComponentStatus, Visibility
from ....storage.status_pages.rules.status_page_edit import (
    COMPONENT_NAME_LONGEST,
    DESCRIPTION_LONGEST,
)
from ....storage.status_pages.transactions.edit_components import move_component
from ...ui.bundle_notice import Managed, managed
from ...ui.form_values import stripped, uuid_in
from ...ui.render import POLICY, page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import given
from ..public.page_text import STATUS
from ..routes import status_pages as api
from ..schemas.status_pages import (
    CreateComponent,
    PageBrandingRequest,
    PageDomain,
    UpdateComponent,
    UpdateStatusPage,
)
from .form_errors import NOTHING_TYPED, PageInput, typed_of
from .page_access import ONE, VIEW, PageAccess, reached, route
from .page_domain import domain_proof_item
from .page_list import WHO

# The editor frames the preview, which has the same origin.
FRAMES: Final = f"{POLICY}; frame-src 'self'"
FOUND_MOST: Final = 20
PAGE_ROWS: Final = 50
WANTED_LONGEST: Final = 200


class EditorQuery(msgspec.Struct, frozen=True):
    """Query of the editor.

    `find` is searched in monitors and services. `edit` is the component whose form is open. The
    list shows the page of components that contains `edit` or `at`.
    """

    find: str | None = None
    edit: str = ""
    at: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True)
class EditableComponentItem:
    """`bound` names the source of the component. `link` is set if the user may see the source."""

    row: ComponentRow
    bound: str
    link: str
    status: str


@dataclass(frozen=True, slots=True)
class PageEditorData:
    frame: PageLayout
    page: PageAccess
    rows: Sequence[ComponentRow]
    bound: Mapping[UUID, str]
    found: Sequence[BindableSource]
    installation: Branding
    managed: Managed | None


async def render_page_editor(ask: Request) -> Response:
    return await _render(ask, ask.query)


async def submit_page_editor(ask: Request) -> Response:
    """Executes the action of the button on the page of the path, regardless of form values."""
    async with ask.context.pool.transaction("console_page_named", read_only=True) as tx:
        await reached(ask, tx)
    what, find = stripped(ask, "act"), ask.form.get("find", [None])[0]
    form, _, name = what.partition(":")
    query = EditorQuery(find, page=_whole(stripped(ask, "page")))
    try:
        to = await _apply(ask, form, name)
    except Refused as refused:
        typed = typed_of(what if form in _NAMED else form, ask.form, refused)
        edit = name if form == "component" else ""
        return await _render(ask, msgspec.structs.replace(query, edit=edit), typed)
    component = to.removeprefix("c-") if to.startswith("c-") else ""
    return redirect(f"{_path(ask)}{_asked(query, component)}#{to}")


def _asked(query: EditorQuery, component: str) -> str:
    """Returns the query string that keeps the search and the position in the list."""
    named = {"find": query.find, "at": component or None}
    named["page"] = str(query.page) if query.page > 1 and not component else None
    given = {name: value for name, value in named.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


_LANGUAGES: Final = (
    ("auto", "That of the reader’s browser"),
    ("en", "English"),
    ("de", "German"),
)

# Forms that exist once per object. The object is part of the form name.
_NAMED: Final = ("add-monitor", "add-service", "component")


async def _apply(ask: Request, form: str, name: str) -> str:
    """Applies the form. Returns the fragment to scroll to."""
    match form:
        case "page":
            edit = UpdateStatusPage(
                title=stripped(ask, "title"),
                visibility=_visibility(ask),
                timezone=stripped(ask, "timezone") or UNSET,
                language=stripped(ask, "language") or UNSET,
            )
            await api.update(replace(ask, body=edit))
            return "main"
        case "branding":
            own = PageBrandingRequest(
                accent_color=stripped(ask, "accent_color"),
                logo_url=stripped(ask, "logo_url"),
                footer_text=stripped(ask, "footer_text").replace("\r\n", "\n"),
                support_url=stripped(ask, "support_url"),
            )
            await api.update(replace(ask, body=UpdateStatusPage(branding=own)))
            return "branding"
        case "domain":
            await api.name(replace(ask, body=PageDomain(domain=stripped(ask, "domain"))))
            return "own-host"
        case "add-monitor" | "add-service" | "add-manual":
            body = _new(ask, form, name)
            there = await _added_already(ask, body)
            if there is None:
                there = (await api.create_one(replace(ask, body=body))).id
            return f"c-{there}"
        case "component":
            row = await _component(ask, name)
            await api.update_one(_names_by_id(ask, row, body=_edit(ask, row)))
            return f"c-{row.uid}"
        case "up" | "down":
            row = await _component(ask, name)
            async with ask.context.pool.transaction("console_move_component") as tx:
                await move_component(tx, ask.who, row.uid, -1 if form == "up" else 1)
            return f"c-{row.uid}"
        case "remove":
            await api.delete_one(_names_by_id(ask, await _component(ask, name)))
            return "parts"
        case _:
            raise Problem("Unknown action")


def _names_by_id(ask: Request, row: ComponentRow, **given: Any) -> Request:
    return replace(ask, ids={**ask.ids, "componentID": row.uid}, **given)


async def _component(ask: Request, name: str) -> ComponentRow:
    """Returns a component of the page. Raises Problem `not_found`."""
    async with ask.context.pool.transaction("console_component", read_only=True) as tx:
        row = await select_component(tx, uuid_in(name))
    if row is None or row.page_uid != ask.ids["pageID"]:
        raise Problem("not_found")
    return row


def _new(ask: Request, form: str, name: str) -> CreateComponent:
    return CreateComponent(
        name=stripped(ask, "name"),
        group=stripped(ask, "group"),
        monitor_id=uuid_in(name) if form == "add-monitor" else UNSET,
        service_id=uuid_in(name) if form == "add-service" else UNSET,
        manual_status=_status(ask) if form == "add-manual" else UNSET,
    )


async def _added_already(ask: Request, body: CreateComponent) -> UUID | None:
    """Returns the id of an equal component, so that a repeated click adds none."""
    async with ask.context.pool.transaction(
        "console_find_duplicate_component", read_only=True
    ) as tx:
        page = (await reached(ask, tx)).row
        rows = await select_components_of(tx, page.org, page.id)
    wanted = (body.name, given(body.monitor_id), given(body.service_id), given(body.manual_status))
    found = {
        (row.name, row.monitor_uid, row.service_uid, row.manual_status): row.uid for row in rows
    }
    return found.get(wanted)


def _edit(ask: Request, row: ComponentRow) -> UpdateComponent:
    return UpdateComponent(
        name=stripped(ask, "name"),
        group=stripped(ask, "group"),
        description=stripped(ask, "description").replace("\r\n", "\n"),
        manual_status=UNSET if row.manual_status is None else _status(ask),
        show_latency=UNSET if _no_latency(row) and not row.show_latency else _is_ticked(ask),
    )


def _is_ticked(ask: Request) -> bool:
    return stripped(ask, "show_latency") == "on"


def _no_latency(row: ComponentRow) -> str:
    """Returns why the component cannot show latency, empty if it can."""
    if measures_latency(row.monitor_type):
        return ""
    if row.manual_status is not None:
        return "the status is set by hand"
    if row.service is not None:
        return "a service combines the checks of several monitors"
    if row.monitor is None:
        return "the monitored object was deleted"
    return "this type of monitor does not measure latency"


def _status(ask: Request) -> ComponentStatus:
    try:
        return ComponentStatus(stripped(ask, "manual_status"))
    except ValueError:
        raise Problem("Unknown action") from None


def _visibility(ask: Request) -> Visibility:
    try:
        return Visibility(stripped(ask, "visibility"))
    except ValueError:
        raise Problem("Unknown action") from None


def _path(ask: Request) -> str:
    return f"/projects/{ask.ids['projectID']}/status-pages/{ask.ids['pageID']}"


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 1


async def _render(ask: Request, query: EditorQuery, typed: PageInput = NOTHING_TYPED) -> Response:
    find = query.find
    facts = await _select_facts(ask, None if find is None else find.strip()[:WANTED_LONGEST])
    found = facts.page
    pages = max(-(-len(facts.rows) // PAGE_ROWS), 1)
    number = _number(facts.rows, query, pages)
    skipped = (number - 1) * PAGE_ROWS
    lines = [_item(ask, facts, row) for row in facts.rows[skipped : skipped + PAGE_ROWS]]
    edited = next((line for line in lines if str(line.row.uid) == query.edit), None)
    reply = page(
        "status_pages/console/page_editor.html",
        status=400 if typed.fault else 200,
        frame=facts.frame,
        here=_path(ask),
        page=found,
        who=WHO[Visibility(found.row.visibility)],
        opens=found.row.visibility != Visibility.INTERNAL,
        lines=lines,
        edited=edited,
        no_latency="" if edited is None else _no_latency(edited.row),
        plots_most=PLOTS_MOST,
        installation=facts.installation,
        footer_longest=FOOTER_LONGEST,
        skipped=skipped,
        many=len(facts.rows),
        number=number,
        pages=pages,
        find=find,
        found=facts.found,
        found_most=FOUND_MOST,
        typed=typed,
        visibilities=WHO,
        languages=_LANGUAGES,
        statuses=STATUS,
        components_most=COMPONENTS_MOST,
        title_longest=TITLE_LONGEST,
        name_longest=COMPONENT_NAME_LONGEST,
        description_longest=DESCRIPTION_LONGEST,
        domain_longest=DOMAIN_LONGEST,
        proof=domain_proof_item(found.row, ask.context.options, ask.context.clock()),
        snippets=_snippets(found.address),
        managed=facts.managed,
        fixed=facts.managed is not None and facts.managed.is_read_only,
    )
    return replace(reply, headers={**reply.headers, "Content-Security-Policy": FRAMES})


def _snippets(address: str) -> list[tuple[str, str]]:
    """Returns (label, HTML or Markdown) of the badge and the widget of a listed page."""
    page_ = address.rstrip("/")
    return [
        ("Badge, Markdown", f"[![Status]({page_}/badge.svg)]({address})"),
        (
            "Badge, HTML",
            f'<a href="{address}"><img src="{page_}/badge.svg" alt="Status" height="20"></a>',
        ),
        (
            "Widget, HTML",
            f'<iframe src="{page_}/widget" title="Status" width="320" height="72"></iframe>',
        ),
    ]


def _number(rows: Sequence[ComponentRow], query: EditorQuery, pages: int) -> int:
    """Returns the number of the list page to show."""
    named = query.edit or query.at
    place = next((n for n, row in enumerate(rows) if str(row.uid) == named), None)
    return min(max(query.page, 1), pages) if place is None else place // PAGE_ROWS + 1


async def _select_facts(ask: Request, find: str | None) -> PageEditorData:
    async with ask.context.pool.transaction("console_status_page", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        found = await reached(ask, tx)
        row = found.row
        hits: Sequence[BindableSource] = ()
        if find is not None and found.may_edit:
            hits = await select_found(tx, row.org, row.id, row.project, find, FOUND_MOST + 1)
        return PageEditorData(
            frame,
            found,
            await select_components_of(tx, row.org, row.id),
            await select_bound_names(tx, row.org, row.id),
            hits,
            await shown_branding(tx),
            await _managed(tx, row),
        )


async def _managed(tx: Tx, row: PageRow) -> Managed | None:
    if row.project is None:
        return None
    mark = await select_mark(tx, row.org, row.project, PAGE, row.uid)
    return None if mark is None else managed(mark, orphan_works=True)


def _item(ask: Request, facts: PageEditorData, row: ComponentRow) -> EditableComponentItem:
    """Returns the item. Its source is named only if the user may see the source's project."""
    if row.manual_status is not None:
        return EditableComponentItem(row, "", "", STATUS[ComponentStatus(row.manual_status)])
    name = facts.bound.get(row.uid)
    if name is None:
        return EditableComponentItem(row, "monitored object was deleted", "", "")
    if row.home is None or not sees(ask.who, Scope(row.org, row.home)):
        return EditableComponentItem(row, f"a {row.source} of another project", "", "")
    link = f"/{row.source}s/{row.monitor_uid or row.service_uid}"
    return EditableComponentItem(row, f"{row.source} {name}", link, "")


ROUTES: Final[tuple[Route, ...]] = (
    route("GET", ONE, render_page_editor, "The editor of a status page.", VIEW, EditorQuery),
    route("POST", ONE, submit_page_editor, "Edit a status page or a component."),
)
