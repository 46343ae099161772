"""Routes of an organization's webhooks. Only the response to a create contains the secret.

A bundle manages webhooks of its project, which people then cannot edit.
"""

import os
from functools import partial
from typing import Final

import msgspec
from uuid_utils.compat import uuid7

from ....probes.senders.deliver import deliver_signed
from ....probes.senders.send_result import NotDelivered
from ....probes.senders.webhook import secret_from
from ....storage.core.instant import to_text
from ....storage.engine.keyring import CannotOpen
from ....storage.notifications.queries.webhooks import select_webhook, select_webhooks_of
from ....storage.notifications.rows import WebhookRow
from ....storage.notifications.transactions.edit_webhooks import (
    EDIT,
    create_webhook,
    delete_webhook,
    enable_webhook,
    opened,
)
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import given, known
from ...wire.scope_keys import org_of
from ..schemas.notifications import CreateWebhook, Tested, ToggleEnabled, Webhook

_ALL: Final = "/api/v1/organizations/{orgID}/webhooks"
_ONE: Final = "/api/v1/webhooks/{webhookID}"
# Length of a generated secret. The specification requires 24 to 64 bytes.
_RANDOM_BYTES: Final = 32
_TEST_EVENT: Final = "webhook.test"


def _webhook_json(row: WebhookRow, secret: str | None = None) -> Webhook:
    return Webhook(
        id=row.uid,
        org_id=row.org_uid,
        project_id=known(row.project_uid),
        url=row.url,
        secret=known(secret),
        secret_ref=known(row.secret_ref),
        enabled=row.enabled,
        managed_by=known(row.managed_by or None),
        created_by=known(row.creator_uid),
        created_by_email=known(row.creator_email),
        created_at=to_text(row.created_at),
    )


async def list_webhooks(ask: Request) -> list[Webhook]:
    async with ask.context.pool.transaction("list_webhooks", read_only=True) as tx:
        return [_webhook_json(row) for row in await select_webhooks_of(tx, org_of(ask))]


async def create(ask: Request) -> Webhook:
    body = ask.body
    secret = given(body.secret)
    if secret is None:
        secret = secret_from(os.urandom(_RANDOM_BYTES))
    async with ask.context.pool.transaction("create_webhook") as tx:
        row = await create_webhook(
            tx,
            ask.who,
            ask.ids["orgID"],
            body.url,
            secret,
            given(body.project_id),
            ask.context.keyring,
            enabled=body.enabled,
        )
    return _webhook_json(row, secret)


async def update(ask: Request) -> Webhook:
    async with ask.context.pool.transaction("enable_webhook") as tx:
        return _webhook_json(
            await enable_webhook(tx, ask.who, ask.ids["webhookID"], enabled=ask.body.enabled)
        )


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_webhook") as tx:
        await delete_webhook(tx, ask.who, ask.ids["webhookID"])


async def test(ask: Request) -> Tested:
    """Makes one attempt, also to a disabled webhook."""
    context = ask.context
    async with context.pool.transaction("test_webhook", read_only=True) as tx:
        row = await select_webhook(tx, ask.ids["webhookID"])
    if row is None:
        raise Problem("not_found")
    try:
        secret = opened(row, context.keyring)
    except CannotOpen:
        return Tested(ok=False, reason="decrypt_failed")
    body = msgspec.json.encode({"event": _TEST_EVENT, "webhook_id": row.uid})
    async with context.test_permits:
        try:
            await deliver_signed(row.url, secret, _TEST_EVENT, str(uuid7()), body, context.means)
        except NotDelivered as why:
            return Tested(ok=False, reason=why.reason)
    return Tested(ok=True)


_IN_ORG: Final = ("organization", "orgID")
_WEBHOOK: Final = ("webhook", "webhookID")

_all: Final = partial(Route, path=_ALL, scope=_IN_ORG, tag="webhooks")
_one: Final = partial(Route, path=_ONE, scope=_WEBHOOK, tag="webhooks")

ROUTES: Final = (
    _all(
        method="GET",
        action=EDIT,
        handler=list_webhooks,
        summary="The organization's webhooks, without their secrets.",
        answer=list[Webhook],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Create a webhook; the secret that signs its deliveries is returned once.",
        body=CreateWebhook,
        answer=Webhook,
        status=201,
        also=(409,),
    ),
    _one(
        method="PATCH",
        action=EDIT,
        handler=update,
        summary="Enable or disable a webhook.",
        body=ToggleEnabled,
        answer=Webhook,
        also=(409,),
    ),
    _one(
        method="DELETE",
        action=EDIT,
        handler=delete,
        summary="Remove a webhook.",
        status=204,
        also=(409,),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/test",
        action=EDIT,
        scope=_WEBHOOK,
        handler=test,
        summary="Send a signed test event to a webhook, once.",
        tag="webhooks",
        answer=Tested,
    ),
)
