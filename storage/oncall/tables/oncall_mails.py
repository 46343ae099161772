"""E-mails of on-call to people. A row is written with the fact that it states."""

from collections.abc import Collection, Sequence
from typing import Final

from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...engine.pools import Tx
from ..rows import OnCallMailRow

ATTEMPTS_MOST: Final = 7
# Longer than an attempt, so that no other process tries at the same time.
LEASE_US: Final = 30 * SECOND
_FIRST_PAUSE_US: Final = 10 * SECOND
# Only people: other channels have no account. The address can change until the e-mail is sent.
_INSERT: Final = """
insert into oncall_mails
  (uid, user_id, org, project, subject, paragraphs, created_at, due_at)
select %(uid)s, c.person, c.org, p.uid, %(subject)s, %(paragraphs)s::text[], at(%(now)s),
  at(%(now)s)
from notification_channels c join projects p on p.org = c.org and p.id = c.project
where c.org = %(org)s and c.id = %(channel)s and c.person is not null and c.contact_method is null
"""
_LEASE: Final = """
with leased as (
  update oncall_mails set attempts = attempts + 1, due_at = at(%(until)s)
  where id in (select id from oncall_mails where due_at <= at(%(now)s)
    order by due_at limit %(most)s for update skip locked)
  returning id, uid, user_id, project, subject, paragraphs, attempts)
select l.id, l.uid, u.email, l.project, l.subject, l.paragraphs, l.attempts
from leased l join users u on u.id = l.user_id
"""
_DELETE: Final = "delete from oncall_mails where id = %(id)s"
_POSTPONE: Final = "update oncall_mails set due_at = at(%(at)s) where id = %(id)s"


async def insert_mails(
    tx: Tx, org: int, channels: Collection[int], subject: str, paragraphs: Sequence[str]
) -> None:
    """Writes an e-mail to each of the channels that is a person."""
    for channel in sorted(channels):
        await tx.execute(
            _INSERT,
            uid=uuid7(),
            org=org,
            channel=channel,
            subject=subject,
            paragraphs=list(paragraphs),
            now=tx.now,
        )


async def lease_mails(tx: Tx, most: int) -> list[OnCallMailRow]:
    """Returns e-mails that are due, and postpones them by a lease."""
    return await tx.structs(OnCallMailRow, _LEASE, now=tx.now, until=tx.now + LEASE_US, most=most)


async def delete_mail(tx: Tx, mail: int) -> None:
    await tx.execute(_DELETE, id=mail)


async def postpone_mail(tx: Tx, row: OnCallMailRow) -> None:
    """Sets the next attempt, or deletes the e-mail after the last one."""
    if row.attempts >= ATTEMPTS_MOST:
        await delete_mail(tx, row.id)
    else:
        at = Instant(tx.now + (_FIRST_PAUSE_US << row.attempts))
        await tx.execute(_POSTPONE, id=row.id, at=at)
