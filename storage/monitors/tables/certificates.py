"""Certificates of monitors, as their checks saw them. See `rules.certificate`."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import SECOND
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import CertificateReport
from ..rules.certificate import SeenCertificate, merged, that_counts, window_us

# Largest lead of the clock of a reporter.
AHEAD_US: Final = 60 * SECOND

# Sorted, so that concurrent writers lock in the same order.
_CREATE: Final = """
insert into monitor_certificates (org, monitor, revision, seen)
select m.org, m.id, m.revision, '[]'
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(revisions)s::int[]) as k(org, monitor, revision)
  join monitors m on m.org = k.org and m.id = k.monitor and m.revision = k.revision
group by m.org, m.id
order by m.org, m.id
on conflict (org, monitor) do nothing
"""
_LOCK: Final = """
select c.org, c.monitor, m.revision, m.interval_seconds, c.revision, c.seen::text
from monitor_certificates c join monitors m on m.org = c.org and m.id = c.monitor
where (c.org, c.monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
order by c.org, c.monitor
for update of c
"""
_PUT: Final = """
update monitor_certificates c set revision = g.revision, seen = g.seen::jsonb,
  ends_at = at(g.ends_at), seen_at = at(g.seen_at)
from unnest(%(orgs)s::int[], %(monitors)s::int[], %(revisions)s::int[], %(seen)s::text[],
    %(ends_at)s::bigint[], %(seen_at)s::bigint[])
  as g(org, monitor, revision, seen, ends_at, seen_at)
where c.org = g.org and c.monitor = g.monitor
"""


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
    locked = await tx.rows(_LOCK, **key_arrays(by_key, "monitors"))
    count = 0
    changed: list[tuple[MonitorKey, int, list[SeenCertificate]]] = []
    for org, monitor, revision, interval_seconds, stored, text in locked:
        key = MonitorKey((org, monitor))
        current = [one for one in by_key[key] if one.revision == revision]
        if not current:
            continue
        count += len(current)
        known = msgspec.json.decode(text, type=list[SeenCertificate])
        seen = [
            SeenCertificate(one.ends_at, one.seen_at) for one in current if one.ends_at is not None
        ]
        kept = merged(known if stored == revision else [], seen, window_us(interval_seconds))
        changed.append((key, revision, kept))
    if changed:
        await _put(tx, changed)
    return count


async def _put(tx: Tx, changed: Sequence[tuple[MonitorKey, int, list[SeenCertificate]]]) -> None:
    counting = [that_counts(kept) for _, _, kept in changed]
    await tx.execute(
        _PUT,
        **key_arrays((key for key, _, _ in changed), "monitors"),
        revisions=[revision for _, revision, _ in changed],
        seen=[msgspec.json.encode(kept).decode() for _, _, kept in changed],
        ends_at=[one.ends_at if one else None for one in counting],
        seen_at=[one.seen_at if one else None for one in counting],
    )
