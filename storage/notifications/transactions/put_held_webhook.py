"""Write of a whole webhook of a project by a bundle, whose applications are not audited."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from ....probes.senders.webhook import secret_fault
from ...accounts.rows import ProjectRow
from ...core.refusal import expect
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ..rows import WebhookRow
from ..rules.webhook import has_moved, url_fault
from ..tables import webhooks
from ..tables.channels import lock_shared_values
from .channel_secrets import place_of_secret


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookDraft:
    """Requested webhook. `secret_ref` names a secret of the project; empty keeps the own secret."""

    url: str
    enabled: bool
    secret_ref: str


async def put_held_webhook(
    tx: Tx, creator: UUID | None, home: ProjectRow, uid: UUID, draft: WebhookDraft, keyring: Keyring
) -> None:
    """Creates or replaces a webhook of a locked project, for a caller that may edit it.

    The caller checked the quota.

    Raises: Refused invalid with the field.
    """
    expect("url", url_fault(draft.url))
    names = {draft.secret_ref} if draft.secret_ref else set()
    values = await lock_shared_values(tx, home.org, home.id, names)
    before = await webhooks.lock_webhook(tx, uid)
    expect("secret_ref", _secret_fault(draft, before, values, keyring))
    if before is None:
        await webhooks.insert_webhook(
            tx,
            home.org,
            uid,
            home.id,
            draft.url,
            creator,
            enabled=draft.enabled,
            secret_ref=draft.secret_ref,
        )
        return
    await webhooks.update_webhook(tx, before, draft.url, enabled=draft.enabled)
    if draft.secret_ref:
        await webhooks.sign_with(tx, before, draft.secret_ref)


def _secret_fault(
    draft: WebhookDraft,
    before: WebhookRow | None,
    values: Mapping[str, tuple[UUID, bytes]],
    keyring: Keyring,
) -> str | None:
    if not draft.secret_ref:
        if before is None or before.secret_ciphertext is None:
            return "must name a secret of the project: the webhook has no own one"
        if has_moved(before.url, draft.url):
            return "must name a secret of the project, as scheme, host or port changed"
        return None
    if draft.secret_ref not in values:
        return "names no secret of this project"
    secret, sealed = values[draft.secret_ref]
    try:
        value = keyring.open(sealed, place_of_secret(secret)).decode()
    except CannotOpen:
        return "names a secret that no configured key opens"
    fault = secret_fault(value)
    return None if fault is None else f"names a secret whose value {fault}"
