"""Reads of webhooks."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import WebhookRow
from ..tables.webhooks import _BY_UID, _COLUMNS, _FROM

_OF_ORG = f"select {_COLUMNS} {_FROM} where w.org = %(org)s order by w.id"
_OF_PROJECT = f"""
select {_COLUMNS} {_FROM} where w.org = %(org)s and w.project = %(project)s order by w.id
"""


async def select_webhook(tx: Tx, uid: UUID) -> WebhookRow | None:
    return await tx.one(WebhookRow, _BY_UID, uid=uid)


async def select_webhooks_of(tx: Tx, org: int) -> list[WebhookRow]:
    return await tx.structs(WebhookRow, _OF_ORG, org=org)


async def select_webhooks_of_project(tx: Tx, org: int, project: int) -> list[WebhookRow]:
    """Returns the webhooks of one project, without webhooks of the whole organization."""
    return await tx.structs(WebhookRow, _OF_PROJECT, org=org, project=project)
