"""Open invitations. A link is found by its SHA-256, and only the newest link is valid."""

from typing import Final
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import InvitationRow
from ..rules.invitation import LEASE_US, TTL_US

_COLUMNS: Final = """
i.org, i.id, i.uid, o.uid, o.name, i.project, p.uid, p.name, i.email, i.role::text,
coalesce(nullif(u.display_name, ''), u.email), i.created_at, i.expires_at, i.mail_due_at,
i.mailed_at, i.attempts, i.display_name
"""
_FROM: Final = """
from invitations i join organizations o on o.id = i.org
  left join projects p on p.org = i.org and p.id = i.project
  left join users u on u.id = i.invited_by
"""
_IS_OPEN: Final = "i.expires_at > at(%(now)s)"
_LOCK: Final = f"select {_COLUMNS} {_FROM} where i.uid = %(uid)s for update of i"
_BY_TOKEN: Final = f"select {_COLUMNS} {_FROM} where i.token_hash = %(hash)s and {_IS_OPEN}"
_LOCK_BY_TOKEN: Final = f"{_BY_TOKEN} for update of i"
# A further invitation of the same address to the same scope replaces the earlier one.
_PUT: Final = """
insert into invitations (org, uid, project, email, role, token_hash, invited_by, created_at,
  expires_at, mail_due_at, display_name)
values (%(org)s, %(uid)s, %(project)s, %(email)s, %(role)s::role, %(hash)s,
  (select id from users where uid = %(inviter)s::uuid), at(%(now)s), at(%(expires)s),
  case when %(mails)s then at(%(now)s) end, %(name)s)
on conflict (org, lower(email), coalesce(project, 0)) do update set role = excluded.role,
  token_hash = coalesce(excluded.token_hash, invitations.token_hash),
  invited_by = excluded.invited_by, expires_at = excluded.expires_at,
  mail_due_at = case when %(mails)s then greatest(at(%(now)s),
    coalesce(invitations.mailed_at + interval '1 minute', at(%(now)s))) end, attempts = 0,
  display_name = coalesce(nullif(excluded.display_name, ''), invitations.display_name)
returning uid
"""
_RENEW: Final = """
update invitations set expires_at = at(%(expires)s), attempts = 0,
  token_hash = coalesce(%(hash)s::bytea, token_hash),
  mail_due_at = case when %(mails)s then at(%(now)s) end
where org = %(org)s and id = %(id)s
"""
_DELETE: Final = "delete from invitations where org = %(org)s and id = %(id)s"
_DROP_EXPIRED: Final = "delete from invitations where expires_at <= at(%(now)s)"
_LEASE: Final = """
update invitations set attempts = attempts + 1, mail_due_at = at(%(until)s)
where (org, id) in (
  select org, id from invitations where mail_due_at <= at(%(now)s) and expires_at > at(%(now)s)
  order by mail_due_at limit %(most)s for update skip locked)
returning uid
"""
_SET_TOKEN: Final = "update invitations set token_hash = %(hash)s where uid = %(uid)s"
# A resend during an attempt ends its lease. The end of the attempt then changes nothing.
_OF_LEASE: Final = "where uid = %(uid)s and mail_due_at = at(%(lease)s)"
_SET_MAILED: Final = f"""
update invitations set mail_due_at = null, mailed_at = at(%(now)s) {_OF_LEASE}
"""
_PUT_OFF: Final = f"update invitations set mail_due_at = at(%(at)s) {_OF_LEASE}"
# An earlier e-mail is forgotten too, because its link has ended with the later attempts.
_GIVE_UP: Final = f"update invitations set mail_due_at = null, mailed_at = null {_OF_LEASE}"


async def lock_invitation(tx: Tx, uid: UUID) -> InvitationRow | None:
    return await tx.one(InvitationRow, _LOCK, uid=uid)


async def select_by_token(tx: Tx, token_hash: bytes) -> InvitationRow | None:
    return await tx.one(InvitationRow, _BY_TOKEN, hash=token_hash, now=tx.now)


async def lock_by_token(tx: Tx, token_hash: bytes) -> InvitationRow | None:
    return await tx.one(InvitationRow, _LOCK_BY_TOKEN, hash=token_hash, now=tx.now)


async def put_invitation(
    tx: Tx,
    org: int,
    uid: UUID,
    project: int | None,
    email: str,
    role: str,
    inviter: UUID | None,
    token_hash: bytes | None,
    display_name: str = "",
) -> UUID:
    """Writes an invitation and returns its id. Without `token_hash` an e-mail is due."""
    written: UUID = await tx.value(
        _PUT,
        org=org,
        uid=uid,
        project=project,
        email=email,
        role=role,
        hash=token_hash,
        inviter=inviter,
        name=display_name,
        mails=token_hash is None,
        now=tx.now,
        expires=tx.now + TTL_US,
    )
    return written


async def renew(tx: Tx, org: int, invitation: int, token_hash: bytes | None) -> None:
    """Extends an invitation. Without `token_hash` an e-mail is due."""
    await tx.execute(
        _RENEW,
        org=org,
        id=invitation,
        hash=token_hash,
        mails=token_hash is None,
        now=tx.now,
        expires=tx.now + TTL_US,
    )


async def delete_invitation(tx: Tx, org: int, invitation: int) -> None:
    await tx.execute(_DELETE, org=org, id=invitation)


async def purge_expired_invitations(tx: Tx) -> int:
    return await tx.execute(_DROP_EXPIRED, now=tx.now)


async def lease_invitations(tx: Tx, most: int) -> list[UUID]:
    """Returns the ids of invitations whose e-mail is due, and postpones them by a lease."""
    found = await tx.rows(_LEASE, now=tx.now, until=tx.now + LEASE_US, most=most)
    return [row[0] for row in found]


async def set_token(tx: Tx, uid: UUID, token_hash: bytes) -> None:
    await tx.execute(_SET_TOKEN, uid=uid, hash=token_hash)


async def set_mailed(tx: Tx, uid: UUID, lease: Instant) -> None:
    """Records the e-mail of an attempt, unless its lease ended before."""
    await tx.execute(_SET_MAILED, uid=uid, lease=lease, now=tx.now)


async def postpone_mail(tx: Tx, uid: UUID, lease: Instant, at: Instant | None) -> None:
    """Sets the next attempt, unless the lease ended before. None ends the attempts."""
    if at is None:
        await tx.execute(_GIVE_UP, uid=uid, lease=lease)
    else:
        await tx.execute(_PUT_OFF, uid=uid, lease=lease, at=at)
