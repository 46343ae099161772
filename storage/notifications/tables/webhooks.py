"""Webhooks of organizations and projects. Callers encrypt an own secret."""

from collections.abc import Sequence
from uuid import UUID

from ...core.key import WebhookKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import WebhookRow

_COLUMNS = """
w.org, w.id, w.uid, o.uid, w.project, p.uid, w.url, w.secret_ciphertext, w.enabled, u.uid, u.email,
w.created_at, s.name, s.uid, s.value_ciphertext, coalesce(b.managed_by, '')
"""
_FROM = """
from webhooks w join organizations o on o.id = w.org
  left join projects p on p.org = w.org and p.id = w.project
  left join users u on u.id = w.created_by
  left join project_secrets s on s.org = w.org and s.id = w.secret
  left join bundle_objects b on b.org = w.org and b.project = w.project and b.kind = 'webhook'
    and b.uid = w.uid and b.orphaned_at is null
"""
_BY_UID = f"select {_COLUMNS} {_FROM} where w.uid = %(uid)s"
# The lock prevents a deletion between read and write. Events of incidents do not wait for it.
_LOCK = f"{_BY_UID} for no key update of w"
# First key of the advisory locks. The second key is the organization.
QUOTA_LOCK_CLASS = 1_279_610_189
_LOCK_QUOTA = f"select pg_advisory_xact_lock({QUOTA_LOCK_CLASS}, %(org)s::int)"
_BY_KEY = f"""
select {_COLUMNS} {_FROM}
  join unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id) on w.org = t.org and w.id = t.id
"""
_COUNT = "select count(*) from webhooks where org = %(org)s"
_SECRET = """
(select s.id from project_secrets s
  where s.org = %(org)s and s.project = %(project)s and s.name = %(secret_ref)s)
"""
_INSERT = f"""
insert into webhooks
  (org, uid, project, url, secret_ciphertext, secret, enabled, created_by, created_at, updated_at)
select %(org)s, %(uid)s, %(project)s, %(url)s, %(sealed)s, {_SECRET}, %(enabled)s,
  (select id from users where uid = %(creator)s::uuid), at(%(now)s), at(%(now)s)
"""
_UPDATE = """
update webhooks set url = %(url)s, enabled = %(enabled)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_SIGN = f"""
update webhooks set secret = {_SECRET}, secret_ciphertext = null
where org = %(org)s and id = %(id)s
"""
_ENABLE = """
update webhooks set enabled = %(enabled)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_OF_SEVERAL = "org = %(org)s and id = any(%(ids)s::int[])"
_LOCK_TO_DELETE = f"select id from webhooks where {_OF_SEVERAL} order by id for update"
_LOCK_DESTINATIONS = """
select id from destinations where org = %(org)s and webhook = any(%(ids)s::int[])
order by id for update
"""
_DELETE = f"delete from webhooks where {_OF_SEVERAL}"


async def lock_webhook(tx: Tx, uid: UUID) -> WebhookRow | None:
    tx.lock_rank(LockRank.CHANNEL, "a webhook that changes")
    return await tx.one(WebhookRow, _LOCK, uid=uid)


async def select_webhooks_by_key(tx: Tx, keys: Sequence[WebhookKey]) -> list[WebhookRow]:
    """Returns existing webhooks by (organization, id), unordered."""
    if not keys:
        return []
    return await tx.structs(WebhookRow, _BY_KEY, **key_arrays(keys, "ids"))


async def count_webhooks(tx: Tx, org: int) -> int:
    count: int = await tx.value(_COUNT, org=org)
    return count


async def lock_webhook_quota(tx: Tx, org: int) -> None:
    """Serializes new webhooks of an organization until the commit, so that its quota is exact."""
    tx.lock_rank(LockRank.CHANNEL, "the number of webhooks")
    await tx.execute(_LOCK_QUOTA, org=org)


async def insert_webhook(
    tx: Tx,
    org: int,
    uid: UUID,
    project: int | None,
    url: str,
    creator: UUID | None,
    *,
    enabled: bool,
    sealed: bytes | None = None,
    secret_ref: str | None = None,
) -> None:
    """Inserts a webhook with its own secret, or with a locked one that its project has."""
    await tx.execute(
        _INSERT,
        org=org,
        uid=uid,
        project=project,
        url=url,
        sealed=sealed,
        secret_ref=secret_ref,
        enabled=enabled,
        creator=creator,
        now=tx.now,
    )


async def enable_webhook(tx: Tx, row: WebhookRow, *, enabled: bool) -> None:
    count = await tx.execute(_ENABLE, org=row.org, id=row.id, enabled=enabled, now=tx.now)
    assert count == 1, "the webhook is locked and there"


async def update_webhook(tx: Tx, row: WebhookRow, url: str, *, enabled: bool) -> None:
    given = {"url": url, "enabled": enabled, "now": tx.now}
    await tx.execute(_UPDATE, org=row.org, id=row.id, **given)


async def sign_with(tx: Tx, row: WebhookRow, secret_ref: str) -> None:
    """Makes a locked secret of the project sign, in place of the own one."""
    key = {"org": row.org, "id": row.id, "project": row.project}
    await tx.execute(_SIGN, **key, secret_ref=secret_ref)


async def delete_webhooks(tx: Tx, org: int, ids: Sequence[int]) -> None:
    """Deletes webhooks of an organization with their waiting deliveries.

    Locks: the webhooks by id, then their destinations by id, as writers of events lock both. The
    cascade would lock the destinations in the order of the webhooks.
    """
    given = {"org": org, "ids": list(ids)}
    await tx.rows(_LOCK_TO_DELETE, **given)
    tx.lock_rank(LockRank.OUTBOX, "destinations of webhooks that are deleted")
    await tx.rows(_LOCK_DESTINATIONS, **given)
    await tx.execute(_DELETE, **given)
