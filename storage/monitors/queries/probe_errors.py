"""Reads of probe errors."""

from collections.abc import Sequence

from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rows import ProbeErrorRow

_OF = """
select org, monitor, reason, at from probe_errors
where (org, monitor) in (select * from unnest(%(orgs)s::int[], %(monitors)s::int[]))
"""


async def select_probe_errors(
    tx: Tx, keys: Sequence[MonitorKey]
) -> dict[MonitorKey, ProbeErrorRow]:
    rows = await tx.structs(ProbeErrorRow, _OF, **key_arrays(keys, "monitors"))
    return {MonitorKey((row.org, row.monitor)): row for row in rows}
