"""Form to add or edit a monitor, with buttons to save, test, change type and use an example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import msgspec

from ....probes.check.monitor_spec import Spec
from ....probes.check.registry import spec_of
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.console_monitors import select_shown_monitor
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ....storage.monitors.queries.monitors import select_uids
from ....storage.monitors.queries.secret_list import select_secrets
from ....storage.monitors.rows import MonitorRow
from ....storage.monitors.rules.fields import FIELDS
from ....storage.monitors.rules.monitor import MonitorDraft, MonitorType
from ....storage.monitors.rules.monitor_defaults import MonitorDefaults
from ....storage.monitors.transactions.edit_monitor import EDIT, with_stored_secrets
from ....storage.notifications.queries.channels import select_channels_of_monitor
from ....storage.oncall.queries.escalation_policies import select_policies_of
from ....storage.regional.queries import select_members, select_regional_parts
from ....storage.regional.rules import OF_BOTH, OF_COMPOSITE
from ...notifications.routes import channels as channels_api
from ...notifications.schemas.notifications import AttachChannel
from ...ui.form_routes import page_route
from ...ui.form_values import uuid_or_none
from ...ui.pickers.fields import is_pick
from ...ui.pickers.objects import PickPlace, with_picks
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import monitors as api
from ..routes.check_test import TEST_SECONDS
from ..schemas.monitors import CreateMonitor, UpdateMonitor
from .condition_rows import editor, is_edit, with_text
from .examples import with_examples
from .form_fields import Typed, form_value, sections
from .form_parser import OF_SPREAD, ParsedForm, fresh, kinds, of_row, read, stored_secrets
from .form_pickers import pickable_fields, pickers_of
from .form_test import FormTestResult, is_testable, trial_of
from .kind_cards import FIRST_SHOWN, cards

# Key of faults without a form field. They are shown above all fields.
_WHOLE: Final = ""


class NewQuery(msgspec.Struct, frozen=True):
    """`clone` is the id of a monitor of the project whose settings fill the form."""

    type: str = "http"
    clone: UUID | None = None


@dataclass(frozen=True, slots=True)
class MonitorFormData:
    """Data of the form: the project, the monitor if it exists, and the available choices."""

    frame: PageLayout
    row: MonitorRow | None
    waits_for: list[UUID]
    regions: Sequence[str]
    secrets: Sequence[str]
    ladders: Sequence[tuple[UUID, str]]
    # Present escalation policy and channels of the monitor.
    ladder: UUID | None
    tells: list[UUID]
    # Defaults of a new monitor.
    defaults: MonitorDefaults
    # The regional monitor. `row` is then its first member, with the settings of the whole.
    whole: MonitorRow | None = None
    present_regions: Sequence[str] = ()
    # The regional monitor that the monitor is a part of.
    part_of: UUID | None = None

    @property
    def shown(self) -> MonitorRow | None:
        """The monitor that is edited."""
        return self.whole or self.row


async def show_new(ask: Request) -> Response:
    if ask.query.clone is not None:
        return await _show_clone(ask, ask.query.clone)
    spec = _spec(ask.query.type)
    ground = await _ground(ask)
    return await _form(ask, ground, spec, fresh(spec, defaults=ground.defaults))


async def _show_clone(ask: Request, uid: UUID) -> Response:
    """Returns the form of a new monitor with the settings of another one, without its secrets."""
    source = await _ground(replace(ask, ids={**ask.ids, "monitorID": uid}))
    assert source.row is not None
    if source.row.project_uid != ask.ids["projectID"]:
        raise Refused("not_found")
    spec = _spec(source.row.type)
    typed = _typed_of(ask, source, spec)
    typed["name"] = [f"{source.row.name} (copy)"]
    ground = replace(source, row=None, whole=None, part_of=None, ladder=None, tells=[])
    return await _form(ask, ground, spec, typed)


async def show_edit(ask: Request) -> Response:
    ground = await _ground(ask)
    assert ground.row is not None
    if ground.part_of is not None:
        return redirect(f"/monitors/{ground.part_of}/edit")
    spec = _spec(ground.row.type)
    return await _form(ask, ground, spec, _typed_of(ask, ground, spec))


def _typed_of(ask: Request, ground: MonitorFormData, spec: Spec) -> dict[str, list[str]]:
    """Returns the form of the stored monitor."""
    assert ground.row is not None
    config = api.visible_config(ground.row, ask.context.keyring, may_write=True)
    typed = of_row(ground.row, spec, ground.waits_for, config)
    typed["escalation_policy_id"] = [str(ground.ladder or "")]
    typed["channels"] = [str(uid) for uid in ground.tells]
    if ground.whole is not None:
        quorum = msgspec.json.decode(ground.whole.config)["quorum"]
        typed.update(regions=list(ground.present_regions), down_regions=[str(quorum)])
    return typed


async def send_new(ask: Request) -> Response:
    ask = replace(ask, form=with_text(ask.form))
    ground = await _ground(ask)
    spec = _spec(form_value(ask.form, "type"))
    act = form_value(ask.form, "act")
    if act == "kind" or form_value(ask.form, "fields") != spec.type:
        return await _form(ask, ground, spec, fresh(spec, ask.form, ground.defaults))
    return await _send(ask, ground, spec, act)


async def send_edit(ask: Request) -> Response:
    ask = replace(ask, form=with_text(ask.form))
    ground = await _ground(ask)
    assert ground.row is not None
    return await _send(ask, ground, _spec(ground.row.type), form_value(ask.form, "act"))


async def _send(ask: Request, ground: MonitorFormData, spec: Spec, act: str) -> Response:
    stored = stored_secrets(ground.row, spec) if ground.row else frozenset()
    if act == "example":
        return await _form(ask, ground, spec, with_examples(spec.type, ask.form))
    if is_edit(act):
        return await _form(ask, ground, spec, ask.form)
    form, faults = await with_picks(ask, _place(ask, ground), pickable_fields(spec))
    ask = replace(ask, form=form)
    if is_pick(act):
        return await _form(ask, ground, spec, form, faults)
    found = read(spec, form, stored, ground.defaults)
    found.errors |= faults
    trial = None
    if not found.errors:
        try:
            if act != "test":
                saved = await _save(ask, ground, spec, found)
                await _follow_channels(ask, ground, saved)
                return redirect(f"/monitors/{saved}")
            if is_testable(spec):
                trial = await trial_of(ask, _draft(ask, ground, spec, found))
        except Refused as refused:
            found.errors[_field(refused.field)] = _error_texts(refused)
        except Problem as problem:
            if problem.status != 400:
                raise
            found.errors[_WHOLE] = problem.code
    return await _form(ask, ground, spec, form, found.errors, trial)


def _draft(ask: Request, ground: MonitorFormData, spec: Spec, found: ParsedForm) -> MonitorDraft:
    """Returns the draft to test. An empty secret keeps its stored value, as in a save."""
    values = {name: value for name, value in found.values.items() if name not in OF_SPREAD}
    if "regions" in found.values:
        values["region"] = found.values["regions"][0]
    draft = MonitorDraft(type=spec.type, **values)
    if ground.row is None:
        return draft
    return with_stored_secrets(ground.row, draft, ask.context.keyring)


async def _save(ask: Request, ground: MonitorFormData, spec: Spec, found: ParsedForm) -> UUID:
    if ground.shown is None:
        draft = CreateMonitor(type=MonitorType(str(spec.type)), **found.values)
        made = await api.create(replace(ask, body=draft))
        uid: UUID = made.body.id
        return uid
    await api.update(replace(ask, body=UpdateMonitor(**found.values)))
    return ground.shown.uid


async def _follow_channels(ask: Request, ground: MonitorFormData, monitor: UUID) -> None:
    """Attaches and detaches the channels whose choice changed.

    The monitor is already saved. Channels that are not of the project, or no longer exist, are
    skipped.
    """
    chosen = set(filter(None, map(uuid_or_none, ask.form.get("channels", ()))))
    for uid in sorted(chosen ^ set(ground.tells)):
        ids = {**ask.ids, "monitorID": monitor, "channelID": uid}
        try:
            if uid in chosen:
                await channels_api.attach(replace(ask, ids=ids, body=AttachChannel(channel_id=uid)))
            else:
                await channels_api.detach(replace(ask, ids=ids))
        except Refused as refused:
            if refused.code not in ("invalid", "not_found"):
                raise


def _field(name: str) -> str:
    """Returns the form field of a fault. A fault of one header belongs to the headers field."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[0] == "config" else name


