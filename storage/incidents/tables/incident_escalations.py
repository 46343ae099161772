"""Escalation state of incidents: due steps and the channels that were paged."""

from collections.abc import Sequence
from uuid import UUID

from ...core.instant import Instant
from ...engine.pools import Tx

_DUE = """
select i.uid, case when i.service is not null then 'service'
  when i.monitor is not null then 'monitor' else 'incident' end
from incidents i where i.escalate_at <= at(%(now)s) and not exists (select from projects p
  where p.org = i.org and p.id = i.project and p.deleting_since is not null)
order by i.escalate_at, i.id limit %(most)s
"""
_IS_DUE = """
select exists (select from incidents where uid = %(uid)s and escalate_at <= at(%(now)s))
"""
_PUT_OFF = "update incidents set escalate_at = at(%(until)s) where uid = %(uid)s \
and escalate_at is not null"
_INSERT_PAGE = """
insert into incident_pages (org, incident, step, at, paged, unreachable)
values (%(org)s, %(incident)s, %(step)s, at(%(now)s), %(paged)s::text[], %(unreachable)s::text[])
"""
_HAS_PAGE = """
select exists (select from incident_pages
  where org = %(org)s and incident = %(incident)s and step = %(step)s)
"""
_NAMES = """
select id, name from notification_channels where org = %(org)s and id = any(%(ids)s)
"""


# The messages to the contact methods of people that this transaction wrote for the incident.
_PERSONAL = """
select p.id, k.kind, k.label, o.due_at
from outbox o join destinations d on d.org = o.org and d.id = o.destination
  join notification_channels c on c.org = d.org and c.id = d.channel
  join contact_methods k on k.id = c.contact_method
  join notification_channels p on p.org = c.org and p.project = c.project
    and p.person = c.person and p.contact_method is null
where o.org = %(org)s and o.thread = %(thread)s and o.created_at = at(%(now)s)
  and p.id = any(%(ids)s::int[])
order by o.due_at, o.id
"""


async def select_personal_messages(
    tx: Tx, org: int, thread: UUID, people: Sequence[int]
) -> list[tuple[int, str, str, Instant]]:
    """Returns (channel of the person, kind, label, instant) of messages that were just written."""
    rows = await tx.rows(_PERSONAL, org=org, thread=thread, ids=list(people), now=tx.now)
    return [(row[0], row[1], row[2], row[3]) for row in rows]


async def select_due_ladders(tx: Tx, now: Instant, most: int) -> list[tuple[UUID, str]]:
    """Returns due incidents and their kind: `service`, `monitor` or `incident`."""
    return [(uid, subject) for uid, subject in await tx.rows(_DUE, now=now, most=most)]


async def is_due(tx: Tx, incident: UUID) -> bool:
    """Returns whether a step of the incident is due, without a lock."""
    found: bool = await tx.value(_IS_DUE, uid=incident, now=tx.now)
    return found


async def postpone_escalation(tx: Tx, incident: UUID, until: Instant) -> None:
    await tx.execute(_PUT_OFF, uid=incident, until=until)


async def insert_page(
    tx: Tx, org: int, incident: int, step: int, paged: Sequence[str], unreachable: Sequence[str]
) -> None:
    await tx.execute(
        _INSERT_PAGE,
        org=org,
        incident=incident,
        step=step,
        paged=list(paged),
        unreachable=list(unreachable),
        now=tx.now,
    )


async def has_page(tx: Tx, org: int, incident: int, step: int) -> bool:
    """Returns whether the incident has a page of the step."""
    found: bool = await tx.value(_HAS_PAGE, org=org, incident=incident, step=step)
    return found


async def select_channel_names(tx: Tx, org: int, channels: Sequence[int]) -> dict[int, str]:
    return dict(await tx.rows(_NAMES, org=org, ids=list(channels)))
