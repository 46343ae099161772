"""Certificates of monitors: when the one that counts ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ....probes.check.monitor_spec import CERTIFIED
from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rules.certificate import CertificateUnknown, Sightings, same_until, that_counts

_TYPES: Final = f"'{{{','.join(sorted(CERTIFIED))}}}'::text[]"
# `seen` are the `Sightings` of the monitor `m` and of its members, null before the first. Types
# without TLS give no row. A sighting of an earlier revision is left out: it can belong to another
# target.
SIGHTINGS: Final = f"""
select (jsonb_agg(jsonb_build_array(c.window_us, c.seen))
    filter (where c.revision is not null))::text as seen
from (select m.org, m.id, m.type, m.revision
    union all
    select p.org, p.id, p.type, p.revision from monitors p
    where m.regional_of = m.id and p.org = m.org and p.regional_of = m.id and p.id <> m.id) part
  left join monitor_certificates c on c.org = part.org and c.monitor = part.id
    and c.revision = part.revision
where part.type = any({_TYPES})
having count(*) > 0
"""
_OF: Final = f"""
select m.org, m.id, c.seen
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
  cross join lateral ({SIGHTINGS}) c
"""


@dataclass(frozen=True, slots=True)
class MonitorCertificate:
    """Certificate of a monitor. It is known and has no end if its checks use no TLS.

    Until `until` it changes only with its sightings.
    """

    is_known: bool
    ends_at: Instant | None
    seen_at: Instant | None
    until: Instant

    @property
    def unknown(self) -> CertificateUnknown | None:
        if self.ends_at is not None:
            return None
        return CertificateUnknown.NO_TLS if self.is_known else CertificateUnknown.NOT_SEEN


_SIGHTINGS: Final = msgspec.json.Decoder(list[Sightings])


def read_sightings(text: str | None) -> list[Sightings]:
    """Reads a `seen` of SIGHTINGS."""
    return [] if text is None else _SIGHTINGS.decode(text)


async def select_certificates(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, MonitorCertificate]:
    """Returns the certificates of monitors whose type can use TLS."""
    found = {}
    for org, monitor, text in await tx.rows(_OF, **key_arrays(keys, "monitors")):
        parts = read_sightings(text)
        one = that_counts(parts, tx.now)
        found[MonitorKey((org, monitor))] = MonitorCertificate(
            bool(parts),
            one.ends_at if one else None,
            one.seen_at if one else None,
            same_until(parts, tx.now),
        )
    return found