def _error_texts(refused: Refused) -> str:
    if refused.code in ("not_found", "forbidden"):
        raise refused
    if refused.code == "encryption_key_missing":
        return "Secrets need security.encryption_key."
    return refused.message or refused.code.replace("_", " ")


async def _ground(ask: Request) -> MonitorFormData:
    async with ask.context.pool.transaction("console_form", read_only=True) as tx:
        row, waits_for = None, list[UUID]()
        if "monitorID" in ask.ids:
            row = await select_shown_monitor(tx, ask.ids["monitorID"])
            if row is None:
                raise Refused("not_found")
            waits_for = await _waits_for(tx, row)
        regional = await _regional(tx, row)
        assert ask.scope is not None
        org, project = int(str(ask.scope.organization)), int(str(ask.scope.project))
        kept = {row.region, *regional.regions} if row is not None else set()
        regions = sorted(await api.usable_regions(ask, tx) | kept)
        secrets = [secret.name for secret in await select_secrets(tx, org, project)]
        ladder, tells = None, list[UUID]()
        if row is not None:
            tells = [one.uid for one in await select_channels_of_monitor(tx, org, row.id)]
        rows = await select_policies_of(tx, org, project)
        if row is not None and row.escalation_policy is not None:
            ladder = next((one.uid for one in rows if one.id == row.escalation_policy), None)
        return MonitorFormData(
            frame=await frame_of(ask, tx),
            row=regional.row or row,
            waits_for=waits_for,
            regions=regions,
            secrets=secrets,
            ladders=[(one.uid, one.name) for one in rows],
            ladder=ladder,
            tells=tells,
            defaults=await monitor_defaults_in_force(tx),
            whole=row if regional.row else None,
            present_regions=regional.regions,
            part_of=regional.part_of,
        )


