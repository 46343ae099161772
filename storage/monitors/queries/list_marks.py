"""Marks of the monitors of a project, which tell whether the list of monitors has changed.

Invariant: while the mark of a monitor is the same, it is not in `unsettled`, and `unchanged_until`
has not passed, the list shows the same of it, except its next due instant.
"""

from collections.abc import Collection
from typing import Final

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
_MARKS: Final = """
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
      row(m.xmin, m.revision, m.updated_at, s.xmin, s.version, c.xmin), 0) as mark
  from monitors m
    left join monitor_states s on s.org = m.org and s.monitor = m.id
    left join monitor_certificates c on c.org = m.org and c.monitor = m.id
  where m.org = %(org)s and m.project = %(project)s
  order by m.slug) k
"""


class ListMarks(msgspec.Struct, frozen=True):
    """Monitors of a project by slug with their marks, and those of the organization that depend on
    more than their marks."""

    ids: list[int]
    marks: list[int]
    unsettled: list[int]


async def select_list_marks(tx: Tx, org: int, project: int) -> ListMarks:
    found = await tx.one(ListMarks, _MARKS, org=org, project=project)
    assert found is not None, "an aggregate has one row"
    return found


async def select_listed(tx: Tx, org: int, ids: Collection[int]) -> dict[int, MonitorRow]:
    """Returns the monitors of the organization by id."""
    return await select_monitors_of(tx, org, ids)


def unchanged_until(
    row: MonitorRow, standing: MonitorStatusRow | None, now: Instant
) -> Instant | None:
    """Returns until when new results change nothing that the list shows, unless they change the
    stored state.

    Returns None if it depends on more than the monitor, or if the next result can change it.
    """
    if standing is None or row.depends_on or row.regional_of is not None:
        return None
    if standing.failures or standing.successes:
        return None
    if standing.last_at is None:
        # The first result changes the state.
        return LATEST if standing.status == MonitorStatus.PENDING else None
    if standing.status != MonitorStatus.UP or not standing.last_up:
        return None
    if not standing.enabled:
        return LATEST
    if promised(standing.came_under) != promised(standing.newest_term):
        # A result under the newest term can be fresh for a shorter time.
        return None
    until = held_until(standing, row.type, now)
    if until is None:
        return None
    until = Instant(min(until, standing.last_at + RESULT_KEPT_US))
    return until if until > now else None
