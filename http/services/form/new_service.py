"""Form of a new service in three steps: name and members, objective, paging.

Each step is a POST to its own URL, with the input of the other steps in hidden fields. Nothing is
stored before the last step, which is one transaction: a refusal stores no part.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.alerting.transactions.edit_alerting import AlertingEdit, edit_alerting
from ....storage.core.instant import DAY
from ....storage.core.refusal import Refused
from ....storage.core.runbook import RUNBOOK_LONGEST
from ....storage.engine.pools import Tx
from ....storage.objectives.transactions.set_service_objective import put_target_of
from ....storage.oncall.queries.escalation_policies import select_policies_of
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_declaration import DESCRIPTION_LONGEST, MEMBERS_MOST
from ....storage.services.rules.service_report import WINDOWS
from ....storage.services.transactions.create_service import ServiceDraft, create_service
from ....storage.services.transactions.declare_service import DeclarationDraft, declare
from ....storage.services.transactions.lock_service import EDIT
from ....storage.services.transactions.set_paging_target import put_first_policy
from ...ui.form_inputs import NONE, FieldFault, decimal, fault_of, typed_of
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, whole_number
from ...ui.formatting import count, number
from ...ui.pickers.fields import is_pick
from ...ui.pickers.objects import PickPlace
from ...ui.reliability_text import LABELS, precisely
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .member_fields import (
    MODES,
    REGION_MODES,
    declared,
    draft_of,
    values,
    with_defaults,
    with_members,
)

_OBJECTIVES: Final = (("99.5%", 200), ("99.9%", 1_000), ("99.95%", 2_000))
_STEP_OF: Final = {
    "objective": 2,
    "window": 2,
    "policy": 3,
    "confirm_evaluations": 3,
    "renotify_seconds": 3,
    "runbook_url": 3,
}
_TEXTS: Final = ("name", "slug", "description", "backfill_from")
_OBJECTIVE: Final = ("objective", "window")
_PAGING: Final = ("policy", "page_when", "renotify", "runbook_url")
_FIRST: Final = {"window": "30d", "paging": "monitors", "page_when": "down", "renotify": "0"}


class StepQuery(msgspec.Struct, frozen=True):
    step: Literal["1", "2", "3"] = "1"


async def render_new_service(ask: Request) -> Response:
    """Returns the first step: without input, the later steps have nothing to show."""
    typed, members, sli = declared(None, {})
    return await _form(ask, 1, typed, members, sli)


async def submit_new_service(ask: Request) -> Response:
    ask, fault = await with_members(ask, _place(ask))
    act = stripped(ask, "act")
    if fault.text or is_pick(act):
        return await _again(ask, fault, 1)
    here = int(ask.query.step)
    if act != "save":
        step = int(act[5:]) if act in ("step.1", "step.2", "step.3") else here
        try:
            if step > 1:
                _check_first(ask)
            if step > 2:
                _objective(ask)
        except Refused as refused:
            return await _again(ask, fault_of(refused))
        return await _again(ask, NONE, step)
    try:
        return redirect(f"/services/{await _create(ask)}")
    except Refused as refused:
        return await _again(ask, fault_of(refused))


def _check_first(ask: Request) -> DeclarationDraft:
    if not stripped(ask, "name"):
        raise Refused("invalid", "name", "must not be empty")
    return draft_of(ask)


def _objective(ask: Request) -> float | None:
    """Returns the objective in percent, None without one."""
    text = stripped(ask, "objective")
    if not text:
        return None
    aimed = decimal("objective", text)
    if not 0 < aimed < 100:
        raise Refused("invalid", "objective", "must be above 0 and below 100")
    return aimed


async def _create(ask: Request) -> UUID:
    project = ask.ids["projectID"]
    draft = ServiceDraft(
        name=stripped(ask, "name"),
        slug=stripped(ask, "slug") or None,
        description=stripped(ask, "description").replace("\r\n", "\n"),
        runbook_url=stripped(ask, "runbook_url"),
    )
    declaration = draft_of(ask)
    window = stripped(ask, "window") or "30d"
    if window not in WINDOWS:
        raise Problem("Unknown action")
    aimed = _objective(ask)
    days = ask.context.options.heartbeat_days
    async with ask.context.pool.transaction("console_create_service") as tx:
        row = await create_service(tx, ask.who, project, draft)
        if declaration.monitors:
            await declare(tx, ask.who, project, row.uid, declaration, days)
        if policy := stripped(ask, "policy"):
            await put_first_policy(tx, ask.who, row, policy)
        # The rest writes rows of the new service, which no other transaction sees.
        tx.holds_all()
        if aimed is not None:
            await put_target_of(tx, ask.who, row, window, aimed)
        await _set_paging(ask, tx, row)
    return row.uid


async def _set_paging(ask: Request, tx: Tx, row: ServiceRow) -> None:
    if stripped(ask, "paging") == "service":
        both = stripped(ask, "page_when") == "both"
        renotify = whole_number("renotify_seconds", stripped(ask, "renotify") or "0")
        edit = AlertingEdit(
            owns_paging=True,
            page_on=frozenset({"down", "degraded"} if both else {"down"}),
            renotify_seconds=renotify,
        )
        await edit_alerting(tx, ask.who, row.project_uid, row.uid, edit)


async def _again(ask: Request, fault: FieldFault, step: int | None = None) -> Response:
    """Returns the form with the submitted values, at the step of the fault without `step`."""
    sli = ask.form.get("sli", [])
    members = [*ask.form.get("member", []), *sli]
    at = _STEP_OF.get(fault.field, 1) if step is None else step
    return await _form(ask, at, typed_of(ask), members, sli, fault)


def _place(ask: Request) -> PickPlace:
    return PickPlace(org_of(ask), project_of(ask), f"/projects/{ask.ids['projectID']}")


async def _form(
    ask: Request,
    step: int,
    typed: Mapping[str, str],
    members: Sequence[str],
    sli: Sequence[str],
    fault: FieldFault = NONE,
) -> Response:
    names = (*_TEXTS, *_OBJECTIVE, *_PAGING)
    full = {**dict.fromkeys(names, ""), **_FIRST, **with_defaults(typed)}
    rules = {mode.value: words for mode, words in (*MODES, *REGION_MODES)}
    counting = len(set(sli))
    others = len(set(members) - set(sli))
    async with ask.context.pool.transaction("console_service_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        policies = await select_policies_of(tx, org_of(ask), project_of(ask))
        shown = await values(tx, _place(ask), full, members, sli)
    said = f"{count(counting, 'SLI member')}, {count(others, 'context member')}"
    return page(
        "services/form/new_service.html",
        status=400 if fault.text else 200,
        frame=frame,
        row=None,
        revision=0,
        step=step,
        typed=full,
        kept=_kept(step, full, members, sli),
        fault=fault,
        policies=policies,
        windows=list(LABELS.items()),
        window_said=LABELS.get(full["window"], ""),
        budgets=[
            (name, precisely(DAY // part), precisely(30 * DAY // part))
            for name, part in _OBJECTIVES
        ],
        members_said=said,
        rule_said=rules.get(full["mode"], ""),
        region_said=rules.get(full["region_mode"], ""),
        members_most=MEMBERS_MOST,
        runbook_longest=RUNBOOK_LONGEST,
        description_longest=number(DESCRIPTION_LONGEST),
        **shown,
    )


def _kept(
    step: int, typed: Mapping[str, str], members: Sequence[str], sli: Sequence[str]
) -> list[tuple[str, str]]:
    """Returns the hidden fields: the input of the other steps."""
    found: list[tuple[str, str]] = []
    if step != 1:
        rules = [name for name in with_defaults({}) if name in typed]
        found += [(name, typed[name]) for name in (*_TEXTS, *rules)]
        found += [("member", uid) for uid in members if uid not in sli]
        found += [("sli", uid) for uid in sli]
    if step != 2:
        found += [(name, typed[name]) for name in _OBJECTIVE]
    if step != 3:
        found += [(name, typed[name]) for name in _PAGING]
    return found


_PATH: Final = "/projects/{projectID}/services/new"
_SCOPE: Final = ("project", "projectID")

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", _PATH, _SCOPE, render_new_service, "The form of a new service.", StepQuery),
    _route("POST", _PATH, _SCOPE, submit_new_service, "Adds a service.", StepQuery),
)
