"""Edit of a monitor: merges the given fields, checks them and writes the row and its term.

A change of schedule begins a new term at the reservation cursor, so that each window keeps the
terms under which it was reserved. A changed target and a resume request an extra run.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec

from ...accounts.rules.access import Need, Permission, Principal
from ...core.refusal import Refused
from ...engine.keyring import CannotOpen, Keyring
from ...engine.pools import Tx
from ...oncall.transactions.check_targets import lock_policy_named, refuse_policy_without_incidents
from ...scheduling.rules.run_schedule import ScheduleTerm
from ...scheduling.tables import shards as schedules
from ..queries import monitors as monitors_queries
from ..rows import MonitorRow
from ..rules.fields import FIELDS
from ..rules.monitor import MonitorDraft, MonitorType
from ..tables import compositions, monitors
from . import config_secrets as secrets_of_config
from .composite_children import make_of_children, with_canonical_config
from .create_monitor import common_values
from .expect_capabilities import expect_capabilities
from .lock_monitor import REGIONAL, demand_monitor, expect_no_part, expect_unmanaged_monitor
from .lock_references import expect_referred_key, lock_references
from .monitor_audit import audited
from .monitor_draft import check_draft, expect_no_circle, has_moved, lock_dependencies, term_of
from .write_batch import MonitorWriteBatch

EDIT = Permission(Need.EDITOR)
# Fields that are checked together with the config.
_DEFINITION = (
    "target",
    "method",
    "conditions",
    "retries",
    "timeout_seconds",
    "interval_seconds",
)
# Secrets that are sent to the address of another setting.
_SENT_TO = {"oauth2_client_secret": "oauth2_token_url"}
_SCHEDULE = (
    "interval_seconds",
    "schedule",
    "timezone",
    "timeout_seconds",
    "grace_seconds",
    "enabled",
)


async def edit_monitor(
    tx: Tx,
    principal: Principal,
    monitor: UUID,
    given: dict[str, Any],
    keyring: Keyring,
    regions: frozenset[str],
) -> MonitorRow:
    """Merges `given` (fields of MonitorDraft except type and slug) into a monitor.

    The monitor can stay in a region that was later reserved for other organizations.

    Raises:
        Refused as create_monitor, managed_by_file, and retired if a retired monitor is enabled.
    """
    if "depends_on" in given:
        # Two concurrent edits could create a cycle that neither of them detects.
        await compositions.lock_compositions_around(tx, monitor)
    elif "config" in given:
        await compositions.lock_compositions_around(tx, monitor, only_composites=True)
    region = str(given.get("region", ""))
    if region in regions:
        await schedules.ensure_shard(tx, 0, region, tx.now)
    before = await demand_monitor(tx, principal, EDIT, monitor)
    expect_unmanaged_monitor(principal, before)
    expect_no_part(before)
    together = MonitorWriteBatch(principal)
    await edit_held(tx, together, before, given, keyring, regions)
    if "depends_on" in given:
        await expect_no_circle(tx, before)
    await together.flush(tx)
    row = await monitors_queries.select_monitor(tx, monitor)
    assert row is not None, "it is locked"
    return row


async def edit_held(
    tx: Tx,
    together: MonitorWriteBatch,
    before: MonitorRow,
    given: dict[str, Any],
    keyring: Keyring,
    regions: frozenset[str],
) -> None:
    """Edits a locked monitor. The caller checks for cycles and flushes `together` afterwards.

    An edit without an effect is not written, and does not raise the revision. In a plan, only the
    composition of the monitor is written.

    Raises:
        Refused regional_monitor if the monitor is a part of one, and the batch does not edit it.
    """
    if before.regional_of is not None and not together.edits_regional:
        raise Refused(REGIONAL)
    draft, stored = merged_draft(before, given), _stored_secrets(before, keyring)
    keeps_unread = stored is None and _is_same_definition(before, draft)
    if not keeps_unread:
        draft = _with_secrets(before, draft, stored)
    if before.retired_at is not None and draft.enabled:
        raise Refused("retired")
    check_draft(draft, regions | {before.region}, has_definition=not keeps_unread)
    draft = with_canonical_config(draft)
    await together.use.change(tx, before.org, before, draft)
    shard = await _shard_of(tx, before, draft)
    plain, secret = secrets_of_config.split(before.type, draft.config)
    dependencies = await _dependencies(tx, before, draft, given)
    policy = await _policy(tx, before, draft, given)
    await lock_references(tx, before.org, before.project, plain)
    await _expect_config(tx, before, plain, keyring)
    is_changed = (
        (shard, dependencies, policy) != (before.shard, before.depends_on, before.escalation_policy)
        or any(getattr(before, name) != value for name, value in common_values(draft).items())
        or _is_other_json(plain, msgspec.json.decode(before.config))
        or (not keeps_unread and _is_other_json(secret, stored or {}))
    )
    if not is_changed and not together.is_plan:
        return
    ciphertext = (
        before.config_ciphertext
        if keeps_unread
        else secrets_of_config.encrypt(keyring, secret, before.uid)
    )
    values = {
        **common_values(draft),
        "org": before.org,
        "id": before.id,
        "shard": shard,
        "depends_on": dependencies,
        "config": msgspec.json.encode(plain).decode(),
        "config_ciphertext": ciphertext,
        "escalation_policy": policy,
        "now": tx.now,
    }
    if draft.type == MonitorType.COMPOSITE:
        await _follow_children(tx, together, before, draft)
    if together.is_plan:
        together.planned_dependencies[before.id] = dependencies
        return
    await monitors.update_monitor(tx, values)
    key = before.key
    together.changed(key, enabled=draft.enabled)
    together.audit(before.org, "monitor.update", _audit_target(before, draft))
    await _follow_schedule(tx, together, before, draft, shard)
    if draft.enabled and _wants_extra_run(before, draft):
        together.run(key, shard, with_term=not before.enabled)


async def _expect_config(
    tx: Tx, before: MonitorRow, plain: dict[str, Any], keyring: Keyring
) -> None:
    """Checks changed settings that depend on a project secret, or on the running processes."""
    stored: dict[str, Any] = msgspec.json.decode(before.config)
    if any(plain.get(name) != stored.get(name) for name in ("client_cert", "client_key_ref")):
        await expect_referred_key(tx, before.org, before.project, plain, keyring)
    await expect_capabilities(tx, before.type, plain, stored)


def _is_other_json(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Compares JSON texts, because 1 equals True in Python."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    return encode(one) != encode(other)


async def _shard_of(tx: Tx, before: MonitorRow, draft: MonitorDraft) -> int:
    if draft.region == before.region:
        return before.shard
    return await schedules.select_shard_id(tx, 0, draft.region) or before.shard


async def _follow_children(
    tx: Tx, together: MonitorWriteBatch, before: MonitorRow, draft: MonitorDraft
) -> None:
    changed = draft.config != msgspec.json.decode(before.config)
    if changed:
        await make_of_children(tx, before.key, before.project, draft)
    resumed = draft.enabled and not before.enabled
    if changed or resumed:
        # A result before the start of a resume would describe the pause.
        together.wake(before.key, with_term=resumed)


def _wants_extra_run(before: MonitorRow, draft: MonitorDraft) -> bool:
    if draft.type in (MonitorType.PUSH, MonitorType.COMPOSITE):
        return False
    return not before.enabled or draft.target != before.target


async def _follow_schedule(
    tx: Tx, together: MonitorWriteBatch, before: MonitorRow, draft: MonitorDraft, shard: int
) -> None:
    """Writes a new term if the schedule or shard changed."""
    changed = any(getattr(before, name) != getattr(draft, name) for name in _SCHEDULE)
    if not changed and shard == before.shard:
        return
    key = before.key
    term = term_of(draft, before.uid, shard, tx.now)
    if draft.interval_seconds == before.interval_seconds:
        known = await schedules.select_terms_of(tx, [key])
        term = _keeping_anchor(term, known[key][-1])
    left = before.shard if shard != before.shard else None
    together.term(key, term, tx.now, left=left)


def _keeping_anchor(term: ScheduleTerm, last: ScheduleTerm) -> ScheduleTerm:
    return replace(term, anchor=last.anchor)


def merged_draft(before: MonitorRow, given: dict[str, Any]) -> MonitorDraft:
    """Returns the stored monitor with the given fields, its secrets blank."""
    values: dict[str, Any] = {name: getattr(before, name) for name in FIELDS}
    values["config"] = msgspec.json.decode(before.config)
    values.update(given)
    return MonitorDraft(type=before.type, slug=None, **values)


def with_stored_secrets(before: MonitorRow, draft: MonitorDraft, keyring: Keyring) -> MonitorDraft:
    """Returns the draft with stored secrets in place of blanks, which is what is checked.

    Raises:
        Refused invalid if a secret must be given again.
    """
    return _with_secrets(before, draft, _stored_secrets(before, keyring))


def _with_secrets(
    before: MonitorRow, draft: MonitorDraft, stored: dict[str, Any] | None
) -> MonitorDraft:
    plain, secret = secrets_of_config.split(before.type, draft.config)
    if stored is None:
        _, blanks = secrets_of_config.split(before.type, msgspec.json.decode(before.config))
        secrets_of_config.expect_replaced(blanks, secret)
    config: dict[str, Any] = msgspec.json.decode(before.config)
    # A proxy sees what is sent without TLS, and an endpoint its client secret.
    kept = secrets_of_config.keep_blanks(
        secret,
        stored or {},
        moved=has_moved(before.target, draft.target)
        or _has_moved("proxy_url", config, draft.config),
        moved_settings=[
            name for name, url in _SENT_TO.items() if _has_moved(url, config, draft.config)
        ],
    )
    return msgspec.structs.replace(draft, config=secrets_of_config.join(plain, kept))


def _has_moved(setting: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Returns whether the setting is another address. Nothing is sent to a removed one."""
    address = str(after.get(setting, ""))
    return bool(address) and has_moved(str(before.get(setting, "")), address)


