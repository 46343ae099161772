"""Incidents as the console lists and tells them: how they stand, whom their ladders paged, and
what became of every message that was sent about one.
"""

from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

MONITORS_MOST: Final = 500

_COLUMNS = """
uid, title, status, impact, started_at, resolved_at, acknowledged_at, acknowledged_label
"""
_OPEN = f"""
select {_COLUMNS} from incidents
where org = %(org)s and project = %(project)s and status <> 'resolved'
order by id desc limit %(most)s offset %(skipped)s
"""
_RESOLVED = f"""
select {_COLUMNS} from incidents
where org = %(org)s and project = %(project)s and status = 'resolved'
order by id desc limit %(most)s offset %(skipped)s
"""
# Of those that are open only: what was ever resolved is not counted for each look.
_TALLY = """
select count(*), count(*) filter (where acknowledged_at is null),
  coalesce((array['none', 'minor', 'major', 'critical'])[
    max(array_position(array['none', 'minor', 'major', 'critical'], impact))], ''),
  (select n.resolved_at from incidents n where n.org = %(org)s and n.project = %(project)s
   order by n.id desc limit 1)
from incidents where org = %(org)s and project = %(project)s and status <> 'resolved'
"""
_MONITOR = "select uid, name from monitors where org = %(org)s and id = %(id)s"
_SERVICE = "select uid, name from services where org = %(org)s and id = %(id)s"
# The same words by the same person, so shortly after that it can only be a second click.
_SAME = """
select i.uid from incidents i join incident_updates u
  on u.org = i.org and u.incident = i.id and u.seq = 1
where i.org = %(org)s and i.project = %(project)s and i.status <> 'resolved'
  and i.monitor is not distinct from (
    select id from monitors where org = %(org)s and uid = %(monitor)s::uuid)
  and i.title = %(title)s and i.impact = %(impact)s and u.status = %(status)s
  and u.body = %(body)s and u.author = (select id from users where uid = %(author)s::uuid)
  and i.created_at > at(%(since)s)
order by i.id desc limit 1
"""
_SAID_LAST = """
select u.status is not distinct from %(status)s::text and u.body = %(body)s
  and u.public = %(public)s and u.created_at > at(%(since)s)
  and u.author = (select id from users where uid = %(author)s::uuid)
from incident_updates u join incidents i on i.org = u.org and i.id = u.incident
where i.uid = %(incident)s order by u.seq desc limit 1
"""
_PAGES = """
select step, at, paged, unreachable from incident_pages
where org = %(org)s and incident = %(incident)s order by id desc limit %(most)s
"""
# Of each destination what was delivered and what was not, and the first that was not.
_DELIVERIES = """
select coalesce(c.name, ''), coalesce(c.type, ''), coalesce(w.url, ''),
  coalesce(c.enabled, w.enabled), t.delivered, t.pending, t.dead, f.attempts, f.last_error,
  greatest(f.due_at, d.backoff_until), coalesce(f.status, '')
from (
  select destination, count(*) filter (where status = 'delivered') as delivered,
    count(*) filter (where status = 'pending') as pending,
    count(*) filter (where status = 'dead') as dead
  from outbox where org = %(org)s and thread = %(incident)s group by destination
) t
  join destinations d on d.org = %(org)s and d.id = t.destination
    and num_nonnulls(d.channel, d.webhook) = 1
  left join notification_channels c on c.org = d.org and c.id = d.channel
  left join webhooks w on w.org = d.org and w.id = d.webhook
  left join lateral (
    select o.attempts, o.last_error, o.due_at, o.status from outbox o
    where o.org = %(org)s and o.thread = %(incident)s and o.destination = t.destination
      and o.status <> 'delivered'
    order by o.id limit 1) f on true
order by c.name is null, lower(c.name), w.url, d.id
limit %(most)s
"""
# Of a page's subscribers how many were told something, and of what is not delivered how much waits
# and how much was given up.
_TO_SUBSCRIBERS = """
select g.title,
  count(distinct o.destination) filter (where o.status = 'delivered' and o.last_error = ''),
  count(distinct o.destination) filter (where o.status = 'delivered' and o.last_error <> ''),
  count(*) filter (where o.status = 'pending'), count(*) filter (where o.status = 'dead')
from outbox o
  join destinations d on d.org = o.org and d.id = o.destination
  join subscribers s on s.org = d.org and s.id = d.subscriber
  join status_pages g on g.org = s.org and g.id = s.page
where o.org = %(org)s and o.thread = %(incident)s
group by g.id, g.title order by g.title, g.id limit %(most)s
"""


