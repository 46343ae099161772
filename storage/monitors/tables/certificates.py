"""Certificates of monitors, as their checks saw them. See `rules.certificate`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ....probes.check.cron_schedule import cron_schedule
from ...core.instant import SECOND
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import CertificateReport
from ..rules.certificate import Sighting, merged, window_us

# Largest lead of the clock of a reporter.
AHEAD_US: Final = 60 * SECOND

# Sorted, so that concurrent writers lock in the same order. A monitor that another transaction
# deletes or edits is left out: the foreign key would wait for it.
_CREATE: Final = """
with free as (
  select m.org, m.id, m.revision from monitors m
  where (m.org, m.id) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
    and not exists (select from monitor_certificates c where c.org = m.org and c.monitor = m.id)
  order by m.org, m.id
  for key share of m skip locked)
insert into monitor_certificates (org, monitor, revision, window_us, seen)
select free.org, free.id, free.revision, 0, '[]' from free
where (free.org, free.id, free.revision) in (
  select * from unnest(%(orgs)s::int[], %(monitors)s::int[], %(revisions)s::int[]))
order by free.org, free.id
on conflict (org, monitor) do nothing
"""
_LOCK: Final = """
select c.org, c.monitor, m.revision, m.interval_seconds, m.schedule, m.timezone, c.revision,
  c.seen::text
from monitor_certificates c join monitors m on m.org = c.org and m.id = c.monitor
where (c.org, c.monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
order by c.org, c.monitor
for update of c
"""
_PUT: Final = """
update monitor_certificates c set revision = g.revision, window_us = g.window_us,
  seen = g.seen::jsonb, ends_at = at(g.ends_at)
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(revisions)s::int[], %(windows)s::bigint[],
    %(seen)s::text[], %(ends_at)s::bigint[])
  as g(org, monitor, revision, window_us, seen, ends_at)
where c.org = g.org and c.monitor = g.monitor
"""


@dataclass(frozen=True, slots=True)
class _Changed:
    key: MonitorKey
    revision: int
    window: int
    kept: list[Sighting]


async def record_certificates(tx: Tx, reports: Sequence[CertificateReport]) -> int:
    """Stores the reports of the present revision of each monitor; returns their number.

    After a concurrent edit, no reader uses the row, since its revision is an earlier one.
    """
    by_key: dict[MonitorKey, list[CertificateReport]] = {}
    for one in reports:
        if one.seen_at <= tx.now + AHEAD_US:
            by_key.setdefault(one.key, []).append(one)
    found = [one for each in by_key.values() for one in each]
    await tx.execute(
        _CREATE,
        **key_arrays((one.key for one in found), "monitors"),
        revisions=[one.revision for one in found],
    )
    count = 0
    changed: list[_Changed] = []
    for org, monitor, revision, seconds, schedule, zone, stored, text in await tx.rows(
        _LOCK, **key_arrays(by_key, "monitors")
    ):
        key = MonitorKey((org, monitor))
        current = [one for one in by_key[key] if one.revision == revision]
        # The statement can have read an earlier monitor than the writer that it waited for.
        if not current or stored > revision:
            continue
        count += len(current)
        known = msgspec.json.decode(text, type=list[Sighting]) if stored == revision else []
        seen = [Sighting(one.ends_at, one.seen_at) for one in current]
        cron = cron_schedule(schedule, zone).longest_us if schedule else 0
        window = window_us(cron or seconds * SECOND)
        changed.append(_Changed(key, revision, window, merged(known, seen, window, tx.now)))
    if changed:
        await _put(tx, changed)
    return count


async def _put(tx: Tx, changed: Sequence[_Changed]) -> None:
    await tx.execute(
        _PUT,
        **key_arrays((one.key for one in changed), "monitors"),
        revisions=[one.revision for one in changed],
        windows=[one.window for one in changed],
        seen=[msgspec.json.encode(one.kept).decode() for one in changed],
        ends_at=[one.kept[0].ends_at for one in changed],
    )
