"""Monitors whose slow warnings wait: silenced, muted or in maintenance."""

from collections.abc import Sequence
from typing import Final

from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ...mutes.queries import mutes_of_monitors
from ...notifications.queries.global_silence import global_silence_in_force
from ...scheduling.queries.shards import select_maintenances
from ...scheduling.rules.maintenance_window import is_in_maintenance

_WHOLES: Final = """
select m.org, m.id, m.regional_of
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join monitors m on m.org = k.org and m.id = k.monitor
where m.regional_of is not null
"""


async def select_quiet(tx: Tx, keys: Sequence[MonitorKey]) -> set[MonitorKey]:
    """Returns the monitors that must not begin a warning now.

    What applies to a regional monitor also applies to its members.
    """
    if not keys:
        return set()
    if await global_silence_in_force(tx) is not None:
        return set(keys)
    wholes = {
        MonitorKey((org, monitor)): MonitorKey((org, whole))
        for org, monitor, whole in await tx.rows(_WHOLES, **key_arrays(keys, "monitors"))
    }
    asked = sorted({*keys, *wholes.values()})
    quiet = set(await mutes_of_monitors(tx, asked))
    spans = await select_maintenances(tx, tx.now, monitors=[monitor for _, monitor in asked])
    quiet |= {key for key in asked if is_in_maintenance(tx.now, spans.get(key[1], ()))}
    return {key for key in keys if key in quiet or wholes.get(key) in quiet}