class ListedIncident(msgspec.Struct, frozen=True):
    uid: UUID
    title: str
    status: str
    impact: str
    started_at: Instant
    resolved_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_label: str


class Tally(msgspec.Struct, frozen=True):
    """`worst` is the worst impact of the open ones, empty where none is open; `unanswered` are the
    open ones that nobody has acknowledged. The last is of the newest incident, if that is over."""

    open: int
    unanswered: int
    worst: str
    newest_resolved_at: Instant | None


class Paged(msgspec.Struct, frozen=True):
    """A step of the ladder that was taken, 0 for the monitor's own channels: names of channels."""

    step: int
    at: Instant
    paged: list[str]
    unreachable: list[str]


class DeliverySummary(msgspec.Struct, frozen=True):
    """What one channel or webhook was sent. The last four are of the first that is not delivered:
    how often it was tried, how that failed, when it is tried again, and pending or dead."""

    channel: str
    type: str
    webhook_url: str
    enabled: bool
    delivered: int
    pending: int
    dead: int
    attempts: int | None
    last_error: str | None
    due_at: Instant | None
    first_status: str


async def select_open(
    tx: Tx, org: int, project: int, most: int, skipped: int
) -> list[ListedIncident]:
    """The newest first."""
    given = {"org": org, "project": project, "most": most, "skipped": skipped}
    return await tx.structs(ListedIncident, _OPEN, **given)


async def select_resolved(
    tx: Tx, org: int, project: int, most: int, skipped: int
) -> list[ListedIncident]:
    """The newest first."""
    given = {"org": org, "project": project, "most": most, "skipped": skipped}
    return await tx.structs(ListedIncident, _RESOLVED, **given)


async def select_tally(tx: Tx, org: int, project: int) -> Tally:
    tally = await tx.one(Tally, _TALLY, org=org, project=project)
    assert tally is not None, "counting always answers"
    return tally


async def select_opened_same(
    tx: Tx, org: int, project: int, since: Instant, **given: object
) -> UUID | None:
    """An open one that was opened since by the same `author` about the same `monitor` (uids, or
    None) with the same `title`, `impact`, `status` and `body`."""
    found: UUID | None = await tx.value(_SAME, org=org, project=project, since=since, **given)
    return found


async def was_just_posted(tx: Tx, incident: UUID, since: Instant, **given: object) -> bool:
    """Whether the latest update is of the same `author`, `status`, `body` and `public`."""
    return await tx.value(_SAID_LAST, incident=incident, since=since, **given) is True


async def select_monitor_of(tx: Tx, org: int, monitor: int) -> tuple[UUID, str] | None:
    """Id and name of what an incident is about."""
    found = await tx.row(_MONITOR, org=org, id=monitor)
    return None if found is None else (found[0], found[1])


async def select_service_of(tx: Tx, org: int, service: int) -> tuple[UUID, str] | None:
    """The id and the name of the service that an incident is about."""
    found = await tx.row(_SERVICE, org=org, id=service)
    return None if found is None else (found[0], found[1])


async def select_pages(tx: Tx, org: int, incident: int, most: int) -> list[Paged]:
    """The newest first."""
    return await tx.structs(Paged, _PAGES, org=org, incident=incident, most=most)


class ToSubscribers(msgspec.Struct, frozen=True):
    """`told` and `refused` count subscribers of the page, the others events."""

    page: str
    told: int
    refused: int
    pending: int
    dead: int


async def select_to_subscribers(tx: Tx, org: int, incident: UUID, most: int) -> list[ToSubscribers]:
    """By page, of those whose subscribers there was something to tell."""
    return await tx.structs(ToSubscribers, _TO_SUBSCRIBERS, org=org, incident=incident, most=most)


async def select_deliveries(tx: Tx, org: int, incident: UUID, most: int) -> list[DeliverySummary]:
    return await tx.structs(DeliverySummary, _DELIVERIES, org=org, incident=incident, most=most)
