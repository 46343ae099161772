"""Probe errors: the last reason and instant per monitor.

A repetition is written at most once per minute to limit the writes. An error after a result is not
a repetition.
"""

from collections.abc import Mapping

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import ProbeErrorReason

# Sorted, so that concurrent writers lock in the same order. Deleted monitors are skipped.
_NOTE = """
insert into probe_errors as t (org, monitor, reason, at)
select g.org, g.monitor, g.reason, at(g.at)
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(reasons)s::text[], %(ats)s::bigint[])
    as g(org, monitor, reason, at)
  join monitors m on m.org = g.org and m.id = g.monitor
order by g.org, g.monitor
on conflict (org, monitor) do update set reason = excluded.reason, at = excluded.at
where t.reason <> excluded.reason or t.at < excluded.at - interval '1 minute'
  -- After a result the earlier error is no longer shown, and the next run can be a day away.
  or exists (select from heartbeats h where h.org = t.org and h.monitor = t.monitor
    and h.ts >= t.at and h.ts <= excluded.at)
"""


async def record_probe_errors(
    tx: Tx, found: Mapping[MonitorKey, tuple[ProbeErrorReason, Instant]]
) -> None:
    await tx.execute(
        _NOTE,
        **key_arrays(found, "monitors"),
        reasons=[reason.value for reason, _ in found.values()],
        ats=[at for _, at in found.values()],
    )
