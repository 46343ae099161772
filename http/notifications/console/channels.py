"""Channels of a project. All members see them; editors add, test and change them.

A submitted secret is never rendered again, also not with the rest of the form.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from msgspec import UNSET

from ....probes.senders import SPECS
from ....probes.senders.channel_spec import ChannelSpec
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.refusal import Refused
from ....storage.notifications.queries.channels import select_channel, select_channels_of
from ....storage.notifications.rows import ChannelRow
from ....storage.notifications.transactions.channel_secrets import shown
from ....storage.notifications.transactions.edit_channels import CHANNELS_OF_PROJECT_MOST, EDIT
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import count
from ...ui.page_layout import frame_of
from ...ui.render import page, redirect
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import channels as api
from ..schemas.notifications import CreateNotificationChannel, PatchNotificationChannel

# Prefix of setting names in the form, separate from the form's own fields.
_PREFIX: Final = "config."
_SAID: Final = {
    "channel_quota": f"Limit: {CHANNELS_OF_PROJECT_MOST} channels per project.",
    "encryption_key_missing": "Secrets need security.encryption_key.",
    "not_found": "It was deleted.",
    "in_use": "In use by an escalation policy, a schedule or an override; remove it there first.",
}


@dataclass(frozen=True, slots=True)
class Input:
    """Setting in the form. `value` is empty for a secret. `kept` is true if one is stored."""

    name: str
    label: str
    help: str
    is_secret: bool
    required: bool
    value: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ChannelItem:
    uid: UUID
    name: str
    type: str
    enabled: bool
    inputs: list[Input]


@dataclass(frozen=True, slots=True)
class ChannelFormResult:
    """Message above the list: the result of a test, or an error."""

    text: str = ""
    is_wrong: bool = False


async def render_channels(ask: Request) -> Response:
    return await _render(ask)


async def submit_channels(ask: Request) -> Response:
    """Calls the API handler of the button."""
    try:
        done = await _apply(ask, value_of(ask, "act"))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        field = refused.field.removeprefix(_PREFIX).replace("_", " ").capitalize()
        said = _SAID.get(refused.code) or f"{field}: {refused.message}."
        return await _render(ask, ChannelFormResult(said, is_wrong=True))
    if done is not None:
        return await _render(ask, done)
    return redirect(f"/projects/{ask.ids['projectID']}/channels")


async def _apply(ask: Request, what: str) -> ChannelFormResult | None:
    if what == "add":
        kind, name = value_of(ask, "type"), stripped(ask, "name")
        body = CreateNotificationChannel(type=_known(kind), name=name, config=_config(ask))  # type: ignore[arg-type]
        await api.create(replace(ask, body=body))
        return None
    ask = await _of_channel(ask)
    match what:
        case "save":
            body_ = PatchNotificationChannel(name=stripped(ask, "name"), config=_config(ask))
            await api.update(replace(ask, body=body_))
        case "enable" | "disable":
            await api.update(replace(ask, body=PatchNotificationChannel(enabled=what == "enable")))
        case "delete":
            await api.delete(ask)
        case "test":
            tested = await api.test(ask)
            why = "" if tested.reason is UNSET else f": {tested.reason}"
            if tested.ok:
                return ChannelFormResult(f"Test accepted by the service{why}.")
            return ChannelFormResult(f"Test failed{why}.", is_wrong=True)
        case _:
            raise Problem("Unknown action")
    return None


async def _of_channel(ask: Request) -> Request:
    """Returns the request for the form's channel, which must belong to the project."""
    try:
        uid = UUID(value_of(ask, "channel"))
    except ValueError:
        raise Problem("not_found") from None
    async with ask.context.pool.transaction("console_channel", read_only=True) as tx:
        row = await select_channel(tx, uid)
    if row is None or row.org != org_of(ask) or row.project != project_of(ask):
        raise Problem("not_found")
    return replace(ask, ids={**ask.ids, "channelID": uid})


def _known(kind: str) -> str:
    if kind not in SPECS:
        raise Refused("invalid", "type", "is not a channel type")
    return kind


def _config(ask: Request) -> dict[str, str]:
    return {
        name.removeprefix(_PREFIX): values[0].strip()
        for name, values in ask.form.items()
        if name.startswith(_PREFIX)
    }


async def _render(ask: Request, said: ChannelFormResult = ChannelFormResult()) -> Response:
    async with ask.context.pool.transaction("console_channels", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_channels_of(tx, org_of(ask), project_of(ask))
    kind = value_of(ask, "type")
    return page(
        "notifications/console/channels.html",
        status=400 if said.is_wrong else 200,
        frame=frame,
        lines=[_item(row) for row in rows],
        first=count(len(rows), "notification channel") if rows else "No notification channels yet",
        said=said,
        kinds=[(spec.type, spec.help, _inputs(spec, {}, set())) for spec in SPECS.values()],
        opened=kind if kind in SPECS and said.is_wrong else "",
        typed=value_of(ask, "name"),
    )


def _item(row: ChannelRow) -> ChannelItem:
    config = shown(row)
    return ChannelItem(
        row.uid, row.name, row.type, row.enabled, _inputs(SPECS[row.type], config, set(config))
    )


def _inputs(spec: ChannelSpec, config: Mapping[str, str], kept: set[str]) -> list[Input]:
    return [
        Input(
            s.name,
            s.name.replace("_", " ").capitalize(),
            s.help,
            s.secret,
            s.required and not (s.secret and s.name in kept),
            "" if s.secret else config.get(s.name, s.default),
            s.secret and s.name in kept,
        )
        for s in spec.settings
    ]


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/channels",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_channels,
        summary="A project's notification channels.",
    ),
    page_route(
        method="POST",
        path="/projects/{projectID}/channels",
        action=EDIT,
        scope=_PROJECT,
        handler=submit_channels,
        summary="Adds, changes, tests or deletes a channel.",
    ),
)
