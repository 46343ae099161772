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
from ....storage.monitors.queries.console_monitors import select_names, select_shown_monitor
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ....storage.monitors.queries.monitors import select_uids
from ....storage.monitors.queries.secret_list import select_secrets
from ....storage.monitors.rows import MonitorRow
from ....storage.monitors.rules.monitor import MonitorDraft, MonitorType
from ....storage.monitors.rules.monitor_defaults import MonitorDefaults
from ....storage.monitors.transactions.edit_monitor import EDIT, with_stored_secrets
from ....storage.notifications.queries.channels import (
    select_channels_of,
    select_channels_of_monitor,
)
from ....storage.oncall.queries.escalation_policies import select_policies_of
from ...notifications.routes import channels as channels_api
from ...notifications.schemas.notifications import AttachChannel
from ...ui.form_routes import page_route
from ...ui.page_layout import PageLayout, frame_of
from ...ui.render import page, redirect
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import monitors as api
from ..schemas.monitors import CreateMonitor, UpdateMonitor
from .examples import with_examples
from .form_fields import Typed, form_value, sections
from .form_parser import ParsedForm, fresh, kinds, of_row, read, stored_secrets
from .form_test import FormTestResult, is_testable, trial_of

OTHERS_MOST: Final = 500
# Key of faults without a form field. They are shown above all fields.
_WHOLE: Final = ""


class NewQuery(msgspec.Struct, frozen=True):
    type: str = "http"


@dataclass(frozen=True, slots=True)
class MonitorFormData:
    """Data of the form: the project, the monitor if it exists, and the available choices."""

    frame: PageLayout
    row: MonitorRow | None
    waits_for: list[UUID]
    others: Sequence[tuple[UUID, str]]
    regions: Sequence[str]
    secrets: Sequence[str]
    ladders: Sequence[tuple[UUID, str]]
    channels: Sequence[tuple[UUID, str]]
    # Present escalation policy and channels of the monitor.
    ladder: UUID | None
    tells: list[UUID]
    # Defaults of a new monitor.
    defaults: MonitorDefaults


async def show_new(ask: Request) -> Response:
    spec = _spec(ask.query.type)
    ground = await _ground(ask)
    return _form(ground, spec, fresh(spec, defaults=ground.defaults))


async def show_edit(ask: Request) -> Response:
    ground = await _ground(ask)
    assert ground.row is not None
    spec = _spec(ground.row.type)
    config = api.visible_config(ground.row, ask.context.keyring, may_write=True)
    typed = of_row(ground.row, spec, ground.waits_for, config)
    typed["escalation_policy_id"] = [str(ground.ladder or "")]
    typed["channels"] = [str(uid) for uid in ground.tells]
    return _form(ground, spec, typed)


async def send_new(ask: Request) -> Response:
    ground = await _ground(ask)
    spec = _spec(form_value(ask.form, "type"))
    act = form_value(ask.form, "act")
    if act == "kind" or form_value(ask.form, "fields") != spec.type:
        return _form(ground, spec, fresh(spec, ask.form, ground.defaults))
    return await _send(ask, ground, spec, act)


async def send_edit(ask: Request) -> Response:
    ground = await _ground(ask)
    assert ground.row is not None
    return await _send(ask, ground, _spec(ground.row.type), form_value(ask.form, "act"))


async def _send(ask: Request, ground: MonitorFormData, spec: Spec, act: str) -> Response:
    stored = stored_secrets(ground.row, spec) if ground.row else frozenset()
    if act == "example":
        return _form(ground, spec, with_examples(spec.type, ask.form))
    found = read(spec, ask.form, stored, ground.defaults)
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
    return _form(ground, spec, ask.form, found.errors, trial)


def _draft(ask: Request, ground: MonitorFormData, spec: Spec, found: ParsedForm) -> MonitorDraft:
    """Returns the draft to test. An empty secret keeps its stored value, as in a save."""
    draft = MonitorDraft(type=spec.type, **found.values)
    if ground.row is None:
        return draft
    return with_stored_secrets(ground.row, draft, ask.context.keyring)


async def _save(ask: Request, ground: MonitorFormData, spec: Spec, found: ParsedForm) -> UUID:
    if ground.row is None:
        draft = CreateMonitor(type=MonitorType(str(spec.type)), **found.values)
        made = await api.create(replace(ask, body=draft))
        uid: UUID = made.body.id
        return uid
    await api.update(replace(ask, body=UpdateMonitor(**found.values)))
    return ground.row.uid


async def _follow_channels(ask: Request, ground: MonitorFormData, monitor: UUID) -> None:
    """Attaches and detaches the channels whose choice changed, among the offered ones.

    The monitor is already saved. Channels that no longer exist are skipped.
    """
    offered = {str(uid): uid for uid, _ in ground.channels}
    chosen = {offered[text] for text in ask.form.get("channels", ()) if text in offered}
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
        assert ask.scope is not None
        org, project = int(str(ask.scope.organization)), int(str(ask.scope.project))
        names = await select_names(tx, org, project, OTHERS_MOST)
        others = [item for item in names if row is None or item[0] != row.uid]
        kept = {row.region} if row is not None else set()
        regions = sorted(await api.usable_regions(ask, tx) | kept)
        secrets = [secret.name for secret in await select_secrets(tx, org, project)]
        ladder, tells = None, list[UUID]()
        if row is not None:
            tells = [one.uid for one in await select_channels_of_monitor(tx, org, row.id)]
        rows = await select_policies_of(tx, org, project)
        if row is not None and row.escalation_policy is not None:
            ladder = next((one.uid for one in rows if one.id == row.escalation_policy), None)
        channels = await select_channels_of(tx, org, project)
        return MonitorFormData(
            frame=await frame_of(ask, tx),
            row=row,
            waits_for=waits_for,
            others=others,
            regions=regions,
            secrets=secrets,
            ladders=[(one.uid, one.name) for one in rows],
            channels=[(one.uid, f"{one.name}, {one.type}") for one in channels],
            ladder=ladder,
            tells=tells,
            defaults=await monitor_defaults_in_force(tx),
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


def _form(
    ground: MonitorFormData,
    spec: Spec,
    typed: Typed,
    errors: Mapping[str, str] | None = None,
    trial: FormTestResult | None = None,
) -> Response:
    errors = errors or {}
    row = ground.row
    found = sections(
        spec,
        typed,
        errors,
        regions=ground.regions,
        others=ground.others,
        stored=stored_secrets(row, spec) if row else frozenset(),
        secrets=ground.secrets,
        ladders=ground.ladders,
        channels=ground.channels,
        defaults=ground.defaults,
    )
    told = {item.name for section in found for item in section.rows}
    values: dict[str, Any] = {
        "frame": ground.frame,
        "row": row,
        "spec": spec,
        "kinds": kinds(),
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
    page_route(
        method="POST",
        path="/projects/{projectID}/monitors/new",
        action=EDIT,
        scope=("project", "projectID"),
        handler=send_new,
        summary="Adds or tests a monitor.",
    ),
    page_route(
        method="GET",
        path="/monitors/{monitorID}/edit",
        action=EDIT,
        scope=("monitor", "monitorID"),
        handler=show_edit,
        summary="Form of a monitor.",
    ),
    page_route(
        method="POST",
        path="/monitors/{monitorID}/edit",
        action=EDIT,
        scope=("monitor", "monitorID"),
        handler=send_edit,
        summary="Changes or tests a monitor.",
    ),
)
