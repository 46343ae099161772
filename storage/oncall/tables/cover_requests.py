"""Cover requests of on-call schedules. Every write locks the schedule first."""

from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import CoverRequestRow
from ..rules.cover import Cover, CoverSpan

_COLUMNS = """
q.org, q.id, q.uid, q.schedule, s.uid, s.project, q.channel, c.uid, c.name, q.wanted, w.uid, w.name,
q.starts_at, q.ends_at, q.return_starts_at, q.return_ends_at, q.note, q.author_label, q.created_at,
a.uid, a.name, q.accepted_at
"""
_FROM = """
from oncall_cover_requests q
  join oncall_schedules s on s.org = q.org and s.id = q.schedule
  join notification_channels c on c.org = q.org and c.id = q.channel
  left join notification_channels w on w.org = q.org and w.id = q.wanted
  left join notification_channels a on a.org = q.org and a.id = q.accepted_by
"""
_SCHEDULE_UID = """
select s.uid from oncall_cover_requests q
  join oncall_schedules s on s.org = q.org and s.id = q.schedule
where q.uid = %(uid)s
"""
_COUNT_OPEN = """
select count(*) from oncall_cover_requests
where org = %(org)s and schedule = %(schedule)s and ends_at > at(%(now)s) and accepted_at is null
"""
_INSERT = """
insert into oncall_cover_requests
  (org, uid, schedule, channel, wanted, starts_at, ends_at, return_starts_at, return_ends_at, note,
  author_label, created_at)
values (%(org)s, %(uid)s, %(schedule)s, %(channel)s, %(wanted)s, at(%(starts_at)s), at(%(ends_at)s),
  at(%(return_starts_at)s), at(%(return_ends_at)s), %(note)s, %(author)s, at(%(now)s))
"""
_ACCEPT = """
update oncall_cover_requests set accepted_by = %(by)s, accepted_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from oncall_cover_requests where org = %(org)s and id = %(id)s"
_DELETE_PAST = """
delete from oncall_cover_requests
where org = %(org)s and schedule = %(schedule)s and ends_at <= at(%(now)s)
"""


async def select_schedule_of(tx: Tx, uid: UUID) -> UUID | None:
    """Returns the schedule of a request. It is locked before the request is read."""
    found: UUID | None = await tx.value(_SCHEDULE_UID, uid=uid)
    return found


async def count_open(tx: Tx, org: int, schedule: int) -> int:
    count: int = await tx.value(_COUNT_OPEN, org=org, schedule=schedule, now=tx.now)
    return count


async def insert_cover_request(
    tx: Tx, org: int, schedule: int, uid: UUID, cover: Cover, note: str, author: str
) -> None:
    """Inserts a request, and deletes those of the schedule that are over."""
    await tx.execute(_DELETE_PAST, org=org, schedule=schedule, now=tx.now)
    returned = cover.in_return
    await tx.execute(
        _INSERT,
        org=org,
        uid=uid,
        schedule=schedule,
        channel=cover.channel,
        wanted=cover.wanted,
        starts_at=cover.span.starts_at,
        ends_at=cover.span.ends_at,
        return_starts_at=_start(returned),
        return_ends_at=None if returned is None else returned.ends_at,
        note=note,
        author=author,
        now=tx.now,
    )


async def accept_cover_request(tx: Tx, row: CoverRequestRow, by: int) -> None:
    await tx.execute(_ACCEPT, org=row.org, id=row.id, by=by, now=tx.now)


async def delete_cover_request(tx: Tx, row: CoverRequestRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


def _start(span: CoverSpan | None) -> Instant | None:
    return None if span is None else span.starts_at
