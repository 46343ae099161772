"""Warnings of certificates to begin or to end.

A regional monitor warns for its members, since they check the same target.
"""

from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.queries.certificates import SIGHTINGS, read_sightings
from ...monitors.rules.certificate import that_counts
from ..rules.certificate_warning import WatchedCertificate, begins, ends

# A bundle can give the setting to the composite of a regional monitor, or to its members.
_COLUMNS: Final = "m.org, m.id, m.enabled, d.days, c.seen, w.since_at"
_FROM: Final = f"""
cross join lateral (
  select case when m.regional_of <> m.id then 0 else greatest(m.warn_certificate_days,
    (select max(p.warn_certificate_days) from monitors p
      where m.regional_of = m.id and p.org = m.org and p.regional_of = m.id)) end as days) d
left join lateral ({SIGHTINGS}) c on true
left join certificate_warnings w on w.org = m.org and w.monitor = m.id
"""
# A superset of the monitors that the rule changes: those with any certificate that ends soon, and
# those with a warning. Each part reads one page, and stops there.
_CANDIDATES: Final = f"""
with soon as (
  (select m.org, m.id
  from monitors m join monitor_certificates c on c.org = m.org and c.monitor = m.id
    and c.revision = m.revision
  where m.warn_certificate_days > 0 and m.regional_of is null
    and c.ends_at <= at(%(now)s) + m.warn_certificate_days * interval '1 day'
    and (m.org, m.id) > (%(org)s, %(monitor)s)
  order by m.org, m.id limit %(most)s)
  union
  (select distinct m.org, m.id
  from monitors p join monitors m on m.org = p.org and m.id = p.regional_of
    join monitor_certificates c on c.org = p.org and c.monitor = p.id and c.revision = p.revision
  where greatest(m.warn_certificate_days, p.warn_certificate_days) > 0
    and c.ends_at <= at(%(now)s)
      + greatest(m.warn_certificate_days, p.warn_certificate_days) * interval '1 day'
    and p.regional_of is not null and (p.org, p.regional_of) > (%(org)s, %(monitor)s)
  order by m.org, m.id limit %(most)s)
  union
  (select org, monitor from certificate_warnings
  where (org, monitor) > (%(org)s, %(monitor)s)
  order by org, monitor limit %(most)s)
  order by 1, 2 limit %(most)s)
select {_COLUMNS} from soon join monitors m on m.org = soon.org and m.id = soon.id {_FROM}
order by m.org, m.id
"""
_ONE: Final = f"""
select {_COLUMNS} from monitors m {_FROM}
where m.org = %(org)s and m.id = %(monitor)s
"""


class CertificateCandidate(msgspec.Struct, frozen=True):
    """Monitor with what its checks saw. `since` is the begin of its open warning."""

    org: int
    id: int
    enabled: bool
    days: int
    seen: str | None
    since: Instant | None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))

    def watched(self, now: Instant) -> WatchedCertificate:
        parts = read_sightings(self.seen)
        return WatchedCertificate(self.days, bool(parts), that_counts(parts, now))

    def is_due(self, now: Instant) -> bool:
        """Returns whether the warning begins or ends, unless a begin has to wait."""
        watched = self.watched(now)
        if self.since is not None:
            return ends(watched, now)
        return self.enabled and begins(watched, now)


async def select_candidates(
    tx: Tx, after: MonitorKey, now: Instant, most: int
) -> list[CertificateCandidate]:
    """Returns the monitors after `after` whose warning could begin or end at `now`.

    Members of regional monitors are left out. Only some of them are due.
    """
    org, monitor = after
    return await tx.structs(
        CertificateCandidate, _CANDIDATES, org=org, monitor=monitor, now=now, most=most
    )


async def select_candidate(tx: Tx, key: MonitorKey) -> CertificateCandidate | None:
    return await tx.one(CertificateCandidate, _ONE, org=key[0], monitor=key[1])
