"""Form of an escalation policy: its steps with their targets. Submitted values are kept."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from uuid import UUID

from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.oncall.queries.escalation_policies import select_policy, select_targets
from ....storage.oncall.rows import EscalationPolicyRow
from ....storage.oncall.rules.escalation import ACK_TIMEOUT_SECONDS, STEPS, TargetKind
from ....storage.oncall.transactions.edit_escalation_policies import EDIT, POLICIES_OF_PROJECT_MOST
from ....storage.services.queries.pickable_objects import (
    PickableKind,
    PickableType,
    select_chosen,
)
from ...ui.bundle_notice import MANAGED_SAID, managed
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, uuid_or_none, value_of, whole_number
from ...ui.pickers.fields import ADD, PickerField, is_pick
from ...ui.pickers.objects import PickPlace, field_of, with_picks
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...ui.time_inputs import length_typed
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import escalation_policies as api
from ..schemas import CreateEscalationPolicy, EscalationStepRequest, EscalationTargetRequest

# Empty steps that the form offers after the filled ones.
_SPARE: Final = 2
_SAID: Final = {
    "policy_quota": f"Limit: {POLICIES_OF_PROJECT_MOST} escalation policies per project.",
    "managed_by_file": MANAGED_SAID,
    "in_use": "In use; remove it from monitors, services, alert routes and other policies first.",
}


_TARGET: Final = PickableKind.TARGET
_NAMES: Final = dict.fromkeys((f"targets-{n}" for n in range(STEPS[1])), _TARGET)
_KINDS: Final = {
    PickableType.SCHEDULE: TargetKind.SCHEDULE,
    PickableType.PERSON: TargetKind.PERSON,
    PickableType.POLICY: TargetKind.POLICY,
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """`targets` are ids. `text` is typed and not yet a target."""

    after: str
    targets: list[str]
    text: str = ""


@dataclass(frozen=True, slots=True)
class StepFields:
    """Step of the shown form."""

    after: str
    targets: PickerField


@dataclass(frozen=True, slots=True)
class EscalationFormData:
    row: EscalationPolicyRow | None
    steps: list[StepRow]


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """Values of the form, with the fault of a refused one."""

    name: str
    steps: list[StepRow]
    repeat_last: bool = False
    ack_minutes: str = ""
    wrong: str = ""
    field: str = ""


_LEAST, _MOST = (seconds // 60 for seconds in ACK_TIMEOUT_SECONDS)
_ACK_WORDS: Final = f"must be empty, or {_LEAST} to {_MOST} minutes"


async def render_escalation_policy_form(ask: Request) -> Response:
    ground = await _ground(ask)
    row = ground.row
    if row is None:
        return await _form(ask, ground, PolicyInput("", ground.steps))
    minutes = str(row.ack_timeout_seconds // 60) if row.ack_timeout_seconds else ""
    return await _form(ask, ground, PolicyInput(row.name, ground.steps, row.repeat_last, minutes))


async def submit_escalation_policy_form(ask: Request) -> Response:
    ground = await _ground(ask)
    form, faults = await with_picks(ask, _place(ask, ground), _NAMES)
    ask = replace(ask, form=form)
    typed = PolicyInput(
        stripped(ask, "name"),
        _typed_steps(ask),
        "repeat_last" in form,
        stripped(ask, "ack_timeout"),
    )
    act = value_of(ask, "act")
    if faults:
        return await _form(ask, ground, _unknown(ask, typed, faults))
    if act == "more" or is_pick(act):
        return await _form(ask, ground, typed)
    try:
        if act == "delete" and ground.row is not None:
            await api.delete(ask)
        else:
            await _save(ask, ground, typed)
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        wrong = _SAID.get(refused.code) or _words(refused)
        return await _form(ask, ground, replace(typed, wrong=wrong, field=refused.field))
    return redirect(f"/projects/{_project_uid(ask, ground)}/on-call")


def _unknown(ask: Request, typed: PolicyInput, faults: dict[str, str]) -> PolicyInput:
    """Returns the input with the fault of the first typed name that is no target."""
    name = min(faults, key=_number)
    at = sum(_is_filled(ask, number) for number in range(_number(name)))
    field = f"steps[{at}].targets"
    return replace(typed, wrong=f"Step {at + 1}, Targets: {faults[name]}.", field=field)


def _number(name: str) -> int:
    return int(name.removeprefix("targets-"))


def _words(refused: Refused) -> str:
    """Returns the message of a refusal, with steps counted from 1."""
    head, _, tail = refused.field.partition("]")
    what = {".after_seconds": "After", ".targets": "Targets"}.get(tail.partition("[")[0], "")
    if head.startswith("steps["):
        return f"Step {int(head[6:]) + 1}, {what or 'Targets'}: {refused.message}."
    if refused.field == "ack_timeout_seconds":
        return f"Acknowledgement expires: {_ACK_WORDS}."
    return f"{refused.field.capitalize()}: {refused.message}."


def _is_filled(ask: Request, number: int) -> bool:
    texts = (stripped(ask, f"after-{number}"), stripped(ask, f"{ADD}targets-{number}"))
    return any((*texts, *ask.form.get(f"targets-{number}", ())))


def _typed_steps(ask: Request) -> list[StepRow]:
    """Returns the steps of the filled rows. Empty rows are skipped."""
    return [
        StepRow(
            stripped(ask, f"after-{number}"),
            [uid for uid in ask.form.get(f"targets-{number}", []) if uid],
            stripped(ask, f"{ADD}targets-{number}"),
        )
        for number in range(STEPS[1])
        if _is_filled(ask, number)
    ]


async def _save(ask: Request, ground: EscalationFormData, typed: PolicyInput) -> None:
    timeout = whole_number("ack_timeout_seconds", typed.ack_minutes or "0") * 60
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        given = [
            EscalationStepRequest(
                after_seconds=length_typed(
                    f"steps[{n}].after_seconds", step.after or "0", "seconds"
                ),
                targets=await _targets(ask, tx, n, step),
            )
            for n, step in enumerate(typed.steps)
        ]
    body = CreateEscalationPolicy(
        name=typed.name, repeat_last=typed.repeat_last, ack_timeout_seconds=timeout, steps=given
    )
    if ground.row is None:
        await api.create(replace(ask, body=body))
    else:
        await api.replace(replace(ask, body=body))


async def _targets(ask: Request, tx: Tx, n: int, step: StepRow) -> list[EscalationTargetRequest]:
    """Raises: Refused invalid, if a target was removed from the project."""
    uids = [uuid_or_none(text) for text in step.targets]
    wanted = [uid for uid in uids if uid]
    known = await select_chosen(tx, org_of(ask), project_of(ask), _TARGET, wanted)
    found = []
    for place, uid in enumerate(uids):
        one = known.get(uid) if uid else None
        if one is None:
            raise Refused("invalid", f"steps[{n}].targets[{place}]", "does not exist")
        kind = _KINDS.get(one.type, TargetKind.CHANNEL)  # type: ignore[call-overload]
        found.append(EscalationTargetRequest(type=kind.value, id=str(one.uid)))
    return found


async def _ground(ask: Request) -> EscalationFormData:
    async with ask.context.pool.transaction("console_escalation_form", read_only=True) as tx:
        if "policyID" not in ask.ids:
            return EscalationFormData(None, [])
        row = await select_policy(tx, ask.ids["policyID"])
        if row is None:
            raise Problem("not_found")
        steps = [StepRow(str(after), []) for after in row.after_seconds]
        for target in await select_targets(tx, org_of(ask), [row.id]):
            steps[target.step - 1].targets.append(str(target.uid))
    return EscalationFormData(row, steps)


def _project_uid(ask: Request, ground: EscalationFormData) -> UUID:
    return ground.row.project_uid if ground.row else ask.ids["projectID"]


def _place(ask: Request, ground: EscalationFormData) -> PickPlace:
    """Returns the place of the targets; a policy is no target of itself."""
    without = ground.row.uid if ground.row else None
    path = f"/projects/{_project_uid(ask, ground)}"
    return PickPlace(org_of(ask), project_of(ask), path, without)


async def _form(ask: Request, ground: EscalationFormData, typed: PolicyInput) -> Response:
    rows = [*typed.steps, *[StepRow("", []) for _ in range(_SPARE)]][: STEPS[1]]
    place = _place(ask, ground)
    async with ask.context.pool.transaction("console_escalation_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        steps = [
            StepFields(
                step.after,
                await field_of(tx, place, _TARGET, f"targets-{n}", step.targets, step.text),
            )
            for n, step in enumerate(rows)
        ]
    return page(
        "oncall/console/escalation_policy_form.html",
        status=400 if typed.wrong else 200,
        frame=frame,
        row=ground.row,
        managed=None if ground.row is None else managed(ground.row, orphan_works=True),
        typed=typed,
        steps=steps,
    )


_NEW: Final = ("/projects/{projectID}/escalation-policies/new", ("project", "projectID"))
_ONE: Final = ("/escalation-policies/{policyID}/edit", ("policy", "policyID"))

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", *_NEW, render_escalation_policy_form, "Form of a new escalation policy."),
    _route("POST", *_NEW, submit_escalation_policy_form, "Add an escalation policy."),
    _route("GET", *_ONE, render_escalation_policy_form, "Form of an escalation policy."),
    _route("POST", *_ONE, submit_escalation_policy_form, "Change or delete an escalation policy."),
)
