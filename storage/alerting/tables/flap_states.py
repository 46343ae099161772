"""Flap states of monitors. The lock of the monitor's state covers them."""

from collections.abc import Mapping, Sequence

import msgspec

from ...core.instant import Instant
from ...core.key import MonitorKey, key_arrays
from ...engine.pools import Tx
from ..rules.flapping import FlapState

_SELECT = """
select f.org, f.monitor, f.downs, f.since_at, f.up_at, f.seen_at
from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  join flap_states f on f.org = k.org and f.monitor = k.monitor
  join monitors m on m.org = f.org and m.id = f.monitor and m.flap_threshold > 0
"""
_PUT = """
insert into flap_states (org, monitor, downs, since_at, up_at, seen_at)
select i.org, i.monitor, array(select at(x) from unnest(i.downs) x), at(i.since), at(i.up_at),
  at(i.seen)
from json_to_recordset(%(items)s::json)
  as i(org int, monitor int, downs bigint[], since bigint, up_at bigint, seen bigint)
order by i.org, i.monitor
on conflict (org, monitor) do update set downs = excluded.downs, since_at = excluded.since_at,
  up_at = excluded.up_at, seen_at = excluded.seen_at
"""
_CLEAR = """
delete from flap_states f using unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
where f.org = k.org and f.monitor = k.monitor
"""


async def select_flap_states(tx: Tx, keys: Sequence[MonitorKey]) -> dict[MonitorKey, FlapState]:
    """Returns the states of the monitors that have a threshold and had an outage since."""
    rows = await tx.rows(_SELECT, **key_arrays(keys, "monitors"))
    return {
        MonitorKey((org, monitor)): FlapState(tuple(map(Instant, downs)), since, up_at, seen)
        for org, monitor, downs, since, up_at, seen in rows
    }


async def put_flap_states(tx: Tx, states: Mapping[MonitorKey, FlapState]) -> None:
    items = [
        {
            "org": org,
            "monitor": monitor,
            "downs": list(state.downs),
            "since": state.since,
            "up_at": state.up_at,
            "seen": state.seen,
        }
        for (org, monitor), state in sorted(states.items())
    ]
    if items:
        await tx.execute(_PUT, items=msgspec.json.encode(items).decode())


async def clear_flap_states(tx: Tx, keys: Sequence[MonitorKey]) -> None:
    """Deletes the states of monitors that have no threshold any more: they count no changes."""
    if keys:
        await tx.execute(_CLEAR, **key_arrays(keys, "monitors"))
