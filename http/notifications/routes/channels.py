"""Routes of a project's channels: channels, test messages, and attachment to monitors."""

from functools import partial
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.senders.channel_spec import template_faults
from ....probes.senders.deliver import deliver
from ....probes.senders.message import (
    Message,
    MessageSeverity,
    NotificationStatus,
    body_lines,
    title_line,
)
from ....probes.senders.message_template import TEXT_TEMPLATE, TITLE_TEMPLATE, templated
from ....probes.senders.send_result import NotDelivered
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.engine.keyring import CannotOpen
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.monitors.transactions.attach_channel import attach_channel, detach_channel
from ....storage.notifications.queries.channels import (
    select_channel,
    select_channels_of,
    select_channels_of_monitor,
)
from ....storage.notifications.rows import ChannelRow
from ....storage.notifications.transactions.channel_secrets import is_broken, opened, shown
from ....storage.notifications.transactions.edit_channels import (
    EDIT,
    create_channel,
    delete_channel,
    edit_channel,
)
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of, project_of
from ..schemas.notifications import (
    AttachChannel,
    CreateNotificationChannel,
    MessagePreview,
    MessageTemplates,
    NotificationChannel,
    PatchNotificationChannel,
    Tested,
)

_ALL: Final = "/api/v1/projects/{projectID}/notification-channels"
_ONE: Final = "/api/v1/notification-channels/{channelID}"
_OF_MONITOR: Final = "/api/v1/monitors/{monitorID}/notifications"


def _channel_json(row: ChannelRow) -> NotificationChannel:
    return NotificationChannel(
        id=row.uid,
        project_id=row.project_uid,
        type=row.type,
        name=row.name,
        config=shown(row),
        enabled=row.enabled,
        takes_tickets=row.takes_tickets,
        takes_warnings=row.takes_warnings,
        managed_by=known(row.managed_by or None),
        created_at=to_text(row.created_at),
    )


async def list_channels(ask: Request) -> list[NotificationChannel]:
    async with ask.context.pool.transaction("list_channels", read_only=True) as tx:
        return [
            _channel_json(row) for row in await select_channels_of(tx, org_of(ask), project_of(ask))
        ]


async def create(ask: Request) -> NotificationChannel:
    body = ask.body
    async with ask.context.pool.transaction("create_channel") as tx:
        row = await create_channel(
            tx,
            ask.who,
            ask.ids["projectID"],
            body.type,
            body.name,
            body.config,
            ask.context.keyring,
            enabled=body.enabled,
            takes_tickets=body.takes_tickets,
            takes_warnings=body.takes_warnings,
        )
    return _channel_json(row)


async def update(ask: Request) -> NotificationChannel:
    body = ask.body
    async with ask.context.pool.transaction("edit_channel") as tx:
        row = await edit_channel(
            tx,
            ask.who,
            ask.ids["channelID"],
            given(body.name),
            given(body.config),
            given(body.enabled),
            ask.context.keyring,
            given(body.takes_tickets),
            given(body.takes_warnings),
        )
    return _channel_json(row)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_channel") as tx:
        await delete_channel(tx, ask.who, ask.ids["channelID"])


async def test(ask: Request) -> Tested:
    """Makes one attempt, also to a disabled channel, as it is tested before it is enabled."""
    context = ask.context
    async with context.pool.transaction("test_channel", read_only=True) as tx:
        row = await select_channel(tx, ask.ids["channelID"])
        mailing = await mailing_in(tx, context)
    if row is None:
        raise Problem("not_found")
    try:
        config = opened(row, context.keyring)
    except CannotOpen:
        return Tested(ok=False, reason="decrypt_failed")
    if is_broken(row, config):
        return Tested(ok=False, reason="bad_secret")
    async with context.test_permits:
        try:
            message = _test_message(row.name, mailing.base_url)
            done = await deliver(row.type, message, config, mailing.means)
        except NotDelivered as why:
            return Tested(ok=False, reason=why.reason)
    return Tested(ok=True, reason=done.note) if done.note else Tested(ok=True)


