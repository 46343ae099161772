"""A new monitor: its row, its first term, its pending state, and an extra run at once."""

import os
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...keyring import Keyring, Place
from ...pools import Tx
from ...rules.access import Action, Need, Principal
from ...rules.instant import SECOND, Instant
from ...rules.monitor import MonitorType
from ...rules.refusal import Refused
from ...rules.slug import free_slug, slug_of
from ...rules.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...tables import compositions, monitors, queues, schedules
from ...tables.monitors import MonitorRow
from ...tables.projects import ProjectRow
from ..authority import audit, demand_project
from ..oncall.routing import hold_policy_named
from ..secrets.follow_references import hold_references
from . import secrets_of_config
from .audited import audited
from .children import make_of_children, with_natural_children
from .draft import MonitorDraft, check_draft, resolve_dependencies, term_of

MONITORS_OF_PROJECT_MOST = 20_000
# An extra run that nobody took up by then says nothing any more.
EXTRA_CLAIM_US = 120 * SECOND
_CREATE = Action(Need.EDITOR)


async def create_monitor(
    tx: Tx,
    principal: Principal,
    project: UUID,
    draft: MonitorDraft,
    keyring: Keyring,
    regions: frozenset[str],
) -> MonitorRow:
    """Refused not_found, forbidden, invalid with its field, slug_taken, encryption_key_missing."""
    home = await demand_project(tx, principal, _CREATE, project)
    check_draft(draft, regions)
    draft = with_natural_children(draft)
    if draft.type == MonitorType.COMPOSITE:
        await compositions.hold_compositions_of(tx, project)
    uid = uuid7()
    shard = await schedules.found_shard(tx, 0, draft.region, tx.now)
    await monitors.lock_shards(tx, [shard])
    values = await _values(tx, home, draft, keyring, uid, shard)
    monitor = await monitors.insert_monitor(tx, values)
    if monitor is None:
        raise Refused("slug_taken")
    if draft.type == MonitorType.COMPOSITE:
        await make_of_children(tx, (home.org, monitor), home.id, draft)
        await compositions.call(tx, (home.org, monitor), tx.now)
    elif draft.enabled and draft.type != MonitorType.PUSH:
        await ask_for_extra_run(tx, home.org, monitor, shard)
    target = f"monitor:{uid} slug={values['slug']} type={draft.type} region={draft.region}"
    target = audited(f"{target} enabled={draft.enabled}", draft)
    await audit(tx, principal, home.org, "monitor.create", target)
    await schedules.add_term(tx, home.org, monitor, term_of(draft, uid, shard, tx.now), tx.now)
    row = await monitors.select_monitor(tx, uid)
    assert row is not None, "it was just written"
    return row


async def ask_for_extra_run(
    tx: Tx, org: int, monitor: int, shard: int, due: Instant | None = None
) -> None:
    """A run beside the schedule, now or when it is due: what was asked for is not to wait for the
    next window."""
    due = tx.now if due is None else max(due, tx.now)
    until = Instant(due + EXTRA_CLAIM_US)
    await queues.add_job(tx, uuid7(), org, monitor, shard, "extra", due, until)


def push_token(keyring: Keyring, uid: UUID) -> tuple[str, bytes, bytes]:
    """A new token, the digest it is found by, and what is stored to show it to editors."""
    token = token_from(TokenKind.PUSH, os.urandom(RANDOM_BYTES))
    return token, digest(token), keyring.seal(token.encode(), push_token_place(uid))


def push_token_place(uid: UUID) -> Place:
    return Place("monitors", "push_token_sealed", uid)


async def _values(
    tx: Tx, home: ProjectRow, draft: MonitorDraft, keyring: Keyring, uid: UUID, shard: int
) -> dict[str, object]:
    plain, secret = secrets_of_config.split(draft.type, draft.config)
    secret = secrets_of_config.keep_blanks(secret, {}, moved=False)
    await hold_references(tx, home.org, home.id, plain)
    is_push = draft.type == MonitorType.PUSH
    _, hashed, sealed = push_token(keyring, uid) if is_push else (None, None, None)
    return {
        **common_values(draft),
        "org": home.org,
        "uid": uid,
        "project": home.id,
        "shard": shard,
        "slug": draft.slug or await _derived_slug(tx, home, draft.name),
        "type": draft.type,
        "depends_on": await resolve_dependencies(tx, home.org, home.id, draft, None),
        "config": msgspec.json.encode(plain).decode(),
        "config_sealed": secrets_of_config.seal(keyring, secret, uid),
        "escalation_policy": await hold_policy_named(
            tx,
            home.org,
            home.id,
            draft.escalation_policy_id,
            opens_incidents=draft.auto_incident,
        ),
        "push_token_hash": hashed,
        "push_token_sealed": sealed,
        "now": tx.now,
    }


def common_values(draft: MonitorDraft) -> dict[str, object]:
    """The columns that an insert and an update give alike, straight from the draft."""
    names = (
        "name description target method interval_seconds timeout_seconds retries "
        "failure_threshold confirm_interval_seconds renotify_seconds grace_seconds conditions "
        "tags enabled auto_incident"
    )
    return {name: getattr(draft, name) for name in names.split()}


async def _derived_slug(tx: Tx, home: ProjectRow, name: str) -> str:
    taken = await monitors.select_slugs(tx, home.org, home.id)
    if len(taken) >= MONITORS_OF_PROJECT_MOST:
        raise Refused("invalid", "project", f"has {MONITORS_OF_PROJECT_MOST} monitors already")
    return free_slug(slug_of(name), taken)
