"""Webhooks of organizations. Callers encrypt the secret."""

from collections.abc import Sequence
from uuid import UUID

from ...core.key import WebhookKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import WebhookRow

_COLUMNS = """
w.org, w.id, w.uid, o.uid, w.project, p.uid, w.url, w.secret_ciphertext, w.enabled, u.uid, u.email,
w.created_at
"""
_FROM = """
from webhooks w join organizations o on o.id = w.org
  left join projects p on p.org = w.org and p.id = w.project
  left join users u on u.id = w.created_by
"""
_BY_UID = f"select {_COLUMNS} {_FROM} where w.uid = %(uid)s"
# The lock prevents a deletion between read and write.
_LOCK = f"{_BY_UID} for update of w"
_BY_KEY = f"""
select {_COLUMNS} {_FROM}
  join unnest(%(orgs)s::int[], %(ids)s::int[]) as t(org, id) on w.org = t.org and w.id = t.id
"""
_COUNT = "select count(*) from webhooks where org = %(org)s"
_INSERT = """
insert into webhooks
  (org, uid, project, url, secret_ciphertext, enabled, created_by, created_at, updated_at)
select %(org)s, %(uid)s, %(project)s, %(url)s, %(sealed)s, %(enabled)s,
  (select id from users where uid = %(creator)s::uuid), at(%(now)s), at(%(now)s)
"""
_ENABLE = """
update webhooks set enabled = %(enabled)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from webhooks where org = %(org)s and id = %(id)s"


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


async def insert_webhook(
    tx: Tx,
    org: int,
    uid: UUID,
    project: int | None,
    url: str,
    sealed: bytes,
    creator: UUID | None,
    *,
    enabled: bool,
) -> None:
    await tx.execute(
        _INSERT,
        org=org,
        uid=uid,
        project=project,
        url=url,
        sealed=sealed,
        enabled=enabled,
        creator=creator,
        now=tx.now,
    )


async def enable_webhook(tx: Tx, row: WebhookRow, *, enabled: bool) -> None:
    count = await tx.execute(_ENABLE, org=row.org, id=row.id, enabled=enabled, now=tx.now)
    assert count == 1, "the webhook is locked and there"


async def delete_webhook(tx: Tx, row: WebhookRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)