def _test_message(name: str, link: str) -> Message:
    uid = str(uuid7())
    return Message(
        id=uid,
        key=uid,
        event="channel.test",
        status=NotificationStatus.TEST,
        title="Leadline test message",
        lines=(f"Test message for channel {name}.", "No action is required."),
        link=link,
    )


async def preview(ask: Request) -> MessagePreview:
    """Words an example in the templates, and stores and sends nothing."""
    given_ = {
        TITLE_TEMPLATE: ask.body.title_template,
        TEXT_TEMPLATE: ask.body.text_template.replace("\r\n", "\n"),
    }
    for fault in template_faults(given_):
        raise Refused("invalid", fault.field, fault.message)
    made = templated(_example(ask.context.options.public_base_url), given_)
    return MessagePreview(title=title_line(made), lines=body_lines(made), link=made.link)


def _example(base_url: str) -> Message:
    return Message(
        id="",
        key="",
        event="incident.opened",
        status=NotificationStatus.DOWN,
        title="Checkout is down",
        severity=MessageSeverity.MAJOR,
        lines=("3 of 3 monitors are down.",),
        link=f"{base_url or 'https://up.example.com'}/incidents/example",
        since=1_780_000_000_000_000,
        why="http_status 503",
        conditions=("[STATUS] == 200 (503)",),
        runbook_url="https://wiki.example.com/checkout",
    )


async def list_of_monitor(ask: Request) -> list[NotificationChannel]:
    async with ask.context.pool.transaction("list_monitor_channels", read_only=True) as tx:
        monitor = await select_monitor(tx, ask.ids["monitorID"])
        if monitor is None:
            raise Problem("not_found")
        return [
            _channel_json(row)
            for row in await select_channels_of_monitor(tx, monitor.org, monitor.id)
        ]


async def attach(ask: Request) -> None:
    channel: UUID = ask.body.channel_id
    async with ask.context.pool.transaction("attach_channel") as tx:
        await attach_channel(tx, ask.who, ask.ids["monitorID"], channel)


async def detach(ask: Request) -> None:
    async with ask.context.pool.transaction("detach_channel") as tx:
        await detach_channel(tx, ask.who, ask.ids["monitorID"], ask.ids["channelID"])


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
_CHANNEL: Final = ("channel", "channelID")
_MONITOR: Final = ("monitor", "monitorID")

_all: Final = partial(Route, path=_ALL, scope=_PROJECT, tag="channels")
_one: Final = partial(Route, path=_ONE, scope=_CHANNEL, tag="channels")

ROUTES: Final = (
    _all(
        method="GET",
        action=_VIEW,
        handler=list_channels,
        summary="The project's notification channels, their secrets masked.",
        answer=list[NotificationChannel],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create a notification channel.",
        body=CreateNotificationChannel,
        answer=NotificationChannel,
        status=201,
        also=(409,),
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Change a channel; a secret that is blank or the mask keeps its stored value.",
        body=PatchNotificationChannel,
        answer=NotificationChannel,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Delete a channel that no policy, schedule or override uses; detach its monitors.",
        status=204,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ALL}/preview",
        action=EDIT,
        scope=_PROJECT,
        handler=preview,
        summary="Word an example message in templates of a channel.",
        tag="channels",
        body=MessageTemplates,
        answer=MessagePreview,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/test",
        action=EDIT,
        scope=_CHANNEL,
        handler=test,
        summary="Send a test message to a channel, once.",
        tag="channels",
        answer=Tested,
    ),
    Route(
        method="GET",
        path=_OF_MONITOR,
        action=_VIEW,
        scope=_MONITOR,
        handler=list_of_monitor,
        summary="List the channels of a monitor.",
        tag="channels",
        answer=list[NotificationChannel],
    ),
    Route(
        method="POST",
        path=_OF_MONITOR,
        action=EDIT,
        scope=_MONITOR,
        handler=attach,
        summary="Attach a channel to a monitor.",
        tag="channels",
        body=AttachChannel,
        status=204,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path=f"{_OF_MONITOR}/{{channelID}}",
        action=EDIT,
        scope=_MONITOR,
        handler=detach,
        summary="Detach a channel from a monitor.",
        tag="channels",
        status=204,
        also=(409,),
    ),
)
