"""Open warnings of monitors, for the API and the console."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx

_SELECT: Final = """
select m.org, m.id, s.since_at, c.since_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor and m.enabled
  left join slow_warnings s on s.org = m.org and s.monitor = m.id
  left join certificate_warnings c on c.org = m.org and c.monitor = m.id
where s.since_at is not null or c.since_at is not null
"""


class OpenWarnings(msgspec.Struct, frozen=True):
    """Since when a monitor is slow, and since when its certificate ends soon."""

    slow: Instant | None = None
    certificate: Instant | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Returns the marks in lists."""
        marks = (("slow", self.slow), ("certificate", self.certificate))
        return tuple(word for word, since in marks if since is not None)


NO_WARNINGS: Final = OpenWarnings()


async def select_warnings(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, OpenWarnings]:
    """Returns the warnings of the monitors that have any, without paused ones."""
    rows = await tx.rows(_SELECT, **key_arrays(keys, "monitors"))
    return {
        MonitorKey((org, monitor)): OpenWarnings(slow, certificate)
        for org, monitor, slow, certificate in rows
    }
