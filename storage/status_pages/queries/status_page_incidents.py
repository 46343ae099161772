"""Incidents that a status page can show, with their updates and postmortem."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from ...core.instant import LATEST, Instant
from ...core.time_span import TimeSpan
from ...engine.pools import Tx
from ...incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from ..rules.status_page import RECENT_MOST, Audience, Incident, Postmortem, Update

ACTIVE_MOST: Final = 50
# Limit per incident; the newest are kept.
UPDATES_MOST: Final = 100

# Incidents of the bound monitors and services, those that name a component of the page, and those
# without any of them in the page's own project.
# Automatic incidents always had a monitor or service.
_ABOUT: Final = """
select i.org, i.id from incidents i where i.org = %(org)s and i.monitor = any(%(monitors)s::int[])
union
select i.org, i.id from incidents i where i.org = %(org)s and i.service = any(%(services)s::int[])
union
select c.org, c.incident from incident_components c
where c.org = %(org)s and c.component = any(%(components)s::uuid[])
union
select i.org, i.id from incidents i where i.org = %(org)s and i.project = %(project)s::int
  and i.monitor is null and i.service is null and i.source <> 'auto'
  and not exists (select from incident_components c where c.org = i.org and c.incident = i.id)
"""
# The public sees public updates. Of an alert from another system, it sees only updates by a person.
_SEEN: Final = """
(not %(public)s or exists (select from incident_updates u
  where u.org = i.org and u.incident = i.id and u.public
    and (i.external_key is null or u.author is not null)))
"""
_SELECT: Final = f"""
with about as materialized ({_ABOUT})
select i.id, i.uid, p.uid, m.uid, s.uid, i.external_key, i.seq, i.title, i.status, i.impact,
  i.source, i.started_at, i.resolved_at, i.acknowledged_at, a.uid, i.acknowledged_label,
  i.escalation_step, i.last_escalated_at, i.created_at, i.updated_at,
  array(select c.component from incident_components c where c.org = i.org and c.incident = i.id),
  (select max(w.created_at) from incident_updates w
    where w.org = i.org and w.incident = i.id and w.withdraws is not null)
from about b join incidents i on i.org = b.org and i.id = b.id
  join projects p on p.org = i.org and p.id = i.project
  left join monitors m on m.org = i.org and m.id = i.monitor
  left join services s on s.org = i.org and s.id = i.service
  left join users a on a.id = i.acknowledged_by
where {{which}} and {_SEEN}
order by i.started_at desc, i.id desc limit %(most)s
"""
_ACTIVE: Final = _SELECT.replace("{which}", "i.status <> 'resolved'")
_PAST: Final = _SELECT.replace(
    "{which}", "i.status = 'resolved' and i.resolved_at >= at(%(since)s)"
)
_OF_MONTH: Final = _SELECT.replace(
    "{which}",
    "i.started_at >= at(%(from_at)s) and i.started_at < at(%(until)s)"
    " and (i.started_at, i.id) < (at(%(before_at)s), %(before_id)s)",
)
_ONE: Final = _SELECT.replace("{which}", "i.uid = %(uid)s")
_UPDATES: Final = """
select k.incident, u.uid, u.seq, u.status, u.body, u.public, u.author_label, u.author is not null,
  u.created_at
from unnest(%(ids)s::int[]) as k(incident) cross join lateral (
  select * from incident_updates x where x.org = %(org)s and x.incident = k.incident
    and (x.public or not %(public)s)
  order by x.seq desc limit %(most)s) u
order by k.incident, u.seq
"""
_POSTMORTEMS: Final = """
select t.incident, t.uid, t.body, t.declaration_revision, t.author_label, t.published_at,
  t.created_at, t.updated_at
from postmortems t where t.org = %(org)s and t.incident = any(%(ids)s::int[]) and t.published
"""
_LAST: Final = 2**31 - 1


class PageScope(msgspec.Struct, frozen=True, kw_only=True):
    """Bindings of a page's components. `project` is None for a page of an organization."""

    org: int
    project: int | None
    monitors: Sequence[int]
    services: Sequence[int]
    components: Sequence[UUID] = ()


class IncidentCursor(msgspec.Struct, frozen=True):
    """Position in a list: the last incident of the previous part."""

    started_at: Instant
    id: int


FIRST: Final = IncidentCursor(LATEST, _LAST)


