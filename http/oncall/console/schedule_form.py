"""Form of an on-call schedule: shifts, start and participants. Submitted values are kept."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ....storage.core.refusal import Refused
from ....storage.oncall.queries.oncall_schedules import select_participants, select_schedule
from ....storage.oncall.rows import ScheduleRow
from ....storage.oncall.rules.oncall_schedule import PARTICIPANTS
from ....storage.oncall.transactions.edit_schedules import EDIT, SCHEDULES_OF_PROJECT_MOST
from ....storage.services.queries.pickable_objects import PickableKind, select_chosen
from ...ui.form_routes import form_route
from ...ui.pickers.fields import PickerOption
from ...ui.pickers.objects import options_of, resolved, spelled
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...ui.time_inputs import (
    UNITS,
    instant_typed,
    length_typed,
    spelt_length,
    spelt_local,
    zone_named,
)
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import oncall as api
from ..schemas import CreateOnCallSchedule

# Empty rows that the form offers after the filled ones.
_SPARE: Final = 3
_SAID: Final = {
    "schedule_quota": f"Limit: {SCHEDULES_OF_PROJECT_MOST} schedules per project.",
    "in_use": "In use; remove it from escalation policies and services first.",
}
_LABELS: Final = {
    "name": "Name",
    "shift_seconds": "Shift",
    "anchor_at": "First hand-off",
    "timezone": "Time zone",
    "participants": "Participants",
}


_PARTICIPANT: Final = PickableKind.PARTICIPANT


@dataclass(frozen=True, slots=True)
class Turn:
    """Participant of the form: its text, and the hidden value of the object that it names."""

    text: str = ""
    was: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleFormData:
    """`options` are the first participants of the lists."""

    frame: PageLayout
    row: ScheduleRow | None
    turns: list[Turn]
    options: list[PickerOption]


async def render_schedule_form(ask: Request) -> Response:
    ground = await _ground(ask)
    row = ground.row
    if row is None:
        return _form(ground, {"shift": "1", "unit": "weeks"}, [])
    shift, unit = spelt_length(row.shift_seconds)
    typed = {"name": row.name, "shift": shift, "unit": unit, "timezone": row.timezone}
    typed["anchor"] = spelt_local(row.anchor_at, zone_named(row.timezone))
    return _form(ground, typed, ground.turns)


async def submit_schedule_form(ask: Request) -> Response:
    ground = await _ground(ask)
    typed = {name: values[0].strip() for name, values in ask.form.items()}
    chosen = _typed_turns(ask)
    what = typed.get("act", "")
    if what == "more":
        return _form(ground, typed, chosen)
    try:
        if what == "delete" and ground.row is not None:
            await api.delete(ask)
        else:
            await _save(ask, ground, typed, chosen)
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        field = refused.field.partition("[")[0]
        message = _SAID.get(refused.code) or f"{_LABELS.get(field, field)}: {refused.message}."
        return _form(ground, typed, chosen, wrong=message, field=field)
    except Problem as problem:
        if problem.status != 400:
            raise
        return _form(ground, typed, chosen, wrong=problem.code)
    return redirect(f"/projects/{ground.frame.place.uid}/on-call")


def _typed_turns(ask: Request) -> list[Turn]:
    """Returns the filled rows in their order."""
    texts = [text.strip() for text in ask.form.get("participant", [])[: PARTICIPANTS[1] + _SPARE]]
    known = ask.form.get("participant_was", [])
    known = known if len(known) == len(texts) else [""] * len(texts)
    return [Turn(text, was) for text, was in zip(texts, known, strict=True) if text]


async def _participants(ask: Request, chosen: list[Turn]) -> list[str]:
    """Returns the ids. Raises: Refused invalid for a text that names no participant."""
    found: list[str] = []
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        for turn in chosen:
            one = await resolved(
                tx,
                org_of(ask),
                project_of(ask),
                _PARTICIPANT,
                turn.text,
                turn.was,
                f"participants[{len(found)}]",
            )
            assert one is not None, "the text is not empty"
            found.append(str(one.uid))
    return found


async def _save(
    ask: Request, ground: ScheduleFormData, typed: dict[str, str], chosen: list[Turn]
) -> None:
    zone, row = typed.get("timezone", ""), ground.row
    present = row.anchor_at if row is not None and row.timezone == zone else None
    body = CreateOnCallSchedule(
        name=typed.get("name", ""),
        shift_seconds=length_typed("shift_seconds", typed.get("shift", ""), typed.get("unit", "")),
        anchor_at=instant_typed("anchor_at", typed.get("anchor", ""), zone_named(zone), present),
        timezone=zone,
        participants=await _participants(ask, chosen),
    )
    if ground.row is None:
        await api.create(replace(ask, body=body))
    else:
        await api.replace(replace(ask, body=body))


async def _ground(ask: Request) -> ScheduleFormData:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_schedule_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        options = await options_of(tx, org, project, _PARTICIPANT)
        row, turns = None, list[Turn]()
        if "scheduleID" in ask.ids:
            row = await select_schedule(tx, ask.ids["scheduleID"])
            if row is None:
                raise Problem("not_found")
            people = (await select_participants(tx, org, [row.id]))[row.id]
            uids = [person.uid for person in people]
            known = await select_chosen(tx, org, project, _PARTICIPANT, uids)
            turns = [
                Turn(*spelled(known[person.uid], _PARTICIPANT))
                if person.uid in known
                # A person who left the project: the id keeps the row until it is replaced.
                else Turn(str(person.uid))
                for person in people
            ]
    return ScheduleFormData(frame, row, turns, options)


def _form(
    ground: ScheduleFormData,
    typed: dict[str, str],
    chosen: list[Turn],
    wrong: str = "",
    field: str = "",
) -> Response:
    rows = (chosen + [Turn()] * _SPARE)[: PARTICIPANTS[1]]
    return page(
        "oncall/console/schedule_form.html",
        status=400 if wrong else 200,
        frame=ground.frame,
        row=ground.row,
        options=ground.options,
        typed={
            name: typed.get(name, "") for name in ("name", "shift", "unit", "anchor", "timezone")
        },
        turns=rows,
        units=list(UNITS),
        wrong=wrong,
        field=field,
    )


_NEW: Final = ("/projects/{projectID}/oncall-schedules/new", ("project", "projectID"))
_ONE: Final = ("/oncall-schedules/{scheduleID}/edit", ("schedule", "scheduleID"))

_route: Final = partial(form_route, action=EDIT)

ROUTES: Final = (
    _route("GET", *_NEW, render_schedule_form, "Form of a new schedule."),
    _route("POST", *_NEW, submit_schedule_form, "Add a schedule."),
    _route("GET", *_ONE, render_schedule_form, "Form of a schedule."),
    _route("POST", *_ONE, submit_schedule_form, "Change or delete a schedule."),
)
