"""Form of an on-call schedule: a section for each layer. Submitted values are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ....storage.core.refusal import Refused
from ....storage.oncall.queries.oncall_schedules import (
    select_layers,
    select_participants,
    select_schedule,
)
from ....storage.oncall.rows import LayerRow, ScheduleRow
from ....storage.oncall.rules.oncall_schedule import LAYERS_MOST, PARTICIPANTS
from ....storage.oncall.transactions.edit_schedules import EDIT, SCHEDULES_OF_PROJECT_MOST
from ....storage.services.queries.pickable_objects import PickableKind, select_chosen
from ...ui.bundle_notice import MANAGED_SAID, managed
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, value_of
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
from ..routes.weekly_windows import windows_spelt, windows_typed
from ..schemas import CreateOnCallLayer, CreateOnCallSchedule

# Empty rows that the form offers after the filled ones.
_SPARE: Final = 3
_SPARE_IN_LAYER: Final = 1
_SAID: Final = {
    "schedule_quota": f"Limit: {SCHEDULES_OF_PROJECT_MOST} schedules per project.",
    "managed_by_file": MANAGED_SAID,
    "in_use": "In use; remove it from escalation policies and services first.",
}
_INPUTS: Final = ("name", "shift", "unit", "anchor", "timezone", "hours", "starts", "ends")
_LABELS: Final = {
    "name": "Name",
    "shift_seconds": "Shift",
    "anchor_at": "First hand-off",
    "timezone": "Time zone",
    "participants": "Participants",
    "restrictions": "Hours",
    "starts_at": "Active from",
    "ends_at": "Active until",
}


_PARTICIPANT: Final = PickableKind.PARTICIPANT


@dataclass(frozen=True, slots=True)
class Turn:
    """Participant of the form: its text, and the hidden value of the object that it names."""

    text: str = ""
    was: str = ""


@dataclass(frozen=True, slots=True)
class LayerSection:
    """Texts of a layer's section. `prefix` leads the names of its inputs."""

    prefix: str
    typed: Mapping[str, str]
    turns: list[Turn]


@dataclass(frozen=True, slots=True)
class ScheduleFormData:
    """`turns` has the participants of each layer, `options` the first ones of the lists."""

    frame: PageLayout
    row: ScheduleRow | None
    layers: list[LayerRow]
    turns: list[list[Turn]]
    options: list[PickerOption]


@dataclass(frozen=True, slots=True)
class ScheduleFormFault:
    text: str = ""
    # Name of the input.
    field: str = ""


async def render_schedule_form(ask: Request) -> Response:
    ground = await _ground(ask)
    is_on = ground.row is not None and ground.row.hand_off_email
    return _form(ground, _stored_sections(ground), hand_off_email=is_on)


async def submit_schedule_form(ask: Request) -> Response:
    ground = await _ground(ask)
    sections = _typed_sections(ask)
    what, is_on = value_of(ask, "act"), "hand_off_email" in ask.form
    shown = partial(_form, ground, hand_off_email=is_on)
    if what == "more":
        return shown(sections)
    if what == "layer":
        return shown([*sections, LayerSection("", {"shift": "1", "unit": "weeks"}, [])])
    if what.startswith("remove-"):
        return shown([one for one in sections if one.prefix != what[7:]])
    try:
        if what == "delete" and ground.row is not None:
            await api.delete(ask)
        else:
            await _save(ask, ground, sections)
    except Refused as refused:
        if refused.code in ("forbidden", "not_found"):
            raise
        return shown(sections, _fault(refused))
    except Problem as problem:
        if problem.status != 400:
            raise
        return shown(sections, ScheduleFormFault(problem.code))
    return redirect(f"/projects/{ground.frame.place.uid}/on-call")


def _fault(refused: Refused) -> ScheduleFormFault:
    """Returns the message of a refusal. Layers are counted from 1, the first one has no number."""
    path, prefix, where = refused.field, "", ""
    if path.startswith("layers["):
        number, _, path = path[7:].partition("].")
        prefix, where = f"layer-{int(number) + 1}-", f"Layer {int(number) + 2}, "
    field = path.partition("[")[0]
    said = _SAID.get(refused.code) or f"{where}{_LABELS.get(field, field)}: {refused.message}."
    return ScheduleFormFault(said, f"{prefix}{field}")


def _stored_sections(ground: ScheduleFormData) -> list[LayerSection]:
    if ground.row is None:
        return [LayerSection("", {"shift": "1", "unit": "weeks"}, [])]
    rows: list[ScheduleRow | LayerRow] = [ground.row, *ground.layers]
    return [
        LayerSection(
            f"layer-{place}-" if place else "",
            _stored_texts(row),
            ground.turns[place],
        )
        for place, row in enumerate(rows)
    ]


def _stored_texts(row: ScheduleRow | LayerRow) -> dict[str, str]:
    shift, unit = spelt_length(row.shift_seconds)
    zone = zone_named(row.timezone)
    bounds = {"starts": row.starts_at, "ends": row.ends_at, "anchor": row.anchor_at}
    return {
        "name": row.name,
        "shift": shift,
        "unit": unit,
        "timezone": row.timezone,
        "hours": windows_spelt(row.restrictions),
        **{name: "" if at is None else spelt_local(at, zone) for name, at in bounds.items()},
    }


