"""Form to create a status page: title, address and visibility."""

from dataclasses import replace
from typing import Final

from msgspec import UNSET

from ....storage.accounts.queries.projects import select_project
from ....storage.core.refusal import Refused
from ....storage.core.slug import slug_of
from ....storage.incidents.rules.incident import TITLE_LONGEST
from ....storage.status_pages.rules.status_page import Visibility
from ...ui.form_values import stripped
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ..routes import status_pages as api
from ..schemas.status_pages import CreateStatusPage
from .form_errors import NOTHING_TYPED, PageInput, typed_of
from .page_access import ALL, route
from .page_list import WHO

SCOPES: Final = ("project", "organization")


async def render_new_page(ask: Request) -> Response:
    return await _form(ask)


async def submit_new_page(ask: Request) -> Response:
    """Creates a page through the handler of the API."""
    scope = stripped(ask, "scope")
    if scope not in SCOPES:
        raise Problem("Unknown action")
    try:
        visibility = Visibility(stripped(ask, "visibility"))
    except ValueError:
        raise Problem("Unknown action") from None
    project = ask.ids["projectID"]
    body = CreateStatusPage(
        slug=stripped(ask, "slug") or slug_of(stripped(ask, "title"), "page"),
        title=stripped(ask, "title"),
        visibility=visibility,
        project_id=project if scope == "project" else UNSET,
    )
    async with ask.context.pool.transaction("console_page_scope", read_only=True) as tx:
        home = await select_project(tx, project)
    if home is None:
        raise Problem("not_found")
    try:
        made = await api.create(replace(ask, body=body, ids={"orgID": home.org_uid}))
    except Refused as refused:
        return await _form(ask, typed_of("page", ask.form, refused))
    return redirect(f"/projects/{project}/status-pages/{made.id}")


async def _form(ask: Request, typed: PageInput = NOTHING_TYPED) -> Response:
    async with ask.context.pool.transaction("console_page_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
    return page(
        "status_pages/console/new_page.html",
        status=400 if typed.fault else 200,
        frame=frame,
        typed=typed,
        visibilities=WHO,
        title_longest=TITLE_LONGEST,
    )


ROUTES: Final[tuple[Route, ...]] = (
    route("GET", f"{ALL}/new", render_new_page, "The form of a new status page."),
    route("POST", f"{ALL}/new", submit_new_page, "Makes a status page."),
)
