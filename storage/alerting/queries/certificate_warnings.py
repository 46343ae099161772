"""Warnings of certificates to begin or to end.

A regional monitor warns for its members, since they check the same target.
"""

from typing import Final

import msgspec

from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ...monitors.queries.certificates import COUNTING
from ...monitors.rules.certificate import SeenCertificate
from ..rules.certificate_warning import HYSTERESIS_US, WatchedCertificate

# A bundle can give the setting to the composite of a regional monitor, or to its members.
_COLUMNS: Final = """
m.org, m.id, d.days, coalesce(c.is_known, false), c.ends_at, c.seen_at, w.since_at
"""
_FROM: Final = f"""
cross join lateral (
  select case when m.regional_of <> m.id then 0 else greatest(m.warn_certificate_days,
    (select max(p.warn_certificate_days) from monitors p
      where m.regional_of = m.id and p.org = m.org and p.regional_of = m.id)) end as days) d
left join lateral ({COUNTING}) c on true
left join certificate_warnings w on w.org = m.org and w.monitor = m.id
"""
# A superset of the monitors that the rule changes. The cheap part finds certificates that end soon.
_SOON: Final = "c.ends_at <= at(%(now)s) + m.warn_certificate_days * interval '1 day'"
_CANDIDATES: Final = f"""
with soon as (
  select m.org, coalesce(m.regional_of, m.id) as id
  from monitors m join monitor_certificates c on c.org = m.org and c.monitor = m.id
    and c.revision = m.revision
  where m.warn_certificate_days > 0 and {_SOON}
  union
  select m.org, m.id
  from monitors m join monitors p on p.org = m.org and p.regional_of = m.id
    join monitor_certificates c on c.org = p.org and c.monitor = p.id and c.revision = p.revision
  where m.warn_certificate_days > 0 and m.regional_of = m.id and {_SOON}
  union
  select org, monitor from certificate_warnings)
select {_COLUMNS} from soon join monitors m on m.org = soon.org and m.id = soon.id {_FROM}
where (m.org, m.id) > (%(org)s, %(monitor)s)
  and case when w.since_at is null
    then m.enabled and (c.ends_at > at(%(now)s) or c.ends_at <= c.seen_at)
    else d.days = 0 or (c.is_known and (c.ends_at is null or c.ends_at > at(%(now)s)
      + d.days * interval '1 day' + interval '{HYSTERESIS_US // SECOND} seconds')) end
order by m.org, m.id limit %(most)s
"""
_ONE: Final = f"""
select {_COLUMNS} from monitors m {_FROM}
where m.org = %(org)s and m.id = %(monitor)s
"""


class CertificateCandidate(msgspec.Struct, frozen=True):
    """Monitor with the certificate that counts. `since` is the begin of its open warning."""

    org: int
    id: int
    days: int
    is_known: bool
    ends_at: Instant | None
    seen_at: Instant | None
    since: Instant | None

    @property
    def key(self) -> MonitorKey:
        return MonitorKey((self.org, self.id))

    @property
    def watched(self) -> WatchedCertificate:
        seen = None
        if self.ends_at is not None and self.seen_at is not None:
            seen = SeenCertificate(self.ends_at, self.seen_at)
        return WatchedCertificate(self.days, self.is_known, seen)


async def select_candidates(
    tx: Tx, after: MonitorKey, now: Instant, most: int
) -> list[CertificateCandidate]:
    """Returns monitors whose warning may begin or end at `now`, without members of regional ones.

    Those whose warning a silence or a maintenance delays are among them in every pass.
    """
    org, monitor = after
    return await tx.structs(
        CertificateCandidate, _CANDIDATES, org=org, monitor=monitor, now=now, most=most
    )


async def select_candidate(tx: Tx, key: MonitorKey) -> CertificateCandidate | None:
    return await tx.one(CertificateCandidate, _ONE, org=key[0], monitor=key[1])
