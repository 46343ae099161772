"""Certificates of monitors: when the one that counts ends."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ....probes.check.monitor_spec import CERTIFIED
from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rules.certificate import CertificateUnknown

_TYPES: Final = f"'{{{','.join(sorted(CERTIFIED))}}}'::text[]"
# Certificate of the monitor `m`, or the first to end among its members. Types without TLS give no
# row. A certificate of an earlier revision is left out: it can belong to another target.
COUNTING: Final = f"""
select c.revision is not null as is_known, c.ends_at, c.seen_at
from (select m.org, m.id, m.type, m.revision
    union all
    select p.org, p.id, p.type, p.revision from monitors p
    where m.regional_of = m.id and p.org = m.org and p.regional_of = m.id and p.id <> m.id) part
  left join monitor_certificates c on c.org = part.org and c.monitor = part.id
    and c.revision = part.revision
where part.type = any({_TYPES})
order by c.ends_at nulls last, c.revision is null limit 1
"""
_OF: Final = f"""
select m.org, m.id, c.is_known, c.ends_at, c.seen_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
  cross join lateral ({COUNTING}) c
"""


class MonitorCertificate(msgspec.Struct, frozen=True):
    """Certificate of a monitor. It is known and has no end if its checks use no TLS."""

    org: int
    monitor: int
    is_known: bool
    ends_at: Instant | None
    seen_at: Instant | None

    @property
    def unknown(self) -> CertificateUnknown | None:
        if self.ends_at is not None:
            return None
        return CertificateUnknown.NO_TLS if self.is_known else CertificateUnknown.NOT_SEEN


async def select_certificates(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, MonitorCertificate]:
    """Returns the certificates of monitors whose type can use TLS."""
    rows = await tx.structs(MonitorCertificate, _OF, **key_arrays(keys, "monitors"))
    return {MonitorKey((row.org, row.monitor)): row for row in rows}
