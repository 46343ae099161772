"""Bodies of pushes for people. They are encrypted."""

from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import PushBodyRow
from ..rules.push_body import BODIES_KEPT

_SELECT = """
select b.uid, b.at, b.kind, b.up, b.run, b.is_cut, b.body_ciphertext
from push_bodies b join monitors m on m.org = b.org and m.id = b.monitor
where b.org = %(org)s and b.monitor = %(monitor)s
  and m.config->'keep_bodies' is not distinct from 'true'::jsonb
order by b.at desc, b.uid desc limit %(most)s
"""


async def select_push_bodies(tx: Tx, key: MonitorKey) -> list[PushBodyRow]:
    """Returns the newest bodies first, none if the monitor no longer keeps bodies."""
    return await tx.structs(PushBodyRow, _SELECT, org=key[0], monitor=key[1], most=BODIES_KEPT)
