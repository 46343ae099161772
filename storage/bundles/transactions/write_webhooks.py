"""Write of a bundle's webhooks: webhooks of its project, never of the whole organization.

Only an administrator of the organization edits webhooks by hand, so only such a one can apply a
changed or removed entry. The application deletes a webhook that the bundle no longer names, because
it would continue to send to its receiver.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.queries.object_marks import select_marks
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import AccessDecision, Principal, Scope, may
from ...accounts.transactions.object_marks import WEBHOOK
from ...core.refusal import Refused
from ...engine.pools import Conflicted, Tx
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...notifications.queries.webhooks import select_webhooks_of_project
from ...notifications.rows import WebhookRow
from ...notifications.rules.webhook import WEBHOOKS_OF_ORGANIZATION_MOST
from ...notifications.tables import webhooks
from ...notifications.transactions.edit_webhooks import EDIT
from ...notifications.transactions.put_held_webhook import WebhookDraft, put_held_webhook
from ..rows import ObjectRow
from ..rules.bundle import Bundle
from ..rules.bundle_diff import BundleAction, BundleChange
from ..rules.bundle_owner import exported_named, is_left, match_named
from ..tables.bundle_ownership import ensure_marks, forget_webhooks
from .bundle_context import ApplySource, BundleContext, EntryContext
from .compared_section import (
    ComparedSection,
    compare_section,
    expect_editor,
    object_row,
    with_end,
    write_section,
)
from .oncall_entries import brief

WEBHOOK_DEFAULTS: Final[dict[str, Any]] = {"enabled": True, "secret_ref": ""}
_CHANGES: Final = frozenset({BundleAction.CREATE, BundleAction.UPDATE, BundleAction.ORPHAN})


@dataclass(slots=True)
class WantedWebhooks:
    """Compared webhooks, with the ids of all by uid."""

    section: ComparedSection[ObjectRow, WebhookDraft]
    ids: dict[str, UUID] = field(default_factory=dict)

    @property
    def changes(self) -> list[BundleChange]:
        return self.section.changes


async def export_webhooks(tx: Tx, who: Principal, home: ProjectRow) -> dict[str, Any]:
    """Returns the webhooks of a project as in a bundle; empty if the principal may not read it."""
    if not _may_edit(who, home):
        return {}
    # The host gives the uid: the path of a URL can be confidential.
    rows = [
        msgspec.structs.replace(row, name=urlsplit(row.name).hostname or "")
        for row in await _select(tx, home)
    ]
    found = exported_named(rows, "webhook")
    return {uid: brief(row.settings, WEBHOOK_DEFAULTS) for uid, row in found.items()}


def _may_edit(who: Principal, home: ProjectRow) -> bool:
    return may(who, EDIT, Scope(home.org)) is AccessDecision.ALLOWED


async def _select(tx: Tx, home: ProjectRow) -> list[ObjectRow]:
    """Returns the webhooks of the project in the order of their ids. A name is the URL."""
    marks = await select_marks(tx, home.org, home.id, WEBHOOK)
    return [
        object_row(marks, row.id, row.uid, row.url, _in_words(row))
        for row in await select_webhooks_of_project(tx, home.org, home.id)
    ]


def _in_words(row: WebhookRow) -> dict[str, Any]:
    return {"url": row.url, "enabled": row.enabled, "secret_ref": row.secret_ref or ""}


async def compare_webhooks(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedWebhooks:
    """Compares the webhooks.

    Raises:
        Refused with the faulty entry, also if the caller may not edit webhooks and one would change
        or be deleted.
    """
    if not bundle.states("webhooks"):
        return WantedWebhooks(ComparedSection("webhooks", {}, {}, {}))
    entries, home = bundle.webhooks, place.home
    rows = await _select(tx, home)
    if not _may_edit(applied.inviter or applied.principal, home):
        # Others learn nothing about webhooks that their bundle does not manage.
        mine = [row for row in rows if row.managed_by == applied.provider]
        rows = [row for row in mine if not is_left(row, applied)]
    names = {uid: entry.url for uid, entry in entries.items()}
    standing = match_named("webhooks", rows, names, applied.provider)
    drafts = {
        uid: WebhookDraft(url=entry.url, enabled=entry.enabled, secret_ref=entry.secret_ref)
        for uid, entry in entries.items()
    }
    section = ComparedSection("webhooks", drafts, standing, {})
    before = {row.id: row.settings for row in rows}
    after = {uid: asdict(draft) for uid, draft in drafts.items()}
    compare_section(section, bundle, rows, applied, before, after, WEBHOOK_DEFAULTS)
    section.changes = [with_end(one, "deleted") for one in section.changes]
    expect_editor(section, home, applied, EDIT, "webhooks", _CHANGES)
    await _expect_room(tx, home, section)
    ids = {uid: standing[uid].uid if uid in standing else uuid7() for uid in entries}
    return WantedWebhooks(section, ids)


async def _expect_room(
    tx: Tx, home: ProjectRow, section: ComparedSection[ObjectRow, WebhookDraft]
) -> None:
    new = len(section.drafts) - len(section.standing)
    kept = await webhooks.count_webhooks(tx, home.org) - len(section.orphans)
    if new and kept + new > WEBHOOKS_OF_ORGANIZATION_MOST:
        rule = f"would make more than {WEBHOOKS_OF_ORGANIZATION_MOST} of the organization"
        raise Refused("invalid", "webhooks", rule)


async def write_webhooks(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    wanted: WantedWebhooks,
    applied: ApplySource,
    terms: EntryContext,
) -> None:
    """Writes the webhooks. Those to delete are deleted when `together` is published.

    Raises:
        Refused with the faulty entry.
    """
    home, section, is_plan = place.home, wanted.section, together.is_plan
    user = (applied.inviter or applied.principal).user
    maker = user if isinstance(user, UUID) else None
    if not is_plan:
        await _lock(tx, home, section, applied)
        if section.drafts:
            await ensure_marks(tx, WEBHOOK, home.key, wanted.ids.values())

    async def put(uid: str, draft: WebhookDraft, _: ObjectRow | None) -> None:
        own = wanted.ids[uid]
        if not is_plan:
            await put_held_webhook(tx, maker, home, own, draft, terms.keyring)
            return
        async with tx.undone():
            await put_held_webhook(tx, maker, home, own, draft, terms.keyring)

    order = list(section.acts)
    await write_section(tx, home.org, section, order, put, wanted.ids, applied, is_plan=is_plan)
    if is_plan:
        return
    gone = [row.id for row in section.orphans.values()]

    async def delete(late: Tx) -> None:
        if gone:
            await webhooks.delete_webhooks(late, home.org, gone)
        await forget_webhooks(late, home.key)

    # The events of incidents wait for the destinations that it deletes.
    together.late(delete)


async def _lock(
    tx: Tx,
    home: ProjectRow,
    section: ComparedSection[ObjectRow, WebhookDraft],
    applied: ApplySource,
) -> None:
    """Locks the webhooks to write, and the number of webhooks if there are new ones.

    Raises:
        Conflicted if another transaction changed one after the comparison; Refused at the limit.
    """
    known: Mapping[str, ObjectRow] = {**section.standing, **section.orphans}
    for uid, row in sorted(known.items(), key=lambda one: one[1].id):
        if is_left(row, applied):
            continue
        held = await webhooks.lock_webhook(tx, row.uid)
        if held is None or _in_words(held) != row.settings:
            raise Conflicted(f"another transaction changed the webhook {uid}")
    if len(section.drafts) > len(section.standing):
        await webhooks.lock_webhook_quota(tx, home.org)
        await _expect_room(tx, home, section)