@dataclass(frozen=True, slots=True)
class _Regional:
    """The first member with the settings of the whole, its regions, or the whole of a member."""

    row: MonitorRow | None = None
    regions: Sequence[str] = ()
    part_of: UUID | None = None


async def _regional(tx: Tx, row: MonitorRow | None) -> _Regional:
    if row is None or row.regional_of is None:
        return _Regional()
    members = await select_members(tx, row)
    if not members:
        return _Regional(part_of=(await select_regional_parts(tx, [row]))[row.id].whole)
    shown = {name: getattr(row, name) for name in {*OF_BOTH, *OF_COMPOSITE} & FIELDS.keys()}
    return _Regional(
        msgspec.structs.replace(members[0], **shown), [member.region for member in members]
    )


async def _waits_for(tx: Tx, row: MonitorRow) -> list[UUID]:
    if not row.depends_on:
        return []
    uids = await select_uids(tx, row.org, row.depends_on)
    return [uids[key] for key in row.depends_on if key in uids]


def _spec(kind: str) -> Spec:
    spec = spec_of(kind)
    if spec is None:
        raise Problem("not_found")
    return spec


def _place(ask: Request, ground: MonitorFormData) -> PickPlace:
    own = ground.shown.uid if ground.shown is not None else None
    path = f"/projects/{ground.frame.place.uid}"
    return PickPlace(org_of(ask), project_of(ask), path, without=own)


async def _form(
    ask: Request,
    ground: MonitorFormData,
    spec: Spec,
    typed: Typed,
    errors: Mapping[str, str] | None = None,
    trial: FormTestResult | None = None,
) -> Response:
    async with ask.context.pool.transaction("console_form", read_only=True) as tx:
        pickers = await pickers_of(tx, _place(ask, ground), spec, typed)
    errors = errors or {}
    row = ground.row
    if row is None or ground.whole is not None:
        # Boxes: an ordinary monitor does not become a regional one.
        typed = {"regions": [form_value(typed, "region")], **typed}
    found = sections(
        spec,
        typed,
        errors,
        regions=ground.regions,
        pickers=pickers,
        stored=stored_secrets(row, spec) if row else frozenset(),
        secrets=ground.secrets,
        ladders=ground.ladders,
        defaults=ground.defaults,
    )
    told = {item.name for section in found for item in section.rows}
    values: dict[str, Any] = {
        "frame": ground.frame,
        "row": ground.shown,
        "is_regional": ground.whole is not None,
        "spec": spec,
        "kinds": cards(kinds()),
        "first_kinds": FIRST_SHOWN,
        "conditions": editor(typed, spec.placeholders),
        "sections": found,
        # Faults without a visible field are shown above all fields.
        "wrong": [f"{n}: {m}" if n else m for n, m in errors.items() if n not in told],
        "faulty": len(errors),
        "trial": trial,
        "testable": is_testable(spec),
    }
    return page("monitors/form/form_screen.html", status=400 if errors else 200, **values)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/monitors/new",
        action=EDIT,
        scope=("project", "projectID"),
        handler=show_new,
        summary="Form of a new monitor.",
        query=NewQuery,
    ),
    replace(
        page_route(
            method="POST",
            path="/projects/{projectID}/monitors/new",
            action=EDIT,
            scope=("project", "projectID"),
            handler=send_new,
            summary="Add or test a monitor.",
        ),
        answer_seconds=TEST_SECONDS,
    ),
    page_route(
        method="GET",
        path="/monitors/{monitorID}/edit",
        action=EDIT,
        scope=("monitor", "monitorID"),
        handler=show_edit,
        summary="Form of a monitor.",
    ),
    replace(
        page_route(
            method="POST",
            path="/monitors/{monitorID}/edit",
            action=EDIT,
            scope=("monitor", "monitorID"),
            handler=send_edit,
            summary="Change or test a monitor.",
        ),
        answer_seconds=TEST_SECONDS,
    ),
)
