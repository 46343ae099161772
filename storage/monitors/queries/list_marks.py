"""Marks of the monitors of a project, which change with the list of monitors.

Invariant: while the mark of a monitor is the same, it is not in `unsettled`, and `unchanged_until`
has not passed, the list shows the same of it, except its next due instant.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec

from ...core.instant import DAY, LATEST, Instant
from ...engine.pools import Tx
from ...scheduling.rules.run_schedule import promised
from ..rows import MonitorRow
from ..rules.monitor_state import MonitorStatus
from ..tables.monitors import select_monitors_of
from .monitors import MonitorStatusRow, held_until

# Less than the shortest retention of results: an older result can be deleted.
RESULT_KEPT_US: Final = 3 * DAY

# Each version of a row has its own xmin. The other columns make a mark unique also after a failover
# that lost transactions, whose numbers are then used again. The monitors of the last column depend
# on more than their rows: warnings, probe errors, and the states of services that own their paging.
_TEMPLATE: Final = """
select coalesce(array_agg(k.id), '{}'), coalesce(array_agg(k.mark), '{}'), array(
    select monitor from probe_errors where org = %(org)s
    union select monitor from flap_states where org = %(org)s and since_at is not null
    union select monitor from slow_warnings where org = %(org)s and since_at is not null
    union select monitor from certificate_warnings where org = %(org)s
    union select unnest(r.monitors) from service_alerting a
      join service_revisions r on r.org = a.org and r.service = a.service
      where a.org = %(org)s and a.owns_paging
    order by 1)
from (
  select m.id, hash_record_extended(
      row(m.xmin, m.revision, m.updated_at, s.xmin, s.version, c.xmin, {newest}), 0) as mark
  from monitors m
    left join monitor_states s on s.org = m.org and s.monitor = m.id
    left join monitor_certificates c on c.org = m.org and c.monitor = m.id
    {watched}
  where m.org = %(org)s and m.project = %(project)s
  order by m.slug) k
"""
# Partitions created ahead are empty. A late result raises the version of the state.
_WATCHED: Final = """left join (
      select k.id, hash_record_extended(row(h.ts,
          case when k.is_counted then (failure_run(%(org)s::int, k.id)).failures end), 0) as mark
      from unnest(%(watched)s::int[], %(counted)s::bool[]) as k(id, is_counted)
        left join lateral newest_heartbeat(
          %(org)s::int, k.id, at(%(now)s) + interval '1 day') h on true) w on w.id = m.id"""
_MARKS: Final = _TEMPLATE.replace("{newest}", "null::bigint").replace("{watched}", "")
_WATCHED_MARKS: Final = _TEMPLATE.replace("{newest}", "w.mark").replace("{watched}", _WATCHED)


class ListMarks(msgspec.Struct, frozen=True):
    """Monitors of a project by slug, and their marks. `unsettled` monitors of the organization
    depend on more tables."""

    ids: list[int]
    marks: list[int]
    unsettled: list[int]


async def select_list_marks(
    tx: Tx, org: int, project: int, watched: Mapping[int, bool]
) -> ListMarks:
    """Returns the marks. The newest result is part of those of `watched`, and the number of
    failures if their value is true."""
    given = {"org": org, "project": project}
    if watched:
        counted = list(watched.values())
        found = await tx.one(
            ListMarks, _WATCHED_MARKS, **given, watched=list(watched), counted=counted, now=tx.now
        )
    else:
        found = await tx.one(ListMarks, _MARKS, **given)
    assert found is not None, "an aggregate has one row"
    return found


async def select_listed(tx: Tx, org: int, ids: Collection[int]) -> dict[int, MonitorRow]:
    """Returns the monitors of the organization by id."""
    return await select_monitors_of(tx, org, ids)


class Unchanged(NamedTuple):
    """End of the time in which a monitor of a list changes only with its mark.

    If it `is_watched`, the mark needs the newest result. If it also `is_counted`, results that are
    deleted can be failures of this run, and the mark needs their number.
    """

    until: Instant
    is_watched: bool = False
    is_counted: bool = False


def unchanged_until(
    row: MonitorRow, standing: MonitorStatusRow | None, now: Instant
) -> Unchanged | None:
    """Returns None if it can change at any time, or with other monitors."""
    if standing is None or row.regional_of is not None:
        return None
    plain = not (standing.failures or standing.successes)
    if standing.last_at is None:
        # The first result changes a state without one.
        is_new = plain and standing.status == MonitorStatus.PENDING
        return Unchanged(LATEST, is_watched=not is_new)
    held = held_until(standing, row.type, now) or Instant(0)
    if plain and standing.status == MonitorStatus.UP and standing.last_up:
        if not standing.enabled:
            return Unchanged(LATEST)
        # A result under a newer term can be fresh for a shorter time.
        same_term = promised(standing.came_under) == promised(standing.newest_term)
        until = Instant(min(held, standing.last_at + RESULT_KEPT_US))
        if same_term and until > now:
            return Unchanged(until)
    end = held if held > now else LATEST
    if standing.failing_since is None:
        return Unchanged(end, is_watched=True)
    kept = Instant(standing.failing_since + RESULT_KEPT_US)
    if kept <= now:
        return Unchanged(end, is_watched=True, is_counted=True)
    return Unchanged(min(end, kept), is_watched=True)