class _Row(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    project: UUID
    monitor: UUID | None
    service: UUID | None
    external_key: str | None
    seq: int
    title: str
    status: str
    impact: str
    source: str
    started_at: Instant
    resolved_at: Instant | None
    acknowledged_at: Instant | None
    acknowledged_by: UUID | None
    acknowledged_label: str
    escalation_step: int
    last_escalated_at: Instant | None
    created_at: Instant
    updated_at: Instant
    components: list[UUID]
    withdrawn_at: Instant | None


async def select_present_incidents(
    tx: Tx, about: PageScope, audience: Audience, since: Instant
) -> list[Incident]:
    """Returns the open incidents and those resolved since `since`, newest first in each group.

    The resolved ones are at most RECENT_MOST + 1, one more than a page shows.
    """
    active = await _select(tx, _ACTIVE, about, audience, ACTIVE_MOST)
    past = await _select(tx, _PAST, about, audience, RECENT_MOST + 1, since=since)
    return await _whole(tx, about, audience, [*active, *past])


async def select_page_incident(tx: Tx, about: PageScope, uid: UUID) -> Incident | None:
    """Returns one incident as the public can see it, None if it is not public."""
    rows = await _select(tx, _ONE, about, Audience.PUBLIC, 1, uid=uid)
    found = await _whole(tx, about, Audience.PUBLIC, rows)
    return found[0] if found else None


async def select_incidents_within(
    tx: Tx,
    about: PageScope,
    audience: Audience,
    within: TimeSpan,
    before: IncidentCursor,
    most: int,
) -> tuple[list[Incident], IncidentCursor | None]:
    """Returns incidents that began in a span, newest first, and the cursor of any rest."""
    rows = await _select(
        tx,
        _OF_MONTH,
        about,
        audience,
        most + 1,
        from_at=within.from_,
        until=within.until,
        before_at=before.started_at,
        before_id=before.id,
    )
    shown = rows[:most]
    following = IncidentCursor(shown[-1].started_at, shown[-1].id) if len(rows) > most else None
    return await _whole(tx, about, audience, shown), following


async def _select(
    tx: Tx, query: str, about: PageScope, audience: Audience, most: int, **given: int | UUID
) -> list[_Row]:
    return await tx.structs(
        _Row,
        query,
        org=about.org,
        project=about.project,
        monitors=list(about.monitors),
        services=list(about.services),
        components=list(about.components),
        public=audience is Audience.PUBLIC,
        most=most,
        **given,
    )


async def _whole(
    tx: Tx, about: PageScope, audience: Audience, rows: Sequence[_Row]
) -> list[Incident]:
    if not rows:
        return []
    ids = [row.id for row in rows]
    public = audience is Audience.PUBLIC
    updates: dict[int, list[Update]] = {key: [] for key in ids}
    for incident, uid, seq, status, body, is_public, author, by_person, at in await tx.rows(
        _UPDATES, org=about.org, ids=ids, public=public, most=UPDATES_MOST
    ):
        updates[incident].append(
            Update(
                uid=uid,
                seq=seq,
                status=None if status is None else IncidentStatus(status),
                body=body,
                public=is_public,
                author=author,
                by_person=by_person,
                created_at=at,
            )
        )
    postmortems = {
        incident: Postmortem(
            uid=uid,
            body=body,
            declaration_revision=revision,
            author=author,
            published_at=published_at,
            created_at=created_at,
            updated_at=updated_at,
        )
        for incident, uid, body, revision, author, published_at, created_at, updated_at in (
            await tx.rows(_POSTMORTEMS, org=about.org, ids=ids)
        )
    }
    return [_incident(row, updates[row.id], postmortems.get(row.id)) for row in rows]


def _incident(row: _Row, updates: Sequence[Update], postmortem: Postmortem | None) -> Incident:
    return Incident(
        uid=row.uid,
        project=row.project,
        monitor=row.monitor,
        service=row.service,
        external_key=row.external_key,
        seq=row.seq,
        title=row.title,
        status=IncidentStatus(row.status),
        impact=IncidentImpact(row.impact),
        source=IncidentSource(row.source),
        started_at=row.started_at,
        resolved_at=row.resolved_at,
        acknowledged_at=row.acknowledged_at,
        acknowledged_by=row.acknowledged_by,
        acknowledged_label=row.acknowledged_label,
        escalation_step=row.escalation_step,
        last_escalated_at=row.last_escalated_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        updates=updates,
        postmortem=postmortem,
        components=row.components,
        withdrawn_at=row.withdrawn_at,
    )
