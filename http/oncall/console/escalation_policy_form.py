"""Form of an escalation policy: its steps with their targets. Submitted values are kept."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ....storage.core.refusal import Refused
from ....storage.notifications.queries.channels import select_channels_of
from ....storage.notifications.queries.project_people import people_choices
from ....storage.oncall.queries.escalation_policies import (
    select_policies_of,
    select_policy,
    select_targets,
)
from ....storage.oncall.queries.oncall_schedules import select_schedules_of
from ....storage.oncall.rows import EscalationPolicyRow
from ....storage.oncall.rules.escalation import ACK_TIMEOUT_SECONDS, STEPS
from ....storage.oncall.transactions.edit_escalation_policies import EDIT, POLICIES_OF_PROJECT_MOST
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, value_of, whole_number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
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
    "in_use": "In use; remove it from monitors, services, alert routes and other policies first.",
}


@dataclass(frozen=True, slots=True)
class StepRow:
    """`targets` are spelled channel:id, schedule:id, person:id or policy:id."""

    after: str
    targets: list[str]


@dataclass(frozen=True, slots=True)
class EscalationFormData:
    """`choices` are the (target, name) pairs that a step can use."""

    frame: PageLayout
    row: EscalationPolicyRow | None
    choices: list[tuple[str, str]]
    steps: list[StepRow]


_LEAST, _MOST = (seconds // 60 for seconds in ACK_TIMEOUT_SECONDS)
_ACK_WORDS: Final = f"must be empty, or {_LEAST} to {_MOST} minutes"


async def render_escalation_policy_form(ask: Request) -> Response:
    ground = await _ground(ask)
    row = ground.row
    if row is None:
        return _form(ground, "", ground.steps, repeat_last=False)
    minutes = str(row.ack_timeout_seconds // 60) if row.ack_timeout_seconds else ""
    return _form(ground, row.name, ground.steps, repeat_last=row.repeat_last, ack_minutes=minutes)


async def submit_escalation_policy_form(ask: Request) -> Response:
    ground = await _ground(ask)
    name = stripped(ask, "name")
    repeats, ack_minutes = "repeat_last" in ask.form, stripped(ask, "ack_timeout")
    steps = _typed_steps(ask)
    what = value_of(ask, "act")
    if what == "more":
        return _form(ground, name, steps, repeat_last=repeats, ack_minutes=ack_minutes)
    try:
        if what == "delete" and ground.row is not None:
            await api.delete(ask)
        else:
            timeout = whole_number("ack_timeout_seconds", ack_minutes or "0") * 60
            await _save(ask, ground, name, steps, repeat_last=repeats, ack_timeout=timeout)
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        wrong = _SAID.get(refused.code) or _words(refused)
        return _form(
            ground,
            name,
            steps,
            repeat_last=repeats,
            ack_minutes=ack_minutes,
            wrong=wrong,
            field=refused.field,
        )
    return redirect(f"/projects/{ground.frame.place.uid}/on-call")


def _words(refused: Refused) -> str:
    """Returns the message of a refusal, with steps counted from 1."""
    head, _, tail = refused.field.partition("]")
    what = {".after_seconds": "After", ".targets": "Targets"}.get(tail.partition("[")[0], "")
    if head.startswith("steps["):
        return f"Step {int(head[6:]) + 1}, {what or 'Targets'}: {refused.message}."
    if refused.field == "ack_timeout_seconds":
        return f"Acknowledgement expires: {_ACK_WORDS}."
    return f"{refused.field.capitalize()}: {refused.message}."


def _typed_steps(ask: Request) -> list[StepRow]:
    """Returns the steps of the filled rows. Empty rows are skipped."""
    found = []
    for number in range(STEPS[1]):
        after = stripped(ask, f"after-{number}")
        targets = [text for text in ask.form.get(f"targets-{number}", []) if text]
        if after or targets:
            found.append(StepRow(after, targets))
    return found


async def _save(
    ask: Request,
    ground: EscalationFormData,
    name: str,
    steps: list[StepRow],
    *,
    repeat_last: bool,
    ack_timeout: int,
) -> None:
    given = [
        EscalationStepRequest(
            after_seconds=length_typed(f"steps[{n}].after_seconds", step.after or "0", "seconds"),
            targets=[_target(n, text) for text in step.targets],
        )
        for n, step in enumerate(steps)
    ]
    body = CreateEscalationPolicy(
        name=name, repeat_last=repeat_last, ack_timeout_seconds=ack_timeout, steps=given
    )
    if ground.row is None:
        await api.create(replace(ask, body=body))
    else:
        await api.replace(replace(ask, body=body))


def _target(step: int, text: str) -> EscalationTargetRequest:
    kind, _, uid = text.partition(":")
    if kind not in ("channel", "schedule", "person", "policy"):
        raise Refused("invalid", f"steps[{step}].targets", "must be chosen from the list")
    return EscalationTargetRequest(type=kind, id=uid)  # type: ignore[arg-type]


async def _ground(ask: Request) -> EscalationFormData:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_escalation_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        schedules = await select_schedules_of(tx, org, project)
        channels = await select_channels_of(tx, org, project)
        people = await people_choices(tx, org, project)
        policies = await select_policies_of(tx, org, project)
        row, steps = None, list[StepRow]()
        if "policyID" in ask.ids:
            row = await select_policy(tx, ask.ids["policyID"])
            if row is None:
                raise Problem("not_found")
            steps = [StepRow(str(after), []) for after in row.after_seconds]
            for target in await select_targets(tx, org, [row.id]):
                steps[target.step - 1].targets.append(f"{target.kind.value}:{target.uid}")
    choices = [(f"schedule:{one.uid}", f"Who is on call by {one.name}") for one in schedules]
    choices += [(f"person:{uid}", text) for uid, text in people]
    choices += [(f"channel:{one.uid}", f"{one.name}, {one.type}") for one in channels]
    choices += [
        (f"policy:{one.uid}", f"The steps of {one.name}")
        for one in policies
        if row is None or one.uid != row.uid
    ]
    return EscalationFormData(frame, row, choices, steps)


def _form(
    ground: EscalationFormData,
    name: str,
    steps: list[StepRow],
    *,
    repeat_last: bool,
    ack_minutes: str = "",
    wrong: str = "",
    field: str = "",
) -> Response:
    return page(
        "oncall/console/escalation_policy_form.html",
        status=400 if wrong else 200,
        frame=ground.frame,
        row=ground.row,
        name=name,
        repeat_last=repeat_last,
        ack_minutes=ack_minutes,
        steps=[*steps, *[StepRow("", []) for _ in range(_SPARE)]][: STEPS[1]],
        choices=ground.choices,
        wrong=wrong,
        field=field,
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