def _typed_sections(ask: Request) -> list[LayerSection]:
    """Returns the submitted sections in order. The numbers of their names can have holes."""
    found = []
    for number in range(LAYERS_MOST + 1):
        prefix = f"layer-{number}-" if number else ""
        if number and f"{prefix}name" not in ask.form:
            continue
        typed = {name: stripped(ask, f"{prefix}{name}") for name in _INPUTS}
        found.append(LayerSection(prefix, typed, _typed_turns(ask, f"{prefix}participant")))
    return found


def _typed_turns(ask: Request, name: str) -> list[Turn]:
    """Returns the filled rows in their order."""
    texts = [text.strip() for text in ask.form.get(name, [])[: PARTICIPANTS[1] + _SPARE]]
    known = ask.form.get(f"{name}_was", [])
    known = known if len(known) == len(texts) else [""] * len(texts)
    return [Turn(text, was) for text, was in zip(texts, known, strict=True) if text]


async def _participants(ask: Request, turns: list[Turn], path: str) -> list[str]:
    """Returns the ids. Raises: Refused invalid for a text that names no participant."""
    found: list[str] = []
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        for turn in turns:
            one = await resolved(
                tx,
                org_of(ask),
                project_of(ask),
                _PARTICIPANT,
                turn.text,
                turn.was,
                f"{path}participants[{len(found)}]",
            )
            assert one is not None, "the text is not empty"
            found.append(str(one.uid))
    return found


async def _save(ask: Request, ground: ScheduleFormData, sections: list[LayerSection]) -> None:
    rows: list[ScheduleRow | LayerRow | None] = [ground.row, *ground.layers]
    rows += [None] * len(sections)
    first, *further = [
        await _layer_body(ask, section, row, "" if place == 0 else f"layers[{place - 1}].")
        for place, (section, row) in enumerate(zip(sections, rows, strict=False))
    ]
    layers = [CreateOnCallLayer(**one) for one in further]
    is_on = "hand_off_email" in ask.form
    body = CreateOnCallSchedule(**first, layers=layers, hand_off_email=is_on)
    if ground.row is None:
        await api.create(replace(ask, body=body))
    else:
        await api.replace(replace(ask, body=body))


async def _layer_body(
    ask: Request, section: LayerSection, row: ScheduleRow | LayerRow | None, path: str
) -> dict[str, Any]:
    typed, zone = section.typed, zone_named(section.typed["timezone"])
    # A form that is saved unchanged keeps the exact instants.
    kept = row if row is not None and row.timezone == typed["timezone"] else None
    starts = ("starts_at", typed["starts"], None if kept is None else kept.starts_at)
    ends = ("ends_at", typed["ends"], None if kept is None else kept.ends_at)
    return {
        "name": typed["name"],
        "shift_seconds": length_typed(f"{path}shift_seconds", typed["shift"], typed["unit"]),
        "anchor_at": instant_typed(
            f"{path}anchor_at", typed["anchor"], zone, None if kept is None else kept.anchor_at
        ),
        "timezone": typed["timezone"],
        "participants": await _participants(ask, section.turns, path),
        "restrictions": windows_typed(f"{path}restrictions", typed["hours"]),
        **{
            name: instant_typed(f"{path}{name}", text, zone, present) if text else None
            for name, text, present in (starts, ends)
        },
    }


async def _ground(ask: Request) -> ScheduleFormData:
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_schedule_form", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        options = await options_of(tx, org, project, _PARTICIPANT)
        if "scheduleID" not in ask.ids:
            return ScheduleFormData(frame, None, [], [], options)
        row = await select_schedule(tx, ask.ids["scheduleID"])
        if row is None:
            raise Problem("not_found")
        people = (await select_participants(tx, org, [row.id]))[row.id]
        layers = (await select_layers(tx, org, [row.id]))[row.id]
        uids = [person.uid for person in people]
        known = await select_chosen(tx, org, project, _PARTICIPANT, uids)
    turns: list[list[Turn]] = [[] for _ in range(len(layers) + 1)]
    for person in people:
        if person.uid in known:
            turn = Turn(*spelled(known[person.uid], _PARTICIPANT))
        else:
            # A person who left the project: the id keeps the row until it is replaced.
            turn = Turn(str(person.uid))
        turns[person.layer].append(turn)
    return ScheduleFormData(frame, row, layers, turns, options)


def _form(
    ground: ScheduleFormData,
    sections: list[LayerSection],
    fault: ScheduleFormFault = ScheduleFormFault(),
    *,
    hand_off_email: bool,
) -> Response:
    shown = []
    for place, one in enumerate(sections):
        spare = _SPARE_IN_LAYER if place else _SPARE
        rows = (one.turns + [Turn()] * spare)[: PARTICIPANTS[1]]
        typed = {name: one.typed.get(name, "") for name in _INPUTS}
        shown.append(LayerSection(f"layer-{place}-" if place else "", typed, rows))
    return page(
        "oncall/console/schedule_form.html",
        status=400 if fault.text else 200,
        frame=ground.frame,
        row=ground.row,
        managed=None if ground.row is None else managed(ground.row, orphan_works=True),
        options=ground.options,
        sections=shown,
        may_add=len(shown) < LAYERS_MOST,
        units=list(UNITS),
        hand_off_email=hand_off_email,
        wrong=fault.text,
        field=fault.field,
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
