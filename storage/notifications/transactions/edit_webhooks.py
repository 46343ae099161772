"""Webhooks of an organization. The secret is shown once, at the creation."""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.check.target import BadTarget, read_url
from ....probes.senders.webhook import secret_fault
from ...accounts.queries import projects as projects_queries
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...accounts.transactions.authorize_tenant_write import project_of
from ...core.refusal import Refused, expect
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Tx
from ..queries import webhooks as webhooks_queries
from ..rows import WebhookRow
from ..tables import webhooks

WEBHOOKS_OF_ORGANIZATION_MOST: Final = 50
EDIT = Permission(Need.ORG_ADMIN)


def place_of(webhook: UUID) -> CipherContext:
    return CipherContext("webhooks", "secret_ciphertext", webhook)


async def create_webhook(
    tx: Tx,
    principal: Principal,
    organization: UUID,
    url: str,
    secret: str,
    project: UUID | None,
    keyring: Keyring,
    *,
    enabled: bool,
) -> WebhookRow:
    """Creates a webhook.

    Raises: Refused not_found, forbidden, invalid, webhook_quota, encryption_key_missing.
    """
    # Serialized per organization, so that the quota is exact.
    if not await removals.lock_organization(tx, organization):
        raise Refused(NOT_FOUND)
    home = await projects_queries.select_organization(tx, organization)
    assert home is not None, "it is locked"
    demand(principal, EDIT, Scope(home.id))
    expect("url", _url_fault(url))
    expect("secret", secret_fault(secret))
    key = await project_of(tx, home.id, project)
    if await webhooks.count_webhooks(tx, home.id) >= WEBHOOKS_OF_ORGANIZATION_MOST:
        raise Refused("webhook_quota")
    uid = uuid7()
    sealed = keyring.seal(secret.encode(), place_of(uid))
    maker = principal.user if isinstance(principal.user, UUID) else None
    await webhooks.insert_webhook(tx, home.id, uid, key, url, sealed, maker, enabled=enabled)
    row = await _written(tx, uid)
    await audit(tx, principal, home.id, "webhook.create", _target(row))
    return row


async def enable_webhook(
    tx: Tx, principal: Principal, webhook: UUID, *, enabled: bool
) -> WebhookRow:
    """Enables or disables a webhook. Raises: Refused not_found, forbidden."""
    before = await _lock(tx, principal, webhook)
    if before.enabled != enabled:
        await webhooks.enable_webhook(tx, before, enabled=enabled)
        change = f" enabled={before.enabled}->{enabled}".lower()
        await audit(tx, principal, before.org, "webhook.update", _target(before) + change)
    return await _written(tx, webhook)


async def delete_webhook(tx: Tx, principal: Principal, webhook: UUID) -> None:
    """Deletes a webhook. Raises: Refused not_found, forbidden."""
    row = await _lock(tx, principal, webhook)
    await webhooks.delete_webhook(tx, row)
    await audit(tx, principal, row.org, "webhook.delete", _target(row))


def opened(row: WebhookRow, keyring: Keyring) -> str:
    """Returns the signing secret. Raises: CannotOpen if no key decrypts it."""
    return keyring.open(row.secret_ciphertext, place_of(row.uid)).decode()


async def _lock(tx: Tx, principal: Principal, webhook: UUID) -> WebhookRow:
    row = await webhooks.lock_webhook(tx, webhook)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, EDIT, Scope(row.org))
    return row


async def _written(tx: Tx, webhook: UUID) -> WebhookRow:
    row = await webhooks_queries.select_webhook(tx, webhook)
    assert row is not None, "it was just written"
    return row


def _url_fault(url: str) -> str | None:
    try:
        read_url(url)
    except BadTarget as fault:
        return str(fault)
    return None


def _target(row: WebhookRow) -> str:
    return f"webhook:{row.uid}" + (f" project:{row.project_uid}" if row.project_uid else "")