def _stored_secrets(before: MonitorRow, keyring: Keyring) -> dict[str, Any] | None:
    """Returns the decrypted secrets, None if no key decrypts them."""
    with suppress(CannotOpen):
        return secrets_of_config.decrypt(keyring, before.config_ciphertext, before.uid)
    return None


def _is_same_definition(before: MonitorRow, draft: MonitorDraft) -> bool:
    """Returns whether the draft has the stored definition of the check, all secrets blank.

    Then its secrets are kept although no key decrypts them, and the check of the definition, which
    needs them, is omitted.
    """
    return all(
        getattr(before, name) == getattr(draft, name) for name in _DEFINITION
    ) and not _is_other_json(draft.config, msgspec.json.decode(before.config))


async def _dependencies(
    tx: Tx, before: MonitorRow, draft: MonitorDraft, given: dict[str, Any]
) -> list[int]:
    if "depends_on" not in given:
        return before.depends_on
    return await lock_dependencies(tx, before.org, before.project, draft)


async def _policy(
    tx: Tx, before: MonitorRow, draft: MonitorDraft, given: dict[str, Any]
) -> int | None:
    if "escalation_policy_id" not in given:
        if before.escalation_policy is not None and not draft.auto_incident:
            refuse_policy_without_incidents()
        return before.escalation_policy
    return await lock_policy_named(
        tx,
        before.org,
        before.project,
        draft.escalation_policy_id,
        opens_incidents=draft.auto_incident,
    )


def _audit_target(before: MonitorRow, draft: MonitorDraft) -> str:
    target = f"monitor:{before.uid} slug={before.slug} type={before.type} region={draft.region}"
    if draft.enabled != before.enabled:
        target = f"{target} enabled={before.enabled}->{draft.enabled}"
    return audited(target, draft)


async def retire_held(tx: Tx, together: MonitorWriteBatch, before: MonitorRow) -> None:
    """Retires a locked monitor. Its schedule ends at the reservation cursor."""
    await monitors.retire_monitor(tx, before.org, before.id)
    together.changed(before.key, enabled=False)
    await _follow_schedule(
        tx, together, before, merged_draft(before, {"enabled": False}), before.shard
    )
