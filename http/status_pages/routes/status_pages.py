"""Routes of status pages and their components, for editors."""

from dataclasses import asdict
from functools import partial
from typing import Final

import msgspec

from ....storage.accounts.rules.access import AccessDecision, Need, Permission, Scope, may, sees
from ....storage.core.instant import to_text
from ....storage.engine.pools import Isolation
from ....storage.status_pages.queries.status_page_components import select_components_of
from ....storage.status_pages.queries.status_pages import select_status_page, select_status_pages_of
from ....storage.status_pages.rows import ComponentRow, PageRow
from ....storage.status_pages.rules.branding import PageBranding
from ....storage.status_pages.rules.status_page import ComponentSource, ComponentStatus, Visibility
from ....storage.status_pages.rules.status_page_edit import (
    BindingTarget,
    ComponentDraft,
    ComponentEdit,
    PageDraft,
)
from ....storage.status_pages.transactions.convert_component import (
    ConversionBase,
    ConversionPreview,
    convert_component,
    preview_conversion,
)
from ....storage.status_pages.transactions.edit_components import (
    create_component,
    delete_component,
    update_component,
)
from ....storage.status_pages.transactions.edit_pages import (
    EDIT,
    create_page,
    delete_page,
    page_token,
    update_page,
)
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of
from ..schemas import status_pages as schemas
from ..schemas.status_pages import (
    Component,
    ConversionTarget,
    CreateComponent,
    CreateStatusPage,
    PageDomain,
    StatusPage,
    UpdateComponent,
    UpdateStatusPage,
)
from .page_domains import apply_domain, missing_proof
from .status_page_json import component_json, summary_json

_ALL: Final = "/api/v1/organizations/{orgID}/status-pages"
_ONE: Final = "/api/v1/status-pages/{pageID}"
_COMPONENT: Final = "/api/v1/components/{componentID}"


