"""Incident queries of the console: lists, escalation pages and delivery summaries."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ...notifications.rules.notification import NOTICE_EVENT

_COLUMNS = """
i.uid, i.number, i.title, i.status, i.impact, i.started_at, i.resolved_at, i.acknowledged_at,
i.acknowledged_label, coalesce('service ' || s.name, 'monitor ' || m.name,
  case when i.external_key is not null and i.escalation_policy is null then 'unrouted'
    when i.self_condition <> '' then 'Leadline' end, ''),
i.ack_expired_at is not null
"""
_MATCHING = """
from incidents i
  left join monitors m on m.org = i.org and m.id = i.monitor
  left join services s on s.org = i.org and s.id = i.service
where i.org = %(org)s and i.project = %(project)s
  and (%(impact)s = '' or i.impact = %(impact)s)
  and (%(q)s = '' or position(lower(%(q)s) in lower(i.title)) > 0
    or i.number::text = regexp_replace(lower(%(q)s), '^inc-', ''))
"""
_OPEN = f"""
select {_COLUMNS} {_MATCHING} and i.status <> 'resolved'
order by i.id desc limit %(most)s offset %(skipped)s
"""
_RESOLVED = f"""
select {_COLUMNS} {_MATCHING} and i.status = 'resolved'
order by i.id desc limit %(most)s offset %(skipped)s
"""
_COUNT_OPEN = f"select count(*) {_MATCHING} and i.status <> 'resolved'"
# Counts open incidents only, so that the cost does not grow with the history.
_TALLY = """
select count(*), count(*) filter (where acknowledged_at is null or ack_expired_at is not null),
  coalesce((array['none', 'minor', 'major', 'critical'])[
    max(array_position(array['none', 'minor', 'major', 'critical'], impact))], ''),
  (select n.resolved_at from incidents n where n.org = %(org)s and n.project = %(project)s
   order by n.id desc limit 1)
from incidents where org = %(org)s and project = %(project)s and status <> 'resolved'
"""
_MEDIAN = """
select (percentile_disc(0.5) within group (
  order by extract(epoch from acknowledged_at - started_at)) * 1000000)::bigint
from incidents where org = %(org)s and project = %(project)s
  and acknowledged_at >= at(%(since)s)
"""
_MONITOR = "select uid, name from monitors where org = %(org)s and id = %(id)s"
_SERVICE = "select uid, name from services where org = %(org)s and id = %(id)s"
# Finds the double submission of a form: the same content by the same author after `since`.
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
# Delivery counts per destination, with its first undelivered event.
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
# Per status page: subscribers with a delivery, and the events that are pending or dead.
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
# Subscribers of the status pages that wait to pass on an update. Some of them may not be concerned.
_WAITING = """
select count(*)
from outbox o
  join destinations d on d.org = o.org and d.id = o.destination
  join subscribers s on s.org = d.org and s.page = d.page
where o.org = %(org)s and o.thread = %(incident)s and o.event = %(event)s
  and (o.payload->>'seq')::int = %(seq)s and o.status = 'pending' and o.lease is null
  and o.enqueued_through = 0 and s.confirmed_at is not null and s.suspended_at is null
