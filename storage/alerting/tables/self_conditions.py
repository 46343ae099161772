"""Conditions of Leadline itself, and the row that orders the passes of self-monitoring."""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

# The first lock of a pass, before any ranked one. Other transactions do not take it.
_LOCK = "select 1 from self_monitor for update"
_SELECT = """
select c.org, c.project, c.kind, c.subject, c.holds_since, c.clear_since, c.observed_at,
  c.reported, i.uid
from self_conditions c left join incidents i on i.org = c.org and i.id = c.incident
order by c.org, c.project, c.kind, c.subject
"""
_PUT = """
insert into self_conditions (org, project, kind, subject, holds_since, clear_since, observed_at,
  reported, incident)
values (%(org)s, %(project)s, %(kind)s, %(subject)s, at(%(holds_since)s), at(%(clear_since)s),
  at(%(observed_at)s), %(reported)s, %(incident)s)
on conflict (org, project, kind, subject) do update set holds_since = excluded.holds_since,
  clear_since = excluded.clear_since, observed_at = excluded.observed_at,
  reported = excluded.reported,
  incident = coalesce(excluded.incident, self_conditions.incident)
"""
_DELETE = """
delete from self_conditions where org = %(org)s and project = %(project)s and kind = %(kind)s
  and subject = %(subject)s
"""
_BEAT = """
update self_monitor set beat_at = at(%(now)s) where beat_at <= at(%(now)s) - %(us)s * interval
  '1 microsecond'
"""


class SelfConditionRow(msgspec.Struct, frozen=True):
    """Condition of a project, or of the project of the setting. `incident` is None without one."""

    org: int
    project: int
    kind: str
    subject: str
    holds_since: Instant | None
    clear_since: Instant | None
    observed_at: Instant
    reported: bool
    incident: UUID | None


async def lock_self_monitor(tx: Tx) -> None:
    await tx.value(_LOCK)


async def select_self_conditions(tx: Tx) -> list[SelfConditionRow]:
    return await tx.structs(SelfConditionRow, _SELECT)


async def put_self_condition(
    tx: Tx,
    place: tuple[int, int, str, str],
    *,
    holds: bool,
    since: Instant,
    observed_at: Instant,
    reported: bool,
    incident: int | None,
) -> None:
    """Writes a condition. `incident` None keeps the stored one."""
    org, project, kind, subject = place
    await tx.execute(
        _PUT,
        org=org,
        project=project,
        kind=kind,
        subject=subject,
        holds_since=since if holds else None,
        clear_since=None if holds else since,
        observed_at=observed_at,
        reported=reported,
        incident=incident,
    )


async def delete_self_condition(tx: Tx, place: tuple[int, int, str, str]) -> None:
    org, project, kind, subject = place
    await tx.execute(_DELETE, org=org, project=project, kind=kind, subject=subject)


async def claim_heartbeat(tx: Tx, now: Instant, every_us: int) -> bool:
    """Returns whether the external heartbeat is due; it then counts as sent."""
    return await tx.execute(_BEAT, now=now, us=every_us) == 1