def _status_page_json(ask: Request, row: PageRow) -> StatusPage:
    """Returns the page. Only editors get the token of an unlisted page and the missing proof."""
    may_edit = may(ask.who, EDIT, Scope(row.org, row.project)) is AccessDecision.ALLOWED
    claim = row.claim if may_edit else None
    return StatusPage(
        id=row.uid,
        org_id=row.org_uid,
        project_id=known(row.project_uid),
        slug=row.slug,
        title=row.title,
        visibility=Visibility(row.visibility),
        domain=known(row.domain),
        domain_proof=known(None if claim is None else missing_proof(claim, ask.context.options)),
        unlisted_token=known(page_token(row, ask.context.keyring) if may_edit else None),
        branding=schemas.PageBranding(**asdict(row.branding)),
        timezone=row.time_zone,
        language=row.language,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


def _component(ask: Request, row: ComponentRow) -> Component:
    """Returns the component. Its source is present only if the caller may see its project."""
    is_seen = row.home is not None and sees(ask.who, Scope(row.org, row.home))
    return Component(
        id=row.uid,
        status_page_id=row.page_uid,
        name=row.name,
        description=row.description,
        group=row.group,
        position=row.position,
        org_id=row.org_uid,
        source=ComponentSource(row.source),
        source_project=known(row.home_uid if is_seen else None),
        monitor_id=known(row.monitor_uid if is_seen else None),
        service_id=known(row.service_uid if is_seen else None),
        manual_status=known(
            None if row.manual_status is None else ComponentStatus(row.manual_status)
        ),
        show_latency=row.show_latency,
        revision=row.revision,
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


async def list_pages(ask: Request) -> list[StatusPage]:
    async with ask.context.pool.transaction("list_status_pages", read_only=True) as tx:
        rows = await select_status_pages_of(tx, org_of(ask))
    return [
        _status_page_json(ask, row) for row in rows if sees(ask.who, Scope(row.org, row.project))
    ]


async def create(ask: Request) -> StatusPage:
    body: CreateStatusPage = ask.body
    draft = PageDraft(
        slug=body.slug,
        title=body.title,
        visibility=body.visibility,
        project=given(body.project_id),
    )
    context = ask.context
    async with context.pool.transaction("create_status_page") as tx:
        row = await create_page(tx, ask.who, ask.ids["orgID"], draft, context.keyring)
    return _status_page_json(ask, row)


async def read(ask: Request) -> StatusPage:
    async with ask.context.pool.transaction("read_status_page", read_only=True) as tx:
        row = await select_status_page(tx, ask.ids["pageID"])
    if row is None:
        raise Problem("not_found")
    return _status_page_json(ask, row)


async def update(ask: Request) -> StatusPage:
    body: UpdateStatusPage = ask.body
    context = ask.context
    async with context.pool.transaction("update_status_page") as tx:
        row = await update_page(
            tx,
            ask.who,
            ask.ids["pageID"],
            given(body.title),
            given(body.visibility),
            context.keyring,
            _branding(body),
            given(body.timezone),
            given(body.language),
        )
    return _status_page_json(ask, row)


def _branding(body: UpdateStatusPage) -> PageBranding | None:
    own = given(body.branding)
    return None if own is None else PageBranding(**msgspec.structs.asdict(own))


async def name(ask: Request) -> StatusPage:
    return _status_page_json(ask, await apply_domain(ask, ask.body.domain))


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_status_page") as tx:
        await delete_page(tx, ask.who, ask.ids["pageID"])


async def list_components(ask: Request) -> list[Component]:
    async with ask.context.pool.transaction("list_components", read_only=True) as tx:
        page = await select_status_page(tx, ask.ids["pageID"])
        if page is None:
            raise Problem("not_found")
        rows = await select_components_of(tx, page.org, page.id)
    return [_component(ask, row) for row in rows]


async def create_one(ask: Request) -> Component:
    body: CreateComponent = ask.body
    draft = ComponentDraft(
        name=body.name,
        description=body.description,
        group=body.group,
        position=given(body.position),
        target=_target(body),
        show_latency=body.show_latency,
    )
    async with ask.context.pool.transaction("create_component") as tx:
        row = await create_component(tx, ask.who, ask.ids["pageID"], draft)
    return _component(ask, row)


async def update_one(ask: Request) -> Component:
    body: UpdateComponent = ask.body
    edit = ComponentEdit(
        name=body.name,
        description=given(body.description),
        group=given(body.group),
        position=given(body.position),
        manual_status=given(body.manual_status),
        show_latency=given(body.show_latency),
    )
    async with ask.context.pool.transaction("update_component") as tx:
        row = await update_component(tx, ask.who, ask.ids["componentID"], edit)
    return _component(ask, row)


async def delete_one(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_component") as tx:
        await delete_component(tx, ask.who, ask.ids["componentID"])


async def preview(ask: Request) -> schemas.ConversionPreview:
    body: ConversionTarget = ask.body
    async with ask.context.pool.transaction(
        "preview_conversion", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        made = await preview_conversion(
            tx, ask.who, ask.ids["componentID"], body.source, _target(body)
        )
    return _preview(made)


async def convert(ask: Request) -> Component:
    body: ConversionTarget = ask.body
    seen = ConversionBase(
        revision=_required("revision", given(body.revision)),
        generation=_required("page_generation", given(body.page_generation)),
    )
    async with ask.context.pool.transaction("convert_component") as tx:
        row = await convert_component(
            tx, ask.who, ask.ids["componentID"], body.source, _target(body), seen
        )
    return _component(ask, row)


def _target(body: CreateComponent | ConversionTarget) -> BindingTarget:
    return BindingTarget(
        monitor=given(body.monitor_id),
        service=given(body.service_id),
        manual_status=given(body.manual_status),
    )


def _required(field: str, value: int | None) -> int:
    if value is None:
        raise Problem(f"{field}: is required")
    return value


def _preview(made: ConversionPreview) -> schemas.ConversionPreview:
    return schemas.ConversionPreview(
        component=component_json(made.component),
        proposed=component_json(made.proposed),
        summary=summary_json(made.summary),
        proposed_summary=summary_json(made.proposed_summary),
        revision=made.revision,
        page_generation=made.generation,
        no_op=made.reverts_to is None,
        reverts_to=known(made.reverts_to),
        notes=list(made.notes),
    )


_VIEW: Final = Permission(Need.VIEWER)
_IN_ORG: Final = ("organization", "orgID")
_IN_PAGE: Final = ("page", "pageID")
_IN_COMPONENT: Final = ("component", "componentID")

_all: Final = partial(Route, path=_ALL, scope=_IN_ORG, tag="status_pages")
_one: Final = partial(Route, path=_ONE, scope=_IN_PAGE, tag="status_pages")

ROUTES: Final = (
    _all(
        method="GET",
        action=_VIEW,
        handler=list_pages,
        summary="The organization's status pages that the caller sees.",
        answer=list[StatusPage],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create a status page of the organization or of a project.",
        body=CreateStatusPage,
        answer=StatusPage,
        status=201,
        also=(409,),
    ),
    _one(
        method="GET",
        action=_VIEW,
        handler=read,
        summary="A status page.",
        answer=StatusPage,
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Change a status page; becoming unlisted renews its token.",
        body=UpdateStatusPage,
        answer=StatusPage,
    ),
    Route(
        method="PUT",
        path=f"{_ONE}/domain",
        action=EDIT,
        scope=_IN_PAGE,
        handler=name,
        summary="Claim the host name of a status page, check its proof, or remove it.",
        tag="status_pages",
        body=PageDomain,
        answer=StatusPage,
        also=(409, 429),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Remove a status page with its components.",
        status=204,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/components",
        action=_VIEW,
        scope=_IN_PAGE,
        handler=list_components,
        summary="List the components of a status page, in display order.",
        tag="status_pages",
        answer=list[Component],
    ),
    Route(
        method="POST",
        path=f"{_ONE}/components",
        action=EDIT,
        scope=_IN_PAGE,
        handler=create_one,
        summary="Add a component: a monitor, a service or a manual status.",
        tag="status_pages",
        body=CreateComponent,
        answer=Component,
        status=201,
        also=(409,),
    ),
    Route(
        method="PATCH",
        path=_COMPONENT,
        action=EDIT,
        scope=_IN_COMPONENT,
        handler=update_one,
        summary="Edit a component; its binding does not change.",
        tag="status_pages",
        body=UpdateComponent,
        answer=Component,
    ),
    Route(
        method="DELETE",
        path=_COMPONENT,
        action=EDIT,
        scope=_IN_COMPONENT,
        handler=delete_one,
        summary="Remove a component from its page.",
        tag="status_pages",
        status=204,
    ),
    Route(
        method="POST",
        path=f"{_COMPONENT}/conversion/preview",
        action=EDIT,
        scope=_IN_COMPONENT,
        handler=preview,
        summary="Preview the effect of another binding of a component.",
        tag="status_pages",
        body=ConversionTarget,
        answer=schemas.ConversionPreview,
    ),
    Route(
        method="POST",
        path=f"{_COMPONENT}/conversion",
        action=EDIT,
        scope=_IN_COMPONENT,
        handler=convert,
        summary="Change the binding of a component as previewed.",
        tag="status_pages",
        body=ConversionTarget,
        answer=Component,
        also=(409,),
    ),
)
