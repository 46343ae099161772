"""Creation of a monitor: its row, first term, pending state and extra run."""

import os
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.tables import tenant_deletion as removals
from ...accounts.transactions.authorize import NOT_FOUND, demand_project
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...core.slug import free_slug, slug_of
from ...core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Tx
from ...oncall.transactions.check_targets import lock_policy_named
from ...scheduling.tables import shards as schedules
from ..queries import monitors as monitors_queries
from ..rows import MonitorRow
from ..rules.monitor import MonitorDraft, MonitorType
from ..tables import compositions, monitors
from . import config_secrets as secrets_of_config
from .composite_children import make_of_children, with_canonical_config
from .expect_capabilities import expect_capabilities
from .lock_references import expect_referred_key, lock_references
from .monitor_audit import audited
from .monitor_draft import check_draft, lock_dependencies, term_of
from .write_batch import MonitorWriteBatch

MONITORS_OF_PROJECT_MOST = 20_000
# Number of derived slugs that are tried. A concurrent transaction can take a derived slug first.
SLUG_ATTEMPTS = 100
CREATE = Permission(Need.EDITOR)


async def create_monitor(
    tx: Tx,
    principal: Principal,
    project: UUID,
    draft: MonitorDraft,
    keyring: Keyring,
    regions: frozenset[str],
) -> MonitorRow:
    """Creates a monitor.

    Raises:
        Refused not_found, forbidden, invalid with its field, slug_taken, encryption_key_missing.
    """
    home = await demand_project(tx, principal, CREATE, project)
    check_draft(draft, regions)
    if not await removals.lock_project_quota(tx, home.org, home.id):
        raise Refused(NOT_FOUND)
    if await monitors.count_monitors(tx, home.org, home.id) >= MONITORS_OF_PROJECT_MOST:
        raise Refused("invalid", "project", f"has {MONITORS_OF_PROJECT_MOST} monitors already")
    if draft.type == MonitorType.COMPOSITE:
        await compositions.lock_compositions_of(tx, project)
    uid = uuid7()
    shard = await schedules.ensure_shard(tx, 0, draft.region, tx.now)
    together = MonitorWriteBatch(principal)
    await create_held(tx, together, home, draft, keyring, uid, shard)
    await together.flush(tx)
    row = await monitors_queries.select_monitor(tx, uid)
    assert row is not None, "it was just written"
    return row


async def create_held(
    tx: Tx,
    together: MonitorWriteBatch,
    home: ProjectRow,
    draft: MonitorDraft,
    keyring: Keyring,
    uid: UUID,
    shard: int,
) -> None:
    """Creates a monitor from a checked draft. `together` must be flushed afterwards.

    The caller checks the limit of monitors of the project. For a composite, requires the lock of
    the project's compositions.
    """
    draft = with_canonical_config(draft)
    await together.use.change(tx, home.org, None, draft)
    values = await _values(tx, home, draft, keyring, uid, shard)
    monitor = await _insert(tx, home, draft, values)
    key = MonitorKey((home.org, monitor))
    together.came(key)
    if draft.type == MonitorType.COMPOSITE:
        await make_of_children(tx, key, home.id, draft)
        together.wake(key, with_term=False)
    elif draft.enabled and draft.type != MonitorType.PUSH:
        together.run(key, shard, with_term=False)
    target = f"monitor:{uid} slug={values['slug']} type={draft.type} region={draft.region}"
    target = audited(f"{target} enabled={draft.enabled}", draft)
    together.audit(home.org, "monitor.create", target)
    together.term(key, term_of(draft, uid, shard, tx.now), tx.now)


async def _insert(tx: Tx, home: ProjectRow, draft: MonitorDraft, values: dict[str, object]) -> int:
    """Inserts with the draft's slug or a derived one.

    Raises:
        Refused slug_taken.
    """
    for _ in range(1 if draft.slug else SLUG_ATTEMPTS):
        values["slug"] = draft.slug or await _derived_slug(tx, home, draft.name)
        monitor = await monitors.insert_monitor(tx, values)
        if monitor is not None:
            return monitor
    raise Refused("slug_taken")


def push_token(keyring: Keyring, uid: UUID) -> tuple[str, bytes, bytes]:
    """Returns a new token, its digest for lookups, and its encrypted form for editors."""
    token = token_from(TokenKind.PUSH, os.urandom(RANDOM_BYTES))
    return token, digest(token), keyring.seal(token.encode(), push_token_place(uid))


def push_token_place(uid: UUID) -> CipherContext:
    return CipherContext("monitors", "push_token_ciphertext", uid)


async def _values(
    tx: Tx, home: ProjectRow, draft: MonitorDraft, keyring: Keyring, uid: UUID, shard: int
) -> dict[str, object]:
    plain, secret = secrets_of_config.split(draft.type, draft.config)
    secret = secrets_of_config.keep_blanks(secret, {}, moved=False)
    dependencies = await lock_dependencies(tx, home.org, home.id, draft)
    await lock_references(tx, home.org, home.id, plain)
    await expect_referred_key(tx, home.org, home.id, plain, keyring)
    await expect_capabilities(tx, draft.type, plain)
    is_push = draft.type == MonitorType.PUSH
    _, hashed, sealed = push_token(keyring, uid) if is_push else (None, None, None)
    return {
        **common_values(draft),
        "org": home.org,
        "uid": uid,
        "project": home.id,
        "shard": shard,
        "slug": draft.slug,
        "type": draft.type,
        "depends_on": dependencies,
        "config": msgspec.json.encode(plain).decode(),
        "config_ciphertext": secrets_of_config.encrypt(keyring, secret, uid),
        "escalation_policy": await lock_policy_named(
            tx,
            home.org,
            home.id,
            draft.escalation_policy_id,
            opens_incidents=draft.auto_incident,
        ),
        "push_token_hash": hashed,
        "push_token_ciphertext": sealed,
        "now": tx.now,
    }


def common_values(draft: MonitorDraft) -> dict[str, object]:
    """Returns the columns that both insert and update take directly from the draft."""
    return {name: getattr(draft, name) for name in monitors.WRITTEN}


async def _derived_slug(tx: Tx, home: ProjectRow, name: str) -> str:
    return free_slug(slug_of(name), await monitors.select_slugs(tx, home.org, home.id))
