"""Webhooks of an organization. An own secret is shown once, at the creation."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.senders.webhook import secret_fault
from ...accounts.rules.access import Need, Permission, Principal, Scope
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...accounts.transactions.authorize_tenant_write import (
    demand_organization,
    lock_project_of,
)
from ...accounts.transactions.object_marks import WEBHOOK, expect_unmanaged_object
from ...core.refusal import Refused, expect
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Tx
from ..queries import webhooks as webhooks_queries
from ..rows import WebhookRow
from ..rules.webhook import WEBHOOKS_OF_ORGANIZATION_MOST, url_fault
from ..tables import webhooks
from .channel_secrets import place_of_secret

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
    home = await demand_organization(tx, principal, EDIT, organization)
    expect("url", url_fault(url))
    expect("secret", secret_fault(secret))
    key = await lock_project_of(tx, home.id, project)
    await webhooks.lock_webhook_quota(tx, home.id)
    if await webhooks.count_webhooks(tx, home.id) >= WEBHOOKS_OF_ORGANIZATION_MOST:
        raise Refused("webhook_quota")
    uid = uuid7()
    sealed = keyring.seal(secret.encode(), place_of(uid))
    maker = principal.user if isinstance(principal.user, UUID) else None
    await webhooks.insert_webhook(tx, home.id, uid, key, url, maker, enabled=enabled, sealed=sealed)
    row = await _written(tx, uid)
    await audit(tx, principal, home.id, "webhook.create", _target(row))
    return row


async def enable_webhook(
    tx: Tx, principal: Principal, webhook: UUID, *, enabled: bool
) -> WebhookRow:
    """Enables or disables a webhook. Raises: Refused not_found, forbidden, managed_by_file."""
    before = await _lock(tx, principal, webhook)
    if before.enabled != enabled:
        await webhooks.enable_webhook(tx, before, enabled=enabled)
        change = f" enabled={before.enabled}->{enabled}".lower()
        await audit(tx, principal, before.org, "webhook.update", _target(before) + change)
    return await _written(tx, webhook)


async def delete_webhook(tx: Tx, principal: Principal, webhook: UUID) -> None:
    """Deletes a webhook. Raises: Refused not_found, forbidden, managed_by_file."""
    row = await _lock(tx, principal, webhook)
    await webhooks.delete_webhooks(tx, row.org, [row.id])
    await audit(tx, principal, row.org, "webhook.delete", _target(row))


def opened(row: WebhookRow, keyring: Keyring) -> str:
    """Returns the signing secret, of the project if the webhook names one.

    Raises: CannotOpen if no key decrypts it.
    """
    if row.secret_ciphertext is None:
        assert row.referred_uid is not None, "a foreign key keeps the secret"
        assert row.referred_ciphertext is not None, "a secret has a value"
        return keyring.open(row.referred_ciphertext, place_of_secret(row.referred_uid)).decode()
    return keyring.open(row.secret_ciphertext, place_of(row.uid)).decode()


async def _lock(tx: Tx, principal: Principal, webhook: UUID) -> WebhookRow:
    row = await webhooks.lock_webhook(tx, webhook)
    if row is None:
        raise Refused(NOT_FOUND)
    demand(principal, EDIT, Scope(row.org))
    if row.project is not None:
        await expect_unmanaged_object(tx, principal, row.org, row.project, WEBHOOK, row.uid)
    return row


async def _written(tx: Tx, webhook: UUID) -> WebhookRow:
    row = await webhooks_queries.select_webhook(tx, webhook)
    assert row is not None, "it was just written"
    return row


def _target(row: WebhookRow) -> str:
    return f"webhook:{row.uid}" + (f" project:{row.project_uid}" if row.project_uid else "")