"""


class ListedIncident(msgspec.Struct, frozen=True):
    """Incident of a list. `about` is its service or monitor, `unrouted`, or empty."""

    uid: UUID
    number: int
    title: str
    status: str
    impact: str
    started_at: Instant
    resolved_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_label: str
    about: str
    # The acknowledgement has expired.
    has_expired: bool = False


class IncidentFilter(msgspec.Struct, frozen=True):
    """`q` is a part of the title, or the number. Empty fields match every incident."""

    q: str = ""
    impact: str = ""


class Tally(msgspec.Struct, frozen=True):
    """Counts of open incidents. `unanswered` are not acknowledged.

    `worst` is the highest impact of the open incidents, empty without one. `newest_resolved_at`
    belongs to the newest incident, None if it is open.
    """

    open: int
    unanswered: int
    worst: str
    newest_resolved_at: Instant | None


class Paged(msgspec.Struct, frozen=True):
    """Escalation step with the names of its channels. Step 0 is a page outside the policy."""

    step: int
    at: Instant
    paged: list[str]
    unreachable: list[str]


class DeliverySummary(msgspec.Struct, frozen=True):
    """Deliveries to one channel or webhook.

    `attempts`, `last_error`, `due_at` and `first_status` (pending or dead) belong to the first
    undelivered event.
    """

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
    tx: Tx, org: int, project: int, chosen: IncidentFilter, most: int, skipped: int
) -> list[ListedIncident]:
    """Returns open incidents, newest first."""
    given = {"org": org, "project": project, "most": most, "skipped": skipped}
    return await tx.structs(ListedIncident, _OPEN, **given, q=chosen.q, impact=chosen.impact)


async def select_resolved(
    tx: Tx, org: int, project: int, chosen: IncidentFilter, most: int, skipped: int
) -> list[ListedIncident]:
    """Returns resolved incidents, newest first."""
    given = {"org": org, "project": project, "most": most, "skipped": skipped}
    return await tx.structs(ListedIncident, _RESOLVED, **given, q=chosen.q, impact=chosen.impact)


async def count_open(tx: Tx, org: int, project: int, chosen: IncidentFilter) -> int:
    """Returns the number of open incidents that match."""
    many: int = await tx.value(
        _COUNT_OPEN, org=org, project=project, q=chosen.q, impact=chosen.impact
    )
    return many


async def median_acknowledgement(tx: Tx, org: int, project: int, since: Instant) -> int | None:
    """Returns the median time from the start to the acknowledgement in µs, None without one.

    It covers the incidents that were acknowledged since `since`.
    """
    found: int | None = await tx.value(_MEDIAN, org=org, project=project, since=since)
    return found


async def select_tally(tx: Tx, org: int, project: int) -> Tally:
    tally = await tx.one(Tally, _TALLY, org=org, project=project)
    assert tally is not None, "count returned no row"
    return tally


async def select_opened_same(
    tx: Tx, org: int, project: int, since: Instant, **given: object
) -> UUID | None:
    """Returns an open incident that the same author has opened with the same content.

    Args:
        since: earliest instant of its creation.
        given: `author` and `monitor` (uids or None), `title`, `impact`, `status` and `body`.
    """
    found: UUID | None = await tx.value(_SAME, org=org, project=project, since=since, **given)
    return found


async def was_just_posted(tx: Tx, incident: UUID, since: Instant, **given: object) -> bool:
    """Returns whether the latest update is newer than `since` and has the same content.

    Args:
        given: `author`, `status`, `body` and `public` of the update.
    """
    return await tx.value(_SAID_LAST, incident=incident, since=since, **given) is True


async def select_monitor_of(tx: Tx, org: int, monitor: int) -> tuple[UUID, str] | None:
    """Returns the uid and the name of the incident's monitor."""
    found = await tx.row(_MONITOR, org=org, id=monitor)
    return None if found is None else (found[0], found[1])


async def select_service_of(tx: Tx, org: int, service: int) -> tuple[UUID, str] | None:
    """Returns the uid and the name of the incident's service."""
    found = await tx.row(_SERVICE, org=org, id=service)
    return None if found is None else (found[0], found[1])


async def select_pages(tx: Tx, org: int, incident: int, most: int) -> list[Paged]:
    """Returns the pages of an incident, newest first."""
    return await tx.structs(Paged, _PAGES, org=org, incident=incident, most=most)


class ToSubscribers(msgspec.Struct, frozen=True):
    """Deliveries to the subscribers of one status page.

    `told` and `refused` count subscribers, the other fields events.
    """

    page: str
    told: int
    refused: int
    pending: int
    dead: int


async def select_to_subscribers(tx: Tx, org: int, incident: UUID, most: int) -> list[ToSubscribers]:
    """Returns the status pages with events for subscribers of the incident."""
    return await tx.structs(ToSubscribers, _TO_SUBSCRIBERS, org=org, incident=incident, most=most)


async def count_waiting(tx: Tx, org: int, incident: UUID, seq: int) -> int:
    """Returns the upper bound of the subscriber messages of an update that are not being sent."""
    count: int = await tx.value(_WAITING, org=org, incident=incident, event=NOTICE_EVENT, seq=seq)
    return count


async def select_deliveries(tx: Tx, org: int, incident: UUID, most: int) -> list[DeliverySummary]:
    return await tx.structs(DeliverySummary, _DELIVERIES, org=org, incident=incident, most=most)
