"""Form of a gate policy, of a service or of the project.

A draft can be replayed over the past of a service before it is saved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal
from uuid import UUID

from ....storage.accounts.queries.object_marks import select_mark
from ....storage.accounts.transactions.object_marks import SETTINGS
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.gate.queries.gate_policies import select_governing, select_policy
from ....storage.gate.rows import GatePolicyRow
from ....storage.gate.rules.gate import GateClause, GateClauseAssignment, UnknownBehavior
from ....storage.gate.rules.gate_policy import (
    SEAL_LAG_LEAST_SECONDS,
    SEAL_LAG_MOST_SECONDS,
    Document,
    PolicySource,
    WindowMode,
)
from ....storage.gate.transactions.edit_policy import delete_policy, put_policy
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_report import WINDOWS
from ....storage.services.transactions.lock_service import EDIT
from ...ui.bundle_notice import MANAGED_SAID, Managed, managed
from ...ui.form_inputs import NONE, FieldFault, typed_of
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, whole_number
from ...ui.reliability_text import LABELS
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes.policy_replay import replay_draft
from .gate_screen import DAYS
from .gate_text import CLAUSE_WORDS, document_lines
from .replay_plot import ReplayPlot, drawn

_CONFLICT: Final = "revision_conflict"
_OVERTAKEN: Final = (
    "Another user changed the policy. Your input is kept: compare it with the"
    " saved policy, then save again."
)
_GONE: Final = "Another user deleted the policy. Your input is kept: save to create it again."
_NOT_DELETED: Final = {
    _CONFLICT: "Another user changed the policy. The current version is shown.",
    "not_configured": "Another user deleted the policy.",
    "managed_by_file": MANAGED_SAID,
}
# Initial draft: it blocks on certain facts and warns of risks.
_USUAL: Final = {
    GateClause.BUDGET_EXHAUSTED: GateClauseAssignment.BLOCK,
    GateClause.BUDGET_CONSUMED: GateClauseAssignment.WARN,
    GateClause.PAGE_BURN_FIRING: GateClauseAssignment.BLOCK,
    GateClause.TICKET_BURN_FIRING: GateClauseAssignment.WARN,
    GateClause.SERVICE_INCIDENT_OPEN: GateClauseAssignment.BLOCK,
}
_USUAL_TYPED: Final = {
    "windows": "30d",
    "percent": "75",
    "lag": "900",
    "unknown": UnknownBehavior.WARN.value,
    **{clause.value: assignment.value for clause, assignment in _USUAL.items()},
}
_FIELDS: Final = {
    "budget_consumed_percent": ("percent", "Used"),
    "max_seal_lag_seconds": ("lag", "Maximum data age"),
}


@dataclass(frozen=True, slots=True)
class PolicyFormData:
    """Data of the form.

    `service` is None for the policy of the project. `own` is the edited policy. `inherited` is the
    policy of the project, which applies to services without their own.
    """

    frame: PageLayout
    service: ServiceRow | None
    own: GatePolicyRow | None
    inherited: GatePolicyRow | None
    managed: Managed | None = None

    @property
    def revision(self) -> str:
        """Returns the revision of the edited policy, as the form submits it."""
        return "" if self.own is None else str(self.own.revision)

    @property
    def here(self) -> str:
        if self.service is None:
            return f"/projects/{self.frame.place.uid}/gate/policy"
        return f"/services/{self.service.uid}/gate/policy"

    @property
    def back(self) -> str:
        if self.service is None:
            return f"/projects/{self.frame.place.uid}/gate"
        return f"/services/{self.service.uid}/gate"


async def render_policy_form(ask: Request) -> Response:
    form = await _form(ask)
    return _render(form, _shown(form))


async def submit_policy_form(ask: Request) -> Response:
    form = await _form(ask)
    act = stripped(ask, "act")
    try:
        if act == "delete":
            await _delete(ask, form)
            return redirect(form.back)
        document = _read(ask, form)
        if act == "try" and form.service is not None:
            return await _try(ask, form, form.service, document)
        if act != "save":
            raise Problem("Unknown action")
        async with ask.context.pool.transaction("console_gate_policy") as tx:
            await put_policy(
                tx, ask.who, form.frame.place.uid, _uid(form), _revision(ask), document
            )
    except Refused as refused:
        return await _refused(ask, refused)
    return redirect(form.back)


async def _refused(ask: Request, refused: Refused) -> Response:
    """Returns the form with the current revision, so that a second save overwrites it."""
    form, typed = await _form(ask), typed_of(ask)
    if typed.get("act") == "delete":
        if refused.code not in _NOT_DELETED:
            raise refused
        return _render(form, _shown(form), fault=FieldFault("", _NOT_DELETED[refused.code]))
    if refused.code == "managed_by_file":
        return _render(form, typed, fault=FieldFault("", MANAGED_SAID))
    if refused.code != _CONFLICT:
        return _render(form, typed, fault=_fault(refused))
    typed = {**typed, "revision": form.revision}
    said = _GONE if form.own is None else _OVERTAKEN
    return _render(form, typed, fault=FieldFault("", said), is_overtaken=form.own is not None)


async def _try(
    ask: Request, form: PolicyFormData, service: ServiceRow, document: Document
) -> Response:
    """Replays a draft. A replay uses the same concurrency limit as a gate evaluation."""
    try:
        with ask.context.gate.permit(str(ask.who.uid), ask.context.clock()):
            found = await replay_draft(ask.context.pool, service, document, DAYS)
    except Problem as problem:
        seconds = problem.headers.get("Retry-After")
        if seconds is None:
            raise
        said = f"Rate limit reached. Retry in {seconds} s."
        reply = _render(form, typed_of(ask), fault=FieldFault("", said))
        headers = {**reply.headers, **problem.headers}
        return replace(reply, status=problem.status, headers=headers)
    return _render(form, typed_of(ask), tried=drawn(found, has_draft=True))


async def _delete(ask: Request, form: PolicyFormData) -> None:
    revision = _revision(ask)
    if revision is None:
        raise Refused("not_configured")
    async with ask.context.pool.transaction("console_gate_policy_delete") as tx:
        await delete_policy(tx, ask.who, form.frame.place.uid, _uid(form), revision)


def _uid(form: PolicyFormData) -> UUID | None:
    return None if form.service is None else form.service.uid


def _revision(ask: Request) -> int | None:
    text = stripped(ask, "revision")
    return whole_number("revision", text) if text else None


def _read(ask: Request, form: PolicyFormData) -> Document:
    windows = stripped(ask, "windows")
    if windows != "all" and windows not in WINDOWS:
        raise Problem("Unknown action")
    try:
        clauses = {
            clause: GateClauseAssignment(stripped(ask, clause.value)) for clause in GateClause
        }
        unknown = UnknownBehavior(stripped(ask, "unknown"))
    except ValueError:
        raise Problem("Unknown action") from None
    return Document(
        schema_version=_schema(form, windows),
        window_mode=WindowMode.ALL if windows == "all" else WindowMode.ONE,
        window=None if windows == "all" else windows,
        clauses=clauses,
        budget_consumed_percent=_within(ask, "budget_consumed_percent", 1, 100),
        max_seal_lag_seconds=_within(
            ask, "max_seal_lag_seconds", SEAL_LAG_LEAST_SECONDS, SEAL_LAG_MOST_SECONDS
        ),
        unknown_behavior=unknown,
    )


def _schema(form: PolicyFormData, windows: str) -> Literal[1, 2]:
    """Returns the schema version.

    A policy of schema 1 stays in it while it can express the form, so that an unchanged form
    changes no policy.
    """
    is_earlier = form.own is not None and form.own.document.schema_version == 1
    return 1 if is_earlier and windows != "all" else 2


def _within(ask: Request, field: str, least: int, most: int) -> int:
    value = whole_number(field, stripped(ask, _FIELDS[field][0]))
    if not least <= value <= most:
        raise Refused("invalid", field, f"must be {least}–{most}")
    return value


def _shown(form: PolicyFormData) -> dict[str, str]:
    shown = form.own or form.inherited
    typed = _USUAL_TYPED if shown is None else _typed(shown.document)
    return {**typed, "revision": form.revision}


def _typed(document: Document) -> dict[str, str]:
    return {
        "windows": document.window or "all",
        "percent": str(document.budget_consumed_percent),
        "lag": str(document.max_seal_lag_seconds),
        "unknown": document.unknown_behavior.value,
        **{clause.value: document.clauses[clause].value for clause in GateClause},
    }


def _fault(refused: Refused) -> FieldFault:
    if not refused.field:
        raise refused
    field, label = _FIELDS.get(refused.field, (refused.field, refused.field))
    return FieldFault(field, f"{label}: {refused.message}.")


async def _form(ask: Request) -> PolicyFormData:
    async with ask.context.pool.transaction("console_gate_policy_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        org, project = org_of(ask), project_of(ask)
        service = await _service(ask, tx)
        key = None if service is None else service.id
        own = await select_policy(tx, org, project, key)
        inherited = None
        if service is not None and own is None:
            inherited = await select_governing(tx, org, project, service.id)
        if service is None:
            mark = await select_mark(tx, org, project, SETTINGS, ask.ids["projectID"])
            notice = None if mark is None else managed(mark, orphan_works=True)
        else:
            notice = managed(service) if service.gate_managed else None
    return PolicyFormData(frame, service, own, inherited, notice)


async def _service(ask: Request, tx: Tx) -> ServiceRow | None:
    if "serviceID" not in ask.ids:
        return None
    row = await select_service(tx, ask.ids["serviceID"])
    if row is None:
        raise Problem("not_found")
    return row


def _render(
    form: PolicyFormData,
    typed: Mapping[str, str],
    *,
    fault: FieldFault = NONE,
    tried: ReplayPlot | None = None,
    is_overtaken: bool = False,
) -> Response:
    of = form.service.name if form.service else f"project {form.frame.place.project}"
    return page(
        "gate/console/policy_form.html",
        status=400 if fault.text else 200,
        frame=form.frame,
        here=form.here,
        back=form.back,
        of=of,
        service=form.service,
        own=form.own,
        inherits=form.inherited is not None and form.inherited.source is PolicySource.PROJECT,
        clauses=[(clause.value, words, clause) for clause, words in CLAUSE_WORDS.items()],
        assignments=[one.value for one in GateClauseAssignment],
        windows=[*LABELS.items()],
        behaviors=[one.value for one in UnknownBehavior],
        lag_least=SEAL_LAG_LEAST_SECONDS,
        lag_most=SEAL_LAG_MOST_SECONDS,
        typed={name: typed.get(name, "") for name in (*_USUAL_TYPED, "revision")},
        tried=tried,
        saved=document_lines(form.own.document) if form.own and is_overtaken else (),
        fault=fault,
        managed=form.managed,
    )


_OF_SERVICE: Final = ("/services/{serviceID}/gate/policy", ("service", "serviceID"))
_OF_PROJECT: Final = ("/projects/{projectID}/gate/policy", ("project", "projectID"))

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", *_OF_SERVICE, render_policy_form, "Form of a service's gate policy."),
    _route(
        "POST", *_OF_SERVICE, submit_policy_form, "Preview, save or delete a service's gate policy."
    ),
    _route("GET", *_OF_PROJECT, render_policy_form, "Form of the project's gate policy."),
    _route("POST", *_OF_PROJECT, submit_policy_form, "Save or delete the project's gate policy."),
)
