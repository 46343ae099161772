"""Form that opens an incident about a service, components of status pages, or a monitor.

It shows before the submission which status pages display the incident, and how many subscribers are
notified.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from ....storage.accounts.rules.access import AccessDecision, Scope, may
from ....storage.core.refusal import Refused, expect
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.incident_templates import (
    select_template_of,
    select_templates_of,
)
from ....storage.incidents.rules.contradiction import Comparison, compare
from ....storage.incidents.rules.incident import (
    BODY_LONGEST,
    TITLE_LONGEST,
    IncidentImpact,
    IncidentStatus,
    body_fault,
    normal_lines,
    title_fault,
)
from ....storage.incidents.transactions.edit_incidents import EDIT
from ....storage.oncall.queries.escalation_policies import select_policies_of
from ....storage.services.queries.pickable_objects import Pickable, PickableKind
from ....storage.status_pages.queries.incident_measurements import select_measured
from ....storage.status_pages.queries.incident_status_pages import IncidentSubject
from ....storage.status_pages.queries.status_page_components import select_components_of
from ....storage.status_pages.queries.status_pages import select_status_pages_of
from ....storage.status_pages.rows import ComponentRow
from ....storage.status_pages.rules.status_page import ComponentSource, ComponentStatus
from ....storage.status_pages.transactions.edit_pages import EDIT as EDIT_PAGE
from ...status_pages.public.page_text import STATUS
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, uuid_in, value_of
from ...ui.formatting import count, number
from ...ui.pickers.fields import PickerOption
from ...ui.pickers.objects import named, options_of
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import incidents as api
from ..schemas import CreateIncident, NamedComponent
from .contradiction_fact import READ, fact_of, is_unread
from .duplicate_submit import opened_already
from .public_preview import IncidentSketch, PublicPreview, read_sketch_outside

PAGES_MOST: Final = 50
# Labels of `about`, with an explanation.
SUBJECTS: Final = {
    "service": ("A service", "Its escalation policy is started."),
    "components": ("Components of a status page", "Something that is not measured."),
    "monitor": ("A monitor", "For a target that belongs to no service."),
}


class NewIncidentQuery(msgspec.Struct, frozen=True):
    """`template` is the uid of an incident template that fills the fields."""

    template: str = ""


@dataclass(frozen=True, slots=True)
class NewIncidentInput:
    """Submitted values, with the fault of a refused form. The default is the empty form."""

    about: str = "service"
    service: str = ""
    monitor: str = ""
    # Id of the escalation policy, empty for that of the service or monitor.
    policy: str = ""
    # Named components with the state to set, empty for no change.
    components: dict[UUID, str] = field(default_factory=dict)
    title: str = ""
    status: str = IncidentStatus.INVESTIGATING
    impact: str = IncidentImpact.MINOR
    body: str = ""
    public: bool = True
    template: str = ""
    faulty: str = ""
    fault: str = ""
    # Contradiction that the user must confirm. The incident was not opened.
    warned: Comparison | None = None

    @property
    def word(self) -> IncidentStatus:
        return IncidentStatus(self.status)


@dataclass(frozen=True, slots=True)
class PageComponents:
    """Components of a status page. An editor of the page sets the state of manual ones."""

    uid: UUID
    title: str
    may_edit: bool
    components: Sequence[ComponentRow]


async def render_new_incident(ask: Request) -> Response:
    query: NewIncidentQuery = ask.query
    if not query.template:
        return await _render(ask, NewIncidentInput())
    filled = await _filled(ask, NewIncidentInput(template=query.template))
    if filled is None:
        raise Problem("not_found")
    return await _render(ask, filled)


async def submit_new_incident(ask: Request) -> Response:
    """Shows the preview, or opens the incident through the handler of the API."""
    typed = _typed(ask)
    if value_of(ask, "act") == "preview":
        return await _render(ask, typed)
    if value_of(ask, "act") == "fill":
        filled = await _filled(ask, typed) if typed.template else typed
        gone = replace(typed, template="", faulty="template", fault="was deleted")
        return await _render(ask, filled or gone)
    try:
        async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
            monitor, service = await _subject(ask, tx, typed)
        body = CreateIncident(
            title=typed.title,
            status=IncidentStatus(typed.status),
            impact=IncidentImpact(typed.impact),
            body=typed.body,
            monitor_id=monitor.uid if monitor else UNSET,
            service_id=service.uid if service else UNSET,
            escalation_policy_id=uuid_given(typed.policy) if typed.policy else UNSET,
            components=[
                NamedComponent(component_id=uid, status=ComponentStatus(state) if state else UNSET)
                for uid, state in typed.components.items()
            ],
            public=typed.public,
        )
        first = await opened_already(ask, body)
        if first is not None:
            return redirect(f"/incidents/{first}")
        warned = await _contradiction(ask, typed)
        if warned is not None:
            return await _render(ask, replace(typed, warned=warned))
        made = await api.create(replace(ask, body=body))
    except Refused as refused:
        if not refused.field:
            raise
        name = refused.field.removesuffix("_id").removeprefix("escalation_")
        return await _render(ask, replace(typed, faulty=name, fault=refused.message))
    return redirect(f"/incidents/{made.id}")


async def _filled(ask: Request, typed: NewIncidentInput) -> NewIncidentInput | None:
    """Returns the input with a copy of the template's texts.

    Returns None if the project has no such template.
    """
    uid = uuid_in(typed.template)
    async with ask.context.pool.transaction("console_fill_incident", read_only=True) as tx:
        row = await select_template_of(tx, org_of(ask), project_of(ask), uid)
    if row is None:
        return None
    return replace(typed, title=row.title, impact=row.impact, body=row.body, template=str(uid))


async def _contradiction(ask: Request, typed: NewIncidentInput) -> Comparison | None:
    """Returns the contradiction that the user has not confirmed. Raises Refused invalid."""
    expect("title", title_fault(typed.title))
    expect("body", body_fault(normal_lines(typed.body)))
    async with ask.context.pool.transaction("console_compare_incident", read_only=True) as tx:
        found = await _compared(ask, tx, typed)
    return found if is_unread(found, value_of(ask, READ)) else None


async def _compared(ask: Request, tx: Tx, typed: NewIncidentInput) -> Comparison:
    """Returns the comparison of a public message. Without a valid subject it finds no object."""
    if not typed.public:
        return Comparison(None)
    try:
        monitor, service = await _subject(ask, tx, typed)
    except Refused:
        return Comparison(typed.word)
    about = await _about(ask, tx, typed, monitor, service)
    return compare(typed.word, await select_measured(tx, about), tx.now)


async def _about(
    ask: Request,
    tx: Tx,
    typed: NewIncidentInput,
    monitor: Pickable | None,
    service: Pickable | None,
) -> IncidentSubject:
    """Returns the subject, without components of other projects, which the creation refuses."""
    pages = await _pages(ask, tx) if typed.components else []
    known = {component.uid for one in pages for component in one.components}
    return IncidentSubject(
        org=org_of(ask),
        project=project_of(ask),
        monitor=monitor.id if monitor else None,
        service=service.id if service else None,
        components=[uid for uid in typed.components if uid in known],
    )


def _typed(ask: Request) -> NewIncidentInput:
    about = value_of(ask, "about")
    try:
        components = {
            UUID(text): value_of(ask, f"state-{text}") for text in ask.form.get("component", [])
        }
        for state in components.values():
            if state:
                ComponentStatus(state)
        IncidentStatus(value_of(ask, "status"))
        IncidentImpact(value_of(ask, "impact"))
    except ValueError:
        raise Problem("Unknown action") from None
    return NewIncidentInput(
        about=about if about in SUBJECTS else "components",
        service=stripped(ask, "service"),
        monitor=stripped(ask, "monitor"),
        policy=value_of(ask, "policy"),
        components=components,
        title=stripped(ask, "title"),
        status=value_of(ask, "status"),
        impact=value_of(ask, "impact"),
        body=stripped(ask, "body"),
        public="public" in ask.form,
        template=value_of(ask, "template"),
    )


async def _subject(
    ask: Request, tx: Tx, typed: NewIncidentInput
) -> tuple[Pickable | None, Pickable | None]:
    """Returns the monitor and the service, at most one. Raises Refused invalid."""
    org, project = org_of(ask), project_of(ask)
    if typed.about == "monitor":
        found = await named(tx, org, project, PickableKind.MONITOR, typed.monitor, "monitor_id")
        if found is None:
            raise Refused("invalid", "monitor_id", "is required")
        return found, None
    if typed.about == "service":
        found = await named(tx, org, project, PickableKind.SERVICE, typed.service, "service_id")
        if found is None:
            raise Refused("invalid", "service_id", "is required")
        return None, found
    return None, None


async def _render(ask: Request, typed: NewIncidentInput) -> Response:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_new_incident", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        services = await options_of(tx, org, project, PickableKind.SERVICE, typed.service)
        monitors = await options_of(tx, org, project, PickableKind.MONITOR, typed.monitor)
        pages = await _pages(ask, tx)
        templates = await select_templates_of(tx, org, project)
        policies = await select_policies_of(tx, org, project)
        outside = await _outside(ask, tx, typed, frame.place.uid)
        fact = fact_of(typed.warned or await _compared(ask, tx, typed), tx.now)
    return page(
        "incidents/console/incident_new.html",
        status=400 if typed.fault else 200,
        frame=frame,
        typed=typed,
        subjects=SUBJECTS,
        lists=_lists(services, monitors),
        pages=pages,
        templates=[(str(row.uid), row.name) for row in templates],
        policies=[(str(row.uid), row.name) for row in policies],
        states=[(one.value, STATUS[one]) for one in ComponentStatus],
        impacts=list(IncidentImpact),
        statuses=list(IncidentStatus),
        outside=outside,
        fact=fact,
        told=_told(outside),
        title_longest=TITLE_LONGEST,
        body_longest=number(BODY_LONGEST),
        is_manual=lambda row: row.source == ComponentSource.MANUAL,
    )


def _lists(
    services: Sequence[PickerOption], monitors: Sequence[PickerOption]
) -> list[tuple[str, str, Sequence[PickerOption]]]:
    return [("service", "Service", services), ("monitor", "Monitor", monitors)]


def _told(outside: PublicPreview) -> str:
    many = sum(one.many for one in outside.readings)
    return f"Up to {count(many, 'subscriber')} will be notified." if many else "Nobody subscribed."


async def _pages(ask: Request, tx: Tx) -> list[PageComponents]:
    """Returns the status pages of the project and of its organization that have components."""
    found: list[PageComponents] = []
    for row in await select_status_pages_of(tx, org_of(ask)):
        if row.project not in (None, project_of(ask)) or len(found) >= PAGES_MOST:
            continue
        components = await select_components_of(tx, row.org, row.id)
        may_edit = may(ask.who, EDIT_PAGE, Scope(row.org, row.project)) is AccessDecision.ALLOWED
        if components:
            found.append(PageComponents(row.uid, row.title, may_edit, components))
    return found


async def _outside(ask: Request, tx: Tx, typed: NewIncidentInput, project: UUID) -> PublicPreview:
    """Returns the preview. An object that does not exist yet in the form is left out."""
    try:
        monitor, service = await _subject(ask, tx, typed)
    except Refused:
        if typed.about != "components" and not typed.components:
            return PublicPreview(
                typed.body, (), further=False, why=f"Name a {typed.about} to see the status pages."
            )
        monitor, service = None, None
    sketch = IncidentSketch(
        subject=await _about(ask, tx, typed, monitor, service),
        monitor=monitor.uid if monitor else None,
        service=service.uid if service else None,
        project=project,
        title=typed.title or "Title of the incident",
        status=typed.word,
        impact=IncidentImpact(typed.impact),
        body=typed.body,
        public=typed.public,
    )
    return await read_sketch_outside(tx, sketch)


_PATH: Final = "/projects/{projectID}/incidents/new"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=render_new_incident,
        summary="Form that opens an incident.",
        query=NewIncidentQuery,
    ),
    page_route(
        method="POST",
        path=_PATH,
        action=EDIT,
        scope=_PROJECT,
        handler=submit_new_incident,
        summary="Open an incident.",
    ),
)
