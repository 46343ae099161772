"""Channels of a project. All members see them; editors add, test and change them.

A submitted secret is never rendered again, also not with the rest of the form.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec
from msgspec import UNSET

from ....probes.senders.channel_spec import (
    REFERENCE_SUFFIX,
    TEMPLATES,
    ChannelSetting,
    ChannelSpec,
    ValueForm,
)
from ....probes.senders.deliver import SPECS
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.monitors.queries.secret_list import ListedSecret, select_secrets
from ....storage.notifications.queries.channel_health import ChannelHealth, select_health
from ....storage.notifications.queries.channel_uses import (
    ChannelUse,
    ChannelUseCount,
    count_uses,
    select_uses,
)
from ....storage.notifications.queries.channels import select_channel, select_channels_of
from ....storage.notifications.rows import ChannelRow
from ....storage.notifications.transactions.channel_secrets import shown
from ....storage.notifications.transactions.edit_channels import CHANNELS_OF_PROJECT_MOST, EDIT
from ...ui.bundle_notice import MANAGED_SAID, Managed, managed
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_in, value_of
from ...ui.formatting import Moment, ago, count
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..routes import channels as api
from ..schemas.notifications import (
    CreateNotificationChannel,
    MessagePreview,
    MessageTemplates,
    PatchNotificationChannel,
)

# Prefix of setting names in the form, separate from the form's own fields.
_PREFIX: Final = "config."
# Objects of each kind that a screen names.
USES_SHOWN: Final = 20
_USE_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "monitor": ("monitor", "monitors"),
    "service": ("service", "services"),
    "policy": ("escalation policy", "escalation policies"),
    "schedule": ("schedule", "schedules"),
}
# Names of the notification services, as their owners write them.
NAMES: Final = {
    "webhook": "Webhook",
    "email": "E-mail",
    "slack": "Slack",
    "discord": "Discord",
    "teams": "Microsoft Teams",
    "telegram": "Telegram",
    "ntfy": "ntfy",
    "pagerduty": "PagerDuty",
    "opsgenie": "Opsgenie",
    "apprise": "Apprise",
}
_SAID: Final = {
    "channel_quota": f"Limit: {CHANNELS_OF_PROJECT_MOST} channels per project.",
    "encryption_key_missing": "Secrets need security.encryption_key.",
    "not_found": "It was deleted.",
    "managed_by_file": MANAGED_SAID,
    "in_use": "In use by an escalation policy, a schedule or an override; remove it there first.",
}


@dataclass(frozen=True, slots=True)
class Input:
    """Setting in the form. `value` is empty for a secret. `kept` is true if one is stored.

    `has_lines`: the value has several lines. `reference` is the project secret that has the value,
    empty without one, and None if the setting takes no reference. With `is_lost`, the user typed a
    secret that is not stored, and must type it again.
    """

    name: str
    label: str
    help: str
    is_secret: bool
    required: bool
    value: str
    kept: bool = False
    has_lines: bool = False
    reference: str | None = None
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class ChannelItem:
    uid: UUID
    name: str
    type: str
    enabled: bool
    takes_tickets: bool
    takes_warnings: bool
    inputs: list[Input]
    templates: list[Input]
    last: Moment | None
    mark: str
    word: str
    used_by: str
    managed: Managed | None = None


@dataclass(frozen=True, slots=True)
class ChannelUseGroup:
    """Objects of one kind that use a channel. `names` has (path, name), `more` counts the others.

    An empty path is an object that the user cannot open.
    """

    title: str
    names: list[tuple[str, str]]
    more: int


@dataclass(frozen=True, slots=True)
class ChannelFormResult:
    """Message above the list or the form: the result of a test, or an error."""

    text: str = ""
    is_wrong: bool = False
    # The example in the words of typed templates.
    preview: MessagePreview | None = None


class ChannelQuery(msgspec.Struct, frozen=True):
    """`show` is the step: empty for the list, add, edit, uses or delete. `uid` is the channel."""

    show: str = ""
    uid: str = ""
    done: str = ""


# Buttons of a form whose values are rendered again.
_FORM_ACTS: Final = frozenset({"add", "save", "preview"})
_TEMPLATED: Final = frozenset(setting.name for setting in TEMPLATES)
_DONE: Final = {
    "add": "The channel was added. Send a test to check it.",
    "save": "Saved.",
    "enable": "The channel was enabled.",
    "disable": "The channel was disabled.",
    "delete": "The channel was deleted.",
}


async def render_channels(ask: Request) -> Response:
    query = ask.query
    if query.show in ("add", "edit", "uses", "delete"):
        return await _render(ask, what=query.show, uid=query.uid)
    return await _render(ask, done=_DONE.get(query.done, ""))


async def submit_channels(ask: Request) -> Response:
    """Calls the API handler of the button."""
    try:
        done = await _apply(ask, value_of(ask, "act"))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        field = refused.field.removeprefix(_PREFIX).replace("_", " ").capitalize()
        said = _SAID.get(refused.code) or f"{field}: {refused.message}."
        step = {"add": "add", "save": "edit", "preview": "edit"}.get(value_of(ask, "act"), "")
        return await _render(
            ask, ChannelFormResult(said, is_wrong=True), what=step, uid=value_of(ask, "channel")
        )
    if done is not None:
        what = "edit" if done.preview is not None else ""
        return await _render(ask, done, what=what, uid=value_of(ask, "channel"))
    return redirect(f"/projects/{ask.ids['projectID']}/channels?done={value_of(ask, 'act')}")


async def _apply(ask: Request, what: str) -> ChannelFormResult | None:
    if what == "add":
        kind, name = value_of(ask, "type"), stripped(ask, "name")
        body = CreateNotificationChannel(
            type=_known(kind),  # type: ignore[arg-type]
            name=name,
            config=_config(ask),
            takes_tickets="takes_tickets" in ask.form,
            takes_warnings="takes_warnings" in ask.form,
        )
        await api.create(replace(ask, body=body))
        return None
    ask = await _of_channel(ask)
    match what:
        case "save":
            body_ = PatchNotificationChannel(
                name=stripped(ask, "name"),
                config=_config(ask),
                takes_tickets="takes_tickets" in ask.form,
                takes_warnings="takes_warnings" in ask.form,
            )
            await api.update(replace(ask, body=body_))
        case "preview":
            typed = {name: value for name, value in _config(ask).items() if name in _TEMPLATED}
            shown_ = await api.preview(replace(ask, body=MessageTemplates(**typed)))
            return ChannelFormResult(preview=shown_)
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
        name.removeprefix(_PREFIX): values[0].replace("\r\n", "\n").strip()
        for name, values in ask.form.items()
        if name.startswith(_PREFIX)
    }


async def _render(
    ask: Request,
    said: ChannelFormResult = ChannelFormResult(),
    *,
    what: str = "",
    uid: str = "",
    done: str = "",
) -> Response:
    async with ask.context.pool.transaction("console_channels", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        rows = await select_channels_of(tx, org_of(ask), project_of(ask))
        counts = await count_uses(tx, org_of(ask), project_of(ask))
        health = {one.channel: one for one in await select_health(tx, org_of(ask), project_of(ask))}
        now = tx.now
        chosen_row = _chosen(rows, uid) if what in ("edit", "uses", "delete") else None
        secrets = list[ListedSecret]()
        if what in ("add", "edit") and frame.may_write:
            secrets = await select_secrets(tx, org_of(ask), project_of(ask))
        uses = []
        if chosen_row is not None:
            uses = await select_uses(tx, org_of(ask), chosen_row.id, USES_SHOWN)
    if what not in ("", "uses") and not frame.may_write:
        raise Problem("forbidden")
    used = _used_by(counts)
    is_typed = value_of(ask, "act") in _FORM_ACTS
    typed = _config(ask) if is_typed else {}
    lines = [_item(row, health.get(row.id), used.get(row.id, ""), now) for row in rows]
    chosen = None
    if chosen_row is not None:
        chosen = _item(
            chosen_row,
            health.get(chosen_row.id),
            used.get(chosen_row.id, ""),
            now,
            typed if what == "edit" else {},
            has_secrets=bool(secrets),
        )
        if what == "edit" and is_typed:
            chosen = replace(
                chosen,
                takes_tickets="takes_tickets" in ask.form,
                takes_warnings="takes_warnings" in ask.form,
            )
    kind = value_of(ask, "type")
    opened = kind if kind in SPECS and said.is_wrong else ""
    return page(
        "notifications/console/channels.html",
        status=400 if said.is_wrong else 200,
        frame=frame,
        what=what,
        chosen=chosen,
        groups=_groups(uses, frame.home, may_write=frame.may_write),
        is_needed=any(one.kind in ("policy", "schedule") for one in uses),
        done=done,
        path=f"/projects/{ask.ids['projectID']}/channels",
        lines=lines,
        first=count(len(rows), "notification channel") if rows else "No notification channels yet",
        said=said,
        names=NAMES,
        kinds=_kinds(opened, typed, has_secrets=bool(secrets)),
        opened=opened,
        typed=value_of(ask, "name"),
        typed_tickets="takes_tickets" in ask.form,
        typed_warnings="takes_warnings" in ask.form,
        secrets=[one.name for one in secrets],
    )


def _kinds(
    opened: str, typed: Mapping[str, str], *, has_secrets: bool
) -> list[tuple[str, str, list[Input]]]:
    """Returns the type, the help and the inputs of each form. One form has the typed values."""
    return [
        (
            spec.type,
            spec.help,
            _inputs(spec, typed if spec.type == opened else {}, set(), has_secrets=has_secrets),
        )
        for spec in SPECS.values()
    ]


def _chosen(rows: Sequence[ChannelRow], uid: str) -> ChannelRow:
    wanted = uuid_in(uid)
    found = next((row for row in rows if row.uid == wanted), None)
    if found is None:
        raise Problem("not_found")
    return found


def _used_by(counts: Sequence[ChannelUseCount]) -> dict[int, str]:
    """Returns the uses of each channel in words: 31 monitors, 3 services."""
    order = list(_USE_WORDS)
    found: dict[int, list[str]] = {}
    for one in sorted(counts, key=lambda one: order.index(one.kind)):
        found.setdefault(one.channel, []).append(count(one.many, *_USE_WORDS[one.kind]))
    return {channel: ", ".join(words) for channel, words in found.items()}


def _groups(uses: Sequence[ChannelUse], home: str, *, may_write: bool) -> list[ChannelUseGroup]:
    paths = {
        "monitor": "/monitors/{}",
        "service": "/services/{}",
        "policy": "/escalation-policies/{}/edit" if may_write else "",
        "schedule": f"{home}/on-call?schedule={{}}",
    }
    groups = []
    for kind, words in _USE_WORDS.items():
        found = [one for one in uses if one.kind == kind]
        if found:
            title = count(found[0].many, *words)
            names = [(paths[kind].format(one.uid), one.name) for one in found]
            groups.append(ChannelUseGroup(title, names, found[0].many - len(found)))
    return groups


def _item(
    row: ChannelRow,
    health: ChannelHealth | None,
    used_by: str,
    now: Instant,
    typed: Mapping[str, str] = {},
    *,
    has_secrets: bool = False,
) -> ChannelItem:
    """Returns a channel with its settings, or those that the user has `typed`, but no secret."""
    config = shown(row)
    spec = SPECS[row.type]
    kept = set(config)
    # The user did not type the placeholder of a stored secret.
    known = {name: one for name, one in config.items() if name not in spec.secrets} | dict(typed)
    delivered = None if health is None else health.delivered_at
    if not row.enabled:
        mark, word = "paused", "Disabled"
    elif health is not None and health.failures:
        mark, word = "down", "Failing"
    elif delivered is not None:
        mark, word = "up", "Delivered"
    else:
        mark, word = "pending", "No recent delivery"
    return ChannelItem(
        row.uid,
        row.name,
        row.type,
        row.enabled,
        row.takes_tickets,
        row.takes_warnings,
        _inputs(spec, known, kept, has_secrets=has_secrets),
        [_input(one, known, kept, has_secrets=has_secrets) for one in _templates(spec)],
        ago(delivered, now) if delivered is not None else None,
        mark,
        word,
        used_by,
        managed(row, orphan_works=True),
    )


def _inputs(
    spec: ChannelSpec, config: Mapping[str, str], kept: set[str], *, has_secrets: bool
) -> list[Input]:
    return [
        _input(setting, config, kept, has_secrets=has_secrets)
        for setting in spec.settings
        if setting not in TEMPLATES
    ]


def _templates(spec: ChannelSpec) -> list[ChannelSetting]:
    return [setting for setting in spec.settings if setting in TEMPLATES]


def _input(
    setting: ChannelSetting, config: Mapping[str, str], kept: set[str], *, has_secrets: bool
) -> Input:
    """Returns the input of a setting. `config` has what the user typed, also secrets."""
    is_kept = setting.secret and setting.name in kept
    return Input(
        setting.name,
        setting.name.replace("_", " ").capitalize(),
        setting.help,
        setting.secret,
        # A project secret or the stored value can replace a typed secret.
        setting.required and not (setting.secret and (has_secrets or is_kept)),
        "" if setting.secret else config.get(setting.name, setting.default),
        is_kept,
        setting.form is ValueForm.LINES,
        config.get(f"{setting.name}{REFERENCE_SUFFIX}", "") if setting.secret else None,
        setting.secret and bool(config.get(setting.name)),
    )


_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/channels",
        action=Permission(Need.VIEWER),
        scope=_PROJECT,
        handler=render_channels,
        summary="A project's notification channels.",
        query=ChannelQuery,
    ),
    page_route(
        method="POST",
        path="/projects/{projectID}/channels",
        action=EDIT,
        scope=_PROJECT,
        handler=submit_channels,
        summary="Add, change, test or delete a channel.",
    ),
)
